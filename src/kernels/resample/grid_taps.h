// src/kernels/resample/grid_taps.h: the kernel that turns positions of a grid into elements and
// weights.
#pragma once

#include <string>

#include "codegen/ir/ir.h"
#include "kernels/resample/grid_sample.h"

namespace graft {

// Every axis of a point has some taps. The kernel writes three tables [n, axis, tap, points], the
// axis x first: positions (int32; -1: outside), weights, and how weights change with the grid's
// number. Parameters: positions, weights, slopes; grid; lines, per item, points, blocks of points,
// then the lengths of the axes, x first.
struct GridTaps {
  static constexpr int64_t kBlock = 64;  // points of a line

  GridSampling sampling;
  int axes = 2;
  graft_dtype dtype = GRAFT_FLOAT32;

  int taps() const {
    if (sampling.mode == GridSampling::kNearest) return 1;
    return sampling.mode == GridSampling::kCubic ? 4 : 2;
  }
  graft_dtype wide() const { return dtype == GRAFT_FLOAT64 ? GRAFT_FLOAT64 : GRAFT_FLOAT32; }
  std::string key() const;
  ir::Kernel build() const;
};

}  // namespace graft
