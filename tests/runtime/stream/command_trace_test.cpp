// tests/runtime/stream/command_trace_test.cpp: what streams did, told by the driver or by timed
// events.
#include "runtime/stream/command_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <thread>
#include <vector>

#include "graft/extensions.h"
#include "runtime/driver/op_tag.h"
#include "runtime/platform/device.h"
#include "runtime/stream/recording.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::controls;

int64_t now_ns() {
  return std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

// The driver's half of graft.profiler: tests emit by hand.
struct FakeProfiler {
  graft_emit_trace emit = nullptr;
  void* context = nullptr;
  int started = 0, stopped = 0;
};
FakeProfiler profiler;

const graft_profiler_table kProfiler = {2, 0,
                                        [](graft_device, graft_emit_trace emit, void* context) {
                                          profiler.emit = emit;
                                          profiler.context = context;
                                          return ++profiler.started, GRAFT_OK;
                                        },
                                        [](graft_device) { return ++profiler.stopped, GRAFT_OK; }};

class CommandTraceTest : public testing::Test {
 protected:
  CommandTraceTest() { profiler = {}; }
  ~CommandTraceTest() override { take_traced_commands(); }

  Stream& open() { return fake_.open().default_stream(); }
  Stream& open_with_profiler() {
    fake::table().extension = [](const char* name, uint32_t, const void** out) {
      if (std::string(name) != "graft.profiler") return GRAFT_NOT_FOUND;
      return *out = &kProfiler, GRAFT_OK;
    };
    return open();
  }
  static void emit(Stream& stream, uint32_t tag, int64_t start, int64_t end, const char* name) {
    const graft_trace_event event{sizeof event, tag, stream.handle(), start, end, name};
    profiler.emit(profiler.context, &event, 1);
  }
  static graft_kernel kernel() { return reinterpret_cast<graft_kernel>(uintptr_t{16}); }

  fake::Fake fake_;
  uint32_t word_ = 1, other_ = 0;
};

TEST_F(CommandTraceTest, NothingIsKeptWhileOff) {
  Stream& stream = open();
  stream.copy(reinterpret_cast<uintptr_t>(&other_), reinterpret_cast<uintptr_t>(&word_), 4,
              GRAFT_HOST_TO_DEVICE);
  EXPECT_TRUE(take_traced_commands().empty());
}

TEST_F(CommandTraceTest, EventsTimeTheCommandsOfADriverWithoutTheTable) {
  Stream& stream = open();
  name_kernel(kernel(), "add_f32");
  trace_commands();
  const int64_t before = now_ns();
  {
    const OpScope scope("aten::add");
    push_correlation(Correlation::kOp, 7);
    push_correlation(Correlation::kUser, 3);
    stream.launch(kernel(), 8, {});
    pop_correlation(Correlation::kOp);
    pop_correlation(Correlation::kUser);
  }
  controls().clock_ns = 5000;
  stream.copy(reinterpret_cast<uintptr_t>(&other_), reinterpret_cast<uintptr_t>(&word_), 4,
              GRAFT_HOST_TO_DEVICE);
  stream.synchronize();
  const auto found = take_traced_commands();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].kind, TracedKind::kLaunch);
  EXPECT_EQ(found[0].name, "add_f32");
  EXPECT_EQ(op_name(found[0].tag), "aten::add");
  EXPECT_EQ(found[0].correlation, 7u);
  EXPECT_EQ(found[0].user_correlation, 3u);
  EXPECT_GE(found[0].called_ns, before);
  EXPECT_LE(found[0].called_ns, found[0].returned_ns);
  EXPECT_GT(found[0].start_ns, before - 1'000'000'000);
  EXPECT_EQ(found[0].start_ns, found[0].end_ns);  // the fake clock stood still
  EXPECT_EQ(found[1].kind, TracedKind::kCopy);
  EXPECT_EQ(found[1].copy_kind, GRAFT_HOST_TO_DEVICE);
  EXPECT_EQ(found[1].bytes, 4u);
  EXPECT_EQ(found[1].correlation, 0u);
  EXPECT_EQ(found[1].start_ns, found[0].end_ns + 5000);
  EXPECT_EQ(found[2].kind, TracedKind::kWait);
  EXPECT_EQ(found[2].start_ns, 0);
  EXPECT_NE(found[2].returned_ns, 0);
}

TEST_F(CommandTraceTest, EachKindOfCommandHasItsOperator) {
  Stream& stream = open();
  trace_commands();
  {
    const OpScope scope("aten::addmm");
    const uint32_t zero = 0;
    stream.copy(reinterpret_cast<uintptr_t>(&other_), reinterpret_cast<uintptr_t>(&word_), 4,
                GRAFT_HOST_TO_DEVICE);
    stream.fill(reinterpret_cast<uintptr_t>(&other_), 4, &zero, 4);
    stream.launch(kernel(), 8, {});
    LibraryCommand command;
    command.run = [](graft_stream, graft_plan, const graft_execution*) { return GRAFT_OK; };
    stream.execute(std::move(command));
  }
  const auto found = take_traced_commands();
  ASSERT_EQ(found.size(), 4u);
  for (const TracedCommand& one : found) EXPECT_EQ(op_name(one.tag), "aten::addmm");
}

