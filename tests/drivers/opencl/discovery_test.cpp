// tests/drivers/opencl/discovery_test.cpp: devices are found, ordered and chosen.
#include <gtest/gtest.h>

#include "driver.h"
#include "tests/drivers/host/driver.h"

namespace graft::opencl_test {
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

TEST(OpenclDiscovery, FindsPocl) {
  ASSERT_GE(count(), 1u) << "tools/setup installs PoCL (pocl-opencl-icd)";
  const graft_device_properties p = properties(0);
  EXPECT_STREQ(p.dialect, "opencl-c");
  EXPECT_GT(p.memory_bytes, 1u << 20);
  EXPECT_NE(std::string(p.name), "");
}

TEST(OpenclDiscovery, NothingThereIsNoError) {
  if (reran({"GRAFT_OPENCL_LIBRARY=/nowhere/libOpenCL.so", "OCL_ICD_VENDORS=/nowhere/",
             fake("no_devices"), fake("fail:clGetPlatformIDs:0:-1001"),
             fake("fail:clGetDeviceIDs:0:-6")})) {
    return;
  }
  EXPECT_EQ(count(), 0u);
  graft_device device = nullptr;
  EXPECT_EQ(driver().device_open(0, &device), GRAFT_NOT_FOUND);
  EXPECT_EQ(device, nullptr);
}

TEST(OpenclDiscovery, ABrokenPlatformHidesNoOther) {
  if (reran({fake("broken_platform"), "OCL_ICD_VENDORS=" GRAFT_TEST_BINARY_DIR
                                      "/tests/graft_fake_cl.so GRAFT_FAKE_CL=broken_platform"})) {
    return;
  }
  EXPECT_EQ(count(), 1u);
  Session s;
  EXPECT_EQ(s.get(s.put({1, 2, 3}), 3), (std::vector<int>{1, 2, 3}));
}

TEST(OpenclDiscovery, GpusComeFirst) {
  if (reran({fake("gpu:1") + " POCL_DEVICES='basic pthread'"})) return;
  ASSERT_EQ(count(), 2u);
  EXPECT_EQ(properties(0).device_class, uint32_t(GRAFT_GPU_LIKE));
  EXPECT_EQ(properties(0).features & GRAFT_FEATURE_ONLY_NAMED, 0u);
  EXPECT_EQ(properties(1).device_class, uint32_t(GRAFT_CPU_LIKE));
  EXPECT_NE(properties(1).features & GRAFT_FEATURE_ONLY_NAMED, 0u);
  EXPECT_EQ(std::string(properties(0).name).rfind("pthread", 0), 0u) << properties(0).name;
}

TEST(OpenclDiscovery, SubGroupsThatExchangeValuesAreAFeature) {
  if (reran({fake("sub_groups:8")})) return;
  ASSERT_EQ(count(), 1u);
  EXPECT_NE(properties(0).features & GRAFT_FEATURE_SHUFFLES, 0u);
}

TEST(OpenclDiscovery, TheEnvironmentChooses) {
  if (reran({"GRAFT_OPENCL_DEVICES=pthread POCL_DEVICES='basic pthread'",
             "GRAFT_OPENCL_DEVICES=1 POCL_DEVICES='basic pthread'"})) {
    return;
  }
  ASSERT_EQ(count(), 1u);
  EXPECT_EQ(std::string(properties(0).name).rfind("pthread", 0), 0u) << properties(0).name;
}

TEST(OpenclDiscovery, AnUnknownNameListsWhatThereIs) {
  if (reran({"GRAFT_OPENCL_DEVICES=nvidia"})) return;
  uint32_t none = 7;
  EXPECT_EQ(driver().device_count(&none), GRAFT_NOT_FOUND);
  EXPECT_EQ(none, 7u);
  EXPECT_NE(last_message().find("GRAFT_OPENCL_DEVICES=nvidia"), std::string::npos);
  EXPECT_NE(last_message().find("Portable Computing Language"), std::string::npos)
      << last_message();
}

TEST(OpenclDiscovery, ALoaderWithoutAFunctionSaysWhich) {
  if (reran({"GRAFT_OPENCL_LIBRARY=libm.so.6 GRAFT_OPENCL_DEVICES=0"})) return;
  uint32_t none = 7;
  EXPECT_EQ(driver().device_count(&none), GRAFT_NOT_FOUND);
  EXPECT_NE(last_message().find("clGetPlatformIDs"), std::string::npos) << last_message();
}

TEST(OpenclDiscovery, AnIcdLoaderTakesTheFake) {
  if (reran({"OCL_ICD_VENDORS=" GRAFT_TEST_BINARY_DIR
             "/tests/graft_fake_cl.so GRAFT_FAKE_CL=no_fp64,no_svm"})) {
    return;
  }
  ASSERT_EQ(count(), 1u);
  EXPECT_EQ(properties(0).features & GRAFT_FEATURE_FLOAT64, 0u);
  EXPECT_EQ(properties(0).features & GRAFT_FEATURE_POINTERS_IN_MEMORY, 0u);
  Session s;
  const graft_address x = s.put({1, 2, 3});
  EXPECT_EQ(s.launch(s.kernel("add_n"), 3, {address(x, 12), scalar(4)}), GRAFT_OK);
  EXPECT_EQ(s.get(x, 3), (std::vector<int>{5, 6, 7}));
}

}  // namespace
}  // namespace graft::opencl_test
