// src/runtime/stream/command_counts.h: how much of each kind of command there was.
#pragma once

#include <atomic>
#include <cstdint>

namespace graft {

// What was queued so far on a stream, or on all streams of a device; what a replay queues.
template <class Figure>
struct Counts {
  Figure launches{0};  // kernels and library calls, given one by one
  Figure graphs{0};
  Figure in_graphs{0};  // kernels and library calls that the graphs held
  Figure copies{0}, copied_bytes{0};
  Figure fills{0}, filled_bytes{0};

  void add_launch() { add(launches, 1); }
  void add_copy(uint64_t bytes) { add(copies, 1), add(copied_bytes, bytes); }
  void add_fill(uint64_t bytes) { add(fills, 1), add(filled_bytes, bytes); }

  template <class Other>
  void add(const Counts<Other>& more) {
    add(launches, more.launches), add(graphs, more.graphs), add(in_graphs, more.in_graphs);
    add(copies, more.copies), add(copied_bytes, more.copied_bytes);
    add(fills, more.fills), add(filled_bytes, more.filled_bytes);
  }

 private:
  static void add(uint64_t& figure, uint64_t more) { figure += more; }
  // A plain addition: under the lock it loses nothing.
  static void add(std::atomic<uint64_t>& figure, uint64_t more) {
    figure.store(figure.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }
};

using CommandCounts = Counts<uint64_t>;
// Of one stream. Its lock guards what adds; anyone reads, at a moment of each figure.
using StreamCounts = Counts<std::atomic<uint64_t>>;

}  // namespace graft
