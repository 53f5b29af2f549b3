// src/kernels/launch/strided_loop.cpp: the loops of kernels that visit elements one by one at any
// strides.
#include "kernels/launch/strided_loop.h"

#include <algorithm>

#include "runtime/driver/error.h"

namespace graft {

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
  Axis padded[kStridedRank];
  const int missing = kStridedRank - axes.rank;
  for (int i = 0; i < axes.rank; ++i) padded[missing + i] = axes.at[i];
  const int64_t inner = padded[kStridedRank - 1].size;
  const int64_t lines = inner == 0 ? 0 : axes.count() / inner;
  WorkSplit split = split_work(lines, 4 * inner);
  if (whole) together = std::max<int64_t>(lines, 1);
  split.per_item = (split.per_item + together - 1) / together * together;
  split.grid = (lines + split.per_item - 1) / split.per_item;
  arguments.index(split.lines).index(split.per_item);
  for (const Axis& axis : padded) {
    arguments.index(axis.size);
    for (int k = 0; k < axes.operands; ++k) arguments.index(axis.strides[k]);
  }
  return split;
}

StridedLoop::StridedLoop(ir::Builder& b, int operands)
    : b_(b), lines_(b.index()), per_item_(b.index()) {
  for (int i = 0; i < kStridedRank; ++i) {
    sizes_[i] = b.index();
    for (int k = 0; k < operands; ++k) strides_[i].push_back(b.index());
  }
}

std::vector<ir::Value> StridedLoop::starts(ir::Value line) const {
  std::vector<ir::Value> elements(strides_[0].size(), b_.i64(0));
  ir::Value rest = line;
  for (int i = kStridedRank - 2; i >= 0; --i) {
    const ir::Value at = rest % sizes_[i];
    rest = rest / sizes_[i];
    for (size_t k = 0; k < elements.size(); ++k) elements[k] = elements[k] + at * strides_[i][k];
  }
  return elements;
}

std::vector<ir::Value> StridedLoop::moved(const std::vector<ir::Value>& first,
                                          ir::Value steps) const {
  std::vector<ir::Value> elements;
  for (size_t k = 0; k < first.size(); ++k) {
    elements.push_back(first[k] + steps * strides_[kStridedRank - 1][k]);
  }
  return elements;
}

}  // namespace graft
