// tests/runtime/driver/bounded_wait_test.cpp: waits for commands that never end.
#include "runtime/driver/bounded_wait.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <vector>

#include "runtime/memory/direct_allocator.h"
#include "runtime/stream/event.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::controls;
using fake::error_of;
using fake::has;
using std::chrono::milliseconds;

struct Interrupted {};

Stream* looked_at = nullptr;
int postponed = 0;

// Asks the stream something, which takes its lock.
void interrupt() {
  if (looked_at != nullptr) looked_at->query();
  throw Interrupted();
}

enum Slots { kBounded, kQueried, kMarked };  // what the driver has of the slots that ask

class BoundedWaitTest : public testing::TestWithParam<Slots> {
 protected:
  BoundedWaitTest() {
    if (GetParam() != kBounded) fake::remove_bounded_waits(fake::table());
    if (GetParam() == kMarked) fake::table().event_synchronize = nullptr;
    if (GetParam() == kQueried) {
      fake::table().stream_query = [](graft_stream stream) {
        return fake::stream_synchronize_within(stream, 0);
      };
    }
    postponed = 0;
  }
  ~BoundedWaitTest() override {
    set_interrupt_check(nullptr);
    set_wait_limit({});
    looked_at = nullptr;
    if (stream_ != nullptr) fake::release(*stream_);
    controls().hung = nullptr;
  }

  // A stream with one command that does not end.
  Stream& hung(const char* op = "aten::mm") {
    stream_ = &fake_.open().default_stream();
    fake::hang(*stream_);
    launch(op);
    return *stream_;
  }
  void launch(const char* op) {
    const OpScope scope(op);
    stream_->launch(nullptr, 1, {});
  }
  static void interrupts(Stream& stream) {
    looked_at = &stream;
    set_interrupt_check(&interrupt, [](std::exception_ptr) noexcept { ++postponed; });
  }

  fake::Fake fake_;
  Stream* stream_ = nullptr;
};

TEST_P(BoundedWaitTest, AnInterruptEndsEveryWaitWithoutALock) {
  Stream& stream = hung();
  Event event(stream.device(), false);
  event.record(stream);
  interrupts(stream);
  char host = 0;
  Block* block = stream.allocator().allocate(1, stream);
  EXPECT_THROW(stream.synchronize(), Interrupted);
  EXPECT_THROW(stream.siblings().synchronize(), Interrupted);
  EXPECT_THROW(event.synchronize(), Interrupted);
  EXPECT_THROW(stream.read(&host, block->address, 1), Interrupted);
  EXPECT_EQ(postponed, 0);
  EXPECT_FALSE(stream.settle());
  EXPECT_FALSE(event.settle());
  EXPECT_EQ(postponed, 2);
  EXPECT_TRUE(stream.given_up());
  fake::release(stream);
  EXPECT_NO_THROW(stream.synchronize());
  EXPECT_TRUE(event.settle());
  EXPECT_FALSE(stream.given_up());
  stream.allocator().free(block);
}

TEST_P(BoundedWaitTest, AReadThatEndsEarlyWritesNothingLater) {
  Stream& stream = hung();
  interrupts(stream);
  Block* block = stream.allocator().allocate(1000, stream);
  for (const uint64_t bytes : {8, 1000}) {
    std::vector<char> host(bytes, 'a');
    EXPECT_THROW(stream.read(host.data(), block->address, bytes), Interrupted);
    EXPECT_EQ(host[0], 'a');
  }
  fake::release(stream);  // into memory that lives; a sanitizer would tell
  stream.synchronize();
  stream.allocator().free(block);
}

