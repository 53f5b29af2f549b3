// tests/emulated/veda/launch_test.cpp: modules and launches of the emulated library: every kind of
// argument, every intent.
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "tests/emulated/veda/fixture.h"

namespace emulated::testing {
namespace {

class LaunchTest : public VedaTest {
 protected:
  VEDAargs args = nullptr;

  void create() { ASSERT_OK(veda().ArgsCreate(&args)); }
  // Launches and waits; the arguments go with the launch.
  uint64_t finish(const char* name) {
    uint64_t result = 0;
    EXPECT_OK(veda().LaunchKernelEx(function(name), -1, args, 1, &result));
    return result;
  }
};

TEST_F(LaunchTest, Modules) {
  start();
  VEDAmodule other = nullptr;
  EXPECT_CODE(VEDA_ERROR_MODULE_NOT_FOUND, veda().ModuleLoad(&other, "nowhere.vso"));
  EXPECT_CODE(VEDA_ERROR_INVALID_VALUE, veda().ModuleLoad(&other, ""));
  EXPECT_CODE(VEDA_ERROR_MODULE_NOT_FOUND, veda().ModuleLoad(&other, "/proc/self/status"));
  VEDAfunction found = {};
  EXPECT_OK(veda().ModuleGetFunction(&found, module, "saxpy"));
  EXPECT_STREQ(found.kernel, "saxpy");
  EXPECT_NE(found.ptr, 0u);
  EXPECT_CODE(VEDA_ERROR_FUNCTION_NOT_FOUND, veda().ModuleGetFunction(&found, module, "none"));
  EXPECT_CODE(VEDA_ERROR_INVALID_VALUE, veda().ModuleGetFunction(&found, module, ""));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_MODULE, veda().ModuleGetFunction(&found, nullptr, "saxpy"));
  EXPECT_OK(veda().ModuleUnload(module));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_MODULE, veda().ModuleUnload(module));
}

TEST_F(LaunchTest, ModulesOfTheLibraryPath) {
  ASSERT_OK(init({{"VE_LD_LIBRARY_PATH",
                   GRAFT_TEST_BINARY_DIR "/none:" GRAFT_TEST_BINARY_DIR "/tests/veda"}}));
  ASSERT_OK(veda().CtxCreate(&context, VEDA_CONTEXT_MODE_OMP, 0));
  EXPECT_OK(veda().ModuleLoad(&module, "kernels.vso"));
  EXPECT_EQ(run("omp_threads"), 8u);
}

TEST_F(LaunchTest, ModulesOfTheThirdArchitecture) {
  char folder[] = "/tmp/emulated_veda_XXXXXX";
  ASSERT_NE(::mkdtemp(folder), nullptr);
  const std::string file = std::string(folder) + "/one.vso";
  std::filesystem::copy_file(kernels_file(), file + "3");
  VEDAmodule third = nullptr;
  for (const char* model : {"VE3", "VE1"}) {
    ASSERT_OK(init({{"MODEL", model}}));
    ASSERT_OK(veda().CtxCreate(&context, VEDA_CONTEXT_MODE_OMP, 0));
    const VEDAresult result = veda().ModuleLoad(&third, file.c_str());
    EXPECT_CODE(std::string(model) == "VE3" ? VEDA_SUCCESS : VEDA_ERROR_MODULE_NOT_FOUND, result);
    EXPECT_OK(veda().Exit());
  }
  std::filesystem::remove_all(folder);
}

