// tests/drivers/opencl/copy_test.cpp: copies and fills, of parts of allocations too.
#include <gtest/gtest.h>

#include <cstring>

#include "driver.h"
#include "tests/drivers/host/driver.h"

namespace graft::opencl_test {
namespace {

using host_test::reran;

TEST(OpenclCopy, PartsOfAllocations) {
  if (reran(every_memory())) return;
  Session s;
  std::vector<uint8_t> bytes(1000), back(1000);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = uint8_t(i * 7);
  const graft_address x = s.allocate(1000), y = s.allocate(1000);
  EXPECT_EQ(s.upload(x, bytes.data(), 1000), GRAFT_OK);
  EXPECT_EQ(s.upload(y, bytes.data(), 1000), GRAFT_OK);
  EXPECT_EQ(s.upload(x + 3, bytes.data() + 500, 101), GRAFT_OK);
  EXPECT_EQ(driver().copy(s.stream, y + 777, x + 1, 13, GRAFT_DEVICE_TO_DEVICE, 0), GRAFT_OK);
  EXPECT_EQ(driver().copy(s.stream, x + 700, x + 100, 55, GRAFT_DEVICE_TO_DEVICE, 0), GRAFT_OK);
  std::vector<uint8_t> first = bytes, second = bytes;
  std::memcpy(first.data() + 3, bytes.data() + 500, 101);
  std::memcpy(second.data() + 777, first.data() + 1, 13);
  std::memcpy(first.data() + 700, first.data() + 100, 55);
  EXPECT_EQ(s.download(back.data(), x, 1000), GRAFT_OK);
  EXPECT_EQ(back, first);
  EXPECT_EQ(s.download(back.data(), y, 1000), GRAFT_OK);
  EXPECT_EQ(back, second);
  EXPECT_EQ(s.download(back.data(), x + 999, 1), GRAFT_OK);
  EXPECT_EQ(back[0], first[999]);
}

TEST(OpenclCopy, FillsOfEveryWidthFromEveryByte) {
  if (reran(every_memory())) return;
  Session s;
  const graft_address x = s.allocate(128);
  uint8_t pattern[16];
  for (int i = 0; i < 16; ++i) pattern[i] = uint8_t(17 * i + 3);
  for (uint32_t width : {1u, 2u, 4u, 8u, 16u}) {
    for (uint64_t begin : {0u, 1u, 4u, 13u}) {
      for (uint64_t bytes : {1u, 15u, 16u, 97u}) {
        std::vector<uint8_t> expected(128, 0xee), back(128);
        EXPECT_EQ(s.upload(x, expected.data(), 128), GRAFT_OK);
        EXPECT_EQ(driver().fill(s.stream, x + begin, bytes, pattern, width, 0), GRAFT_OK)
            << last_message();
        for (uint64_t i = 0; i < bytes; ++i) expected[begin + i] = pattern[i % width];
        EXPECT_EQ(s.download(back.data(), x, 128), GRAFT_OK);
        EXPECT_EQ(back, expected) << width << " " << begin << " " << bytes;
      }
    }
  }
}

TEST(OpenclCopy, OutsideAnAllocationIsRefused) {
  if (reran(every_memory())) return;
  Session s;
  const graft_address x = s.allocate(64);
  char bytes[128] = "";
  EXPECT_EQ(s.upload(x + 1, bytes, 64), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(s.download(bytes, x, 65), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().fill(s.stream, x + 64, 1, bytes, 1, 0), GRAFT_INVALID_ARGUMENT);
  EXPECT_EQ(driver().copy(s.stream, x, x + 32, 64, GRAFT_DEVICE_TO_DEVICE, 0),
            GRAFT_INVALID_ARGUMENT);
  EXPECT_NE(last_message().find("64 bytes"), std::string::npos) << last_message();
  EXPECT_EQ(driver().copy(s.stream, x, 0, 0, GRAFT_HOST_TO_DEVICE, 0), GRAFT_OK);
  EXPECT_EQ(driver().fill(s.stream, x, 16, bytes, 3, 0), GRAFT_INVALID_ARGUMENT);
}

TEST(OpenclCopy, OneRefusedCommandIsOneFailedCopy) {
  if (reran({fake("fail:clEnqueueSVMMemcpy:2:-5"), fake("no_svm,fail:clEnqueueWriteBuffer:2:-5"),
             fake("no_svm,usm,fail:clEnqueueMemcpyINTEL:2:-5")})) {
    return;
  }
  Session s;
  const int value = 3;
  const graft_address x = s.put({1});
  EXPECT_NE(s.upload(x, &value, 4), GRAFT_OK);
  EXPECT_NE(last_message().find("CL_OUT_OF_RESOURCES"), std::string::npos) << last_message();
  EXPECT_EQ(s.upload(x, &value, 4), GRAFT_OK) << last_message();
  EXPECT_EQ(s.get(x, 1), std::vector<int>{3});
}

}  // namespace
}  // namespace graft::opencl_test
