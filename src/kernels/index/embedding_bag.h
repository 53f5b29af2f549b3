// src/kernels/index/embedding_bag.h: sums, means and maxima of rows of a table, bag by bag.
#pragma once

#include <cstdint>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

enum class BagMode { kSum, kMean, kMax };

// As padding: an index that no table has.
inline constexpr int64_t kNoPadding = INT64_MIN;

// What embedding_bag writes: output [bags, n]; for each index its bag; for each bag how many of its
// indices are not padding; for kMax [bags, n] the row that each element comes from, -1 in an empty
// bag (null otherwise).
struct BagOutputs {
  TensorView output;
  TensorView bags;
  TensorView sizes;
  const TensorView* rows = nullptr;
};

// Bag b holds indices[offsets[b]] to indices[offsets[b + 1]]; the last one ends with the indices,
// unless offsets has one element more than there are bags. weights, where given, scale the rows,
// one for each index. Rows with the index padding are left out; kNoPadding: none. An empty bag is
// 0. Tables have any strides, the other tensors are contiguous; indices, offsets, bags, sizes and
// rows are all int32 or all int64. Sums in float32 (float64 for float64), in the order of the
// indices.
// Indices out of range are reported at the next synchronisation, and so are offsets: the first is
// 0, none is beyond the indices.
GRAFT_EXPORT void embedding_bag(Stream& stream, const BagOutputs& outputs, const TensorView& table,
                                const TensorView& indices, const TensorView& offsets,
                                const TensorView* weights, BagMode mode, int64_t padding);

}  // namespace graft
