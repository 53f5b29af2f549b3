// tests/drivers/opencl/kernel_test.cpp: launches on every kind of memory, and those that fail.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "driver.h"
#include "tests/drivers/host/driver.h"

namespace graft::opencl_test {
namespace {

using host_test::reran;

TEST(OpenclKernel, RunsEveryWorkItemOnce) {
  if (reran(every_memory())) return;
  Session s;
  graft_kernel add = s.kernel("add_n");
  for (int count : {1, 2, 1000}) {
    std::vector<int> values(size_t(count), 0), expected;
    std::iota(values.begin(), values.end(), 0);
    for (int value : values) expected.push_back(value + 30);
    const graft_address x = s.put(values);
    const uint64_t bytes = uint64_t(count) * 4;
    for (int n : {10, 20}) {
      EXPECT_EQ(s.launch(add, uint64_t(count), {address(x, bytes), scalar(n)}), GRAFT_OK);
    }
    EXPECT_EQ(s.get(x, uint64_t(count)), expected);
  }
}

// Each item writes how many share its group.
constexpr char kCrowd[] = R"(
typedef int i32;
#if defined(GRAFT_MEMORY_OFFSETS)
__kernel void crowd(__global i32* b, ulong o) {
  __global i32* p = (__global i32*)((__global char*)b + o);
#else
__kernel void crowd(__global i32* p) {
#endif
  p[get_global_id(0)] += (int)get_local_size(0);
}
)";

TEST(OpenclKernel, LoneItemsShareGroupsOnGpus) {
  std::vector<std::string> settings;
  std::vector<std::string> devices = every_memory();
  devices.push_back(fake("coarse_svm,nvidia"));
  for (const std::string& device : devices) settings.push_back(device + " GRAFT_OPENCL_CLASS=gpu");
  if (reran(settings)) return;
  Session s;
  graft_kernel crowd = s.kernel("crowd", kCrowd);
  for (int count : {1, 63, 64, 65, 200}) {
    std::vector<int> expected(size_t(count), 1);
    std::fill_n(expected.begin(), count / 64 * 64, 64);
    const graft_address x = s.put(std::vector<int>(size_t(count), 0));
    EXPECT_EQ(s.launch(crowd, uint64_t(count), {address(x, uint64_t(count) * 4)}), GRAFT_OK);
    EXPECT_EQ(s.get(x, uint64_t(count)), expected);
  }
}

TEST(OpenclKernel, AGroupOfOneInTheSourceIsKept) {
  if (reran({"GRAFT_OPENCL_CLASS=gpu"})) return;
  Session s;
  std::string source = kCrowd;
  for (size_t at = source.find("__kernel"); at != std::string::npos;) {
    source.insert(at + 8, " __attribute__((reqd_work_group_size(1, 1, 1)))");
    at = source.find("__kernel", at + 8);
  }
  const graft_address x = s.put(std::vector<int>(128, 0));
  EXPECT_EQ(s.launch(s.kernel("crowd", source), 128, {address(x, 512)}), GRAFT_OK);
  EXPECT_EQ(s.get(x, 128), std::vector<int>(128, 1));
}

TEST(OpenclKernel, LoneItemsStayAloneOnCpus) {
  if (reran({"GRAFT_OPENCL_CLASS=cpu"})) return;
  Session s;
  const graft_address x = s.put(std::vector<int>(128, 0));
  EXPECT_EQ(s.launch(s.kernel("crowd", kCrowd), 128, {address(x, 512)}), GRAFT_OK);
  EXPECT_EQ(s.get(x, 128), std::vector<int>(128, 1));
}

TEST(OpenclKernel, TakesAddressesInsideAllocations) {
  if (reran(every_memory())) return;
  Session s;
  const graft_address x = s.put({1, 2, 3, 4});
  EXPECT_EQ(s.launch(s.kernel("add_n"), 2, {address(x + 4, 8), scalar(10)}), GRAFT_OK);
  EXPECT_EQ(s.get(x, 4), (std::vector<int>{1, 12, 13, 4}));
}

TEST(OpenclKernel, TakesNullForWhatItDoesNotTouch) {
  std::vector<std::string> devices = every_memory();
  for (const char* memory : {"coarse_svm", "no_svm", "no_svm,usm", "no_svm,address"}) {
    devices.push_back(fake(memory + std::string(",nvidia")));
  }
  if (reran(devices)) return;
  Session s;
  graft_kernel copy = s.kernel("copy_some", R"(
#if defined(GRAFT_MEMORY_OFFSETS)
__kernel void copy_some(__global int* b0, ulong o0, __global int* b1, ulong o1, int count) {
  __global int *to = b0 + o0 / 4, *from = b1 + o1 / 4;
#else
__kernel void copy_some(__global int* to, __global int* from, int count) {
#endif
  for (int i = 0; i < count; ++i) to[i] = from[i];
}
)");
  const graft_address x = s.put({1, 2}), y = s.put({3, 4});
  EXPECT_EQ(s.launch(copy, 1, {address(0, 0), address(0, 0), scalar(0)}), GRAFT_OK);
  EXPECT_EQ(s.launch(copy, 1, {address(x, 8), address(y, 8), scalar(1)}), GRAFT_OK);
  EXPECT_EQ(s.get(x, 2), (std::vector<int>{3, 2}));
}

TEST(OpenclKernel, GroupsShareLocalMemory) {
  if (reran(every_memory())) return;
  Session s;
  const graft_address x = s.put({0, 1, 2, 3, 4, 5, 6, 7});
  EXPECT_EQ(s.launch(s.kernel("turn"), 2, {address(x, 32), local(16)}, 4), GRAFT_OK)
      << last_message();
  EXPECT_EQ(s.get(x, 8), (std::vector<int>{3, 0, 1, 2, 7, 4, 5, 6}));
}

// The driver keeps what it set; a new allocation at an old address is another buffer.
TEST(OpenclKernel, ArgumentsFollowTheirMemory) {
  if (reran(every_memory())) return;
  Session s;
  graft_kernel add = s.kernel("add_n");
  for (int i = 0; i < 20; ++i) {
    graft_address x = 0;
    ASSERT_EQ(driver().memory_allocate(s.device, 4096, &x), GRAFT_OK);
    EXPECT_EQ(s.upload(x, &i, 4), GRAFT_OK);
    EXPECT_EQ(s.launch(add, 1, {address(x, 4), scalar(5)}), GRAFT_OK);
    EXPECT_EQ(s.get(x, 1), std::vector<int>{i + 5});
    EXPECT_EQ(driver().memory_free(s.device, x), GRAFT_OK);
  }
}

TEST(OpenclKernel, AWrongNumberOfArgumentsIsRefused) {
  Session s;
  graft_kernel add = s.kernel("add_n");
  const graft_address x = s.put({1});
  EXPECT_EQ(s.launch(add, 1, {address(x, 4)}), GRAFT_INVALID_ARGUMENT);
  EXPECT_NE(last_message().find("add_n"), std::string::npos) << last_message();
  EXPECT_EQ(s.launch(add, 1, {address(x, 4), scalar(1), scalar(1)}), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(s.launch(add, 1, {address(x, 4), scalar(1)}), GRAFT_OK);
  EXPECT_EQ(s.get(x, 1), std::vector<int>{2});
}

TEST(OpenclKernel, AGroupThatIsTooLargeIsRefused) {
  Session s;
  const graft_address x = s.allocate(1u << 22);
  EXPECT_EQ(s.launch(s.kernel("add_n"), 1, {address(x, 1u << 22), scalar(1)}, 1u << 20),
            GRAFT_INVALID_ARGUMENT);
  EXPECT_NE(last_message().find("add_n"), std::string::npos) << last_message();
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_OK);
}

TEST(OpenclKernel, TooMuchLocalMemoryIsRefused) {
  Session s;
  const graft_address x = s.put({1});
  EXPECT_NE(s.launch(s.kernel("turn"), 1, {address(x, 4), local(1ull << 40)}), GRAFT_OK);
  EXPECT_NE(last_message().find("turn"), std::string::npos) << last_message();
  EXPECT_EQ(s.launch(s.kernel("turn"), 1, {address(x, 4), local(4)}), GRAFT_OK);
  EXPECT_EQ(s.get(x, 1), std::vector<int>{1});
}

TEST(OpenclKernel, OneRefusedLaunchIsOneFailedLaunch) {
  if (reran({fake("fail:clEnqueueNDRangeKernel:2:-5"), fake("fail:clEnqueueNDRangeKernel:2:-52"),
             fake("fail:clEnqueueNDRangeKernel:2:-6"), fake("fail:clSetKernelArgSVMPointer:2:-38"),
             fake("no_svm,fail:clEnqueueNDRangeKernel:2:-5"),
             fake("no_svm,fail:clSetKernelArg:4:-5"),
             fake("fail:clEnqueueNDRangeKernel:2:-5") + " GRAFT_OPENCL_THREAD=0"})) {
    return;
  }
  Session s;
  graft_kernel add = s.kernel("add_n");
  const graft_address x = s.put({1}), y = s.put({1});
  EXPECT_EQ(s.launch(add, 1, {address(x, 4), scalar(1)}), GRAFT_OK) << last_message();
  graft_status refused = s.launch(add, 1, {address(y, 4), scalar(1)}, 1, 77);
  if (refused == GRAFT_OK) {  // its caller did not wait for OpenCL's answer
    refused = driver().stream_synchronize(s.stream);
    uint32_t tag = 0;
    EXPECT_EQ(driver().stream_error(s.stream, &tag, nullptr, 0), GRAFT_OK);
    EXPECT_EQ(tag, 77u);
  }
  EXPECT_NE(refused, GRAFT_OK);
  EXPECT_NE(last_message().find("add_n"), std::string::npos) << last_message();
  EXPECT_EQ(s.launch(add, 1, {address(x, 4), scalar(1)}), GRAFT_OK) << last_message();
  EXPECT_EQ(s.get(x, 1), std::vector<int>{3});
  EXPECT_EQ(s.get(y, 1), std::vector<int>{1});
}

}  // namespace
}  // namespace graft::opencl_test
