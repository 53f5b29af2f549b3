// src/kernels/matmul/complex_matmul_kernel.h: the generated product of complex matrices.
#pragma once

#include "kernels/matmul/complex_matmul.h"

namespace graft {

// complex_matmul() in one launch. REQUIRES: shapes and dtypes fit, addend is null when beta is 0.
void generated_complex_matmul(Stream& stream, const TensorView& output, const ComplexFactor& a,
                              const ComplexFactor& b, const ComplexEpilogue& epilogue);

}  // namespace graft
