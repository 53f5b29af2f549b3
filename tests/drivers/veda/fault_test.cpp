// tests/drivers/veda/fault_test.cpp: VEDA's errors at every call, late errors, lost devices, forked
// processes.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <set>

#include "driver.h"
#include "drivers/veda/api.h"
#include "tests/drivers/host/driver.h"

namespace graft::veda_test {
namespace {

using host_test::reran;

// A device's life, which stops at the first failure.
class Life {
 public:
  explicit Life(const std::string& blob) : blob_(blob) {}

  // The status of the first failure, whose text is *text; OK if the numbers came out right, too.
  graft_status run(std::string* text) {
    graft_status status = driver().device_open(0, &device_);
    if (status == GRAFT_OK) status = work();
    *text = status == GRAFT_OK ? "" : last_message();
    if (stream_ != nullptr) driver().stream_destroy(stream_);
    if (program_ != nullptr) driver().program_unload(program_);
    for (graft_address each : memory_) {
      if (each != 0) driver().memory_free(device_, each);
    }
    if (device_ != nullptr) driver().device_close(device_);
    return status;
  }

 private:
  graft_status work() {
    const graft_driver_table& d = driver();
    int x[2] = {1, 2};
    graft_kernel kernel = nullptr;
    graft_status status = d.stream_create(device_, 0, &stream_);
    for (graft_address& each : memory_) {
      if (status == GRAFT_OK) status = d.memory_allocate(device_, sizeof x, &each);
    }
    const uint64_t host = reinterpret_cast<uint64_t>(x);
    if (status == GRAFT_OK) {
      status = d.copy(stream_, memory_[0], host, sizeof x, GRAFT_HOST_TO_DEVICE, 1);
    }
    if (status == GRAFT_OK) {
      status = d.copy(stream_, memory_[1], memory_[0], sizeof x, GRAFT_DEVICE_TO_DEVICE, 2);
    }
    if (status == GRAFT_OK) status = d.fill(stream_, memory_[1], 4, &x[1], 4, 3);
    if (status == GRAFT_OK) status = d.stream_synchronize(stream_);
    if (status == GRAFT_OK) {
      status = d.program_load(device_, blob_.data(), blob_.size(), &program_);
    }
    if (status == GRAFT_OK) status = d.kernel_find(device_, program_, "add_n", &kernel);
    if (status == GRAFT_OK) {
      const graft_argument arguments[] = {address(memory_[1], sizeof x), scalar(40)};
      const graft_launch launch = {sizeof launch, 4, {2, 1, 1}, {1, 1, 1}, 2, arguments};
      status = d.kernel_launch(stream_, kernel, &launch);
    }
    if (status == GRAFT_OK) {
      status = d.copy(stream_, host, memory_[1], sizeof x, GRAFT_DEVICE_TO_HOST, 5);
    }
    if (status == GRAFT_OK) status = d.stream_synchronize(stream_);
    if (status == GRAFT_OK) {
      EXPECT_EQ(x[0], 42);
      EXPECT_EQ(x[1], 42);
    }
    return status;
  }

