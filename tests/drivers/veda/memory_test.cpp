// tests/drivers/veda/memory_test.cpp: allocations, their limits, copies and fills.
#include <gtest/gtest.h>

#include <cstring>

#include "driver.h"
#include "tests/drivers/host/driver.h"

namespace graft::veda_test {
namespace {

using host_test::reran;

// VEDA tells of it when the memory is used, by ending the process.
TEST(VedaMemory, TooMuchIsToldAtTheAllocation) {
  if (reran(
          {emulated("MEMORY=1M ABORT=1"), emulated("MEMORY=1M ABORT=1", "GRAFT_VE_MODE=scalar")})) {
    return;
  }
  Session s;
  s.allocate(700 << 10);
  graft_address second = 0;
  EXPECT_EQ(driver().memory_allocate(s.device, 700 << 10, &second), GRAFT_OUT_OF_MEMORY);
  EXPECT_EQ(second, 0u);
  EXPECT_NE(last_message().find("716800 bytes requested from"), std::string::npos)
      << last_message();
  EXPECT_EQ(driver().memory_allocate(s.device, 2 << 20, &second), GRAFT_OUT_OF_MEMORY);
  EXPECT_EQ(driver().memory_allocate(s.device, UINT64_MAX, &second), GRAFT_OUT_OF_MEMORY);
  EXPECT_EQ(s.get(s.put({1, 2}), 2), (std::vector<int>{1, 2}));
}

TEST(VedaMemory, AnAllocationThatFailsOnTheDeviceIsTold) {
  if (reran({emulated("ABORT=1")})) return;
  Session s;
  plant("", "oom:*:1");
  graft_address at = 0;
  EXPECT_EQ(driver().memory_allocate(s.device, 64, &at), GRAFT_OUT_OF_MEMORY) << last_message();
  EXPECT_EQ(at, 0u);
  EXPECT_EQ(s.get(s.put({1, 2}), 2), (std::vector<int>{1, 2}));
}

TEST(VedaMemory, AllPointersInUseIsOutOfMemory) {
  if (reran({emulated("INDICES=10")})) return;
  Session s;
  std::vector<graft_address> all;
  graft_status status = GRAFT_OK;
  for (graft_address at = 0; status == GRAFT_OK && all.size() < 20;) {
    status = driver().memory_allocate(s.device, 64, &at);
    if (status == GRAFT_OK) all.push_back(at);
  }
  EXPECT_EQ(status, GRAFT_OUT_OF_MEMORY);
  EXPECT_NE(last_message().find("VEDA_ERROR_OUT_OF_MEMORY in vedaMemAlloc"), std::string::npos)
      << last_message();
  EXPECT_GE(all.size(), 8u);
  for (graft_address each : all) EXPECT_EQ(driver().memory_free(s.device, each), GRAFT_OK);
  EXPECT_EQ(s.get(s.put({1, 2}), 2), (std::vector<int>{1, 2}));
}

TEST(VedaMemory, InfoCountsWhatIsHeld) {
  if (reran({emulated("MEMORY=1M")})) return;
  Session s;
  uint64_t before = 0, after = 0, total = 0;
  EXPECT_EQ(driver().memory_info(s.device, &before, &total), GRAFT_OK);
  EXPECT_EQ(total, 1u << 20);
  s.allocate(1000);
  EXPECT_EQ(driver().memory_info(s.device, &after, &total), GRAFT_OK);
  EXPECT_EQ(before - after, 1000u);
}

TEST(VedaMemory, WhatIsNoMemoryIsRefusedBeforeVedaSeesIt) {
  if (reran({emulated("ABORT=1")})) return;
  Session s;
  int value = 1;
  const graft_address x = s.put({1, 2});
  EXPECT_EQ(s.upload(x, &value, 9), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(s.upload(x + 5, &value, 4), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(s.upload(4096, &value, 4), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(s.upload(x, nullptr, 4), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().fill(s.stream, x, 9, &value, 1, 0), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().memory_free(s.device, x + 4), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().copy(s.stream, x, x + 4, 8, GRAFT_DEVICE_TO_DEVICE, 0),
            GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(s.get(x, 2), (std::vector<int>{1, 2}));
}

TEST(VedaMemory, FillsAtAnyAddress) {
  if (reran({emulated()})) return;
  Session s;
  constexpr uint64_t kRoom = 64;
  const graft_address room = s.allocate(kRoom);
  const uint8_t pattern[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
  for (uint32_t width : {1u, 2u, 4u, 8u, 16u}) {
    for (uint64_t begin = 0; begin < 18; ++begin) {
      for (uint64_t bytes : {1, 3, 15, 16, 17, 40}) {
        uint8_t got[kRoom], expected[kRoom] = {};
        const uint8_t zero = 0;
        ASSERT_EQ(driver().fill(s.stream, room, kRoom, &zero, 1, 0), GRAFT_OK);
        ASSERT_EQ(driver().fill(s.stream, room + begin, bytes, pattern, width, 0), GRAFT_OK);
        for (uint64_t i = 0; i < bytes; ++i) expected[begin + i] = pattern[i % width];
        ASSERT_EQ(s.download(got, room, kRoom), GRAFT_OK) << last_message();
        ASSERT_EQ(std::memcmp(got, expected, kRoom), 0) << width << " " << begin << " " << bytes;
      }
    }
  }
}

TEST(VedaMemory, CopiesBetweenDevices) {
  if (reran({emulated("DEVICES=2"), emulated("DEVICES=2", "GRAFT_VE_MODE=scalar")})) return;
  Session a(0), b(1);
  const graft_address from = a.put({1, 2, 3}), to = b.put({0, 0, 0});
  EXPECT_EQ(driver().peer_copy(b.stream, to + 4, a.device, from, 8, 0), GRAFT_OK) << last_message();
  EXPECT_EQ(b.get(to, 3), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(driver().peer_copy(b.stream, to, a.device, from + 8, 8, 0), GRAFT_INVALID_ARGUMENT);
}

TEST(VedaMemory, KernelsLoadAddressesFromMemory) {
  if (reran({emulated(), emulated("", "GRAFT_VE_MODE=scalar")})) return;
  Session s;
  const graft_address rows[3] = {s.put({7}), s.put({8}), s.put({0, 9}) + 4};
  const graft_address table = s.allocate(sizeof rows), x = s.put({0, 0, 0});
  EXPECT_EQ(s.upload(table, rows, sizeof rows), GRAFT_OK);
  EXPECT_EQ(s.launch(s.kernel("gather"), 3, {address(table, sizeof rows), address(x, 12)}),
            GRAFT_OK)
      << last_message();
  EXPECT_EQ(s.get(x, 3), (std::vector<int>{7, 8, 9}));
}

}  // namespace
}  // namespace graft::veda_test
