// src/torch/tensor/memory.h: device memory as PyTorch's allocator.
#pragma once

#include <c10/core/Allocator.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "runtime/memory/allocator.h"
#include "runtime/stream/stream.h"
#include "torch/device/type.h"

namespace graft::binding {

// bytes of memory on a device (below 0: the current one) for commands of its current stream; null
// for 0 bytes. Given back when the DataPtr dies. Throws torch.OutOfMemoryError.
c10::DataPtr allocate_on(c10::DeviceIndex index, size_t bytes);

// The allocator object behind it; PyTorch keeps it in every storage.
c10::Allocator& device_memory();

// The block behind memory that allocate_on gave, also in front of which a storage of
// torch.device("ve") lies; null for any other. The DataPtr keeps it.
Block* block_of(const c10::DataPtr& data);

// Commands of stream use data too: its memory is not given out again before they are done. Does
// nothing for memory that is not ours.
void record_stream(const c10::DataPtr& data, Stream& stream);

// Calls observer after each allocation that failed for want of memory, before the exception, on the
// same thread and without a lock: the device, and the bytes that were asked for, that the device
// has and that are free. What it throws is dropped. Thread-safe; observers stay.
using OutOfMemoryObserver =
    std::function<void(c10::DeviceIndex index, uint64_t wanted, uint64_t total, uint64_t free)>;
void observe_out_of_memory(OutOfMemoryObserver observer);

}  // namespace graft::binding
