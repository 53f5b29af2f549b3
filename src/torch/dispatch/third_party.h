// src/torch/dispatch/third_party.h: kernels for operators of packages that need not be loaded.
#pragma once

#include <ATen/core/function_schema.h>

#include "torch/dispatch/custom_op.h"

namespace graft::binding {

// Whether a call of the schemas is the same: names and types of arguments, in order, and types of
// results. Defaults and the operators' names do not count.
bool same_call(const c10::FunctionSchema& a, const c10::FunctionSchema& b);

// call_boxed() where the package defined the operator as expected, else the counted fallback.
template <class Op, auto function, Name expected>
void call_expected(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                   torch::jit::Stack* stack) {
  static const auto* const schema =
      new c10::FunctionSchema(torch::schema(expected.text, c10::AliasAnalysisKind::CONSERVATIVE));
  if (!same_call(op.schema(), *schema)) return boxed_fallback(op, keys, stack);
  call_boxed<Op, function>(op, keys, stack);
}

// implement_custom() before the package is loaded, or never: the dispatcher keeps a kernel until
// someone defines its operator. expected: the schema that the function's types fit.
template <class Op, auto function, Name expected>
void implement_expected(torch::Library& m) {
  m.impl(qualified_name<Op>().c_str(),
         torch::CppFunction::makeFromBoxedFunction<&call_expected<Op, function, expected>>());
}

// Under autocast, for an operator that has to compute in float32: casts its tensors, and its first
// result to the dtype of the first of them. Higher precision stays.
void call_in_float32(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                     torch::jit::Stack* stack);

}  // namespace graft::binding
