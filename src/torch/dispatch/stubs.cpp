// src/torch/dispatch/stubs.cpp: fills PyTorch's DispatchStubs when the binding is loaded.
#include "torch/dispatch/stubs.h"

#include <ATen/OpMathType.h>

#include <string>

#include "kernels/pointwise/pointwise.h"
#include "runtime/driver/error.h"
#include "runtime/driver/op_tag.h"
#include "torch/dispatch/refusal.h"
#include "torch/tensor/view.h"

namespace graft::binding {
namespace {

// Filling stubs touches no device: it may happen while libraries load.
[[maybe_unused]] const bool filled = [] {
  fill_stubs();
  return true;
}();

}  // namespace

void fill_stubs() {
  fill_unfilled_stubs();
  fill_op_table_stubs();
  fill_pointwise_stubs();
  fill_reduction_stubs();
  fill_random_stubs();
  fill_attention_stubs();
  fill_index_stubs();
  fill_index_put_stubs();
  fill_patch_stubs();
  fill_group_norm_stubs();
  fill_sorting_stubs();
  fill_counting_stubs();
  fill_linalg_stubs();
  fill_sparse_stubs();
  fill_quantization_stubs();
  fill_fake_quantization_stubs();
}

void throw_unfilled() {
  const std::string name = op_name(current_tag());
  throw Error(GRAFT_UNSUPPORTED, "no kernel for " + (name.empty() ? "this operator" : name));
}

void check_number(const at::TensorIteratorBase& iterator, const Op& op, const c10::Scalar& number,
                  NumberDtype dtype) {
  const at::ScalarType type = iterator.maybe_common_dtype().value_or(iterator.dtype(0));
  require(computes_in(op, compute_dtype(type)));
  require_fit(number, dtype == NumberDtype::kStored ? type : at::toOpMathType(type));
}

const Op& op_row(std::string_view name) {
  const Op* row = find_op(name);
  if (row == nullptr) {
    throw Error(GRAFT_INTERNAL, "the op table has no row " + std::string(name));
  }
  return *row;
}

}  // namespace graft::binding
