// tests/runtime/topology/device_link_test.cpp: what a driver says of the way between two devices.
#include "runtime/topology/device_link.h"

#include <gtest/gtest.h>

#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

DeviceLink link() {
  const auto driver = Driver::adopt(&fake::query, "/nowhere/fake.so");
  return read_link(*driver, 0, 1);
}

TEST(DeviceLinkTest, PeerCopyDecidesWithoutTheSlot) {
  fake::Fake fake;
  EXPECT_EQ(link().kind, GRAFT_LINK_HOST);
  fake::table().peer_copy = [](graft_stream, graft_address, graft_device, graft_address, uint64_t,
                               uint32_t) { return GRAFT_OK; };
  EXPECT_EQ(link().kind, GRAFT_LINK_BUS);
}

TEST(DeviceLinkTest, WhatTheDriverSaysIsTaken) {
  fake::Fake fake;
  fake::table().device_link = [](uint32_t, uint32_t, graft_device_link* out) {
    out->kind = GRAFT_LINK_DIRECT;
    out->bytes_per_second = 50'000'000'000;
    return GRAFT_OK;
  };
  EXPECT_EQ(link().kind, GRAFT_LINK_DIRECT);
  EXPECT_EQ(link().bytes_per_second, 50'000'000'000u);
  fake::table().device_link = [](uint32_t, uint32_t, graft_device_link* out) {
    out->kind = 99;
    return GRAFT_OK;
  };
  EXPECT_EQ(link().kind, GRAFT_LINK_HOST) << "a newer driver's kind is not trusted";
  fake::table().device_link = [](uint32_t, uint32_t, graft_device_link*) { return GRAFT_IO; };
  EXPECT_TRUE(fake::has(fake::error_of([] { link(); }), "device_link"));
}

TEST(DeviceLinkTest, ADriverThatWritesPastTheStructIsTold) {
  fake::Fake fake;
  fake::table().device_link = [](uint32_t, uint32_t, graft_device_link* out) {
    reinterpret_cast<unsigned char*>(out)[sizeof(*out) + 3] = 1;
    return GRAFT_OK;
  };
  EXPECT_TRUE(fake::has(fake::error_of([] { link(); }), "more than struct_size bytes"));
}

TEST(DeviceLinkTest, EachKindHasAName) {
  EXPECT_STREQ(link_name(GRAFT_LINK_HOST), "host memory");
  EXPECT_STREQ(link_name(GRAFT_LINK_SHARED), "same memory");
}

}  // namespace
}  // namespace graft