TEST_F(CommandTraceTest, TheDriverTellsByTag) {
  Stream& stream = open_with_profiler();
  trace_commands();
  const OpScope scope("aten::mm");
  for (int i = 0; i < 2; ++i) {
    stream.copy(reinterpret_cast<uintptr_t>(&other_), reinterpret_cast<uintptr_t>(&word_), 4,
                GRAFT_HOST_TO_DEVICE);
  }
  EXPECT_EQ(profiler.started, 1);
  auto found = take_traced_commands();
  EXPECT_EQ(profiler.stopped, 1);
  ASSERT_EQ(found.size(), 2u);
  EXPECT_NE(found[0].tag, found[1].tag);
  EXPECT_EQ(op_name(found[0].tag), "aten::mm");
  EXPECT_EQ(found[0].start_ns, 0);  // nothing was emitted

  trace_commands();
  push_correlation(Correlation::kOp, 5);
  stream.launch(kernel(), 1, {});
  pop_correlation(Correlation::kOp);
  // Tags go up by one: the launch's is the one after those of the copies.
  const uint32_t tag = found[1].tag + 1;
  emit(stream, tag, 100, 200, "first");
  emit(stream, tag, 200, 250, "second");
  emit(stream, tag, 300, 290, "ends before it starts");
  found = take_traced_commands();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].tag, tag);
  EXPECT_EQ(found[0].name, "first");
  EXPECT_EQ(found[0].start_ns, 100);
  EXPECT_EQ(found[0].end_ns, 200);
  EXPECT_EQ(found[1].name, "second");
  EXPECT_EQ(found[1].called_ns, 0);  // part of the same call
  EXPECT_EQ(found[1].correlation, 5u);
}

TEST_F(CommandTraceTest, ReplaysAreTracedAndWhatTheyRunBelongsToThem) {
  Stream& stream = open_with_profiler();
  trace_commands();
  const auto recording = fake_.device().make_recording(1);
  stream.begin_recording(recording);
  {
    const OpScope scope("aten::relu");
    stream.launch(kernel(), 1, {});
  }
  stream.end_recording();
  push_correlation(Correlation::kOp, 9);
  recording->replay(stream);
  pop_correlation(Correlation::kOp);
  emit(stream, op_tag("aten::relu"), 10, 20, nullptr);
  const auto found = take_traced_commands();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].kind, TracedKind::kReplay);
  EXPECT_EQ(found[1].kind, TracedKind::kLaunch);
  EXPECT_EQ(found[1].correlation, 9u);
  EXPECT_EQ(found[1].start_ns, 10);
}

TEST_F(CommandTraceTest, ADriverThatRefusesIsTimedByEvents) {
  fake::table().extension = [](const char*, uint32_t, const void** out) {
    static const graft_profiler_table refusing = {
        2, 0, [](graft_device, graft_emit_trace, void*) { return GRAFT_BUSY; },
        [](graft_device) { return GRAFT_INTERNAL; }};
    return *out = &refusing, GRAFT_OK;
  };
  Stream& stream = open();
  trace_commands();
  stream.launch(kernel(), 1, {});
  const auto found = take_traced_commands();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].start_ns, 0);
}

TEST_F(CommandTraceTest, ADriverWithHalfATableIsTimedByEvents) {
  fake::table().extension = [](const char*, uint32_t, const void** out) {
    static graft_profiler_table half = kProfiler;
    half.slot_count = 1;
    return *out = &half, GRAFT_OK;
  };
  testing::internal::CaptureStderr();
  Stream& stream = open();
  trace_commands();
  stream.launch(kernel(), 1, {});
  const auto found = take_traced_commands();
  EXPECT_NE(testing::internal::GetCapturedStderr().find("trace_stop"), std::string::npos);
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].start_ns, 0);
  EXPECT_EQ(profiler.started + profiler.stopped, 0);
}

TEST_F(CommandTraceTest, WithoutAnyClockTheCallsAreKept) {
  fake::table().event_elapsed = nullptr;
  Stream& stream = open();
  trace_commands();
  stream.launch(kernel(), 1, {});
  const auto found = take_traced_commands();
  ASSERT_EQ(found.size(), 1u);
  EXPECT_NE(found[0].called_ns, 0);
  EXPECT_EQ(found[0].start_ns, 0);
}

TEST_F(CommandTraceTest, ALateErrorKeepsItsOpAndItsPlace) {
  Stream& stream = open();
  trace_commands();
  controls().fail_late = GRAFT_INTERNAL;
  {
    const OpScope scope("aten::exp");
    stream.launch(kernel(), 1, {});
  }
  EXPECT_EQ(take_traced_commands().size(), 1u);
  EXPECT_TRUE(fake::has(fake::error_of([&] { stream.synchronize(); }), "aten::exp failed"));
  EXPECT_EQ(fake::error_of([&] { stream.synchronize(); }), "");
}

TEST_F(CommandTraceTest, ManyThreadsAndAnEndInTheMiddle) {
  Stream& stream = open();
  trace_commands();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 1500; ++i) {
        push_correlation(Correlation::kOp, static_cast<uint64_t>(t + 1));
        stream.launch(kernel(), 1, {});
        pop_correlation(Correlation::kOp);
      }
    });
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto some = take_traced_commands();
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(some.size(), 6000u);
  for (const TracedCommand& one : some) {
    EXPECT_TRUE(one.correlation >= 1 && one.correlation <= 4);
  }
  EXPECT_EQ(stream.counts().launches, 6000u);
  EXPECT_TRUE(take_traced_commands().empty());
}

}  // namespace
}  // namespace graft
