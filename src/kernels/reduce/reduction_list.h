// src/kernels/reduce/reduction_list.h: reductions of whole tensors of a list, a launch for several.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

enum class ListReduction : uint8_t {
  kNorm1,
  kNorm2,
  kNormInf,  // largest |x|
  kSquares,  // sum of x^2
  kMax
};

// outputs[k] = reduction of all elements of inputs[k], summed in float64 where either of the two is
// float64, else in float32. outputs hold one element, inputs are flat views of rank 1 with at least
// one element; both have floating dtypes, one for each of the lists. NaN wins in kNormInf and kMax.
// Sixteen tensors share a launch, or two where one of them is longer than a work-item takes. The
// results do not depend on the number of threads. Throws Error: INVALID_ARGUMENT for lists that do
// not fit, UNSUPPORTED when the device has no compiler.
GRAFT_EXPORT void reduce_list(Stream& stream, ListReduction reduction,
                              std::span<const TensorView> outputs,
                              std::span<const TensorView> inputs);

}  // namespace graft
