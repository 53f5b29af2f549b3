// tests/emulated/veda/loss_test.cpp: planted faults and lost devices: the host gets a code and goes
// on, whatever the device does.
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/emulated/veda/fixture.h"

namespace emulated::testing {
namespace {

class LossTest : public VedaTest {
 protected:
  // The device is lost for good: requests are refused at the call, and a reset gives a new one.
  void expect_lost_until_reset() {
    VEDAdeviceptr pointer = nullptr;
    EXPECT_CODE(VEDA_ERROR_VEO_COMMAND_ERROR, veda().CtxSynchronize());
    EXPECT_CODE(VEDA_ERROR_INVALID_REQID, veda().MemAllocAsync(&pointer, 8, 0));
    EXPECT_OK(veda().StreamQuery(0));
    VEDAmodule other = nullptr;
    EXPECT_CODE(VEDA_ERROR_VEO_COMMAND_ERROR, veda().ModuleLoad(&other, kernels_file().c_str()));
    EXPECT_OK(veda().DevicePrimaryCtxReset(0));
    ASSERT_OK(veda().ModuleLoad(&module, kernels_file().c_str()));
    EXPECT_EQ(run("nap", {1}), 1u);
  }
};

TEST_F(LossTest, KernelsThatEndTheDevice) {
  for (const char* name : {"crash", "end", "stop"}) {
    start();
    EXPECT_OK(launch(name));
    EXPECT_CODE(VEDA_ERROR_VEO_COMMAND_EXCEPTION, veda().CtxSynchronize()) << name;
    expect_lost_until_reset();
    TearDown();
  }
}

TEST_F(LossTest, PointerOfTheHostIsNoneOfTheDevice) {
  start();
  uint64_t value = 5;
  EXPECT_OK(launch("write_word", {reinterpret_cast<uint64_t>(&value), 6}));
  veda().CtxSynchronize();
  EXPECT_EQ(value, 5u);
}

TEST_F(LossTest, RequestsBehindTheFailedOneFail) {
  start();
  std::atomic<int> calls{0};
  EXPECT_OK(launch("nap", {50'000}));
  EXPECT_OK(launch("crash"));
  EXPECT_OK(veda().LaunchHostFunc(
      0, [](void* data) -> uint64_t { return ++*static_cast<std::atomic<int>*>(data); }, &calls));
  EXPECT_CODE(VEDA_ERROR_VEO_COMMAND_EXCEPTION, veda().StreamSynchronize(0));
  EXPECT_EQ(calls, 0);
}

TEST_F(LossTest, KilledWhileItWorks) {
  start();
  EXPECT_OK(launch("hang"));
  const int process = veda().process(0);
  std::thread killer([process] {
    ::usleep(20'000);
    ::kill(process, SIGKILL);
  });
  EXPECT_CODE(VEDA_ERROR_VEO_COMMAND_EXCEPTION, veda().CtxSynchronize());
  killer.join();
  expect_lost_until_reset();
}

TEST_F(LossTest, KilledWhileItIsIdle) {
  start();
  ::kill(veda().process(0), SIGKILL);
  VEDAdeviceptr pointer = nullptr;
  EXPECT_CODE(VEDA_ERROR_VEO_COMMAND_EXCEPTION, veda().MemAlloc(&pointer, 8));
  expect_lost_until_reset();
}

TEST_F(LossTest, OtherDevicesGoOn) {
  start({{"DEVICES", "2"}});
  VEDAcontext other = nullptr;
  ASSERT_OK(veda().CtxCreate(&other, VEDA_CONTEXT_MODE_OMP, 1));
  ::kill(veda().process(0), SIGKILL);
  EXPECT_NE(raw(allocate(8)), 0u);
}

// A hang ends with the context: destroying it does not wait for the kernel.
TEST_F(LossTest, HangEndsWithTheContext) {
  start();
  const int process = veda().process(0);
  EXPECT_OK(launch("hang"));
  std::thread waiter([this] {
    EXPECT_OK(veda().CtxSetCurrent(context));
    const VEDAresult result = veda().CtxSynchronize();
    const bool ended =
        result == VEDA_ERROR_VEO_COMMAND_EXCEPTION || result == VEDA_ERROR_VEO_COMMAND_ERROR;
    EXPECT_TRUE(ended) << name_of(result);
  });
  ::usleep(50'000);
  EXPECT_OK(veda().CtxDestroy(context));
  waiter.join();
  EXPECT_TRUE(ends(process));
}

TEST_F(LossTest, ProcessThatDoesNotListenIsKilled) {
  start();
  const int process = veda().process(0);
  ASSERT_EQ(::kill(process, SIGSTOP), 0);
  EXPECT_OK(veda().CtxDestroy(context));
  EXPECT_TRUE(ends(process));
}

TEST_F(LossTest, ExitWithAHang) {
  start({{"FAULT", "hang:nap:2"}});
  EXPECT_EQ(run("nap", {3}), 3u);
  EXPECT_OK(launch("nap", {3}));
  EXPECT_OK(veda().Exit());
}

TEST_F(LossTest, PlantedExceptionAndRefusedLaunch) {
  start({{"FAULT", "launch:nap:2,exception:*:3"}, {"KEEP_FAILED", "0"}});
  EXPECT_EQ(run("nap", {1}), 1u);
  EXPECT_OK(launch("nap", {1}));
  EXPECT_CODE(VEDA_ERROR_VEO_COMMAND_ERROR, veda().CtxSynchronize());
  EXPECT_EQ(run("nap", {2}), 2u);
  EXPECT_OK(launch("nap", {1}));
  EXPECT_CODE(VEDA_ERROR_VEO_COMMAND_EXCEPTION, veda().CtxSynchronize());
}

TEST_F(LossTest, ADroppedLaunchCountsAsDone) {
  start({{"FAULT", "drop:nap:2"}});
  EXPECT_EQ(run("nap", {7}), 7u);
  EXPECT_EQ(run("nap", {7}), 0u);
  EXPECT_EQ(run("nap", {7}), 7u);
}

TEST_F(LossTest, FailsTheNthCallOfAFunction) {
  start({{"FAIL", "vedaMemAlloc:2:OUT_OF_MEMORY,CtxGetDevice:1:VEDA_ERROR_TODO,MemFree:*:48"}});
  VEDAdeviceptr pointer = nullptr;
  EXPECT_OK(veda().MemAlloc(&pointer, 8));
  VEDAdeviceptr none = nullptr;
  EXPECT_CODE(VEDA_ERROR_OUT_OF_MEMORY, veda().MemAlloc(&none, 8));
  EXPECT_EQ(none, nullptr);
  EXPECT_OK(veda().MemAlloc(&none, 8));
  VEDAdevice device = 0;
  EXPECT_CODE(VEDA_ERROR_TODO, veda().CtxGetDevice(&device));
  EXPECT_CODE(VEDA_ERROR_INVALID_HANDLE, veda().MemFree(pointer));
  EXPECT_CODE(VEDA_ERROR_INVALID_HANDLE, veda().MemFree(pointer));
  EXPECT_OK(veda().plant("", ""));
  EXPECT_OK(veda().MemFree(pointer));
}

TEST_F(LossTest, FailsInit) {
  EXPECT_CODE(VEDA_ERROR_INITIALIZING_DEVICE, init({{"FAIL", "Init:1:INITIALIZING_DEVICE"}}));
  EXPECT_CODE(VEDA_ERROR_INITIALIZING_DEVICE, veda().Init(0));  // it reads the rules again
  EXPECT_OK(init({{"FAIL", ""}}));
}

// A test fails every call in turn: the n-th of all, for each n.
TEST_F(LossTest, FailsEveryCallInTurn) {
  start();
  const auto program = [&] {
    VEDAdeviceptr pointer = nullptr;
    VEDAresult result = veda().MemAllocAsync(&pointer, 8, 0);
    if (result == VEDA_SUCCESS) result = veda().MemsetD8Async(pointer, 1, 8, 0);
    if (result == VEDA_SUCCESS) result = veda().StreamSynchronize(0);
    return result;
  };
  for (int nth = 1; nth <= 3; ++nth) {
    ASSERT_OK(veda().plant(("*:" + std::to_string(nth) + ":TODO").c_str(), ""));
    EXPECT_CODE(VEDA_ERROR_TODO, program()) << nth;
  }
  ASSERT_OK(veda().plant("*:4:TODO", ""));
  EXPECT_OK(program());
  EXPECT_CODE(VEDA_ERROR_INVALID_VALUE, veda().plant("*:1", ""));
}

// The name in each function's entry is its own: it fails when it is told to, before anything else.
TEST_F(LossTest, EveryFunctionCanFail) {
  ASSERT_OK(init());
#define EMULATED_VEDA_FAIL_ONE(name, parameters)                                                  \
  if (std::string(#name) != "Init" && std::string(#name).find("GetError") == std::string::npos) { \
    ASSERT_OK(veda().plant(#name ":1:UNKNOWN_CALLBACK", ""));                                     \
    EXPECT_CODE(VEDA_ERROR_UNKNOWN_CALLBACK, call(veda().name)) << #name;                         \
  }
  const auto call = []<class... Arguments>(VEDAresult (*function)(Arguments...)) {
    return function(Arguments{}...);
  };
  GRAFT_VEDA_FUNCTIONS(EMULATED_VEDA_FAIL_ONE, EMULATED_VEDA_FAIL_ONE)
#undef EMULATED_VEDA_FAIL_ONE
}

TEST_F(LossTest, NoExecutableIsAnError) {
  ASSERT_OK(init({{"PROCESS", "/nowhere/emulated_ve"}}));
  VEDAcontext made = nullptr;
  EXPECT_CODE(VEDA_ERROR_CANNOT_CREATE_CONTEXT, veda().DevicePrimaryCtxRetain(&made, 0));
}

TEST_F(LossTest, ForkedChildIsToldAndLeavesTheDeviceAlone) {
  start();
  const VEDAdeviceptr pointer = allocate(8);
  const pid_t child = ::fork();
  if (child == 0) {
    VEDAdeviceptr other = nullptr;
    char data[8] = {};
    const bool told = veda().MemAlloc(&other, 8) == VEDA_ERROR_SHUTTING_DOWN &&
                      veda().MemcpyDtoH(data, pointer, 8) == VEDA_ERROR_SHUTTING_DOWN &&
                      veda().CtxSynchronize() == VEDA_ERROR_SHUTTING_DOWN &&
                      veda().Init(0) == VEDA_ERROR_SHUTTING_DOWN &&
                      veda().Exit() == VEDA_ERROR_SHUTTING_DOWN && veda().process(0) == -1;
    ::_exit(told ? 0 : 1);
  }
  int state = -1;
  ASSERT_EQ(::waitpid(child, &state, 0), child);
  EXPECT_EQ(state, 0);
  EXPECT_EQ(run("nap", {4}), 4u);
  EXPECT_OK(veda().MemFree(pointer));
}

// The device's process ends with its host, killed or not, though a child of the host lives on.
TEST_F(LossTest, DeviceEndsWithItsHost) {
  int files[2] = {};
  ASSERT_EQ(::pipe(files), 0);
  const pid_t host = ::fork();
  if (host == 0) {
    start();
    launch("hang");
    if (::fork() == 0) {
      ::close(files[1]);
      ::sleep(3);
      ::_exit(0);
    }
    const int process = veda().process(0);
    [[maybe_unused]] const ssize_t written = ::write(files[1], &process, sizeof process);
    ::kill(::getpid(), SIGKILL);
  }
  int process = -1;
  ASSERT_EQ(::read(files[0], &process, sizeof process), ssize_t{sizeof process});
  int state = 0;
  ::waitpid(host, &state, 0);
  EXPECT_TRUE(WIFSIGNALED(state));
  EXPECT_GT(process, 0);
  EXPECT_TRUE(ends(process));
  ::close(files[0]);
  ::close(files[1]);
}

}  // namespace
}  // namespace emulated::testing
