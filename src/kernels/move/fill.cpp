// src/kernels/move/fill.cpp: sets every element of a tensor to one number.
#include "kernels/move/fill.h"

#include "kernels/operation/offer.h"
#include "kernels/pointwise/pointwise.h"
#include "kernels/tensor/axes.h"

namespace graft {

void fill(Stream& stream, const TensorView& to, Scalar value) {
  const Scalar number = value.to(to.dtype);
  const TensorView* views[] = {&to};
  const Axes axes = Axes::joined(views);
  const int64_t count = axes.count();
  if (count == 0) return;
  if (axes.rank == 0 || (axes.rank == 1 && axes.at[0].strides[0] == 1)) {
    uint64_t pattern[2] = {number.bits[0], number.bits[1]};
    if (to.dtype == GRAFT_COMPLEX64) pattern[0] |= number.bits[1] << 32;
    const uint32_t bytes = size_of(to.dtype);
    stream.fill(to.address, static_cast<uint64_t>(count) * bytes, pattern, bytes);
    return;
  }
  if (offer_elements(stream, Operation::fill, views, 1, {}, {&number, 1})) return;
  static const Op& same = *find_op("positive");
  const Operand input(number);
  pointwise(stream, same, to.dtype, {&to, 1}, {&input, 1});
}

}  // namespace graft
