// tests/emulated/veda/memory_test.cpp: memory of the emulated library: pointers, bounds, delayed
// and failed allocations, copies.
#include <unistd.h>

#include <numeric>
#include <thread>

#include "tests/emulated/veda/fixture.h"

namespace emulated::testing {
namespace {

class MemoryTest : public VedaTest {
 protected:
  // Free bytes of the current device.
  size_t free_bytes() {
    size_t free = 0;
    size_t total = 0;
    EXPECT_OK(veda().MemGetInfo(&free, &total));
    return free;
  }
  std::vector<int32_t> read(VEDAdeviceptr pointer, size_t count) {
    std::vector<int32_t> values(count);
    EXPECT_OK(veda().MemcpyDtoH(values.data(), pointer, 4 * count));
    return values;
  }
  VEDAdeviceptr filled(const std::vector<int32_t>& values) {
    const VEDAdeviceptr pointer = allocate(4 * values.size());
    EXPECT_OK(veda().MemcpyHtoD(pointer, values.data(), 4 * values.size()));
    return pointer;
  }
};

TEST_F(MemoryTest, PointersHaveDeviceIndexAndOffset) {
  start({{"DEVICES", "2"}});
  const VEDAdeviceptr first = allocate(100);
  EXPECT_EQ(bits(first), uint64_t{1} << 37);
  EXPECT_EQ(bits(allocate(100)), uint64_t{2} << 37);
  VEDAcontext other = nullptr;
  ASSERT_OK(veda().CtxCreate(&other, VEDA_CONTEXT_MODE_OMP, 1));
  const VEDAdeviceptr there = allocate(100);
  EXPECT_EQ(bits(there), uint64_t{1} << 59 | uint64_t{1} << 37);
  VEDAdevice device = -1;
  EXPECT_OK(veda().MemGetDevice(&device, there + 5));
  EXPECT_EQ(device, 1);
  VEDAdeviceptr base = nullptr;
  size_t size = 0;
  EXPECT_OK(veda().MemGetAddressRange(&base, &size, there + 5));
  EXPECT_EQ(base, there);
  EXPECT_EQ(size, 100u);
  EXPECT_OK(veda().MemSize(&size, first + 99));
  EXPECT_EQ(size, 100u);
  void* address = nullptr;
  EXPECT_OK(veda().MemPtrSize(&address, &size, first + 7));
  EXPECT_EQ(reinterpret_cast<uint64_t>(address), raw(first) + 7);
  EXPECT_EQ(size, 100u);
  EXPECT_NE(raw(first), raw(there));
}

TEST_F(MemoryTest, AddressesOfTheDeviceAreNoneOfTheHost) {
  start();
  const VEDAdeviceptr pointer = allocate(64);
  int files[2] = {};
  ASSERT_EQ(::pipe(files), 0);
  EXPECT_EQ(::write(files[1], reinterpret_cast<void*>(raw(pointer)), 1), -1);
  EXPECT_EQ(::write(files[1], pointer, 1), -1);
  ::close(files[0]);
  ::close(files[1]);
  EXPECT_NE(run("process"), static_cast<uint64_t>(::getpid()));
  EXPECT_EQ(run("process"), static_cast<uint64_t>(veda().process(0)));
}

TEST_F(MemoryTest, RoundTripAndOffsets) {
  start();
  std::vector<int32_t> values(100'000);
  std::iota(values.begin(), values.end(), 7);
  const VEDAdeviceptr pointer = filled(values);
  EXPECT_EQ(read(pointer, values.size()), values);
  EXPECT_EQ(read(pointer + 4, 2), (std::vector<int32_t>{8, 9}));
  const int32_t word = -1;
  EXPECT_OK(veda().MemcpyHtoDAsync(pointer + 8, &word, 4, 0));
  EXPECT_OK(veda().StreamSynchronize(0));
  EXPECT_EQ(read(pointer, 4), (std::vector<int32_t>{7, 8, -1, 10}));
}

TEST_F(MemoryTest, BoundsOfHostCopiesAtTheCall) {
  start();
  const VEDAdeviceptr pointer = allocate(8);
  char data[16] = {};
  EXPECT_CODE(VEDA_ERROR_OUT_OF_BOUNDS, veda().MemcpyHtoDAsync(pointer, data, 9, 0));
  EXPECT_CODE(VEDA_ERROR_OUT_OF_BOUNDS, veda().MemcpyHtoDAsync(pointer + 1, data, 8, 0));
  EXPECT_CODE(VEDA_ERROR_OUT_OF_BOUNDS, veda().MemcpyDtoHAsync(data, pointer + 9, 0, 0));
  EXPECT_CODE(VEDA_ERROR_INVALID_VALUE, veda().MemcpyHtoDAsync(pointer, nullptr, 1, 0));
  EXPECT_CODE(VEDA_ERROR_INVALID_VALUE, veda().MemcpyHtoDAsync(nullptr, data, 1, 0));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_VPTR, veda().MemcpyDtoHAsync(data, VEDA_SET_PTR(0, 77, 0), 1, 0));
  EXPECT_CODE(VEDA_ERROR_INVALID_DEVICE, veda().MemcpyDtoHAsync(data, VEDA_SET_PTR(1, 1, 0), 1, 0));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_STREAM, veda().MemcpyDtoHAsync(data, pointer, 1, 1));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_STREAM, veda().MemcpyDtoHAsync(data, pointer, 1, -2));
  EXPECT_OK(veda().CtxSynchronize());
}

