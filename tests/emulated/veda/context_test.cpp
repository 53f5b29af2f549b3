// tests/emulated/veda/context_test.cpp: contexts of the emulated library: one for each device, a
// stack for each thread, modes.
#include <thread>

#include "tests/emulated/veda/fixture.h"

namespace emulated::testing {
namespace {

class ContextTest : public VedaTest {
 protected:
  VEDAcontext retain(VEDAdevice device) {
    VEDAcontext found = nullptr;
    EXPECT_OK(veda().DevicePrimaryCtxRetain(&found, device));
    return found;
  }
  VEDAcontext current() {
    VEDAcontext found = nullptr;
    EXPECT_OK(veda().CtxGetCurrent(&found));
    return found;
  }
  bool is_active(uint32_t* mode) {
    int active = -1;
    EXPECT_OK(veda().DevicePrimaryCtxGetState(0, mode, &active));
    return active == 1;
  }
};

TEST_F(ContextTest, PrimaryIsOneForEachDevice) {
  ASSERT_OK(init({{"DEVICES", "2"}}));
  VEDAcontext found = nullptr;
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_CONTEXT, veda().CtxGet(&found, 0));
  const VEDAcontext first = retain(0);
  EXPECT_EQ(retain(0), first);
  EXPECT_NE(retain(1), first);
  EXPECT_OK(veda().CtxGet(&found, 0));
  EXPECT_EQ(found, first);
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_CONTEXT, veda().CtxGetCurrent(&found));  // Retain pushes none
  EXPECT_CODE(VEDA_ERROR_INVALID_DEVICE, veda().DevicePrimaryCtxRetain(&found, 2));
  uint32_t version = 0;
  EXPECT_OK(veda().CtxGetApiVersion(first, &version));
  EXPECT_EQ(version, 20300u);
}

TEST_F(ContextTest, ReleaseAndFlagsDoNothing) {
  ASSERT_OK(init());
  retain(0);
  EXPECT_OK(veda().DevicePrimaryCtxRelease(0));
  EXPECT_OK(veda().DevicePrimaryCtxSetFlags(0, VEDA_CONTEXT_MODE_SCALAR));
  uint32_t mode = 9;
  EXPECT_TRUE(is_active(&mode));
  EXPECT_EQ(mode, uint32_t{VEDA_CONTEXT_MODE_OMP});
  EXPECT_CODE(VEDA_ERROR_INVALID_DEVICE, veda().DevicePrimaryCtxRelease(1));
  EXPECT_CODE(VEDA_ERROR_INVALID_DEVICE, veda().DevicePrimaryCtxSetFlags(1, 0));
}

TEST_F(ContextTest, CreateOnceAndPush) {
  ASSERT_OK(init());
  uint32_t mode = 9;
  EXPECT_FALSE(is_active(&mode));
  VEDAcontext made = nullptr;
  EXPECT_CODE(VEDA_ERROR_INVALID_VALUE, veda().CtxCreate(&made, 2, 0));
  EXPECT_OK(veda().CtxCreate(&made, VEDA_CONTEXT_MODE_SCALAR, 0));
  EXPECT_EQ(current(), made);
  EXPECT_TRUE(is_active(&mode));
  EXPECT_EQ(mode, uint32_t{VEDA_CONTEXT_MODE_SCALAR});
  VEDAcontext again = nullptr;
  EXPECT_CODE(VEDA_ERROR_CANNOT_CREATE_CONTEXT, veda().CtxCreate(&again, VEDA_CONTEXT_MODE_OMP, 0));
  EXPECT_EQ(retain(0), made);
}

TEST_F(ContextTest, StackOfTheThread) {
  ASSERT_OK(init({{"DEVICES", "2"}}));
  const VEDAcontext zero = retain(0);
  const VEDAcontext one = retain(1);
  VEDAcontext popped = nullptr;
  EXPECT_CODE(VEDA_ERROR_CANNOT_POP_CONTEXT, veda().CtxPopCurrent(&popped));
  EXPECT_OK(veda().CtxSetCurrent(zero));  // pushes on an empty stack
  EXPECT_OK(veda().CtxPushCurrent(one));
  VEDAdevice device = -1;
  EXPECT_OK(veda().CtxGetDevice(&device));
  EXPECT_EQ(device, 1);
  EXPECT_OK(veda().CtxSetCurrent(zero));  // replaces the top
  EXPECT_EQ(current(), zero);
  EXPECT_OK(veda().CtxPopCurrent(&popped));
  EXPECT_OK(veda().CtxPopCurrent(&popped));
  EXPECT_EQ(popped, zero);
  EXPECT_CODE(VEDA_ERROR_CANNOT_POP_CONTEXT, veda().CtxPopCurrent(&popped));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_CONTEXT, veda().CtxPushCurrent(nullptr));
  EXPECT_OK(veda().CtxPushCurrent(one));
  std::thread([&] {
    VEDAcontext found = nullptr;
    EXPECT_CODE(VEDA_ERROR_UNKNOWN_CONTEXT, veda().CtxGetCurrent(&found));
    EXPECT_CODE(VEDA_ERROR_UNKNOWN_CONTEXT, veda().CtxSynchronize());
  }).join();
}

