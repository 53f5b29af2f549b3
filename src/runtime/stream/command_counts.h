// src/runtime/stream/command_counts.h: how much of each kind of command there was.
#pragma once

#include <cstdint>

namespace graft {

// What was enqueued so far on a stream, or on all streams of a device; what a recording enqueues.
struct CommandCounts {
  uint64_t launches = 0;  // kernels and library calls, given one by one
  uint64_t graphs = 0;
  uint64_t in_graphs = 0;  // kernels and library calls that the graphs held
  uint64_t copies = 0;
  uint64_t copied_bytes = 0;
  uint64_t fills = 0;
  uint64_t filled_bytes = 0;

  CommandCounts& operator+=(const CommandCounts& more) {
    launches += more.launches, graphs += more.graphs, in_graphs += more.in_graphs;
    copies += more.copies, copied_bytes += more.copied_bytes;
    fills += more.fills, filled_bytes += more.filled_bytes;
    return *this;
  }
};

}  // namespace graft
