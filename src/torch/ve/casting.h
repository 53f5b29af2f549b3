// src/torch/ve/casting.h: torch.autocast's policies for tensors of the slot.
#pragma once

#include <ATen/autocast_mode.h>

#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "torch/ve/slot.h"

// PyTorch's policies cast the tensors of their own device type. These do the same for tensors of
// the slot, for which autocast of kDeviceType holds, but keep no copies of weights.
namespace graft::binding::ve {

// Whether autocast may change the tensor: torch's rule, for the slot.
inline bool may_cast(const at::Tensor& tensor) {
  return tensor.defined() && tensor.device().type() == kType && tensor.is_floating_point() &&
         tensor.scalar_type() != at::kDouble;
}

// Calls see for each tensor of an argument, whatever holds it.
template <class T, class See>
void each_tensor(const T& argument, See see) {
  if constexpr (std::is_same_v<T, at::Tensor>) {
    see(argument);
  } else if constexpr (std::is_same_v<T, std::optional<at::Tensor>>) {
    if (argument.has_value()) see(*argument);
  } else if constexpr (std::is_same_v<T, at::TensorList> || std::is_same_v<T, at::ITensorListRef>) {
    for (const at::Tensor& one : argument) see(one);
  }
}

template <class... Args>
bool on_slot(const Args&... args) {
  bool found = false;
  const auto see = [&](const at::Tensor& tensor) {
    found |= tensor.defined() && tensor.device().type() == kType;
  };
  (each_tensor(args, see), ...);
  return found;
}

inline at::Tensor cast(at::ScalarType type, const at::Tensor& tensor) {
  return may_cast(tensor) && tensor.scalar_type() != type ? tensor.to(type) : tensor;
}
template <class T>
decltype(auto) cast(at::ScalarType type, const T& argument) {
  if constexpr (std::is_same_v<T, std::optional<at::Tensor>>) {
    return argument.has_value() ? T(cast(type, *argument)) : T();
  } else if constexpr (std::is_same_v<T, at::TensorList> || std::is_same_v<T, at::ITensorListRef>) {
    std::vector<at::Tensor> all;
    for (const at::Tensor& one : argument) all.push_back(cast(type, one));
    return all;
  } else {
    return argument;
  }
}

// float32 where one tensor is, else the lower dtype.
template <class... Args>
at::ScalarType promoted(at::ScalarType lower, const Args&... args) {
  at::ScalarType type = lower;
  const auto see = [&](const at::Tensor& tensor) {
    if (!may_cast(tensor)) return;
    const at::ScalarType own = tensor.scalar_type();
    TORCH_CHECK(own == at::kFloat || own == lower, "autocast to ", lower,
                " takes tensors of float32 and ", lower, ", not of ", own);
    if (own == at::kFloat) type = own;
  };
  (each_tensor(args, see), ...);
  return type;
}

template <class... Args>
bool may_cast_first(const at::Tensor& first, const Args&...) {
  return may_cast(first);
}

// An operator's kernel for autocast: torch's own for tensors of kDeviceType and of the CPU. The
// parameters are those of at::autocast::WrapFunction.
template <at::autocast::CastPolicy policy, class Redispatch, Redispatch* op, class Registered>
struct Autocast;

template <at::autocast::CastPolicy policy, class Redispatch, Redispatch* op, class Ret,
          class... Args>
struct Autocast<policy, Redispatch, op, Ret(Args...)> {
  using Policy = at::autocast::CastPolicy;
  using Own = at::autocast::WrapFunction<policy, kDeviceType, Ret(Args...), Redispatch, op>;

  static Ret call(Args... args) {
    if (!on_slot(args...)) [[likely]]
      return Own::type::call(std::forward<Args>(args)...);
    const c10::impl::ExcludeDispatchKeyGuard once(
        at::autocast::get_autocast_dispatch_key_from_device_type(kDeviceType));
    if constexpr (policy == Policy::fp32_append_dtype) {
      return append_dtype(args...);
    } else if constexpr (policy == Policy::fp32_set_opt_dtype) {
      if (!may_cast_first(args...)) return (*op)(args...);
      return (*op)(at::autocast::set_opt_dtype(at::kFloat, args)...);
    } else {
      const at::ScalarType type = wanted(args...);
      return (*op)(cast(type, args)...);
    }
  }

 private:
  template <class First, class... Others>
  static Ret append_dtype(const First& first, const Others&... others) {
    return (*op)(first, others..., may_cast(first) ? at::kFloat : first.scalar_type());
  }
  template <class... Given>
  static at::ScalarType wanted(const Given&... given) {
    if constexpr (policy == Policy::fp32) return at::kFloat;
    const at::ScalarType lower = at::autocast::get_autocast_dtype(kDeviceType);
    return policy == Policy::promote ? promoted(lower, given...) : lower;
  }
};

}  // namespace graft::binding::ve
