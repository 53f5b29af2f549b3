// src/kernels/matmul/tile_shape.h: how large the tiles of products are on a GPU-like device.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "graft/driver.h"
#include "runtime/driver/export.h"

namespace graft {

// A group of work-items holds rows x columns sums of a product and walks along its depth in steps.
// All are powers of two.
struct TileShape {
  int64_t rows = 0, columns = 0, depth = 0;
  int64_t item_rows = 0, item_columns = 0;  // what one work-item holds in registers
  int64_t vector = 1;  // columns of an item that lie side by side: one vector of local memory

  int64_t across() const { return columns / item_columns; }
  int64_t group() const { return rows / item_rows * across(); }

  // One element beside each line of a tile keeps lines in different banks of local memory.
  int64_t left_line() const { return rows + vector; }
  int64_t right_line() const { return columns + vector; }

  // Of both factors, twice: one step is read while the next one is written.
  int64_t local_elements() const { return 2 * depth * (left_line() + right_line()); }

  // "64x64x16_4x4_v1", for the keys of kernels and tuning files; parse() takes nothing else.
  GRAFT_EXPORT std::string text() const;
  static std::optional<TileShape> parse(const std::string& text);

  bool operator==(const TileShape&) const = default;
};

// The largest shape like wanted whose group and local memory the device has. element_bytes: of the
// sums. None where not even the smallest tile fits: no local memory, groups of a few items.
std::optional<TileShape> fit_tile(TileShape wanted, const graft_device_properties& properties,
                                  uint32_t element_bytes);

// wanted with a quarter of the rows, or columns, where the result has no more: few kernels for all
// sizes, since each is compiled.
TileShape shrink_tile(TileShape wanted, int64_t rows, int64_t columns);

}  // namespace graft
