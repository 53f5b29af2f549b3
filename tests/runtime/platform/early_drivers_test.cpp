// tests/runtime/platform/early_drivers_test.cpp: drivers that are loaded before the devices are
// counted.
#include "runtime/platform/early_drivers.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/platform/driver_devices.h"
#include "runtime/platform/platform.h"
#include "tests/runtime/driver/fake_driver.h"
#include "tests/runtime/driver/variant_files.h"

namespace graft {
namespace {

using fake::error_of;
using fake::has;

class EarlyDriversTest : public testing::Test {
 protected:
  EarlyDriversTest() { clear(); }
  ~EarlyDriversTest() override { clear(); }

  static void clear() {
    ::unsetenv("GRAFT_DRIVER_PATH");
    ::unsetenv("GRAFT_DEVICES");
  }

  static std::vector<std::string> names(const std::vector<DeviceDescription>& devices) {
    std::vector<std::string> names;
    for (const auto& one : devices) {
      names.push_back(one.driver->name() + ":" + std::to_string(one.ordinal));
    }
    return names;
  }

  using Names = std::vector<std::string>;
  fake::VariantFiles files_;
  const std::vector<std::unique_ptr<Driver>> none_;
};

TEST_F(EarlyDriversTest, TheDriverThatWasAskedIsTheOneThatIsTaken) {
  EarlyDrivers early;
  const std::string path = real_path(files_.driver("hardware", "chip"));
  const auto devices = early.devices({path, path}, none_);
  EXPECT_EQ(names(devices), (Names{"chip:0", "chip:1"}));
  EXPECT_EQ(early.take(path).get(), devices[0].driver);
  EXPECT_EQ(early.take(path)->name(), "chip") << "loaded anew";
}

TEST_F(EarlyDriversTest, ARefusalIsKeptAndHasNoDevices) {
  EarlyDrivers early;
  const std::string bad = real_path(files_.driver("truncated", "bad"));
  const std::string lying = real_path(files_.driver("throws_in_count", "lying"));
  EXPECT_EQ(early.devices({bad, lying, "relative.so"}, none_).size(), 0u);
  EXPECT_TRUE(has(error_of([&] { early.take(bad); }), "lacks required slots"));
  const auto taken = early.take(lying);
  std::vector<std::string> refused;
  EXPECT_TRUE(has(error_of([&] { list_devices(*taken, refused); }), "device_count failed"));
}

TEST_F(EarlyDriversTest, DevicesHaveTheOrderOfTheList) {
  EarlyDrivers early;
  const std::vector<std::string> paths = {files_.driver("good", "a"), files_.driver("good", "b")};
  EXPECT_EQ(names(early.devices(paths, none_)), (Names{"a:0", "a:1", "b:0", "b:1"}));
  ::setenv("GRAFT_DEVICES", "b:1,a", 1);
  EXPECT_EQ(names(early.devices(paths, none_)), (Names{"b:1", "a:0", "a:1"}));
  ::setenv("GRAFT_DEVICES", "c", 1);
  EXPECT_EQ(names(early.devices(paths, none_)), Names{});
}

TEST_F(EarlyDriversTest, SimulatedDevicesDoNotCountBesideRealOnesOfOtherDrivers) {
  const std::string simulated = files_.driver("good", "a");
  const std::string hardware = files_.driver("hardware", "b");
  Platform alone;
  alone.add_driver_path(simulated);
  EXPECT_EQ(names(alone.early_devices({simulated})), (Names{"a:0", "a:1"}));
  EXPECT_EQ(alone.device_count(), 2);
  Platform both;
  both.add_driver_path(simulated);
  both.add_driver_path(hardware);
  EXPECT_EQ(names(both.early_devices({simulated})), Names{});
  EXPECT_EQ(names(both.early_devices({simulated, hardware})), (Names{"b:0", "b:1"}));
}

TEST_F(EarlyDriversTest, RealDevicesLoadNoOtherDriver) {
  Platform platform;
  const std::string hardware = files_.driver("hardware", "b");
  ::setenv("GRAFT_DRIVER_PATH", files_.driver("truncated", "bad").c_str(), 1);
  platform.add_driver_path(hardware);
  EXPECT_EQ(names(platform.early_devices({hardware})), (Names{"b:0", "b:1"}));
  ::unsetenv("GRAFT_DRIVER_PATH");  // nothing has read it
  EXPECT_EQ(platform.refusals().size(), 0u);
  EXPECT_EQ(platform.drivers().size(), 1u);
  EXPECT_EQ(names(platform.early_devices({hardware})), (Names{"b:0", "b:1"}));
}

}  // namespace
}  // namespace graft
