// tests/runtime/platform/platform_test.cpp: the drivers and devices of a process, good and bad
// together.
#include "runtime/platform/platform.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <thread>

#include "tests/runtime/driver/fake_driver.h"
#include "tests/runtime/driver/variant_files.h"

namespace graft {
namespace {

using fake::error_of;
using fake::has;

class PlatformTest : public testing::Test {
 protected:
  PlatformTest() {
    ::unsetenv("GRAFT_DRIVER_PATH");
    ::unsetenv("GRAFT_DEVICES");
  }
  ~PlatformTest() override {
    ::unsetenv("GRAFT_DRIVER_PATH");
    ::unsetenv("GRAFT_DEVICES");
  }

  // The one refusal of the platform, without its path.
  std::string only_refusal() {
    const auto refusals = platform_.refusals();
    return refusals.size() == 1 ? refusals[0].reason
                                : std::to_string(refusals.size()) + " refusals";
  }

  fake::VariantFiles files_;
  Platform platform_;
};

TEST_F(PlatformTest, WithoutDriversThereIsNothing) {
  EXPECT_EQ(platform_.device_count(), 0);
  EXPECT_TRUE(
      has(error_of([&] { platform_.device(0); }),
          "graft:0 does not exist: there are 0 devices. Name a driver in GRAFT_DRIVER_PATH"));
  EXPECT_FALSE(platform_.any_device_open());
}

TEST_F(PlatformTest, PathComesFromTheEnvironmentFirst) {
  const std::string listed = files_.driver("good", "one") + ":relative.so::";
  ::setenv("GRAFT_DRIVER_PATH", listed.c_str(), 1);
  platform_.add_driver_path(files_.driver("good", "two"));
  EXPECT_EQ(platform_.device_count(), 4);
  const auto devices = platform_.descriptions();
  EXPECT_EQ(devices[0].driver->name(), "one");
  EXPECT_EQ(devices[3].driver->name(), "two");
  EXPECT_EQ(devices[3].ordinal, 1u);
  EXPECT_EQ(devices[3].index, 3);
  EXPECT_TRUE(has(only_refusal(), "'relative.so' cannot be used: the path is relative"));
}

TEST_F(PlatformTest, BadStartsAreReportedAndTheRestWorks) {
  const struct {
    const char* variant;
    const char* reason;
  } kCases[] = {
      {"throws_in_query", "query went wrong"},
      {"throws_in_count", "device_count failed (driver 'bad'): INTERNAL: the driver threw"},
      {"fails_in_count", "device_count failed"},
      {"rubbish_count", "claims 4000000000 devices"},
      {"silent_count", "device_count of the driver 'bad' returned OK without a count"},
      {"truncated", "lacks required slots"}};
  for (const auto& one : kCases) {
    Platform platform;
    platform.add_driver_path(files_.driver(one.variant, "bad"));
    platform.add_driver_path(files_.driver("good", "rest"));
    EXPECT_EQ(platform.device_count(), 2) << one.variant;
    ASSERT_EQ(platform.refusals().size(), 1u) << one.variant;
    EXPECT_TRUE(has(platform.refusals()[0].reason, one.reason));
    EXPECT_EQ(&platform.device(0).driver(), platform.drivers()[0]);
  }
}

TEST_F(PlatformTest, ADriverThatTheListDoesNotNameIsNotAsked) {
  ::setenv("GRAFT_DEVICES", "rest:1", 1);
  platform_.add_driver_path(files_.driver("throws_in_count", "bad"));
  platform_.add_driver_path(files_.driver("good", "rest"));
  EXPECT_EQ(platform_.device_count(), 1);
  EXPECT_EQ(platform_.drivers().size(), 2u);
  const auto found = platform_.found();
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0].index, -1);
  EXPECT_EQ(found[1].index, 0);
  EXPECT_TRUE(platform_.refusals().empty()) << only_refusal();
}

TEST_F(PlatformTest, BadDevicesAreLeftOut) {
  platform_.add_driver_path(files_.driver("second_fails"));
  EXPECT_EQ(platform_.device_count(), 1);
  EXPECT_TRUE(has(only_refusal(), "device_properties failed on device 1"));
  for (const char* variant : {"throws_in_properties", "no_memory", "odd_alignment"}) {
    Platform platform;
    platform.add_driver_path(files_.driver(variant));
    EXPECT_EQ(platform.device_count(), 0) << variant;
    EXPECT_EQ(platform.refusals().size(), 2u) << variant;
  }
  EXPECT_EQ(std::string(platform_.descriptions()[0].properties.name), std::string(127, 'x'));
}

