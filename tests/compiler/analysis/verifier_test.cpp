// tests/compiler/analysis/verifier_test.cpp: every rule of the verifier, broken once.
#include "compiler/analysis/verifier.h"

#include <gtest/gtest.h>

#include <functional>

#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler {
namespace {

using test::has;
using test::message;

const std::string kBody =
    "symbol s range 1..64 hint 4 from %x[0]\n"
    "input %x: float32[s, 3] activation\n"
    "input %m: float32[3] buffer mutated\n"
    "input %k: float32[] scalar\n"
    "constant %c: float32[3] = [1.0, 2.0, 3.0]\n"
    "node %y: float32[s, 3] = aten.add.Tensor(%x, %c) at \"model.py:7\"\n"
    "node %z: float32[s, 3] = aten.relu.default(%y) at \"model.py:8\"\n"
    "node %w: float32[3] = aten.copy_.default(%m, %c) writes %m views %m at \"model.py:9\"\n"
    "group g0 pointwise %y %z\n"
    "output %z\n";

struct Rule {
  const char* says;
  std::function<void(Graph&)> break_it;
};

GraphValue& value(Graph& graph, const char* name) { return graph.values[graph.find(name)]; }
Node& node(Graph& graph, const char* name) { return graph.nodes[value(graph, name).node]; }

const Rule kRules[] = {
    {"symbol s: it is defined twice", [](Graph& g) { g.symbols.push_back(g.symbols[0]); }},
    {"word of the text form", [](Graph& g) { g.symbols[0].name = "true"; }},
    {"the range is empty", [](Graph& g) { g.symbols[0].low = 65; }},
    {"the hint is outside the range", [](Graph& g) { g.symbols[0].hint = 65; }},
    {"dimension or integer is negative", [](Graph& g) { g.symbols[0].dim = -1; }},
    {"its value does not exist", [](Graph& g) { g.symbols[0].value = 99; }},
    {"its value is a constant", [](Graph& g) { g.symbols[0].value = g.find("c"); }},
    {"its value has no such dimension", [](Graph& g) { g.symbols[0].dim = 2; }},
    {"is not this symbol alone", [](Graph& g) { g.symbols[0].dim = 1; }},
    {"its dtype is unknown",
     [](Graph& g) { value(g, "x").type.dtype = static_cast<graft_dtype>(15); }},
    {"more than 16 dimensions", [](Graph& g) { value(g, "m").type.sizes.resize(17, Size(1)); }},
    {"the numbers of its sizes and strides differ",
     [](Graph& g) { value(g, "m").type.strides.clear(); }},
    {"a size or stride is negative", [](Graph& g) { value(g, "m").type.sizes[0] = Size(-1); }},
    {"a symbol that is not defined",
     [](Graph& g) { value(g, "m").type.sizes[0] = Size::symbol("q"); }},
    {"another value has its name", [](Graph& g) { value(g, "m").name = "x"; }},
    {"an input: its value does not exist", [](Graph& g) { g.inputs.push_back(99); }},
    {"it is not marked as an input", [](Graph& g) { value(g, "m").origin = Origin::kNode; }},
    {"it is not marked as a constant", [](Graph& g) { value(g, "c").origin = Origin::kNode; }},
    {"it is defined twice", [](Graph& g) { g.inputs.push_back(g.inputs[0]); }},
    {"it aliases a value that is no earlier input",
     [](Graph& g) { value(g, "x").alias = g.find("m"); }},
    {"a scalar has no dimensions", [](Graph& g) { value(g, "x").kind = InputKind::kScalar; }},
    {"its elements have another dtype", [](Graph& g) { value(g, "c").whole = {1}; }},
    {"neither one element nor those of its type", [](Graph& g) { value(g, "c").data.pop_back(); }},
    {"complex elements have no text", [](Graph& g) { value(g, "c").type.dtype = GRAFT_COMPLEX64; }},
    {"the order: it names a node", [](Graph& g) { g.order.push_back(99); }},
    {"in the order twice", [](Graph& g) { g.order.push_back(g.order[1]); }},
    {"node %y (aten.add.Tensor, model.py:7): an operand is not defined before it",
     [](Graph& g) { node(g, "y").arguments[0].value = g.find("z"); }},
    {"it writes a value that is no operand", [](Graph& g) { node(g, "w").writes = {g.find("x")}; }},
    {"it views a value that is no operand", [](Graph& g) { node(g, "w").views = g.find("x"); }},
    {"a result belongs to another node", [](Graph& g) { value(g, "z").node = 0; }},
    {"in-place operator needs the mark", [](Graph& g) { node(g, "w").writes.clear(); }},
    {"a random operator needs \"random\"",
     [](Graph& g) { node(g, "w").op = find_operator(OperatorId::kRand); }},
    {"an elementwise operator has no effect", [](Graph& g) { node(g, "z").random = true; }},
    {"an elementwise operator has one result", [](Graph& g) { node(g, "y").results.clear(); }},
    {"does not broadcast to the result",
     [](Graph& g) { value(g, "y").type.sizes[1] = value(g, "y").type.strides[0] = Size(4); }},
    {"more dimensions than every operand",
     [](Graph& g) {
       value(g, "z").type.sizes.insert(value(g, "z").type.sizes.begin(), Size(1));
       value(g, "z").type.strides.insert(value(g, "z").type.strides.begin(), Size(1));
     }},
    {"an output: its value is not defined", [](Graph& g) { g.outputs[0].value = 99; }},
    {"its kind and its value contradict each other",
     [](Graph& g) { g.outputs[0].kind = Output::Kind::kInteger; }},
    {"it mutates a value that is no input", [](Graph& g) { g.outputs[0].mutation = g.find("y"); }},
    {"it writes a constant",
     [](Graph& g) {
       node(g, "w").arguments[0].value = node(g, "w").writes[0] = node(g, "w").views = g.find("c");
     }},
    {"not marked \"mutated\"", [](Graph& g) { value(g, "m").mutated = false; }},
    {"a kernel of the user's needs \"opaque\"",
     [](Graph& g) { node(g, "z").op = find_user_operator("aten.relu.default"); }},
    {"a node has the note \"kernel\" if its kernel is the user's",
     [](Graph& g) {
       node(g, "z").notes = {{"kernel", "model.py:3"}};
     }},
    {"another group has its name",
     [](Graph& g) {
       g.groups.push_back({"g0", {}, {}});
     }},
    {"it is empty", [](Graph& g) { g.groups[0].nodes.clear(); }},
    {"a node is not in the program", [](Graph& g) { g.groups[0].nodes[0] = 99; }},
    {"it is in two groups",
     [](Graph& g) {
       g.groups.push_back({"g1", {}, {0}});
     }},
    {"not in program order",
     [](Graph& g) { std::swap(g.groups[0].nodes[0], g.groups[0].nodes[1]); }},
    {"with an effect is never grouped", [](Graph& g) { g.groups[0].nodes.push_back(2); }},
    {"first node is no matrix product", [](Graph& g) { g.groups[0].kind = GroupKind::kMatmul; }},
    {"first node is no convolution", [](Graph& g) { g.groups[0].kind = GroupKind::kConvolution; }},
};

TEST(Verifier, TakesASoundGraph) {
  EXPECT_EQ(message([] { test::graph_of(kBody); }), "");
}

TEST(Verifier, NamesEveryBrokenRule) {
  for (const Rule& rule : kRules) {
    Graph graph = test::graph_of(kBody);
    rule.break_it(graph);
    const std::string text = message([&] { verify(graph); });
    EXPECT_TRUE(has(text, rule.says)) << "expected: " << rule.says << "\nsaid: " << text;
    EXPECT_TRUE(has(text, "graph t: ")) << text;
  }
}

// A file may hold any text; passes and kernels look at operands and dimensions without asking.
TEST(Verifier, RefusesCallsThatNoKernelComputes) {
  struct Refused {
    const char* call;
    const char* says;
  };
  const Refused calls[] = {
      {"node %y: float32[2, 3] = aten.mm.default(%x, 2.0)", "an operand is no tensor"},
      {"node %y: float32[2, 3] = aten.mm.default(%x)", "an operand is no tensor"},
      {"node none = aten.mm.default(%x, %q)", "its first result is none"},
      {"node = aten.mm.default(%x, %q)", "it has no result"},
      {"node %y: float32[3] = aten.mm.default(%x, %q)", "another number of dimensions"},
      {"node %y: float32[2, 4] = aten.mm.default(%x, %q)", "contradict each other"},
      {"node %y: float32[2, 3] = aten.bmm.default(%x, %q)", "another number of dimensions"},
      {"node %y: float32[2, 3] = aten.addmm.default(none, %x, %q)", "an operand is no tensor"},
      {"node %y: float32[2, 3] = aten._softmax.default(2.0, 1, false)", "an operand is no tensor"},
      {"node %y: float32[2, 3] = aten.convolution.default(%x, %q, none, [1], [0], [1], false, [0], "
       "1)",
       "not one number of dimensions"},
      {"node %y: float32[3] = aten.clone.default(%x)", "other sizes than the operand"},
      {"node %y: float32[2, 4] = aten.flip.default(%x, [1])", "other sizes than the operand"},
      {"node %y: float32[1, 2, 3] = aten.sum.dim_IntList(%x, [1])", "more dimensions than what it"},
      {"node %y: float32[2, 3] = aten.embedding.default(%v, %x)", "its weight is no matrix"},
      {"node %y: float32[2, 3], %z: float32[2] = "
       "aten._scaled_dot_product_fused_attention_overrideable.default(%x, %q, %q, none)",
       "have not 4 dimensions"}};
  for (const Refused& refused : calls) {
    const std::string text = message([&] {
      test::graph_of(
          "input %x: float32[2, 3] activation\ninput %q: float32[3, 3] parameter\n"
          "input %v: float32[3] parameter\n" +
          std::string(refused.call) + "\n");
    });
    EXPECT_TRUE(has(text, refused.says)) << refused.call << "\nsaid: " << text;
  }
}

TEST(Verifier, TakesGradientsOfWhichTheFirstIsNotWanted) {
  const char* const calls[] = {
      "convolution_backward.default(%g, %x, %w, [3], [1], [0], [1], false, [0], 1, %M)",
      "native_batch_norm_backward.default(%g, %x, %w, none, none, %w, %w, true, 0.1, %M)",
      "native_layer_norm_backward.default(%g, %x, [3], %w, %w, %w, %w, %M)",
      ("_scaled_dot_product_fused_attention_overrideable_backward.default(%g, %x, %x, %x, none, "
       "%M, %x, %w, %w, %w, 1, 1, 0.0, false, %w, %w)")};
  for (std::string call : calls) {
    call.replace(call.find("%M"), 2, "[false, true, false]");
    EXPECT_EQ(message([&] {
                test::graph_of(
                    "input %x: float32[2, 3] activation\ninput %g: float32[2, 3] activation\n"
                    "input %w: float32[3] parameter\n"
                    "node none, %d: float32[3], none = aten." +
                    call + "\n");
              }),
              "");
  }
}

TEST(Verifier, RefusesGroupsThatNeedOneAnother) {
  const std::string body =
      "input %x: float32[3] activation\n"
      "node %a: float32[3] = aten.neg.default(%x)\n"
      "node %b: float32[3] = aten.exp.default(%a)\n"
      "node %c: float32[3] = aten.sin.default(%x)\n"
      "node %d: float32[3] = aten.cos.default(%c)\n";
  EXPECT_EQ(message([&] { test::graph_of(body + "group g pointwise %a %b\n"); }), "");
  const std::string crossed = body + "group g pointwise %a %d\ngroup h pointwise %b %c\n";
  EXPECT_TRUE(has(message([&] { test::graph_of(crossed); }),
                  "a group and a node outside, need each other's results"));
}

}  // namespace
}  // namespace graft::compiler
