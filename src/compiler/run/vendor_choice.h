// src/compiler/run/vendor_choice.h: chooses between a vendor's kernels and a fused one.
#pragma once

#include <cstdint>
#include <optional>

#include "compiler/analysis/effects.h"
#include "compiler/graph/graph.h"
#include "compiler/nodes/execution_host.h"
#include "runtime/driver/export.h"
#include "runtime/stream/stream.h"

namespace graft::compiler {

// Who computes a group that holds an operator for which the vendor has a kernel: its nodes one by
// one, a fused kernel, or the faster of both (as kAlways where that cannot be measured).
enum class VendorKernels : uint8_t {
  kAsSet,  // vendor_kernels_as_set()
  kAlways,
  kNever,
  kMeasure,
};

// GRAFT_VENDOR_KERNELS, else kAlways. Throws Error INVALID_ARGUMENT for another value.
GRAFT_EXPORT VendorKernels vendor_kernels_as_set();

// Whether the vendor has a kernel in any group. Asks nothing of a device without graft.ops.
bool has_choice(OpenDevice& device, const Graph& graph);

// Takes the groups apart whose nodes run one by one by that choice.
void leave_to_vendor(Stream& stream, const Effects& effects, Graph* graph, ExecutionHost& host,
                     VendorKernels choice);

// False while the stream or the thread captures.
bool may_measure(const Stream& stream);

// Whether one kernel computes the group faster than its nodes one by one: measured on scratch
// memory at the symbols' hints, and kept for the device and the process. None where it cannot be
// measured: unless may_measure(); of effects, users' kernels or no elements; without a compiler;
// where a run fails. Waits for the stream, and throws what failed before. effects: the graph's.
std::optional<bool> fused_is_faster(Stream& stream, const Effects& effects, const Graph& graph,
                                    const Group& group, ExecutionHost& host);

}  // namespace graft::compiler
