// src/kernels/launch/error_record.h: where kernels that index by data report a position out of
// range.
#pragma once

#include <cstdint>

#include "graft/driver.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft {

// What a record says. A kernel that meets a bad index clamps it, goes on, and writes here.
enum class IndexErrorCode : int32_t { kNone = 0, kOutOfRange = 1, kAssertion = 2 };

// The 16 bytes in device memory, one per stream.
struct IndexError {
  int32_t code;   // IndexErrorCode
  uint32_t tag;   // the op that launched the kernel: runtime/driver/op_tag.h
  int64_t index;  // the position as it came; kAssertion: the tag of the message
};

// Address of the stream's record, for a kernel argument of 16 bytes, read and write. The first
// call on a stream allocates and clears it. Every call arms the stream's check: the next
// synchronisation (or copy to the host) reads the record and, when a code is set, clears it and
// throws Error INVALID_ARGUMENT with the op's name and the index or message. The last of several
// bad indices of one launch may be the one reported. Thread-safe; costs a lock when already armed.
GRAFT_EXPORT graft_address error_record(Stream& stream);

}  // namespace graft
