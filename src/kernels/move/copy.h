// src/kernels/move/copy.h: copies between tensors of one device, with conversion and any strides.
#pragma once

#include "kernels/tensor/view.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// to[i] = from[i], converted as PyTorch converts: to bool by != 0, complex to real drops the
// imaginary part, floating to half rounds to nearest even. conj conjugates, neg negates (PyTorch's
// lazy bits). Same rank and sizes; from may have strides of 0 and below. The views do not overlap,
// unless they are the same. Throws as pointwise does.
GRAFT_EXPORT void copy(Stream& stream, const TensorView& to, const TensorView& from,
                       bool conj = false, bool neg = false);

}  // namespace graft
