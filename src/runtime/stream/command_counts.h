// src/runtime/stream/command_counts.h: how much of each kind of command there was.
#pragma once

#include <atomic>
#include <cstdint>

namespace graft {

// What was queued so far on a stream, or on all streams of a device; what a recording queues.
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

// The same of one stream. Its lock guards what adds; anyone reads, at a moment of each figure.
class StreamCounts {
 public:
  void add_launch() { add(launches_, 1); }
  void add_copy(uint64_t bytes) { add(copies_, 1), add(copied_bytes_, bytes); }
  void add_fill(uint64_t bytes) { add(fills_, 1), add(filled_bytes_, bytes); }

  void add(const CommandCounts& more) {
    add(launches_, more.launches), add(graphs_, more.graphs), add(in_graphs_, more.in_graphs);
    add(copies_, more.copies), add(copied_bytes_, more.copied_bytes);
    add(fills_, more.fills), add(filled_bytes_, more.filled_bytes);
  }

  CommandCounts read() const {
    const auto now = [](const Figure& figure) { return figure.load(std::memory_order_relaxed); };
    return {now(launches_),     now(graphs_), now(in_graphs_),   now(copies_),
            now(copied_bytes_), now(fills_),  now(filled_bytes_)};
  }

 private:
  using Figure = std::atomic<uint64_t>;

  // A plain addition: under the lock it loses nothing.
  static void add(Figure& figure, uint64_t more) {
    figure.store(figure.load(std::memory_order_relaxed) + more, std::memory_order_relaxed);
  }

  Figure launches_{0}, graphs_{0}, in_graphs_{0}, copies_{0}, copied_bytes_{0}, fills_{0},
      filled_bytes_{0};
};

}  // namespace graft
