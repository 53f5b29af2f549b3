// src/torch/ops/fake_quantize.cpp: training with numbers as coarse as quantized ones: fake
// quantization, its gradients and the observers' running ranges.
#include <ATen/ops/aminmax.h>
#include <ATen/ops/empty_like.h>

#include <limits>

#include "kernels/move/copy.h"
#include "kernels/pointwise/pointwise.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/stubs.h"
#include "torch/dispatch/tensor_iterator.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/quantization.h"
#include "torch/version/ops/quantization.h"

namespace graft::binding {
namespace {

Scalar same(int64_t number) { return binding::same(static_cast<double>(number)); }

void fake_quantize(const Op& op, const at::Tensor& output, const at::Tensor& mask,
                   const at::Tensor& input, const Operand& scale, const Operand& zero,
                   const Operand& enabled, int64_t low, int64_t high) {
  if (input.numel() == 0) return;
  const TensorView outputs[] = {view_of(output), view_of(mask)};
  const Operand inputs[] = {view_of(input), scale, zero, enabled};
  const graft_dtype compute = compute_dtype(input.scalar_type());
  const graft::Scalar bounds[] = {same(low).to(compute), same(high).to(compute)};
  pointwise(stream_of(input), op, compute, outputs, inputs, bounds);
}

void one_scale(at::Tensor& output, at::Tensor& mask, const at::Tensor& input, float scale,
               int64_t zero, int64_t low, int64_t high) {
  fake_quantize(op_row<"fake_quantize">(), output, mask, input, binding::same(scale), same(zero),
                same(int64_t{1}), low, high);
}

void scale_on_device(at::Tensor& output, at::Tensor& mask, const at::Tensor& input,
                     const at::Tensor& scale, const at::Tensor& zero, const at::Tensor& enabled,
                     int64_t low, int64_t high) {
  fake_quantize(op_row<"fake_quantize">(), output, mask, input, along(scale, input),
                along(zero, input), along(enabled, input), low, high);
}

// The scales come with a dimension for each of the input's.
void scale_of_each_channel(at::TensorIterator& iterator, at::TensorIterator& masks, int64_t low,
                           int64_t high) {
  const at::Tensor& input = iterator.input(0);
  const at::Tensor scales = iterator.input(1).expand_as(input);
  const at::Tensor zeros = iterator.input(2).expand_as(input);
  const bool whole = !at::isFloatingType(zeros.scalar_type());
  fake_quantize(whole ? op_row<"fake_quantize">() : op_row<"fake_quantize_float_zero">(),
                iterator.output(0), masks.output(0), input, view_of(scales), view_of(zeros),
                same(int64_t{1}), low, high);
}

void gradients(at::TensorIterator& iterator, float scale, float, int64_t zero, int64_t low,
               int64_t high, float factor) {
  if (iterator.numel() == 0) return;
  TensorView outputs[3];
  for (int i = 0; i < 3; ++i) outputs[i] = operand_view(iterator, i);
  const Operand inputs[] = {operand_view(iterator, 3), operand_view(iterator, 4),
                            binding::same(scale), same(zero)};
  const graft::Scalar scalars[] = {same(low), same(high), binding::same(factor)};
  pointwise(stream_of(iterator), op_row<"fake_quantize_gradients">(), GRAFT_FLOAT32, outputs,
            inputs, scalars);
}

void gradients_of_each_channel(at::TensorIterator& iterator, int64_t low, int64_t high,
                               float factor) {
  run_pointwise(iterator, op_row<"fake_quantize_gradients">(), {low, high, factor});
}

void check_state(const char* name, const at::Tensor& state, const at::Tensor& like,
                 at::ScalarType type, int64_t channels) {
  TORCH_CHECK(state.scalar_type() == type && state.device() == like.device() &&
                  state.numel() == channels && state.is_contiguous(),
              "fused_moving_avg_obs_fake_quant: ", name, " must be a contiguous ",
              at::toString(type), " tensor of ", channels, " elements on ", like.device(), ", got ",
              state.toString(), state.sizes(), " on ", state.device());
}

struct Range {
  at::Tensor least, most;
};

// What an observer keeps between calls: one number for each channel, or for all.
struct Observer {
  at::Tensor &least, &most, &scale, &zero;
  const at::Tensor& observing;
  const at::Tensor& quantizing;

  // Tensors without elements are those of an observer that has seen nothing.
  void prepare(const at::Tensor& input, int64_t channels) const {
    if (least.numel() == 0) {
      least.resize_({channels}).fill_(std::numeric_limits<float>::infinity());
      most.resize_({channels}).fill_(-std::numeric_limits<float>::infinity());
      scale.resize_({channels}).fill_(1);
      zero.resize_({channels}).zero_();
    }
    check_state("running_min", least, input, at::kFloat, channels);
    check_state("running_max", most, input, at::kFloat, channels);
    check_state("scale", scale, input, at::kFloat, channels);
    check_state("zero_point", zero, input, at::kInt, channels);
  }

