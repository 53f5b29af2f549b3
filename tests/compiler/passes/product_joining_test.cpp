// tests/compiler/passes/product_joining_test.cpp: products of few rows with one left factor become
// one.
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler {
namespace {

using test::after;
using test::has;

std::string inputs(int rows) {
  return "input %x: float32[" + std::to_string(rows) +
         ", 6] activation\n"
         "input %a: float32[4, 6] parameter\ninput %p: float32[4] parameter\n"
         "input %b: float32[2, 6] parameter\ninput %r: float32[2] parameter\n";
}

std::string products(int rows) {
  const std::string m = std::to_string(rows);
  return "node %at: float32[6, 4](1, 6) = aten.t.default(%a) views %a\n"
         "node %u: float32[" +
         m +
         ", 4] = aten.addmm.default(%p, %x, %at)\n"
         "node %bt: float32[6, 2](1, 6) = aten.t.default(%b) views %b\n"
         "node %v: float32[" +
         m + ", 2] = aten.addmm.default(%r, %x, %bt)\n";
}

const std::string kOutputs = "output %u\noutput %v\n";

TEST(ProductJoining, OneRowIsTakenApartByViews) {
  EXPECT_EQ(after(join_products, inputs(1) + products(1) + kOutputs).substr(inputs(1).size()),
            "node %u_weights: float32[6, 6] = aten.cat.default([%a, %b], 0)\n"
            "node %u_right: float32[6, 6](1, 6) = aten.t.default(%u_weights) views %u_weights\n"
            "node %u_biases: float32[6] = aten.cat.default([%p, %r], 0)\n"
            "node %u_joined: float32[1, 6] = aten.addmm.default(%u_biases, %x, %u_right)\n"
            "node %u_columns: float32[1, 4](6, 1) = aten.slice.Tensor(%u_joined, 1, 0, 4) views "
            "%u_joined\n"
            "node %u_columns_1: float32[1, 2](6, 1) = aten.slice.Tensor(%u_joined, 1, 4, 6) views "
            "%u_joined\n"
            "node %u: float32[1, 4] = aten.view.default(%u_columns, [1, 4]) views %u_columns\n"
            "node %v: float32[1, 2] = aten.view.default(%u_columns_1, [1, 2]) views "
            "%u_columns_1\n" +
                kOutputs);
}

TEST(ProductJoining, MoreRowsAreCopied) {
  const std::string made = after(join_products, inputs(3) + products(3) + kOutputs);
  EXPECT_TRUE(has(made,
                  "%u: float32[3, 4] = aten.clone.default(%u_columns, "
                  "memory_format=@contiguous_format)"))
      << made;
  EXPECT_TRUE(has(made, "%u_joined: float32[3, 6] = aten.addmm.default(%u_biases, %x, %u_right)"))
      << made;
}

TEST(ProductJoining, LeavesWhatWouldNotBeFasterOrIsNoWeight) {
  const std::string many = inputs(9) + products(9) + kOutputs;
  EXPECT_EQ(after(join_products, many), many);
  std::string given = inputs(1) + products(1) + kOutputs;
  const std::string from = "input %b: float32[2, 6] parameter";
  given.replace(given.find(from), from.size(), "input %b: float32[2, 6] activation");
  EXPECT_EQ(after(join_products, given), given);
  const std::string symbol = "symbol s range 1..8 hint 1 from %x[0]\n";
  std::string open = symbol + inputs(1) + products(1) + kOutputs;
  for (size_t at; (at = open.find("32[1, ")) != std::string::npos;) open.replace(at, 6, "32[s, ");
  EXPECT_EQ(after(join_products, open), open);
}

TEST(ProductJoining, LeavesWeightsThatTakeLongToRead) {
  const std::string given =
      "input %x: float32[1, 2048] activation\n"
      "input %a: float32[1024, 2048] parameter\ninput %b: float32[1024, 2048] parameter\n"
      "node %at: float32[2048, 1024](1, 2048) = aten.t.default(%a) views %a\n"
      "node %u: float32[1, 1024] = aten.mm.default(%x, %at)\n"
      "node %bt: float32[2048, 1024](1, 2048) = aten.t.default(%b) views %b\n"
      "node %v: float32[1, 1024] = aten.mm.default(%x, %bt)\n" +
      kOutputs;
  EXPECT_EQ(after(join_products, given), given);
}

}  // namespace
}  // namespace graft::compiler
