// tests/runtime/stream/recording_test.cpp: streams that record, and what a replay does.
#include "runtime/stream/recording.h"

#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "runtime/memory/direct_allocator.h"
#include "runtime/platform/device.h"
#include "runtime/stream/event.h"
#include "runtime/stream/host_callback.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::controls;
using fake::error_of;
using fake::has;

class RecordingTest : public testing::Test {
 protected:
  RecordingTest() : stream_(fake_.open().default_stream()) {
    block_ = device().allocator().allocate(sizeof(uint32_t), stream_);
    write(0);
  }
  ~RecordingTest() override { device().allocator().free(block_); }

  Device& device() { return fake_.device(); }
  void write(uint32_t value) { stream_.fill(block_->address, sizeof value, &value, sizeof value); }
  uint32_t number() {
    uint32_t value = 0;
    stream_.read(&value, block_->address, sizeof value);
    return value;
  }
  template <class Work>
  std::shared_ptr<Recording> record(Work work, uint64_t pool = 1) {
    auto recording = device().make_recording(pool);
    stream_.begin_recording(recording);
    work();
    stream_.end_recording();
    return recording;
  }

  fake::Fake fake_;
  Stream& stream_;
  Block* block_;
};

TEST_F(RecordingTest, CommandsRunAtTheReplayAlone) {
  const uint64_t fills = stream_.counts().fills;
  const auto recording = record([&] { write(7); });
  EXPECT_EQ(number(), 0u);
  EXPECT_EQ(stream_.counts().fills, fills);
  recording->replay(stream_);
  EXPECT_EQ(number(), 7u);
  EXPECT_EQ(stream_.counts().fills, fills + 1);
  write(1);
  recording->replay(stream_);
  EXPECT_EQ(number(), 7u);
  EXPECT_EQ(recording->size(), 1u);
}

TEST_F(RecordingTest, WaitingIsRefusedUntilTheEnd) {
  record([&] {
    EXPECT_TRUE(has(error_of([&] { stream_.synchronize(); }), "captures a graph"));
    EXPECT_TRUE(has(error_of([&] { stream_.query(); }), "captures a graph"));
    EXPECT_TRUE(has(error_of([&] { number(); }), "captures a graph"));
    EXPECT_TRUE(has(error_of([&] { host_callback(stream_, [] {}); }), "captures a graph"));
    EXPECT_TRUE(has(error_of([&] { device().synchronize(); }), "captures a graph"));
    const auto another = device().make_recording(2);
    EXPECT_TRUE(has(error_of([&] { stream_.begin_recording(another); }), "another capture"));
    EXPECT_TRUE(has(error_of([&] { another->replay(stream_); }), "captures a graph"));
  });
  stream_.synchronize();
  EXPECT_TRUE(has(error_of([&] { stream_.end_recording(); }), "No capture runs on this stream"));
}

TEST_F(RecordingTest, StreamsThatWaitForAMarkJoin) {
  Stream& other = device().stream_from_pool(0);
  Event forked(device(), false), joined(device(), false);
  const uint32_t value = 9;
  const auto recording = record([&] {
    forked.record(stream_);
    other.wait(forked);
    EXPECT_NE(other.recording(), nullptr);
    other.fill(block_->address, sizeof value, &value, sizeof value);
    joined.record(other);
    stream_.wait(joined);
    EXPECT_TRUE(joined.query());
    EXPECT_TRUE(has(error_of([&] { joined.synchronize(); }), "so the host cannot wait for it"));
  });
  EXPECT_EQ(other.recording(), nullptr);
  recording->replay(stream_);
  EXPECT_EQ(number(), value);
  stream_.wait(joined);
  joined.record(stream_);
  joined.synchronize();
}

class Counter final : public RandomSource {
 public:
  RandomState advance(uint64_t blocks) override {
    return {0x500000003, std::exchange(next_, next_ + blocks)};
  }

 private:
  uint64_t next_ = 100;
};

// A launch that draws numbers from offset on, behind an argument that stays.
void launch_drawing(Stream& stream, uint64_t offset) {
  graft_argument arguments[4] = {};
  for (graft_argument& one : arguments) one = {GRAFT_ARGUMENT_SCALAR, GRAFT_INT64, 0, 0, 1, 8};
  arguments[3].value = offset;
  stream.launch(nullptr, 1, {arguments, 1});
}
// The offsets of the launches so far.
std::vector<uint64_t> offsets() {
  std::vector<uint64_t> found;
  for (size_t i = 3; i < controls().arguments.size(); i += 4) {
    found.push_back(controls().arguments[i].value);
  }
  return found;
}