TEST_F(LaunchTest, IntegersOfEveryWidth) {
  start();
  create();
  EXPECT_OK(veda().ArgsSetI8(args, 0, -1));
  EXPECT_OK(veda().ArgsSetI16(args, 1, -200));
  EXPECT_OK(veda().ArgsSetI32(args, 2, -70'000));
  EXPECT_OK(veda().ArgsSetI64(args, 3, -5'000'000'000));
  EXPECT_OK(veda().ArgsSetU8(args, 4, 255));
  EXPECT_OK(veda().ArgsSetU16(args, 5, 65'535));
  EXPECT_OK(veda().ArgsSetU32(args, 6, 4'000'000'000));
  EXPECT_OK(veda().ArgsSetU64(args, 7, 1'000'000'000'000));
  EXPECT_EQ(finish("add_integers"), uint64_t(-1 - 200 - 70'000 - 5'000'000'000 + 255 + 65'535 +
                                             4'000'000'000 + 1'000'000'000'000));
}

TEST_F(LaunchTest, FloatsBetweenIntegers) {
  start();
  create();
  uint64_t expected = 0;
  for (int index = 0; index < 20; index += 2) {
    const uint64_t weight = index / 2 + 1;
    EXPECT_OK(veda().ArgsSetI64(args, index, index + 1));
    if (weight % 2 == 1) {
      EXPECT_OK(veda().ArgsSetF32(args, index + 1, 0.5F * weight));
    } else {
      EXPECT_OK(veda().ArgsSetF64(args, index + 1, 0.25 * weight));
    }
    expected += weight * 4 * (index + 1) + weight * weight * (weight % 2 == 1 ? 2 : 1);
  }
  EXPECT_EQ(finish("weigh"), expected / 4);
}

TEST_F(LaunchTest, FortyArguments) {
  start();
  std::vector<uint64_t> integers;
  uint64_t expected = 0;
  uint64_t group = 1;
  for (uint64_t index = 0; index < 40; ++index) {
    integers.push_back(index + 3);
    expected += group * (index % 10 + 1) * (index + 3);
    if (index % 10 == 9) group *= 100;
  }
  EXPECT_EQ(run("many", integers), expected);
}

TEST_F(LaunchTest, IndicesOfArguments) {
  start();
  create();
  EXPECT_CODE(VEDA_ERROR_INVALID_ARGS, veda().ArgsSetI32(args, -1, 0));
  EXPECT_CODE(VEDA_ERROR_INVALID_ARGS, veda().ArgsSetF64(args, 48, 0));
  EXPECT_CODE(VEDA_ERROR_INVALID_ARGS, veda().ArgsSetU8(nullptr, 0, 0));
  EXPECT_CODE(VEDA_ERROR_INVALID_ARGS, veda().ArgsDestroy(nullptr));
  EXPECT_CODE(VEDA_ERROR_INVALID_ARGS, veda().LaunchKernel(function("sum"), 0, nullptr));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_STREAM, veda().LaunchKernel(function("sum"), 1, args));
  EXPECT_OK(veda().ArgsDestroy(args));
}

TEST_F(LaunchTest, PointersRawAndVirtual) {
  start();
  const float x[] = {1, 2, 3};
  const float y[] = {10, 20, 30};
  const VEDAdeviceptr at_x = allocate(sizeof x);
  const VEDAdeviceptr at_y = allocate(sizeof y);
  EXPECT_OK(veda().MemcpyHtoD(at_x, x, sizeof x));
  EXPECT_OK(veda().MemcpyHtoD(at_y, y, sizeof y));
  create();
  EXPECT_OK(veda().ArgsSetF32(args, 0, 2));
  EXPECT_OK(veda().ArgsSetPtr(args, 1, at_x + 4));
  EXPECT_OK(veda().ArgsSetPtr(args, 2, at_y + 4));
  EXPECT_OK(veda().ArgsSetU64(args, 3, 2));
  EXPECT_OK(veda().LaunchKernel(function("saxpy"), 0, args));
  EXPECT_OK(veda().CtxSynchronize());
  EXPECT_OK(veda().ArgsSetVPtr(args, 1, at_x));
  EXPECT_OK(veda().ArgsSetVPtr(args, 2, at_y));
  EXPECT_OK(veda().ArgsSetU64(args, 3, 3));
  EXPECT_EQ(finish("saxpy_pointers"), uint64_t{VEDA_SUCCESS});
  float found[3] = {};
  EXPECT_OK(veda().MemcpyDtoH(found, at_y, sizeof found));
  EXPECT_EQ(found[0], 12);
  EXPECT_EQ(found[1], 28);
  EXPECT_EQ(found[2], 42);
  create();
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_VPTR, veda().ArgsSetPtr(args, 0, VEDA_SET_PTR(0, 99, 0)));
  EXPECT_OK(veda().ArgsDestroy(args));
}

TEST_F(LaunchTest, PtrWaitsForItsAddress) {
  start({{"LATENCY", "20000"}});
  VEDAdeviceptr pointer = nullptr;
  EXPECT_OK(veda().MemAllocAsync(&pointer, 8, 0));
  EXPECT_OK(veda().MemsetD64Async(pointer, 77, 1, 0));
  create();
  EXPECT_OK(veda().ArgsSetPtr(args, 0, pointer));
  EXPECT_EQ(finish("read_word"), 77u);
}

TEST_F(LaunchTest, StackOfEveryIntent) {
  start();
  const std::pair<VEDAargs_intent, int32_t> cases[] = {
      {VEDA_ARGS_INTENT_IN, 5},
      {VEDA_ARGS_INTENT_INOUT, 6},
      {VEDA_ARGS_INTENT_OUT, static_cast<int32_t>(0xA5A5A5A6)}};
  for (const auto& [intent, expected] : cases) {
    std::vector<int32_t> buffer(1000, 5);
    create();
    EXPECT_OK(veda().ArgsSetStack(args, 0, buffer.data(), intent, 4 * buffer.size()));
    EXPECT_OK(veda().ArgsSetU64(args, 1, buffer.size()));
    finish("increment");
    EXPECT_EQ(buffer, std::vector<int32_t>(1000, expected)) << intent;
  }
  int32_t value = 0;
  create();
  EXPECT_CODE(VEDA_ERROR_INVALID_VALUE,
              veda().ArgsSetStack(args, 0, &value, VEDAargs_intent(3), 4));
  EXPECT_CODE(VEDA_ERROR_INVALID_ARGS,
              veda().ArgsSetStack(args, 0, nullptr, VEDA_ARGS_INTENT_IN, 4));
  EXPECT_OK(veda().ArgsDestroy(args));
}

TEST_F(LaunchTest, TwoBuffersKeepApart) {
  start();
  std::vector<int32_t> first(3, 1);
  std::vector<int32_t> second(5, 10);
  for (auto* buffer : {&first, &second}) {
    create();
    EXPECT_OK(
        veda().ArgsSetStack(args, 0, buffer->data(), VEDA_ARGS_INTENT_INOUT, 4 * buffer->size()));
    EXPECT_OK(veda().ArgsSetU64(args, 1, buffer->size()));
    EXPECT_OK(veda().LaunchKernelEx(function("increment"), 0, args, 1, nullptr));
  }
  EXPECT_OK(veda().CtxSynchronize());
  EXPECT_EQ(first, std::vector<int32_t>(3, 2));
  EXPECT_EQ(second, std::vector<int32_t>(5, 11));
}

// The device has copies of at most 64 MB for one call.
TEST_F(LaunchTest, TooLargeAStack) {
  start();
  std::vector<char> buffer((64 << 20) + 1);
  create();
  EXPECT_OK(veda().ArgsSetStack(args, 0, buffer.data(), VEDA_ARGS_INTENT_IN, buffer.size()));
  EXPECT_OK(veda().ArgsSetU64(args, 1, 0));
  EXPECT_OK(veda().LaunchKernelEx(function("sum"), 0, args, 1, nullptr));
  EXPECT_CODE(VEDA_ERROR_VEO_COMMAND_ERROR, veda().CtxSynchronize());
}

TEST_F(LaunchTest, ResultIsWrittenAtTheSync) {
  start();
  uint64_t result = 1;
  EXPECT_OK(launch("nap", {20'000}, 0, &result));
  EXPECT_EQ(result, 1u);
  EXPECT_OK(veda().StreamSynchronize(0));
  EXPECT_EQ(result, 20'000u);
}

// What a kernel returns is no error of VEDA.
TEST_F(LaunchTest, ValueOfAKernelIsIgnored) {
  start();
  EXPECT_OK(launch("nap", {7}, -1));
  EXPECT_OK(veda().CtxSynchronize());
}

TEST_F(LaunchTest, ArgumentsMustOutliveTheLaunch) {
  start({{"ABORT", "0"}});
  create();
  EXPECT_OK(veda().ArgsSetU64(args, 0, 100'000));
  EXPECT_OK(veda().LaunchKernel(function("nap"), 0, args));
  EXPECT_CODE(VEDA_ERROR_ASSERT, veda().ArgsDestroy(args));
  EXPECT_OK(veda().CtxSynchronize());
  EXPECT_OK(veda().ArgsDestroy(args));
}

TEST_F(LaunchTest, FunctionOfNothingIsAnException) {
  start();
  create();
  EXPECT_OK(veda().LaunchKernelEx(VEDAfunction{0, nullptr}, 0, args, 1, nullptr));
  EXPECT_CODE(VEDA_ERROR_VEO_COMMAND_EXCEPTION, veda().CtxSynchronize());
}

}  // namespace
}  // namespace emulated::testing
