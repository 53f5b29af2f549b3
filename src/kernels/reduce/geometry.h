// src/kernels/reduce/geometry.h: brings any reduction to two kept and two reduced loops.
#pragma once

#include <optional>
#include <span>

#include "kernels/move/staging.h"
#include "kernels/tensor/axes.h"
#include "kernels/tensor/view.h"

namespace graft {

// The loops of a reduction over up to three outputs and one input. Strides of the input are
// operand 0, of output i operand 1 + i. An input or outputs that need more than two loops on either
// side are staged in contiguous memory. Lives until the call's commands are queued.
class ReduceGeometry {
 public:
  // ordered: positions in the reduced dimensions matter, so their loops keep row-major order.
  ReduceGeometry(Stream& stream, std::span<const TensorView> outputs, const TensorView& input,
                 bool ordered);

  // Copies staged outputs to where they belong.
  void finish();

  // Both padded with outer loops of one step to rank 2.
  const Axes& kept() const { return kept_; }
  const Axes& reduced() const { return reduced_; }
  const TensorView& input() const { return input_; }
  std::span<const TensorView> outputs() const {
    return {outputs_, static_cast<size_t>(output_count_)};
  }

 private:
  void stage(Stream& stream);
  void stage_output(Stream& stream, int i);

  Axes kept_, reduced_;
  TensorView input_;
  TensorView outputs_[3];
  int output_count_;
  std::optional<StagedInput> staged_input_;
  std::optional<StagedOutput> staged_[3];
};

}  // namespace graft
