// tests/compiler/run/reference.h: runs a graph node by node in double precision, plainly.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"

namespace graft::compiler::test {

// Elements by the names of values, row-major.
using Tensors = std::map<std::string, std::vector<double>>;

// What the graph's outputs are for these inputs, then what its mutated inputs hold in the end.
// Knows the operators that the tests use; throws Error UNSUPPORTED for another. Sizes at the hints.
std::vector<std::vector<double>> reference(const Graph& graph, const Tensors& inputs);

// Seeded elements for every input.
Tensors random_inputs(const Graph& graph, unsigned seed);

}  // namespace graft::compiler::test
