// src/kernels/tensor/image_views.h: batches of images seen as matrices.
#pragma once

#include <optional>

#include "kernels/tensor/view.h"

namespace graft {

// count entries from first on along a dimension.
TensorView part(const TensorView& view, int dimension, int64_t first, int64_t count);

// Rank 3 with these sizes and the view's first strides.
TensorView matrices(const TensorView& view, int64_t batch, int64_t rows, int64_t columns);

// Gives the view the strides of a contiguous tensor.
void make_contiguous(TensorView& view);

// Whether dimensions first and following lie as in a contiguous tensor.
bool is_contiguous_from(const TensorView& view, int first);

// [n, channels, spatial...] as [n * spatial, channels], any two strides; nullopt where all but the
// channels do not lie in one line.
std::optional<TensorView> as_matrix(const TensorView& view);

}  // namespace graft
