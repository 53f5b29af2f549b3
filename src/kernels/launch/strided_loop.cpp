// src/kernels/launch/strided_loop.cpp: the loops of kernels that visit elements one by one at any
// strides.
#include "kernels/launch/strided_loop.h"

#include <algorithm>

#include "runtime/driver/error.h"

namespace graft {
namespace {

NestShape strided_shape(int operands) {
  NestShape shape;
  shape.outer = kStridedRank - 1;
  shape.lines = true;
  shape.count = operands;
  for (int i = 0; i < operands; ++i) shape.operands[i].walk = AccessPattern::kStrided;
  return shape;
}

}  // namespace

WorkSplit append_loops(Arguments& arguments, Axes axes, bool whole) {
  axes.merge();
  return append_loops_as_given(arguments, axes, whole);
}

WorkSplit append_loops_as_given(Arguments& arguments, const Axes& axes, bool whole,
                                int64_t together) {
  if (axes.rank > kStridedRank) {
    throw Error(GRAFT_UNSUPPORTED, "indexing kernels take tensors of at most " +
                                       std::to_string(kStridedRank) +
                                       " dimensions that do not merge; make them contiguous");
  }
  Axes padded;
  for (int i = axes.rank; i < kStridedRank; ++i) padded.push(Axis());
  for (const Axis& axis : axes.span()) padded.push(axis);
  const int64_t inner = padded.span().back().size;
  const int64_t lines = inner == 0 ? 0 : axes.count() / inner;
  WorkSplit split = split_work(lines, 4 * inner);
  if (whole) together = std::max<int64_t>(lines, 1);
  split.per_item = (split.per_item + together - 1) / together * together;
  split.grid = (lines + split.per_item - 1) / split.per_item;
  arguments.indices({inner, split.lines, split.per_item});
  append_strides(arguments, strided_shape(axes.operands), padded.span());
  return split;
}

StridedLoop::StridedLoop(ir::Builder& b, int operands)
    : b_(b), operands_(operands), nest_(b, strided_shape(operands)) {}

std::vector<ir::Value> StridedLoop::starts() const {
  std::vector<ir::Value> elements;
  for (int k = 0; k < operands_; ++k) elements.push_back(nest_.first(k));
  return elements;
}

std::vector<ir::Value> StridedLoop::moved(ir::Value steps) const {
  std::vector<ir::Value> elements;
  for (int k = 0; k < operands_; ++k) elements.push_back(nest_.element(k, steps));
  return elements;
}

}  // namespace graft
