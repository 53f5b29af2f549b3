// src/kernels/blocked_matmul.h: the generated matrix product in registers, for CPU-like devices.
#pragma once

#include "kernels/matmul.h"

namespace graft {

// Whether the device runs wide vectors and the product is large enough to pay for packing.
bool fits_blocks(const Device& device, const TensorView& output, const TensorView& a,
                 const TensorView& b);

// matmul() for float32 and the half types with float32 sums: both factors are packed into panels
// (panels.h), a work-item holds a block of the result in vector registers.
// REQUIRES: fits_blocks(); addend is null when beta is 0.
void blocked_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                    const TensorView& b, const MatmulEpilogue& epilogue);

}  // namespace graft
