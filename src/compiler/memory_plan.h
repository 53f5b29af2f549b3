// src/compiler/memory_plan.h: where the values of a graph lie in one arena.
#pragma once

#include <cstdint>
#include <vector>

#include "compiler/liveness.h"
#include "runtime/export.h"

namespace graft::compiler {

// Memory of values that take over from one another (in-place reuse).
struct PlannedBuffer {
  std::vector<ValueId> values;  // roots; the first one's birth is the buffer's
  Size bytes;
  uint32_t first = 0, last = 0;  // steps, both included
};

// What holds for all sizes: which values share, and when they live. Without the graph's outputs.
struct MemoryPlan {
  std::vector<PlannedBuffer> buffers;  // by first step
};

// Offsets for certain sizes. Kept between calls: placing again allocates nothing.
struct Placement {
  std::vector<uint64_t> offsets;        // by buffer, multiples of the alignment
  std::vector<uint64_t> bytes;          // by buffer, as asked for
  std::vector<uint32_t> order, placed;  // scratch: buffers, largest first and by offset
  uint64_t total = 0;                   // of the arena
};

// Plans an order of units. A value takes over the memory of an operand that dies at its step, an
// elementwise kernel that reads it once, in the same layout.
MemoryPlan plan_memory(const Graph& graph, const Effects& effects, const Units& units,
                       const std::vector<UnitId>& order);

// Gives every buffer an offset. REQUIRES: out->bytes; alignment is a power of two.
void place(const MemoryPlan& plan, uint64_t alignment, Placement* out);

// The checker: throws Error INTERNAL, naming two values, when buffers that live at one step
// overlap, when one is not aligned or leaves the arena.
void check(const Graph& graph, const MemoryPlan& plan, const Placement& placement,
           uint64_t alignment);

// Bytes of the arena of a graph in the order it is written in, at the symbols' hints, after
// check().
GRAFT_EXPORT uint64_t arena_bytes(const Graph& graph, uint64_t alignment);

}  // namespace graft::compiler
