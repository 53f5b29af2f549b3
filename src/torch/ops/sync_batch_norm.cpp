// src/torch/ops/sync_batch_norm.cpp: the steps of batch normalisation between which processes
// exchange statistics.
#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/full.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/zeros_like.h>

#include <limits>

#include "kernels/norm/normalization.h"
#include "kernels/reduce/reduce.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

using Optional = std::optional<at::Tensor>;
using Two = std::tuple<at::Tensor, at::Tensor>;
using Four = std::tuple<at::Tensor, at::Tensor, at::Tensor, at::Tensor>;

// As on CUDA: statistics of half images, and all that is computed of them, are float32.
at::ScalarType wide_type(const at::Tensor& input) {
  return input.scalar_type() == at::kDouble ? at::kDouble : at::kFloat;
}

at::Tensor wide(const at::Tensor& channels, const at::Tensor& input) {
  return channels.to(wide_type(input)).contiguous();
}

void check_images(const char* name, const at::Tensor& input) {
  TORCH_CHECK(input.dim() >= 2 && at::isFloatingType(input.scalar_type()), name,
              ": expected floating images [n, c, ...]; got ", input.toString(), input.sizes());
}

// A kernel trusts the length of what it reads.
void check_channels(const char* name, const at::Tensor& input, const at::Tensor& channels) {
  TORCH_CHECK(!channels.defined() || channels.numel() == input.size(1), name, ": expected ",
              input.size(1), " numbers, one for each channel; got ", channels.sizes());
}

// As torch.batch_norm says it.
void check_running(const char* name, const at::Tensor& input, const at::Tensor& running) {
  TORCH_CHECK(!running.defined() || running.numel() == input.size(1), name, " should contain ",
              input.size(1), " elements not ", running.numel());
}

at::Tensor channel_weight(const char* name, const Optional& weight, const at::Tensor& input) {
  const at::Tensor given = or_undefined(weight);
  check_channels(name, input, given);
  return given.defined() ? wide(given, input) : given;
}

// Mean and biased variance of each channel.
Two moments_of(const at::Tensor& input) {
  const auto options = input.options().dtype(wide_type(input));
  at::Tensor mean = at::empty({input.size(1)}, options), variance = at::empty_like(mean);
  if (input.numel() == 0) {
    const double nothing = std::numeric_limits<double>::quiet_NaN();
    return {mean.fill_(nothing), variance.fill_(nothing)};
  }
  at::DimVector shape(static_cast<size_t>(input.dim()), 1);
  shape[1] = input.size(1);
  // Steps of 0 say which dimensions are reduced.
  const at::Tensor means = mean.view(shape).expand(input.sizes());
  const TensorView to_mean = view_of(means);
  graft::variance(stream_of(input), view_of(variance.view(shape).expand(input.sizes())), &to_mean,
                  view_of(input), 0, false);
  return {mean, variance};
}

// running = (1 - momentum) * running + momentum * batch, in the wide type.
void move_towards(const at::Tensor& running, const at::Tensor& batch, double momentum) {
  running.copy_(at::lerp(running.to(batch.scalar_type()), batch, momentum));
}

void move_statistics(const Optional& running_mean, const Optional& running_var,
                     const at::Tensor& mean, const at::Tensor& unbiased, double momentum) {
  const at::Tensor old_mean = or_undefined(running_mean), old_variance = or_undefined(running_var);
  if (old_mean.defined()) move_towards(old_mean, mean, momentum);
  if (old_variance.defined()) move_towards(old_variance, unbiased, momentum);
}

