// src/torch/python/memory.cpp: limits, records and snapshots of device memory for Python.
#include "torch/tensor/memory.h"

#include <ATen/core/CachingHostAllocator.h>

#include <map>
#include <mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "runtime/driver/device_name.h"
#include "runtime/memory/allocator.h"
#include "runtime/memory/chosen_pool.h"
#include "runtime/platform/platform.h"
#include "torch/device/current.h"
#include "torch/python/python.h"
#include "torch/version/python.h"

namespace torch {
// As in torch/csrc/profiler/python/combined_traceback.h, which includes a header that the wheel
// lacks.
std::vector<pybind11::object> py_symbolize(std::vector<CapturedTraceback*>& to_symbolize);
void freeDeadCapturedTracebackFrames();
}  // namespace torch

namespace graft::binding {
namespace {

namespace py = pybind11;
using torch::CapturedTraceback;

std::tuple<uint64_t, uint64_t> memory_info(int64_t index) {
  const MemoryInfo info = device_at(index).memory_info();
  return {info.free, info.total};
}

void retain_pool(int64_t index, uint64_t pool) { device_at(index).allocator().retain_pool(pool); }

// Of finalizers, also in a forked child and at the end of the process: opens nothing.
void release_pool(int64_t index, uint64_t pool) {
  Device* const open = platform().open_device(static_cast<int>(index));
  if (open != nullptr) open->allocator().release_pool(pool);
}

uint64_t choose_pool_on(int64_t index, uint64_t pool) {
  return choose_pool(device_at(index), pool);
}

void set_memory_fraction(int64_t index, double fraction) {
  TORCH_CHECK(fraction > 0 && fraction <= 1, "expected a fraction of memory in (0, 1], got ",
              fraction);
  const auto total = static_cast<double>(device_at(index).memory_info().total);
  device_at(index).allocator().set_limit(fraction == 1 ? 0
                                                       : static_cast<uint64_t>(total * fraction));
}

// Memory that no tensor holds, by its address. Devices may give the same address.
class RawMemory {
 public:
  uint64_t allocate(int64_t index, uint64_t bytes, int64_t stream) {
    TORCH_CHECK(bytes > 0, "an allocation needs at least one byte, got 0");
    Device& owner = device_at(index);
    Block* block = owner.allocator().allocate(bytes, owner.stream(stream));
    const std::lock_guard<std::mutex> lock(mutex_);
    held_.emplace(block->address, block);
    return block->address;
  }

  void free(uint64_t address) {
    Block* block = nullptr;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      const auto found = held_.find(address);
      TORCH_CHECK(found != held_.end(), "no allocation begins at ", address,
                  ", or it was already deleted");
      block = found->second;
      held_.erase(found);
    }
    block->stream->allocator().free(block);
  }

