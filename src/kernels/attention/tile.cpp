// src/kernels/attention/tile.cpp: how large the tiles of attention are on a GPU-like device.
#include "kernels/attention/tile.h"

#include <algorithm>
#include <numeric>

#include "codegen/ir/ir.h"
#include "kernels/matmul/vendor_tiles.h"

namespace graft {
namespace {

constexpr int64_t kMostLines = 64, kMostColumns = 64, kLeastDepth = 4;
constexpr int64_t kRegisters = 96;  // of four bytes, for scores and results of a work-item

void halve_rows(TileShape& shape) { shape.rows /= 2, shape.item_rows /= 2; }
void halve_columns(TileShape& shape) {
  shape.columns /= 2, shape.item_columns /= 2;
  shape.vector = std::min(shape.vector, shape.item_columns);
}

// Results of a width beside the scores: the same items, each with as many columns as needed.
TileShape result_shape(const TileShape& scores, int64_t width) {
  TileShape shape = scores;
  shape.item_columns = (width + scores.across() - 1) / scores.across();
  shape.columns = shape.item_columns * scores.across();
  shape.vector = std::gcd(scores.vector, shape.item_columns);
  return shape;
}

std::optional<AttentionTile> tile_of(const graft_device_properties& device, const Attention& call,
                                     const TensorView& kept, const TensorView& walked,
                                     int64_t parts, std::span<const int64_t> widths) {
  if (call.query.count() == 0 || call.key.count() == 0 || call.value.count() == 0) {
    return std::nullopt;
  }
  if (std::max(call.query.sizes[3], call.value.sizes[3]) > INT32_MAX / 2) return std::nullopt;
  return AttentionTile::fit(device, ir::bytes_of(ir::compute_type(call.query.dtype)), kept.sizes[2],
                            walked.sizes[2], parts, widths);
}

int64_t registers(const AttentionTile& tile, int64_t parts, uint32_t element_bytes) {
  int64_t columns = parts * tile.scores.item_columns;
  for (const TileShape& result : tile.results) columns += result.item_columns;
  return columns * tile.scores.item_rows * (element_bytes / 4);
}

}  // namespace

int64_t AttentionTile::step_elements() const {
  int64_t most = scores.local_elements();
  for (const TileShape& result : results) most = std::max(most, result.local_elements());
  return most;
}

std::string AttentionTile::text() const {
  std::string text = scores.text();
  for (const TileShape& result : results) text += "_" + std::to_string(result.columns);
  return text;
}

std::optional<AttentionTile> AttentionTile::forward(const graft_device_properties& device,
                                                    const Attention& call) {
  const int64_t widths[] = {call.value.sizes[3]};
  return tile_of(device, call, call.query, call.key, 1, widths);
}

std::optional<AttentionTile> AttentionTile::query_gradient(const graft_device_properties& device,
                                                           const Attention& call) {
  const int64_t widths[] = {call.query.sizes[3]};
  return tile_of(device, call, call.query, call.key, 2, widths);
}

std::optional<AttentionTile> AttentionTile::key_gradient(const graft_device_properties& device,
                                                         const Attention& call) {
  const int64_t widths[] = {call.value.sizes[3], call.query.sizes[3]};
  return tile_of(device, call, call.key, call.query, 2, widths);
}

int64_t tiles_of(const AttentionTile& tile, const TensorView& kept) {
  const int64_t lines = tile.scores.rows;
  return kept.sizes[0] * kept.sizes[1] * ((kept.sizes[2] + lines - 1) / lines);
}

std::optional<AttentionTile> AttentionTile::fit(const graft_device_properties& properties,
                                                uint32_t element_bytes, int64_t lines,
                                                int64_t columns, int64_t parts,
                                                std::span<const int64_t> widths) {
  if (properties.device_class != GRAFT_GPU_LIKE) return std::nullopt;
  auto shape = fit_tile(vendor_tile(properties), properties, element_bytes);
  if (!shape) return std::nullopt;
  while (shape->rows > kMostLines && shape->item_rows > 1) halve_rows(*shape);
  while (shape->columns > kMostColumns && shape->item_columns > 1) halve_columns(*shape);
  *shape = shrink_tile(*shape, lines, columns);
  const auto local = static_cast<int64_t>(properties.local_memory_bytes);
  while (true) {
    AttentionTile tile{*shape, {}};
    for (const int64_t width : widths) tile.results.push_back(result_shape(*shape, width));
    const bool room = tile.local_elements() * element_bytes <= local;
    if (room && registers(tile, parts, element_bytes) <= kRegisters) return tile;
    if (!room && shape->depth > kLeastDepth) {
      shape->depth /= 2;
    } else if (shape->item_rows > 1) {
      halve_rows(*shape);
    } else if (shape->item_columns > 1) {
      halve_columns(*shape);
    } else {
      return std::nullopt;
    }
  }
}

}  // namespace graft
