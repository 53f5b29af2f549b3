// src/torch/ops/range.cpp: tensors of evenly spaced numbers, permutations and identities.
#include "kernels/move/range.h"

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/pow.h>

#include "kernels/random/random.h"
#include "operators.h"
#include "torch/dispatch/guarded.h"
#include "torch/dispatch/refusal.h"
#include "torch/dispatch/stubs.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/out_argument.h"
#include "torch/version/factories.h"

namespace graft::binding {

at::Tensor& GRAFT_OPERATOR(arange_start_out)(const at::Scalar& start, const at::Scalar& end,
                                             const at::Scalar& step, at::Tensor& out) {
  require_number(out);
  const bool integral = at::isIntegralType(out.scalar_type(), true);
  const at::ScalarType type = integral ? at::kLong : at::kDouble;
  // PyTorch counts in integers for int64 alone.
  const int64_t size = out.scalar_type() == at::kLong
                           ? native::compute_arange_size<int64_t>(start, end, step)
                           : native::compute_arange_size<double>(start, end, step);
  if (out.numel() != size) {
    if (out.numel() > 0) {
      TORCH_WARN("The number of elements in the out tensor of shape ", out.sizes(), " is ",
                 out.numel(), " which does not match the computed number of elements ", size,
                 ". Note that this may occur as a result of rounding error. The out tensor will "
                 "be resized to a tensor of shape (",
                 size, ",).");
    }
    out.resize_({size});
  }
  require_separate(out);
  if (size > 0) {
    arange(stream_of(out), view_of(out), to_graft(start, type), to_graft(step, type));
  }
  return out;
}

at::Tensor& GRAFT_OPERATOR(logspace_out)(const at::Scalar& start, const at::Scalar& end,
                                         int64_t steps, double base, at::Tensor& out) {
  TORCH_CHECK(steps >= 0, "number of steps must be non-negative");
  if (out.numel() != steps) out.resize_({steps});
  if (steps == 0) return out;
  const auto store = [&](at::Tensor powers) -> at::Tensor& {
    powers = at::pow(base, powers);
    return out.copy_(out.dim() == 1 ? powers : powers.view(out.sizes()));
  };
  if (out.is_complex()) {
    at::Tensor powers = at::empty({steps}, out.options().dtype(at::kComplexDouble));
    return store(at::linspace_out(powers, start, end, steps));
  }
  // The ends are numbers of the output's dtype, but a single one is not rounded.
  double first = start.toDouble(), last = first;
  if (steps > 1) {
    AT_DISPATCH_ALL_TYPES_AND2(at::kHalf, at::kBFloat16, out.scalar_type(), "logspace", [&] {
      first = static_cast<double>(start.to<scalar_t>());
      last = static_cast<double>(end.to<scalar_t>());
    });
  }
  at::Tensor powers = at::empty({steps}, out.options().dtype(at::kDouble));
  return store(at::linspace_out(powers, first, last, steps));
}

at::Tensor& GRAFT_OPERATOR(randperm_generator_out)(int64_t n,
                                                   std::optional<at::Generator> generator,
                                                   at::Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be non-negative, got", n);
  require_number(out);
  native::check_supported_max_int_with_precision(n, out);
  out.resize_({n});
  if (n == 0) return out;
  // One 64-bit draw for each element, two to a block.
  const auto [seed, offset] =
      next_philox(generator, out.device(), philox_increment(static_cast<uint64_t>(n)));
  random_permutation(stream_of(out), view_of(out), {seed, offset});
  return out;
}

at::Tensor& GRAFT_OPERATOR(eye_m_out)(int64_t n, int64_t m, at::Tensor& out) {
  TORCH_CHECK(n >= 0, "n must be greater or equal to 0, got ", n);
  TORCH_CHECK(m >= 0, "m must be greater or equal to 0, got ", m);
  out.resize_({n, m});
  if (out.numel() == 0) return out;
  out.zero_();
  out.diagonal().fill_(1);
  return out;
}

at::Tensor& GRAFT_OPERATOR(eye_out)(int64_t n, at::Tensor& out) {
  return GRAFT_OPERATOR(eye_m_out)(n, n, out);
}

}  // namespace graft::binding
