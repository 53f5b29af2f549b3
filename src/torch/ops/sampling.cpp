// src/torch/ops/sampling.cpp: random numbers of distributions with a parameter for each element.
#include "kernels/random/sampling.h"

#include <ATen/ExpandUtils.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/_dirichlet_grad_ops.h>
#include <ATen/ops/_standard_gamma.h>
#include <ATen/ops/_standard_gamma_grad_ops.h>
#include <ATen/ops/binomial.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/poisson.h>

#include <limits>

#include "operators.h"
#include "runtime/driver/open_device.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/device_assertion.h"
#include "torch/tensor/operands.h"

namespace graft::binding {
namespace {

using Source = std::optional<at::Generator>;

// A block for each element.
Philox draw(const Source& source, const at::Tensor& output) {
  const auto [seed, offset] =
      next_philox(source, output.device(), static_cast<uint64_t>(output.numel()));
  return {seed, offset};
}

bool has_wide_kernels(const at::Tensor& tensor) {
  const uint32_t features = stream_of(tensor).device().properties().features;
  return (features & GRAFT_FEATURE_FLOAT64) != 0;
}

// Where the kernel needs float64 that the device lacks, the CPU draws: it has no half types.
bool draws_on_cpu(const at::Tensor& tensor) {
  return at::isReducedFloatingType(tensor.scalar_type()) && !has_wide_kernels(tensor);
}

// As the CPU, which the others reach, these gradients have no half types.
void require_wide_floating(const at::Tensor& tensor) {
  if (tensor.scalar_type() != at::kFloat && tensor.scalar_type() != at::kDouble) throw_unfilled();
}

at::Tensor standard_gamma_gradient(const at::Tensor& self, const at::Tensor& output) {
  require_wide_floating(self);
  at::Tensor gradient = at::empty(self.sizes(), self.options());
  run_pointwise(iterator_of(gradient, self, output), op_row<"standard_gamma_gradient">());
  return gradient;
}

at::Tensor dirichlet_gradient(const at::Tensor& x, const at::Tensor& alpha,
                              const at::Tensor& total) {
  require_wide_floating(x);
  at::Tensor gradient = at::empty(x.sizes(), x.options());
  run_pointwise(iterator_of(gradient, x, alpha, total), op_row<"dirichlet_gradient">());
  return gradient;
}

}  // namespace

at::Tensor GRAFT_OPERATOR(poisson)(const at::Tensor& self, Source generator) {
  require_floating(self);
  if (draws_on_cpu(self)) return at::poisson(self.to(at::kFloat), generator).to(self.scalar_type());
  at::Tensor output = at::empty(self.sizes(), self.options());
  if (output.numel() == 0) return output;
  const auto philox = draw(generator, output);  // first: it knows a generator of another device
  require_elements_within(self, 0, std::numeric_limits<double>::infinity(),
                          "invalid Poisson rate, expected rate to be non-negative");
  poisson(stream_of(self), view_of(output), philox, view_of(self));
  return output;
}

at::Tensor GRAFT_OPERATOR(binomial)(const at::Tensor& count, const at::Tensor& prob,
                                    Source generator) {
  require_floating(count);
  require_same_dtype(count, prob);
  if (draws_on_cpu(count)) {
    return at::binomial(count.to(at::kFloat), prob.to(at::kFloat), generator)
        .to(count.scalar_type());
  }
  const at::DimVector sizes = at::infer_size_dimvector(count.sizes(), prob.sizes());
  at::Tensor output = at::empty(sizes, count.options());
  if (output.numel() == 0) return output;
  binomial(stream_of(count), view_of(output), draw(generator, output), view_of(count.expand(sizes)),
           view_of(prob.expand(sizes)));
  return output;
}

at::Tensor GRAFT_OPERATOR(_standard_gamma)(const at::Tensor& self, Source generator) {
  require_floating(self);
  at::Tensor output = at::empty(self.sizes(), self.options());
  if (output.numel() == 0) return output;
  standard_gamma(stream_of(self), view_of(output), draw(generator, output), view_of(self));
  return output;
}

at::Tensor GRAFT_OPERATOR(_sample_dirichlet)(const at::Tensor& self, Source generator) {
  require_floating(self);
  const bool wide = self.scalar_type() == at::kDouble;
  const double least = wide ? std::numeric_limits<double>::min()
                            : static_cast<double>(std::numeric_limits<float>::min());
  const double most = 1 - (wide ? 0x1p-53 : 0x1p-24);
  const auto type = wide || has_wide_kernels(self) ? at::kDouble : at::kFloat;
  const at::Tensor samples = at::_standard_gamma(self.to(type), generator);
  return (samples / samples.sum(-1, true)).clamp_(least, most).to(self.scalar_type());
}

TORCH_LIBRARY_IMPL(aten, GRAFT_DISPATCH_KEY, m) {
  implement<at::_ops::_standard_gamma_grad, &standard_gamma_gradient>(m);
  implement<at::_ops::_dirichlet_grad, &dirichlet_gradient>(m);
}

}  // namespace graft::binding