TEST_F(MemoryTest, BoundsOfDeviceCopiesAtTheSync) {
  start();
  const VEDAdeviceptr from = filled({1, 2, 3, 4});
  const VEDAdeviceptr to = allocate(8);
  EXPECT_OK(veda().MemcpyDtoDAsync(to, from + 4, 8, 0));
  EXPECT_OK(veda().CtxSynchronize());
  EXPECT_EQ(read(to, 2), (std::vector<int32_t>{2, 3}));
  EXPECT_OK(veda().Memcpy(to, from, 4));
  EXPECT_OK(veda().MemcpyDtoD(to + 4, from, 4));
  EXPECT_EQ(read(to, 2), (std::vector<int32_t>{1, 1}));
  EXPECT_OK(veda().MemcpyAsync(to, from, 12, 0));
  EXPECT_CODE(VEDA_ERROR_OUT_OF_BOUNDS, veda().CtxSynchronize());
}

TEST_F(MemoryTest, FailedRequestStaysInTheQueue) {
  start();
  const VEDAdeviceptr pointer = allocate(8);
  EXPECT_OK(veda().MemcpyAsync(pointer, VEDA_SET_PTR(0, 99, 0), 8, 0));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_VPTR, veda().StreamSynchronize(0));
  EXPECT_CODE(VEDA_ERROR_VEO_COMMAND_ERROR, veda().StreamSynchronize(0));
  EXPECT_CODE(VEDA_ERROR_VEO_COMMAND_ERROR, veda().CtxSynchronize());
}

TEST_F(MemoryTest, FailedRequestMayLeaveTheQueue) {
  start({{"KEEP_FAILED", "0"}});
  const VEDAdeviceptr pointer = allocate(8);
  EXPECT_OK(veda().MemcpyAsync(pointer, VEDA_SET_PTR(0, 99, 0), 8, 0));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_VPTR, veda().StreamSynchronize(0));
  EXPECT_OK(veda().StreamSynchronize(0));
}

