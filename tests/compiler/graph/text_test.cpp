// tests/compiler/graph/text_test.cpp: the text form: round trips, the worked example, messages.
#include "compiler/graph/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <random>
#include <sstream>

#include "tests/compiler/graph/text_builder.h"

namespace graft::compiler {
namespace {

using test::has;
using test::message;

std::string worked_example() {
  std::ifstream file(GRAFT_TEST_SOURCE_DIR "/docs/develop/compiler-ir.md");
  std::stringstream page;
  page << file.rdbuf();
  const std::string text = page.str(), open = "```graft-graph\n";
  const size_t begin = text.find(open) + open.size();
  return text.substr(begin, text.find("```", begin) - begin);
}

TEST(Text, TheWorkedExampleOfTheDocumentation) {
  const std::string text = worked_example();
  const Graph graph = parse(text);
  verify(graph);
  EXPECT_EQ(print(graph), text);
  EXPECT_EQ(graph.inputs.size(), 4u);
  EXPECT_EQ(graph.order.size(), 6u);
  EXPECT_EQ(graph.nodes[1].notes[0].second, "fc");
}

TEST(Text, EveryFormComesBackAsItWas) {
  const std::string body =
      "symbol s0 range 0..inf hint 8 from %x[1]\n"
      "symbol n range 1..64 hint 4 from integer 0\n"
      "input %x: float32[2, s0](1, 2) activation\n"
      "input %y: bfloat16[n*s0 + 2*n - 1, floordiv(s0, 2), mod(s0, 7)] tangent alias %x\n"
      "input %k: float64[] scalar\n"
      "constant %c: bool[2] = [true, false]\n"
      "constant %d: float32[s0] = [-0.0]\n"
      "constant %e: int8[3] = [-1, 0, 127]\n"
      "constant %f: float16[4] external \"weights of \\\"f\\\"\\n\"\n"
      "node %a: float32[2, s0](1, 2), none, %b: int64[] = ns.op.over(%x, [1, [2.5, inf], -nan, "
      "[]], "
      "none, true, \"a\\tb\", @graft:0, max(n, s0), s=-3, t=1e-300) writes %x views %x random "
      "opaque "
      "at \"m.py:1\" note k=\"v\" note l=\"\"\n"
      "node = ns.print.default(%a)\n"
      "group g0 reduction %a\n"
      "output %a saved alias %x mutation %x\n"
      "output n*s0\n"
      "output none\n";
  std::string canonical = body;
  canonical.replace(canonical.find("-nan"), 4, "nan");
  const std::string head(test::kHead), end(test::kEnd);
  EXPECT_EQ(print(parse(head + body + end)), head + canonical + end);
  EXPECT_EQ(print(parse(head + canonical + end)), head + canonical + end);
}

TEST(Text, FloatsReadBackToTheSameBits) {
  std::mt19937_64 random(3);
  for (int i = 0; i < 20000; ++i) {
    const double number = std::bit_cast<double>(random());
    if (std::isnan(number)) continue;
    const std::string text = "input %x: float32[] activation\nnode %y: float32[] = a.b(%x, " +
                             print_float(number) + ")\n";
    const Graph graph = parse(std::string(test::kHead) + text + "end\n");
    const Argument& read = graph.nodes[0].arguments[1];
    ASSERT_EQ(read.kind, Argument::Kind::kFloat) << print_float(number);
    ASSERT_EQ(std::bit_cast<uint64_t>(read.number), std::bit_cast<uint64_t>(number));
  }
}

TEST(Text, SpellingsBecomeCanonical) {
  const Graph graph = parse(
      "# a comment\n\ngraft-graph 1\r\n  graph   t\nsymbol s range 1..8 hint 2 from %x[0]\n"
      "input %x:float32[ 1*s + 0 , (s+1)*2 ]( 2+2*s,1 )activation\nend\n");
  EXPECT_EQ(print(graph),
            "graft-graph 1\ngraph t\nsymbol s range 1..8 hint 2 from %x[0]\n"
            "input %x: float32[s, 2*s + 2] activation\nend\n");
}

struct Wrong {
  const char* text;
  const char* says;
};

TEST(Text, MessagesNameLineColumnAndRemedy) {
  const std::string head = "graft-graph 1\ngraph t\n";
  const Wrong cases[] = {
      {"input %x float32[] activation\n",
       "line 3, column 10: expected \":\" after the value, found \"float32"},
      {"input %x: float33[] activation\n", "\"float33\" is not a dtype"},
      {"input %x: float32[s] activation\n", "the symbol s is not defined"},
      {"input %x: float32[2](1, 1) activation\n", "1 sizes, but 2 strides"},
      {"input %x: float32[] weight\n", "expected parameter, buffer, activation, tangent or scalar"},
      {"input %x: float32[] activation\ninput %x: float32[] activation\n", "%x is defined twice"},
      {"node %y: float32[] = aten.neg.default(%x)\n", "%x is not defined before this"},
      {"node %y: float32[] = aten.neg.default(1\n", "after the arguments"},
      {"node %y: float32[] = aten.neg.default(1) wirtes %y\n", "expected writes, views"},
      {"output none\ninput %x: float32[] activation\n", "\"input\" comes after \"output\""},
      {"bogus\n", "expected symbol, input, constant, node, group, output or end, found \"bogus\""},
      {"symbol s range 1..2 hint 1 from %z[0]\n", "%z is not defined anywhere"},
      {"constant %c: float32[1] = [1]\n", "expected a float, such as 1.0"},
      {"constant %c: int64[1] = [99999999999999999999]\n", "expected an integer of 64 bits"},
      {"input %x: float32[power(1, 2)] activation\n",
       "expected floordiv, mod, max or min, found \"power\""},
      {"node %y: float32[] = a.b(\"x)\n", "after a string"},
  };
  for (const Wrong& wrong : cases) {
    const std::string text = message([&] { parse(head + wrong.text + "end\n"); });
    EXPECT_TRUE(has(text, wrong.says)) << wrong.text << text;
    EXPECT_TRUE(has(text, "graft-graph line ")) << text;
  }
  EXPECT_TRUE(has(message([&] { parse(head); }), "expected \"end\" as the last line"));
  EXPECT_TRUE(has(message([] { parse(""); }), "\"graft-graph 1\" as the first line"));
  EXPECT_TRUE(has(message([] { parse("graft-graph 2\n"); }), "this Graft reads version 1"));
  EXPECT_TRUE(has(message([&] { parse(head + "end\nend\n"); }), "nothing after \"end\""));
}

TEST(Text, DeepNestingIsRefused) {
  const std::string head = "graft-graph 1\ngraph t\n";
  const std::string sizes = "input %x: float32[" + std::string(100000, '(') + "] activation\nend\n";
  EXPECT_TRUE(has(message([&] { parse(head + sizes); }), "at most 64 nested parentheses"));
  const std::string lists = "node %x: float32[] = a.b(" + std::string(100000, '[') + ")\nend\n";
  EXPECT_TRUE(has(message([&] { parse(head + lists); }), "16 deep"));
}

// Broken text is refused with a message; nothing else happens.
TEST(Text, DamagedTextNeverCrashes) {
  const std::string good = worked_example();
  std::mt19937 random(11);
  int refused = 0;
  for (int i = 0; i < 5000; ++i) {
    std::string text = good;
    for (int k = 0; k < 3; ++k) {
      const size_t at = random() % text.size();
      if (random() % 2)
        text[at] = static_cast<char>(random() % 128);
      else
        text.erase(at, random() % 9);
    }
    refused += !message([&] { verify(parse(text)); }).empty();
  }
  EXPECT_GT(refused, 2500);
}

}  // namespace
}  // namespace graft::compiler
