// tests/compiler/passes/prologue_test.cpp: what depends on parameters only: before and after, as
// text.
#include "compiler/passes/prologue.h"

#include <gtest/gtest.h>

#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler {
namespace {

using test::body_of;
using test::graph_of;

const std::string kX = "input %x: float32[4, 8] activation\n";
const std::string kW = "input %w: float32[8, 8] parameter\ninput %b: float32[8] buffer\n";

TEST(Prologue, MovesWhatTheParametersAloneDecide) {
  const auto parts =
      split_prologue(graph_of(kX + kW +
                              "constant %k: float32[] = [2.0]\n"
                              "node %s: float32[8, 8] = aten.mul.Tensor(%w, %b)\n"
                              "node %d: float32[8, 8] = aten.mul.Tensor(%s, %k)\n"
                              "node %t: float32[8, 8](1, 8) = aten.t.default(%d) views %d\n"
                              "node %y: float32[4, 8] = aten.mm.default(%x, %t)\n"
                              "node %z: float32[4, 8] = aten.mul.Tensor(%y, %b)\noutput %z\n"));
  ASSERT_TRUE(parts);
  EXPECT_EQ(body_of(parts->main),
            kX + kW +
                "input %d: float32[8, 8] buffer\n"
                "node %t: float32[8, 8](1, 8) = aten.t.default(%d) views %d\n"
                "node %y: float32[4, 8] = aten.mm.default(%x, %t)\n"
                "node %z: float32[4, 8] = aten.mul.Tensor(%y, %b)\noutput %z\n");
  const std::string text = print(parts->prologue);
  EXPECT_EQ(text, "graft-graph 1\ngraph t_prologue\n" + kW +
                      "constant %k: float32[] = [2.0]\n"
                      "node %s: float32[8, 8] = aten.mul.Tensor(%w, %b)\n"
                      "node %d: float32[8, 8] = aten.mul.Tensor(%s, %k)\noutput %d\nend\n");
  EXPECT_EQ(parts->inputs, (std::vector<size_t>{1, 2}));
  verify(parts->main);
  verify(parts->prologue);
}

TEST(Prologue, MovesMasksWithoutInputs) {
  const auto parts = split_prologue(
      graph_of(kX + "node %a: float32[4, 8] = aten.arange_like.default([4, 8])\n"
                    "node %y: float32[4, 8] = aten.add.Tensor(%x, %a)\noutput %y\n"));
  ASSERT_TRUE(parts);
  EXPECT_TRUE(parts->inputs.empty());
  EXPECT_EQ(parts->prologue.order.size(), 1u);
}

TEST(Prologue, AViewMayBeNeededInBothParts) {
  const auto parts =
      split_prologue(graph_of(kX + kW +
                              "node %t: float32[8, 8](1, 8) = aten.t.default(%w) views %w\n"
                              "node %d: float32[8, 8] = aten.add.Tensor(%t, %b)\n"
                              "node %y: float32[4, 8] = aten.mm.default(%x, %t)\n"
                              "node %z: float32[4, 8] = aten.mm.default(%y, %d)\noutput %z\n"));
  ASSERT_TRUE(parts);
  verify(parts->main);
  verify(parts->prologue);
  EXPECT_EQ(parts->main.order.size(), 3u);
  EXPECT_EQ(parts->prologue.order.size(), 2u);
}

TEST(Prologue, LeavesWhatMayChangeOrLeave) {
  for (const std::string& body : std::initializer_list<std::string>{
           // only a view
           kX + kW +
               "node %t: float32[8, 8](1, 8) = aten.t.default(%w) views %w\n"
               "node %y: float32[4, 8] = aten.mm.default(%x, %t)\noutput %y\n",
           // an output
           kW + "node %y: float32[8] = aten.neg.default(%b)\noutput %y\n",
           // written
           "input %x: float32[8] activation\ninput %m: float32[8] buffer mutated\n"
           "node %n: float32[8] = aten.neg.default(%m)\n"
           "node %u: float32[8] = aten.add_.Tensor(%m, %x) writes %m views %m\n"
           "node %y: float32[8] = aten.add.Tensor(%n, %x)\noutput %y\n",
           // random
           kX + "node %r: float32[4, 8] = aten.rand.default([4, 8]) random\n"
                "node %y: float32[4, 8] = aten.add.Tensor(%x, %r)\noutput %y\n",
           // of the call
           "input %x: float32[4, 8] activation\ninput %k: float32[] scalar\n"
           "node %r: float32[] = aten.neg.default(%k)\n"
           "node %y: float32[4, 8] = aten.add.Tensor(%x, %r)\noutput %y\n",
       }) {
    EXPECT_FALSE(split_prologue(graph_of(body))) << body;
  }
}

}  // namespace
}  // namespace graft::compiler