TEST_P(BoundedWaitTest, MemoryIsKeptUntilTheCommandsAreDone) {
  Stream& stream = hung();
  interrupts(stream);
  auto memory = std::make_shared<int>(7);
  const std::weak_ptr<int> watched = memory;
  const auto used = [&] { return std::shared_ptr<const void>(std::move(memory)); };
  EXPECT_THROW(stream.synchronize(used), Interrupted);
  EXPECT_FALSE(watched.expired());
  EXPECT_THROW(stream.synchronize(), Interrupted);
  EXPECT_FALSE(watched.expired());
  fake::release(stream);
  stream.synchronize();
  EXPECT_TRUE(watched.expired());
}

TEST_P(BoundedWaitTest, TheLimitNamesOperatorDeviceAndDriver) {
  Stream& stream = hung();
  set_wait_limit(milliseconds(100));
  graft_status status = GRAFT_OK;
  const std::string text = error_of([&] { stream.synchronize(); }, &status);
  EXPECT_EQ(status, GRAFT_TIMEOUT);
  EXPECT_TRUE(has(text,
                  "aten::mm did not end within GRAFT_TIMEOUT=0.1 seconds on graft:0 (driver "
                  "'fake')"));
  launch("aten::add");
  launch("aten::sub");
  Event event(stream.device(), false);
  event.record(stream);
  EXPECT_TRUE(has(error_of([&] { event.synchronize(); }),
                  "aten::mm or one of the 2 commands after it did not end"));
  fake::release(stream, 2);
  EXPECT_TRUE(has(error_of([&] { stream.siblings().synchronize(); }), "GRAFT_TIMEOUT"));
  fake::release(stream);
  EXPECT_EQ(error_of([&] { stream.synchronize(); }), "");
  fake::hang(stream);
  launch("aten::div");
  EXPECT_TRUE(has(error_of([&] { stream.synchronize(); }), "aten::div did not end"));
}

TEST_P(BoundedWaitTest, OtherStreamsWorkAfterTheLimit) {
  Stream& stream = hung();
  set_wait_limit(milliseconds(50));
  EXPECT_NE(error_of([&] { stream.synchronize(); }), "");
  Stream& side = stream.siblings().from_pool(0);
  Block* block = side.allocator().allocate(4, side);
  side.fill(block->address, 4, "abcd", 4);
  char host[5] = "";
  side.read(host, block->address, 4);
  EXPECT_STREQ(host, "abcd");
  side.allocator().free(block);
}

TEST_P(BoundedWaitTest, LateErrorsAreToldAfterALongWait) {
  Stream& stream = hung();
  controls().message = "kernel trapped";
  controls().fail_late = GRAFT_LAUNCH_FAILED;
  launch("aten::mul");
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(120));
    fake::release(stream);
  });
  EXPECT_TRUE(has(error_of([&] { stream.synchronize(); }), "aten::mul failed on graft:0"));
  later.join();
  EXPECT_EQ(error_of([&] { stream.synchronize(); }), "");
}

TEST_P(BoundedWaitTest, LaterCommandsDoNotProlongAWait) {
  Stream& stream = hung();
  std::thread later([&] {
    std::this_thread::sleep_for(milliseconds(150));
    launch("aten::add");  // takes the lock that the wait gave up
    fake::release(stream, 1);
  });
  const auto begin = std::chrono::steady_clock::now();
  stream.synchronize();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  later.join();
  EXPECT_FALSE(stream.query());
}

TEST_P(BoundedWaitTest, MemoryOfAHungStreamGoesToNobodyElse) {
  Stream& stream = hung();
  interrupts(stream);
  Device& device = fake_.device();
  Stream& side = device.stream_from_pool(0);
  DirectAllocator direct(device);
  Block* own = direct.allocate(100, stream);
  direct.free(own);
  EXPECT_EQ(direct.find(own->address), own);
  Block* shared = device.allocator().allocate(100, side);
  device.allocator().record_stream(shared, stream);
  const graft_address address = shared->address;
  device.allocator().free(shared);
  device.allocator().empty_cache();
  Block* other = device.allocator().allocate(100, side);
  EXPECT_NE(other->address, address);
  PinnedBlock* pinned = device.pinned_allocator().allocate(100);
  void* const pointer = pinned->pointer;
  device.pinned_allocator().record_stream(pinned, stream);
  device.pinned_allocator().free(pinned);
  device.pinned_allocator().empty_cache();
  EXPECT_NE(device.pinned_allocator().allocate(100)->pointer, pointer);
  EXPECT_GT(postponed, 0);
  fake::release(stream);
}

