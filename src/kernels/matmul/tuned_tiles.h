// src/kernels/matmul/tuned_tiles.h: the tile shapes that a device's products use.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "kernels/matmul/tile_shape.h"
#include "runtime/driver/export.h"
#include "runtime/driver/open_device.h"

namespace graft {

enum class TileUse : uint8_t { kMatmul, kConvolution };

// Shapes by the names of tile_row().
using TunedTiles = std::map<std::string, TileShape>;

// The row that serves a product of m x n sums: use, bytes of the sums (4 or 8), "small" below
// 512 x 512 sums, "large" from there on: "matmul_4_large".
std::string tile_row(TileUse use, uint32_t element_bytes, int64_t m, int64_t n);

// The shape for a product of m x n sums in dtype's compute type, cut to device and product: from
// the tuning file, else the vendor's. None where the device is not GPU-like or has no room. The
// file is read at a device's first product; one that is damaged, or of another driver version, is
// ignored with one warning. Any thread.
std::optional<TileShape> tile_for(OpenDevice& device, TileUse use, graft_dtype dtype, int64_t m,
                                  int64_t n);

// The text of a tuning file and what it says; none, with the reason, where it is not one for this
// device and driver. Text: a line "graft tuning 1", a line with the device's fingerprint, then a
// line "row shape" for each.
std::string tuning_text(const std::string& fingerprint, const TunedTiles& tiles);
std::optional<TunedTiles> read_tuning(const std::string& text, const std::string& fingerprint,
                                      std::string* reason);

// What a device's tuning holds for: its name, its driver and the driver's version.
std::string tuning_fingerprint(OpenDevice& device);

// Keeps the shapes in the cache folder (blob_store.h), and uses them from now on.
void keep_tuning(OpenDevice& device, const TunedTiles& tiles);

}  // namespace graft