TEST_F(MemoryTest, Free) {
  start();
  const VEDAdeviceptr pointer = allocate(8);
  EXPECT_CODE(VEDA_ERROR_OFFSETTED_VPTR_NOT_ALLOWED, veda().MemFree(pointer + 1));
  EXPECT_OK(veda().MemFreeAsync(pointer, 0));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_VPTR, veda().MemFree(pointer));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_VPTR, veda().MemFree(nullptr));
  VEDAdeviceptr at_once = nullptr;
  EXPECT_OK(veda().MemAllocAsync(&at_once, 8, 0));
  EXPECT_NE(at_once, pointer);  // indices go up
  EXPECT_OK(veda().MemFreeAsync(at_once, 0));
  EXPECT_OK(veda().CtxSynchronize());
}

TEST_F(MemoryTest, FreedMemoryIsGoneFromTheDevice) {
  start();
  const VEDAdeviceptr pointer = allocate(8);
  const uint64_t address = raw(pointer);
  EXPECT_EQ(run("read_word", {address}), 0u);
  EXPECT_OK(veda().MemFree(pointer));
  EXPECT_CODE(VEDA_ERROR_VEO_COMMAND_EXCEPTION, launch("read_word", {address}, -1));
}

TEST_F(MemoryTest, InfoCountsWhatTheHostKnows) {
  start({{"MEMORY", "1M"}});
  size_t free = 0;
  size_t total = 0;
  EXPECT_OK(veda().MemGetInfo(&free, &total));
  EXPECT_EQ(total, size_t{1} << 20);
  EXPECT_EQ(free, total);
  const VEDAdeviceptr pointer = allocate(1000);
  EXPECT_EQ(free_bytes(), total - 1000);
  VEDAdeviceptr late = nullptr;
  EXPECT_OK(veda().MemAllocAsync(&late, 2 << 20, 0));
  EXPECT_EQ(free_bytes(), 0u);  // it counts, though the device had no memory for it
  EXPECT_OK(veda().MemFree(late));
  EXPECT_OK(veda().MemFree(pointer));
  EXPECT_EQ(free_bytes(), total);
  EXPECT_OK(veda().MemReport());
}

TEST_F(MemoryTest, LateOutOfMemory) {
  start({{"MEMORY", "1M"}});
  VEDAdeviceptr pointer = nullptr;
  EXPECT_OK(veda().MemAllocAsync(&pointer, 2 << 20, 0));
  EXPECT_OK(veda().CtxSynchronize());
  EXPECT_EQ(raw(pointer), 0u);
  const VEDAdeviceptr all = allocate(1 << 20);
  EXPECT_NE(raw(all), 0u);
  const VEDAdeviceptr more = allocate(1);  // no error of MemAlloc either
  EXPECT_EQ(raw(more), 0u);
  EXPECT_OK(veda().MemFree(all));
  EXPECT_NE(raw(allocate(1)), 0u);
}

TEST_F(MemoryTest, PlantedLateOutOfMemory) {
  start({{"FAULT", "oom:*:2"}});
  EXPECT_NE(raw(allocate(8)), 0u);
  EXPECT_EQ(raw(allocate(8)), 0u);
  EXPECT_NE(raw(allocate(8)), 0u);
}

TEST_F(MemoryTest, CopyWithoutMemoryWouldEndTheProcess) {
  start({{"MEMORY", "1M"}, {"ABORT", "0"}});
  VEDAdeviceptr pointer = nullptr;
  char data[8] = {};
  EXPECT_OK(veda().MemAllocAsync(&pointer, 2 << 20, 0));
  ::testing::internal::CaptureStderr();
  EXPECT_CODE(VEDA_ERROR_ASSERT, veda().MemcpyHtoDAsync(pointer, data, 8, 0));
  EXPECT_CODE(VEDA_ERROR_ASSERT, veda().MemcpyDtoHAsync(data, pointer, 8, 0));
  const std::string said = ::testing::internal::GetCapturedStderr();
  EXPECT_NE(said.find("its allocation failed late"), std::string::npos) << said;
  EXPECT_NE(said.find("uninitialized vptr"), std::string::npos) << said;
}

