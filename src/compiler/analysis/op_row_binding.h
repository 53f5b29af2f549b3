// src/compiler/analysis/op_row_binding.h: how a row of the op table computes one node.
#pragma once

#include <vector>

#include "compiler/graph/graph.h"

namespace graft::compiler {

// What the op table's row is fed with for one node.
struct OpRowBinding {
  const Op* row = nullptr;
  graft_dtype compute = GRAFT_FLOAT32;  // half types compute in float32
  std::vector<Argument> inputs;         // values or numbers
  std::vector<double> scalars;
};

// How the op table computes a node; false when it does not.
bool row_use(const Graph& graph, const Node& node, OpRowBinding* out);

}  // namespace graft::compiler
