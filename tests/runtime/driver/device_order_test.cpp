// tests/runtime/driver/device_order_test.cpp: which devices count, and in what order.
#include "runtime/driver/device_order.h"

#include <gtest/gtest.h>

#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

class DeviceOrderTest : public testing::Test {
 protected:
  DeviceOrderTest() : host_(named("host")), chip_(named("chip")) {
    add(*host_, 0, true);
    add(*chip_, 0, false);
    add(*chip_, 1, false);
    add(*host_, 1, true);
  }

  std::unique_ptr<Driver> named(const char* name) {
    fake::table().name = name;
    return Driver::adopt(&fake::query, std::string("/") + name);
  }
  void add(Driver& driver, uint32_t ordinal, bool simulated) {
    DeviceDescription device{-1, &driver, ordinal, {}};
    if (simulated) device.properties.features = GRAFT_FEATURE_SIMULATED;
    found_.push_back(device);
  }
  using Order = std::vector<size_t>;
  Order order(const char* list) { return order_devices(found_, "GRAFT_DEVICES", list, problems_); }

  fake::Fake fake_;
  std::unique_ptr<Driver> host_, chip_;
  std::vector<DeviceDescription> found_;
  std::vector<Refusal> problems_;
};

TEST_F(DeviceOrderTest, HardwareHidesSimulatedDevices) {
  EXPECT_EQ(order(nullptr), (Order{1, 2}));
  EXPECT_EQ(order("  "), (Order{1, 2}));
  found_.erase(found_.begin() + 1, found_.begin() + 3);
  EXPECT_EQ(order(""), (Order{0, 1}));
  found_.clear();
  EXPECT_EQ(order(""), Order{});
}

TEST_F(DeviceOrderTest, DevicesThatWantToBeNamedCountOnlyThen) {
  found_[1].properties.features = found_[2].properties.features = GRAFT_FEATURE_ONLY_NAMED;
  EXPECT_EQ(order(nullptr), (Order{0, 3})) << "they hide no simulated device either";
  EXPECT_EQ(order("chip"), (Order{1, 2}));
  EXPECT_EQ(order("host,chip:1"), (Order{0, 3, 2}));
  found_.erase(found_.begin());
  found_.pop_back();
  EXPECT_EQ(order(""), Order{});
}

TEST_F(DeviceOrderTest, SimulatedDevicesMayBeHiddenByOtherDrivers) {
  EXPECT_TRUE(order_needs_all(found_, nullptr));
  EXPECT_FALSE(order_needs_all(found_, "chip,host"));
  EXPECT_FALSE(order_needs_all({found_[1], found_[2]}, " "));
  EXPECT_FALSE(order_needs_all({}, nullptr));
}

TEST(MayCount, AListRulesOutTheDriversThatItDoesNotName) {
  EXPECT_TRUE(may_count("chip", nullptr));
  EXPECT_TRUE(may_count("chip", " "));
  EXPECT_TRUE(may_count("chip", "host, chip:1"));
  EXPECT_FALSE(may_count("chip", "host,chips"));
}

TEST_F(DeviceOrderTest, ListPicksAndOrders) {
  EXPECT_EQ(order("chip:1, host"), (Order{2, 0, 3}));
  EXPECT_EQ(order("host:1,,chip,host:1,"), (Order{3, 1, 2}));
  EXPECT_TRUE(problems_.empty());
}

TEST_F(DeviceOrderTest, ItemsThatMatchNothingAreReported) {
  EXPECT_EQ(order("gpu,chip:7,chip:x,chip:,chip:1x,host:0"), Order{0});
  ASSERT_EQ(problems_.size(), 5u);
  EXPECT_EQ(problems_[0].path, "GRAFT_DEVICES");
  EXPECT_TRUE(fake::has(problems_[0].reason, "'gpu' names no device; found: "));
  EXPECT_TRUE(fake::has(problems_[1].reason, "chip:1"));
}

}  // namespace
}  // namespace graft
