// drivers/host/onednn/plan.h: a row of oneDNN primitives that runs over given memory.
#ifndef GRAFT_DRIVERS_HOST_ONEDNN_PLAN_H_
#define GRAFT_DRIVERS_HOST_ONEDNN_PLAN_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "kernel/library.h"
#include "panels.h"

namespace graft::host {

dnnl::engine& engine();

// Thrown for what oneDNN or this code cannot do; becomes GRAFT_UNSUPPORTED.
struct Unsupported {
  const char* what;
};

// Fixed after it was made, so any number of threads may execute it at once.
struct LibraryPlan {
  // A memory that primitives read and write.
  using Slot = uint32_t;

  // The caller's tensor 0..2, or epilogue operand 0..3.
  Slot tensor(uint32_t index, const dnnl::memory::desc& desc);
  Slot operand(uint32_t index, const dnnl::memory::desc& desc);
  // One float32 zero, as a tensor of so many dimensions.
  Slot zero(int rank);
  // A piece of the workspace.
  Slot scratch(const dnnl::memory::desc& desc);

  // Appends a primitive with the slot of each of its arguments (DNNL_ARG_...).
  void add(const dnnl::primitive& primitive, std::vector<std::pair<int, Slot>> arguments);
  // Appends a reorder.
  void reorder(Slot from, Slot to);
  // Appends a conversion between float16 and float32 of the elements as they lie in memory.
  // REQUIRES: both are laid out alike and without gaps; computes_half_as_float().
  void convert(Slot from, Slot to);

  const dnnl::memory::desc& desc(Slot slot) const { return slots_[slot].desc; }
  uint64_t workspace_bytes() const { return workspace_bytes_; }

  void execute(const LibraryExecution& execution) const;

  LibraryPlan() = default;
  ~LibraryPlan() { delete spare_.load(); }

 private:
  enum class Place : uint8_t { kTensor, kOperand, kWorkspace, kZero };
  struct SlotPlace {
    dnnl::memory::desc desc;
    Place place;
    uint64_t at;  // index of tensor or operand, offset in the workspace
  };
  struct Step {
    dnnl::primitive primitive;  // none: a copy into panels or a conversion, from slot to slot
    std::vector<std::pair<int, Slot>> arguments;
    std::optional<Panels> panels = {};
  };

  // The memories of one execution, and each step's arguments among them.
  struct Run {
    explicit Run(const LibraryPlan& plan);

    std::vector<dnnl::memory> memories;
    std::vector<std::vector<dnnl_exec_arg_t>> arguments;
  };

  Slot add_slot(const dnnl::memory::desc& desc, Place place, uint64_t at);
  static void* address_of(const SlotPlace& slot, const LibraryExecution& execution);

  std::vector<SlotPlace> slots_;
  std::vector<Step> steps_;
  uint64_t workspace_bytes_ = 0;
  mutable std::atomic<Run*> spare_{nullptr};  // of the last execution; owned
};

}  // namespace graft::host

#endif  // GRAFT_DRIVERS_HOST_ONEDNN_PLAN_H_
