// src/compiler/analysis/verifier.h: checks that a graph means something.
#pragma once

#include "compiler/graph/graph.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

// Throws Error INVALID_ARGUMENT for the first broken rule: symbols with a sound range and origin;
// types with at most 16 dimensions, as many strides, nothing negative; constants with as many
// elements as their type; every value defined once and before its uses; marks that name operands;
// in-place operators marked as writing, random ones as random; writes only to memory of nodes and
// of mutated inputs; elementwise results as large as their operands broadcast; operands and results
// as operators that are known by name have them; groups of nodes without effects, each in one
// group, that nothing outside lies between; outputs that exist. The message names the node, its
// operator and the line of the user's model.
GRAFT_EXPORT void verify(const Graph& graph);

// What is wrong with the operands and results of a node whose operator has an OperatorId; null if
// nothing is. Sizes that may be equal count as equal. REQUIRES: the node's values exist.
const char* broken_rule(const Graph& graph, const Node& node);

}  // namespace graft::compiler
