// src/runtime/command_counts.h: how much of each kind of command there was.
#pragma once

#include <cstdint>

namespace graft {

// What was enqueued so far on a stream, or on all streams of a device; what a recording enqueues.
struct CommandCounts {
  uint64_t launches = 0;  // kernels and library calls
  uint64_t copies = 0;
  uint64_t copied_bytes = 0;
  uint64_t fills = 0;
  uint64_t filled_bytes = 0;
};

}  // namespace graft
