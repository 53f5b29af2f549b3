// src/kernels/move/copy.cpp: copies between tensors of one device, with conversion and any strides.
#include "kernels/move/copy.h"

#include "kernels/launch/loop_nest.h"
#include "kernels/move/transpose.h"
#include "kernels/operation/offer.h"
#include "kernels/pointwise/pointwise.h"

namespace graft {

namespace {

void move(Stream& stream, TensorView to, TensorView from) {
  const graft_dtype dtype = to.dtype;
  to.dtype = from.dtype = raw_dtype_of_size(size_of(to.dtype));
  const TensorView* views[] = {&to, &from};
  const Axes axes = Axes::joined(views);
  const int64_t count = axes.count();
  if (count == 0) return;
  const Axis& first = axes.at[0];
  if (axes.rank == 0 || (axes.rank == 1 && first.strides[0] == 1 && first.strides[1] == 1)) {
    if (to.address == from.address) return;
    stream.copy(to.address, from.address, static_cast<uint64_t>(count) * size_of(to.dtype),
                GRAFT_DEVICE_TO_DEVICE);
    return;
  }
  TensorView typed[] = {to, from};
  typed[0].dtype = typed[1].dtype = dtype;
  const TensorView* offered[] = {&typed[0], &typed[1]};
  if (offer_elements(stream, Operation::copy, offered, 1, {0, 0})) return;
  if (reach(axes.span(), 1).before == 0 && transpose(stream, to, from, axes)) return;
  static const Op& same = *find_op("positive");
  const Operand input(from);
  pointwise(stream, same, to.dtype, {&to, 1}, {&input, 1});
}

const Op& row(graft_dtype to, graft_dtype from, bool conj, bool neg) {
  static const Op& same = *find_op("positive");
  static const Op& conjugate = *find_op("conj");
  static const Op& negative = *find_op("neg");
  static const Op& truth = *find_op("to_bool");
  if (conj && is_complex(from)) return conjugate;
  if (neg && from != GRAFT_BOOL) return negative;
  return to == GRAFT_BOOL && is_complex(from) ? truth : same;
}

}  // namespace

void copy(Stream& stream, const TensorView& to, const TensorView& from, bool conj, bool neg) {
  conj = conj && is_complex(from.dtype);
  if (to.dtype == from.dtype && !conj && !neg) return move(stream, to, from);
  const TensorView* views[] = {&to, &from};
  if (offer_elements(stream, Operation::copy, views, 1, {conj, neg})) return;
  if (conj && neg) {
    // Both: the real part changes its sign. Two passes, the second in place.
    copy(stream, to, from, true, false);
    return copy(stream, to, to, false, true);
  }
  const Operand input(from);
  // Numbers of a half type need no rounding to it.
  const graft_dtype compute = is_half(from.dtype) ? GRAFT_FLOAT32 : from.dtype;
  pointwise(stream, row(to.dtype, from.dtype, conj, neg), compute, {&to, 1}, {&input, 1});
}

}  // namespace graft
