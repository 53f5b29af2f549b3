// src/kernels/matmul/tile_shape.cpp: how large the tiles of products are on a GPU-like device.
#include "kernels/matmul/tile_shape.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdio>

namespace graft {
namespace {

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
