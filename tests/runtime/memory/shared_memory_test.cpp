// tests/runtime/memory/shared_memory_test.cpp: blocks that other processes use, and when they are
// free.
#include "runtime/memory/shared_memory.h"

#include <gtest/gtest.h>

#include "runtime/driver/fork.h"
#include "tests/drivers/check/other_process.h"
#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using check::OtherProcess;
using fake::controls;
using fake::error_of;
using fake::has;

constexpr graft_address kElsewhere = 0x700000;  // where every import lies
std::atomic<int> imports{0}, releases{0};

// Gives the fake driver the three slots. Its imports can be counted, not read.
void share() {
  fork_state::child.store(false);  // what a child inherits open is not used in it
  imports = releases = 0;
  fake::table().memory_export = [](graft_device, graft_address address, uint8_t* handle,
                                   graft_address* begin) {
    const std::lock_guard lock(controls().mutex);
    const auto& [first, bytes] = *std::prev(controls().blocks.upper_bound(address));
    std::memcpy(handle, &first, sizeof first);
    return *begin = first, GRAFT_OK;
  };
  fake::table().memory_import = [](graft_device, const uint8_t*, graft_address* out) {
    ++imports;
    return *out = kElsewhere, GRAFT_OK;
  };
  fake::table().memory_release = [](graft_device, graft_address address) {
    if (address != kElsewhere) return GRAFT_INVALID_ARGUMENT;
    return ++releases, GRAFT_OK;
  };
}

class SharedMemoryTest : public testing::Test {
 protected:
  Device& open() {
    share();
    return fake_.open();
  }
  static int64_t held(Device& device) {
    return device.allocator().statistics().allocation.all().current;
  }

  fake::Fake fake_;
  SharedMemory memory_;
};

TEST_F(SharedMemoryTest, WithoutTheSlotsThereIsNoHandle) {
  Device& device = fake_.open();
  Block* block = device.allocator().allocate(100, device.default_stream());
  EXPECT_FALSE(memory_.send(*block, 100).has_value());
  memory_.free(block);
  EXPECT_EQ(held(device), 0);
}

TEST_F(SharedMemoryTest, ABlockWaitsForItsMessages) {
  Device& device = open();
  Block* block = device.allocator().allocate(100, device.default_stream());
  const graft_address address = block->address;
  const auto first = memory_.send(*block, 100), second = memory_.send(*block, 60);
  ASSERT_TRUE(first && second);
  memory_.free(block);
  EXPECT_EQ(memory_.collect(), 0u);
  EXPECT_EQ(held(device), 1);
  ReceivedBlock* home = memory_.receive(device.streams(), *first);
  EXPECT_EQ(home->address, address);
  EXPECT_EQ(home->handle.bytes, 100u);
  memory_.receive_again(*second);
  EXPECT_EQ(memory_.collect(), 0u);
  memory_.release(home);
  EXPECT_EQ(held(device), 0);
  EXPECT_EQ(memory_.sent(), 0u);
  EXPECT_EQ(imports, 0);
  EXPECT_TRUE(has(error_of([&] { memory_.receive(device.streams(), *first); }), "sent is gone"));
}

TEST_F(SharedMemoryTest, ABlockThatCameHomeTwiceIsFreedOnce) {
  Device& device = open();
  Block* block = device.allocator().allocate(100, device.default_stream());
  const auto first = memory_.send(*block, 100), second = memory_.send(*block, 100);
  const auto third = memory_.send(*block, 100);
  memory_.free(block);
  memory_.release(memory_.receive(device.streams(), *first));
  memory_.release(memory_.receive(device.streams(), *second));
  EXPECT_EQ(held(device), 1);
  memory_.release(memory_.receive(device.streams(), *third));
  EXPECT_EQ(held(device), 0);
  EXPECT_EQ(memory_.collect(), 0u);
}

