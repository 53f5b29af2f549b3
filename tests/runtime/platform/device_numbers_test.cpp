// tests/runtime/platform/device_numbers_test.cpp: which device has which index.
#include "runtime/platform/device_numbers.h"

#include <gtest/gtest.h>

namespace graft {
namespace {

DeviceDescription described(uint32_t ordinal) { return {-1, nullptr, ordinal, {}}; }

TEST(DeviceNumbers, CountsFromZeroAndEachDeviceOnce) {
  DeviceNumbers numbers;
  EXPECT_TRUE(numbers.count(described(3)));
  EXPECT_TRUE(numbers.count(described(1)));
  EXPECT_TRUE(numbers.count(described(3)));
  ASSERT_EQ(numbers.counted().size(), 2u);
  EXPECT_EQ((*numbers.find(0))->description.ordinal, 3u);
  EXPECT_EQ((*numbers.find(1))->description.ordinal, 1u);
  EXPECT_EQ(numbers.find(2), nullptr);
  EXPECT_EQ(numbers.find(-1), nullptr);
}

TEST(DeviceNumbers, CarriedDevicesKeepTheIndexThatTheyHave) {
  DeviceNumbers numbers;
  numbers.count(described(0));
  numbers.carry(described(0));
  numbers.carry(described(1));
  ASSERT_EQ(numbers.carried().size(), 2u);
  EXPECT_EQ(numbers.carried()[0]->description.index, 0);
  EXPECT_EQ(numbers.carried()[0], numbers.counted()[0]) << "one device has one entry";
  EXPECT_EQ(numbers.carried()[1]->description.index, DeviceNumbers::kFirstCarried + 1);
  EXPECT_EQ(numbers.find(DeviceNumbers::kFirstCarried), nullptr) << "it is counted";
  EXPECT_EQ((*numbers.find(DeviceNumbers::kFirstCarried + 1))->description.ordinal, 1u);
  EXPECT_EQ(numbers.index_of(described(0)), 0);
  EXPECT_EQ(numbers.index_of(described(1)), DeviceNumbers::kFirstCarried + 1);
  EXPECT_EQ(numbers.index_of(described(2)), -1);
}

TEST(DeviceNumbers, CarriedDevicesAreNotCountedLater) {
  DeviceNumbers numbers;
  numbers.carry(described(5));
  EXPECT_TRUE(numbers.count(described(5)));
  EXPECT_TRUE(numbers.counted().empty());
}

TEST(DeviceNumbers, EndsWhereIndicesEnd) {
  DeviceNumbers numbers;
  for (uint32_t i = 0; i < DeviceNumbers::kFirstCarried; ++i) {
    ASSERT_TRUE(numbers.count(described(i)));
  }
  EXPECT_FALSE(numbers.count(described(1000)));
  for (uint32_t i = 0; i < kMostDevices - DeviceNumbers::kFirstCarried; ++i) {
    ASSERT_TRUE(numbers.carry(described(2000 + i)));
  }
  EXPECT_FALSE(numbers.carry(described(3000)));
}

TEST(DeviceNumbers, ClearTakesAllBack) {
  DeviceNumbers numbers;
  numbers.count(described(0));
  numbers.carry(described(1));
  numbers.clear();
  EXPECT_EQ(numbers.find(0), nullptr);
  EXPECT_TRUE(numbers.carried().empty());
}

}  // namespace
}  // namespace graft
