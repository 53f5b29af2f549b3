// src/torch/ops/stubs_random.cpp: kernels of the stubs that draw random numbers.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/stack.h>

#include <cmath>
#include <limits>

#include "kernels/random/random.h"
#include "torch/dispatch/refusal.h"
#include "torch/dispatch/stubs.h"
#include "torch/dispatch/tensor_iterator.h"
#include "torch/tensor/device_assertion.h"
#include "torch/tensor/operands.h"
#include "torch/version/ops/pointwise.h"

namespace graft::binding {
namespace {

using Source = std::optional<at::Generator>;

Philox draw(const Source& source, const at::TensorBase& output) {
  const auto [seed, offset] =
      next_philox(source, output.device(), philox_increment(static_cast<uint64_t>(output.numel())));
  return {seed, offset};
}

// The output itself rather than the iterator's view of it, whose order of dimensions may differ:
// element i of the tensor gets draw i whatever the layout.
at::Tensor output_of(at::TensorIteratorBase& iterator) {
  return at::Tensor(iterator.tensor_base(0));
}

void uniform_stub(at::TensorIteratorBase& iterator, double from, double to, Source source) {
  const at::Tensor output = output_of(iterator);
  if (output.numel() == 0) return;
  uniform(stream_of(output), view_of(output), draw(source, output), from, to);
}

void exponential_stub(at::TensorIteratorBase& iterator, double lambda, Source source) {
  const at::Tensor output = output_of(iterator);
  if (output.numel() == 0) return;
  require_floating(output);
  exponential(stream_of(output), view_of(output), draw(source, output), lambda);
}

void cauchy_stub(at::TensorIteratorBase& iterator, double median, double sigma, Source source) {
  const at::Tensor output = output_of(iterator);
  if (output.numel() == 0) return;
  cauchy(stream_of(output), view_of(output), draw(source, output), median, sigma);
}

void log_normal_stub(at::TensorIteratorBase& iterator, double mean, double deviation,
                     Source source) {
  const at::Tensor output = output_of(iterator);
  if (output.numel() == 0) return;
  require_floating(output);
  log_normal(stream_of(output), view_of(output), draw(source, output), mean, deviation);
}

void geometric_stub(at::TensorIteratorBase& iterator, double p, Source source) {
  const at::Tensor output = output_of(iterator);
  if (output.numel() == 0) return;
  require(output.scalar_type() != at::kBool && !output.is_complex());
  geometric(stream_of(output), view_of(output), draw(source, output), p);
}

// The first place where the running sum passes a share of the whole. In float64 a share of less
// than 1 stays below the whole, so that no place without a chance is met.
void multinomial_stub(at::Tensor& result, const at::Tensor& self, int64_t, Source source) {
  const at::Tensor chances = self.to(at::kDouble);
  const at::Tensor sums = chances.cumsum(-1);
  const at::Tensor whole = sums.narrow(-1, sums.size(-1) - 1, 1);
  const at::Tensor faults =
      at::stack({chances.lt(0).any(), at::isfinite(chances).all().logical_not(),
                 whole.gt(0).all().logical_not()})
          .cpu();
  const bool* fault = faults.const_data_ptr<bool>();
  TORCH_CHECK(!fault[0], "invalid multinomial distribution (encountering probability entry < 0)");
  TORCH_CHECK(
      !fault[1],
      "invalid multinomial distribution (encountering probability entry = infinity or NaN)");
  TORCH_CHECK(!fault[2], "invalid multinomial distribution (sum of probabilities <= 0)");
  at::Tensor shares = at::empty(result.sizes(), chances.options());
  shares.uniform_(0, 1, source).mul_(whole);
  at::searchsorted_out(result, sums, shares, false, true);
}

// Unlike the others it is called without an iterator, which would look for overlap.
void normal_stub(const at::TensorBase& self, double mean, double deviation, Source source) {
  at::assert_no_internal_overlap(self);
  if (self.numel() == 0) return;
  require_floating(self);
  const at::Tensor output(self);
  normal(stream_of(output), view_of(output), draw(source, self), mean, deviation);
}

void bernoulli_stub(const at::TensorBase& self, double p, Source source) {
  if (self.numel() == 0) return;
  require(!self.is_complex());
  const at::Tensor output(self);
  bernoulli(stream_of(output), view_of(output), draw(source, self), p);
}

void bernoulli_each_stub(const at::TensorBase& self, const at::TensorBase& p, Source source) {
  if (self.numel() == 0) return;
  require(!self.is_complex());
  require_floating(p);
  const at::Tensor output(self);
  at::assert_no_partial_overlap(output, at::Tensor(p));
  const at::Tensor given = at::Tensor(p).to(self.device());
  require_elements_within(given, 0, 1,
                          "Expected p_in >= 0 && p_in <= 1 to be true, but got false.");
  const at::Tensor chances = given.expand_as(output);
  bernoulli(stream_of(output), view_of(output), draw(source, self), view_of(chances));
}

void integers(at::TensorIteratorBase& iterator, uint64_t range, int64_t base,
              const Source& source) {
  const at::Tensor output = output_of(iterator);
  if (output.numel() == 0) return;
  random_integers(stream_of(output), view_of(output), draw(source, output), range, base);
}

void from_to_stub(at::TensorIteratorBase& iterator, uint64_t range, int64_t base, Source source) {
  integers(iterator, range, base, source);
}

// The whole range of int64: 2^64 numbers, written as range 0.
void full_range_stub(at::TensorIteratorBase& iterator, Source source) {
  integers(iterator, 0, std::numeric_limits<int64_t>::min(), source);
}

// 0 up to the largest number of the dtype, or up to which its numbers are exact.
void random_stub(at::TensorIteratorBase& iterator, Source source) {
  uint64_t range = 0;
  switch (iterator.dtype(0)) {
    case at::kBool:
      range = 2;
      break;
    case at::kByte:
      range = 1u << 8;
      break;
    case at::kChar:
      range = 1u << 7;
      break;
    case at::kShort:
      range = 1u << 15;
      break;
    case at::kInt:
      range = uint64_t{1} << 31;
      break;
    case at::kLong:
      range = uint64_t{1} << 63;
      break;
    case at::kHalf:
      range = (1u << 11) + 1;
      break;
    case at::kBFloat16:
      range = (1u << 8) + 1;
      break;
    case at::kFloat:
      range = (uint64_t{1} << 24) + 1;
      break;
    case at::kDouble:
      range = (uint64_t{1} << 53) + 1;
      break;
    default:
      throw_unfilled();
  }
  integers(iterator, range, 0, source);
}

}  // namespace

void fill_random_stubs() {
  native::uniform_stub.set_privateuse1_dispatch_ptr(&uniform_stub);
  native::exponential_stub.set_privateuse1_dispatch_ptr(&exponential_stub);
  native::cauchy_stub.set_privateuse1_dispatch_ptr(&cauchy_stub);
  native::log_normal_stub.set_privateuse1_dispatch_ptr(&log_normal_stub);
  native::geometric_stub.set_privateuse1_dispatch_ptr(&geometric_stub);
  native::multinomial_with_replacement_stub.set_privateuse1_dispatch_ptr(&multinomial_stub);
  native::normal_stub.set_privateuse1_dispatch_ptr(&normal_stub);
  native::bernoulli_scalar_stub.set_privateuse1_dispatch_ptr(&bernoulli_stub);
  native::bernoulli_tensor_stub.set_privateuse1_dispatch_ptr(&bernoulli_each_stub);
  native::random_from_to_stub.set_privateuse1_dispatch_ptr(&from_to_stub);
  native::random_full_64_bits_range_stub.set_privateuse1_dispatch_ptr(&full_range_stub);
  native::random_stub.set_privateuse1_dispatch_ptr(&random_stub);
}

}  // namespace graft::binding
