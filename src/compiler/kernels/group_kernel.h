// src/compiler/kernels/group_kernel.h: the generated kernel of a group of nodes.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "codegen/ir/ir.h"
#include "compiler/kernels/group_loops.h"
#include "kernels/launch/lanes.h"

namespace graft::compiler {

// A kernel and what its launch passes. Arguments, in order: the address of each tensor of loops;
// the numbers (scalars of the host, in their dtype); what append_nest appends.
struct GroupKernel {
  static constexpr int64_t kBriefLine = 48;

  std::string key;  // equal for groups that compute the same in the same loops
  GroupLoops loops;
  std::vector<ValueId> numbers;
  std::vector<NodeId> nodes;
  WorkMapping deal = WorkMapping::kSpans;

  // The rows are known to be short.
  bool brief() const {
    const Size& length = loops.sizes[loops.inner()];
    return length.is_constant() && length.constant_part() <= kBriefLine;
  }

  // kLanes work-items reduce a row together, and a group does one row.
  bool shares_rows() const { return loops.reduces && deal != WorkMapping::kSpans; }

  NestShape shape() const { return loops.shape(deal); }

  // Writes the kernel. REQUIRES: the graph that it was made from, unchanged.
  ir::Kernel build(const Graph& graph) const;
};

// None for nodes that no single kernel computes. REQUIRES: effects are the graph's.
std::optional<GroupKernel> group_kernel(const Graph& graph, const Effects& effects,
                                        const std::vector<NodeId>& nodes);

// The same with its elements dealt out as the device wants it.
GroupKernel dealt_for(const OpenDevice& device, GroupKernel kernel);

}  // namespace graft::compiler
