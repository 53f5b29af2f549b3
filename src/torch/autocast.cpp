// src/torch/autocast.cpp: torch.autocast of the device: torch's own lists; others run as they are.
#include <ATen/autocast_mode.h>
#include <torch/library.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "torch/device_type.h"

namespace graft::binding {
using at::IntArrayRef;
using at::Scalar;
using at::ScalarType;
using at::Tensor;

static Tensor refuse_binary_cross_entropy(const Tensor& /*self*/, const Tensor& /*target*/,
                                          const std::optional<Tensor>& /*weight*/,
                                          int64_t /*mode*/) {
  TORCH_CHECK(
      false,
      "torch.nn.functional.binary_cross_entropy and torch.nn.BCELoss are unsafe to autocast.\n"
      "Many models use a sigmoid layer right before the binary cross entropy layer.\n"
      "In this case, combine the two layers using "
      "torch.nn.functional.binary_cross_entropy_with_logits\n"
      "or torch.nn.BCEWithLogitsLoss.  binary_cross_entropy_with_logits and BCEWithLogits are\n"
      "safe to autocast.");
}

// PyTorch's casts take tensors of one device type each; those of torch.device("ve") follow the same
// lists here, and cast each time: PyTorch's cache of cast weights is of its own casts.
static bool of_slot(const Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kSlotType;
}
static bool of_slot(const std::optional<Tensor>& tensor) { return tensor && of_slot(*tensor); }
static bool of_slot(at::ITensorListRef list) {
  return std::any_of(list.begin(), list.end(), [](const Tensor& one) { return of_slot(one); });
}
static bool of_slot(at::TensorList list) { return of_slot(at::ITensorListRef(list)); }
template <class Other>
bool of_slot(const Other&) {
  return false;
}

static bool is_cast(const Tensor& tensor) {
  return of_slot(tensor) && tensor.is_floating_point() && tensor.scalar_type() != at::kDouble;
}

static Tensor cast(ScalarType type, const Tensor& tensor) {
  return is_cast(tensor) ? tensor.to(type) : tensor;
}
static std::optional<Tensor> cast(ScalarType type, const std::optional<Tensor>& tensor) {
  return tensor ? std::optional(cast(type, *tensor)) : std::nullopt;
}
static std::vector<Tensor> cast(ScalarType type, at::ITensorListRef list) {
  std::vector<Tensor> all;
  for (const Tensor& one : list) all.push_back(cast(type, one));
  return all;
}
static std::vector<Tensor> cast(ScalarType type, at::TensorList list) {
  return cast(type, at::ITensorListRef(list));
}
template <class Other>
Other cast(ScalarType, Other other) {
  return other;
}

static ScalarType widest(ScalarType type, const Tensor& tensor) {
  return is_cast(tensor) && tensor.scalar_type() == at::kFloat ? at::kFloat : type;
}
template <class Other>
ScalarType widest(ScalarType type, const Other&) {
  return type;
}

template <at::autocast::CastPolicy policy, class Signature, Signature* operation>
struct Cast;

template <at::autocast::CastPolicy policy, class Result, class... Arguments,
          Result (*operation)(Arguments...)>
struct Cast<policy, Result(Arguments...), operation> {
  using Policy = at::autocast::CastPolicy;
  using Stock = typename at::autocast::WrapFunction<policy, kDeviceType, Result(Arguments...),
                                                    Result(Arguments...), operation>::type;

  static Result call(Arguments... arguments) {
    if (!(of_slot(arguments) || ...)) return Stock::call(arguments...);
    const c10::impl::ExcludeDispatchKeyGuard once(c10::DispatchKey::GRAFT_AUTOCAST_KEY);
    const ScalarType low = at::autocast::get_autocast_dtype(kDeviceType);
    ScalarType type = policy == Policy::lower_precision_fp ? low : at::kFloat;
    if constexpr (policy == Policy::promote) {
      type = low;
      ((type = widest(type, arguments)), ...);
    }
    return (*operation)(cast(type, arguments)...);
  }
};

#define GRAFT_CAST2(op, policy)                                                               \
  m.impl(#op, TORCH_FN((&Cast<at::autocast::CastPolicy::policy, decltype(at::_ops::op::call), \
                              &at::_ops::op::call>::call)));
#define GRAFT_CAST3(op, overload, policy)                                                          \
  m.impl(                                                                                          \
      #op "." #overload,                                                                           \
      TORCH_FN((&Cast<at::autocast::CastPolicy::policy, decltype(at::_ops::op##_##overload::call), \
                      &at::_ops::op##_##overload::call>::call)));
#define GRAFT_CAST_OF(_1, _2, _3, name, ...) name
#define GRAFT_CAST(...) GRAFT_CAST_OF(__VA_ARGS__, GRAFT_CAST3, GRAFT_CAST2)(__VA_ARGS__)
#define GRAFT_LOWER_PRECISION(...) GRAFT_CAST(__VA_ARGS__, lower_precision_fp)
#define GRAFT_FP32(...) GRAFT_CAST(__VA_ARGS__, fp32)
#define GRAFT_FP32_SET_DTYPE(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define GRAFT_PROMOTE(...) GRAFT_CAST(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(_, GRAFT_AUTOCAST_KEY, m) { m.fallback(torch::CppFunction::makeFallthrough()); }

TORCH_LIBRARY_IMPL(aten, GRAFT_AUTOCAST_KEY, m) {
  AT_FORALL_LOWER_PRECISION_FP(GRAFT_LOWER_PRECISION)
  AT_FORALL_FP32(GRAFT_FP32)
  AT_FORALL_FP32_SET_OPT_DTYPE(GRAFT_FP32_SET_DTYPE)
  AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
  AT_FORALL_PROMOTE(GRAFT_PROMOTE)
  m.impl("binary_cross_entropy", &refuse_binary_cross_entropy);
}

}  // namespace graft::binding