TEST_F(MemoryTest, CopyWithoutMemoryEndsTheProcess) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_DEATH(
      {
        start({{"MEMORY", "1M"}});
        VEDAdeviceptr pointer = nullptr;
        veda().MemAllocAsync(&pointer, 2 << 20, 0);
        char data[8] = {};
        veda().MemcpyHtoDAsync(pointer, data, 8, 0);
      },
      "the real library ends the process here");
}

TEST_F(MemoryTest, IndicesRunOut) {
  start({{"INDICES", "3"}});
  VEDAdeviceptr pointers[3] = {};
  for (VEDAdeviceptr& pointer : pointers) EXPECT_OK(veda().MemAllocAsync(&pointer, 0, 0));
  VEDAdeviceptr more = nullptr;
  EXPECT_CODE(VEDA_ERROR_OUT_OF_MEMORY, veda().MemAllocAsync(&more, 0, 0));
  EXPECT_OK(veda().MemFreeAsync(pointers[1], 0));
  EXPECT_OK(veda().MemAllocAsync(&more, 0, 0));
  EXPECT_EQ(more, pointers[1]);  // it wraps, past those in use
}

TEST_F(MemoryTest, DelayedAllocation) {
  start();
  VEDAdeviceptr pointer = nullptr;
  ASSERT_OK(veda().MemAllocAsync(&pointer, 0, 0));
  EXPECT_EQ(raw(pointer), 0u);
  size_t size = 1;
  EXPECT_OK(veda().MemSize(&size, pointer));
  EXPECT_EQ(size, 0u);
  EXPECT_EQ(run("allocate_delayed", {bits(pointer), 16, 5}), uint64_t{VEDA_SUCCESS});
  EXPECT_EQ(read(pointer, 4), (std::vector<int32_t>{5, 5, 5, 5}));
  EXPECT_OK(veda().MemSize(&size, pointer));
  EXPECT_EQ(size, 16u);
  EXPECT_EQ(run("allocate_delayed", {bits(pointer), 16, 5}),
            uint64_t{VEDA_ERROR_VPTR_ALREADY_ALLOCATED});
  EXPECT_EQ(run("allocate_only", {bits(pointer), 20}), uint64_t{VEDA_ERROR_INVALID_VALUE});
  EXPECT_EQ(run("size_of", {bits(pointer)}), 16u);
  EXPECT_OK(veda().MemFree(pointer));
}

TEST_F(MemoryTest, DelayedAllocationWithoutMemory) {
  start({{"MEMORY", "1K"}});
  const VEDAdeviceptr pointer = allocate(0);
  EXPECT_EQ(run("allocate_only", {bits(pointer), 2048}), uint64_t{VEDA_ERROR_OUT_OF_MEMORY});
  EXPECT_EQ(raw(pointer), 0u);
}

TEST_F(MemoryTest, DelayedAllocationThatNobodyMade) {
  start({{"ABORT", "0"}});
  const VEDAdeviceptr pointer = allocate(0);
  char data[4] = {};
  EXPECT_CODE(VEDA_ERROR_ASSERT, veda().MemcpyHtoD(pointer, data, 4));
  EXPECT_EQ(run("size_of", {bits(pointer)}), 1'000'000u + VEDA_ERROR_UNKNOWN_VPTR);
  EXPECT_OK(veda().MemFree(pointer));
}

