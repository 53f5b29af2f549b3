// tests/runtime/driver/device_name_test.cpp: a vendor's name for its devices reaches their labels.
#include "runtime/driver/device_name.h"

#include <gtest/gtest.h>

namespace graft {
namespace {

TEST(DeviceName, FollowsTheVendor) {
  EXPECT_EQ(device_label(1), "graft:1");
  set_device_type_name("npu");
  EXPECT_EQ(device_label(0), "npu:0");
  set_device_type_name("graft");
}

}  // namespace
}  // namespace graft
