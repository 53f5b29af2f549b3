// tests/drivers/driver_memory_test.cpp: the addresses that graft/driver_memory.h keeps for a
// driver.
#include "graft/driver_memory.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace graft::memory_test {
// labels of the file: threads
namespace {

TEST(DriverMemory, FindsTheHandleOfAnAddress) {
  AddressSpace<int> space;
  const graft_address a = space.reserve(100, 1), b = space.reserve(50, 2);
  ASSERT_NE(a, 0u);
  ASSERT_NE(b, 0u);
  EXPECT_EQ(a % 4096, 0u);
  EXPECT_EQ(space.held(), 150u);
  const auto place = space.find(a + 40, 60);
  ASSERT_TRUE(place.has_value());
  EXPECT_EQ(place->handle, 1);
  EXPECT_EQ(place->offset, 40u);
  EXPECT_EQ(place->bytes, 100u);
  EXPECT_EQ(place->begin, a);
  EXPECT_EQ(space.find(b, 50)->handle, 2);
  EXPECT_EQ(space.find(b + 50, 0)->offset, 50u);
}

TEST(DriverMemory, BytesBeyondAnAllocationAreNowhere) {
  AddressSpace<int> space;
  const graft_address a = space.reserve(4096, 1);
  EXPECT_FALSE(space.find(a + 1, 4096));
  EXPECT_FALSE(space.find(a + 4097, 0));
  EXPECT_FALSE(space.find(a - 1, 0));
  EXPECT_FALSE(space.find(a, UINT64_MAX));
  EXPECT_FALSE(space.find(0, 0));
}

TEST(DriverMemory, TwoReservedRangesNeverTouch) {
  AddressSpace<int> space;
  std::vector<graft_address> begins;
  for (int i = 0; i < 64; ++i) begins.push_back(space.reserve(4096, i));
  for (int i = 0; i < 64; ++i) {
    EXPECT_EQ(space.find(begins[static_cast<size_t>(i)] + 4096, 0)->handle, i);
    EXPECT_FALSE(space.find(begins[static_cast<size_t>(i)] + 4096, 1));
  }
}

TEST(DriverMemory, ARemovedAllocationIsGoneOnce) {
  AddressSpace<int> space;
  const graft_address a = space.reserve(10, 7);
  EXPECT_FALSE(space.remove(a + 1));
  EXPECT_EQ(space.remove(a)->handle, 7);
  EXPECT_FALSE(space.remove(a));
  EXPECT_FALSE(space.find(a, 1));
  EXPECT_EQ(space.held(), 0u);
}

TEST(DriverMemory, AddressesOfTheChipStayAsTheyAre) {
  AddressSpace<const char*> space;
  space.add(0x1000, 0x100, "first");
  space.add(0x2000, 0x100, "second");
  EXPECT_STREQ(space.find(0x20ff, 1)->handle, "second");
  std::vector<graft_address> seen;
  space.each([&](graft_address begin, uint64_t bytes, const char*) {
    seen.push_back(begin);
    EXPECT_EQ(bytes, 0x100u);
  });
  EXPECT_EQ(seen, (std::vector<graft_address>{0x1000, 0x2000}));
}

TEST(DriverMemory, NoRangeIsLeftForMoreThanThereIs) {
  AddressSpace<int> space;
  EXPECT_EQ(space.reserve(uint64_t{1} << 62, 1), 0u);
  EXPECT_EQ(space.held(), 0u);
}

TEST(DriverMemory, ThreadsFindWhileOthersAllocate) {
  AddressSpace<int> space;
  const graft_address a = space.reserve(8, 1);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const graft_address own = space.reserve(16, 2);
        EXPECT_EQ(space.find(a, 8)->handle, 1);
        EXPECT_TRUE(space.remove(own));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(space.held(), 8u);
}

}  // namespace
}  // namespace graft::memory_test