TEST_F(MemoryTest, ReleaseLetsTheKernelFree) {
  start();
  const VEDAdeviceptr ordinary = allocate(8);
  EXPECT_CODE(VEDA_ERROR_CANT_RELEASE_NON_DELAYED_VPTR, veda().MemRelease(ordinary));
  EXPECT_EQ(run("free_delayed", {bits(ordinary)}), uint64_t{VEDA_ERROR_CANT_FREE_NON_DELAYED_VPTR});
  const VEDAdeviceptr pointer = allocate(0);
  EXPECT_CODE(VEDA_ERROR_CANT_RELEASE_NON_DEVICE_ALLOCATED_VPTR, veda().MemRelease(pointer));
  EXPECT_EQ(run("allocate_only", {bits(pointer), 64}), uint64_t{VEDA_SUCCESS});
  EXPECT_OK(veda().MemRelease(pointer));
  EXPECT_CODE(VEDA_ERROR_CANT_RELEASE_ALREADY_RELEASED_VPTR, veda().MemRelease(pointer));
  EXPECT_EQ(run("free_delayed", {bits(pointer)}), uint64_t{VEDA_SUCCESS});
  EXPECT_EQ(run("free_delayed", {bits(pointer)}), uint64_t{VEDA_ERROR_UNKNOWN_VPTR});
  EXPECT_OK(veda().MemFree(pointer));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_VPTR, veda().MemFree(pointer));
}

TEST_F(MemoryTest, ReleasedMemoryIsTheKernels) {
  start();
  const VEDAdeviceptr pointer = allocate(0);
  EXPECT_EQ(run("allocate_only", {bits(pointer), 64}), uint64_t{VEDA_SUCCESS});
  EXPECT_OK(veda().MemRelease(pointer));
  EXPECT_EQ(free_bytes(), size_t{1} << 30);
  EXPECT_OK(veda().MemFree(pointer));
  EXPECT_EQ(run("size_of", {bits(pointer)}), 64u);
  EXPECT_EQ(run("free_delayed", {bits(pointer)}), uint64_t{VEDA_SUCCESS});
}

TEST_F(MemoryTest, Pitch) {
  start();
  VEDAdeviceptr pointer = nullptr;
  size_t pitch = 0;
  EXPECT_OK(veda().MemAllocPitch(&pointer, &pitch, 24, 5, 4));
  EXPECT_EQ(pitch, 24u);
  size_t size = 0;
  EXPECT_OK(veda().MemSize(&size, pointer));
  EXPECT_EQ(size, 120u);
  EXPECT_OK(veda().MemAllocPitchAsync(&pointer, &pitch, 7, 3, 1, 0));
  EXPECT_EQ(pitch, 7u);
}

TEST_F(MemoryTest, Swap) {
  start();
  const VEDAdeviceptr a = filled({1});
  const VEDAdeviceptr b = filled({2, 3});
  EXPECT_OK(veda().MemSwap(a, b));
  EXPECT_EQ(read(a, 2), (std::vector<int32_t>{2, 3}));
  EXPECT_EQ(run("size_of", {bits(b)}), 4u);
  EXPECT_OK(veda().MemSwapAsync(a, b, 0));
  EXPECT_OK(veda().CtxSynchronize());
  EXPECT_EQ(read(a, 1), (std::vector<int32_t>{1}));
  EXPECT_EQ(run("swap_pointers", {bits(a), bits(b)}), uint64_t{VEDA_SUCCESS});
  EXPECT_EQ(run("size_of", {bits(a)}), 8u);
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_VPTR, veda().MemSwap(a, VEDA_SET_PTR(0, 99, 0)));
}

TEST_F(MemoryTest, AssignNamesMemoryThatExists) {
  start();
  const VEDAdeviceptr owner = filled({1, 2, 3, 4});
  VEDAdeviceptr part = nullptr;
  EXPECT_OK(veda().MemAssign(&part, reinterpret_cast<void*>(raw(owner) + 4), 8, 0));
  EXPECT_EQ(read(part, 2), (std::vector<int32_t>{2, 3}));
  VEDAdeviceptr start_of_it = nullptr;
  EXPECT_OK(veda().MemAssign(&start_of_it, reinterpret_cast<void*>(raw(owner)), 8, 0));
  EXPECT_OK(veda().MemFree(start_of_it));
  EXPECT_OK(veda().MemFree(part));
  EXPECT_EQ(read(owner, 4), (std::vector<int32_t>{1, 2, 3, 4}));
  EXPECT_CODE(VEDA_ERROR_INVALID_VALUE, veda().MemAssign(&part, nullptr, 8, 0));
}