void normalize(const at::Tensor& output, const at::Tensor& input, const Optional& weight,
               const Optional& bias, const at::Tensor& mean, const at::Tensor& invstd) {
  const at::Tensor images = input.contiguous(image_format(input));
  const at::Tensor factor = channel_weight("batch_norm_elemt", weight, input);
  const at::Tensor offset = channel_weight("batch_norm_elemt", bias, input);
  check_channels("batch_norm_elemt", input, mean);
  check_channels("batch_norm_elemt", input, invstd);
  at::Tensor scale = wide(invstd, input);
  if (factor.defined()) scale = scale * factor;
  const at::Tensor average = wide(mean, input);
  const at::Tensor shift = offset.defined() ? offset : at::zeros_like(average);
  const TensorView center = view_of(average);
  batch_norm_affine(stream_of(input), view_of(output), view_of(images), view_of(scale), nullptr,
                    nullptr, view_of(shift), &center);
}

}  // namespace

Two GRAFT_OPERATOR(batch_norm_stats)(const at::Tensor& input, double eps) {
  check_images("batch_norm_stats", input);
  auto [mean, variance] = moments_of(input);
  return {mean, variance.add_(eps).rsqrt_()};
}

Two GRAFT_OPERATOR(batch_norm_update_stats)(const at::Tensor& input, const Optional& running_mean,
                                            const Optional& running_var, double momentum) {
  const at::Tensor old_mean = or_undefined(running_mean), old_variance = or_undefined(running_var);
  check_images("batch_norm_update_stats", input);
  check_running("running_mean", input, old_mean);
  check_running("running_var", input, old_variance);
  require_parameters(input, {&old_mean, &old_variance});
  TORCH_CHECK(input.numel() > 0,
              "input tensor must have at least one element, but got input_sizes = ", input.sizes());
  auto [mean, variance] = moments_of(input);
  const auto count = static_cast<double>(input.numel()) / static_cast<double>(input.size(1));
  move_statistics(running_mean, running_var, mean, variance * (count / (count - 1)), momentum);
  return {mean, variance};
}

at::Tensor GRAFT_OPERATOR(batch_norm_elemt)(const at::Tensor& input, const Optional& weight,
                                            const Optional& bias, const at::Tensor& mean,
                                            const at::Tensor& invstd, double) {
  check_images("batch_norm_elemt", input);
  at::Tensor output = at::empty_like(input, input.options().memory_format(image_format(input)));
  normalize(output, input, weight, bias, mean, invstd);
  return output;
}

at::Tensor& GRAFT_OPERATOR(batch_norm_elemt_out)(const at::Tensor& input, const Optional& weight,
                                                 const Optional& bias, const at::Tensor& mean,
                                                 const at::Tensor& invstd, double eps,
                                                 at::Tensor& out) {
  TORCH_CHECK(out.sizes() == input.sizes(), "batch_norm_elemt: expected an output of the sizes ",
              input.sizes(), "; got ", out.sizes());
  return out.copy_(GRAFT_OPERATOR(batch_norm_elemt)(input, weight, bias, mean, invstd, eps));
}

// The moments of all images together from each process's: mean and invstd are [processes, c].
Two GRAFT_OPERATOR(batch_norm_gather_stats_with_counts)(
    const at::Tensor& input, const at::Tensor& mean, const at::Tensor& invstd,
    const Optional& running_mean, const Optional& running_var, double momentum, double eps,
    const at::Tensor& counts) {
  const at::ScalarType type = wide_type(mean);
  TORCH_CHECK(mean.dim() == 2 && invstd.sizes() == mean.sizes() && counts.numel() == mean.size(0),
              "batch_norm_gather_stats: expected means and deviations [processes, channels] and a "
              "count for each process; got ",
              mean.sizes(), ", ", invstd.sizes(), " and ", counts.sizes());
  static_cast<void>(input);
  const at::Tensor each = counts.to(type).reshape({-1, 1}), total = each.sum();
  const at::Tensor share = each / total, means = mean.to(type);
  const at::Tensor joined = (means * share).sum(0);
  const at::Tensor within = invstd.to(type).pow(-2).sub_(eps);
  const at::Tensor variance = (within.add_((means - joined).square_()).mul_(share)).sum(0);
  move_statistics(running_mean, running_var, joined, variance * (total / (total - 1)), momentum);
  return {joined, variance.add(eps).rsqrt_()};
}

