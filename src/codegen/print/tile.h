// src/codegen/print/tile.h: runs of a vector loop whose half elements are converted together.
#pragma once

#include <vector>

#include "codegen/ir/ir.h"
#include "codegen/print/dialect.h"

namespace graft::ir {

// Elements of one tile: two vectors of AVX-512, four of AVX2.
inline constexpr uint32_t kTileElements = 32;

// A load or store of a vector loop that touches consecutive elements of a half type in consecutive
// iterations, so that the dialect's instruction can convert a tile of them at once.
struct TileAccess {
  Id id = kNoId;             // the kLoad or kStore
  std::vector<Id> position;  // what of the loop's body computes the first element, in order
};

// Those of the kVectorLoop that ends before after, whose dtypes the dialect has tile functions for.
std::vector<TileAccess> tile_accesses(const Kernel& kernel, Id loop, Id after,
                                      const Dialect& dialect);

}  // namespace graft::ir