TEST_F(MemoryTest, OverrideOnce) {
  start({{"DEVICES", "2"}});
  const VEDAdeviceptr pointer = allocate(64);
  EXPECT_CODE(VEDA_ERROR_OFFSET_NOT_ALLOWED, veda().MemAllocOverrideOnce(pointer + 1));
  EXPECT_CODE(VEDA_ERROR_INVALID_DEVICE, veda().MemAllocOverrideOnce(VEDA_SET_PTR(1, 1, 0)));
  EXPECT_OK(veda().MemAllocOverrideOnce(pointer));
  EXPECT_CODE(VEDA_ERROR_OVERRIDE_ALREADY_SET, veda().MemAllocOverrideOnce(pointer));
  EXPECT_EQ(allocate(64), pointer);
  EXPECT_NE(allocate(64), pointer);
  EXPECT_OK(veda().MemAllocOverrideOnce(pointer));
  VEDAdeviceptr other = nullptr;
  EXPECT_CODE(VEDA_ERROR_INVALID_VALUE, veda().MemAlloc(&other, 65));
}

TEST_F(MemoryTest, HostMemoryAndOptions) {
  void* memory = nullptr;
  EXPECT_OK(veda().MemAllocHost(&memory, 100));
  ASSERT_NE(memory, nullptr);
  static_cast<char*>(memory)[99] = 1;
  EXPECT_OK(veda().MemFreeHost(memory));
  start();
  EXPECT_OK(veda().MemOpt(1, 2));
  EXPECT_OK(veda().MemOptAsync(1, 2, 0));
  EXPECT_CODE(VEDA_ERROR_UNKNOWN_STREAM, veda().MemOptAsync(1, 2, 1));
}

TEST_F(MemoryTest, TwoDevices) {
  start({{"DEVICES", "2"}});
  const VEDAdeviceptr here = filled({1, 2, 3});
  VEDAcontext other = nullptr;
  ASSERT_OK(veda().CtxCreate(&other, VEDA_CONTEXT_MODE_OMP, 1));
  EXPECT_NE(veda().process(0), veda().process(1));
  const VEDAdeviceptr there = allocate(12);
  // Copies and frees use the device of the pointer, whatever is current.
  EXPECT_EQ(read(here, 3), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_OK(veda().MemcpyDtoDAsync(there, here, 12, 0));
  EXPECT_OK(veda().CtxSynchronize());
  EXPECT_EQ(read(there, 3), (std::vector<int32_t>{1, 2, 3}));
  EXPECT_OK(veda().MemcpyDtoD(here + 4, there, 8));
  EXPECT_EQ(read(here, 3), (std::vector<int32_t>{1, 1, 2}));
  EXPECT_CODE(VEDA_ERROR_OUT_OF_BOUNDS, veda().MemcpyDtoDAsync(there, here, 13, 0));
  EXPECT_CODE(VEDA_ERROR_INVALID_CONTEXT, veda().MemSwap(here, there));
  EXPECT_OK(veda().MemFree(here));
  EXPECT_OK(veda().MemFree(there));
}

TEST_F(MemoryTest, ManyThreads) {
  start();
  std::vector<std::thread> threads;
  for (int thread = 0; thread < 4; ++thread) {
    threads.emplace_back([this, thread] {
      EXPECT_OK(veda().CtxSetCurrent(context));
      for (int round = 0; round < 20; ++round) {
        const VEDAdeviceptr pointer = filled({thread, round});
        EXPECT_EQ(read(pointer, 2), (std::vector<int32_t>{thread, round}));
        EXPECT_OK(veda().MemFreeAsync(pointer, 0));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_OK(veda().CtxSynchronize());
}

}  // namespace
}  // namespace emulated::testing
