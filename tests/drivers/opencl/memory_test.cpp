// tests/drivers/opencl/memory_test.cpp: allocations, their limits, and pinned host memory.
#include <gtest/gtest.h>

#include <cstring>

#include "driver.h"
#include "tests/drivers/host/driver.h"

namespace graft::opencl_test {
namespace {

using host_test::reran;

graft_status allocate(Session& s, uint64_t bytes) {
  graft_address address = 0;
  const graft_status status = driver().memory_allocate(s.device, bytes, &address);
  if (status == GRAFT_OK) {
    EXPECT_EQ(driver().memory_free(s.device, address), GRAFT_OK) << last_message();
  } else {
    EXPECT_EQ(address, 0u);
  }
  return status;
}

TEST(OpenclMemory, AllocationsAreApartAndAligned) {
  if (reran(every_memory())) return;
  Session s;
  graft_device_properties p = {};
  p.struct_size = sizeof p;
  driver().device_properties(0, &p);
  std::vector<graft_address> all;
  for (int i = 0; i < 20; ++i) {
    all.push_back(s.put({i, i + 1, i + 2}));
    EXPECT_EQ(all.back() % p.allocation_alignment, 0u);
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(s.get(all[size_t(i)], 3), (std::vector<int>{i, i + 1, i + 2}));
  }
}

TEST(OpenclMemory, TheLargestAllocationIsHonoured) {
  if (reran({fake("alloc_limit:65536"), fake("alloc_limit:65536,no_svm"),
             fake("alloc_limit:65536,no_svm,usm"), fake("alloc_limit:65536,no_svm,address")})) {
    return;
  }
  Session s;
  EXPECT_EQ(allocate(s, 65536), GRAFT_OK);
  EXPECT_EQ(allocate(s, 65537), GRAFT_OUT_OF_MEMORY);
  EXPECT_NE(last_message().find("65537"), std::string::npos) << last_message();
  EXPECT_NE(last_message().find("65536"), std::string::npos) << last_message();
  EXPECT_EQ(s.get(s.put({1}), 1), std::vector<int>{1});
}

// What the driver counts and what only the device knows.
TEST(OpenclMemory, AFullDeviceTakesMoreOnceSomeIsFreed) {
  if (reran({fake("memory:1048576"), fake("out_of_memory:1048576"),
             fake("out_of_memory:1048576,no_svm"), fake("out_of_memory:1048576,no_svm,usm"),
             fake("out_of_memory:1048576,no_svm,address")})) {
    return;
  }
  Session s;
  graft_address first = 0;
  ASSERT_EQ(driver().memory_allocate(s.device, 600000, &first), GRAFT_OK) << last_message();
  EXPECT_EQ(allocate(s, 600000), GRAFT_OUT_OF_MEMORY);
  EXPECT_NE(last_message().find("600000 bytes"), std::string::npos) << last_message();
  EXPECT_EQ(driver().memory_free(s.device, first), GRAFT_OK);
  EXPECT_EQ(allocate(s, 600000), GRAFT_OK);
}

// The first is the driver's own, for arguments that are null.
TEST(OpenclMemory, OneFailedAllocationIsOneFailedAllocation) {
  if (reran({fake("fail:clSVMAlloc:3:-4"), fake("no_svm,fail:clCreateBuffer:3:-4"),
             fake("no_svm,fail:clCreateBuffer:3:-5"), fake("no_svm,fail:clEnqueueFillBuffer:3:-4"),
             fake("no_svm,usm,fail:clDeviceMemAllocINTEL:3:-5"),
             fake("no_svm,address,fail:clGetMemObjectInfo:3:-4"),
             fake("no_svm,address,fail:clCreateBufferWithProperties:3:-6")})) {
    return;
  }
  Session s;
  EXPECT_EQ(allocate(s, 64), GRAFT_OK);
  EXPECT_EQ(allocate(s, 64), GRAFT_OUT_OF_MEMORY);
  EXPECT_EQ(allocate(s, 64), GRAFT_OK);
  uint64_t left = 0, total = 0;
  EXPECT_EQ(driver().memory_info(s.device, &left, &total), GRAFT_OK);
  EXPECT_EQ(left, total);
}

TEST(OpenclMemory, FreesWhatItGaveAndNothingElse) {
  if (reran({"A=1", fake("no_svm")})) return;
  Session s;
  graft_address x = 0;
  ASSERT_EQ(driver().memory_allocate(s.device, 64, &x), GRAFT_OK);
  EXPECT_EQ(driver().memory_free(s.device, x + 4), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().memory_free(s.device, x), GRAFT_OK);
  EXPECT_EQ(driver().memory_free(s.device, x), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().memory_free(s.device, 0), GRAFT_INVALID_ARGUMENT);
}

TEST(OpenclMemory, PinnedMemoryIsTheHosts) {
  if (reran({"A=1", fake("no_svm"), old_loader("version:1.2")})) return;
  Session s;
  void* pinned = nullptr;
  ASSERT_EQ(driver().host_allocate(s.device, 4096, &pinned), GRAFT_OK) << last_message();
  std::memset(pinned, 7, 4096);
  const graft_address x = s.allocate(4096);
  EXPECT_EQ(s.upload(x, pinned, 4096), GRAFT_OK);
  char back[4096] = "";
  EXPECT_EQ(s.download(back, x, 4096), GRAFT_OK);
  EXPECT_EQ(std::memcmp(back, pinned, 4096), 0);
  EXPECT_EQ(driver().host_free(s.device, back), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().host_free(s.device, pinned), GRAFT_OK);
  EXPECT_EQ(driver().host_free(s.device, pinned), GRAFT_INVALID_ARGUMENT);
}

TEST(OpenclMemory, PinningThatFailsIsOutOfMemory) {
  if (reran({fake("fail:clEnqueueMapBuffer:1:-12"), fake("fail:clCreateBuffer:1:-6")})) return;
  Session s;
  void* pinned = nullptr;
  EXPECT_EQ(driver().host_allocate(s.device, 4096, &pinned), GRAFT_OUT_OF_MEMORY) << last_message();
  EXPECT_EQ(pinned, nullptr);
  EXPECT_EQ(driver().host_allocate(s.device, 4096, &pinned), GRAFT_OK) << last_message();
  EXPECT_EQ(driver().host_free(s.device, pinned), GRAFT_OK);
}

}  // namespace
}  // namespace graft::opencl_test