TEST_F(RecordingTest, RandomNumbersAreDrawnByEachReplay) {
  const auto source = std::make_shared<Counter>();
  const auto recording = record([&] {
    for (const uint64_t blocks : {3, 4}) {
      launch_drawing(stream_, stream_.recording()->draw(source, blocks));
    }
  });
  for (const uint64_t base : {100, 107}) {
    controls().arguments.clear();
    recording->replay(stream_);
    std::vector<uint64_t> values;
    for (const graft_argument& argument : controls().arguments) {
      EXPECT_EQ(argument.unused, 0u);
      values.push_back(argument.value);
    }
    EXPECT_EQ(values, (std::vector<uint64_t>{1, 3, 5, base, 1, 3, 5, base + 3}));
  }
}

TEST_F(RecordingTest, AnotherRecordingRepeatsTheLastReplaysNumbers) {
  const auto source = std::make_shared<Counter>();
  uint64_t offset = 0;
  auto first = record([&] {
    stream_.recording()->draw(source, 2);
    offset = stream_.recording()->draw(source, 5);
  });
  const auto second = record([&] { launch_drawing(stream_, offset); }, 2);
  EXPECT_TRUE(has(error_of([&] { replayed_state(offset); }),
                  "was not replayed, and this backward pass needs them"));
  EXPECT_TRUE(has(error_of([&] { second->replay(stream_); }),
                  "was not replayed, and this backward pass needs them"));
  for (const uint64_t base : {100, 107}) {
    first->replay(stream_);
    controls().arguments.clear();
    for (int i = 0; i < 2; ++i) second->replay(stream_);
    EXPECT_EQ(offsets(), (std::vector<uint64_t>{base + 2, base + 2}));
    EXPECT_EQ(replayed_state(offset).offset, base + 2);
  }
  first.reset();
  second->replay(stream_);  // keeps what it repeats
}

TEST_F(RecordingTest, DrawsThatAreRewoundRepeatTheirNumbers) {
  const auto source = std::make_shared<Counter>();
  const auto launch = [&](uint64_t blocks) {
    launch_drawing(stream_, stream_.recording()->draw(source, blocks));
  };
  const auto rewind = [&](uint64_t to) { stream_.recording()->rewind(source, to); };
  const auto place = [&] { return stream_.recording()->draw(source, 0); };
  const auto recording = record([&] {
    launch(3);
    const uint64_t begin = place();
    launch(4);
    const uint64_t end = place();
    rewind(begin);
    launch(4);
    rewind(55);  // no place in a recording: the same in each replay
    launch(1);
    launch(1);
    rewind(end);
    launch(2);
  });
  for (const uint64_t base : {100, 109}) {
    controls().arguments.clear();
    recording->replay(stream_);
    EXPECT_EQ(offsets(), (std::vector<uint64_t>{base, base + 3, base + 3, 55, 56, base + 7}));
  }
}

TEST_F(RecordingTest, DrawsAtAPlaceOfAnotherRecordingRepeatItsLastReplay) {
  const auto source = std::make_shared<Counter>();
  uint64_t begin = 0, gone = 0;
  const auto first = record([&] { begin = stream_.recording()->draw(source, 2); });
  const auto second = record(
      [&] {
        stream_.recording()->rewind(source, begin);
        launch_drawing(stream_, stream_.recording()->draw(source, 2));
      },
      2);
  for (int i = 0; i < 2; ++i) first->replay(stream_);
  controls().arguments.clear();
  second->replay(stream_);
  EXPECT_EQ(offsets(), (std::vector<uint64_t>{102}));
  EXPECT_EQ(source->advance(0).offset, 104u);
  record([&] { gone = stream_.recording()->draw(std::make_shared<Counter>(), 1); }, 3);
  record(
      [&] {
        EXPECT_TRUE(has(error_of([&] { stream_.recording()->rewind(source, gone); }), "is gone"));
      },
      3);
}

TEST_F(RecordingTest, ItsEndWaitsForReplaysOnEveryStream) {
  Stream& other = device().stream_from_pool(0);
  for (const bool records : {false, true}) {
    auto recording = record([&] { write(7); });
    write(0);
    controls().hold = true;
    recording->replay(other);
    if (records) other.begin_recording(device().make_recording(2));
    recording.reset();
    uint32_t value = 0;
    std::memcpy(&value, reinterpret_cast<const void*>(block_->address), sizeof value);
    EXPECT_EQ(value, 7u) << records;
    controls().hold = false;
    if (records) other.end_recording();
  }
}

TEST_F(RecordingTest, WhatIsKeptLivesAsLongAsTheRecording) {
  auto owner = std::make_shared<int>(1);
  const std::weak_ptr<int> kept = owner;
  auto recording = record([&] { stream_.recording()->keep(std::move(owner)); });
  recording->replay(stream_);
  EXPECT_FALSE(kept.expired());
  recording.reset();
  EXPECT_TRUE(kept.expired());
}

TEST_F(RecordingTest, NumbersOfARecordingThatIsGoneAreRefused) {
  uint64_t offset = 0;
  record([&] { offset = stream_.recording()->draw(std::make_shared<Counter>(), 1); });
  EXPECT_TRUE(has(error_of([&] { replayed_state(offset); }), "is gone"));
  record([&] { EXPECT_TRUE(has(error_of([&] { launch_drawing(stream_, offset); }), "is gone")); });
}

