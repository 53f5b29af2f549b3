// tests/runtime/platform/collective_group_test.cpp: what a group asks of its driver, and two host
// ranks.
#include "runtime/platform/collective_group.h"

#include <gtest/gtest.h>

#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "graft/extensions.h"
#include "runtime/driver/op_tag.h"
#include "runtime/platform/device.h"
#include "runtime/stream/host_callback.h"
#include "runtime/stream/stream.h"
#include "tests/runtime/driver/fake_driver.h"

struct graft_group_s {
  uint32_t rank, size;
};

namespace graft {
namespace {

using fake::controls;
using fake::error_of;
using fake::has;
using std::chrono::milliseconds;

// What the fake collectives were called with: "all_reduce 1 2 3 ...".
std::vector<std::string>& calls() {
  static auto* const all = new std::vector<std::string>();
  return *all;
}

template <class... Numbers>
graft_status note(const char* slot, Numbers... numbers) {
  std::string text = slot;
  ((text += " " + std::to_string(numbers)), ...);
  calls().push_back(text);
  return static_cast<graft_status>(controls().fail_now.exchange(0));
}

// A slot of a command that is queued on the fake stream, so that it can fail late.
template <class... Numbers>
graft_status command(const char* slot, graft_stream stream, uint32_t tag, Numbers... numbers) {
  const graft_status status = note(slot, numbers...);
  return status != GRAFT_OK ? status : fake::enqueue(stream, tag, [] {});
}

graft_collectives_table fake_collectives() {
  graft_collectives_table t{};
  t.slot_count = 13;
  t.group_id = [](graft_device, uint8_t* out) {
    std::memset(out, 7, GRAFT_GROUP_ID_BYTES);
    return GRAFT_OK;
  };
  t.group_create = [](graft_device, const uint8_t* id, uint32_t rank, uint32_t size,
                      int64_t timeout, graft_group* out) {
    const graft_status status = note("group_create", uint32_t{id[127]}, rank, size, timeout);
    if (status == GRAFT_OK) *out = new graft_group_s{rank, size};
    return status;
  };
  t.group_abort = [](graft_group) { return note("group_abort"); };
  t.group_destroy = [](graft_group group) {
    delete group;
    return note("group_destroy");
  };
  t.all_reduce = [](graft_stream s, graft_group, graft_address a, graft_address b, uint64_t n,
                    uint32_t d, uint32_t r,
                    uint32_t tag) { return command("all_reduce", s, tag, a, b, n, d, r); };
  t.reduce = [](graft_stream s, graft_group, graft_address a, graft_address b, uint64_t n,
                uint32_t d, uint32_t r, uint32_t root,
                uint32_t tag) { return command("reduce", s, tag, a, b, n, d, r, root); };
  t.broadcast = [](graft_stream s, graft_group, graft_address a, graft_address b, uint64_t n,
                   uint32_t d, uint32_t root,
                   uint32_t tag) { return command("broadcast", s, tag, a, b, n, d, root); };
  t.all_gather = [](graft_stream s, graft_group, graft_address a, graft_address b, uint64_t n,
                    uint32_t d, uint32_t tag) { return command("all_gather", s, tag, a, b, n, d); };
  t.reduce_scatter = [](graft_stream s, graft_group, graft_address a, graft_address b, uint64_t n,
                        uint32_t d, uint32_t r,
                        uint32_t tag) { return command("reduce_scatter", s, tag, a, b, n, d, r); };
  t.send = [](graft_stream s, graft_group, graft_address a, uint64_t n, uint32_t d, uint32_t peer,
              uint32_t tag) { return command("send", s, tag, a, n, d, peer); };
  t.receive = [](graft_stream s, graft_group, graft_address a, uint64_t n, uint32_t d,
                 uint32_t peer, uint32_t tag) { return command("receive", s, tag, a, n, d, peer); };
  t.batch_begin = [](graft_group) { return note("batch_begin"); };
  t.batch_end = [](graft_group) { return note("batch_end"); };
  return t;
}

graft_status find_fake(const char* name, uint32_t version, const void** out) {
  static const graft_collectives_table table = fake_collectives();
  if (std::string(name) != "graft.collectives" || version != 1) return GRAFT_NOT_FOUND;
  *out = &table;
  return GRAFT_OK;
}

class CollectiveGroupTest : public testing::Test {
 protected:
  CollectiveGroupTest() {
    calls().clear();
    fake::table().extension = &find_fake;
  }
  std::unique_ptr<CollectiveGroup> make(Device& device) {
    return std::make_unique<CollectiveGroup>(device, CollectiveGroup::make_id(device), 1, 3,
                                             milliseconds(5));
  }