TEST_F(SharedMemoryTest, AReaderFindsTheCommandsDone) {
  Device& device = open();
  Block* block = device.allocator().allocate(100, device.default_stream());
  controls().hold = true;
  const uint8_t seven = 7;
  device.stream_from_pool(0).fill(block->address, 100, &seven, 1);
  const auto handle = memory_.send(*block, 100);
  EXPECT_EQ(*reinterpret_cast<uint8_t*>(block->address + 99), 7);
  controls().hold = false;
  memory_.free(block);
  memory_.release(memory_.receive(device.streams(), *handle));
}

TEST_F(SharedMemoryTest, AProcessKeepsABlockUntilItDies) {
  OtherProcess reader([](OtherProcess& sender) {
    share();
    fake::Fake fake;
    Device& device = fake.open();
    SharedMemory memory;
    sender.send(memory.receive(device.streams(), sender.receive<MemoryHandle>())->address);
    sender.stop();
  });
  Device& device = open();
  Block* other = device.allocator().allocate(100, device.default_stream());
  Block* block = device.allocator().allocate(100, device.default_stream());
  const auto handle = memory_.send(*block, 100);
  ASSERT_TRUE(handle.has_value());
  memory_.free(block);
  reader.send(*handle);
  EXPECT_EQ(reader.receive<graft_address>(), kElsewhere + (block->address - other->address));
  EXPECT_EQ(memory_.collect(), 0u);
  EXPECT_EQ(held(device), 2);
  reader.kill();
  EXPECT_EQ(memory_.collect(), 1u);
  EXPECT_EQ(held(device), 1);
  memory_.free(other);
}

TEST_F(SharedMemoryTest, BlocksOfOneAllocationAreImportedOnce) {
  OtherProcess reader([](OtherProcess& sender) {
    share();
    fake::Fake fake;
    Device& device = fake.open();
    SharedMemory memory;
    ReceivedBlock* one = memory.receive(device.streams(), sender.receive<MemoryHandle>());
    ReceivedBlock* two = memory.receive(device.streams(), sender.receive<MemoryHandle>());
    memory.release(one);
    sender.send(imports.load() * 10 + releases.load());
    memory.release(two);
    sender.send(imports.load() * 10 + releases.load());
    sender.stop();
  });
  Device& device = open();
  Block* one = device.allocator().allocate(100, device.default_stream());
  Block* two = device.allocator().allocate(100, device.default_stream());
  const auto first = memory_.send(*one, 100), second = memory_.send(*two, 100);
  memory_.free(one);
  memory_.free(two);
  reader.send(*first);
  reader.send(*second);
  EXPECT_EQ(reader.receive<int>(), 10);
  EXPECT_EQ(reader.receive<int>(), 11);
  EXPECT_EQ(memory_.collect(), 2u);
  EXPECT_EQ(held(device), 0);
  reader.go();
}

TEST_F(SharedMemoryTest, ASenderThatHasEndedIsNamed) {
  OtherProcess sender([](OtherProcess& reader) {
    share();
    fake::Fake fake;
    Device& device = fake.open();
    SharedMemory memory;
    reader.send(*memory.send(*device.allocator().allocate(100, device.default_stream()), 100));
    reader.stop();
  });
  const auto handle = sender.receive<MemoryHandle>();
  sender.kill();
  Device& device = open();
  const std::string text = error_of([&] { memory_.receive(device.streams(), handle); });
  EXPECT_TRUE(has(text, "has ended before a tensor that it sent was received"));
}

TEST_F(SharedMemoryTest, AnotherDeviceIsRefused) {
  Device& device = open();
  Device& second = fake_.open_second();
  Block* block = device.allocator().allocate(100, device.default_stream());
  const auto handle = memory_.send(*block, 100);
  EXPECT_TRUE(
      has(error_of([&] { memory_.receive(second.streams(), *handle); }), "cannot be received on"));
  memory_.free(block);
  memory_.release(memory_.receive(device.streams(), *handle));
}

}  // namespace
}  // namespace graft