TEST_P(BoundedWaitTest, TheEndOfAProcessWaitsAsLongAsItSays) {
  const int others = controls().live_devices;
  hung();
  Device& device = fake_.device();
  Patience patience({}, milliseconds(200));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_FALSE(device.shut_down(patience));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(5));
  EXPECT_EQ(controls().live_devices, others + 1);
}

TEST_P(BoundedWaitTest, AStreamThatWasGivenUpIsOnlyLookedAt) {
  Stream& stream = hung();
  interrupts(stream);
  EXPECT_THROW(stream.synchronize(), Interrupted);
  set_interrupt_check(nullptr);
  Patience patience({}, std::chrono::hours(1));
  EXPECT_FALSE(fake_.device().shut_down(patience));
}

INSTANTIATE_TEST_SUITE_P(Drivers, BoundedWaitTest, testing::Values(kBounded, kQueried, kMarked));

TEST(DeviceCloseTest, GivesEverythingBackAndLaterOwnersCallNothing) {
  fake::Fake fake;
  Device& device = fake.open();
  Stream& stream = device.default_stream();
  auto event = std::make_unique<Event>(device, true);
  event->record(stream);
  Block* block = device.allocator().allocate(100, stream);
  PinnedBlock* pinned = device.pinned_allocator().allocate(100);
  std::memset(pinned->pointer, 'x', 100);
  controls().hold = true;
  stream.fill(block->address, 100, "a", 1);
  Patience patience;
  ASSERT_TRUE(device.shut_down(patience));
  device.close();
  EXPECT_EQ(controls().live_events, 0);
  EXPECT_EQ(controls().live_streams, 0);
  EXPECT_EQ(controls().live_devices, 0);
  EXPECT_EQ(controls().used, 0u);
  EXPECT_EQ(static_cast<char*>(pinned->pointer)[99], 'x');
  const int frees = controls().frees;
  event.reset();
  device.allocator().free(block);
  device.pinned_allocator().free(pinned);
  device.allocator().empty_cache();
  EXPECT_TRUE(has(error_of([&] { stream.synchronize(); }), "shut down"));
  fake.close();
  EXPECT_EQ(controls().frees, frees);
  EXPECT_EQ(controls().live_events, 0);
  EXPECT_EQ(controls().live_devices, 0);
}

TEST(SlotGateTest, OnlyTheThreadThatShutsItPasses) {
  fake::Fake fake;
  Device& device = fake.open();
  ASSERT_TRUE(SlotGate::shut(SlotGate::Clock::now()));
  graft_event event = nullptr;
  const auto create = [&] {
    return Driver::call(device.driver().table().event_create, device.handle(), 0u, &event);
  };
  std::thread([&] { EXPECT_EQ(create(), GRAFT_INVALID_ARGUMENT); }).join();
  EXPECT_EQ(event, nullptr);
  EXPECT_EQ(create(), GRAFT_OK);
  SlotGate::open();
  Driver::call(device.driver().table().event_destroy, event);
  std::atomic<bool> inside{false}, leave{false};
  std::thread slow([&] {
    const SlotGate gate;
    inside = true;
    while (!leave) std::this_thread::yield();
  });
  while (!inside) std::this_thread::yield();
  EXPECT_FALSE(SlotGate::shut(SlotGate::Clock::now() + milliseconds(10)));
  EXPECT_TRUE(SlotGate().passed());
  leave = true;
  slow.join();
}

}  // namespace
}  // namespace graft