  fake::Fake fake_;
};

TEST_F(CollectiveGroupTest, AsksTheDriverForEveryCollective) {
  Device& device = fake_.open();
  EXPECT_TRUE(CollectiveGroup::available(device));
  Stream& stream = device.default_stream();
  {
    const auto group = make(device);
    EXPECT_EQ(group->rank(), 1u);
    EXPECT_EQ(group->size(), 3u);
    group->all_reduce(stream, 10, 20, 30, GRAFT_FLOAT32, GRAFT_REDUCE_MAX);
    group->reduce(stream, 10, 20, 30, GRAFT_INT8, GRAFT_REDUCE_SUM, 2);
    group->broadcast(stream, 10, 20, 30, GRAFT_BOOL, 2);
    group->all_gather(stream, 10, 20, 30, GRAFT_INT64);
    group->reduce_scatter(stream, 10, 20, 30, GRAFT_FLOAT16, GRAFT_REDUCE_AVERAGE);
    group->batch([&] {
      group->send(stream, 10, 30, GRAFT_INT16, 0);
      group->receive(stream, 20, 30, GRAFT_INT16, 2);
    });
    group->batch([] {});
    group->abort();
  }
  const std::vector<std::string> wanted = {"group_create 7 1 3 5000000",
                                           "all_reduce 10 20 30 8 3",
                                           "reduce 10 20 30 2 0 2",
                                           "broadcast 10 20 30 0 2",
                                           "all_gather 10 20 30 5",
                                           "reduce_scatter 10 20 30 6 4",
                                           "batch_begin",
                                           "send 10 30 3 0",
                                           "receive 20 30 3 2",
                                           "batch_end",
                                           "batch_begin",
                                           "batch_end",
                                           "group_abort",
                                           "group_destroy"};
  EXPECT_EQ(calls(), wanted);
}

TEST_F(CollectiveGroupTest, NeedsADriverWithCollectives) {
  fake::table().extension = nullptr;
  Device& device = fake_.open();
  EXPECT_FALSE(CollectiveGroup::available(device));
  graft_status status = GRAFT_OK;
  EXPECT_TRUE(has(error_of([&] { CollectiveGroup::make_id(device); }, &status),
                  "graft:0 (driver 'fake') has no collectives"));
  EXPECT_EQ(status, GRAFT_UNSUPPORTED);
}

TEST_F(CollectiveGroupTest, ATableThatIsRefusedIsNone) {
  fake::table().extension = [](const char*, uint32_t, const void** out) {
    static graft_collectives_table table = fake_collectives();
    table.batch_end = nullptr;
    return *out = &table, GRAFT_OK;
  };
  Device& device = fake_.open();
  testing::internal::CaptureStderr();
  EXPECT_FALSE(CollectiveGroup::available(device));
  EXPECT_TRUE(has(error_of([&] { CollectiveGroup::make_id(device); }),
                  "graft:0 (driver 'fake') has no collectives: its driver's graft.collectives is "
                  "refused: its table of 13 slots lacks required slots: batch_end."));
  EXPECT_TRUE(has(testing::internal::GetCapturedStderr(), "works without its extension"));
  device.default_stream().synchronize();
}

TEST_F(CollectiveGroupTest, ThrowsWhatTheDriverRefuses) {
  Device& device = fake_.open();
  controls().message = "rank 0 is missing";
  controls().fail_now = GRAFT_TIMEOUT;
  graft_status status = GRAFT_OK;
  EXPECT_TRUE(has(error_of([&] { make(device); }, &status), "rank 0 is missing"));
  EXPECT_EQ(status, GRAFT_TIMEOUT);
  const auto group = make(device);
  controls().message = "no float64 here";
  controls().fail_now = GRAFT_UNSUPPORTED;
  EXPECT_TRUE(
      has(error_of([&] { group->all_gather(device.default_stream(), 1, 2, 3, GRAFT_FLOAT64); },
                   &status),
          "no float64 here"));
  EXPECT_EQ(status, GRAFT_UNSUPPORTED);
}

TEST_F(CollectiveGroupTest, CommandsFailLateWithTheirOp) {
  Device& device = fake_.open();
  Stream& stream = device.default_stream();
  const auto group = make(device);
  controls().message = "rank 2 died";
  controls().fail_late = GRAFT_TIMEOUT;
  {
    const OpScope scope("c10d::allreduce_");
    group->all_reduce(stream, 1, 2, 3, GRAFT_FLOAT32, GRAFT_REDUCE_SUM);
  }
  graft_status status = GRAFT_OK;
  const std::string text = error_of([&] { stream.synchronize(); }, &status);
  EXPECT_EQ(status, GRAFT_TIMEOUT);
  EXPECT_TRUE(has(text, "c10d::allreduce_ failed on graft:0"));
  EXPECT_TRUE(has(text, "rank 2 died"));
}

TEST_F(CollectiveGroupTest, IsRefusedWhileTheStreamRecords) {
  Device& device = fake_.open();
  Stream& stream = device.default_stream();
  const auto group = make(device);
  const auto recording = device.make_recording(1);
  stream.begin_recording(recording);
  graft_status status = GRAFT_OK;
  const std::string text = error_of(
      [&] { group->all_reduce(stream, 1, 2, 3, GRAFT_FLOAT32, GRAFT_REDUCE_SUM); }, &status);
  stream.end_recording();
  EXPECT_EQ(status, GRAFT_INVALID_ARGUMENT);
  EXPECT_TRUE(has(text, "all_reduce is not possible while a stream of graft:0 captures a graph"));
  group->all_reduce(stream, 1, 2, 3, GRAFT_FLOAT32, GRAFT_REDUCE_SUM);
}

TEST_F(CollectiveGroupTest, RefusesAStreamOfAnotherDevice) {
  Device& device = fake_.open();
  Stream& other = fake_.open_second().default_stream();
  const auto group = make(device);
  EXPECT_TRUE(has(error_of([&] { group->broadcast(other, 1, 2, 3, GRAFT_INT8, 0); }),
                  "broadcast: the group belongs to graft:0, the stream to graft:1: give a stream"));
}

TEST_F(CollectiveGroupTest, ABatchEndsAlthoughItsTransfersThrow) {
  Device& device = fake_.open();
  const auto group = make(device);
  EXPECT_TRUE(has(error_of([&] {
                    group->batch([&] {
                      group->send(device.default_stream(), 1, 2, GRAFT_INT8, 0);
                      throw Error(GRAFT_IO, "the disk is full");
                    });
                  }),
                  "the disk is full"));
  EXPECT_EQ(calls().back(), "batch_end");
  group->batch([] {});
}

// The host driver's collectives, between two ranks on streams of one device.
class HostGroupTest : public testing::Test {
 protected:
  HostGroupTest()
      : driver_(Driver::load(GRAFT_TEST_DRIVER_DIR "/graft_host.so")), device_(*driver_, 0, 0) {}

