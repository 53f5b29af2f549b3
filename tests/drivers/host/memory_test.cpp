// tests/drivers/host/memory_test.cpp: device memory: limits, views, protection, copies and fills.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <map>
#include <random>

#include "driver.h"

namespace graft::host_test {
namespace {

constexpr uint64_t kMegabyte = 1 << 20;

uint64_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  uint64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * uint64_t(sysconf(_SC_PAGESIZE));
}

TEST(HostMemory, AllocationsDoNotOverlapAndAreAligned) {
  Session s;
  std::mt19937_64 random(5);
  std::map<graft_address, uint64_t> held;
  for (int i = 0; i < 2000; ++i) {
    if (held.size() > 50 || (!held.empty() && random() % 3 == 0)) {
      auto victim = std::next(held.begin(), int64_t(random() % held.size()));
      ASSERT_EQ(driver().memory_free(s.device, victim->first), GRAFT_OK);
      held.erase(victim);
      continue;
    }
    uint64_t bytes = 1 + random() % (uint64_t{1} << (9 + random() % 16));
    graft_address address = 0;
    ASSERT_EQ(driver().memory_allocate(s.device, bytes, &address), GRAFT_OK) << last_message();
    EXPECT_EQ(address % 4096, 0u);
    auto next = held.lower_bound(address);
    if (next != held.end()) {
      EXPECT_LE(address + bytes, next->first);
    }
    if (next != held.begin()) {
      auto previous = std::prev(next);
      EXPECT_LE(previous->first + previous->second, address);
    }
    held[address] = bytes;
  }
  for (auto [address, bytes] : held) driver().memory_free(s.device, address);
  uint64_t free_bytes = 0, total = 0;
  ASSERT_EQ(driver().memory_info(s.device, &free_bytes, &total), GRAFT_OK);
  EXPECT_EQ(free_bytes, total);
}

TEST(HostMemory, FreedMemoryGoesBackAndComesBackAsZeros) {
  Session s;
  constexpr uint64_t kBytes = 64 * kMegabyte;
  graft_address address = 0;
  ASSERT_EQ(driver().memory_allocate(s.device, kBytes, &address), GRAFT_OK);
  uint8_t seven = 7;
  ASSERT_EQ(driver().fill(s.stream, address, kBytes, &seven, 1, 0), GRAFT_OK);
  ASSERT_EQ(driver().stream_synchronize(s.stream), GRAFT_OK);
  uint64_t full = resident_bytes();
  ASSERT_EQ(driver().memory_free(s.device, address), GRAFT_OK);
  EXPECT_LT(resident_bytes() + kBytes / 2, full);
  graft_address again = s.allocate(kBytes);
  uint64_t value = 1;
  ASSERT_EQ(s.download(&value, again + kBytes / 2, 8), GRAFT_OK);
  EXPECT_EQ(value, 0u);
}

TEST(HostMemory, FillsWithPatternsOfEverySize) {
  Session s;
  constexpr uint64_t kBytes = 3 * kMegabyte;
  graft_address address = s.allocate(kBytes);
  const uint8_t pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  std::vector<uint8_t> result(kBytes);
  for (uint32_t size : {1, 2, 4, 8, 16}) {
    ASSERT_EQ(driver().fill(s.stream, address + size, kBytes - size, pattern, size, 0), GRAFT_OK);
    ASSERT_EQ(s.download(result.data(), address, kBytes), GRAFT_OK);
    for (uint64_t i = size; i < kBytes; ++i) ASSERT_EQ(result[i], pattern[i % size]) << i;
  }
  EXPECT_EQ(driver().fill(s.stream, address, 12, pattern, 3, 0), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().fill(s.stream, address, 12, pattern, 8, 0), GRAFT_INVALID_ARGUMENT);
}

TEST(HostMemory, CopiesLargeBlocksWhole) {
  Session s;
  constexpr uint64_t kBytes = 5 * kMegabyte + 13;
  std::vector<char> values(kBytes), result(kBytes);
  for (uint64_t i = 0; i < kBytes; ++i) values[i] = char(i * 31 / 7);
  graft_address a = s.allocate(kBytes), b = s.allocate(kBytes);
  ASSERT_EQ(s.upload(a, values.data(), kBytes), GRAFT_OK);
  ASSERT_EQ(driver().copy(s.stream, b, a, kBytes, GRAFT_DEVICE_TO_DEVICE, 0), GRAFT_OK);
  ASSERT_EQ(s.download(result.data(), b, kBytes), GRAFT_OK);
  EXPECT_EQ(result, values);
}

TEST(HostMemory, RefusesRangesThatLeaveTheirAllocation) {
  Session s;
  graft_address a = s.allocate(4096);
  std::vector<char> host(8192);
  EXPECT_EQ(s.upload(a, host.data(), 4097), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(s.upload(a + 4096, host.data(), 1), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(s.upload(0, host.data(), 1), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().copy(s.stream, a, 0, 4, GRAFT_HOST_TO_DEVICE, 0), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().memory_free(s.device, a + 512), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(s.upload(a, host.data(), 0), GRAFT_OK);
}

TEST(HostMemory, RefusesFreedMemoryThatItFilledJustBefore) {
  Session s;
  graft_address a = s.allocate(4096);
  const uint32_t pattern = 7;
  ASSERT_EQ(driver().fill(s.stream, a, 4096, &pattern, 4, 0), GRAFT_OK);
  ASSERT_EQ(driver().fill(s.stream, a + 4092, 4, &pattern, 4, 0), GRAFT_OK);
  EXPECT_EQ(driver().fill(s.stream, a + 4092, 8, &pattern, 4, 0), GRAFT_INVALID_ARGUMENT);
  ASSERT_EQ(driver().stream_synchronize(s.stream), GRAFT_OK);
  ASSERT_EQ(driver().memory_free(s.device, a), GRAFT_OK);
  EXPECT_EQ(driver().fill(s.stream, a, 4, &pattern, 4, 0), GRAFT_INVALID_ARGUMENT);
}

TEST(HostMemory, ViewShowsTheSameBytes) {
  Session s;
  graft_address a = s.allocate(4096);
  uint32_t value = 42;
  ASSERT_EQ(s.upload(a + 8, &value, 4), GRAFT_OK);
  void* view = nullptr;
  ASSERT_EQ(driver().memory_host_view(s.device, a + 8, 4, &view), GRAFT_OK);
  EXPECT_EQ(*static_cast<uint32_t*>(view), 42u);
  EXPECT_EQ(driver().memory_host_view(s.device, a + 4000, 97, &view), GRAFT_INVALID_ARGUMENT);
}

TEST(HostMemory, PinnedBlocksAreCountedOut) {
  Session s;
  void* pinned = nullptr;
  ASSERT_EQ(driver().host_allocate(s.device, 10000, &pinned), GRAFT_OK);
  std::memset(pinned, 1, 10000);
  EXPECT_EQ(driver().host_free(s.device, pinned), GRAFT_OK);
  EXPECT_EQ(driver().host_free(s.device, pinned), GRAFT_INVALID_ARGUMENT);
}

TEST(HostMemory, HasALimitPerDevice) {
  if (reran({"GRAFT_HOST_MEMORY=1048576"})) return;
  Session s;
  graft_address address = 0;
  EXPECT_EQ(driver().memory_allocate(s.device, 2 * kMegabyte, &address), GRAFT_OUT_OF_MEMORY);
  EXPECT_NE(last_message().find("1048576 of 1048576 bytes free"), std::string::npos);
  s.allocate(kMegabyte / 2);
  EXPECT_EQ(driver().memory_allocate(s.device, kMegabyte, &address), GRAFT_OUT_OF_MEMORY);
  s.allocate(kMegabyte / 2);
}

TEST(HostMemory, HasVirtualDevices) {
  if (reran({"GRAFT_HOST_DEVICES=3"})) return;
  Session one(0), two(1);
  std::vector<int> values(1000, 3), result(1000);
  graft_address a = one.allocate(4000), b = two.allocate(4000);
  ASSERT_EQ(one.upload(a, values.data(), 4000), GRAFT_OK);
  ASSERT_EQ(driver().stream_synchronize(one.stream), GRAFT_OK);
  ASSERT_EQ(driver().peer_copy(two.stream, b, one.device, a, 4000, 0), GRAFT_OK);
  ASSERT_EQ(two.download(result.data(), b, 4000), GRAFT_OK);
  EXPECT_EQ(result, values);
  EXPECT_EQ(two.download(result.data(), a, 4000), GRAFT_INVALID_ARGUMENT);
  uint32_t count = 0;
  driver().device_count(&count);
  EXPECT_EQ(count, 3u);
}

// The core says which of them are too many.
TEST(HostMemory, CutsNoDevicesSilently) {
  if (reran({"GRAFT_HOST_DEVICES=70"})) return;
  uint32_t count = 0;
  ASSERT_EQ(driver().device_count(&count), GRAFT_OK);
  EXPECT_EQ(count, 70u);
  Session last(69);
  last.allocate(4096);
}

void read_by_the_host() {
  rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  Session s;
  volatile char* pointer = reinterpret_cast<volatile char*>(s.allocate(4096) + 100);
  *pointer = char(*pointer + 1);
}

#if !defined(__SANITIZE_ADDRESS__)  // the sanitizer reports the fault in its own words
TEST(HostMemory, ReadByTheHostDiesWithOneLine) {
  if (is_rerun()) return read_by_the_host();
  std::string output;
  EXPECT_NE(run_in_environment("HostMemory.ReadByTheHostDies*", kRerun, &output), 0);
  const char* line = "graft: host code read device memory at 0x";
  size_t at = output.find(line);
  ASSERT_NE(at, std::string::npos) << output;
  EXPECT_NE(output.find("064: copy the tensor to the CPU first\n"), std::string::npos) << output;
  EXPECT_EQ(output.find(line, at + 1), std::string::npos);
}
#endif

TEST(HostMemory, ReadByTheHostIsAllowedWithoutProtection) {
  if (reran({"GRAFT_HOST_PROTECT=0"})) return;
  read_by_the_host();
}

TEST(HostMemory, SuiteHoldsWithoutProtection) {
  std::string tests = "HostMemory.*-*ReadBy*:*Has*:*Suite*";
  EXPECT_EQ(run_in_environment(tests, "GRAFT_HOST_PROTECT=0"), 0);
}

// Without a file behind it.
TEST(HostMemory, SuiteHoldsWithoutProtectionAndSharing) {
  std::string tests = "HostMemory.*-*ReadBy*:*Has*:*Suite*";
  EXPECT_EQ(run_in_environment(tests, "GRAFT_HOST_PROTECT=0 GRAFT_HOST_SHARE=0"), 0);
}

}  // namespace
}  // namespace graft::host_test
