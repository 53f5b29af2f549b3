// src/kernels/matmul/complex_matmul.h: products of complex matrices.
#pragma once

#include <complex>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// A matrix, or a batch of them, that may count as its elementwise conjugate.
struct ComplexFactor {
  const TensorView& view;
  bool conjugate = false;
};

// What is added to a product, as in matmul.h.
struct ComplexEpilogue {
  std::complex<double> alpha = 1.0;
  std::complex<double> beta = 0.0;     // 0: addend is not read, NaN in it do not spread
  const TensorView* addend = nullptr;  // may be output itself
};

// output = alpha * a b + beta * addend: matmul() for complex64 and complex128, which are summed in
// the type of their parts. Shapes, strides and errors are matmul()'s. Large complex64 products run
// as four real ones where the driver has a library, all others as one kernel.
GRAFT_EXPORT void complex_matmul(Stream& stream, const TensorView& output, const ComplexFactor& a,
                                 const ComplexFactor& b, const ComplexEpilogue& epilogue = {});

}  // namespace graft