  // Runs body in a thread per rank.
  template <class Body>
  void in_ranks(const Body& body) {
    const CollectiveGroup::Id id = CollectiveGroup::make_id(device_);
    std::vector<std::thread> threads;
    for (uint32_t rank = 0; rank < 2; ++rank) {
      threads.emplace_back([&, rank] {
        try {
          CollectiveGroup group(device_, id, rank, 2, std::chrono::seconds(60));
          body(group, device_.stream_from_pool(0));
        } catch (const std::exception& error) {
          ADD_FAILURE() << "rank " << rank << ": " << error.what();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
  }

  // Four numbers of the device, which the stream fills with value.
  struct Numbers {
    Numbers(Stream& stream, float value) : stream(stream) {
      block = stream.allocator().allocate(4 * sizeof(float), stream);
      stream.fill(block->address, 4 * sizeof(float), &value, sizeof value);
    }
    ~Numbers() { stream.allocator().free(block); }
    std::vector<float> read() const {
      std::vector<float> values(4);
      stream.read(values.data(), block->address, 4 * sizeof(float));
      return values;
    }
    Stream& stream;
    Block* block;
  };

  std::unique_ptr<Driver> driver_;
  Device device_;
};

TEST_F(HostGroupTest, SumsAndExchanges) {
  in_ranks([](CollectiveGroup& group, Stream& stream) {
    const float own = group.rank() == 0 ? 1 : 10;
    const Numbers sum(stream, own), other(stream, 0), mine(stream, own);
    group.all_reduce(stream, sum.block->address, sum.block->address, 4, GRAFT_FLOAT32,
                     GRAFT_REDUCE_SUM);
    group.batch([&] {
      group.send(stream, mine.block->address, 4, GRAFT_FLOAT32, 1 - group.rank());
      group.receive(stream, other.block->address, 4, GRAFT_FLOAT32, 1 - group.rank());
    });
    EXPECT_EQ(sum.read(), std::vector<float>(4, 11));
    EXPECT_EQ(other.read(), std::vector<float>(4, 11 - own));
  });
}

TEST_F(HostGroupTest, AnotherStreamWaitsForTheGroupsCommands) {
  in_ranks([this](CollectiveGroup& group, Stream& stream) {
    Stream& next = device_.stream_from_pool(0);
    const Numbers numbers(stream, 1);
    host_callback(stream, [] { std::this_thread::sleep_for(milliseconds(30)); });
    const graft_address at = numbers.block->address;
    group.all_reduce(stream, at, at, 4, GRAFT_FLOAT32, GRAFT_REDUCE_SUM);
    group.all_reduce(next, at, at, 4, GRAFT_FLOAT32, GRAFT_REDUCE_SUM);
    next.synchronize();
    EXPECT_EQ(numbers.read(), std::vector<float>(4, 4));
  });
}

TEST_F(HostGroupTest, CommandsThatDifferNameBothSides) {
  in_ranks([](CollectiveGroup& group, Stream& stream) {
    const Numbers numbers(stream, 1);
    const graft_address at = numbers.block->address;
    const OpScope scope("c10d::allreduce_");
    group.all_reduce(stream, at, at, 3 + group.rank(), GRAFT_FLOAT32, GRAFT_REDUCE_SUM);
    const std::string text = error_of([&] { stream.synchronize(); });
    EXPECT_TRUE(has(text, "c10d::allreduce_ failed"));
    EXPECT_TRUE(has(text, "all_reduce of 3 float32 (sum)"));
    EXPECT_TRUE(has(text, "all_reduce of 4 float32 (sum)"));
  });
}

}  // namespace
}  // namespace graft
