// tests/runtime/driver/open_device_test.cpp: a device without streams: opening, loss, closing.
#include "runtime/driver/open_device.h"

#include <gtest/gtest.h>

#include <memory>

#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::controls;
using fake::error_of;
using fake::has;

class OpenDeviceTest : public testing::Test {
 protected:
  Driver& driver() {
    driver_ = Driver::adopt(&fake::query, "/nowhere/fake.so");
    return *driver_;
  }

  fake::Fake fake_;
  std::unique_ptr<Driver> driver_;
};

TEST_F(OpenDeviceTest, OpenFailuresAreErrors) {
  controls().message = "no licence";
  fake::table().device_open = [](uint32_t, graft_device*) { return GRAFT_IO; };
  EXPECT_EQ(error_of([&] { OpenDevice(driver(), 0, 0); }),
            "device_open failed on graft:0 (driver 'fake'): IO: no licence");
  fake::table().device_open = [](uint32_t, graft_device*) { return GRAFT_OK; };
  EXPECT_TRUE(has(error_of([&] { OpenDevice(driver(), 0, 0); }), "returned OK but no device"));
}

TEST_F(OpenDeviceTest, SaysWhatItIs) {
  const int before = controls().live_devices, streams = controls().live_streams;
  {
    const OpenDevice device(driver(), 1, 3);
    EXPECT_EQ(device.label(), "graft:3 (driver 'fake')");
    EXPECT_EQ(device.ordinal(), 1u);
    EXPECT_EQ(device.index(), 3);
    EXPECT_EQ(device.properties().allocation_alignment, 256u);
    EXPECT_EQ(controls().live_devices, before + 1);
    EXPECT_EQ(controls().live_streams, streams);
  }
  EXPECT_EQ(controls().live_devices, before);
}

TEST_F(OpenDeviceTest, GivesBackWhatItOwns) {
  const int before = controls().live_events;
  const uint64_t used = controls().used;
  {
    OpenDevice device(driver(), 0, 0);
    const auto destroy = fake::table().event_destroy;
    graft_event kept = nullptr, gone = nullptr;
    ASSERT_EQ(fake::table().event_create(device.handle(), 0, &kept), GRAFT_OK);
    ASSERT_EQ(fake::table().event_create(device.handle(), 0, &gone), GRAFT_OK);
    device.own(kept, destroy);
    device.own(gone, destroy);
    EXPECT_TRUE(device.disown(gone, destroy));
    EXPECT_FALSE(device.disown(gone, destroy));
    destroy(gone);
    graft_address address = 0;
    ASSERT_EQ(fake::memory_allocate(device.handle(), 64, &address), GRAFT_OK);
    device.own(address);
    EXPECT_EQ(controls().live_events, before + 1);
  }
  EXPECT_EQ(controls().live_events, before);
  EXPECT_EQ(controls().used, used);
}

TEST_F(OpenDeviceTest, GivesBackOneHandleAsOftenAsItGotIt) {
  static int destroyed = 0;
  destroyed = 0;
  const auto destroy = +[](graft_graph) {
    ++destroyed;
    return GRAFT_OK;
  };
  {
    OpenDevice device(driver(), 0, 0);
    for (int i = 0; i < 3; ++i) device.own(graft_graph{}, destroy);
    EXPECT_TRUE(device.disown(graft_graph{}, destroy));
  }
  EXPECT_EQ(destroyed, 2);
}

TEST_F(OpenDeviceTest, EqualHandlesOfSeveralKindsAreKeptApart) {
  static int graphs = 0, plans = 0;
  graphs = plans = 0;
  const auto destroy_graph = +[](graft_graph) {
    ++graphs;
    return GRAFT_OK;
  };
  const auto destroy_plan = +[](graft_plan) {
    ++plans;
    return GRAFT_OK;
  };
  {
    OpenDevice device(driver(), 0, 0);
    device.own(graft_graph{}, destroy_graph);
    device.own(graft_plan{}, destroy_plan);
    EXPECT_TRUE(device.disown(graft_plan{}, destroy_plan));
    EXPECT_FALSE(device.disown(graft_plan{}, destroy_plan));
  }
  EXPECT_EQ(graphs, 1);
  EXPECT_EQ(plans, 0);
}

TEST_F(OpenDeviceTest, TheFirstLossStays) {
  OpenDevice device(driver(), 0, 0);
  device.check(GRAFT_OK, "copy");
  EXPECT_TRUE(device.usable());
  controls().message = "fell off the bus";
  const std::string text = error_of([&] { device.check(GRAFT_DEVICE_LOST, "copy"); });
  EXPECT_TRUE(has(text, "graft:0 (driver 'fake') is lost (during copy): "));
  EXPECT_TRUE(has(text, "fell off the bus"));
  EXPECT_TRUE(device.lost());
  device.lose("something else", "fill");
  EXPECT_EQ(error_of([&] { device.refuse_unusable(); }), text);
  EXPECT_EQ(error_of([&] { device.host_view(0, 1); }), text);
  EXPECT_FALSE(device.refuse_commands());
}

TEST_F(OpenDeviceTest, RefusesCommandsOnce) {
  OpenDevice device(driver(), 0, 0);
  EXPECT_TRUE(device.refuse_commands());
  EXPECT_FALSE(device.refuse_commands());
  EXPECT_FALSE(device.usable());
  EXPECT_FALSE(device.lost());
  EXPECT_TRUE(has(error_of([&] { device.refuse_unusable(); }), "takes no more commands"));
}

TEST_F(OpenDeviceTest, FreeMemoryWithoutTheSlotIsTheTotalLessWhatIsHeld) {
  OpenDevice device(driver(), 0, 0);
  EXPECT_EQ(device.memory_info(1000).total, uint64_t{1} << 30);
  EXPECT_EQ(device.memory_info(1000).free, (uint64_t{1} << 30) - 1000);
  EXPECT_EQ(device.memory_info(uint64_t{1} << 31).free, 0u);
}

}  // namespace
}  // namespace graft
