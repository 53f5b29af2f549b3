// src/kernels/reduce/histogram.h: counts, or sums of weights, by bin.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// The functions fill partial sums, contiguous [parts, bins]; the sum over parts is the result. How
// many parts suits count elements depends on the sizes alone, so the sums do, too.
GRAFT_EXPORT int64_t histogram_parts(int64_t count, int64_t bins);

// partial[part, input[i]] += weights[i], or 1 where weights is null. Contiguous; input is of an
// integer dtype within [0, bins). partial is int64 without weights, else of a floating dtype.
GRAFT_EXPORT void count_integers(Stream& stream, const TensorView& partial, const TensorView& input,
                                 const TensorView* weights);

// partial[part, bin of input[i]] += 1 for even integer bins from low to high; what is outside of
// them counts nowhere. Contiguous; input is of an integer dtype, partial int64, low < high.
GRAFT_EXPORT void count_integers_in_range(Stream& stream, const TensorView& partial,
                                          const TensorView& input, int64_t low, int64_t high);

// How the bin of an element is found among a dimension's edges, which rise. The last bin holds its
// right edge, too.
enum class BinSearch {
  kEdges,       // binary search
  kEven,        // the edges are evenly spaced: by division
  kEvenChecked  // the same, set right by the edges around
};

// partial[part, bin of input[i, :]] += weights[i], or 1; rows outside of the edges, and NaN, count
// nowhere. input: contiguous [rows, dimensions] of a floating dtype; edges: contiguous, one for
// each dimension, of input's dtype, with one edge more than bins; partial is float64, its bins
// row-major. At most 4 dimensions; more throw Error UNSUPPORTED.
GRAFT_EXPORT void count_in_bins(Stream& stream, const TensorView& partial, const TensorView& input,
                                std::span<const TensorView> edges, const TensorView* weights,
                                BinSearch search);

}  // namespace graft
