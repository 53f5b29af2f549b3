// tests/compiler/grouping_test.cpp: fusion, epilogues, order and memory: before and after,
// as text.
#include <gtest/gtest.h>

#include "compiler/analysis/drawing.h"
#include "compiler/passes/passes.h"
#include "compiler/plan/memory_plan.h"
#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler {
namespace {

using test::body_of;
using test::graph_of;
using test::has;
using test::message;

// The groups that passes make, as lines of text.
std::string groups(std::initializer_list<int (*)(Graph&)> passes, const std::string& body) {
  Graph graph = graph_of(body);
  for (auto* pass : passes) pass(graph), verify(graph);
  const std::string text = body_of(graph);
  const size_t first = text.find("group "), last = text.find("output ");
  return first == std::string::npos ? "" : text.substr(first, last - first);
}

const std::string kX = "input %x: float32[4, 8] activation\ninput %b: float32[8] parameter\n";

TEST(Fusion, JoinsProducersAndConsumers) {
  EXPECT_EQ(groups({fuse}, kX + "node %a: float32[4, 8] = aten.add.Tensor(%x, %b)\n"
                                "node %c: float32[4, 8] = aten.relu.default(%a)\n"
                                "node %d: float32[4, 8] = aten.mul.Tensor(%c, %a)\n"
                                "output %c\noutput %d\n"),
            "group g0 pointwise %a %c %d\n");
}

TEST(Fusion, NeverMakesACycle) {
  EXPECT_EQ(groups({fuse}, kX + "node %a: float32[4, 8] = aten.neg.default(%x)\n"
                                "node %m: float32[4, 8] = ns.outside.default(%a)\n"
                                "node %c: float32[4, 8] = aten.add.Tensor(%a, %m)\noutput %c\n"),
            "group g0 pointwise %a\ngroup g1 pointwise %c\n");
}

TEST(Fusion, StopsAtWritesOfWhatItReads) {
  EXPECT_EQ(groups({fuse},
                   "input %m: float32[8] buffer mutated\n"
                   "node %a: float32[8] = aten.neg.default(%m)\n"
                   "node %w: float32[8] = aten.mul_.Scalar(%m, 2.0) writes %m views %m\n"
                   "node %c: float32[8] = aten.add.Tensor(%a, %m)\noutput %c\n"),
            "group g0 pointwise %a\ngroup g1 pointwise %c\n");
}

TEST(Fusion, SoftmaxAndLayerNormAreOneGroup) {
  EXPECT_EQ(
      groups({expand_composites, fuse},
             kX + "node %a: float32[4, 8] = aten.mul.Tensor(%x, 0.125)\n"
                  "node %y: float32[4, 8] = aten._softmax.default(%a, -1, false)\noutput %y\n"),
      "group g0 reduction %a %y_max %y_shifted %y_exp %y_sum %y\n");
  EXPECT_EQ(
      groups({expand_composites, number_values, fuse},
             kX + "node %s: float32[4, 8] = aten.add.Tensor(%x, %x)\n"
                  "node %y: float32[4, 8], %m: float32[4, 1], %r: float32[4, 1] = "
                  "aten.native_layer_norm.default(%s, [8], %b, %b, 1e-05)\n"
                  "output %y\noutput %m\noutput %r\n"),
      "group g0 reduction %s %y_near %y_apart %y_off %y_squares %y_spread %m %y_centred %y_less "
      "%y_rest %y_variance %y_shifted %r %y_normal %y_weighted %y\n");
}

TEST(Fusion, OtherShapesStayApart) {
  EXPECT_EQ(groups({fuse}, kX + "node %a: float32[8] = aten.exp.default(%b)\n"
                                "node %c: float32[4, 8] = aten.add.Tensor(%x, %a)\noutput %c\n"),
            "group g0 pointwise %a\ngroup g1 pointwise %c\n");
}

TEST(Fusion, IsBounded) {
  std::string body = kX + "node %n0: float32[4, 8] = aten.neg.default(%x)\n";
  for (int i = 1; i < 150; ++i) {
    body += "node %n" + std::to_string(i) + ": float32[4, 8] = aten.sin.default(%n" +
            std::to_string(i - 1) + ")\n";
  }
  Graph graph = graph_of(body + "output %n149\n");
  fuse(graph);
  verify(graph);
  EXPECT_GE(graph.groups.size(), 3u);
  EXPECT_LE(graph.groups.size(), 6u);
  for (const Group& group : graph.groups) EXPECT_LE(group.nodes.size(), 64u);
}

TEST(EpilogueFusion, TakesBiasActivationResidualAndCast) {
  EXPECT_EQ(groups({fuse_epilogues, fuse},
                   kX + "input %w: float32[8, 8] parameter\n"
                        "node %m: float32[4, 8] = aten.mm.default(%x, %w)\n"
                        "node %a: float32[4, 8] = aten.add.Tensor(%m, %b)\n"
                        "node %r: float32[4, 8] = aten.relu.default(%a)\n"
                        "node %s: float32[4, 8] = aten.add.Tensor(%r, %x)\n"
                        "node %h: bfloat16[4, 8] = aten._to_copy.default(%s, dtype=@bfloat16)\n"
                        "node %o: bfloat16[4, 8] = aten.sin.default(%h)\noutput %o\n"),
            "group e0 matmul %m %a %r %s\ngroup g0 pointwise %h %o\n");
}

TEST(EpilogueFusion, TakesWhatOneCallOfALibraryCanSay) {
  const std::string products = "input %w: float32[8, 8] parameter\n";
  EXPECT_EQ(groups({fuse_epilogues, fuse},
                   kX + products +
                       "node %m: float32[4, 8] = aten.addmm.default(%b, %x, %w)\n"
                       "node %g: float32[4, 8] = aten.gelu.default(%m, approximate=\"tanh\")\n"
                       "node %o: float32[4, 8] = aten.silu.default(%g)\noutput %o\n"),
            "group e0 matmul %m %g %o\n");
  // A tanh is no step of a library: it goes with what follows.
  EXPECT_EQ(groups({fuse_epilogues, fuse},
                   kX + products +
                       "node %m: float32[4, 8] = aten.addmm.default(%b, %x, %w)\n"
                       "node %g: float32[4, 8] = aten.tanh.default(%m)\n"
                       "node %o: float32[4, 8] = aten.mul.Tensor(%g, 2.0)\noutput %o\n"),
            "group g0 pointwise %g %o\n");
  // A residual in another layout, or another factor of a bias, is none either.
  EXPECT_EQ(groups({fuse_epilogues, fuse},
                   kX + products +
                       "input %y: float32[8, 4] activation\n"
                       "node %t: float32[4, 8](1, 4) = aten.t.default(%y) views %y\n"
                       "node %m: float32[4, 8] = aten.mm.default(%x, %w)\n"
                       "node %s: float32[4, 8] = aten.add.Tensor(%m, %t)\noutput %s\n"),
            "group g0 pointwise %s\n");
  EXPECT_EQ(groups({fuse_epilogues, fuse},
                   kX + products +
                       "node %m: float32[4, 8] = aten.mm.default(%x, %w)\n"
                       "node %s: float32[4, 8] = aten.add.Tensor(%x, %m, alpha=2)\noutput %s\n"),
            "group g0 pointwise %s\n");
  // At most four steps.
  EXPECT_EQ(groups({fuse_epilogues, fuse},
                   kX + products +
                       "node %m: float32[4, 8] = aten.addmm.default(%b, %x, %w)\n"
                       "node %r1: float32[4, 8] = aten.relu.default(%m)\n"
                       "node %r2: float32[4, 8] = aten.mul.Scalar(%r1, 0.5)\n"
                       "node %r3: float32[4, 8] = aten.add.Tensor(%x, %r2)\n"
                       "node %r4: float32[4, 8] = aten.relu.default(%r3)\noutput %r4\n"),
            "group e0 matmul %m %r1 %r2 %r3\ngroup g0 pointwise %r4\n");
}

TEST(EpilogueFusion, TakesFloat32StepsBetweenCastsOfHalves) {
  const std::string body =
      "input %x: bfloat16[4, 8] activation\ninput %w: bfloat16[8, 8] parameter\n"
      "input %f: float32[1, 8] parameter\ninput %b: float32[8] parameter\n"
      "input %r: float32[4, 8] activation\n"
      "node %m: bfloat16[4, 8] = aten.mm.default(%x, %w)\n"
      "node %h: float32[4, 8] = aten._to_copy.default(%m, dtype=@float32)\n"
      "node %s: float32[4, 8] = aten.mul.Tensor(%f, %h)\n";
  EXPECT_EQ(groups({fuse_epilogues, fuse},
                   body + "node %a: float32[4, 8] = aten.add.Tensor(%s, %b)\n"
                          "node %c: bfloat16[4, 8] = aten._to_copy.default(%a, dtype=@bfloat16)\n"
                          "node %d: bfloat16[4, 8] = aten.add.Tensor(%c, %x)\n"
                          "node %o: bfloat16[4, 8] = aten.relu.default(%d)\noutput %o\n"),
            "group e0 matmul %m %h %s %a %c %d %o\n");
  // A residual would be rounded to the result's type; another half type is none of the product's.
  EXPECT_EQ(groups({fuse_epilogues, fuse},
                   body + "node %a: float32[4, 8] = aten.add.Tensor(%s, %r)\noutput %a\n"),
            "group e0 matmul %m %h %s\ngroup g0 pointwise %a\n");
  EXPECT_EQ(groups({fuse_epilogues, fuse},
                   body + "node %a: float16[4, 8] = aten._to_copy.default(%s, dtype=@float16)\n"
                          "output %a\n"),
            "group e0 matmul %m %h %s\ngroup g0 pointwise %a\n");
}

TEST(EpilogueFusion, TakesWhatIsBetweenZeroAndANumber) {
  const std::string body = kX +
                           "input %w: float32[8, 8] parameter\n"
                           "node %m: float32[4, 8] = aten.addmm.default(%b, %x, %w)\n";
  EXPECT_EQ(groups({fuse_epilogues, fuse},
                   body + "node %o: float32[4, 8] = aten.hardtanh.default(%m, 0.0, 6.0)\n"
                          "output %o\n"),
            "group e0 matmul %m %o\n");
  EXPECT_EQ(groups({fuse_epilogues, fuse},
                   body + "node %o: float32[4, 8] = aten.hardtanh.default(%m, -1.0, 1.0)\n"
                          "output %o\n"),
            "group g0 pointwise %o\n");
}

TEST(EpilogueFusion, TakesACastOfHalves) {
  const std::string body =
      "input %x: bfloat16[4, 8] activation\ninput %w: bfloat16[8, 8] parameter\n"
      "node %m: bfloat16[4, 8] = aten.mm.default(%x, %w)\n"
      "node %h: float32[4, 8] = aten._to_copy.default(%m, dtype=@float32)\n";
  EXPECT_EQ(groups({fuse_epilogues, fuse},
                   body + "node %o: float32[4, 8] = aten.relu.default(%h)\noutput %o\n"),
            "group e0 matmul %m %h %o\n");
  EXPECT_EQ(groups({fuse_epilogues, fuse},
                   body + "node %o: float32[4, 8] = aten.tanh.default(%h)\noutput %o\n"),
            "group e0 matmul %m %h\ngroup g0 pointwise %o\n");
}

TEST(EpilogueFusion, GivesConvolutionsTheirResidualAndActivation) {
  EXPECT_EQ(
      groups({fuse_epilogues, fuse},
             "input %x: float32[2, 3, 8, 8](192, 1, 24, 3) activation\n"
             "input %r: float32[2, 4, 8, 8](256, 1, 32, 4) activation\n"
             "input %w: float32[4, 3, 3, 3] parameter\ninput %b: float32[4] parameter\n"
             "node %c: float32[2, 4, 8, 8](256, 1, 32, 4) = aten.convolution.default(%x, %w, %b, "
             "[1, 1], [1, 1], [1, 1], false, [0, 0], 1)\n"
             "node %s: float32[2, 4, 8, 8](256, 1, 32, 4) = aten.add.Tensor(%c, %r)\n"
             "node %o: float32[2, 4, 8, 8](256, 1, 32, 4) = aten.relu.default(%s)\noutput %o\n"),
      "group e0 convolution %c %s %o\n");
}

TEST(EpilogueFusion, LeavesWhatOthersUse) {
  EXPECT_EQ(groups({fuse_epilogues},
                   kX + "input %w: float32[8, 8] parameter\n"
                        "node %m: float32[4, 8] = aten.mm.default(%x, %w)\n"
                        "node %r: float32[4, 8] = aten.relu.default(%m)\noutput %r\noutput %m\n"),
            "");
}

// Two branches of two large values each: one after the other needs half the memory.
const std::string kBranches =
    "input %x: float32[1024] activation\n"
    "node %a: float32[4096] = ns.grow.default(%x)\n"
    "node %b: float32[4096] = ns.grow.default(%x, 1)\n"
    "node %c: float32[16] = ns.shrink.default(%a)\n"
    "node %d: float32[16] = ns.shrink.default(%b)\n"
    "node %e: float32[16] = aten.add.Tensor(%c, %d)\noutput %e\n";

struct Planned {
  MemoryPlan plan;
  Placement placement;
};

Planned planned(const Graph& graph, uint64_t alignment = 64) {
  const Effects effects(graph);
  const ScheduleUnits units(graph, effects);
  Planned result{plan_memory(graph, effects, units, units.sorted()), {}};
  for (const PlannedBuffer& buffer : result.plan.buffers) {
    result.placement.bytes.push_back(static_cast<uint64_t>(graph.hint(buffer.bytes)));
  }
  for (const PlannedOutput& output : result.plan.outputs) {
    result.placement.room.push_back(static_cast<uint64_t>(graph.hint(output.bytes)));
  }
  place(result.plan, alignment, &result.placement);
  check(graph, result.plan, result.placement, alignment);
  return result;
}

TEST(Scheduling, LowersThePeak) {
  Graph graph = graph_of(kBranches);
  EXPECT_EQ(planned(graph).placement.total, 2u * 4096 * 4 + 64);
  EXPECT_GT(schedule(graph), 0);
  verify(graph);
  EXPECT_EQ(planned(graph).placement.total, 4096u * 4 + 2 * 64);
}

TEST(MemoryPlan, WhatComesLaterLiesInGaps) {
  MemoryPlan plan;
  const auto add = [&](Placement* to, uint64_t bytes, uint32_t first, uint32_t last) {
    plan.buffers.push_back({{}, Size(0), first, last});
    to->bytes.push_back(bytes);
  };
  plan.outputs.push_back({0, Size(0), 8});
  Placement placement;
  placement.room = {100};
  add(&placement, 512, 0, 4);
  add(&placement, 256, 0, 9);
  place(plan, 64, &placement);
  EXPECT_EQ(placement.total, 768u);
  add(&placement, 512, 5, 6);  // where the first one was
  add(&placement, 100, 5, 7);  // in the output, before it is written
  add(&placement, 64, 5, 8);   // not any more when it is
  add(&placement, 128, 1, 1);  // nowhere
  place_more(plan, 64, 2, &placement);
  EXPECT_EQ(placement.offsets, (std::vector<uint64_t>{0, 512, 0, 0, 768, 768}));
  EXPECT_EQ(placement.hosts, (std::vector<uint32_t>{kNone, kNone, kNone, 0, kNone, kNone}));
  EXPECT_EQ(placement.total, 896u);
}

TEST(Scheduling, KeepsEffectsInOrder) {
  const std::string text =
      "input %m: float32[8] buffer mutated\n"
      "node %a: float32[4096] = ns.grow.default(%m)\n"
      "node %w: float32[8] = aten.mul_.Scalar(%m, 2.0) writes %m views %m\n"
      "node %b: float32[8] = ns.shrink.default(%m)\n"
      "node %r: float32[8] = aten.rand.default([8]) random\n"
      "node %q: float32[8] = aten.rand.default([8]) random\n"
      "node %c: float32[8] = ns.shrink.default(%a)\noutput %b\noutput %c\noutput %q\noutput %r\n";
  Graph graph = graph_of(text);
  schedule(graph);
  const Effects effects(graph);
  auto place = [&](const char* name) { return effects.place[graph.values[graph.find(name)].node]; };
  EXPECT_LT(place("a"), place("w"));
  EXPECT_LT(place("w"), place("b"));
  EXPECT_LT(place("r"), place("q"));
}

TEST(MemoryPlan, ReusesInPlaceWhereAKernelAllows) {
  Graph graph = graph_of(
      "input %x: float32[1024] activation\n"
      "node %a: float32[1024] = ns.make.default(%x)\n"
      "node %b: float32[1024] = aten.exp.default(%a)\n"
      "node %c: float32[1024] = aten.neg.default(%b)\n"
      "node %d: float32[] = ns.sum.default(%c)\noutput %d\n");
  const Planned result = planned(graph);
  ASSERT_EQ(result.plan.buffers.size(), 1u);
  EXPECT_EQ(result.plan.buffers[0].values.size(), 3u);
}

TEST(MemoryPlan, NotOverWhatAViewStillReads) {
  Graph graph = graph_of(
      "input %x: float32[32, 32] activation\n"
      "node %a: float32[32, 32] = ns.make.default(%x)\n"
      "node %t: float32[32, 32](1, 32) = aten.t.default(%a) views %a\n"
      "node %b: float32[32, 32] = aten.add.Tensor(%a, %t)\n"
      "node %d: float32[] = ns.sum.default(%b)\noutput %d\n");
  EXPECT_EQ(planned(graph).plan.buffers.size(), 2u);
}

// %a and %b have died when %d is written, %c lives then; %e is smaller than both.
const std::string kLate =
    "input %x: float32[1024] activation\n"
    "node %a: float32[2048] = ns.grow.default(%x)\n"
    "node %b: float32[1024] = ns.shrink.default(%a)\n"
    "node %e: float32[16] = ns.shrink.default(%b)\n"
    "node %c: float32[1024] = ns.grow.default(%e)\n"
    "node %d: float32[4096] = ns.grow.default(%c)\noutput %e\noutput %d\n";

TEST(MemoryPlan, WhatDiesEarlyLiesInAnOutputThatIsWrittenLate) {
  const Planned result = planned(graph_of(kLate));
  ASSERT_EQ(result.plan.buffers.size(), 3u);
  ASSERT_EQ(result.plan.outputs.size(), 2u);
  EXPECT_EQ(result.placement.hosts, (std::vector<uint32_t>{1, 1, kNone}));
  EXPECT_EQ(result.placement.offsets, (std::vector<uint64_t>{0, 2048 * 4, 0}));
  EXPECT_EQ(result.placement.total, 1024u * 4);
}

TEST(MemoryPlan, TheCheckerFindsWhatAnOutputWouldOverwrite) {
  Graph graph = graph_of(kLate);
  Planned result = planned(graph);
  const auto says = [&](const char* what) {
    return has(message([&] { check(graph, result.plan, result.placement, 64); }), what);
  };
  result.placement.hosts[2] = 1;
  EXPECT_TRUE(says("%c lives when %d is written, whose memory it uses"));
  result.placement.hosts[2] = kNone, result.placement.offsets[1] = 4096 * 4;
  EXPECT_TRUE(says("%b leaves %d"));
  result.placement.offsets[1] = 64;
  EXPECT_TRUE(says("%b and %a live at once and overlap"));
}

TEST(MemoryPlan, TheCheckerFindsOverlaps) {
  Graph graph = graph_of(kBranches);
  Planned result = planned(graph);
  result.placement.offsets[1] = 64;
  const std::string text = message([&] { check(graph, result.plan, result.placement, 64); });
  EXPECT_TRUE(has(text, "%b and %a live at once and overlap")) << text;
  result.placement.offsets[1] = 65;
  EXPECT_TRUE(
      has(message([&] { check(graph, result.plan, result.placement, 64); }), "not aligned"));
  result.placement.offsets[1] = 1 << 20;
  EXPECT_TRUE(has(message([&] { check(graph, result.plan, result.placement, 64); }), "leaves"));
}

TEST(Drawing, ShowsUnitsEdgesAndTimes) {
  Graph graph = graph_of(kX +
                         "node %a: float32[4, 8] = aten.add.Tensor(%x, %b) at \"m.py:<3>\"\n"
                         "node %c: float32[4, 8] = aten.relu.default(%a)\noutput %c\n");
  fuse(graph);
  const std::string svg = draw(graph, {{0, 12.5, 4096}});
  for (const char* part : {"<svg ", "g0: pointwise", "m.py:&lt;3&gt;", "12.5 us, 4096 bytes",
                           "output %c", "<line ", "</svg>"}) {
    EXPECT_TRUE(has(svg, part)) << part;
  }
  EXPECT_EQ(svg, draw(graph, {{0, 12.5, 4096}}));
}

TEST(Passes, RunInOrderAndShowEveryStage) {
  Graph graph = graph_of(kX +
                         "node %a: float32[4, 8] = aten.mul.Tensor(%x, 1.0)\n"
                         "node %c: float32[4, 8] = aten.relu.default(%a)\noutput %c\n");
  std::vector<std::string> stages;
  const int changes =
      run_passes(graph, inference_passes(), [&](std::string_view stage, const Graph& at, int) {
        verify(at);
        stages.emplace_back(stage);
      });
  EXPECT_GT(changes, 0);
  EXPECT_EQ(stages.size(), inference_passes().size() + 1);
  EXPECT_EQ(stages[0], "input");
  EXPECT_EQ(graph.order.size(), 1u);
}

TEST(Passes, ABrokenPassIsNamed) {
  Graph graph = graph_of(kX + "node %c: float32[4, 8] = aten.relu.default(%x)\noutput %c\n");
  const Pass broken[] = {{"break_it", [](Graph& g) { return g.order.clear(), 1; }}};
  const std::string text = message([&] { run_passes(graph, broken); });
  EXPECT_TRUE(has(text, "the compiler's pass break_it broke the graph")) << text;
}

}  // namespace
}  // namespace graft::compiler