 private:
  std::mutex mutex_;
  std::unordered_multimap<uint64_t, Block*> held_;
};

RawMemory& raw_memory() {
  static auto* memory = new RawMemory;
  return *memory;
}

double memory_fraction(int64_t index) {
  const uint64_t limit = device_at(index).allocator().limit();
  const auto total = static_cast<double>(device_at(index).memory_info().total);
  return limit == 0 ? 1 : static_cast<double>(limit) / total;
}

// The figures of pinned memory under torch's names, as torch.cuda.host_memory_stats gives them.
std::map<std::string, int64_t> host_memory_stats() {
  const at::HostStats stats = at::getHostAllocator(kDeviceType)->get_stats();
  std::map<std::string, int64_t> named{{"num_host_alloc", stats.num_host_alloc},
                                       {"num_host_free", stats.num_host_free}};
  const auto add = [&](const std::string& name, const at::Stat& stat) {
    named[name + ".current"] = stat.current;
    named[name + ".peak"] = stat.peak;
    named[name + ".allocated"] = stat.allocated;
    named[name + ".freed"] = stat.freed;
  };
  add("active_requests", stats.active_requests);
  add("active_bytes", stats.active_bytes);
  add("allocations", stats.allocations);
  add("allocated_bytes", stats.allocated_bytes);
  return named;
}

template <bool cpp>
MemoryContext stack() {
  try {
    return CapturedTraceback::gather(true, true, cpp);
  } catch (...) {
    return nullptr;
  }
}

// stacks: "" for none, "python", or "all" for those of C++, too.
void record_history(int64_t index, uint64_t entries, const std::string& stacks) {
  MemoryContextSource source = nullptr;
  if (stacks == "python") source = &stack<false>;
  if (stacks == "all") source = &stack<true>;
  device_at(index).allocator().record_history(entries, source);
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

// The stacks of one snapshot as Python's lists of frames, each made once.
class Frames {
 public:
  explicit Frames(const MemorySnapshot& snapshot) {
    std::vector<CapturedTraceback*> wanted;
    const auto want = [&](const MemoryContext& context) {
      if (context == nullptr) return;
      auto* traceback = static_cast<CapturedTraceback*>(context.get());
      if (places_.try_emplace(context.get(), wanted.size()).second) wanted.push_back(traceback);
    };
    for (const SegmentSnapshot& segment : snapshot.segments) {
      for (const BlockSnapshot& block : segment.blocks) want(block.context);
    }
    for (const MemoryRecord& record : snapshot.history) want(record.context);
    if (!wanted.empty()) lists_ = torch::py_symbolize(wanted);
  }

  py::object of(const MemoryContext& context) const {
    if (context == nullptr) return py::list();
    return lists_[places_.at(context.get())];
  }

 private:
  std::unordered_map<void*, size_t> places_;
  std::vector<py::object> lists_;
};

py::dict row(const BlockSnapshot& block, const Frames& frames) {
  py::dict row;
  row["address"] = block.address;
  row["size"] = block.capacity;
  row["requested_size"] = block.requested;
  row["state"] = state_name(block.state);
  row["frames"] = frames.of(block.context);
  return row;
}

py::dict row(const SegmentSnapshot& segment, int64_t index, const Frames& frames) {
  py::list blocks;
  for (const BlockSnapshot& block : segment.blocks) blocks.append(row(block, frames));
  py::dict row;
  row["device"] = index < kFirstCarriedIndex ? index : index - kFirstCarriedIndex;
  row["address"] = segment.address;
  row["total_size"] = segment.bytes;
  row["allocated_size"] = segment.allocated;
  row["active_size"] = segment.active;
  row["requested_size"] = segment.requested;
  row["stream"] = segment.stream;
  row["segment_type"] = segment.large ? "large" : "small";
  row["segment_pool_id"] = py::make_tuple(0, segment.pool);
  row["is_expandable"] = segment.mapped;
  row["frames"] = py::list();
  row["blocks"] = std::move(blocks);
  return row;
}

py::dict row(const MemoryRecord& record, const Frames& frames) {
  const bool out = record.action == MemoryAction::kOutOfMemory;
  py::dict row;
  row["action"] = action_name(record.action);
  row[out ? "device_free" : "addr"] = record.address;
  row["size"] = record.bytes;
  row["stream"] = record.stream;
  row["time_us"] = record.time_ns / 1000;
  row["frames"] = frames.of(record.context);
  return row;
}

// Segments and records of a device; two empty lists for one that was not used yet.
py::tuple snapshot(int64_t index) {
  py::list segments, records;
  MemorySnapshot found;
  {
    const py::gil_scoped_release unlocked;
    translate([&] {
      check_index(index);
      if (Device* open = platform().open_device(static_cast<int>(index))) {
        found = open->allocator().snapshot();
      }
    });
  }
  const Frames frames(found);
  for (const SegmentSnapshot& one : found.segments) segments.append(row(one, index, frames));
  for (const MemoryRecord& one : found.history) records.append(row(one, frames));
  found = {};
  torch::freeDeadCapturedTracebackFrames();
  return py::make_tuple(std::move(segments), std::move(records));
}

// Python's observers of failed allocations. They live as long as the process.
void observe(py::function function) {
  auto* kept = new py::function(std::move(function));
  observe_out_of_memory(
      [kept](c10::DeviceIndex index, uint64_t wanted, uint64_t total, uint64_t free) {
        const py::gil_scoped_acquire lock;
        try {
          (*kept)(index, wanted, total, free);
        } catch (py::error_already_set& error) {
          error.discard_as_unraisable("an observer of failed allocations");
        }
      });
}

}  // namespace

void bind_memory(py::module& module) {
  define(module, "memory_info", &memory_info);
  define(module, "set_memory_fraction", &set_memory_fraction);
  define(module, "retain_pool", &retain_pool);
  define(module, "release_pool", &release_pool);
  define(module, "choose_pool", &choose_pool_on);
  define(module, "record_memory_history", &record_history);
  module.def("memory_snapshot", torch::wrap_pybind_function(&snapshot));
  module.def("observe_out_of_memory", torch::wrap_pybind_function(&observe));
  define(module, "allocate", [](int64_t index, uint64_t bytes, int64_t stream) {
    return raw_memory().allocate(index, bytes, stream);
  });
  define(module, "free", [](uint64_t address) { raw_memory().free(address); });
  define(module, "memory_fraction", &memory_fraction);
  define(module, "host_memory_stats", &host_memory_stats);
  define(module, "reset_host_memory_peak",
         [] { at::getHostAllocator(kDeviceType)->reset_peak_stats(); });
  define(module, "reset_host_memory_sums",
         [] { at::getHostAllocator(kDeviceType)->reset_accumulated_stats(); });
}

}  // namespace graft::binding
