// src/torch/ops/stubs_pointwise.cpp: kernels of elementwise stubs that do not fit a row of the op
// table.
#include <ATen/ops/cos.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sin.h>
#include <ATen/ops/view_as_real.h>

#include <limits>

#include "kernels/launch/assertion.h"
#include "kernels/move/fill.h"
#include "kernels/move/masked.h"
#include "kernels/move/range.h"
#include "kernels/pointwise/pointwise.h"
#include "torch/dispatch/refusal.h"
#include "torch/dispatch/stubs.h"
#include "torch/dispatch/tensor_iterator.h"
#include "torch/tensor/operands.h"
#include "torch/tensor/view.h"
#include "torch/version/factories.h"
#include "torch/version/ops/index.h"
#include "torch/version/ops/pointwise.h"

namespace graft::binding {
namespace {

void fill_stub(at::TensorIterator& iterator, const c10::Scalar& value) {
  const graft::Scalar number = fill_number(value, iterator.dtype(0), iterator.numel());
  if (iterator.numel() != 0) fill(stream_of(iterator), operand_view(iterator, 0), number);
}

// self is the output alone.
void masked_fill_stub(at::TensorIterator& iterator, const c10::Scalar& value) {
  const graft::Scalar stored = to_graft(value, iterator.dtype(0));
  if (iterator.numel() == 0) return;
  const TensorView self = operand_view(iterator, 0);
  const Operand inputs[] = {self, operand(iterator, 1)};
  if (overlaps_itself(self) && !iterator.is_cpu_scalar(1)) {
    return masked_fill(stream_of(iterator), self, operand_view(iterator, 1), stored);
  }
  const graft_dtype compute = compute_dtype(iterator.dtype(0));
  const graft::Scalar number = stored.to(compute);
  pointwise(stream_of(iterator), op_row<"masked_fill">(), compute, {&self, 1}, inputs,
            {&number, 1});
}

// Without a factor, as nearly every caller has it, the kernel takes one argument less.
template <Name plain, Name scaled>
void scaled_stub(at::TensorIteratorBase& iterator, const c10::Scalar& alpha) {
  const at::ScalarType type = iterator.maybe_common_dtype().value_or(iterator.dtype(0));
  native::alpha_check(type, alpha);  // the meta function asks the output's dtype
  if (alpha.equal(1)) {
    run_pointwise(iterator, op_row<plain>());
  } else {
    check_number(iterator, op_row<scaled>(), alpha, NumberDtype::kStored);
    run_pointwise(iterator, op_row<scaled>(), {alpha});
  }
}

// The exponents that have kernels of their own, with their exact results.
void power_stub(at::TensorIteratorBase& iterator, const c10::Scalar& exponent) {
  const at::ScalarType type = iterator.common_dtype();
  if (at::isReducedFloatingType(type) || at::isIntegralType(type, true)) {
    check_number(iterator, op_row<"pow_scalar">(), exponent, NumberDtype::kStored);
  }
  if (exponent.equal(2)) {
    run_pointwise(iterator, op_row<"square">());
  } else if (exponent.equal(3)) {
    run_pointwise(iterator, op_row<"cube">());
  } else if (exponent.equal(0.5)) {
    run_pointwise(iterator, op_row<"sqrt">());
  } else {
    run_pointwise(iterator, op_row<"pow_scalar">(), {exponent});
  }
}

void threshold_stub(at::TensorIteratorBase& iterator, const c10::Scalar& threshold,
                    const c10::Scalar& value) {
  check_number(iterator, op_row<"threshold">(), threshold, NumberDtype::kComputed);
  check_number(iterator, op_row<"threshold">(), value, NumberDtype::kStored);
  run_pointwise(iterator, op_row<"threshold">(), {threshold, value});
}

// As on the CPU, a bound that the dtype does not hold is an error. (Unsigned integers hold a
// negative one, which wraps around.)
template <Name name, class... Bounds>
void clamp_stub(at::TensorIteratorBase& iterator, Bounds... bounds) {
  (static_cast<void>(to_graft(bounds, iterator.common_dtype())), ...);
  run_pointwise(iterator, op_row<name>(), {bounds...});
}

void polygamma_stub(at::TensorIteratorBase& iterator, int64_t degree) {
  if (degree == 0) {
    run_pointwise(iterator, op_row<"digamma">());
  } else if (degree == 1) {
    run_pointwise(iterator, op_row<"trigamma">());
  } else {
    run_pointwise(iterator, op_row<"polygamma">(), {degree});
  }
}

void next_after_stub(at::TensorIteratorBase& iterator) {
  const at::ScalarType type = iterator.common_dtype();
  run_pointwise(iterator, type == at::kBFloat16 ? op_row<"nextafter_bfloat16">()
                          : type == at::kHalf   ? op_row<"nextafter_float16">()
                                                : op_row<"nextafter">());
}

// A divisor of 0 is an error of the CPU. A number is looked at here, numbers on the device there.
template <Name name>
void integer_quotient_stub(at::TensorIteratorBase& iterator) {
  constexpr const char* kError = "ZeroDivisionError";
  const bool integral = at::isIntegralType(iterator.common_dtype(), true);
  if (integral && iterator.numel() > 0) {
    if (iterator.is_cpu_scalar(2)) {
      const graft_dtype type = to_graft(iterator.common_dtype());
      TORCH_CHECK(operand(iterator, 2).scalar.to(type).real() != 0, kError);
    } else {
      require_nonzero(stream_of(iterator), operand_view(iterator, 2), kError);
    }
  }
  run_pointwise(iterator, op_row<name>());
}

// As on the CPU, quotients of half types are rounded to them before they are cut, unless one number
// divides all.
void truncated_quotient_stub(at::TensorIteratorBase& iterator) {
  const bool one = iterator.tensor(2).numel() == 1;
  if (one || !at::isReducedFloatingType(iterator.common_dtype())) {
    return integer_quotient_stub<"div_trunc">(iterator);
  }
  run_pointwise(iterator, op_row<"div">());
  at::Tensor quotients(iterator.tensor_base(0));
  run_pointwise(at::TensorIterator::unary_op(quotients, quotients), op_row<"trunc">());
}

// Infinities become the largest numbers of the dtype where no others are given.
void nan_to_num_stub(at::TensorIteratorBase& iterator, std::optional<double> nan,
                     std::optional<double> positive, std::optional<double> negative) {
  double largest = std::numeric_limits<double>::max();
  switch (iterator.dtype(0)) {
    case at::kFloat:
      largest = std::numeric_limits<float>::max();
      break;
    case at::kHalf:
      largest = std::numeric_limits<at::Half>::max();
      break;
    case at::kBFloat16:
      largest = std::numeric_limits<at::BFloat16>::max();
      break;
    default:
      break;
  }
  run_pointwise(iterator, op_row<"nan_to_num">(),
                {nan.value_or(0.0), positive.value_or(largest), negative.value_or(-largest)});
}

void linspace_stub(at::TensorIterator& iterator, const c10::Scalar& start, const c10::Scalar& end,
                   int64_t) {
  if (iterator.numel() == 0) return;
  const at::ScalarType stored = iterator.dtype(0);
  require(stored != at::kBool);
  static_cast<void>(to_graft(start, stored));  // refuses an end that does not fit
  static_cast<void>(to_graft(end, stored));
  const at::ScalarType type = at::isIntegralType(stored, true) ? at::kLong
                              : at::isComplexType(stored)      ? at::kComplexDouble
                                                               : at::kDouble;
  linspace(stream_of(iterator), operand_view(iterator, 0), to_graft(start, type),
           to_graft(end, type));
}

// Part 0 (real) or 1 (imaginary) of the output, as a view.
at::Tensor part(const at::TensorIterator& iterator, int64_t which) {
  return at::view_as_real(at::Tensor(iterator.tensor_base(0))).select(-1, which);
}

void complex_stub(at::TensorIterator& iterator) {
  if (iterator.numel() == 0) return;
  part(iterator, 0).copy_(iterator.tensor(1));
  part(iterator, 1).copy_(iterator.tensor(2));
}

void polar_stub(at::TensorIterator& iterator) {
  if (iterator.numel() == 0) return;
  const at::Tensor radius = iterator.tensor(1), angle = iterator.tensor(2);
  require(radius.scalar_type() == at::kFloat || radius.scalar_type() == at::kDouble);
  at::Tensor real = part(iterator, 0), imaginary = part(iterator, 1);
  at::mul_out(real, radius, at::cos(angle));
  at::mul_out(imaginary, radius, at::sin(angle));
}

void cross_stub(const at::Tensor& result, const at::Tensor& a, const at::Tensor& b, int64_t dim) {
  if (result.numel() == 0) return;
  const bool overwrites = result.is_alias_of(a) || result.is_alias_of(b);
  const at::Tensor output = overwrites ? at::empty_like(result) : result;
  for (int64_t component = 0; component < 3; ++component) {
    const int64_t next = (component + 1) % 3, last = (component + 2) % 3;
    const auto iterator =
        iterator_of(output.select(dim, component), a.select(dim, next), b.select(dim, last),
                    a.select(dim, last), b.select(dim, next));
    run_pointwise(iterator, op_row<"cross_term">());
  }
  if (overwrites) result.copy_(output);
}

}  // namespace

void fill_pointwise_stubs() {
  native::complex_stub.set_privateuse1_dispatch_ptr(&complex_stub);
  native::polar_stub.set_privateuse1_dispatch_ptr(&polar_stub);
  native::cross_stub.set_privateuse1_dispatch_ptr(&cross_stub);
  native::fill_stub.set_privateuse1_dispatch_ptr(&fill_stub);
  native::add_stub.set_privateuse1_dispatch_ptr(&scaled_stub<"plain_add", "add">);
  native::sub_stub.set_privateuse1_dispatch_ptr(&scaled_stub<"plain_sub", "sub">);
  native::pow_tensor_scalar_stub.set_privateuse1_dispatch_ptr(&power_stub);
  native::threshold_stub.set_privateuse1_dispatch_ptr(&threshold_stub);
  fill_pointwise<"addr", NumberDtype::kStored>(native::addr_stub);
  fill_pointwise<"hardshrink", NumberDtype::kStored>(native::hardshrink_stub);
  fill_pointwise<"shrink_backward", NumberDtype::kStored>(native::shrink_backward_stub);
  native::masked_fill_stub.set_privateuse1_dispatch_ptr(&masked_fill_stub);
  native::div_trunc_stub.set_privateuse1_dispatch_ptr(&truncated_quotient_stub);
  native::div_floor_stub.set_privateuse1_dispatch_ptr(&integer_quotient_stub<"div_floor">);
  native::remainder_stub.set_privateuse1_dispatch_ptr(&integer_quotient_stub<"remainder">);
  native::fmod_stub.set_privateuse1_dispatch_ptr(&integer_quotient_stub<"fmod">);
  native::nan_to_num_stub.set_privateuse1_dispatch_ptr(&nan_to_num_stub);
  native::clamp_scalar_stub.set_privateuse1_dispatch_ptr(&clamp_stub<"clamp_scalar">);
  native::clamp_min_scalar_stub.set_privateuse1_dispatch_ptr(&clamp_stub<"clamp_min">);
  native::clamp_max_scalar_stub.set_privateuse1_dispatch_ptr(&clamp_stub<"clamp_max">);
  native::polygamma_stub.set_privateuse1_dispatch_ptr(&polygamma_stub);
  native::nextafter_stub.set_privateuse1_dispatch_ptr(&next_after_stub);
  native::linspace_stub.set_privateuse1_dispatch_ptr(&linspace_stub);
}

}  // namespace graft::binding
