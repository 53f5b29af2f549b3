// src/kernels/matmul/vendor_tiles.cpp: the tiles of products before anything is measured, by
// vendor.
#include "kernels/matmul/vendor_tiles.h"

#include <algorithm>
#include <cctype>
#include <string>

namespace graft {
namespace {

struct VendorTile {
  const char* vendor;  // a part of what the device calls its vendor, in lower case
  TileShape shape;
};

// By registers per work-item, local memory and width of the vendors' sub-groups; only the tuner has
// measured any of them.
constexpr VendorTile kVendors[] = {
    {"nvidia", {128, 128, 8, 8, 8, 4}},
    {"amd", {128, 64, 16, 8, 4, 4}},
    {"advanced micro devices", {128, 64, 16, 8, 4, 4}},
    {"intel", {64, 64, 16, 8, 4, 1}},
    {"apple", {64, 64, 16, 4, 4, 4}},
    {"arm", {32, 32, 8, 4, 4, 4}},
    {"qualcomm", {32, 64, 8, 4, 4, 4}},
    // Processors, which run these kernels in tests: what compiles fast.
    {"genuineintel", {16, 16, 8, 2, 2, 1}},
    {"authenticamd", {16, 16, 8, 2, 2, 1}},
};
constexpr TileShape kDefault{64, 64, 8, 4, 4, 1};

constexpr TileShape kCandidates[] = {
    {128, 128, 8, 8, 8, 4}, {128, 128, 16, 8, 8, 4}, {128, 64, 16, 8, 4, 4}, {64, 128, 8, 4, 8, 4},
    {64, 64, 16, 8, 4, 1},  {64, 64, 16, 4, 4, 4},   {64, 64, 8, 8, 8, 1},   {64, 32, 16, 4, 4, 1},
    {32, 64, 8, 4, 4, 4},   {32, 32, 16, 4, 4, 1},   {32, 32, 8, 2, 4, 4},   {16, 16, 16, 2, 2, 1},
};

}  // namespace

const TileShape& vendor_tile(const graft_device_properties& properties) {
  std::string vendor(properties.vendor);
  std::ranges::transform(vendor, vendor.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  for (const VendorTile& row : kVendors) {
    const size_t at = vendor.find(row.vendor);
    const bool begins = at == 0 || (at != std::string::npos && std::isalpha(vendor[at - 1]) == 0);
    if (begins) return row.shape;
  }
  return kDefault;
}

std::vector<TileShape> candidate_tiles(const graft_device_properties& properties,
                                       uint32_t element_bytes) {
  std::vector<TileShape> fitting;
  const auto add = [&](const TileShape& shape) {
    const auto fitted = fit_tile(shape, properties, element_bytes);
    if (fitted && std::ranges::find(fitting, *fitted) == fitting.end()) fitting.push_back(*fitted);
  };
  add(vendor_tile(properties));
  for (const TileShape& shape : kCandidates) add(shape);
  return fitting;
}

}  // namespace graft
