// src/kernels/convolution/channel_views.h: tensors of convolutions, seen by their channels.
#pragma once

#include <utility>

#include "kernels/tensor/view.h"
#include "runtime/driver/dtype.h"

namespace graft {

// The vector, along dimension 1 of tensors of those sizes.
inline TensorView over_channels(const TensorView& sizes, const TensorView& vector) {
  TensorView spread = sizes;
  spread.address = vector.address;
  spread.dtype = vector.dtype;
  for (int d = 0; d < spread.rank; ++d) spread.strides[d] = d == 1 ? vector.strides[0] : 0;
  return spread;
}

// The view with its first two dimensions exchanged.
inline TensorView channels_first(TensorView view) {
  std::swap(view.sizes[0], view.sizes[1]);
  std::swap(view.strides[0], view.strides[1]);
  return view;
}

// A weight [out, channels, kernel...] as [channels, out, kernel...], from the last to the first
// element of the kernel: what the gradient of the input multiplies.
inline TensorView turned_about(const TensorView& weight) {
  TensorView result = channels_first(weight);
  for (int d = 2; d < weight.rank; ++d) {
    const int64_t last = (weight.sizes[d] - 1) * weight.strides[d];
    result.address += static_cast<uint64_t>(last) * size_of(weight.dtype);
    result.strides[d] = -weight.strides[d];
  }
  return result;
}

}  // namespace graft