  const std::string& blob_;
  graft_device device_ = nullptr;
  graft_stream stream_ = nullptr;
  graft_program program_ = nullptr;
  graft_address memory_[2] = {};
};

#define GRAFT_NAME(name, parameters) #name,
const char* const kFunctions[] = {GRAFT_VEDA_FUNCTIONS(GRAFT_NAME, GRAFT_NAME)};
#undef GRAFT_NAME

// Those whose failure is nobody's news: they give something back.
const std::set<std::string> kQuiet = {"CtxPopCurrent", "CtxDestroy", "ModuleUnload", "MemFree"};
// Those that a life calls, beside those.
const std::set<std::string> kLoud = {"DevicePrimaryCtxGetState",
                                     "DevicePrimaryCtxRetain",
                                     "CtxPushCurrent",
                                     "CtxSetCurrent",
                                     "CtxStreamCnt",
                                     "StreamSynchronize",
                                     "MemAlloc",
                                     "MemPtr",
                                     "MemcpyHtoDAsync",
                                     "MemcpyDtoDAsync",
                                     "MemcpyDtoHAsync",
                                     "MemsetD32Async",
                                     "ModuleLoad",
                                     "ModuleGetFunction",
                                     "ArgsCreate",
                                     "ArgsSetU64",
                                     "ArgsSetStack",
                                     "LaunchKernelEx"};

// labels: one_preset
TEST(VedaFault, AnErrorOfAnyCallIsToldAndTheNextDeviceWorks) {
  if (reran({emulated("DEVICES=2 ABORT=1 KEEP_FAILED=0"),
             emulated("DEVICES=2 ABORT=1 KEEP_FAILED=1")})) {
    return;
  }
  // VEDA stays initialised while a device is open.
  const Session other(1);
  std::string blob, text;
  ASSERT_EQ(other.compile(kKernels, &blob), GRAFT_OK) << last_message();
  std::set<std::string> told;
  for (const std::string name : kFunctions) {
    if (name == "ArgsDestroy") continue;  // what it does not free, nobody can
    for (int nth = 1; nth <= 3; ++nth) {
      for (const char* code : {"UNKNOWN", "VEO_COMMAND_ERROR", "OUT_OF_MEMORY"}) {
        plant(name + ":" + std::to_string(nth) + ":" + code);
        const graft_status status = Life(blob).run(&text);
        if (status == GRAFT_OK) continue;
        EXPECT_NE(text.find("in veda" + name), std::string::npos)
            << name << " " << nth << " " << code << "\n"
            << text;
        EXPECT_NE(text.find(std::string("VEDA_ERROR_") + code), std::string::npos) << text;
        told.insert(name);
      }
    }
    plant("");
    EXPECT_EQ(Life(blob).run(&text), GRAFT_OK) << "after " << name << ": " << text;
  }
  for (const std::string& name : kLoud) EXPECT_EQ(told.count(name), 1u) << name;
  for (const std::string& name : kQuiet) EXPECT_EQ(told.count(name), 0u) << name;
}

void expect_lost(Session& s, graft_address x) {
  int value = 5;
  graft_address address = 0;
  graft_stream stream = nullptr;
  graft_event event = nullptr;
  uint64_t left = 0, total = 0;
  std::string blob;
  EXPECT_EQ(s.upload(x, &value, 4), GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().fill(s.stream, x, 4, &value, 4, 0), GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().stream_query(s.stream), GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().memory_allocate(s.device, 64, &address), GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().stream_create(s.device, 0, &stream), GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().event_create(s.device, 0, &event), GRAFT_DEVICE_LOST);
  EXPECT_EQ(driver().memory_info(s.device, &left, &total), GRAFT_DEVICE_LOST);
  EXPECT_EQ(s.compile(kKernels, &blob), GRAFT_DEVICE_LOST);
  EXPECT_NE(last_message().find("is lost (VEDA_ERROR_"), std::string::npos) << last_message();
}

TEST(VedaFault, AKernelThatCrashesLosesTheDeviceAndIsNamed) {
  if (reran({emulated(), emulated("", "GRAFT_VE_MODE=scalar")})) return;
  Session s;
  const graft_address x = s.put({1});
  EXPECT_EQ(s.launch(s.kernel("crash"), 1, {address(x, 4)}, 77), GRAFT_OK) << last_message();
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_DEVICE_LOST);
  EXPECT_NE(last_message().find("the kernel crash failed"), std::string::npos) << last_message();
  uint32_t tag = 0;
  EXPECT_EQ(driver().stream_error(s.stream, &tag, nullptr, 0), GRAFT_OK);
  EXPECT_EQ(tag, 77u);
  expect_lost(s, x);
  EXPECT_NE(last_message().find("the kernel crash failed"), std::string::npos) << last_message();
}

TEST(VedaFault, AKilledDeviceProcessIsALostDevice) {
  if (reran({emulated(), emulated("", "GRAFT_VE_MODE=scalar")})) return;
  Session s;
  const graft_address x = s.put({1});
  const int process = device_process();
  ASSERT_GT(process, 0);
  ASSERT_EQ(kill(process, SIGKILL), 0);
  const int value = 2;
  graft_status status = GRAFT_OK;
  for (int i = 0; i < 20 && status == GRAFT_OK; ++i) {
    status = s.upload(x, &value, 4);
    if (status == GRAFT_OK) status = driver().stream_synchronize(s.stream);
  }
  EXPECT_EQ(status, GRAFT_DEVICE_LOST) << last_message();
  expect_lost(s, x);
}

// A request that the device refuses, where its stream gets over that.
TEST(VedaFault, ALateErrorIsToldOnceWithItsTagAndKernel) {
  if (reran({emulated("KEEP_FAILED=0")})) return;
  Session s;
  const graft_address x = s.put({1});
  graft_kernel add = s.kernel("add_n");
  plant("", "launch:*:2");
  for (uint32_t tag = 41; tag <= 43; ++tag) {
    EXPECT_EQ(s.launch(add, 1, {address(x, 4), scalar(1)}, tag), GRAFT_OK) << last_message();
    EXPECT_EQ(driver().stream_synchronize(s.stream), tag == 42 ? GRAFT_LAUNCH_FAILED : GRAFT_OK);
  }
  uint32_t tag = 0;
  char text[256] = "";
  EXPECT_EQ(driver().stream_error(s.stream, &tag, text, sizeof text), GRAFT_OK);
  EXPECT_EQ(tag, 42u);
  EXPECT_NE(std::string(text).find("VEDA_ERROR_VEO_COMMAND_ERROR in veda"), std::string::npos)
      << text;
  EXPECT_NE(std::string(text).find("the kernel add_n failed"), std::string::npos) << text;
  EXPECT_EQ(s.get(x, 1), std::vector<int>{3});
}

TEST(VedaFault, AFailedLaunchAmongManyIsTheOneBlamed) {
  if (reran({emulated("KEEP_FAILED=0 LATENCY=2000")})) return;
  Session s;
  const graft_address x = s.put({0});
  graft_kernel add = s.kernel("add_n");
  plant("", "launch:*:5");
  for (uint32_t tag = 1; tag <= 8; ++tag) {
    EXPECT_EQ(s.launch(add, 1, {address(x, 4), scalar(1)}, tag), GRAFT_OK) << last_message();
  }
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_LAUNCH_FAILED);
  uint32_t tag = 0;
  EXPECT_EQ(driver().stream_error(s.stream, &tag, nullptr, 0), GRAFT_OK);
  EXPECT_EQ(tag, 5u) << last_message();
}

