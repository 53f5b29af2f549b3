// tests/emulated/veda/hmem_test.cpp: HMEM of the emulated library: addresses that say whose memory
// they name.
#include "tests/emulated/veda/fixture.h"

namespace emulated::testing {
namespace {

class HmemTest : public VedaTest {
 protected:
  VEDAhmemptr allocate_hmem(size_t size) {
    VEDAhmemptr pointer = nullptr;
    EXPECT_OK(veda().HMemAlloc(&pointer, size));
    return pointer;
  }
};

TEST_F(HmemTest, AddressesSayWhose) {
  start({{"DEVICES", "2"}});
  VEDAcontext other = nullptr;
  ASSERT_OK(veda().CtxCreate(&other, VEDA_CONTEXT_MODE_OMP, 1));
  const VEDAhmemptr pointer = allocate_hmem(64);
  const auto bits = reinterpret_cast<uint64_t>(pointer);
  EXPECT_EQ(bits >> 63, 1u);
  EXPECT_EQ(bits >> 59 & 15, 1u);
  void* address = nullptr;
  EXPECT_OK(veda().HMemPtr(&address, pointer));
  EXPECT_EQ(reinterpret_cast<uint64_t>(address), bits & ((uint64_t{1} << 59) - 1));
  int local = 0;
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_HMEM,
              veda().HMemPtr(&address, reinterpret_cast<VEDAhmemptr>(&local)));
  EXPECT_OK(veda().HMemFree(pointer));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_HMEM, veda().HMemFree(pointer));
}

TEST_F(HmemTest, Copies) {
  start({{"DEVICES", "2"}});
  const VEDAhmemptr here = allocate_hmem(8);
  VEDAcontext other = nullptr;
  ASSERT_OK(veda().CtxCreate(&other, VEDA_CONTEXT_MODE_OMP, 1));
  const VEDAhmemptr there = allocate_hmem(8);
  char from[] = "1234567";
  char to[8] = {};
  EXPECT_OK(veda().HMemcpy(here, from, 8));
  EXPECT_OK(veda().HMemcpy(there, here, 8));
  EXPECT_OK(veda().HMemcpy(to, there, 8));
  EXPECT_STREQ(to, "1234567");
  EXPECT_OK(veda().HMemcpy(to, from + 4, 4));
  EXPECT_STREQ(to, "567");
  EXPECT_CODE(VEDA_ERROR_INVALID_VALUE, veda().HMemcpy(nullptr, from, 8));
}

TEST_F(HmemTest, CopiesWithPointers) {
  start();
  const VEDAhmemptr hmem = allocate_hmem(8);
  const VEDAdeviceptr pointer = allocate(8);
  char from[] = "abcdefg";
  char to[8] = {};
  EXPECT_OK(veda().HMemcpyXtoD(pointer, from, 8));
  EXPECT_OK(veda().HMemcpyDtoX(hmem, pointer, 8));
  EXPECT_OK(veda().HMemcpyXtoDAsync(pointer + 4, hmem, 4, 0));
  EXPECT_OK(veda().HMemcpyDtoXAsync(to, pointer, 8, 0));
  EXPECT_OK(veda().CtxSynchronize());
  EXPECT_EQ(std::string(to, 8), "abcdabcd");
  EXPECT_CODE(VEDA_ERROR_OUT_OF_BOUNDS, veda().HMemcpyXtoD(pointer + 4, hmem, 8));
  VEDAhmemptr same = nullptr;
  EXPECT_OK(veda().MemToHMEM(&same, pointer + 4));
  EXPECT_OK(veda().HMemcpy(to, same, 4));
  EXPECT_EQ(std::string(to, 4), "abcd");
}

TEST_F(HmemTest, KernelsTakeIt) {
  start();
  const VEDAhmemptr hmem = allocate_hmem(16);
  EXPECT_OK(veda().HMemsetD32(hmem, 5, 4));
  VEDAargs args = nullptr;
  EXPECT_OK(veda().ArgsCreate(&args));
  EXPECT_OK(veda().ArgsSetHMEM(args, 0, hmem));
  EXPECT_OK(veda().ArgsSetU64(args, 1, 4));
  uint64_t result = 0;
  EXPECT_OK(veda().LaunchKernelEx(function("hmem_sum"), -1, args, 1, &result));
  EXPECT_EQ(result, 20u);
}

TEST_F(HmemTest, RunsOutAtTheCall) {
  start({{"MEMORY", "1K"}});
  VEDAhmemptr pointer = nullptr;
  EXPECT_CODE(VEDA_ERROR_OUT_OF_MEMORY, veda().HMemAlloc(&pointer, 2048));
}

}  // namespace
}  // namespace emulated::testing