TEST_F(PlatformTest, FailedOpenIsRememberedAndReported) {
  for (const char* variant : {"throws_in_open", "fails_in_open", "opens_nothing"}) {
    Platform platform;
    platform.add_driver_path(files_.driver(variant, "bad"));
    platform.add_driver_path(files_.driver("good", "rest"));
    EXPECT_EQ(platform.device_count(), 4);
    const std::string first = error_of([&] { platform.device(0); });
    EXPECT_FALSE(first.empty()) << variant;
    EXPECT_EQ(error_of([&] { platform.device(0); }), first);
    EXPECT_EQ(platform.refusals().size(), 1u);
    EXPECT_EQ(error_of([&] { platform.device(2); }), "");
    EXPECT_EQ(platform.open_device(0), nullptr);
    EXPECT_NE(platform.open_device(2), nullptr);
  }
}

TEST_F(PlatformTest, SameNameIsRefusedSameFileIsNot) {
  platform_.add_driver_path(files_.driver("good", "twin"));
  platform_.add_driver_path(files_.driver("good", "twin"));
  platform_.add_driver_path(files_.driver("hardware", "twin"));
  EXPECT_EQ(platform_.device_count(), 2);
  EXPECT_TRUE(has(only_refusal(), "a driver named 'twin' is loaded already, from '"));
}

TEST_F(PlatformTest, IndexOutOfRangeNamesTheCount) {
  platform_.add_driver_path(files_.driver("good"));
  for (const int index : {-1, 2, 1000}) {
    EXPECT_TRUE(has(error_of([&] { platform_.device(index); }), "there are 2 devices"));
  }
}

TEST_F(PlatformTest, HardwareComesFirstUntilADeviceIsOpen) {
  platform_.add_driver_path(files_.driver("good", "soft"));
  EXPECT_EQ(platform_.device_count(), 2);
  platform_.load_driver(files_.driver("hardware", "chip"));
  EXPECT_EQ(platform_.device_count(), 2);
  EXPECT_EQ(platform_.device(0).driver().name(), "chip");
  platform_.load_driver(files_.driver("hardware", "late"));
  EXPECT_EQ(platform_.device_count(), 4);
  EXPECT_EQ(platform_.descriptions()[2].driver->name(), "late");
}

TEST_F(PlatformTest, LoadDriverThrowsTheRefusal) {
  EXPECT_TRUE(has(error_of([&] { platform_.load_driver("x.so"); }), "the path is relative"));
  const std::string path = files_.driver("good");
  Driver& driver = platform_.load_driver(path);
  EXPECT_EQ(&platform_.load_driver(path), &driver);
}

TEST_F(PlatformTest, FrozenPlatformNamesTheRemedy) {
  const std::string path = files_.driver("good", "early");
  platform_.add_driver_path(path);
  platform_.freeze();
  const std::string late = files_.driver("good", "late");
  EXPECT_TRUE(has(error_of([&] { platform_.load_driver(late); }), "GRAFT_DRIVER_PATH"));
  EXPECT_TRUE(has(error_of([&] { platform_.add_driver_path(late); }), "comes too late"));
  EXPECT_EQ(error_of([&] { platform_.load_driver(path); }), "");
}

TEST_F(PlatformTest, ThreadsOpenADeviceOnce) {
  platform_.add_driver_path(files_.driver("good"));
  std::vector<Device*> seen(4);
  std::vector<std::thread> threads;
  for (Device*& mine : seen) threads.emplace_back([&] { mine = &platform_.device(1); });
  for (std::thread& thread : threads) thread.join();
  for (Device* device : seen) EXPECT_EQ(device, seen[0]);
}

TEST_F(PlatformTest, ShutdownRefusesCommands) {
  platform_.add_driver_path(files_.driver("good"));
  Stream& stream = platform_.device(0).default_stream();
  platform_.shutdown();
  EXPECT_TRUE(has(error_of([&] { stream.synchronize(); }), "shut down"));
  EXPECT_TRUE(has(error_of([&] { platform_.device(1); }), "cannot be opened: Graft was shut down"));
  platform_.shutdown();
}

}  // namespace
}  // namespace graft