TEST(VedaFault, AForkedChildIsToldSo) {
  if (reran({emulated()})) return;
  Session s;
  const graft_address x = s.put({1});
  const pid_t child = fork();
  if (child == 0) {
    int value = 0;
    graft_address address = 0;
    const bool right = s.upload(x, &value, 4) == GRAFT_DEVICE_LOST &&
                       last_message().find("spawn") != std::string::npos &&
                       driver().memory_allocate(s.device, 4, &address) == GRAFT_DEVICE_LOST &&
                       driver().memory_free(s.device, x) == GRAFT_OK &&
                       driver().stream_destroy(s.stream) == GRAFT_OK;
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(s.get(x, 1), std::vector<int>{1});
}

// A kernel that never ends stops nobody who waits with a limit. Nothing ends it: the process does.
TEST(VedaFault, AWaitForAKernelThatNeverEndsHasALimit) {
  if (reran({emulated()})) return;
  Session s;
  const graft_address x = s.put({1});
  graft_kernel add = s.kernel("add_n");
  graft_event event = s.new_event();
  plant("", "hang:*:1");
  EXPECT_EQ(s.launch(add, 1, {address(x, 4), scalar(1)}), GRAFT_OK);
  EXPECT_EQ(driver().event_record(event, s.stream), GRAFT_OK);
  EXPECT_EQ(driver().stream_synchronize_within(s.stream, 20'000'000), GRAFT_BUSY);
  EXPECT_EQ(driver().event_synchronize_within(event, 20'000'000), GRAFT_BUSY);
  EXPECT_EQ(driver().event_query(event), GRAFT_BUSY);
  EXPECT_EQ(driver().stream_query(s.stream), GRAFT_BUSY);
  const int process = device_process();
  ASSERT_GT(process, 0);
  ASSERT_EQ(kill(process, SIGKILL), 0);
  EXPECT_EQ(driver().stream_synchronize(s.stream), GRAFT_DEVICE_LOST);
}

}  // namespace
}  // namespace graft::veda_test
