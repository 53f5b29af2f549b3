// tests/compiler/passes/attention_pattern_test.cpp: attention written out becomes one node, where
// it is one.
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler {
namespace {

using test::after;
using test::has;

const std::string kInputs =
    "input %q: float32[6, 5, 8] activation\n"
    "input %k: float32[6, 7, 8] activation\n"
    "input %v: float32[6, 7, 4] activation\n";

const std::string kScores =
    "node %kt: float32[6, 8, 7](56, 1, 8) = aten.transpose.int(%k, 1, 2) views %k\n"
    "node %qk: float32[6, 5, 7] = aten.bmm.default(%q, %kt)\n";

const std::string kHeads =
    "node %four: float32[2, 3, 5, 7] = aten.view.default(%qk, [2, 3, 5, 7]) views %qk\n"
    "node %small: float32[2, 3, 5, 7] = aten.div.Tensor(%four, 4.0)\n";

const std::string kFlat =
    "node %p: float32[2, 3, 5, 7] = aten._softmax.default(%masked, -1, false)\n"
    "node %e: float32[2, 3, 5, 7] = aten.expand.default(%p, [2, 3, 5, 7]) views %p\n"
    "node %f: float32[6, 5, 7] = aten.view.default(%e, [6, 5, 7]) views %e\n"
    "node %y: float32[6, 5, 4] = aten.bmm.default(%f, %v)\noutput %y\n";

TEST(AttentionPattern, ThreeDimensionsWithoutMask) {
  const std::string made =
      after(match_attention, kInputs + kScores +
                                 "node %s: float32[6, 5, 7] = aten.mul.Scalar(%qk, 0.5)\n"
                                 "node %p: float32[6, 5, 7] = aten._softmax.default(%s, 2, false)\n"
                                 "node %y: float32[6, 5, 4] = aten.bmm.default(%p, %v)\n"
                                 "output %y\n");
  EXPECT_EQ(made.substr(kInputs.size()),
            "node %kt: float32[6, 8, 7](56, 1, 8) = aten.transpose.int(%k, 1, 2) views %k\n"
            "node %y_query: float32[1, 6, 5, 8] = aten.view.default(%q, [1, 6, 5, 8]) views %q\n"
            "node %y_keys: float32[6, 7, 8] = aten.transpose.int(%kt, 1, 2) views %kt\n"
            "node %y_key: float32[1, 6, 7, 8] = aten.view.default(%y_keys, [1, 6, 7, 8]) views "
            "%y_keys\n"
            "node %y_value: float32[1, 6, 7, 4] = aten.view.default(%v, [1, 6, 7, 4]) views %v\n"
            "node %y_attention: float32[1, 6, 5, 4], %y_attention_logsumexp: float32[1, 6, 5], "
            "none, none, none, none, none, none, none = "
            "aten._scaled_dot_product_fused_attention_overrideable.default(%y_query, %y_key, "
            "%y_value, none, 0.0, false, false, scale=0.5)\n"
            "node %y: float32[6, 5, 4] = aten.view.default(%y_attention, [6, 5, 4]) views "
            "%y_attention\noutput %y\n");
}

TEST(AttentionPattern, AnAddedMaskIsTheBias) {
  const std::string mask = "input %m: float32[2, 1, 1, 7] activation\n";
  const std::string made =
      after(match_attention,
            kInputs + mask + kScores + kHeads +
                "node %masked: float32[2, 3, 5, 7] = aten.add.Tensor(%small, %m)\n" + kFlat);
  EXPECT_TRUE(has(made, "(%y_query, %y_key, %y_value, %m, 0.0, false, false, scale=0.25)")) << made;
  EXPECT_TRUE(has(made, "%y_query: float32[2, 3, 5, 8] = ")) << made;
  EXPECT_FALSE(has(made, "aten._softmax")) << made;
}

TEST(AttentionPattern, HiddenScoresBecomeABias) {
  const std::string mask =
      "input %m: bool[5, 7] activation\n"
      "constant %never: float32[] = [-inf]\n";
  for (const std::string op :
       {"aten.where.self(%m, %never, %small)", "aten.masked_fill.Scalar(%small, %m, -inf)"}) {
    const std::string made =
        after(match_attention, kInputs + mask + kScores + kHeads +
                                   "node %masked: float32[2, 3, 5, 7] = " + op + "\n" + kFlat);
    EXPECT_TRUE(has(made, "%y_bias: float32[5, 7] = aten.where.self(%m, %y_hidden, %y_seen)"))
        << made;
    EXPECT_TRUE(has(made, "(%y_query, %y_key, %y_value, %y_bias, 0.0,")) << made;
  }
}

// What each of these computes is not attention, or somebody else wants what lies between.
TEST(AttentionPattern, LeavesOtherGraphs) {
  const std::string plain = "node %p: float32[6, 5, 7] = aten._softmax.default(%qk, 2, false)\n";
  const std::string last = "node %y: float32[6, 5, 4] = aten.bmm.default(%p, %v)\n";
  const std::string column = "node %p: float32[6, 5, 7] = aten._softmax.default(%qk, 1, false)\n";
  const std::string weighed = "input %m: float32[7] activation\n" + kInputs + kScores +
                              "node %w: float32[6, 5, 7] = aten.add.Tensor(%qk, %m)\n"
                              "node %s: float32[6, 5, 7] = aten.mul.Scalar(%w, 0.5)\n"
                              "node %p: float32[6, 5, 7] = aten._softmax.default(%s, 2, false)\n" +
                              last + "output %y\n";
  const std::string finite =
      kInputs + "input %m: bool[7] activation\nconstant %low: float32[] = [-1e+09]\n" + kScores +
      "node %w: float32[6, 5, 7] = aten.where.self(%m, %low, %qk)\n"
      "node %p: float32[6, 5, 7] = aten._softmax.default(%w, 2, false)\n" +
      last + "output %y\n";
  for (const std::string& text :
       {kInputs + kScores + plain + last + "output %y\noutput %p\n",
        kInputs + kScores + plain + last + "output %y\noutput %qk\n",
        kInputs + kScores + column + last + "output %y\n", weighed, finite}) {
    EXPECT_FALSE(has(after(match_attention, text), "attention")) << text;
  }
}

}  // namespace
}  // namespace graft::compiler
