// src/runtime/memory/chosen_pool.h: the memory pool that a thread allocates from.
#pragma once

#include <cstdint>

#include "runtime/driver/export.h"

namespace graft {

class OpenDevice;
class Stream;

// The pool that memory which the calling thread allocates for the stream comes from: that of the
// stream's recording, else what choose_pool set for the device, 0 (the shared one) before.
uint64_t pool_for(const Stream& stream) noexcept;

// Sets it for the calling thread alone and returns the one before. Memory comes from the pool only
// while it is retained (Allocator::retain_pool); from one that is not, it is shared as any other.
GRAFT_EXPORT uint64_t choose_pool(const OpenDevice& device, uint64_t pool) noexcept;

}  // namespace graft
