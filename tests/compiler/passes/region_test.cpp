// tests/compiler/passes/region_test.cpp: how taken nodes become regions, and regions graphs.
#include "compiler/passes/region.h"

#include <gtest/gtest.h>

#include <set>

#include "compiler/analysis/verifier.h"
#include "compiler/graph/subgraph.h"
#include "compiler/graph/text.h"
#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler {
namespace {

using test::graph_of;

// The names of each region's nodes; outside: the names of nodes that are not taken.
std::set<std::string> regions_of(const Graph& graph, const std::set<std::string>& outside) {
  std::vector<bool> taken(graph.nodes.size(), true);
  for (NodeId id : graph.order) {
    if (outside.contains(graph.values[graph.nodes[id].results[0]].name)) taken[id] = false;
    if (graph.nodes[id].has_effect()) taken[id] = false;
  }
  const Effects effects(graph);
  const Regions found = find_regions(graph, effects, taken);
  for (NodeId id : graph.order) {
    for (NodeId earlier : effects.before[id]) {
      EXPECT_LE(found.moments[earlier], found.moments[id]) << graph.describe(id);
    }
  }
  std::set<std::string> names;
  for (const std::vector<NodeId>& region : found.regions) {
    std::string text;
    for (NodeId id : region) text += graph.values[graph.nodes[id].results[0]].name;
    names.insert(text);
  }
  return names;
}

constexpr const char* kChain =
    "input %x: float32[2, 3] activation\n"
    "node %a: float32[2, 3] = aten.relu.default(%x)\n"
    "node %v: float32[3, 2](1, 3) = aten.t.default(%a) views %a\n"
    "node %b: float32[3, 2] = aten.exp.default(%v)\n"
    "node %c: float32[2, 3] = aten.tanh.default(%a)\n"
    "node %w: float32[2, 3](1, 2) = aten.t.default(%b) views %b\n"
    "node %d: float32[2, 3] = aten.add.Tensor(%c, %w)\n"
    "output %d\n";

TEST(Region, AllTakenIsOne) {
  EXPECT_EQ(regions_of(graph_of(kChain), {}), (std::set<std::string>{"abcd"}));
}

TEST(Region, NoWayLeadsOutAndBack) {
  // %d needs %b, which needs %a: not with both of %a and %d.
  const auto found = regions_of(graph_of(kChain), {"b"});
  EXPECT_EQ(found, (std::set<std::string>{"a", "cd"}));
}

TEST(Region, AViewOutsideParts) {
  EXPECT_EQ(regions_of(graph_of(kChain), {"v"}), (std::set<std::string>{"a", "bcd"}));
}

TEST(Region, AWriteBetweenReadersParts) {
  const Graph graph = graph_of(
      "input %s: float32[4] buffer mutated\n"
      "node %a: float32[4] = aten.relu.default(%s)\n"
      "node %w: float32[4] = aten.add_.Tensor(%s, %a) writes %s views %s\n"
      "node %b: float32[4] = aten.exp.default(%w)\n"
      "output %b\n");
  EXPECT_EQ(regions_of(graph, {}), (std::set<std::string>{"a", "b"}));
}

TEST(Region, APartIsAGraphOfItsOwn) {
  const Graph graph = graph_of(
      "symbol n range 1..64 hint 4 from %x[0]\n"
      "symbol m range 1..64 hint 4 from %x[1]\n"
      "input %x: float32[n, m] activation\n"
      "input %p: float32[m] parameter\n"
      "constant %two: float32[] = [2.0]\n"
      "constant %own: float32[] external \"own\"\n"
      "node %a: float32[n, m] = aten.mul.Tensor(%x, %p)\n"
      "node %b: float32[m] = aten.sum.dim_IntList(%a, [0])\n"
      "node %c: float32[m] = aten.mul.Tensor(%b, %two)\n"
      "node %d: float32[m] = aten.add.Tensor(%c, %own)\n"
      "output %d\n");
  const Subgraph part = cut_out(graph, {graph.order[2], graph.order[3]}, {graph.find("d")}, "part");
  verify(part.graph);
  EXPECT_EQ(print(part.graph),
            "graft-graph 1\ngraph part\n"
            "symbol m range 1..64 hint 4 from integer 0\n"
            "input %own: float32[] buffer\n"
            "input %b: float32[m] activation\n"
            "constant %two: float32[] = [2.0]\n"
            "node %c: float32[m] = aten.mul.Tensor(%b, %two)\n"
            "node %d: float32[m] = aten.add.Tensor(%c, %own)\n"
            "output %d\nend\n");
  EXPECT_EQ(part.inputs, (std::vector<ValueId>{graph.find("own"), graph.find("b")}));
}

}  // namespace
}  // namespace graft::compiler
