// src/kernels/fft/butterfly.h: the short transforms that longer ones are made of.
#pragma once

#include <vector>

#include "codegen/ops/complex_value.h"

namespace graft {

// Whether butterfly() takes that many numbers: 2, 3, 4, 5 and 8.
bool has_butterfly(int radix);

// y[k] = sum of x[j] exp(-2 pi i j k / r) over the r numbers of x. Radices 3 and 5 share the sums
// and differences of conjugate powers: Van Loan, Computational Frameworks for the Fast Fourier
// Transform, SIAM 1992, section 2.1. REQUIRES: has_butterfly(x.size()).
std::vector<ComplexValue> butterfly(const std::vector<ComplexValue>& x);

}  // namespace graft
