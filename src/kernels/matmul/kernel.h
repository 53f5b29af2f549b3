// src/kernels/matmul/kernel.h: the generated matrix product, for devices without a library.
#pragma once

#include <initializer_list>

#include "kernels/launch/arguments.h"
#include "kernels/matmul/matmul.h"

namespace graft {

// matmul() for every dtype, small integers too, and any strides. Where fits_blocks() holds it is
// blocked_matmul(), on GPU-like devices tiled_matmul(), for a few rows thin_matmul(); elsewhere
// work-items compute blocks of a row in the accumulator's type, with nothing packed.
void generated_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                      const TensorView& b, const MatmulEpilogue& epilogue);

// Adds each view's strides of the batch (0 where there is none), the rows and the columns.
void append_matrix_strides(Arguments& arguments, std::initializer_list<const TensorView*> views);

}  // namespace graft
