// src/torch/python_memory.cpp: limits and snapshots of device memory for Python.
#include <tuple>

#include "runtime/allocator.h"
#include "runtime/device.h"
#include "runtime/platform.h"
#include "torch/current.h"
#include "torch/python.h"

namespace graft::binding {
namespace {

namespace py = pybind11;

Device& device(int64_t index) {
  check_index(index);
  return platform().device(static_cast<int>(index));
}

std::tuple<uint64_t, uint64_t> memory_info(int64_t index) {
  const MemoryInfo info = device(index).memory_info();
  return {info.free, info.total};
}

void set_memory_fraction(int64_t index, double fraction) {
  TORCH_CHECK(fraction > 0 && fraction <= 1, "a fraction of memory lies in (0, 1], not ", fraction);
  const auto total = static_cast<double>(device(index).memory_info().total);
  device(index).allocator().set_limit(fraction == 1 ? 0 : static_cast<uint64_t>(total * fraction));
}

const char* state_name(BlockState state) {
  switch (state) {
    case BlockState::kActive:
      return "active_allocated";
    case BlockState::kPendingFree:
      return "active_pending_free";
    default:
      return "inactive";
  }
}

using BlockRow = std::tuple<uint64_t, uint64_t, uint64_t, std::string>;
using SegmentRow = std::tuple<uint64_t, uint64_t, int64_t, bool, std::vector<BlockRow>>;
using EventRow = std::tuple<std::string, uint64_t, uint64_t, int64_t, int64_t>;

std::tuple<std::vector<SegmentRow>, std::vector<EventRow>> snapshot(int64_t index) {
  const MemorySnapshot found = device(index).allocator().snapshot();
  std::vector<SegmentRow> segments;
  for (const SegmentSnapshot& segment : found.segments) {
    std::vector<BlockRow> blocks;
    for (const BlockSnapshot& block : segment.blocks) {
      blocks.emplace_back(block.address, block.capacity, block.requested, state_name(block.state));
    }
    segments.emplace_back(segment.address, segment.bytes, segment.stream, segment.large,
                          std::move(blocks));
  }
  std::vector<EventRow> history;
  for (const MemoryRecord& one : found.history) {
    history.emplace_back(action_name(one.action), one.address, one.bytes, one.stream, one.time_ns);
  }
  return {std::move(segments), std::move(history)};
}

}  // namespace

void bind_memory(py::module& module) {
  define(module, "memory_info", &memory_info);
  define(module, "set_memory_fraction", &set_memory_fraction);
  define(module, "memory_snapshot", &snapshot);
  define(
      module, "record_memory_history", +[](int64_t index, uint64_t entries) {
        device(index).allocator().record_history(entries, nullptr);
      });
}

}  // namespace graft::binding
