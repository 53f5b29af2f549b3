// src/torch/dispatch/guarded.h: registers an operator so that what the device cannot do reaches the
// fallback.
#pragma once

#include <ATen/core/boxing/KernelFunction.h>
#include <torch/library.h>

#include "runtime/driver/error.h"
#include "runtime/driver/op_tag.h"
#include "torch/device/errors.h"
#include "torch/device/fallback_count.h"
#include "torch/device/type.h"
#include "torch/dispatch/fallback.h"
#include "torch/version/dispatch.h"

// Names an operator of ours at its definition: GRAFT_OPERATOR for a whole function,
// GRAFT_STRUCTURED for the impl of a structured operator (upstream's meta function has then made
// and checked the outputs). name is the overload's with '.' as '_': mm_out, native_dropout. The
// registration script finds these two words; nothing else has to be written down.
#define GRAFT_OPERATOR(name) graft_##name
#define GRAFT_STRUCTURED(name) structured_graft_##name::impl

namespace graft::binding {

// The operator's name in messages and op tags: "aten::add.Tensor".
template <class Op>
const std::string& qualified_name() {
  static const std::string name =
      Op::overload_name[0] ? std::string(Op::name) + "." + Op::overload_name : Op::name;
  return name;
}

// The call done by the counted fallback. One for each signature: operators share it.
template <class Result, class... Arguments>
[[gnu::noinline, gnu::cold]] Result call_fallback(const char* name, const char* overload,
                                                  Arguments... arguments) {
  const c10::OperatorHandle op = c10::Dispatcher::singleton().findSchemaOrThrow(name, overload);
  return c10::impl::BoxedKernelWrapper<Result(Arguments...)>::call(
      c10::BoxedKernel::makeFromFunction<&boxed_fallback>(), op, c10::DispatchKeySet(kDispatchKey),
      arguments...);
}

// Calls function with the op's tag set. Where a kernel under it throws UNSUPPORTED (no such kernel,
// no compiler) or COMPILE_ERROR before it wrote anything, the call is done again by the counted
// fallback; every other Error of the runtime becomes PyTorch's.
template <class Op, auto function, class Pointer = decltype(function)>
struct Guarded;

template <class Op, auto function, class Result, class... Arguments>
struct Guarded<Op, function, Result (*)(Arguments...)> {
  static Result call(Arguments... arguments) {
    const OpScope scope(qualified_name<Op>().c_str());
    try {
      return function(arguments...);
    } catch (const Error& error) {
      if (!error.lacks_kernel()) throw_as_torch(error);
      explain_fallback(error);
    }
    return call_fallback<Result, Arguments...>(Op::name, Op::overload_name, arguments...);
  }
};

// Registers function for Op in the block of m. By its address, not as a type: torch makes the code
// that unpacks a stack once for each signature then, not for each operator.
template <class Op, auto function>
void implement(torch::Library& m) {
  m.impl(qualified_name<Op>().c_str(), &Guarded<Op, function>::call);
}

}  // namespace graft::binding
