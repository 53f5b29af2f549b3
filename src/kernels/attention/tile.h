// src/kernels/attention/tile.h: how large the tiles of attention are on a GPU-like device.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "kernels/attention/attention.h"
#include "kernels/matmul/tile_shape.h"

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

  // The device's tiles for a call: of attention(), and of the gradients of the query and of key and
  // value. None where the device is not GPU-like, local memory or registers do not hold the
  // smallest tile, or there is nothing to compute.
  static std::optional<AttentionTile> forward(const graft_device_properties& device,
                                              const Attention& call);
  static std::optional<AttentionTile> query_gradient(const graft_device_properties& device,
                                                     const Attention& call);
  static std::optional<AttentionTile> key_gradient(const graft_device_properties& device,
                                                   const Attention& call);

  // The same for so many lines of scores by columns and results of these widths; parts: of scores
  // that a work-item holds at once. element_bytes: of the sums.
  static std::optional<AttentionTile> fit(const graft_device_properties& device,
                                          uint32_t element_bytes, int64_t lines, int64_t columns,
                                          int64_t parts, std::span<const int64_t> widths);
};

// Of all heads and lines of a tensor [batch, heads, lines, width].
int64_t tiles_of(const AttentionTile& tile, const TensorView& kept);

}  // namespace graft
