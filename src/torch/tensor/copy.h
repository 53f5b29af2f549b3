// src/torch/tensor/copy.h: copies between tensors of any device, dtype and layout.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>

#include "graft/driver.h"

namespace graft::binding {

// Up to here a copy from pageable memory is staged rather than wait for other work.
inline constexpr size_t kStagedBytes = 256 << 10;

// to = from: casts, broadcasts from to to's sizes, resolves lazy conjugate and negative bits. At
// least one of them lies on a device of ours. Between devices and inside one it only queues.
// From pageable memory it returns when that may be reused; from and to pinned memory, with
// non_blocking and no change of layout or dtype, it only queues. To the host it otherwise waits,
// and throws the stream's late errors. Throws Error.
void copy(const at::Tensor& to, const at::Tensor& from, bool non_blocking = false);

// Bytes from the host to the device; see copy. The stream is the current one of to's device.
// owner's storage holds the bytes: it is kept while a copy goes on whose wait ended early.
void copy_in(graft_address to, const void* from, const at::Tensor& owner, size_t bytes,
             c10::DeviceIndex device, bool non_blocking = false);

// Bytes from the device to the host, into owner's storage. Throws late errors when it waits.
void copy_out(void* to, const at::Tensor& owner, graft_address from, size_t bytes,
              c10::DeviceIndex device, bool non_blocking = false);

}  // namespace graft::binding
