// tests/compiler/nodes/training_test.cpp: a loss and gradients that call their kernels straight.
#include "compiler/nodes/training.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/compiler/nodes/calls.h"

namespace graft::compiler::test {
namespace {

using Numbers = std::vector<double>;

// The results of a graph, none of whose nodes came to the host.
std::vector<Numbers> trained(const std::string& body, const Tensors& inputs) {
  Calls calls(body, inputs);
  auto found = calls.run();
  EXPECT_EQ(calls.host.asked, std::vector<std::string>());
  return found;
}

// Three rows of two scores; the second one's target is ignored.
const Tensors kScores = {{"s", {-1, -2, -3, -4, -5, -6}}, {"t", {1, -100, 0}}, {"w", {4, 2}}};
constexpr const char* kLoss =
    "input %s: float32[3, 2] activation\ninput %t: int64[3] activation\n"
    "input %w: float32[2] buffer\n";

TEST(Training, TheLossOfRows) {
  const std::string sum = std::string(kLoss) +
                          "node %y: float32[], %n: float32[] = aten.nll_loss_forward.default(%s, "
                          "%t, ";
  EXPECT_EQ(trained(sum + "none, 1, -100)\noutput %y\noutput %n\n", kScores),
            (std::vector<Numbers>{{3.5}, {2}}));
  EXPECT_EQ(trained(sum + "%w, 2, -100)\noutput %y\noutput %n\n", kScores),
            (std::vector<Numbers>{{24}, {6}}));
}

TEST(Training, GradientsOfTheLoss) {
  EXPECT_EQ(trained(std::string(kLoss) +
                        "input %g: float32[] activation\ninput %n: float32[] activation\n"
                        "node %y: float32[3, 2] = aten.nll_loss_backward.default(%g, %s, %t, %w, "
                        "1, -100, %n)\noutput %y\n",
                    {{"s", {-1, -2, -3, -4, -5, -6}},
                     {"t", {1, -100, 0}},
                     {"w", {4, 2}},
                     {"g", {3}},
                     {"n", {6}}}),
            (std::vector<Numbers>{{0, -1, 0, 0, -2, 0}}));
}

TEST(Training, TheLossOfImages) {
  EXPECT_EQ(trained("input %s: float32[1, 2, 1, 2] activation\n"
                    "input %t: int64[1, 1, 2] activation\n"
                    "node %y: float32[], %n: float32[] = aten.nll_loss2d_forward.default(%s, %t, "
                    "none, 2, -100)\n"
                    "node %g: float32[1, 2, 1, 2] = aten.nll_loss2d_backward.default(%y, %s, %t, "
                    "none, 2, -100, %n)\noutput %y\noutput %g\n",
                    {{"s", {-1, -2, -3, -4}}, {"t", {0, 1}}}),
            (std::vector<Numbers>{{5}, {-5, 0, 0, -5}}));
}

TEST(Training, GradientsOfLayerNorm) {
  const auto results = trained(
      "input %g: float32[2, 2] activation\ninput %x: float32[2, 2] activation\n"
      "input %m: float32[2, 1] activation\ninput %r: float32[2, 1] activation\n"
      "input %w: float32[2] parameter\ninput %b: float32[2] parameter\n"
      "node %a: float32[2, 2], %c: float32[2], %d: float32[2] = "
      "aten.native_layer_norm_backward.default(%g, %x, [2], %m, %r, %w, %b, [true, true, true])\n"
      "output %a\noutput %c\noutput %d\n",
      {{"g", {1, 2, 3, 4}},
       {"x", {-1, 1, 3, 5}},
       {"m", {0, 4}},
       {"r", {1, 1}},
       {"w", {1, 1}},
       {"b", {0, 0}}});
  EXPECT_TRUE(graft::test::near(results[0], {0, 0, 0, 0}, 1e-6, 1e-6));
  EXPECT_TRUE(graft::test::near(results[1], {-1 - 3, 2 + 4}, 1e-6, 1e-6));
  EXPECT_TRUE(graft::test::near(results[2], {4, 6}, 1e-6, 1e-6));
}

TEST(Training, GradientsOfAnEmbedding) {
  EXPECT_EQ(trained("input %g: float32[1, 3, 2] activation\ninput %i: int64[1, 3] activation\n"
                    "node %y: float32[4, 2] = aten.embedding_dense_backward.default(%g, %i, 4, 1, "
                    "false)\noutput %y\n",
                    {{"g", {1, 2, 3, 4, 5, 6}}, {"i", {3, 1, 3}}}),
            (std::vector<Numbers>{{0, 0, 0, 0, 0, 0, 6, 8}}));
}

// Every second of the indices, and gradients that lie in columns.
TEST(Training, GradientsOfAnEmbeddingThatLieApart) {
  EXPECT_EQ(trained("input %g: float32[2, 2] activation\ninput %i: int64[2, 2] activation\n"
                    "node %h: float32[2, 2](1, 2) = aten.t.default(%g) views %g\n"
                    "node %j: int64[2](2) = aten.select.int(%i, 1, 0) views %i\n"
                    "node %y: float32[3, 2] = aten.embedding_dense_backward.default(%h, %j, 3, -1, "
                    "false)\noutput %y\n",
                    {{"g", {1, 2, 3, 4}}, {"i", {2, 0, 1, 0}}}),
            (std::vector<Numbers>{{0, 0, 2, 4, 1, 3}}));
}

// Scores of one key are always 1: gradients go to the value alone.
TEST(Training, GradientsOfAttention) {
  const std::string one = "float32[1, 1, 1, 2]";
  EXPECT_EQ(trained("input %g: " + one + " activation\ninput %q: " + one +
                        " activation\ninput %k: " + one + " activation\ninput %v: " + one +
                        " activation\n"
                        "node %y: " +
                        one +
                        ", %l: float32[1, 1, 1], none, none, none, none, %s: int64[], %o: int64[], "
                        "none = aten._scaled_dot_product_fused_attention_overrideable.default(%q, "
                        "%k, %v, none, 0.0, false, false)\n"
                        "node %a: " +
                        one + ", %b: " + one + ", %c: " + one +
                        ", none = "
                        "aten._scaled_dot_product_fused_attention_overrideable_backward.default(%g,"
                        " %q, %k, %v, none, [true, true, true, false], %y, %l, none, none, 1, 1, "
                        "0.0, false, %s, %o)\noutput %a\noutput %b\noutput %c\n",
                    {{"g", {5, 6}}, {"q", {1, 2}}, {"k", {3, 4}}, {"v", {7, 8}}}),
            (std::vector<Numbers>{{0, 0}, {0, 0}, {5, 6}}));
}

TEST(Training, BatchNormTakesGradientsOfAnotherLayout) {
  const std::string image = "float32[1, 2, 1, 4]";
  const std::string head = "input %g: " + image + " activation\ninput %x: " + image +
                           " activation\ninput %m: float32[2] activation\n"
                           "input %r: float32[2] activation\n";
  const auto gradients = [&](const std::string& of) {
    return "node %a: " + image +
           ", %b: float32[2], %c: float32[2] = aten.native_batch_norm_backward.default(" + of +
           ", %x, none, none, none, %m, %r, true, 0.0, [true, true, true])\n";
  };
  const std::string ends = "output %a\noutput %b\noutput %c\n";
  const Tensors inputs = {{"g", {1, 2, 3, 5, 4, 1, 2, 2}},
                          {"x", {-1, 1, -1, 1, 1, 3, 1, 3}},
                          {"m", {0, 2}},
                          {"r", {1, 1}}};
  const auto same = trained(head + gradients("%g") + ends, inputs);
  const auto turned =
      trained(head +
                  "node %h: float32[1, 2, 1, 4](8, 1, 8, 2) = aten.clone.default(%g, "
                  "memory_format=@channels_last)\n" +
                  gradients("%h") + "group g pointwise %h\n" + ends,
              inputs);
  ASSERT_EQ(same.size(), 3u);
  EXPECT_EQ(same[1], (Numbers{3, -3}));
  EXPECT_EQ(same[2], (Numbers{11, 9}));
  EXPECT_EQ(turned, same);
}

}  // namespace
}  // namespace graft::compiler::test
