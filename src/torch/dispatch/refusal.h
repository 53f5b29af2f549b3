// src/torch/dispatch/refusal.h: what PyTorch's CPU operators refuse, refused here in the same
// words.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/ScalarType.h>

#include <initializer_list>

#include "torch/dispatch/stubs.h"

namespace graft::binding {

// Each of these ends an operator, by throw_unfilled, unless a tensor has what the operator's kernel
// takes: its registration (guarded.h) then runs the CPU's operator, which answers, or refuses with
// PyTorch's own exception. They compare dtypes and do no more, so that small calls stay fast. Call
// them before anything is written.

inline void require(bool taken) {
  if (!taken) [[unlikely]]
    throw_unfilled();
}

// One of float16, bfloat16, float32, float64.
inline void require_floating(const at::TensorBase& tensor) {
  require(at::isFloatingType(tensor.scalar_type()));
}

// Floating or of this dtype.
inline void require_floating_or(at::ScalarType other, const at::TensorBase& tensor) {
  require(at::isFloatingType(tensor.scalar_type()) || tensor.scalar_type() == other);
}

// A number with an order and a sum: neither bool nor complex.
inline void require_number(const at::TensorBase& tensor) {
  require(tensor.scalar_type() != at::kBool && !at::isComplexType(tensor.scalar_type()));
}

inline void require_same_dtype(const at::TensorBase& a, const at::TensorBase& b) {
  require(a.scalar_type() == b.scalar_type());
}

// Throws, in the words of PyTorch's CPU kernels, for a tensor of another dtype.
inline void check_scalar_type(const at::TensorBase& tensor, at::ScalarType expected) {
  TORCH_CHECK(tensor.scalar_type() == expected, "expected scalar type ", expected, " but found ",
              tensor.scalar_type());
}

// Whether the parameters of a normalisation, undefined ones left out, have one dtype: the input's,
// or float32 beside an input of a half type.
inline void require_parameters(const at::Tensor& input,
                               std::initializer_list<const at::Tensor*> parameters) {
  const at::ScalarType type = input.scalar_type();
  at::ScalarType taken = type;
  for (const at::Tensor* parameter : parameters) {
    if (!parameter->defined()) continue;
    if (at::isReducedFloatingType(type) && parameter->scalar_type() == at::kFloat) {
      taken = at::kFloat;
    }
  }
  for (const at::Tensor* parameter : parameters) {
    require(!parameter->defined() || parameter->scalar_type() == taken);
  }
}

}  // namespace graft::binding
