// tests/compiler/nodes/moves_test.cpp: nodes that join, count, add up and pool elements.
#include "compiler/nodes/moves.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/compiler/nodes/calls.h"

namespace graft::compiler::test {
namespace {

using Numbers = std::vector<double>;

// The results of a graph, none of whose nodes came to the host.
std::vector<Numbers> results(const std::string& body, const Tensors& inputs) {
  Calls calls(body, inputs);
  auto found = calls.run();
  EXPECT_EQ(calls.host.asked, std::vector<std::string>());
  return found;
}

TEST(Moves, CatLeavesEmptyPartsOut) {
  EXPECT_EQ(results("input %a: float32[2, 1] activation\ninput %n: float32[0] activation\n"
                    "input %b: float32[2, 2] activation\n"
                    "node %y: float32[2, 3] = aten.cat.default([%a, %n, %b], -1)\noutput %y\n",
                    {{"a", {1, 2}}, {"n", {}}, {"b", {3, 4, 5, 6}}}),
            (std::vector<Numbers>{{1, 3, 4, 2, 5, 6}}));
}

TEST(Moves, RangesOfWholeAndOtherNumbers) {
  EXPECT_EQ(results("input %x: float32[3] activation\n"
                    "node %r: int64[3] = aten.arange.start_step(2, 8, 2)\n"
                    "node %f: float32[3] = aten._to_copy.default(%r, dtype=@float32)\n"
                    "node %h: float32[3] = aten.arange.start_step(0.5, 2.0, 0.5)\n"
                    "node %s: float32[2] = aten.arange.start_step(3, 5)\ngroup g pointwise %f\n"
                    "output %f\noutput %h\noutput %s\n",
                    {{"x", {0, 0, 0}}}),
            (std::vector<Numbers>{{2, 4, 6}, {0.5, 1, 1.5}, {3, 4}}));
}

TEST(Moves, CopiesIntoAnInput) {
  EXPECT_EQ(results("input %m: float32[2, 3] buffer mutated\ninput %x: float32[3] activation\n"
                    "node %w: float32[2, 3] = aten.copy_.default(%m, %x) writes %m views %m\n"
                    "node %y: float32[2, 3] = aten.add.Tensor(%m, %x)\ngroup g pointwise %y\n"
                    "output %y\n",
                    {{"m", {9, 9, 9, 9, 9, 9}}, {"x", {1, 2, 3}}}),
            (std::vector<Numbers>{{2, 4, 6, 2, 4, 6}}));
}

TEST(Moves, ReshapesWhatIsNoView) {
  EXPECT_EQ(results("input %x: float32[2, 3] activation\n"
                    "node %t: float32[3, 2](1, 3) = aten.t.default(%x) views %x\n"
                    "node %y: float32[6] = aten.reshape.default(%t, [6])\noutput %y\n",
                    {{"x", {1, 2, 3, 4, 5, 6}}}),
            (std::vector<Numbers>{{1, 4, 2, 5, 3, 6}}));
}

TEST(Moves, SoftmaxOverAnyDimension) {
  const double half = std::log(0.5);
  EXPECT_EQ(results("input %x: float32[2, 3] activation\n"
                    "node %y: float32[2, 3] = aten._softmax.default(%x, 0, false)\n"
                    "node %z: float32[2, 3] = aten._log_softmax.default(%x, -2, false)\n"
                    "output %y\noutput %z\n",
                    {{"x", {1, 2, 3, 1, 2, 3}}}),
            (std::vector<Numbers>{Numbers(6, 0.5), Numbers(6, static_cast<float>(half))}));
}

TEST(Moves, CumulativeSums) {
  EXPECT_EQ(results("input %x: float32[2, 3] activation\ninput %m: bool[3] activation\n"
                    "node %y: float32[2, 3] = aten.cumsum.default(%x, 1)\n"
                    "node %c: int64[3] = aten.cumsum.default(%m, -1)\n"
                    "node %f: float32[3] = aten._to_copy.default(%c, dtype=@float32)\n"
                    "group g pointwise %f\n"
                    "output %y\noutput %f\n",
                    {{"x", {1, 2, 3, 4, 5, 6}}, {"m", {1, 0, 1}}}),
            (std::vector<Numbers>{{1, 3, 6, 4, 9, 15}, {1, 1, 2}}));
}

TEST(Moves, SumsAndMeansOverFirstDimensions) {
  EXPECT_EQ(results("input %x: float32[2, 3, 2] activation\n"
                    "node %a: float32[3, 2] = aten.sum.dim_IntList(%x, [0])\n"
                    "node %b: float32[1, 3, 1] = aten.sum.dim_IntList(%x, [0, -1], true)\n"
                    "node %c: float32[2, 2] = aten.mean.dim(%x, [1])\n"
                    "output %a\noutput %b\noutput %c\n",
                    {{"x", {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}}),
            (std::vector<Numbers>{{6, 8, 10, 12, 14, 16}, {14, 22, 30}, {2, 3, 8, 9}}));
}

TEST(Moves, MaximaOfWindows) {
  EXPECT_EQ(results("input %x: float32[1, 1, 3, 3] activation\n"
                    "node %y: float32[1, 1, 2, 2], %i: int64[1, 1, 2, 2] = "
                    "aten.max_pool2d_with_indices.default(%x, [2, 2], [1, 1])\n"
                    "node %f: float32[1, 1, 2, 2] = aten._to_copy.default(%i, dtype=@float32)\n"
                    "node %z: float32[1, 1, 2, 2], %j: int64[1, 1, 2, 2] = "
                    "aten.max_pool2d_with_indices.default(%x, [3, 3], [2, 2], [1, 1])\n"
                    "group g pointwise %f\n"
                    "output %y\noutput %f\noutput %z\n",
                    {{"x", {1, 2, 3, 6, 5, 4, 7, 8, 9}}}),
            (std::vector<Numbers>{{6, 5, 8, 9}, {3, 4, 7, 8}, {6, 5, 8, 9}}));
}

TEST(Moves, GradientsOfTheLargestOfWindows) {
  EXPECT_EQ(results("input %x: float32[1, 1, 2, 4] activation\n"
                    "input %g: float32[1, 1, 1, 2] activation\n"
                    "node %y: float32[1, 1, 1, 2], %i: int64[1, 1, 1, 2] = "
                    "aten.max_pool2d_with_indices.default(%x, [2, 2])\n"
                    "node %z: float32[1, 1, 2, 4] = "
                    "aten.max_pool2d_with_indices_backward.default(%g, %x, [2, 2], [2, 2], [0, 0], "
                    "[1, 1], false, %i)\noutput %z\n",
                    {{"x", {1, 2, 3, 6, 5, 4, 7, 0}}, {"g", {8, 9}}}),
            (std::vector<Numbers>{{0, 0, 0, 0, 8, 0, 9, 0}}));
}

TEST(Moves, TheMeanOfAllElements) {
  EXPECT_EQ(results("input %x: float32[2, 2] activation\n"
                    "node %y: float32[] = aten.mean.default(%x)\noutput %y\n",
                    {{"x", {1, 2, 3, 6}}}),
            (std::vector<Numbers>{{3}}));
}

TEST(Moves, TheGreatestAndTheLeast) {
  EXPECT_EQ(results("input %x: float32[2, 3] activation\n"
                    "node %y: float32[2, 2], %i: int64[2, 2] = aten.topk.default(%x, 2)\n"
                    "node %z: float32[1, 3], %j: int64[1, 3] = aten.topk.default(%x, 1, 0, false)\n"
                    "node %f: float32[2, 2] = aten._to_copy.default(%i, dtype=@float32)\n"
                    "group g pointwise %f\noutput %y\noutput %f\noutput %z\n",
                    {{"x", {1, 3, 2, 6, 4, 5}}}),
            (std::vector<Numbers>{{3, 2, 6, 5}, {1, 2, 0, 2}, {1, 3, 2}}));
}

}  // namespace
}  // namespace graft::compiler::test
