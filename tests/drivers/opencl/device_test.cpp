// tests/drivers/opencl/device_test.cpp: what devices say they can do, and devices that do not open.
#include <gtest/gtest.h>

#include "driver.h"
#include "tests/drivers/host/driver.h"

namespace graft::opencl_test {
namespace {

using host_test::reran;

graft_device_properties properties() {
  graft_device_properties result = {};
  result.struct_size = sizeof result;
  EXPECT_EQ(driver().device_properties(0, &result), GRAFT_OK) << last_message();
  return result;
}

void expect_open_fails(graft_status status, const std::string& text) {
  graft_device device = nullptr;
  EXPECT_EQ(driver().device_open(0, &device), status);
  EXPECT_EQ(device, nullptr);
  const std::string message = last_message();
  EXPECT_NE(message.find(text), std::string::npos) << message;
  EXPECT_NE(message.find("pthread-"), std::string::npos) << message;
}

TEST(OpenclDevice, AContextThatFailsNamesTheDevice) {
  if (reran({fake("fail:clCreateContext:1:-5")})) return;
  expect_open_fails(GRAFT_INTERNAL, "CL_OUT_OF_RESOURCES");
  Session again;
  EXPECT_EQ(again.get(again.put({4}), 1), std::vector<int>{4});
}

TEST(OpenclDevice, AQueueThatFailsNamesTheDevice) {
  if (reran({fake("fail:clCreateCommandQueue:1:-6")})) return;
  expect_open_fails(GRAFT_OUT_OF_MEMORY, "CL_OUT_OF_HOST_MEMORY");
  Session again;
}

TEST(OpenclDevice, WhatItLacksIsNotInItsFeatures) {
  if (reran({fake("no_fp64,no_fp16,no_int64_atomics,no_svm")})) return;
  EXPECT_EQ(properties().features, uint32_t(GRAFT_FEATURE_ONLY_NAMED));
}

TEST(OpenclDevice, OfferedMemoryIsTaken) {
  if (reran({fake("no_svm,usm"), fake("no_svm,address"), fake("coarse_svm"),
             fake("usm") + " GRAFT_OPENCL_MEMORY=usm"})) {
    return;
  }
  EXPECT_NE(properties().features & GRAFT_FEATURE_POINTERS_IN_MEMORY, 0u);
  Session s;
  const graft_address x = s.allocate(64);
  void* view = nullptr;
  EXPECT_EQ(driver().memory_host_view(s.device, x, 64, &view), GRAFT_UNSUPPORTED);
}

TEST(OpenclDevice, FineGrainedMemoryIsTheHostsToo) {
  if (reran({"GRAFT_OPENCL_MEMORY=svm-fine"})) return;
  Session s;
  const graft_address x = s.put({5, 6});
  void* view = nullptr;
  ASSERT_EQ(driver().memory_host_view(s.device, x + 4, 4, &view), GRAFT_OK) << last_message();
  EXPECT_EQ(*static_cast<int*>(view), 6);
}

TEST(OpenclDevice, MemoryThatIsNotOfferedIsRefusedByName) {
  if (reran({fake("no_svm") + " GRAFT_OPENCL_MEMORY=svm"})) return;
  expect_open_fails(GRAFT_INVALID_ARGUMENT, "GRAFT_OPENCL_MEMORY=svm");
}

TEST(OpenclDevice, OnlyGpuAndCpuAreClasses) {
  if (reran({"GRAFT_OPENCL_CLASS=toaster"})) return;
  expect_open_fails(GRAFT_INVALID_ARGUMENT, "GRAFT_OPENCL_CLASS=toaster");
}

// Compilers for GPUs fit registers to so many work-items where a kernel does not name its group.
TEST(OpenclDevice, GpusStateGroupsThatEveryKernelRunsIn) {
  if (reran({"GRAFT_OPENCL_CLASS=gpu"})) return;
  EXPECT_LE(properties().max_group_size, 256u);
}

TEST(OpenclDevice, TheClassCanBeChosen) {
  if (reran({"GRAFT_OPENCL_CLASS=gpu"})) return;
  EXPECT_EQ(properties().device_class, uint32_t(GRAFT_GPU_LIKE));
}

TEST(OpenclDevice, WithoutACompilerThereIsNoDialect) {
  if (reran({fake("no_compiler")})) return;
  EXPECT_STREQ(properties().dialect, "");
  Session s;
  EXPECT_EQ(s.compile(kKernels, GRAFT_UNSUPPORTED), "");
  const std::string message = last_message();
  EXPECT_NE(message.find(properties().name), std::string::npos) << message;
  EXPECT_EQ(s.get(s.put({1, 2}), 2), (std::vector<int>{1, 2}));
}

}  // namespace
}  // namespace graft::opencl_test
