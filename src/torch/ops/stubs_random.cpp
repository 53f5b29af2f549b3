// src/torch/ops/stubs_random.cpp: kernels of the stubs that draw random numbers.
#include <ATen/MemoryOverlap.h>
#include <ATen/core/Generator.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/stack.h>

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

void require_nothing(const at::TensorBase&) {}

// Draws by a kernel that takes the stub's numbers, into an output that passes the check.
template <auto kernel, auto check, class... Numbers>
void draw_stub(at::TensorIteratorBase& iterator, Numbers... numbers, Source source) {
  const at::Tensor output = output_of(iterator);
  if (output.numel() == 0) return;
  check(output);
  kernel(stream_of(output), view_of(output), draw(source, output), numbers...);
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
template <class Number>
constexpr uint64_t count_of() {
  using Limits = std::numeric_limits<Number>;
  if constexpr (Limits::is_integer) return static_cast<uint64_t>(Limits::max()) + 1;
  return (uint64_t{1} << Limits::digits) + 1;
}
void random_stub(at::TensorIteratorBase& iterator, Source source) {
  switch (iterator.dtype(0)) {
#define GRAFT_CASE(number, name) \
  case at::ScalarType::name:     \
    return integers(iterator, count_of<number>(), 0, source);
    AT_FORALL_SCALAR_TYPES_AND3(Bool, Half, BFloat16, GRAFT_CASE)
#undef GRAFT_CASE
    default:
      throw_unfilled();
  }
}

}  // namespace

void fill_random_stubs() {
  native::uniform_stub.set_privateuse1_dispatch_ptr(
      &draw_stub<&graft::uniform, &require_nothing, double, double>);
  native::exponential_stub.set_privateuse1_dispatch_ptr(
      &draw_stub<&graft::exponential, &require_floating, double>);
  native::cauchy_stub.set_privateuse1_dispatch_ptr(
      &draw_stub<&graft::cauchy, &require_nothing, double, double>);
  native::log_normal_stub.set_privateuse1_dispatch_ptr(
      &draw_stub<&graft::log_normal, &require_floating, double, double>);
  native::geometric_stub.set_privateuse1_dispatch_ptr(
      &draw_stub<&graft::geometric, &require_number, double>);
  native::multinomial_with_replacement_stub.set_privateuse1_dispatch_ptr(&multinomial_stub);
  native::normal_stub.set_privateuse1_dispatch_ptr(&normal_stub);
  native::bernoulli_scalar_stub.set_privateuse1_dispatch_ptr(&bernoulli_stub);
  native::bernoulli_tensor_stub.set_privateuse1_dispatch_ptr(&bernoulli_each_stub);
  native::random_from_to_stub.set_privateuse1_dispatch_ptr(&from_to_stub);
  native::random_full_64_bits_range_stub.set_privateuse1_dispatch_ptr(&full_range_stub);
  native::random_stub.set_privateuse1_dispatch_ptr(&random_stub);
}

}  // namespace graft::binding
