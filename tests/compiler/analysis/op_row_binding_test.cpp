// tests/compiler/analysis/op_row_binding_test.cpp: every overload that a row of the op table names
// is computed by that row, in a kernel.
#include "compiler/analysis/op_row_binding.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "compiler/passes/passes.h"
#include "runtime/driver/dtype.h"
#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler {
namespace {

using test::body_of;
using test::graph_of;
using test::has;

struct Served {
  const Op* row;
  std::string name;
};

void PrintTo(const Served& served, std::ostream* out) { *out << served.name; }

std::vector<Served> served() {
  std::vector<Served> all;
  for (const Op& row : op_table()) {
    for (const std::string& text : overloads_of(row)) {
      all.push_back({&row, "aten." + text.substr(0, text.find('('))});
    }
  }
  return all;
}

const RowCandidate& candidate_of(const Served& one) {
  const std::vector<RowCandidate>& rows = find_operator(one.name)->rows;
  return *std::ranges::find(rows, one.row, &RowCandidate::row);
}

// A graph of that node alone: input k is %x<k>, scalar k is k + 2, and conditions hold where only
// this row asks for them.
std::string body(const Served& one) {
  const Op& row = *one.row;
  const graft_dtype dtype = (row.types & kFloatTypes) != 0 ? GRAFT_FLOAT32 : GRAFT_INT64;
  std::string inputs, arguments;
  for (int k = 0; k < row.inputs; ++k) {
    const bool condition = (row.conditions >> k & 1) != 0;
    inputs += fmt::format("input %x{}: {}[4] activation\n", k,
                          graft::name_of(condition ? GRAFT_BOOL : dtype));
  }
  for (const SchemaArgument& parameter : candidate_of(one).parameters) {
    std::string text;
    if (parameter.operand < 0 && parameter.needed) {
      text = fmt::format("{}=\"{}\"", parameter.name, parameter.text);
    } else if (parameter.operand >= row.inputs && !parameter.fixed) {
      text = fmt::format("{}", parameter.operand - row.inputs + 2);
    } else if (parameter.operand >= 0 && !parameter.fixed) {
      text = fmt::format("%x{}", parameter.operand);
    }
    if (!text.empty()) arguments += (arguments.empty() ? "" : ", ") + text;
  }
  const bool tests = (row.types & kGivesBool) != 0;
  return fmt::format("{}node %y: {}[4] = {}({})\noutput %y\n", inputs,
                     graft::name_of(tests ? GRAFT_BOOL : dtype), one.name, arguments);
}

class EveryOverload : public testing::TestWithParam<Served> {};

TEST_P(EveryOverload, IsFused) {
  Graph graph = graph_of(body(GetParam()));
  const Op& row = *GetParam().row;
  const Node& node = graph.nodes[0];
  OpRowBinding use;
  ASSERT_TRUE(row_use(graph, node, &use)) << body_of(graph);
  EXPECT_EQ(std::string(use.row->name), row.name);
  for (int k = 0; k < row.inputs; ++k) {
    EXPECT_EQ(use.inputs[k].value, graph.inputs[k]) << "input " << k;
  }
  for (const SchemaArgument& parameter : candidate_of(GetParam()).parameters) {
    const int scalar = parameter.operand - row.inputs;
    if (scalar < 0) continue;
    EXPECT_EQ(use.scalars[scalar], parameter.fixed ? parameter.number : scalar + 2) << scalar;
  }
  EXPECT_EQ(fuse(graph), 0);
  EXPECT_TRUE(has(body_of(graph), "group g0 pointwise %y\n"));
}

INSTANTIATE_TEST_SUITE_P(, EveryOverload, testing::ValuesIn(served()), [](const auto& info) {
  std::string name = info.param.name.substr(5);
  for (char& c : name) c = c == '.' ? '_' : c;
  const bool own = name.starts_with(info.param.row->name);
  return own ? name : fmt::format("{}_by_{}", name, info.param.row->name);
});

std::string row_of(const std::string& node) {
  const Graph graph = graph_of("input %x: float32[4] activation\nnode %y: float32[4] = aten." +
                               node + "\noutput %y\n");
  OpRowBinding use;
  return row_use(graph, graph.nodes[0], &use) ? use.row->name : "";
}

TEST(OpRowBinding, ConditionsChooseTheRow) {
  EXPECT_EQ(row_of("add.Tensor(%x, %x)"), "plain_add");
  EXPECT_EQ(row_of("add.Tensor(%x, %x, alpha=1.0)"), "plain_add");
  EXPECT_EQ(row_of("add.Tensor(%x, %x, alpha=2)"), "add");
  EXPECT_EQ(row_of("gelu.default(%x)"), "gelu");
  EXPECT_EQ(row_of("gelu.default(%x, approximate=\"none\")"), "gelu");
  EXPECT_EQ(row_of("gelu.default(%x, approximate=\"tanh\")"), "gelu_tanh");
  EXPECT_EQ(row_of("gelu.default(%x, approximate=\"other\")"), "");
  EXPECT_EQ(row_of("leaky_relu.default(%x)"), "leaky_relu");
  EXPECT_EQ(row_of("clamp_min.default(%x)"), "");
}

}  // namespace
}  // namespace graft::compiler
