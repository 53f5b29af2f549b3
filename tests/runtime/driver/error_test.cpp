// tests/runtime/driver/error_test.cpp: texts of statuses and sizes.
#include "runtime/driver/error.h"

#include <gtest/gtest.h>

#include "runtime/driver/dtype.h"

namespace graft {
namespace {

TEST(ErrorTest, CarriesStatusAndText) {
  const Error error(GRAFT_IO, "the disk is full");
  EXPECT_EQ(error.status(), GRAFT_IO);
  EXPECT_STREQ(error.what(), "the disk is full");
}

TEST(ErrorTest, NamesEveryStatus) {
  EXPECT_STREQ(status_name(GRAFT_OUT_OF_MEMORY), "OUT_OF_MEMORY");
  EXPECT_STREQ(status_text(GRAFT_DEVICE_LOST), "the device is lost");
  EXPECT_STREQ(status_name(static_cast<graft_status>(15)), "UNKNOWN_STATUS");
}

TEST(ErrorTest, WritesBytesForPeople) {
  EXPECT_EQ(bytes_text(0), "0 bytes");
  EXPECT_EQ(bytes_text(1023), "1023 bytes");
  EXPECT_EQ(bytes_text(1536), "1.50 KiB");
  EXPECT_EQ(bytes_text(uint64_t{2} << 30), "2.00 GiB");
  EXPECT_EQ(bytes_text(~uint64_t{0}), "16384.00 PiB");
}

TEST(DtypeTest, KnowsEveryType) {
  EXPECT_EQ(size_of(GRAFT_BFLOAT16), 2u);
  EXPECT_STREQ(name_of(GRAFT_COMPLEX64), "complex64");
  EXPECT_TRUE(is_floating(GRAFT_FLOAT16) && !is_floating(GRAFT_COMPLEX64));
  EXPECT_TRUE(is_integral(GRAFT_INT64) && !is_integral(GRAFT_BOOL));
  EXPECT_TRUE(is_integral(GRAFT_BOOL, true));
  EXPECT_EQ(part_of(GRAFT_COMPLEX128), GRAFT_FLOAT64);
  EXPECT_EQ(dtype_of<float>, GRAFT_FLOAT32);
}

}  // namespace
}  // namespace graft
