// tests/compiler/passes/grouped_heads_test.cpp: attention reads heads that others share.
#include <gtest/gtest.h>

#include "compiler/passes/passes.h"
#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler {
namespace {

using test::after;
using test::has;

const std::string kInputs =
    "input %q: bfloat16[1, 4, 1, 16] activation\ninput %k: bfloat16[1, 2, 8, 16] activation\n"
    "input %v: bfloat16[1, 2, 8, 16] activation\n";

std::string repeated(const std::string& name, const std::string& of) {
  return "node %" + name + "1: bfloat16[1, 2, 1, 8, 16] = aten.unsqueeze.default(%" + of +
         ", 2) views %" + of + "\nnode %" + name +
         "2: bfloat16[1, 2, 2, 8, 16](256, 128, 0, 16, 1) = aten.expand.default(%" + name +
         "1, [1, 2, 2, 8, 16]) views %" + name + "1\nnode %" + name +
         "3: bfloat16[1, 2, 2, 8, 16] = aten.clone.default(%" + name +
         "2, memory_format=@contiguous_format)\nnode %" + name +
         "4: bfloat16[1, 4, 8, 16] = aten.view.default(%" + name + "3, [1, 4, 8, 16]) views %" +
         name + "3\n";
}

std::string attention(const std::string& dropout) {
  return "node %o: bfloat16[1, 4, 1, 16], %s: float32[1, 4, 1], none, none, none, none, none, "
         "none, none = aten._scaled_dot_product_fused_attention_overrideable.default(%q, %a4, %b4, "
         "none, " +
         dropout + ", false, false, scale=0.25)" + (dropout == "0.0" ? "" : " random") +
         "\noutput %o\n";
}

TEST(GroupedHeads, AreReadAsTheyLie) {
  const std::string made =
      after(group_heads, kInputs + repeated("a", "k") + repeated("b", "v") + attention("0.0"));
  EXPECT_TRUE(has(made, "%o_keys: bfloat16[1, 2, 8, 16] = aten.select.int(%a1, 2, 0) views %a1"))
      << made;
  EXPECT_TRUE(has(made, "overrideable.default(%q, %o_keys, %o_values, none")) << made;
  EXPECT_FALSE(has(made, "clone")) << made;
}

TEST(GroupedHeads, StayWhereSomebodyElseNeedsThem) {
  for (const std::string& body :
       {repeated("a", "k") + repeated("b", "v") + attention("0.0") + "output %a4\n",
        repeated("a", "k") + repeated("b", "v") + attention("0.5")}) {
    EXPECT_EQ(after(group_heads, kInputs + body), kInputs + body);
  }
}

}  // namespace
}  // namespace graft::compiler
