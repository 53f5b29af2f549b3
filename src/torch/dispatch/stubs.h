// src/torch/dispatch/stubs.h: fills PyTorch's DispatchStubs with the device's kernels.
#pragma once

#include <ATen/TensorIterator.h>

#include <algorithm>
#include <optional>
#include <string_view>
#include <type_traits>

#include "codegen/ops/op_table.h"
#include "runtime/driver/error.h"
#include "torch/dispatch/tensor_iterator.h"
#include "torch/version/stub.h"

namespace graft::binding {

// Fills every stub, in an order in which the specific kernel wins over the general one. Called
// once, before any operator runs.
void fill_stubs();

// One function per family of stubs; fill_stubs calls them all.
void fill_unfilled_stubs();
void fill_op_table_stubs();
void fill_pointwise_stubs();
void fill_reduction_stubs();
void fill_random_stubs();
void fill_attention_stubs();
void fill_index_stubs();
void fill_index_put_stubs();
void fill_patch_stubs();
void fill_group_norm_stubs();
void fill_sorting_stubs();
void fill_counting_stubs();
void fill_linalg_stubs();
void fill_sparse_stubs();
void fill_quantization_stubs();
void fill_fake_quantization_stubs();

// Ends an operator whose stub has no kernel here: its registration falls back (guarded.h).
[[noreturn]] void throw_unfilled();

template <class Result, class... Arguments, class Stub>
void leave_unfilled(native::DispatchStub<Result (*)(Arguments...), Stub>& stub) {
  stub.set_privateuse1_dispatch_ptr([](Arguments...) -> Result { throw_unfilled(); });
}

// A name as a template argument.
template <size_t size>
struct Name {
  char text[size];
  consteval Name(const char (&from)[size]) { std::copy_n(from, size, text); }
};

// The row of the op table with this name; an internal error when the table has none.
const Op& op_row(std::string_view name);

template <Name name>
const Op& op_row() {
  static const Op& row = op_row(std::string_view(name.text));
  return row;
}

// A stub's further argument as the c10::Scalar that becomes a scalar of the kernel.
inline c10::Scalar stub_scalar(const c10::Scalar& value) { return value; }
inline c10::Scalar stub_scalar(std::optional<double> value) { return value.value_or(0.0); }
template <class Number>
requires std::is_arithmetic_v<Number> c10::Scalar stub_scalar(Number value) { return value; }

// The dtype that the CPU's kernel of an operator converts its numbers to: the one that it computes
// in, float32 for the half types, or that of the tensors itself.
enum class NumberDtype { kComputed, kStored };

// Throws PyTorch's error for a number that this dtype cannot hold; UNSUPPORTED where the row has no
// kernel, which the CPU's kernels look at first.
void check_number(const at::TensorIteratorBase& iterator, const Op& op, const c10::Scalar& number,
                  NumberDtype dtype);
template <class Number>
void check_number(const at::TensorIteratorBase&, const Op&, const Number&, NumberDtype) {}

// Gives the stub the kernel of a row: the iterator's operands in order, then the stub's further
// arguments as the row's scalars.
template <Name name, NumberDtype dtype = NumberDtype::kComputed, class Iterator, class... Arguments,
          class Stub>
void fill_pointwise(native::DispatchStub<void (*)(Iterator, Arguments...), Stub>& stub) {
  stub.set_privateuse1_dispatch_ptr([](Iterator iterator, Arguments... arguments) {
    (check_number(iterator, op_row<name>(), arguments, dtype), ...);
    run_pointwise(iterator, op_row<name>(), {stub_scalar(arguments)...});
  });
}

}  // namespace graft::binding
