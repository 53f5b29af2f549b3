// src/kernels/matmul/thin_matmul.h: products of a few rows, each element a sum along dense lines.
#pragma once

#include "kernels/matmul/matmul.h"

namespace graft {

// matmul() where at most seven rows (or columns) meet a factor whose lines along k are dense: the
// linear layer of a small batch, which reads its weight once, as it lies. False, with nothing done,
// for other products. REQUIRES: a dtype that generated_matmul() takes; addend is null when beta
// is 0.
bool thin_matmul(Stream& stream, const TensorView& output, const TensorView& a, const TensorView& b,
                 const MatmulEpilogue& epilogue);

}  // namespace graft
