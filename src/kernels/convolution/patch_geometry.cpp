// src/kernels/convolution/patch_geometry.cpp: what a convolution or its gradient sums: patches of a
// tensor.
#include "kernels/convolution/patch_geometry.h"

namespace graft {
TensorView with_three_dimensions(const TensorView& view) {
  TensorView result = view;
  const int added = 5 - view.rank;
  result.rank = 5;
  for (int d = 4; d >= 2; --d) {
    const bool given = d - added >= 2;
    result.sizes[d] = given ? view.sizes[d - added] : 1;
    result.strides[d] = given ? view.strides[d - added] : 0;
  }
  return result;
}

}  // namespace graft
