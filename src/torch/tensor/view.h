// src/torch/tensor/view.h: tensors, dtypes and numbers of PyTorch as the kernel library takes them.
#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Scalar.h>
#include <c10/core/ScalarType.h>

#include <atomic>

#include "kernels/tensor/view.h"
#include "torch/device/current.h"
#include "torch/device/generator.h"
#include "torch/tensor/empty.h"

namespace graft::binding {

// The kernel library's name of a dtype. Throws Error UNSUPPORTED for one that it does not know
// (quantized, unsigned above 8 bits, float8, complex32).
graft_dtype to_graft(at::ScalarType type);

// PyTorch's name of a dtype.
at::ScalarType to_torch(graft_dtype dtype);

// Whether the number goes into the dtype as a double: so do floating ones, and, into all dtypes but
// the integers, the integers beyond int64.
bool is_real_number(const c10::Scalar& number, graft_dtype dtype);

// Throws PyTorch's error for a number that the dtype cannot hold.
void require_fit(const c10::Scalar& number, at::ScalarType type);

// A number converted to a dtype. Throws PyTorch's error for a number that the dtype cannot hold.
Scalar to_graft(const c10::Scalar& number, at::ScalarType type);

// The tensor's elements as they lie in memory: a lazy conjugate or negative bit is not looked at.
// REQUIRES: tensor lies on a device of ours. Throws Error UNSUPPORTED for an unknown dtype or a
// rank above kMaxRank.
TensorView view_of(const at::TensorBase& tensor);

// The same under another dtype of the same size.
TensorView view_as(const at::TensorBase& tensor, graft_dtype dtype);

// Whether a device was reset: tensors of before may be in someone's hands.
inline std::atomic<bool> memory_was_lost{false};

// Throws Error DEVICE_LOST where the tensor's memory was its device's before a reset.
void refuse_lost_memory(const at::TensorBase& tensor);

// The address of the tensor's first element; 0 for a tensor without elements. Throws Error where
// the device was reset since the tensor was made.
inline graft_address address_of(const at::TensorBase& tensor) {
  if (memory_was_lost.load(std::memory_order_relaxed)) [[unlikely]]
    refuse_lost_memory(tensor);
  return reinterpret_cast<graft_address>(tensor.const_data_ptr());
}

}  // namespace graft::binding
