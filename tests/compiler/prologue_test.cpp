// tests/compiler/prologue_test.cpp: what is taken out of a graph, and what has to stay.
#include "compiler/prologue.h"

#include <gtest/gtest.h>

#include "tests/compiler/graph_text.h"

namespace graft::compiler {
namespace {

const std::string kInputs =
    "input %w: float32[4, 8] parameter\ninput %b: float32[8] buffer\n"
    "input %x: float32[2, 4] activation\n";

// The prologue and what remains, one behind the other.
std::string split(const std::string& body) {
  Graph graph = test::graph_of(body);
  const std::optional<Graph> prologue = take_prologue(graph);
  verify(graph);
  if (!prologue.has_value()) {
    EXPECT_EQ(test::body_of(graph), body);
    return "";
  }
  verify(*prologue);
  std::string text = print(*prologue);
  return text.substr(text.find("prologue\n") + 9) + test::body_of(graph);
}

TEST(Prologue, TakesWhatDependsOnParametersAlone) {
  EXPECT_EQ(split(kInputs + "node %s: float32[8] = aten.exp.default(%b)\n"
                            "node %v: float32[4, 8] = aten.mul.Tensor(%w, %s)\n"
                            "node %y: float32[2, 8] = aten.mm.default(%x, %v)\noutput %y\n"),
            "input %w: float32[4, 8] parameter\ninput %b: float32[8] buffer\n"
            "node %s: float32[8] = aten.exp.default(%b)\n"
            "node %v: float32[4, 8] = aten.mul.Tensor(%w, %s)\noutput %v\nend\n" +
                kInputs + "input %v: float32[4, 8] parameter\n" +
                "node %y: float32[2, 8] = aten.mm.default(%x, %v)\noutput %y\n");
}

TEST(Prologue, LeavesViewsToWhoUsesThem) {
  EXPECT_EQ(split("input %w: float32[8, 4] parameter\ninput %x: float32[2, 4] activation\n"
                  "node %e: float32[8, 4] = aten.neg.default(%w)\n"
                  "node %t: float32[4, 8] strides [1, 4] = aten.t.default(%e) views %e\n"
                  "node %y: float32[2, 8] = aten.mm.default(%x, %t)\noutput %y\n"),
            "input %w: float32[8, 4] parameter\nnode %e: float32[8, 4] = aten.neg.default(%w)\n"
            "output %e\nend\n"
            "input %w: float32[8, 4] parameter\ninput %x: float32[2, 4] activation\n"
            "input %e: float32[8, 4] parameter\n"
            "node %t: float32[4, 8] strides [1, 4] = aten.t.default(%e) views %e\n"
            "node %y: float32[2, 8] = aten.mm.default(%x, %t)\noutput %y\n");
}

TEST(Prologue, LeavesWhatIsWrittenReturnedOrDrawn) {
  EXPECT_EQ(split("input %m: float32[8] buffer mutated\n"
                  "node %a: float32[8] = aten.neg.default(%m)\n"
                  "node %w: float32[8] = aten.mul_.Scalar(%m, 2.0) writes %m views %m\n"
                  "node %c: float32[8] = aten.sub.Tensor(%a, %m)\noutput %c\n"),
            "");
  EXPECT_EQ(split(kInputs + "node %s: float32[8] = aten.exp.default(%b)\noutput %s\n"), "");
  EXPECT_EQ(split(kInputs + "node %r: float32[8] = aten.bernoulli.default(%b) random\n"
                            "node %s: float32[8] = aten.exp.default(%r)\n"
                            "node %c: float32[8] = aten.sum.dim_IntList(%s, [0])\noutput %c\n"),
            "");
}

TEST(Prologue, LeavesWhatDependsOnTheCall) {
  EXPECT_EQ(split(kInputs + "node %y: float32[2, 8] = aten.mm.default(%x, %w)\noutput %y\n"), "");
  EXPECT_EQ(split("input %w: float32[4, 4] parameter\ninput %x: float32[4, 4] activation mutated\n"
                  "node %a: float32[4, 4] = aten.add_.Tensor(%x, %w) writes %x views %x\n"
                  "output %a alias %x\n"),
            "");
}

}  // namespace
}  // namespace graft::compiler
