// src/compiler/run/vendor_choice.h: chooses between a vendor's kernels and a fused one.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/analysis/effects.h"
#include "compiler/graph/graph.h"
#include "compiler/run/execution_host.h"
#include "runtime/stream/stream.h"

namespace graft::compiler {

// Who computes a group that holds an operator for which the vendor has a kernel (graft.ops).
enum class VendorKernels : uint8_t {
  kAsSet,    // as GRAFT_VENDOR_KERNELS says; kAlways where it is not set
  kAlways,   // the nodes run one by one
  kNever,    // a fused kernel
  kMeasure,  // the faster of both where they can be measured, else as kAlways
};

// Takes the groups apart whose nodes run one by one by that choice. Nothing happens, and nothing is
// asked, on a device whose driver has no graft.ops. Throws Error INVALID_ARGUMENT for a setting
// that is none, what the driver fails with when asked what it knows, and what fused_is_faster
// throws.
void leave_to_vendor(Stream& stream, const Effects& effects, Graph* graph, ExecutionHost& host,
                     VendorKernels choice);

// Whether one kernel computes the group faster than its nodes one by one, each by itself on scratch
// memory, at the sizes of the symbols' hints. Measured once for a device and what the group
// computes, and kept as long as the process lives. None where it cannot be measured: while the
// stream or the thread captures; of nodes with effects, users' kernels or no elements; on a device
// without a compiler; where memory is short or either way fails. Waits for the stream, and throws
// what failed of the commands before. The memory is none of the stream's allocator. effects: the
// graph's.
std::optional<bool> fused_is_faster(Stream& stream, const Effects& effects, const Graph& graph,
                                    const Group& group, ExecutionHost& host);

}  // namespace graft::compiler
