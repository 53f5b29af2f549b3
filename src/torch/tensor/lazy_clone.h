// src/torch/tensor/lazy_clone.h: storages that share memory until one of them is written.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <cstddef>

#include "runtime/memory/allocator.h"

namespace graft::binding {

// torch._lazy_clone's storages share memory. PyTorch copies it when one is asked for its mutable
// address; kernels here get const addresses, so whoever has one written asks first.

// Whether any memory is shared so: while it is not, nothing needs a look. Asked for each tensor of
// each call, so it is no call itself.
inline std::atomic<size_t> lazily_shared{0};
inline bool lazy_clones_live() noexcept {
  return lazily_shared.load(std::memory_order_relaxed) != 0;
}

// Whether the tensor's storage shares its memory so.
bool is_lazily_shared(const at::TensorBase& tensor);

// Gives the tensor's storage memory of its own where it shares it so: a copy on the current stream,
// or the shared memory itself when nobody else has it. Throws torch.OutOfMemoryError.
void own_memory(const at::TensorBase& tensor);

// The same, before a kernel gets the address, where the operator that runs may write an argument.
void own_for_kernel(const at::TensorBase& tensor);

// The block of memory that is shared so; null for any other.
Block* lazily_shared_block(const c10::DataPtr& data);

}  // namespace graft::binding
