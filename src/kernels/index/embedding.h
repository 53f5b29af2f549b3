// src/kernels/index/embedding.h: the gradient of an embedding table (its forward is index_select).
#pragma once

#include <cstdint>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// grad_weight [rows, n] = for each row the sum of the rows of grad_output [count, n] whose index is
// that row, in the order of indices (int64 or int32, contiguous [count]): deterministic. The row
// padding_idx stays 0 (pass -1 for none). scale_by_frequency divides each contribution by how
// often its index occurs. grad_weight and grad_output have one dtype and contiguous rows; sums of
// half types are taken in float32. Every element of grad_weight is written.
// An index outside 0 <= i < rows is clamped and reported (kernels/launch/error_record.h).
GRAFT_EXPORT void embedding_dense_backward(Stream& stream, const TensorView& grad_weight,
                                           const TensorView& grad_output, const TensorView& indices,
                                           int64_t padding_idx, bool scale_by_frequency);

}  // namespace graft