  // What least and most become. They are written by keep(), when nothing can fail any more: the
  // fallback would average what it sees into them once more.
  Range look(const at::Tensor& lines, double weight) const {
    if (lines.numel() == 0) return {least, most};
    const auto [low, high] =
        lines.dim() == 2 ? at::aminmax(lines, 1) : at::aminmax(lines, std::nullopt);
    return {averaged(least, low, weight), averaged(most, high, weight)};
  }

  at::Tensor averaged(const at::Tensor& running, const at::Tensor& seen, double weight) const {
    const at::Tensor result = at::empty_like(running);
    const TensorView output = view_of(result);
    const Operand inputs[] = {view_of(running), along(seen, running), along(observing, running)};
    const Scalar factor = binding::same(weight);
    pointwise(stream_of(running), op_row<"observe_extreme">(), GRAFT_FLOAT32, {&output, 1}, inputs,
              {&factor, 1});
    return result;
  }

  void keep(const Range& range) const {
    copy(stream_of(least), view_of(least), view_of(range.least));
    copy(stream_of(most), view_of(most), view_of(range.most));
  }

  void replace(const at::Tensor& old, const at::Tensor& found) const {
    const TensorView output = view_of(old);
    const Operand inputs[] = {along(quantizing, old), view_of(found), output};
    pointwise(stream_of(old), op_row<"where">(), output.dtype, {&output, 1}, inputs);
  }

  void choose(const Range& range, int64_t low, int64_t high, bool symmetric) const {
    const at::Tensor scales = at::empty_like(scale), zeros = at::empty_like(zero);
    const TensorView outputs[] = {view_of(scales), view_of(zeros)};
    const Operand inputs[] = {along(range.least, scales), along(range.most, scales)};
    const Scalar scalars[] = {same(low), same(high), same(int64_t{symmetric})};
    pointwise(stream_of(scale), op_row<"choose_quantization">(), GRAFT_FLOAT32, outputs, inputs,
              scalars);
    replace(scale, scales);
    replace(zero, zeros);
  }
};

}  // namespace

// Everything stays on the device: whether to observe and to quantize is read there.
std::tuple<at::Tensor, at::Tensor> GRAFT_OPERATOR(_fused_moving_avg_obs_fq_helper)(
    const at::Tensor& self, const at::Tensor& observer_on, const at::Tensor& fake_quant_on,
    at::Tensor& running_min, at::Tensor& running_max, at::Tensor& scale, at::Tensor& zero_point,
    double averaging_const, int64_t quant_min, int64_t quant_max, int64_t ch_axis,
    bool per_row_fake_quant, bool symmetric_quant) {
  TORCH_CHECK(!per_row_fake_quant || (ch_axis >= 0 && ch_axis < self.dim()),
              "fused_moving_avg_obs_fake_quant: ch_axis must be one of ", self.dim(),
              " dimensions, got ", ch_axis);
  const Observer observer{running_min, running_max, scale, zero_point, observer_on, fake_quant_on};
  observer.prepare(self, per_row_fake_quant ? self.size(ch_axis) : 1);
  const Range range =
      observer.look(per_row_fake_quant ? self.movedim(ch_axis, 0).reshape({self.size(ch_axis), -1})
                                       : self.reshape({-1}),
                    averaging_const);
  observer.choose(range, quant_min, quant_max, symmetric_quant);
  at::Tensor output = at::empty_like(self);
  at::Tensor mask = at::empty_like(self, self.options().dtype(at::kBool));
  fake_quantize(op_row<"fake_quantize">(), output, mask, self, along(scale, self, ch_axis),
                along(zero_point, self, ch_axis), along(fake_quant_on, self), quant_min, quant_max);
  observer.keep(range);
  return {output, mask};
}

void fill_fake_quantization_stubs() {
  using namespace native;
  const auto fill = [](auto& stub, auto function) { stub.set_privateuse1_dispatch_ptr(function); };
  fill(fake_quant_tensor_cachemask_stub, &one_scale);
  fill(fake_quant_tensor_cachemask_tensor_qparams_stub, &scale_on_device);
  fill(fake_quant_per_channel_cachemask_stub, &scale_of_each_channel);
  fill(fake_quant_grad_learnable_tensor_stub, &gradients);
  fill(fake_quant_grad_learnable_channel_stub, &gradients_of_each_channel);
}

}  // namespace graft::binding
