// src/torch/dispatch/custom_op.h: registers operators of libraries other than aten.
#pragma once

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/core/boxing/impl/WrapFunctionIntoFunctor.h>
#include <ATen/core/boxing/impl/make_boxed_from_unboxed_functor.h>

#include "torch/dispatch/guarded.h"
#include "torch/dispatch/stubs.h"

namespace graft::binding {

// Stands for an operator as at::_ops does for aten's: CustomOp<"quantized::conv2d", "new">, with
// the overload's name where it has one.
template <Name full, Name overload = "">
struct CustomOp {
  static constexpr const char* name = full.text;
  static constexpr const char* overload_name = overload.text;
};

// Calls function, guarded, with the arguments on the stack; puts its result there.
template <class Op, auto function>
void call_boxed(const c10::OperatorHandle& op, c10::DispatchKeySet keys, torch::jit::Stack* stack) {
  using Functor = typename c10::impl::WrapFunctionIntoFunctor<TORCH_FN_TYPE(
      (&Guarded<Op, function>::call))>::type;
  static Functor functor;
  const at::AutoDispatchBelowADInplaceOrView below;  // what it calls has no gradients of its own
  c10::impl::make_boxed_from_unboxed_functor<Functor, false>::call(&functor, op, keys, stack);
}

// implement() of guarded.h for a CustomOp. The dispatcher compares the C++ types of all kernels of
// an operator; those of such libraries are written down nowhere, so this one shows it none: the
// function's types need to fit the schema alone. REQUIRES: the library is loaded.
template <class Op, auto function>
void implement_custom(torch::Library& m) {
  m.impl(qualified_name<Op>().c_str(),
         torch::CppFunction::makeFromBoxedFunction<&call_boxed<Op, function>>());
}

}  // namespace graft::binding
