// src/torch/dispatch/third_party.cpp: kernels for operators of packages that need not be loaded.
#include "torch/dispatch/third_party.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace graft::binding {
namespace {

bool same_type(const c10::Argument& a, const c10::Argument& b) {
  return *a.type() == *b.type() && a.kwarg_only() == b.kwarg_only();
}

bool same_argument(const c10::Argument& a, const c10::Argument& b) {
  return a.name() == b.name() && same_type(a, b);
}

}  // namespace

bool same_call(const c10::FunctionSchema& a, const c10::FunctionSchema& b) {
  const auto equal = [](const std::vector<c10::Argument>& x, const std::vector<c10::Argument>& y,
                        auto same) {
    return x.size() == y.size() && std::equal(x.begin(), x.end(), y.begin(), same);
  };
  return equal(a.arguments(), b.arguments(), same_argument) &&
         equal(a.returns(), b.returns(), same_type);
}

void call_in_float32(const c10::OperatorHandle& op, c10::DispatchKeySet, torch::jit::Stack* stack) {
  const c10::impl::ExcludeDispatchKeyGuard no_autocast(c10::DispatchKey::GRAFT_AUTOCAST_KEY);
  std::optional<at::ScalarType> first;
  for (size_t i = stack->size() - op.schema().arguments().size(); i < stack->size(); ++i) {
    c10::IValue& value = (*stack)[i];
    if (!value.isTensor() || !value.toTensor().defined()) continue;
    const at::Tensor tensor = value.toTensor();
    if (!first.has_value()) first = tensor.scalar_type();
    if (at::isReducedFloatingType(tensor.scalar_type())) value = tensor.to(at::kFloat);
  }
  op.callBoxed(stack);
  c10::IValue& result = (*stack)[stack->size() - op.schema().returns().size()];
  if (result.isTensor() && result.toTensor().is_floating_point()) {
    result = result.toTensor().to(*first);
  }
}

}  // namespace graft::binding
