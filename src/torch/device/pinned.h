// src/torch/device/pinned.h: host memory that devices copy from and to without staging.
#pragma once

#include <c10/core/Allocator.h>

#include "runtime/stream/stream.h"

namespace graft::binding {

// The allocator behind pin_memory; its memory comes from the current device's driver.
c10::Allocator& pinned_memory();

// Whether the address lies in such memory.
bool is_pinned(const void* address);

// A command of stream uses the pinned memory around address: it is not given out again before the
// command is done. False when the address is not pinned.
bool record_pinned(const void* address, Stream& stream);

}  // namespace graft::binding
