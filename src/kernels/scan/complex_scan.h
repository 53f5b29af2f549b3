// src/kernels/scan/complex_scan.h: cumulative products and logarithms of sums of complex numbers.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/stream/stream.h"

namespace graft {

enum class ComplexScan {
  kProduct,
  kLogSumExp  // log(exp(input[0]) + ... + exp(input[j])), without overflow
};

// output[j] = what input[0] to input[j] give along dim, from front to back in float64, as torch's
// CPU does. Same sizes and one complex dtype, any strides, rank 0 allowed.
void complex_scan(Stream& stream, ComplexScan scan, const TensorView& output,
                  const TensorView& input, int dim);

}  // namespace graft
