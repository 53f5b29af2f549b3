// tests/compiler/passes/cleaning_test.cpp: passes that leave less: before and after, as text.
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler {
namespace {

using test::after;

const std::string kX = "input %x: float32[4, 8] activation\n";

TEST(DeadCode, DropsWhatNothingUses) {
  EXPECT_EQ(after(remove_dead_code, kX + "constant %c: float32[] = [1.0]\n"
                                         "node %a: float32[4, 8] = aten.neg.default(%x)\n"
                                         "node %b: float32[4, 8] = aten.add.Tensor(%a, %c)\n"
                                         "node %r: float32[4] = aten.rand.default([4]) random\n"
                                         "output %a\n"),
            kX + "node %a: float32[4, 8] = aten.neg.default(%x)\n"
                 "node %r: float32[4] = aten.rand.default([4]) random\n"
                 "output %a\n");
}

TEST(DeadCode, KeepsGroupsOfWhatStays) {
  EXPECT_EQ(
      after(remove_dead_code, kX + "node %a: float32[4, 8] = aten.neg.default(%x)\n"
                                   "node %b: float32[4, 8] = aten.exp.default(%a)\n"
                                   "node %c: float32[4, 8] = aten.sin.default(%x)\n"
                                   "group g pointwise %a %b\ngroup h pointwise %c\noutput %a\n"),
      kX + "node %a: float32[4, 8] = aten.neg.default(%x)\ngroup g pointwise %a\noutput %a\n");
}

TEST(ValueNumbering, MergesEqualNodesAndConstants) {
  EXPECT_EQ(
      after(number_values, kX + "constant %c: float32[] = [2.0]\nconstant %d: float32[] = [2.0]\n"
                                "node %a: float32[4, 8] = aten.mul.Tensor(%x, %c)\n"
                                "node %b: float32[4, 8] = aten.mul.Tensor(%x, %d)\n"
                                "node %e: float32[4, 8] = aten.add.Tensor(%a, %b)\noutput %e\n"),
      kX + "constant %c: float32[] = [2.0]\n"
           "node %a: float32[4, 8] = aten.mul.Tensor(%x, %c)\n"
           "node %e: float32[4, 8] = aten.add.Tensor(%a, %a)\noutput %e\n");
}

TEST(ValueNumbering, SeesWritesInBetween) {
  const std::string text =
      "input %m: float32[8] buffer mutated\n"
      "node %a: float32[8] = aten.neg.default(%m)\n"
      "node %w: float32[8] = aten.mul_.Scalar(%m, 2.0) writes %m views %m\n"
      "node %b: float32[8] = aten.neg.default(%m)\n"
      "node %c: float32[8] = aten.sub.Tensor(%a, %b)\noutput %c\n";
  EXPECT_EQ(after(number_values, text), text);
}

TEST(ValueNumbering, NeverMergesRandomOrOutputs) {
  const std::string text = kX +
                           "node %a: float32[4] = aten.rand.default([4]) random\n"
                           "node %b: float32[4] = aten.rand.default([4]) random\n"
                           "node %c: float32[4, 8] = aten.neg.default(%x)\n"
                           "node %d: float32[4, 8] = aten.neg.default(%x)\n"
                           "output %a\noutput %b\noutput %c\noutput %d\n";
  EXPECT_EQ(after(number_values, text), text);
}

TEST(ValueNumbering, TellsFloatsFromIntegersAndZerosApart) {
  const std::string text = kX +
                           "node %a: float32[4, 8] = aten.add.Scalar(%x, 0.0)\n"
                           "node %b: float32[4, 8] = aten.add.Scalar(%x, -0.0)\n"
                           "node %c: float32[4, 8] = aten.add.Scalar(%x, 0)\n"
                           "node %d: float32[4, 8] = aten.add.Tensor(%a, %b)\n"
                           "node %e: float32[4, 8] = aten.add.Tensor(%d, %c)\noutput %e\n";
  EXPECT_EQ(after(number_values, text), text);
}

TEST(CopyRemoval, DropsClonesCastsAndViewsThatChangeNothing) {
  EXPECT_EQ(after(remove_copies,
                  kX + "node %a: float32[4, 8] = aten.clone.default(%x)\n"
                       "node %b: float32[4, 8] = aten._to_copy.default(%a, dtype=@float32)\n"
                       "node %c: float32[4, 8] = aten.view.default(%b, [4, 8]) views %b\n"
                       "node %d: float32[4, 8] = aten.neg.default(%c)\noutput %d\n"),
            kX + "node %d: float32[4, 8] = aten.neg.default(%x)\noutput %d\n");
}

TEST(CopyRemoval, KeepsCopiesThatAreSeen) {
  const std::string text =
      "input %x: float32[4, 8] activation\ninput %m: float32[8] buffer mutated\n"
      "node %a: float32[4, 8] = aten.clone.default(%x)\n"
      "node %b: float32[4, 8](1, 4) = aten.clone.default(%x)\n"
      "node %c: float32[8] = aten.clone.default(%m)\n"
      "node %w: float32[8] = aten.add_.Tensor(%m, %m) writes %m views %m\n"
      "node %d: float64[4, 8] = aten._to_copy.default(%x, dtype=@float64)\n"
      "output %a\noutput %b\noutput %c\noutput %d\n";
  EXPECT_EQ(after(remove_copies, text), text);
}

TEST(CopyRemoval, ShortensChainsOfViews) {
  EXPECT_EQ(after(remove_copies,
                  kX + "node %a: float32[32] = aten.view.default(%x, [32]) views %x\n"
                       "node %b: float32[2, 16] = aten.view.default(%a, [2, 16]) views %a\n"
                       "node %t: float32[8, 4](1, 8) = aten.t.default(%x) views %x\n"
                       "node %u: float32[4, 8] = aten.transpose.int(%t, 0, 1) views %t\n"
                       "node %s: float32[4](8) = aten.select.int(%x, 1, -1) views %x\n"
                       "node %v: float32[4](8) = aten.select.int(%u, 1, 7) views %u\n"
                       "node %c: float32[2, 16] = aten.neg.default(%b)\n"
                       "node %d: float32[4] = aten.add.Tensor(%s, %v)\noutput %c\noutput %d\n"),
            kX + "node %b: float32[2, 16] = aten.view.default(%x, [2, 16]) views %x\n"
                 "node %s: float32[4](8) = aten.select.int(%x, 1, -1) views %x\n"
                 "node %c: float32[2, 16] = aten.neg.default(%b)\n"
                 "node %d: float32[4] = aten.add.Tensor(%s, %s)\noutput %c\noutput %d\n");
}

TEST(CopyRemoval, TellsViewsWithOtherOffsetsApart) {
  const std::string text = kX +
                           "node %a: float32[8] = aten.select.int(%x, 0, 1) views %x\n"
                           "node %b: float32[8] = aten.select.int(%x, 0, 2) views %x\n"
                           "node %c: float32[8] = aten.add.Tensor(%a, %b)\noutput %c\n";
  EXPECT_EQ(after(remove_copies, text), text);
}

TEST(Algebra, AppliesRulesThatHoldForEveryNumber) {
  EXPECT_EQ(after(simplify_algebra,
                  kX + "constant %one: float32[] = [1.0]\n"
                       "node %a: float32[4, 8] = aten.mul.Tensor(%x, 1.0)\n"
                       "node %b: float32[4, 8] = aten.mul.Tensor(%one, %a)\n"
                       "node %c: float32[4, 8] = aten.div.Scalar(%b, 1)\n"
                       "node %d: float32[4, 8] = aten.sub.Tensor(%c, 0.0)\n"
                       "node %e: float32[4, 8] = aten.add.Tensor(%d, -0.0)\n"
                       "node %f: float32[4, 8] = aten.neg.default(%e)\n"
                       "node %g: float32[4, 8] = aten.neg.default(%f)\n"
                       "node %h: float32[4, 8] = aten.relu.default(%g)\n"
                       "node %i: float32[4, 8] = aten.relu.default(%h)\n"
                       "node %j: float32[4, 8] = aten.pow.Tensor_Scalar(%i, 2)\noutput %j\n"),
            kX + "node %h: float32[4, 8] = aten.relu.default(%x)\n"
                 "node %j: float32[4, 8] = aten.mul.Tensor(%h, %h)\noutput %j\n");
}

TEST(Algebra, LeavesWhatNanOrZeroWouldShow) {
  const std::string text = kX +
                           "constant %k: int64[4] = [1, 2, 3, 4]\n"
                           "node %a: float32[4, 8] = aten.add.Tensor(%x, 0.0)\n"
                           "node %b: float32[4, 8] = aten.mul.Tensor(%a, 0.0)\n"
                           "node %c: float32[4, 8] = aten.sub.Tensor(%b, %b)\n"
                           "node %d: float32[4, 8] = aten.div.Tensor(%c, %c)\n"
                           "node %e: float32[4] = aten.mul.Tensor(%k, 1.0)\n"
                           "node %f: float16[4, 8] = aten._to_copy.default(%d, dtype=@float16)\n"
                           "node %g: float32[4, 8] = aten._to_copy.default(%f, dtype=@float32)\n"
                           "node %h: float32[4, 8] = aten.mul.Tensor(%x, 1.0)\n"
                           "output %g\noutput %e\noutput %h\n";
  EXPECT_EQ(after(simplify_algebra, text), text);
}

TEST(Algebra, CastsToAWiderTypeAndBackVanish) {
  EXPECT_EQ(after(simplify_algebra,
                  "input %h: bfloat16[4] activation\n"
                  "node %a: float32[4] = aten._to_copy.default(%h, dtype=@float32)\n"
                  "node %b: bfloat16[4] = aten._to_copy.default(%a, dtype=@bfloat16)\n"
                  "node %c: bfloat16[4] = aten.exp.default(%b)\noutput %c\n"),
            "input %h: bfloat16[4] activation\n"
            "node %c: bfloat16[4] = aten.exp.default(%h)\noutput %c\n");
}

TEST(CastHoisting, CastsBeforeItPermutes) {
  const std::string w = "input %w: float32[8, 4] parameter\ninput %x: bfloat16[2, 4] activation\n";
  EXPECT_EQ(
      after(hoist_casts,
            w + "node %t: float32[4, 8](1, 4) = aten.t.default(%w) views %w\n"
                "node %c: bfloat16[4, 8](1, 4) = aten._to_copy.default(%t, dtype=@bfloat16) "
                "at \"m.py:3\"\n"
                "node %y: bfloat16[2, 8] = aten.mm.default(%x, %c)\noutput %y\n"),
      w + "node %t: float32[4, 8](1, 4) = aten.t.default(%w) views %w\n"
          "node %w_cast: bfloat16[8, 4] = aten._to_copy.default(%w, dtype=@bfloat16) "
          "at \"m.py:3\"\n"
          "node %c: bfloat16[4, 8](1, 4) = aten.t.default(%w_cast) views %w_cast at \"m.py:3\"\n"
          "node %y: bfloat16[2, 8] = aten.mm.default(%x, %c)\noutput %y\n");
}

TEST(ViewSinking, AddsBeforeItReshapes) {
  const std::string inputs =
      "input %x: float32[6, 8] activation\ninput %w: float32[8, 4] parameter\n"
      "input %r: float32[2, 3, 4] activation\n";
  const std::string product =
      "node %m: float32[6, 4] = aten.mm.default(%x, %w)\n"
      "node %v: float32[2, 3, 4] = aten.view.default(%m, [2, 3, 4]) views %m\n";
  EXPECT_EQ(after(sink_views, inputs + product +
                                  "node %s: float32[2, 3, 4] = aten.add.Tensor(%r, %v, alpha=2)\n"
                                  "node %o: float32[2, 3, 4] = aten.relu.default(%s)\n"
                                  "output %o\n"),
            inputs +
                "node %m: float32[6, 4] = aten.mm.default(%x, %w)\n"
                "node %s_other: float32[6, 4] = aten.view.default(%r, [6, 4]) views %r\n"
                "node %s_flat: float32[6, 4] = aten.add.Tensor(%s_other, %m, alpha=2)\n"
                "node %o_flat: float32[6, 4] = aten.relu.default(%s_flat)\n"
                "node %o: float32[2, 3, 4] = aten.view.default(%o_flat, [2, 3, 4]) views %o_flat\n"
                "output %o\n");
  // Somebody else uses the product.
  const std::string shared = inputs + product +
                             "node %s: float32[2, 3, 4] = aten.add.Tensor(%r, %v)\n"
                             "output %s\noutput %m\n";
  EXPECT_EQ(after(sink_views, shared), shared);
}

// Two convolutions with what lies between them; the values' strides are as given.
std::string images(const std::string& strides4, const std::string& strides8) {
  const std::string at4 = "float32[2, 4, 16, 16]" + strides4;
  return "node %c: " + at4 +
         " = aten.convolution.default(%x, %w, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)\n"
         "node %r: " +
         at4 +
         " = aten.relu.default(%c)\n"
         "node %p: float32[2, 4, 8, 8]" +
         strides8 + ", %i: int64[2, 4, 8, 8]" + strides8 +
         " = aten.max_pool2d_with_indices.default(%r, [2, 2])\n"
         "node %d: float32[2, 4, 8, 8]" +
         strides8 +
         " = aten.convolution.default(%p, %v, none, [1, 1], [1, 1], [1, 1], false, [0, 0], 1)\n";
}

TEST(LayoutChoice, ImagesAreChannelsLastEndToEnd) {
  const std::string inputs =
      "input %x: float32[2, 3, 16, 16] activation\ninput %w: float32[4, 3, 3, 3] parameter\n"
      "input %v: float32[4, 4, 3, 3] parameter\n";
  const std::string end =
      "node %m: float32[2, 4, 1, 1] = aten.mean.dim(%d, [-1, -2], true)\n"
      "node %f: float32[2, 4] = aten.view.default(%m, [2, 4]) views %m\noutput %f\n";
  EXPECT_EQ(after(choose_layouts, inputs + images("", "") + end),
            inputs + images("(1024, 1, 64, 4)", "(256, 1, 32, 4)") + end);
}

TEST(LayoutChoice, GoesBackForViewsAndOutputs) {
  const std::string inputs =
      "input %x: float32[2, 3, 16, 16] activation\ninput %w: float32[4, 3, 3, 3] parameter\n"
      "input %v: float32[4, 4, 3, 3] parameter\n";
  EXPECT_EQ(after(choose_layouts,
                  inputs + images("", "") +
                      "node %f: float32[2, 256] = aten.view.default(%d, [2, 256]) views %d\n"
                      "node %o: float32[2, 256] = aten.neg.default(%f)\noutput %o\n"),
            inputs + images("(1024, 1, 64, 4)", "(256, 1, 32, 4)") +
                "node %d_plain: float32[2, 4, 8, 8] = aten.clone.default(%d, "
                "memory_format=@contiguous_format)\n"
                "node %f: float32[2, 256] = aten.view.default(%d_plain, [2, 256]) views %d_plain\n"
                "node %o: float32[2, 256] = aten.neg.default(%f)\noutput %o\n");
}

TEST(LayoutChoice, PermutationsToChannelsLastCostNothing) {
  const std::string inputs =
      "input %x: float32[2, 3, 16, 16] activation\ninput %w: float32[4, 3, 3, 3] parameter\n"
      "input %v: float32[4, 4, 3, 3] parameter\n";
  const std::string end = "node %o: float32[2, 8, 8, 4] = aten.neg.default(%t)\noutput %o\n";
  EXPECT_EQ(after(choose_layouts, inputs + images("", "") +
                                      "node %t: float32[2, 8, 8, 4](256, 8, 1, 64) = "
                                      "aten.permute.default(%d, [0, 2, 3, 1]) views %d\n" +
                                      end),
            inputs + images("(1024, 1, 64, 4)", "(256, 1, 32, 4)") +
                "node %t: float32[2, 8, 8, 4] = "
                "aten.permute.default(%d, [0, 2, 3, 1]) views %d\n" +
                end);
}

// What training saves for the backward graph may stay channels-last; what the caller sees may not.
TEST(LayoutChoice, SavedOutputsStayChannelsLast) {
  const std::string inputs =
      "input %x: float32[2, 3, 16, 16] activation\ninput %w: float32[4, 3, 3, 3] parameter\n"
      "input %v: float32[4, 4, 3, 3] parameter\n";
  const std::string end =
      "node %m: float32[2, 4, 1, 1] = aten.mean.dim(%d, [-1, -2], true)\n"
      "node %f: float32[2, 4] = aten.view.default(%m, [2, 4]) views %m\n"
      "output %f\noutput %r saved\noutput %e saved\n";
  const auto view = [](const std::string& strides) {
    return "node %e: float32[2, 4, 8, 8]" + strides + " = aten.detach.default(%d) views %d\n";
  };
  EXPECT_EQ(after(choose_layouts, inputs + images("", "") + view("") + end),
            inputs + images("(1024, 1, 64, 4)", "(256, 1, 32, 4)") + view("(256, 1, 32, 4)") + end);
}

// A backward graph whose saved images came channels-last, and that was traced with row-major ones.
std::string gradients(const std::string& strides, const std::string& clone) {
  const std::string image = "float32[2, 4, 8, 8]" + strides;
  const std::string rest = ", %w, [0], [1, 1], [0, 0], [1, 1], false, [0, 0], 1, ";
  return "node %ac: " + image + " = aten.clone.default(%a" + clone + ")\nnode %bc: " + image +
         " = aten.clone.default(%b" + clone +
         ")\n"
         "node %e: float32[2, 4, 8, 8](4, 1, 0, 0) = aten.expand.default(%t, [2, 4, 8, 8]) views "
         "%t\nnode %g: " +
         image + " = aten.div.Scalar(%e, 64)\nnode %h: " + image +
         " = aten.threshold_backward.default(%g, %ac, 0)\nnode %i: " + image +
         ", %j: float32[4, 4, 1, 1], none = aten.convolution_backward.default(%h, %bc" + rest +
         "[true, true, false])\n"
         "node none, %l: float32[4, 4, 1, 1], none = aten.convolution_backward.default(%i, %ac" +
         rest + "[false, true, false])\noutput %j\noutput %l\n";
}

TEST(LayoutChoice, GradientsLieAsTheSavedImagesDo) {
  const std::string last = "(256, 1, 32, 4)";
  const std::string inputs = "input %a: float32[2, 4, 8, 8]" + last +
                             " activation\ninput %b: float32[2, 4, 8, 8]" + last +
                             " activation\ninput %w: float32[4, 4, 1, 1] parameter\n"
                             "input %t: float32[2, 4, 1, 1] tangent\n";
  EXPECT_EQ(after(choose_layouts, inputs + gradients("", ", memory_format=@contiguous_format")),
            inputs + gradients(last, ""));
}

TEST(LayoutChoice, LeavesOneConvolutionBetweenOtherThings) {
  const std::string body =
      "input %x: float32[2, 3, 16, 16] activation\ninput %w: float32[4, 3, 3, 3] parameter\n"
      "node %c: float32[2, 4, 16, 16] = aten.convolution.default(%x, %w, none, [1, 1], [1, 1], "
      "[1, 1], false, [0, 0], 1)\noutput %c\n";
  EXPECT_EQ(after(choose_layouts, body), body);
}

}  // namespace
}  // namespace graft::compiler
