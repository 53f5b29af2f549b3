// src/kernels/index/index.h: reading and writing elements at positions that come from data.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Indices are int64 or int32. Negative ones count from the end where torch allows it (index,
// index_put). An index out of range is clamped and reported at the next synchronisation of the
// stream (kernels/launch/error_record.h); the device stays usable. Any strides. Data of any dtype.

// output = input with dimension dim replaced by the rows that indices (rank 0 or 1) name.
GRAFT_EXPORT void index_select(Stream& stream, const TensorView& output, const TensorView& input,
                               int dim, const TensorView& indices);

// output[..., j, ...] = input[..., index[..., j, ...], ...] along dim; output and index have the
// same sizes, which lie within input's in the other dimensions.
GRAFT_EXPORT void gather(Stream& stream, const TensorView& output, const TensorView& input, int dim,
                         const TensorView& index);

enum class ScatterMode { kReplace, kAdd, kMultiply, kMax, kMin };

// to[..., index[..., j, ...], ...] (mode)= from[..., j, ...] along dim, in the order of j for one
// target line: deterministic. from has at least index's sizes; a stride of 0 everywhere makes it a
// scalar. Half types are summed in float32 and rounded once, but step by step where there are fewer
// indices than a quarter of to's elements.
GRAFT_EXPORT void scatter(Stream& stream, const TensorView& to, int dim, const TensorView& index,
                          const TensorView& from, ScatterMode mode);

// Advanced indexing with TensorIterator's preparation: output, input and the indices are views of
// one shape, input with stride 0 in the indexed dimensions, the indices of one dtype. Element e is
// read at input's own position plus sum indices[k][e] * strides[k] (elements), each index within
// sizes[k].
GRAFT_EXPORT void index(Stream& stream, const TensorView& output, const TensorView& input,
                        std::span<const TensorView> indices, std::span<const int64_t> sizes,
                        std::span<const int64_t> strides);

// The reverse: to's element = values' (or += when accumulate). With accumulate, equal positions
// are summed in row-major order: deterministic. Elements of dimensions that no index names are
// summed side by side, the others by one work-item. Without wraps negative indices are reported.
GRAFT_EXPORT void index_put(Stream& stream, const TensorView& to, const TensorView& values,
                            std::span<const TensorView> indices, std::span<const int64_t> sizes,
                            std::span<const int64_t> strides, bool accumulate, bool wraps = true);

// output = inputs joined along dim, converted to output's dtype; inputs without elements of rank 1
// must be left out by the caller, as torch skips them.
GRAFT_EXPORT void cat(Stream& stream, const TensorView& output, std::span<const TensorView> inputs,
                      int dim);

}  // namespace graft