TEST_F(RecordingTest, AnEventDoesNotKeepARecording) {
  Event event(device(), false);
  std::weak_ptr<Recording> kept;
  {
    const auto recording = record([&] { event.record(stream_); });
    kept = recording;
  }
  EXPECT_TRUE(kept.expired());
  stream_.wait(event);  // as one that was never recorded
  EXPECT_TRUE(event.query());
}

TEST_F(RecordingTest, ARefusedCommandThrowsAndTheStreamGoesOn) {
  const auto recording = record([&] { write(7); });
  controls().fail_now = GRAFT_IO;
  EXPECT_TRUE(has(error_of([&] { recording->replay(stream_); }), "fill failed on graft:0"));
  recording->replay(stream_);
  EXPECT_EQ(number(), 7u);
}

TEST_F(RecordingTest, ChecksAreArmedByEachReplay) {
  int calls = 0;
  const auto recording = record([&] {
    stream_.arm({[](Stream&, void* count) { ++*static_cast<int*>(count); }, &calls});
  });
  stream_.synchronize();
  EXPECT_EQ(calls, 0);
  for (int i = 1; i <= 2; ++i) {
    recording->replay(stream_);
    stream_.synchronize();
    EXPECT_EQ(calls, i);
  }
}

TEST_F(RecordingTest, MemoryStaysWithThePoolUntilItIsReleased) {
  Allocator& allocator = device().allocator();
  Block* inside = nullptr;
  graft_address freed = 0, reused = 0;
  auto recording = record([&] {
    Block* block = allocator.allocate(4096, stream_);
    freed = block->address;
    allocator.free(block);
    inside = allocator.allocate(4096, stream_);
    reused = inside->address;
  });
  EXPECT_EQ(reused, freed);
  allocator.free(inside);
  const auto taken_anew = [&] {
    Block* block = allocator.allocate(4096, stream_);
    const graft_address address = block->address;
    allocator.free(block);
    return address;
  };
  EXPECT_NE(taken_anew(), freed);
  allocator.empty_cache();
  const auto second = record([&] { EXPECT_EQ(taken_anew(), freed); });
  recording.reset();
  EXPECT_NE(taken_anew(), freed);
}

TEST_F(RecordingTest, AFreeInsideACaptureWaitsForEarlierWorkOfOtherStreams) {
  Stream& other = device().stream_from_pool(0);
  Block* block = device().allocator().allocate(4096, stream_);
  controls().hold = true;
  other.fill(block->address, 4, "abcd", 4);
  device().allocator().record_stream(block, other);
  const auto recording = device().make_recording(1);
  other.begin_recording(recording);
  device().allocator().free(block);
  EXPECT_EQ(other.handle()->done, other.handle()->enqueued);
  other.end_recording();
}

TEST_F(RecordingTest, ReleasedMemoryIsAsAnyOther) {
  Allocator& allocator = device().allocator();
  allocator.empty_cache();
  const auto reserved = [&] { return allocator.statistics().reserved_bytes.all().current; };
  const int64_t before = reserved();
  auto recording = record([&] { allocator.free(allocator.allocate(64 << 20, stream_)); });
  allocator.empty_cache();
  EXPECT_GT(reserved(), before);
  recording.reset();
  allocator.empty_cache();
  EXPECT_EQ(reserved(), before);
}

TEST_F(RecordingTest, WithoutACacheFreedMemoryIsKeptAlike) {
  DirectAllocator allocator(device());
  allocator.retain_pool(5);
  Block* outside = allocator.allocate(64, stream_);
  record([&] { allocator.free(allocator.allocate(64, stream_)); }, 5);
  const int frees = controls().frees;
  allocator.free(outside);
  EXPECT_EQ(controls().frees, frees + 1);
  allocator.release_pool(5);
  EXPECT_EQ(controls().frees, frees + 2);
}

TEST_F(RecordingTest, TheTextNamesOperators) {
  const auto recording = record([&] {
    const OpScope scope("aten::fill_");
    write(3);
  });
  EXPECT_TRUE(has(recording->text(), "0: fill of 4 bytes, aten::fill_"));
}

TEST_F(RecordingTest, StreamsRecordSideBySide) {
  Stream& other = device().stream_from_pool(0);
  Block* block = device().allocator().allocate(4, other);
  const auto fill = [this](Stream& stream, graft_address to, uint64_t pool) {
    const auto recording = device().make_recording(pool);
    stream.begin_recording(recording);
    for (uint32_t i = 0; i < 200; ++i) stream.fill(to, sizeof i, &i, sizeof i);
    stream.end_recording();
    for (int i = 0; i < 20; ++i) recording->replay(stream);
  };
  std::thread thread([&] { fill(other, block->address, 8); });
  fill(stream_, block_->address, 9);
  thread.join();
  other.synchronize();
  EXPECT_EQ(number(), 199u);
  device().allocator().free(block);
}

}  // namespace
}  // namespace graft
