// src/kernels/reduce/reduce.h: reductions of a tensor over any set of its dimensions.
#pragma once

#include <cstdint>

#include "graft/driver.h"
#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// Conventions of this header
//  - output has the rank and sizes of input, but its stride is 0 in every reduced dimension (the
//    convention of TensorIterator: an output element is written once for all of them). A dimension
//    of size 1 counts as kept. The sizes of output in reduced dimensions are not read.
//  - The dtypes of input and output may differ: the elements of input are converted to the type
//    that is accumulated in (float32 for the half types and float32, float64 for float64, int64
//    for integers and bool), the result to output's.
//  - Reducing no element gives the neutral element; max and min throw INVALID_ARGUMENT.
//  - NaN wins in max, min, amax, amin, argmax and argmin.
//  - Results do not depend on the number of threads.
enum class Reduction {
  kSum,
  kNansum,  // NaN counts as 0
  kMean,    // floating output
  kProd,
  kMax,
  kMin,
  kAny,  // logical; output bool or uint8
  kAll,
  kCountNonzero,
  kNorm0,  // number of elements that are not 0
  kNorm1,
  kNorm2,
  kNormInf,  // largest |x|
  kNormNegInf,
  kNormP,  // (sum |x|^p)^(1/p) with reduce's exponent
  kLogSumExp
};

// output = reduction of input; exponent is read by kNormP only.
GRAFT_EXPORT void reduce(Stream& stream, Reduction reduction, const TensorView& output,
                         const TensorView& input, double exponent = 2.0);

enum class Extremum { kMax, kMin };

// indices (int64, output convention above) = position of the first extremum, counted over the
// reduced dimensions in row-major order of input's dimensions.
GRAFT_EXPORT void arg_reduce(Stream& stream, Extremum extremum, const TensorView& indices,
                             const TensorView& input);

// The extremum and its first position together: torch.max(input, dim). values has input's dtype;
// both outputs follow the convention above and may have strides of their own.
GRAFT_EXPORT void reduce_with_index(Stream& stream, Extremum extremum, const TensorView& values,
                                    const TensorView& indices, const TensorView& input);

// output = sum (x - mean)^2 / max(0, n - correction), its square root when root is set; computed
// around the mean (two passes over each line), never as a difference of squares. mean, where not
// null, follows the same convention and gets the mean.
GRAFT_EXPORT void variance(Stream& stream, const TensorView& output, const TensorView* mean,
                           const TensorView& input, double correction, bool root);

}  // namespace graft
