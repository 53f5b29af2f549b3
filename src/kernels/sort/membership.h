// src/kernels/sort/membership.h: which elements are among a few others.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// output[i] = whether elements[i] equals one of tests, or the opposite when invert is set. All are
// contiguous, elements and tests of one real dtype, output bool of elements' sizes. Looks at every
// test for every element: made for few tests.
GRAFT_EXPORT void is_among(Stream& stream, const TensorView& output, const TensorView& elements,
                           const TensorView& tests, bool invert);

}  // namespace graft