TEST_F(ContextTest, DeadContext) {
  start();
  const VEDAdeviceptr pointer = allocate(64);
  const int process = veda().process(0);
  EXPECT_OK(veda().CtxDestroy(context));
  EXPECT_TRUE(ends(process));
  EXPECT_CODE(VEDA_ERROR_CONTEXT_IS_DESTROYED, veda().CtxDestroy(context));
  EXPECT_CODE(VEDA_ERROR_CONTEXT_IS_DESTROYED, veda().CtxSynchronize());
  EXPECT_CODE(VEDA_ERROR_CONTEXT_IS_DESTROYED, veda().CtxPushCurrent(context));
  VEDAdeviceptr other = nullptr;
  EXPECT_CODE(VEDA_ERROR_CONTEXT_IS_DESTROYED, veda().MemAlloc(&other, 8));
  char byte = 0;
  EXPECT_CODE(VEDA_ERROR_CONTEXT_IS_DESTROYED, veda().MemcpyHtoD(pointer, &byte, 1));
  EXPECT_OK(veda().MemFree(pointer));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_CONTEXT, veda().CtxDestroy(nullptr));
}

TEST_F(ContextTest, ResetGivesTheInvalidIndexFirst) {
  start();
  const VEDAdeviceptr before = allocate(8);
  EXPECT_EQ(bits(before), uint64_t{1} << 37);
  const int process = veda().process(0);
  EXPECT_OK(veda().DevicePrimaryCtxReset(0));
  EXPECT_NE(veda().process(0), process);
  void* address = nullptr;
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_VPTR, veda().MemPtr(&address, before));
  EXPECT_EQ(allocate(8), nullptr);
  EXPECT_EQ(allocate(8), before);
}

TEST_F(ContextTest, OmpModeHasOneStreamAndAllCores) {
  start({{"CORES", "3"}});
  int count = 0;
  EXPECT_OK(veda().CtxStreamCnt(&count));
  EXPECT_EQ(count, 1);
  EXPECT_STREQ(::getenv("VE_OMP_NUM_THREADS"), "3");
  EXPECT_EQ(run("omp_threads"), 3u);
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_STREAM, veda().StreamSynchronize(1));
}

TEST_F(ContextTest, OmpThreadsOfTheUser) {
  start({{"CORES", "4"}, {"VE_OMP_NUM_THREADS", "2"}});
  EXPECT_EQ(run("omp_threads"), 2u);
}

TEST_F(ContextTest, ScalarModeHasAStreamForEachCore) {
  start({{"CORES", "3"}}, VEDA_CONTEXT_MODE_SCALAR);
  int count = 0;
  EXPECT_OK(veda().CtxStreamCnt(&count));
  EXPECT_EQ(count, 3);
  EXPECT_EQ(run("omp_threads"), 1u);
  EXPECT_EQ(run("cores"), 1u);
  uint32_t flags = 9;
  EXPECT_OK(veda().StreamGetFlags(2, &flags));
  EXPECT_EQ(flags, 0u);
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_STREAM, veda().StreamGetFlags(3, &flags));
}

TEST_F(ContextTest, CoresOfAKernel) {
  start({{"CORES", "3"}});
  const VEDAdeviceptr marks = allocate(3 * sizeof(int32_t));
  EXPECT_EQ(run("use_cores", {raw(marks)}), 3u);
  int32_t found[3] = {};
  EXPECT_OK(veda().MemcpyDtoH(found, marks, sizeof found));
  EXPECT_EQ(found[0], 301);
  EXPECT_EQ(found[1], 302);
  EXPECT_EQ(found[2], 303);
}

}  // namespace
}  // namespace emulated::testing
