// src/kernels/reduce/complex_reduce.h: reductions of complex numbers.
#pragma once

#include "kernels/reduce/reduce.h"

namespace graft {

// reduce() where input or output is complex: sums by parts, norms of the magnitudes, logical ones
// and counts of what is not 0, products by multiplying one half with the other until one element is
// left. Throws Error UNSUPPORTED for the rest.
void complex_reduce(Stream& stream, Reduction reduction, const TensorView& output,
                    const TensorView& input, double exponent);

}  // namespace graft
