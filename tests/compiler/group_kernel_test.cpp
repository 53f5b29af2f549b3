// tests/compiler/group_kernel_test.cpp: what the generated kernels of groups look like; what they
// compute is executor_test's.
#include "compiler/kernels/group_kernel.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "codegen/print/dialect.h"
#include "codegen/print/printer.h"
#include "compiler/passes/passes.h"
#include "tests/compiler/run/reference_host.h"

namespace graft::compiler::test {
// labels of the file: opencl_gpu
namespace {

using graft::test::device;

// The kernel of the graph's one group.
struct One {
  explicit One(const std::string& body) : graph(graph_of(body)) {
    run_passes(graph, inference_passes());
    EXPECT_EQ(graph.groups.size(), 1u);
    const Effects effects(graph);
    kernel = *group_kernel(graph, effects, graph.groups[0].nodes);
  }

  ir::Kernel dealt(WorkMapping deal) const {
    GroupKernel given = kernel;
    given.deal = deal;
    return given.build(graph);
  }
  std::string text(WorkMapping deal, const char* dialect = "opencl-c") const {
    const std::string all = ir::print(dealt(deal), *ir::find_dialect(dialect));
    return all.substr(all.find(dialect == std::string_view("c") ? kernel.key : "__kernel"));
  }

  Graph graph;
  GroupKernel kernel;
};

std::string softmax(const std::string& n) {
  return "input %x: float32[9, " + n + "] activation\nnode %y: float32[9, " + n +
         "] = aten._softmax.default(%x, -1, false)\noutput %y\n";
}

size_t count(const std::string& text, std::string_view word) {
  size_t found = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

TEST(GroupKernel, RowsMeetInSubGroupsWhereTheDeviceHandsValuesOver) {
  const One one(softmax("1000"));
  const std::string lanes = one.text(WorkMapping::kLanes);
  EXPECT_EQ(count(lanes, "graft_shuffle("), 0u) << lanes;
  EXPECT_EQ(count(lanes, "barrier("), 15u) << lanes;
  const std::string shuffles = one.text(WorkMapping::kShuffles);
  EXPECT_EQ(count(shuffles, "graft_shuffle("), 12u) << shuffles;
  EXPECT_EQ(count(shuffles, "barrier("), 3u) << shuffles;
  EXPECT_EQ(dealt_for(device(), one.kernel).deal, deal_of_lines(device()));
  EXPECT_EQ(dealt_for(device(), One(softmax("20")).kernel).deal, WorkMapping::kSpans);
}

TEST(GroupKernel, ReductionsThatRunAlongShareOnePassOfAGroup) {
  const One one(
      "input %x: float32[9, 1000] activation\n"
      "node %s: float32[9, 1] = aten.sum.dim_IntList(%x, [-1], true)\n"
      "node %m: float32[9, 1] = aten.amax.default(%x, [-1], true)\n"
      "node %d: float32[9, 1] = aten.sub.Tensor(%s, %m)\noutput %d\n");
  const std::string text = one.text(WorkMapping::kShuffles);
  EXPECT_EQ(count(text, "barrier("), 1u) << text;
  EXPECT_EQ(count(text, "= p1["), 1u) << text;
}

// Steps that are known are no arguments.
TEST(GroupKernel, KnownStepsAreInTheKernel) {
  const One reversed(
      "input %x: float32[80] activation\nnode %f: float32[80] = aten.flip.default(%x, [0])\n"
      "node %a: float32[80] = aten.exp.default(%f)\noutput %a\n");
  // Two addresses, the length, the tile, and where the first element lies.
  EXPECT_EQ(reversed.dealt(WorkMapping::kSpans).parameters.size(), 5u);
  const One second(
      "input %x: float32[80] activation\n"
      "node %e: float32[40](2) = aten.slice.Tensor(%x, 0, 0, 80, 2) views %x\n"
      "node %a: float32[40] = aten.exp.default(%e)\noutput %a\n");
  EXPECT_EQ(second.dealt(WorkMapping::kSpans).parameters.size(), 4u);
  EXPECT_NE(second.kernel.key, reversed.kernel.key);
}

// What is one element for a row is loaded before the row's loop.
TEST(GroupKernel, OneElementOfARowIsLoadedOnce) {
  const One one(
      "input %x: float32[9, 1000] activation\ninput %y: float32[9, 1] activation\n"
      "node %a: float32[9, 1000] = aten.mul.Tensor(%x, %y)\noutput %a\n");
  const std::string text = one.text(WorkMapping::kSpans, "c");
  EXPECT_LT(text.find("= p2["), text.find("= p1[")) << text;
  const size_t loop = text.rfind("for (", text.find("= p1["));
  EXPECT_LT(text.find("= p2["), loop) << text;
}

// A group whose nodes work on the bits of a half type converts nothing.
TEST(GroupKernel, BitsOfHalfTypesStayBits) {
  for (const std::string type : {"bfloat16", "float16"}) {
    const std::string x = type + "[80]";
    const One bits("input %x: " + x + " activation\nnode %f: " + x +
                   " = aten.flip.default(%x, [0])\nnode %n: " + x +
                   " = aten.neg.default(%f)\nnode %a: " + x +
                   " = aten.abs.default(%n)\noutput %n\noutput %a\n");
    for (const ir::Parameter& parameter : bits.dealt(WorkMapping::kSpans).parameters) {
      if (!parameter.is_address) continue;
      EXPECT_EQ(parameter.dtype, GRAFT_INT16) << type;
    }
    const One numbers("input %x: " + x + " activation\nnode %a: " + x +
                      " = aten.abs.default(%x)\nnode %n: " + x +
                      " = aten.exp.default(%a)\noutput %n\n");
    EXPECT_NE(numbers.dealt(WorkMapping::kSpans).parameters[0].dtype, GRAFT_INT16) << type;
  }
}

TEST(GroupKernel, BitsOfHalfTypesAreWhatThePlainKernelGives) {
  const Graph graph = [] {
    Graph given = graph_of(
        "input %x: bfloat16[6] activation\nnode %a: bfloat16[6] = aten.abs.default(%x)\n"
        "node %n: bfloat16[6] = aten.neg.default(%a)\noutput %n\n");
    run_passes(given, inference_passes());
    return given;
  }();
  const std::vector<double> bits{0x3f80,           0x8000 - 0x10000, 0x7f81,
                                 0xff81 - 0x10000, 0x0001,           0x7f80};
  DeviceTensor x({6}, GRAFT_INT16);
  x.set(bits);
  ExecutionInput input;
  input.view = x.view();
  input.view.dtype = GRAFT_BFLOAT16;
  TestHost host;
  Executor executor(graph, host, stream());
  TensorView result;
  executor.run({&input, 1}, {}, {&result, 1});
  int16_t got[6];
  stream().read(got, result.address, sizeof(got));
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(got[i], static_cast<int16_t>(static_cast<int>(bits[i]) | -0x8000)) << i;
  }
}

}  // namespace
}  // namespace graft::compiler::test