Two GRAFT_OPERATOR(batch_norm_gather_stats)(const at::Tensor& input, const at::Tensor& mean,
                                            const at::Tensor& invstd, const Optional& running_mean,
                                            const Optional& running_var, double momentum,
                                            double eps, int64_t count) {
  const at::Tensor counts = at::full({mean.size(0)}, count, mean.options().dtype(wide_type(mean)));
  return GRAFT_OPERATOR(batch_norm_gather_stats_with_counts)(input, mean, invstd, running_mean,
                                                             running_var, momentum, eps, counts);
}

Four GRAFT_OPERATOR(batch_norm_backward_reduce)(const at::Tensor& grad_out, const at::Tensor& input,
                                                const at::Tensor& mean, const at::Tensor& invstd,
                                                const Optional& weight, bool input_g, bool weight_g,
                                                bool bias_g) {
  const char* name = "batch_norm_backward_reduce";
  check_images(name, input);
  check_channels(name, input, mean);
  check_channels(name, input, invstd);
  TORCH_CHECK(grad_out.sizes() == input.sizes(), name, ": expected a gradient of the sizes ",
              input.sizes(), "; got ", grad_out.sizes());
  const at::MemoryFormat format = image_format(input);
  const at::Tensor images = input.contiguous(format), gradient = grad_out.contiguous(format);
  const at::Tensor average = wide(mean, input);
  at::Tensor sum = at::zeros_like(average), along = at::zeros_like(average);
  batch_norm_sums(stream_of(input), view_of(sum), view_of(along), view_of(gradient),
                  view_of(images), view_of(average));
  const at::Tensor parameter = or_undefined(weight);
  const at::ScalarType type = parameter.defined() ? parameter.scalar_type() : average.scalar_type();
  at::Tensor to_weight, to_bias;
  if (weight_g) to_weight = (along * wide(invstd, input)).to(type);
  if (bias_g) to_bias = sum.to(type, /*non_blocking=*/false, /*copy=*/true);
  if (!input_g) sum = along = at::Tensor();
  return {sum, along, to_weight, to_bias};
}

at::Tensor GRAFT_OPERATOR(batch_norm_backward_elemt)(
    const at::Tensor& grad_out, const at::Tensor& input, const at::Tensor& mean,
    const at::Tensor& invstd, const Optional& weight, const at::Tensor& sum_dy,
    const at::Tensor& sum_dy_xmu, const at::Tensor& count) {
  const char* name = "batch_norm_backward_elemt";
  check_images(name, input);
  for (const at::Tensor* channels : {&mean, &invstd, &sum_dy, &sum_dy_xmu}) {
    check_channels(name, input, *channels);
  }
  TORCH_CHECK(grad_out.sizes() == input.sizes(), name, ": expected a gradient of the sizes ",
              input.sizes(), "; got ", grad_out.sizes());
  const at::MemoryFormat format = image_format(input);
  const at::Tensor images = input.contiguous(format);
  const at::Tensor gradient = grad_out.to(input.scalar_type()).contiguous(format);
  const at::Tensor total = count.sum().to(wide_type(input)), spread = wide(invstd, input);
  const at::Tensor given = channel_weight(name, weight, input);
  const at::Tensor factor = given.defined() ? given * spread : spread;
  const at::Tensor slope = (factor * spread * spread * wide(sum_dy_xmu, input) / total).neg_();
  const at::Tensor shift = (factor * wide(sum_dy, input) / total).neg_();
  const at::Tensor average = wide(mean, input);
  at::Tensor result = at::empty_like(images);
  const TensorView second = view_of(images), slopes = view_of(slope), center = view_of(average);
  batch_norm_affine(stream_of(input), view_of(result), view_of(gradient), view_of(factor), &second,
                    &slopes, view_of(shift), &center);
  return result;
}

}  // namespace graft::binding
