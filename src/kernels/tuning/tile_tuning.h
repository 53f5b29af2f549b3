// src/kernels/tuning/tile_tuning.h: measures which tile shapes are fastest on a device.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "kernels/matmul/tuned_tiles.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

struct TileMeasurement {
  std::string row;  // of tile_row()
  TileShape shape;
  double gflops = 0;  // billions of operations in a second, the best of the runs; 0: it failed
};

// Told after each measurement; what it throws ends the tuning.
using TuningProgress = std::function<void(size_t done, size_t all, const TileMeasurement&)>;

// Measures on stream at most candidates shapes (the vendor's first) for each row in float32:
// products of 256 and 1024, convolutions of a 3 x 3 kernel over 64 channels. Seconds to a minute,
// most of it compiling; blocks. What is fastest is kept by keep_tuning(), unless every shape
// failed. Throws Error UNSUPPORTED on a device that has no tiles, INVALID_ARGUMENT for candidates
// of 0.
GRAFT_EXPORT std::vector<TileMeasurement> tune_tiles(Stream& stream, size_t candidates,
                                                     const TuningProgress& progress);

}  // namespace graft
