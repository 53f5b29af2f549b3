// src/torch/tensor/storage.h: storages that grow and shrink on the device.
#pragma once

#include <c10/core/StorageImpl.h>

#include <cstddef>

namespace graft::binding {

// Gives a storage of the device new memory of bytes and keeps what fits of its contents; the copy
// runs on the current stream of its device. 0 bytes frees the memory. Throws RuntimeError for a
// storage that cannot be resized, torch.OutOfMemoryError.
void resize_storage(c10::StorageImpl& storage, size_t bytes);

}  // namespace graft::binding
