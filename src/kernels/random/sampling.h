// src/kernels/random/sampling.h: samples of distributions with a parameter for each element.
#pragma once

#include "kernels/random/random.h"

namespace graft {

// All views have the same sizes, any strides and one floating dtype; everything is computed in
// float64 (standard_gamma in float32, from the upper 23 bits of the same uniforms, on devices that
// lack it). Element i of the row-major order draws 53-bit uniforms from the Philox blocks with
// counter {low, high of offset + i, attempt, 0} for attempt = 0, 1, ..., so samples do not depend
// on the number of threads. The caller advances offset by the number of elements.

// rates >= 0. Below 10 by inversion, above by the transformed rejection PTRS: Hoermann, "The
// transformed rejection method for generating Poisson random variables", 1993.
GRAFT_EXPORT void poisson(Stream& stream, const TensorView& output, Philox philox,
                          const TensorView& rates);

// Successes in counts trials of probability chances; 0 for counts <= 0 or chances <= 0, counts for
// chances >= 1, NaN for NaN. Inversion below an expectation of 10, else BTRS: Hoermann, "The
// generation of binomial random variates", 1993.
GRAFT_EXPORT void binomial(Stream& stream, const TensorView& output, Philox philox,
                           const TensorView& counts, const TensorView& chances);

// Gamma of the shapes with scale 1, never below the smallest normal number of the dtype: Marsaglia
// and Tsang, "A simple method for generating gamma variables", 2000.
GRAFT_EXPORT void standard_gamma(Stream& stream, const TensorView& output, Philox philox,
                                 const TensorView& shapes);

}  // namespace graft
