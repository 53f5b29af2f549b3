// tests/compiler/analysis/views_test.cpp: where the parts of a tensor lie in it.
#include "compiler/analysis/views.h"

#include <gtest/gtest.h>

#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler {
namespace {

TEST(Views, PartsLieBehindOneAnother) {
  const Graph graph = test::graph_of(
      "symbol s range 2..9 hint 4 from %x[0]\ninput %x: float32[s, 12] activation\n"
      "node %a: float32[s, 5](12, 1), %b: float32[s, 5](12, 1), %c: float32[s, 2](12, 1) = "
      "aten.split.Tensor(%x, 5, 1) views %x\n"
      "node %d: float32[s, 3](12, 1), %e: float32[s, 2](12, 1), %f: float32[s, 7](12, 1) = "
      "aten.split_with_sizes.default(%x, [3, 2, 7], -1) views %x\n"
      "node %g: float32[2](1), %h: float32[2](1) = aten.unbind.int(%c) views %c\n"
      "output %a\n");
  const auto offsets = view_offsets(graph, Effects(graph));
  auto at = [&](const char* name) { return offsets[graph.find(name)]->text(); };
  EXPECT_EQ(at("a") + "," + at("b") + "," + at("c"), "0,5,10");
  EXPECT_EQ(at("d") + "," + at("e") + "," + at("f"), "0,3,5");
  EXPECT_EQ(at("g") + "," + at("h"), "10,22");
}

TEST(Views, SlicesBeginAsPyTorchCounts) {
  const Graph graph = test::graph_of(
      "symbol s range 0..9 hint 4 from %x[0]\nsymbol n range -20..20 hint 4 from integer 0\n"
      "input %x: float32[s, 12] activation\n"
      "node %a: float32[s - 5, 12] = aten.slice.Tensor(%x, 0, -5, 9) views %x\n"
      "node %b: float32[s - n, 12] = aten.slice.Tensor(%x, 0, n, 9) views %x\n"
      "node %c: float32[3](13) = aten.diagonal.default(%x, 2) views %x\n"
      "node %d: float32[3](13) = aten.diagonal.default(%x, -2, -1, -2) views %x\n"
      "node %e: float32[3](13) = aten.diagonal.default(%x, -2) views %x\n"
      "output %a\n");
  const auto offsets = view_offsets(graph, Effects(graph));
  auto at = [&](const char* name, int64_t s, int64_t n) {
    return offsets[graph.find(name)]->evaluate(
        [&](std::string_view symbol) { return symbol == "s" ? s : n; });
  };
  EXPECT_EQ(at("a", 8, 0), 36);
  EXPECT_EQ(at("a", 3, 0), 0);
  EXPECT_EQ(at("b", 8, 3), 36);
  EXPECT_EQ(at("b", 8, -3), 60);
  EXPECT_EQ(at("b", 8, -8), 0);
  EXPECT_EQ(at("b", 8, -11), 0);
  EXPECT_NO_THROW(at("b", 0, 0));
  EXPECT_EQ(at("c", 8, 0), 2);
  EXPECT_EQ(at("d", 8, 0), 2);
  EXPECT_EQ(at("e", 8, 0), 24);
}

}  // namespace
}  // namespace graft::compiler
