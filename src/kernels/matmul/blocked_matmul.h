// src/kernels/matmul/blocked_matmul.h: the generated matrix product in registers, for CPU-like
// devices.
#pragma once

#include "kernels/matmul/matmul.h"

namespace graft {

// Whether the device is CPU-like and has the vectors of ir.h. Longer ones, which blocks would leave
// mostly empty, are left to the loops of the other kernels, for the device's compiler to fill.
bool runs_blocks(const OpenDevice& device);

// Whether the device runs blocks and the product is large enough to pay for packing.
bool fits_blocks(const OpenDevice& device, const TensorView& output, const TensorView& a,
                 const TensorView& b);

// matmul() for float32 and the half types with float32 sums: both factors are packed into panels
// (panels.h), a work-item holds a block of the result in vector registers.
// REQUIRES: fits_blocks(); addend is null when beta is 0.
void blocked_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                    const TensorView& b, const MatmulEpilogue& epilogue);

// A factor that is packed already: k deep, in panels of panel_rows() lines on the left, of
// panel_columns() on the right.
struct PackedFactor {
  graft_address address = 0;
  uint64_t bytes = 0;
  int64_t batch_stride = 0;  // in elements
  int64_t k = 0;
  bool side_by_side = false;  // on the right: the columns of the whole batch are one matrix's
};
int64_t panel_rows(const OpenDevice& device, int64_t m);
int64_t panel_columns(const OpenDevice& device);
void blocked_matmul(Stream& stream, const TensorView& output, const TensorView& a,
                    const PackedFactor& b, const MatmulEpilogue& epilogue);
void blocked_matmul(Stream& stream, const TensorView& output, const PackedFactor& a,
                    const PackedFactor& b, const MatmulEpilogue& epilogue);

}  // namespace graft
