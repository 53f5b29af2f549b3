// src/kernels/matmul/tile_shape.cpp: how large the tiles of products are on a GPU-like device.
#include "kernels/matmul/tile_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cctype>
#include <cstdio>
#include <string_view>

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

constexpr int64_t kLeastDepth = 4, kLeastGroup = 4;
constexpr int64_t kFullGroup = 32;  // a sub-group of most devices

bool is_sound(const TileShape& t) {
  const int64_t values[] = {t.rows, t.columns, t.depth, t.item_rows, t.item_columns, t.vector};
  const bool powers = std::ranges::all_of(values, [](int64_t value) {
    return value >= 1 && value <= 512 && std::has_single_bit(static_cast<uint64_t>(value));
  });
  return powers && t.item_rows <= t.rows && t.item_columns <= t.columns &&
         t.vector <= t.item_columns && t.item_rows * t.item_columns <= 128;
}

// Halves one side of the tile, and of the items where nothing else is left of it.
void halve(int64_t* side, int64_t* item) {
  *side = std::max<int64_t>(1, *side / 2);
  *item = std::min(*item, *side);
}

}  // namespace

std::string TileShape::text() const {
  return fmt::format("{}x{}x{}_{}x{}_v{}", rows, columns, depth, item_rows, item_columns, vector);
}

std::optional<TileShape> TileShape::parse(const std::string& text) {
  long long v[6] = {};
  char rest = 0;
  const int read = std::sscanf(text.c_str(), "%5lldx%5lldx%5lld_%5lldx%5lld_v%5lld%c", &v[0], &v[1],
                               &v[2], &v[3], &v[4], &v[5], &rest);
  if (read != 6) return std::nullopt;
  const TileShape shape{v[0], v[1], v[2], v[3], v[4], v[5]};
  if (!is_sound(shape) || shape.text() != text) return std::nullopt;
  return shape;
}

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

std::optional<TileShape> fit_tile(TileShape shape, const graft_device_properties& properties,
                                  uint32_t element_bytes) {
  const auto local = static_cast<int64_t>(properties.local_memory_bytes);
  const auto group = static_cast<int64_t>(properties.max_group_size);
  // Registers hold half as many sums of eight bytes.
  if (element_bytes > 4 && shape.item_rows > 1) shape.item_rows /= 2, shape.rows /= 2;
  while (shape.local_elements() * element_bytes > local && shape.depth > kLeastDepth) {
    shape.depth /= 2;
  }
  while (shape.group() > group || shape.local_elements() * element_bytes > local) {
    if (shape.group() <= kLeastGroup) return std::nullopt;
    if (shape.rows / shape.item_rows >= shape.across()) {
      halve(&shape.rows, &shape.item_rows);
    } else {
      halve(&shape.columns, &shape.item_columns);
    }
    shape.vector = std::min(shape.vector, shape.item_columns);
  }
  return shape;
}

TileShape shrink_tile(TileShape shape, int64_t rows, int64_t columns) {
  if (rows <= shape.rows / 4 && shape.group() >= 4 * kFullGroup) {
    for (int i = 0; i < 2; ++i) halve(&shape.rows, &shape.item_rows);
  }
  if (columns <= shape.columns / 4 && shape.group() >= 4 * kFullGroup) {
    for (int i = 0; i < 2; ++i) halve(&shape.columns, &shape.item_columns);
  }
  shape.vector = std::min(shape.vector, shape.item_columns);
  return shape;
}

}  // namespace graft
