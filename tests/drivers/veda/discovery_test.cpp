// tests/drivers/veda/discovery_test.cpp: libveda is found or missed, its devices are counted and
// described.
#include <gtest/gtest.h>

#include "driver.h"
#include "tests/drivers/host/driver.h"

namespace graft::veda_test {
namespace {

using host_test::reran;

uint32_t count() {
  uint32_t result = ~0u;
  EXPECT_EQ(driver().device_count(&result), GRAFT_OK) << last_message();
  return result;
}

graft_device_properties properties(uint32_t ordinal) {
  graft_device_properties result = {};
  result.struct_size = sizeof result;
  EXPECT_EQ(driver().device_properties(ordinal, &result), GRAFT_OK) << last_message();
  return result;
}

// The status of counting, whose text has all of the words, and of opening.
void expect_no_count(graft_status status, const std::vector<std::string>& words) {
  uint32_t result = ~0u;
  EXPECT_EQ(driver().device_count(&result), status);
  EXPECT_EQ(result, ~0u);
  for (const std::string& word : words) {
    EXPECT_NE(last_message().find(word), std::string::npos) << word << "\n" << last_message();
  }
  graft_device device = nullptr;
  EXPECT_EQ(driver().device_open(0, &device), status);
  EXPECT_EQ(device, nullptr);
}

TEST(VedaDiscovery, NothingThereIsNoError) {
  if (reran({"LD_LIBRARY_PATH=/nowhere", emulated("DEVICES=0"),
             emulated("FAIL=Init:*:NO_DEVICES_FOUND"),
             emulated("FAIL=Init:*:UNKNOWN_VEDA_ARCHITECTURE")})) {
    return;
  }
  EXPECT_EQ(count(), 0u);
  const std::string why = last_message();
  EXPECT_NE(why.find("libveda.so.0"), std::string::npos) << why;
  EXPECT_TRUE(why.find("install NEC's VEDA") != std::string::npos ||
              why.find("lists no Vector Engine") != std::string::npos)
      << why;
  graft_device device = nullptr;
  EXPECT_EQ(driver().device_open(0, &device), GRAFT_NOT_FOUND);
  EXPECT_EQ(device, nullptr);
}

TEST(VedaDiscovery, AMissingLibraryThatIsNamedIsAnError) {
  if (reran({"GRAFT_VEDA_LIBRARY=/nowhere/libveda.so.0"})) return;
  expect_no_count(GRAFT_NOT_FOUND, {"/nowhere/libveda.so.0", "GRAFT_VEDA_LIBRARY"});
}

TEST(VedaDiscovery, ALibraryThatIsTooOldIsRefused) {
  if (reran({"GRAFT_VEDA_LIBRARY=" GRAFT_TEST_BINARY_DIR "/tests/graft_old_veda.so"})) return;
  expect_no_count(GRAFT_VERSION_MISMATCH, {"too old", "lacks vedaLaunchKernelEx:"});
}

TEST(VedaDiscovery, AFailedCountHasVedasName) {
  if (reran({emulated("FAIL=DeviceGetCount:1:CANT_READ_SENSOR_FILE"),
             emulated("FAIL=DeviceTotalMem:1:CANT_READ_SENSOR_FILE"),
             emulated("FAIL=DeviceGetName:1:CANT_READ_SENSOR_FILE"),
             emulated("FAIL=DeviceGetAttribute:2:CANT_READ_SENSOR_FILE"),
             emulated("FAIL=Init:1:CANT_READ_SENSOR_FILE")})) {
    return;
  }
  expect_no_count(GRAFT_INTERNAL, {"VEDA_ERROR_CANT_READ_SENSOR_FILE in veda"});
}

TEST(VedaDiscovery, AnUnknownModeIsRefused) {
  if (reran({emulated("", "GRAFT_VE_MODE=both")})) return;
  expect_no_count(GRAFT_INVALID_ARGUMENT, {"GRAFT_VE_MODE=both", "omp or scalar"});
}

TEST(VedaDiscovery, DescribesADevice) {
  if (reran({emulated("CORES=10 MEMORY=48M MODEL=VE3 DEVICES=2")})) return;
  ASSERT_EQ(count(), 2u);
  const graft_device_properties p = properties(1);
  EXPECT_EQ(p.compute_units, 10u);
  EXPECT_EQ(p.memory_bytes, 48u << 20);
  EXPECT_EQ(p.capability_major, 3u);
  EXPECT_EQ(p.device_class, uint32_t(GRAFT_CPU_LIKE));
  EXPECT_NE(p.features & GRAFT_FEATURE_POINTERS_IN_MEMORY, 0u);
  EXPECT_STREQ(p.dialect, "c");
  EXPECT_STREQ(p.vendor, "NEC");
  EXPECT_NE(std::string(p.name), "");
  Session s(1);
  EXPECT_EQ(s.get(s.put({1, 2, 3}), 3), (std::vector<int>{1, 2, 3}));
}

TEST(VedaDiscovery, AScalarDeviceHasOneCoreForEachStream) {
  if (reran({emulated("CORES=8", "GRAFT_VE_MODE=scalar")})) return;
  EXPECT_EQ(properties(0).compute_units, 1u);
}

TEST(VedaDiscovery, NecsVariablesChooseDevices) {
  if (reran({emulated("DEVICES=3", "VEDA_VISIBLE_DEVICES=1"),
             emulated("DEVICES=3", "VE_NODE_NUMBER=2")})) {
    return;
  }
  EXPECT_EQ(count(), 1u);
}

}  // namespace
}  // namespace graft::veda_test
