// tests/compiler/graph/operators_test.cpp: operators are interned, and their arguments have names.
#include "compiler/graph/operators.h"

#include <gtest/gtest.h>

#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler {
namespace {

using test::graph_of;

TEST(Operators, NamedOnesAreFoundByNameAndByEnumerator) {
  for (uint16_t i = 0; i < static_cast<uint16_t>(OperatorId::kUnnamed); ++i) {
    const auto id = static_cast<OperatorId>(i);
    const Operator* op = find_operator(id);
    EXPECT_EQ(op->id, id) << op->name << " stands twice";
    EXPECT_EQ(find_operator(op->name), op);
    EXPECT_EQ(op->cls == OpClass::kPointwise || op->cls == OpClass::kCopy, !op->rows.empty())
        << op->name << " has no row in the op table, or one that its class does not say";
  }
}

TEST(Operators, OthersAreOneObjectForOneName) {
  const Operator* mine = find_operator("mine.frobnicate_.default");
  EXPECT_EQ(find_operator("mine.frobnicate_.default"), mine);
  EXPECT_NE(find_operator("mine.frobnicate.default"), mine);
  EXPECT_EQ(mine->id, OperatorId::kUnnamed);
  EXPECT_EQ(mine->cls, OpClass::kOther);
  EXPECT_TRUE(mine->in_place);
  EXPECT_FALSE(find_operator("mine.frobnicate.default")->in_place);
  EXPECT_FALSE(find_operator("aten.__and__.Tensor")->in_place);
}

TEST(Operators, ThoseOfUsersAreUnknownToTheCompiler) {
  const Operator* users = find_user_operator("aten.relu.default");
  EXPECT_EQ(find_user_operator("aten.relu.default"), users);
  EXPECT_NE(find_operator("aten.relu.default"), users);
  EXPECT_EQ(users->id, OperatorId::kUnnamed);
  EXPECT_EQ(users->cls, OpClass::kOther);
  EXPECT_TRUE(users->rows.empty());
  EXPECT_TRUE(find_user_operator("aten.relu_.default")->in_place);
}

TEST(Operators, PassesLeaveNodesOfUsersAsTheyAre) {
  const std::string node =
      "node %b: float32[4] = aten.relu.default(%a) opaque note kernel=\"model.py:12\"\n";
  Graph graph = graph_of(
      "input %x: float32[4] activation\n"
      "node %a: float32[4] = aten.neg.default(%x)\n" +
      node +
      "node %c: float32[4] = aten.exp.default(%b)\n"
      "output %c\n");
  run_passes(graph, inference_passes());
  const std::string text = test::body_of(graph);
  EXPECT_TRUE(test::has(text, node)) << text;
  EXPECT_TRUE(test::has(text, "group g0 pointwise %a\ngroup g1 pointwise %c\n")) << text;
}

TEST(Operators, ArgumentsAreFoundAtTheirPlaceAndAsKeywords) {
  const Graph graph = graph_of(
      "input %x: float32[4] activation\n"
      "node %a: float32[4] = aten.add.Tensor(%x, %x, 3)\n"
      "node %b: float32[4] = aten.add.Tensor(%x, %x, alpha=4)\n"
      "node %c: float32[4] = aten.add.Tensor(%x, %x)\n"
      "node %d: float32[4] = mine.add.default(%x, size=5)\n"
      "output %d\n");
  std::vector<double> numbers;
  for (const Node& node : {graph.nodes[0], graph.nodes[1], graph.nodes[2]}) {
    ASSERT_TRUE(number_of(node, "alpha", &numbers.emplace_back()));
    EXPECT_EQ(operand(node, "other"), graph.inputs[0]);
  }
  EXPECT_EQ(numbers, (std::vector<double>{3, 4, 1}));
  EXPECT_EQ(argument(graph.nodes[2], "alpha"), nullptr);
  double number;
  EXPECT_TRUE(number_of(graph.nodes[3], "size", &number));
  EXPECT_FALSE(number_of(graph.nodes[3], "alpha", &number));
  EXPECT_FALSE(number_of(graph.nodes[0], "self", &number));
}

TEST(Operators, QualifiedNamesAreThoseOfEager) {
  EXPECT_EQ(find_operator("aten.mm.default")->qualified(), "aten::mm");
  EXPECT_EQ(find_operator("aten.add.Tensor")->qualified(), "aten::add.Tensor");
}

}  // namespace
}  // namespace graft::compiler
