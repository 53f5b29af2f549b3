// tests/compiler/run/random_graph.h: seeded graphs for fuzzing, and what is left of one that fails.
#pragma once

#include <functional>
#include <string>

namespace graft::compiler::test {

// A sound graph in its text form (without first and last line): elementwise operators, reductions,
// softmax, views, copies, products, writes to a buffer; at most nodes nodes.
std::string random_graph(unsigned seed, int nodes);

// The smallest graph found by leaving statements out for which fails() still holds; fails() gets
// bodies that parse and verify.
std::string shrunk(std::string body, const std::function<bool(const std::string& body)>& fails);

}  // namespace graft::compiler::test
