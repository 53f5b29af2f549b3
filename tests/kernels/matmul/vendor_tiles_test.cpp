// tests/kernels/matmul/vendor_tiles_test.cpp: which tiles a vendor's devices begin with.
#include "kernels/matmul/vendor_tiles.h"

#include <gtest/gtest.h>

#include <cstring>

// labels of the file: opencl_cpu
namespace {

using namespace graft;

graft_device_properties device_of(const char* vendor, uint32_t group, uint64_t local) {
  graft_device_properties p{};
  std::strncpy(p.vendor, vendor, sizeof(p.vendor) - 1);
  p.max_group_size = group;
  p.local_memory_bytes = local;
  return p;
}

TEST(VendorTiles, FollowsTheVendor) {
  const TileShape nvidia{128, 128, 8, 8, 8, 4};
  EXPECT_EQ(vendor_tile(device_of("NVIDIA Corporation", 1024, 49152)), nvidia);
  const TileShape amd = vendor_tile(device_of("Advanced Micro Devices, Inc.", 256, 65536));
  EXPECT_EQ(amd, vendor_tile(device_of("AMD", 256, 65536)));
  EXPECT_NE(amd, vendor_tile(device_of("AuthenticAMD", 256, 65536)));
  const TileShape other = vendor_tile(device_of("Some Company", 256, 32768));
  EXPECT_EQ(other, vendor_tile(device_of("", 256, 32768)));
  EXPECT_EQ(other, vendor_tile(device_of("Charm", 256, 32768)));  // not Arm
  for (const char* vendor : {"Intel(R) Corporation", "Apple", "ARM", "QUALCOMM"}) {
    EXPECT_NE(other, vendor_tile(device_of(vendor, 256, 32768))) << vendor;
  }
}

TEST(VendorTiles, CandidatesFitAndDiffer) {
  const auto properties = device_of("NVIDIA", 64, 8192);
  const auto shapes = candidate_tiles(properties, 4);
  ASSERT_GE(shapes.size(), 3u);
  for (size_t i = 0; i < shapes.size(); ++i) {
    EXPECT_LE(shapes[i].group(), 64);
    for (size_t j = 0; j < i; ++j) EXPECT_NE(shapes[i], shapes[j]);
  }
  EXPECT_TRUE(candidate_tiles(device_of("", 1, 0), 4).empty());
}

}  // namespace
