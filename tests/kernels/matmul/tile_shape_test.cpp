// tests/kernels/matmul/tile_shape_test.cpp: tile shapes fit every device, and tuning files are read
// with care.
#include "kernels/matmul/tile_shape.h"

#include <gtest/gtest.h>

#include <cstring>

#include "kernels/matmul/tuned_tiles.h"
#include "kernels/matmul/vendor_tiles.h"

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

TEST(TileShape, FitsWhatTheDeviceHas) {
  for (const char* vendor : {"NVIDIA", "AMD", "Intel", "Apple", "ARM", "QUALCOMM", ""}) {
    for (const uint32_t group : {4, 32, 64, 128, 256, 1024}) {
      for (const uint64_t local : {1024, 4096, 16384, 32768, 49152}) {
        for (const uint32_t bytes : {4, 8}) {
          const auto properties = device_of(vendor, group, local);
          const auto shape = fit_tile(vendor_tile(properties), properties, bytes);
          if (!shape) {
            EXPECT_EQ(local, 1024u);
            continue;
          }
          EXPECT_LE(shape->group(), group) << shape->text();
          EXPECT_LE(static_cast<uint64_t>(shape->local_elements() * bytes), local);
          EXPECT_EQ(TileShape::parse(shape->text()), *shape);
          const TileShape small = shrink_tile(*shape, 1, 1);
          EXPECT_LE(small.local_elements(), shape->local_elements());
          EXPECT_LE(small.group(), shape->group());
          EXPECT_EQ(TileShape::parse(small.text()), small);
        }
      }
    }
  }
  EXPECT_EQ(fit_tile({64, 64, 8, 4, 4, 1}, device_of("", 256, 0), 4), std::nullopt);
  EXPECT_EQ(fit_tile({64, 64, 8, 4, 4, 1}, device_of("", 1, 32768), 4), std::nullopt);
}

TEST(TileShape, ParsesNothingElse) {
  for (const char* text :
       {"", "64x64x8_4x4", "64x64x8_4x4_v1 ", "63x64x8_4x4_v1", "64x64x8_128x4_v1",
        "64x64x8_4x4_v8", "-64x64x8_4x4_v1", "99999999999x64x8_4x4_v1", "064x64x8_4x4_v1",
        "64x64x8_64x64_v1", "0x64x8_4x4_v1"}) {
    EXPECT_EQ(TileShape::parse(text), std::nullopt) << text;
  }
}

TEST(TuningFile, ComesBackForTheSameDevice) {
  const TunedTiles tiles{{"matmul_4_small", {32, 32, 8, 4, 4, 4}},
                         {"convolution_4_large", {64, 64, 16, 8, 4, 1}}};
  std::string reason;
  const std::string text = tuning_text("device 1\ndriver 2", tiles);
  EXPECT_EQ(read_tuning(text, "device 1\ndriver 2", &reason), tiles);
  EXPECT_EQ(reason, "");
  EXPECT_EQ(read_tuning(text, "device 1\ndriver 3", &reason), std::nullopt);
  EXPECT_EQ(reason, "it was measured with another version of the driver");
  EXPECT_EQ(read_tuning("graft tuning 2\n", "", &reason), std::nullopt);
  EXPECT_EQ(reason, "it was measured with another version of Graft");
  EXPECT_EQ(read_tuning(text + "matmul_4_large 1x2\n", "device 1\ndriver 2", &reason),
            std::nullopt);
  EXPECT_EQ(reason, "it is damaged");
}

TEST(TuningFile, RowsGoBySize) {
  EXPECT_EQ(tile_row(TileUse::kMatmul, 4, 511, 512), "matmul_4_small");
  EXPECT_EQ(tile_row(TileUse::kMatmul, 8, 512, 512), "matmul_8_large");
  EXPECT_EQ(tile_row(TileUse::kConvolution, 1, 4, 4), "convolution_4_small");
}

}  // namespace
