// tests/compiler/passes/folding_test.cpp: passes that compute or rewrite nodes: before and after,
// as text.
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler {
namespace {

using test::after;

TEST(ConstantFolding, ComputesWhatIsExact) {
  const std::string x = "input %x: float32[3] activation\n";
  EXPECT_EQ(after(fold_constants, x + "constant %c: float32[3] = [1.0, 2.0, inf]\n"
                                      "node %f: float32[3] = aten.full.default([3], 0.1)\n"
                                      "node %a: float32[3] = aten.add.Tensor(%c, %f)\n"
                                      "node %b: float32[3] = aten.mul.Tensor(%a, 3.0)\n"
                                      "node %y: float32[3] = aten.sub.Tensor(%x, %b)\noutput %y\n"),
            x + "constant %b: float32[3] = [3.3000001907348633, 6.299999713897705, inf]\n"
                "node %y: float32[3] = aten.sub.Tensor(%x, %b)\noutput %y\n");
}

TEST(ConstantFolding, RoundsAndWrapsAsStorageDoes) {
  const std::string x = "input %x: float32[2] activation\n";
  EXPECT_EQ(after(fold_constants,
                  x + "constant %i: int8[2] = [100, -128]\n"
                      "node %j: int8[2] = aten.add.Tensor(%i, %i)\n"
                      "node %k: int8[2] = aten.neg.default(%j)\n"
                      "node %h: bfloat16[2] = aten.full.default([2], 1.01)\n"
                      "node %g: bfloat16[2] = aten.mul.Tensor(%h, %h)\n"
                      "node %t: bool[2] = aten._to_copy.default(%k, dtype=@bool)\n"
                      "node %y: float32[2] = ns.use.default(%x, %k, %g, %t)\noutput %y\n"),
            x + "constant %k: int8[2] = [56, 0]\n"
                "constant %g: bfloat16[2] = [1.015625]\n"
                "constant %t: bool[2] = [true, false]\n"
                "node %y: float32[2] = ns.use.default(%x, %k, %g, %t)\noutput %y\n");
}

TEST(ConstantFolding, BytesWithoutASignWrapAt256) {
  const std::string x = "input %x: float32[3] activation\n";
  EXPECT_EQ(after(fold_constants, x + "constant %i: uint8[3] = [200, 255, 1]\n"
                                      "node %j: uint8[3] = aten.add.Tensor(%i, %i)\n"
                                      "node %k: uint8[3] = aten.neg.default(%i)\n"
                                      "node %y: float32[3] = ns.use.default(%x, %j, %k)\n"
                                      "output %y\n"),
            x + "constant %j: uint8[3] = [144, 254, 2]\n"
                "constant %k: uint8[3] = [56, 1, 255]\n"
                "node %y: float32[3] = ns.use.default(%x, %j, %k)\noutput %y\n");
}

TEST(ConstantFolding, NothingStaysNothing) {
  const std::string x = "input %x: float32[3] activation\n";
  EXPECT_EQ(after(fold_constants, x + "constant %c: float32[0] = []\n"
                                      "constant %i: int64[2, 0] = []\n"
                                      "node %d: float32[0] = aten.lift_fresh_copy.default(%c)\n"
                                      "node %h: bfloat16[0] = aten._to_copy.default(%d, "
                                      "dtype=@bfloat16)\n"
                                      "node %j: int64[2, 0] = aten.add.Tensor(%i, 1)\n"
                                      "node %y: float32[3] = ns.use.default(%x, %h, %j)\n"
                                      "output %y\n"),
            x + "constant %h: bfloat16[0] = []\n"
                "constant %j: int64[2, 0] = []\n"
                "node %y: float32[3] = ns.use.default(%x, %h, %j)\noutput %y\n");
}

TEST(ConstantFolding, LeavesOutputsWritesAndInexactOperators) {
  const std::string text =
      "constant %c: float32[2] = [1.0, 2.0]\n"
      "node %a: float32[2] = aten.exp.default(%c)\n"
      "node %z: float32[2] = aten.zeros.default([2])\n"
      "node %w: float32[2] = aten.add_.Tensor(%z, %c) writes %z views %z\n"
      "node %o: float32[2] = aten.ones.default([2])\n"
      "output %a\noutput %w\noutput %o\n";
  EXPECT_EQ(after(fold_constants, text), text);
}

TEST(ConstantFolding, OneNumberFillsSymbolicSizes) {
  const std::string x = "symbol s range 1..9 hint 4 from %x[0]\ninput %x: float32[s] activation\n";
  EXPECT_EQ(
      after(fold_constants, x + "node %z: float32[] = aten.full.default([], 2.0)\n"
                                "node %e: float32[s](0) = aten.expand.default(%z, [s]) views %z\n"
                                "node %y: float32[s] = aten.mul.Tensor(%x, %e)\noutput %y\n"),
      x + "constant %e: float32[s](0) = [2.0]\n"
          "node %y: float32[s] = aten.mul.Tensor(%x, %e)\noutput %y\n");
}

const std::string kConvolution =
    "input %x: float32[1, 3, 8, 8] activation\n"
    "input %w: float32[16, 3, 3, 3] parameter\n"
    "input %g: float32[16] parameter\n"
    "input %b: float32[16] parameter\n"
    "input %m: float32[16] buffer\n"
    "input %v: float32[16] buffer\n"
    "node %c: float32[1, 16, 6, 6] = aten.convolution.default(%x, %w, none, [1, 1], [0, 0], [1, "
    "1], "
    "false, [0, 0], 1) at \"m.py:1\"\n";

TEST(BatchNormFolding, BecomesAFactorAndAnAddendBehindTheConvolution) {
  const std::string norm =
      "node %y: float32[1, 16, 6, 6], %s: float32[0], %i: float32[0] = "
      "aten._native_batch_norm_legit_no_training.default(%c, %g, %b, %m, %v, 0.1, 1e-05) at "
      "\"m.py:2\"\n";
  EXPECT_EQ(
      after(fold_batch_norms, kConvolution + norm + "output %y\n"),
      kConvolution +
          "node %y_variance: float32[16] = aten.add.Scalar(%v, 1e-05) at \"m.py:2\"\n"
          "node %y_scale: float32[16] = aten.rsqrt.default(%y_variance) at \"m.py:2\"\n"
          "node %y_scale_1: float32[16] = aten.mul.Tensor(%y_scale, %g) at \"m.py:2\"\n"
          "node %y_offset: float32[16] = aten.neg.default(%m) at \"m.py:2\"\n"
          "node %y_offset_1: float32[16] = aten.mul.Tensor(%y_offset, %y_scale_1) at \"m.py:2\"\n"
          "node %y_bias: float32[16] = aten.add.Tensor(%y_offset_1, %b) at \"m.py:2\"\n"
          "node %y_factor: float32[1, 16, 1, 1] = aten.view.default(%y_scale_1, [1, 16, 1, 1]) "
          "views %y_scale_1 at \"m.py:2\"\n"
          "node %y_addend: float32[1, 16, 1, 1] = aten.view.default(%y_bias, [1, 16, 1, 1]) "
          "views %y_bias at \"m.py:2\"\n"
          "node %y_exact: float32[1, 16, 6, 6] = aten.mul.Tensor(%c, %y_factor) at \"m.py:2\"\n"
          "node %y: float32[1, 16, 6, 6] = aten.add.Tensor(%y_exact, %y_addend) at \"m.py:2\"\n"
          "output %y\n");
}

// Halves with a bias, laid out channels-last, and statistics of both kinds of types.
const std::string kHalves =
    "input %x: bfloat16[1, 3, 8, 8](192, 1, 24, 3) activation\n"
    "input %w: bfloat16[16, 3, 3, 3] parameter\n"
    "input %k: bfloat16[16] parameter\n"
    "input %g: bfloat16[16] parameter\n"
    "input %m: float32[16] buffer\n"
    "input %v: bfloat16[16] buffer\n";

TEST(BatchNormFolding, OfHalvesIsComputedInFloat32) {
  const std::string image = "bfloat16[1, 16, 6, 6](576, 1, 96, 16)";
  const std::string exact = "float32[1, 16, 6, 6](576, 1, 96, 16)";
  const std::string options = ", [1, 1], [0, 0], [1, 1], false, [0, 0], 1)\n";
  EXPECT_EQ(
      after(fold_batch_norms,
            kHalves + "node %c: " + image + " = aten.convolution.default(%x, %w, %k" + options +
                "node %y: " + image +
                ", %s: float32[0], %i: float32[0] = "
                "aten._native_batch_norm_legit_no_training.default(%c, %g, none, %m, %v, 0.1, "
                "1e-05)\noutput %y\n"),
      kHalves + "node %c: " + image + " = aten.convolution.default(%x, %w, none" + options +
          "node %y_wide: float32[16] = aten._to_copy.default(%v, dtype=@float32)\n"
          "node %y_variance: float32[16] = aten.add.Scalar(%y_wide, 1e-05)\n"
          "node %y_scale: float32[16] = aten.rsqrt.default(%y_variance)\n"
          "node %y_wide_1: float32[16] = aten._to_copy.default(%g, dtype=@float32)\n"
          "node %y_scale_1: float32[16] = aten.mul.Tensor(%y_scale, %y_wide_1)\n"
          "node %y_wide_2: float32[16] = aten._to_copy.default(%k, dtype=@float32)\n"
          "node %y_offset: float32[16] = aten.sub.Tensor(%y_wide_2, %m)\n"
          "node %y_offset_1: float32[16] = aten.mul.Tensor(%y_offset, %y_scale_1)\n"
          "node %y_factor: float32[1, 16, 1, 1] = aten.view.default(%y_scale_1, [1, 16, 1, 1]) "
          "views %y_scale_1\n"
          "node %y_addend: float32[1, 16, 1, 1] = aten.view.default(%y_offset_1, [1, 16, 1, 1]) "
          "views %y_offset_1\n"
          "node %y_wide_3: " +
          exact +
          " = aten._to_copy.default(%c, dtype=@float32)\n"
          "node %y_exact: " +
          exact +
          " = aten.mul.Tensor(%y_wide_3, %y_factor)\n"
          "node %y_exact_1: " +
          exact +
          " = aten.add.Tensor(%y_exact, %y_addend)\n"
          "node %y: " +
          image +
          " = aten._to_copy.default(%y_exact_1, dtype=@bfloat16)\n"
          "output %y\n");
}

TEST(BatchNormFolding, LeavesWhatItMayNotChange) {
  const std::string training =
      kConvolution +
      "node %y: float32[1, 16, 6, 6], %s: float32[16], %i: float32[16] = "
      "aten.native_batch_norm.default(%c, %g, %b, %m, %v, true, 0.1, 1e-05)\noutput %y\n";
  EXPECT_EQ(after(fold_batch_norms, training), training);
  const std::string seen =
      kConvolution +
      "node %y: float32[1, 16, 6, 6], %s: float32[0], %i: float32[0] = "
      "aten._native_batch_norm_legit_no_training.default(%c, %g, %b, %m, %v, 0.1, 1e-05)\n"
      "output %y\noutput %c\n";
  EXPECT_EQ(after(fold_batch_norms, seen), seen);
  // The user's own statistics would be computed with at every call.
  const std::string given =
      "input %x: float16[1, 3, 8, 8] activation\ninput %w: float16[16, 3, 3, 3] parameter\n"
      "input %m: float16[16] activation\ninput %v: float16[16] activation\n"
      "node %c: float16[1, 16, 6, 6] = aten.convolution.default(%x, %w, none, [1, 1], [0, 0], "
      "[1, 1], false, [0, 0], 1)\n"
      "node %y: float16[1, 16, 6, 6], %s: float32[0], %i: float32[0] = "
      "aten._native_batch_norm_legit_no_training.default(%c, none, none, %m, %v, 0.1, 1e-05)\n"
      "output %y\n";
  EXPECT_EQ(after(fold_batch_norms, given), given);
}

TEST(Composites, SoftmaxBecomesReductions) {
  const std::string x = "input %x: float32[4, 9] activation\n";
  for (const std::string dim : {"-1", "1"}) {
    EXPECT_EQ(
        after(expand_composites, x + "node %y: float32[4, 9] = aten._softmax.default(%x, " + dim +
                                     ", false) at \"m.py:4\"\n"
                                     "output %y\n"),
        x + "node %y_max: float32[4, 1] = aten.amax.default(%x, [-1], true) at \"m.py:4\"\n"
            "node %y_shifted: float32[4, 9] = aten.sub.Tensor(%x, %y_max) at \"m.py:4\"\n"
            "node %y_exp: float32[4, 9] = aten.exp.default(%y_shifted) at \"m.py:4\"\n"
            "node %y_sum: float32[4, 1] = aten.sum.dim_IntList(%y_exp, [-1], true) at \"m.py:4\"\n"
            "node %y: float32[4, 9] = aten.div.Tensor(%y_exp, %y_sum) at \"m.py:4\"\noutput %y\n");
  }
}

TEST(Composites, LayerNormOfHalvesComputesInFloat32) {
  const std::string x = "input %x: bfloat16[4, 9] activation\ninput %w: bfloat16[9] parameter\n";
  EXPECT_EQ(after(expand_composites,
                  x + "node %y: bfloat16[4, 9], %m: float32[4, 1], %r: float32[4, 1] = "
                      "aten.native_layer_norm.default(%x, [9], %w, none, 1e-05)\n"
                      "output %y\noutput %m saved\n"),
            x + "node %y_wide: float32[4, 9] = aten._to_copy.default(%x, dtype=@float32)\n"
                "node %y_near: float32[4, 1] = aten.mean.dim(%y_wide, [-1], true)\n"
                "node %y_apart: float32[4, 9] = aten.sub.Tensor(%y_wide, %y_near)\n"
                "node %y_off: float32[4, 1] = aten.mean.dim(%y_apart, [-1], true)\n"
                "node %y_squares: float32[4, 9] = aten.mul.Tensor(%y_apart, %y_apart)\n"
                "node %y_spread: float32[4, 1] = aten.mean.dim(%y_squares, [-1], true)\n"
                "node %m: float32[4, 1] = aten.add.Tensor(%y_near, %y_off)\n"
                "node %y_centred: float32[4, 9] = aten.sub.Tensor(%y_apart, %y_off)\n"
                "node %y_less: float32[4, 1] = aten.mul.Tensor(%y_off, %y_off)\n"
                "node %y_rest: float32[4, 1] = aten.sub.Tensor(%y_spread, %y_less)\n"
                "node %y_variance: float32[4, 1] = aten.relu.default(%y_rest)\n"
                "node %y_shifted: float32[4, 1] = aten.add.Scalar(%y_variance, 1e-05)\n"
                "node %r: float32[4, 1] = aten.rsqrt.default(%y_shifted)\n"
                "node %y_normal: float32[4, 9] = aten.mul.Tensor(%y_centred, %r)\n"
                "node %y_wide_1: float32[9] = aten._to_copy.default(%w, dtype=@float32)\n"
                "node %y_weighted: float32[4, 9] = aten.mul.Tensor(%y_normal, %y_wide_1)\n"
                "node %y: bfloat16[4, 9] = aten._to_copy.default(%y_weighted, dtype=@bfloat16)\n"
                "output %y\noutput %m saved\n");
}

TEST(Composites, LayerNormOfLongRowsStays) {
  const std::string text =
      "input %x: float32[4, 4097] activation\n"
      "node %y: float32[4, 4097], %m: float32[4, 1], %r: float32[4, 1] = "
      "aten.native_layer_norm.default(%x, [4097], none, none, 1e-05)\noutput %y\n";
  EXPECT_EQ(after(expand_composites, text), text);
}

TEST(Composites, OtherDimensionsStay) {
  const std::string text =
      "input %x: float32[4, 9] activation\n"
      "node %y: float32[4, 9] = aten._softmax.default(%x, 0, false)\noutput %y\n";
  EXPECT_EQ(after(expand_composites, text), text);
}

}  // namespace
}  // namespace graft::compiler
