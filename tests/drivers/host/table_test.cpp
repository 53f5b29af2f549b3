// tests/drivers/host/table_test.cpp: the table that the host driver fills in.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include "driver.h"

namespace graft::host_test {
namespace {

TEST(HostTable, LeavesTheViewOfDeviceMemoryOut) {
  if (is_rerun()) {
    EXPECT_EQ(driver().memory_host_view, nullptr);
    return;
  }
  EXPECT_NE(driver().memory_host_view, nullptr);
  EXPECT_TRUE(reran({"GRAFT_HOST_VIEW=0"}));
}

TEST(HostTable, LeavesMemoryOfOtherProcessesOut) {
  if (is_rerun()) {
    EXPECT_EQ(driver().memory_export, nullptr);
    EXPECT_EQ(driver().memory_import, nullptr);
    EXPECT_EQ(driver().memory_release, nullptr);
    return;
  }
  EXPECT_NE(driver().memory_export, nullptr);
  EXPECT_TRUE(reran({"GRAFT_HOST_SHARE=0"}));
}

TEST(HostTable, HasEveryRequiredSlotAndItsName) {
  EXPECT_STREQ(driver().name, "host");
  EXPECT_EQ(driver().slot_count, GRAFT_SLOT_COUNT);
#define REQUIRED_SLOT(name) EXPECT_NE(driver().name, nullptr) << #name;
#define OPTIONAL_SLOT(name)
#define LOOK(presence, name, parameters) presence##_SLOT(name)
  GRAFT_DRIVER_SLOTS(LOOK)
}

TEST(HostTable, ServesAnOlderMinorAndRefusesAnotherMajor) {
  void* handle = dlopen(GRAFT_TEST_DRIVER_DIR "/graft_host.so", RTLD_NOW | RTLD_LOCAL);
  auto query = reinterpret_cast<graft_driver_query_function>(dlsym(handle, "graft_driver_query"));
  graft_driver_table older = {};
  older.abi_major = GRAFT_ABI_MAJOR;
  older.slot_count = 15;
  EXPECT_EQ(query(&older), GRAFT_OK);
  EXPECT_EQ(older.slot_count, 15u);
  EXPECT_EQ(older.last_message, nullptr);
  graft_driver_table other = {};
  other.abi_major = GRAFT_ABI_MAJOR + 1;
  EXPECT_EQ(query(&other), GRAFT_VERSION_MISMATCH);
}

TEST(HostTable, DescribesItsDevices) {
  uint32_t count = 0;
  ASSERT_EQ(driver().device_count(&count), GRAFT_OK);
  graft_device_properties p = {};
  p.struct_size = sizeof p;
  for (uint32_t i = 0; i < count; ++i) {
    ASSERT_EQ(driver().device_properties(i, &p), GRAFT_OK);
    EXPECT_EQ(p.device_class, uint32_t(GRAFT_CPU_LIKE));
    EXPECT_STREQ(p.dialect, "c");
    EXPECT_GT(p.memory_bytes, 0u);
    EXPECT_NE(p.features & GRAFT_FEATURE_SIMULATED, 0u);
  }
  EXPECT_EQ(driver().device_properties(count, &p), GRAFT_NOT_FOUND);
}

TEST(HostTable, WritesNoMoreOfTheStructThanTheCallerKnows) {
  graft_device_properties p = {};
  p.struct_size = 16;
  p.max_group_size = 77;
  ASSERT_EQ(driver().device_properties(0, &p), GRAFT_OK);
  EXPECT_EQ(p.max_group_size, 77u);
}

}  // namespace
}  // namespace graft::host_test
