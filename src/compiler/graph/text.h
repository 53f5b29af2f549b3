// src/compiler/graph/text.h: the text form of graphs, both ways.
#pragma once

#include <string>
#include <string_view>

#include "compiler/graph/graph.h"
#include "runtime/driver/export.h"

namespace graft::compiler {

// The graph that a text in the form of docs/develop/compiler-ir.md describes. Checks the form and
// that names are defined before they are used, once each; verify() checks the rest. Throws Error
// INVALID_ARGUMENT, naming line, column, what was found and what was expected.
GRAFT_EXPORT Graph parse(std::string_view text);

// The canonical text: parse(print(graph)) is the same graph, and prints the same.
GRAFT_EXPORT std::string print(const Graph& graph);

// One statement of it, without the line's end.
std::string print_node(const Graph& graph, NodeId node);
std::string print_type(const TensorType& type);
std::string print_argument(const Graph& graph, const Argument& argument);

// A float as the text form has it: the shortest that reads back to the same double, and never
// mistaken for an integer.
std::string print_float(double number);

}  // namespace graft::compiler
