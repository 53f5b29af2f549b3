// tests/emulated/veda/stream_test.cpp: streams of the emulated library: order, waits, functions of
// the host, the profiler.
#include <atomic>
#include <chrono>
#include <mutex>
#include <thread>

#include "tests/emulated/veda/fixture.h"

namespace emulated::testing {
namespace {

using StreamTest = VedaTest;

uint64_t count_up(void* data) { return ++*static_cast<std::atomic<int>*>(data); }

TEST_F(StreamTest, HostFunctionsRunInOrder) {
  start();
  std::atomic<int> calls{0};
  uint64_t first = 0;
  uint64_t second = 0;
  EXPECT_OK(launch("nap", {30'000}));
  EXPECT_OK(veda().LaunchHostFuncEx(0, count_up, &calls, &first));
  EXPECT_OK(veda().LaunchHostFunc(0, count_up, &calls));
  EXPECT_OK(veda().LaunchHostFuncEx(0, count_up, &calls, &second));
  EXPECT_EQ(calls, 0);
  EXPECT_OK(veda().StreamSynchronize(0));
  EXPECT_EQ(calls, 3);
  EXPECT_EQ(first, 1u);
  EXPECT_EQ(second, 3u);
  EXPECT_CODE(VEDA_ERROR_INVALID_VALUE, veda().LaunchHostFunc(0, nullptr, nullptr));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_STREAM, veda().LaunchHostFunc(1, count_up, &calls));
}

TEST_F(StreamTest, MinusOneWaits) {
  start();
  std::atomic<int> calls{0};
  EXPECT_OK(launch("nap", {20'000}));
  EXPECT_OK(veda().LaunchHostFunc(-1, count_up, &calls));
  EXPECT_EQ(calls, 1);
  EXPECT_OK(veda().StreamSynchronize(-1));
}

TEST_F(StreamTest, StreamsRunBesideOneAnother) {
  start({{"CORES", "2"}}, VEDA_CONTEXT_MODE_SCALAR);
  std::atomic<int> calls{0};
  EXPECT_OK(launch("hang", {}, 1));
  EXPECT_OK(launch("nap", {1000}, 0));
  EXPECT_OK(veda().LaunchHostFunc(0, count_up, &calls));
  EXPECT_OK(veda().StreamSynchronize(0));
  EXPECT_EQ(calls, 1);
}

TEST_F(StreamTest, ContextWaitsForAllStreams) {
  start({{"CORES", "2"}}, VEDA_CONTEXT_MODE_SCALAR);
  std::atomic<int> calls{0};
  for (const VEDAstream stream : {0, 1}) {
    EXPECT_OK(launch("nap", {20'000}, stream));
    EXPECT_OK(veda().LaunchHostFunc(stream, count_up, &calls));
  }
  EXPECT_OK(veda().CtxSynchronize());
  EXPECT_EQ(calls, 2);
}

TEST_F(StreamTest, CallbackIsSynchronous) {
  start();
  std::atomic<int> calls{0};
  struct Seen {
    std::thread::id thread;
    VEDAstream stream = -9;
    VEDAresult status = VEDA_ERROR_TODO;
    std::atomic<int>* calls;
    int calls_then = 0;
  } seen;
  seen.calls = &calls;
  EXPECT_OK(launch("nap", {20'000}));
  EXPECT_OK(veda().LaunchHostFunc(0, count_up, &calls));
  EXPECT_OK(veda().StreamAddCallback(
      0,
      [](VEDAstream stream, VEDAresult status, void* data) {
        auto* now = static_cast<Seen*>(data);
        now->thread = std::this_thread::get_id();
        now->stream = stream;
        now->status = status;
        now->calls_then = *now->calls;
      },
      &seen, 0));
  EXPECT_EQ(seen.thread, std::this_thread::get_id());
  EXPECT_EQ(seen.stream, 0);
  EXPECT_CODE(VEDA_SUCCESS, seen.status);
  EXPECT_EQ(seen.calls_then, 1);
  EXPECT_CODE(VEDA_ERROR_INVALID_VALUE, veda().StreamAddCallback(0, nullptr, nullptr, 0));
}

TEST_F(StreamTest, QuerySaysOnlyThatTheDeviceIsThere) {
  start();
  EXPECT_CODE(VEDA_ERROR_VEO_STATE_RUNNING, veda().StreamQuery(0));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_STREAM, veda().StreamQuery(1));
}

TEST_F(StreamTest, RequestsRunOut) {
  start({{"REQUESTS", "2"}});
  std::atomic<int> calls{0};
  EXPECT_OK(veda().LaunchHostFunc(0, count_up, &calls));
  EXPECT_OK(veda().LaunchHostFunc(0, count_up, &calls));
  EXPECT_CODE(VEDA_ERROR_INVALID_REQID, veda().LaunchHostFunc(0, count_up, &calls));
  EXPECT_OK(veda().StreamSynchronize(0));
  EXPECT_OK(veda().LaunchHostFunc(0, count_up, &calls));
  EXPECT_OK(veda().StreamSynchronize(0));
  EXPECT_EQ(calls, 3);
}

// At 1 MB/s, 100 KB take a tenth of a second: a copy that is not counted would take nearly nothing.
TEST_F(StreamTest, SlowLinkSlowsCopies) {
  start({{"BANDWIDTH", "1000000"}});
  const VEDAdeviceptr pointer = allocate(100'000);
  std::vector<char> data(100'000);
  for (const bool to_device : {true, false}) {
    const auto begin = std::chrono::steady_clock::now();
    EXPECT_OK(to_device ? veda().MemcpyHtoD(pointer, data.data(), data.size())
                        : veda().MemcpyDtoH(data.data(), pointer, data.size()));
    EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::milliseconds(100));
  }
}

// What the profiler's callback saw: "event type" of each call.
std::vector<std::string> profiled;
std::mutex profiled_mutex;

void note(VEDAprofiler_data* data, VEDAprofiler_event event) {
  const std::lock_guard lock(profiled_mutex);
  const char* name = nullptr;
  veda().ProfilerTypeName(data->type, &name, data->stream_id);
  const char* events[] = {"issue", "begin", "end"};
  std::string line = std::string(events[event]) + " " + name;
  if (data->type == VEDA_PROFILER_LAUNCH_KERNEL) {
    line += std::string(" ") + reinterpret_cast<VEDAprofiler_vedaLaunchKernel*>(data)->kernel;
  }
  if (data->type == VEDA_PROFILER_MEM_ALLOC) {
    line += " " + std::to_string(reinterpret_cast<VEDAprofiler_vedaMemAlloc*>(data)->bytes);
  }
  if (data->type == VEDA_PROFILER_MEM_CPY_HTOD) {
    line += " " + std::to_string(reinterpret_cast<VEDAprofiler_vedaMemcpy*>(data)->bytes);
  }
  profiled.push_back(line);
  if (event == VEDA_PROFILER_EVENT_ISSUE) data->user_data = &profiled;
  EXPECT_EQ(data->user_data, &profiled);
  EXPECT_EQ(data->device_id, 0);
}

TEST_F(StreamTest, ProfilerSeesRequests) {
  start();
  const VEDAfunction nap = function("nap");
  profiled.clear();
  VEDAprofiler_callback callback = nullptr;
  EXPECT_OK(veda().ProfilerGetCallback(&callback));
  EXPECT_EQ(callback, nullptr);
  EXPECT_OK(veda().ProfilerSetCallback(note));
  EXPECT_CODE(VEDA_ERROR_CALLBACK_ALREADY_REGISTERED, veda().ProfilerSetCallback(note));
  EXPECT_OK(veda().ProfilerGetCallback(&callback));
  EXPECT_EQ(callback, note);
  EXPECT_CODE(VEDA_ERROR_INVALID_ARGS, veda().ProfilerGetCallback(nullptr));
  VEDAdeviceptr pointer = nullptr;
  std::atomic<int> calls{0};
  EXPECT_OK(veda().MemAlloc(&pointer, 8));
  EXPECT_OK(veda().MemcpyHtoD(pointer, "1234", 4));
  VEDAargs args = nullptr;
  EXPECT_OK(veda().ArgsCreate(&args));
  EXPECT_OK(veda().ArgsSetU64(args, 0, 1));
  EXPECT_OK(veda().LaunchKernelEx(nap, -1, args, 1, nullptr));
  EXPECT_OK(veda().LaunchHostFunc(-1, count_up, &calls));
  EXPECT_OK(veda().MemFree(pointer));
  EXPECT_OK(veda().CtxSynchronize());
  EXPECT_OK(veda().ProfilerSetCallback(nullptr));
  EXPECT_OK(veda().CtxSynchronize());
  std::vector<std::string> expected;
  for (const char* name : {"vedaMemAlloc 8", "vedaMemcpyHtoD 4", "vedaLaunchKernel nap",
                           "vedaLaunchHostFunc", "vedaMemFree", "vedaCtxSynchronize"}) {
    for (const char* event : {"issue ", "begin ", "end "}) {
      expected.push_back(std::string(event) + name);
    }
  }
  const std::lock_guard lock(profiled_mutex);
  EXPECT_EQ(profiled, expected);
  const char* name = nullptr;
  EXPECT_CODE(VEDA_ERROR_INVALID_ARGS, veda().ProfilerTypeName(VEDAprofiler_type(99), &name, 0));
}

}  // namespace
}  // namespace emulated::testing
