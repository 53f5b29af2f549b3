// src/kernels/reduce/geometry.cpp: brings any reduction to two kept and two reduced loops.
#include "kernels/reduce/geometry.h"

#include <algorithm>

#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"

namespace graft {
namespace {

void pad(Axes& axes) {
  while (axes.rank < 2) {
    std::copy_backward(axes.at, axes.at + axes.rank, axes.at + axes.rank + 1);
    axes.at[0] = Axis{};
    ++axes.rank;
  }
}

}  // namespace

ReduceGeometry::ReduceGeometry(Stream& stream, std::span<const TensorView> outputs,
                               const TensorView& input, bool ordered)
    : input_(input), output_count_(static_cast<int>(outputs.size())) {
  kept_.operands = reduced_.operands = 1 + output_count_;
  for (int d = 0; d < input.rank; ++d) {
    if (input.sizes[d] == 1) continue;
    Axis axis;
    axis.size = input.sizes[d];
    axis.strides[0] = input.strides[d];
    bool kept = false;
    for (int i = 0; i < output_count_; ++i) {
      axis.strides[1 + i] = outputs[i].strides[d];
      kept = kept || outputs[i].strides[d] != 0;
    }
    (kept ? kept_ : reduced_).push(axis);
  }
  for (int i = 0; i < output_count_; ++i) outputs_[i] = outputs[i];
  kept_.sort(0);
  kept_.merge();
  if (!ordered) reduced_.sort(0);
  reduced_.merge();
  if (kept_.rank > 2 || reduced_.rank > 2) stage(stream);
  pad(kept_);
  pad(reduced_);
}

void ReduceGeometry::stage(Stream& stream) {
  Axes all = kept_;
  for (int i = 0; i < reduced_.rank; ++i) {
    if (all.rank == kMaxRank) throw Error(GRAFT_UNSUPPORTED, "reduce: more than 16 dimensions");
    all.push(reduced_.at[i]);
  }
  const TensorView from = all.view(0, input_.address, input_.dtype);
  input_ = staged_input_.emplace(stream, from, true).view();
  for (int i = 0; i < output_count_; ++i) stage_output(stream, i);

  Axis line, lines;
  line.size = reduced_.count();
  line.strides[0] = 1;
  lines.size = kept_.count();
  lines.strides[0] = line.size;
  for (int i = 0; i < output_count_; ++i) lines.strides[1 + i] = 1;
  kept_.rank = reduced_.rank = 0;
  kept_.push(lines);
  reduced_.push(line);
}

void ReduceGeometry::stage_output(Stream& stream, int i) {
  const TensorView target = kept_.view(1 + i, outputs_[i].address, outputs_[i].dtype);
  staged_[i].emplace(stream, target, true);
  outputs_[i] = staged_[i]->view();
}

void ReduceGeometry::finish() {
  for (int i = 0; i < output_count_; ++i) {
    if (staged_[i]) staged_[i]->finish();
  }
}

}  // namespace graft
