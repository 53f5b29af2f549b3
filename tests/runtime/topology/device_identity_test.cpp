// tests/runtime/topology/device_identity_test.cpp: what a driver says of a device is taken or
// refused.
#include "runtime/topology/device_identity.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "tests/runtime/driver/fake_driver.h"

namespace graft {
namespace {

using fake::error_of;
using fake::has;

DeviceIdentity identity() {
  const auto driver = Driver::adopt(&fake::query, "/nowhere/fake.so");
  return read_identity(*driver, 0);
}

TEST(DeviceIdentityTest, NothingIsKnownWithoutTheSlot) {
  fake::Fake fake;
  const DeviceIdentity none = identity();
  EXPECT_FALSE(none.uuid || none.pci);
  EXPECT_EQ(none.driver_version + none.firmware_version, "");
}

TEST(DeviceIdentityTest, WhatTheDriverKnowsIsTaken) {
  fake::Fake fake;
  fake::table().device_identity = [](uint32_t, graft_device_identity* out) {
    out->known = GRAFT_IDENTITY_PCI | 1u << 31;
    out->pci_domain = 1, out->pci_bus = 0x3b, out->pci_device = 2, out->pci_function = 3;
    std::memset(out->uuid, 7, sizeof out->uuid);
    std::strcpy(out->driver_version, "535.1\n\x01");
    std::memset(out->firmware_version, 'f', sizeof out->firmware_version);
    return GRAFT_OK;
  };
  const DeviceIdentity found = identity();
  EXPECT_FALSE(found.uuid) << "known does not have its bit";
  ASSERT_TRUE(found.pci);
  EXPECT_EQ(found.pci->domain, 1u);
  EXPECT_EQ(found.pci->bus, 0x3bu);
  EXPECT_EQ(found.pci->device, 2u);
  EXPECT_EQ(found.pci->function, 3u);
  EXPECT_EQ(found.driver_version, "535.1 ?");
  EXPECT_EQ(found.firmware_version, std::string(64, 'f')) << "no zero byte ended it";
}

TEST(DeviceIdentityTest, AFailureAndAnOverrunAreErrors) {
  fake::Fake fake;
  fake::table().device_identity = [](uint32_t, graft_device_identity*) { return GRAFT_IO; };
  EXPECT_TRUE(has(error_of([] { identity(); }), "device_identity"));
  fake::table().device_identity = [](uint32_t, graft_device_identity* out) {
    reinterpret_cast<char*>(out + 1)[8] = 1;
    return GRAFT_OK;
  };
  EXPECT_TRUE(has(error_of([] { identity(); }), "wrote more than struct_size"));
}

}  // namespace
}  // namespace graft
