// src/compiler/plan/memory_plan.h: where the values of a graph lie in one arena.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "compiler/analysis/liveness.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

// Memory of values that take over from one another (in-place reuse).
struct PlannedBuffer {
  std::vector<ValueId> values;  // roots; the first one's birth is the buffer's
  Size bytes;
  uint32_t first = 0, last = 0;  // steps, both included
};

// Memory of the caller's that nothing sees before the step first writes it.
struct PlannedOutput {
  ValueId value = kNone;  // a root
  Size bytes;
  uint32_t first = 0;
};

// What holds for all sizes: which values share, and when they live.
struct MemoryPlan {
  std::vector<PlannedBuffer> buffers;  // by first step; without the graph's outputs
  std::vector<PlannedOutput> outputs;  // by first step
};

// Offsets for certain sizes. Kept between calls: placing again allocates nothing.
struct Placement {
  std::vector<uint64_t> offsets, bytes;  // by buffer: multiples of the alignment; as asked for
  std::vector<uint64_t> room;            // by output, its bytes
  std::vector<uint32_t> hosts;           // by buffer: the output that it lies in, kNone: the arena
  uint64_t total = 0;                    // of the arena

  // Scratch: buffers, largest first; by host, the arena first, and offset.
  std::vector<uint32_t> order;
  std::vector<std::vector<uint32_t>> placed;
};

// Plans an order of units. A value takes over the memory of an operand that dies at its step, an
// elementwise kernel that reads it once, in the same layout.
MemoryPlan plan_memory(const Graph& graph, const Effects& effects, const ScheduleUnits& units,
                       const std::vector<UnitId>& order);

// Gives every buffer an offset: in an output that is written after the buffer has died, where one
// has room, and otherwise in the arena. REQUIRES: out->bytes and out->room; outputs begin at
// multiples of the alignment, a power of two.
void place(const MemoryPlan& plan, uint64_t alignment, Placement* out);

// place() for the bytes that size gives. Called once for each size that the plan has.
Placement placed(const MemoryPlan& plan, uint64_t alignment,
                 const std::function<int64_t(const Size&)>& size);

// place() for buffers from first on; those before it, and the arena, stay where place() put them.
void place_more(const MemoryPlan& plan, uint64_t alignment, uint32_t first, Placement* out);

// Throws Error INTERNAL, naming two values, when buffers that live at one step overlap, when one is
// not aligned or leaves the arena or its output.
void check(const Graph& graph, const MemoryPlan& plan, const Placement& placement,
           uint64_t alignment);

// Bytes of the arena of a graph in its written order, at the symbols' hints, after check().
GRAFT_EXPORT uint64_t arena_bytes(const Graph& graph, uint64_t alignment);

}  // namespace graft::compiler
