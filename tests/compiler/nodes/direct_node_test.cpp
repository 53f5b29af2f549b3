// tests/compiler/nodes/direct_node_test.cpp: nodes that call their kernel straight: the host draws
// their numbers and runs none of them.
#include "compiler/nodes/direct_node.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/compiler/nodes/calls.h"

namespace graft::compiler::test {
namespace {

TEST(DirectNode, DropoutTakesTheHostsNumbers) {
  const std::vector<double> x = graft::test::numbers(150, 1, 1, 2, GRAFT_FLOAT32);
  Calls calls(
      "input %x: float32[3, 50] activation\n"
      "node %y: float32[3, 50], %m: bool[3, 50] = aten.native_dropout.default(%x, 0.25, true) "
      "random\noutput %y\n",
      {{"x", x}});
  DeviceTensor from({3, 50}, GRAFT_FLOAT32), to({3, 50}, GRAFT_FLOAT32), mask({3, 50}, GRAFT_BOOL);
  from.set(x);
  for (const uint64_t first : {0, 76}) {
    const auto results = calls.run();
    dropout(stream(), to, mask, from, {1, first}, 0.25);
    EXPECT_EQ(results[0], to.get());
  }
  EXPECT_EQ(calls.host.drawn, (std::vector<uint64_t>{76, 76}));
  EXPECT_TRUE(calls.host.asked.empty());
}

TEST(DirectNode, AttentionHasAScaleOfItsOwn) {
  const auto q = graft::test::numbers(2, 1), k = graft::test::numbers(4, 2),
             v = graft::test::numbers(4, 3);
  for (const bool scaled : {false, true}) {
    Calls calls(
        "input %q: float32[1, 1, 1, 2] activation\ninput %k: float32[1, 1, 2, 2] activation\n"
        "input %v: float32[1, 1, 2, 2] activation\n"
        "node %y: float32[1, 1, 1, 2], %l: float32[1, 1, 1], none, none, none, none, none, none, "
        "none = aten._scaled_dot_product_fused_attention_overrideable.default(%q, %k, %v, none, "
        "0.0, false, false" +
            std::string(scaled ? ", scale=0.5" : "") + ")\noutput %y\noutput %l\n",
        {{"q", q}, {"k", k}, {"v", v}});
    const auto results = calls.run();
    const double scale = scaled ? 0.5 : 1 / std::sqrt(2);
    const double first = std::exp(scale * (q[0] * k[0] + q[1] * k[1]));
    const double second = std::exp(scale * (q[0] * k[2] + q[1] * k[3]));
    const double sum = first + second;
    EXPECT_TRUE(graft::test::near(
        results[0], {(first * v[0] + second * v[2]) / sum, (first * v[1] + second * v[3]) / sum},
        1e-5, 1e-5));
    EXPECT_TRUE(graft::test::near(results[1], {std::log(sum)}, 1e-5, 1e-5));
    EXPECT_TRUE(calls.host.asked.empty());
  }
}

// One channel, a filter of one element: the gradients are products and sums of the images.
TEST(DirectNode, GradientsOfAConvolutionThatAreAskedFor) {
  const std::vector<double> g = {1, 2, 3, 4}, x = {5, 6, 7, 8};
  const std::string head =
      "input %g: float32[1, 1, 2, 2] activation\ninput %x: float32[1, 1, 2, 2] activation\n"
      "input %w: float32[1, 1, 1, 1] parameter\nnode ";
  const std::string call =
      " = aten.convolution_backward.default(%g, %x, %w, [1], [1, 1], [0, 0], [1, 1], false, "
      "[0, 0], 1, ";
  const Tensors inputs = {{"g", g}, {"x", x}, {"w", {3}}};
  Calls all(head + "%a: float32[1, 1, 2, 2], %b: float32[1, 1, 1, 1], %c: float32[1]" + call +
                "[true, true, true])\noutput %a\noutput %b\noutput %c\n",
            inputs);
  EXPECT_EQ(all.run(), (std::vector<std::vector<double>>{{3, 6, 9, 12}, {70}, {10}}));
  Calls weight(
      head + "none, %b: float32[1, 1, 1, 1], none" + call + "[false, true, false])\noutput %b\n",
      inputs);
  EXPECT_EQ(weight.run(), (std::vector<std::vector<double>>{{70}}));
  EXPECT_TRUE(all.host.asked.empty() && weight.host.asked.empty());
}

// One channel, a filter of two elements, a step of two.
TEST(DirectNode, TransposedConvolutions) {
  Calls calls(
      "input %x: float32[1, 1, 2] activation\ninput %w: float32[1, 1, 2] parameter\n"
      "input %b: float32[1] parameter\n"
      "node %y: float32[1, 1, 4] = aten.convolution.default(%x, %w, %b, [2], [0], [1], true, [0], "
      "1)\noutput %y\n",
      {{"x", {1, 2}}, {"w", {3, 4}}, {"b", {10}}});
  EXPECT_EQ(calls.run(), (std::vector<std::vector<double>>{{13, 14, 16, 18}}));
  EXPECT_TRUE(calls.host.asked.empty());
}

TEST(DirectNode, BatchNormMovesItsStatistics) {
  Calls calls(
      "input %x: float32[4, 1] activation\ninput %m: float32[1] buffer\n"
      "input %v: float32[1] buffer\n"
      "node %y: float32[4, 1], %mean: float32[1], %spread: float32[1], %nm: float32[1], "
      "%nv: float32[1] = aten._native_batch_norm_legit_functional.default(%x, none, none, %m, %v, "
      "true, 0.5, 0.0)\noutput %y\noutput %mean\noutput %spread\noutput %nm\noutput %nv\n",
      {{"x", {-1, 1, -1, 1}}, {"m", {4}}, {"v", {2}}});
  const auto results = calls.run();
  const std::vector<double> expected[] = {{-1, 1, -1, 1}, {0}, {1}, {2}, {(2 + 4 / 3.0) / 2}};
  for (size_t i = 0; i < results.size(); ++i) {
    EXPECT_TRUE(graft::test::near(results[i], expected[i], 1e-6, 1e-6)) << i;
  }
  EXPECT_TRUE(calls.host.asked.empty());
}

// What the kernels do not take is the host's: dropout that does not train, attention in float64.
TEST(DirectNode, OtherNodesAreTheHosts) {
  Calls calls(
      "input %x: float32[4] activation\n"
      "node %y: float32[4], %m: bool[4] = aten.native_dropout.default(%x, 0.25, false) "
      "random\noutput %y\n",
      {{"x", {1, 2, 3, 4}}});
  calls.run();
  EXPECT_EQ(calls.host.asked, (std::vector<std::string>{"aten.native_dropout.default"}));
  EXPECT_TRUE(calls.host.drawn.empty());
}

}  // namespace
}  // namespace graft::compiler::test
