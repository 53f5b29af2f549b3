// src/kernels/attention_tile.h: how large the tiles of attention are on a GPU-like device.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <vector>

#include "kernels/tile_shape.h"

namespace graft {

// A group of work-items holds a tile of scores and, for the lines that it keeps (queries, or keys
// in their gradient), sums over what it walks along. Lines are rows of scores and of results.
struct AttentionTile {
  TileShape scores;
  std::vector<TileShape> results;  // as many rows, rows per item and items across as scores

  // One element beside each column of weights keeps columns in different banks.
  int64_t weights_line() const { return scores.rows + 1; }
  int64_t weights_elements() const { return scores.columns * weights_line(); }
  // Of the step of the products, which take turns.
  int64_t step_elements() const;
  int64_t local_elements() const { return step_elements() + weights_elements(); }

  std::string text() const;  // for the keys of kernels
};

// The device's tile for results of these widths, cut to so many lines of scores by columns. parts:
// of scores that a work-item holds at once. element_bytes: of the sums. None where the device is
// not GPU-like, or local memory or registers do not hold the smallest tile.
std::optional<AttentionTile> attention_tile(const graft_device_properties& properties,
                                            uint32_t element_bytes, int64_t lines, int64_t columns,
                                            int64_t parts, std::initializer_list<int64_t> widths);

}  // namespace graft
