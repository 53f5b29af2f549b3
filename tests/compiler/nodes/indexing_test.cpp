// tests/compiler/nodes/indexing_test.cpp: nodes that read elements at positions from data.
#include "compiler/nodes/indexing.h"

#include <gtest/gtest.h>

#include "runtime/driver/error.h"
#include "tests/compiler/nodes/calls.h"

namespace graft::compiler::test {
namespace {

using Numbers = std::vector<double>;

// The node's result y, and whether the host was asked for it.
Numbers result(const std::string& body, const Tensors& inputs, bool direct = true) {
  Calls calls(body + "\noutput %y\n", inputs);
  const auto results = calls.run();
  EXPECT_EQ(calls.host.asked.empty(), direct);
  return results[0];
}

const std::string kTable = "input %t: float32[3, 2] parameter\n";
const Numbers kRows = {1, 2, 3, 4, 5, 6};

TEST(Indexing, Embedding) {
  for (const char* dtype : {"int64", "int32"}) {
    EXPECT_EQ(result(kTable + "input %i: " + dtype +
                         "[2, 2] activation\n"
                         "node %y: float32[2, 2, 2] = aten.embedding.default(%t, %i, 0)",
                     {{"t", kRows}, {"i", {2, 0, 0, 1}}}),
              (Numbers{5, 6, 1, 2, 1, 2, 3, 4}));
  }
  EXPECT_EQ(result(kTable + "input %i: int64[] activation\n"
                            "node %y: float32[2] = aten.embedding.default(%t, %i)",
                   {{"t", kRows}, {"i", {1}}}),
            (Numbers{3, 4}));
}

TEST(Indexing, EmbeddingOfNoRow) {
  EXPECT_EQ(result(kTable + "input %i: int64[0] activation\n"
                            "node %y: float32[0, 2] = aten.embedding.default(%t, %i)",
                   {{"t", kRows}, {"i", {}}}),
            Numbers());
}

TEST(Indexing, PositionsPastTheEndAreReported) {
  Calls calls(kTable +
                  "input %i: int64[1] activation\n"
                  "node %y: float32[1, 2] = aten.embedding.default(%t, %i)\noutput %y\n",
              {{"t", kRows}, {"i", {3}}});
  try {
    calls.run();
    stream().synchronize();
    ADD_FAILURE() << "nothing was reported";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("aten::embedding"), std::string::npos) << error.what();
  }
}

TEST(Indexing, SelectAndGather) {
  const std::string index = "input %i: int64[2] activation\n";
  EXPECT_EQ(
      result(kTable + index + "node %y: float32[3, 2] = aten.index_select.default(%t, -1, %i)",
             {{"t", kRows}, {"i", {1, 1}}}),
      (Numbers{2, 2, 4, 4, 6, 6}));
  const std::string wide = "input %i: int64[2, 2] activation\n";
  EXPECT_EQ(result(kTable + wide + "node %y: float32[2, 2] = aten.gather.default(%t, 0, %i)",
                   {{"t", kRows}, {"i", {2, 0, 1, 2}}}),
            (Numbers{5, 2, 3, 6}));
}

TEST(Indexing, PutsValuesAtIndices) {
  const auto put = [](const std::string& index, const std::string& list, const Numbers& i,
                      const std::string& values, const Numbers& v) {
    return result(kTable + "input %i: " + index + " activation\ninput %v: " + values +
                      " activation\n"
                      "node %y: float32[3, 2] = aten.index_put.default(%t, " +
                      list + ")",
                  {{"t", kRows}, {"i", i}, {"v", v}});
  };
  EXPECT_EQ(put("int64[2]", "[%i], %v", {2, -3}, "float32[2, 2]", {7, 8, 9, 10}),
            (Numbers{9, 10, 3, 4, 7, 8}));
  EXPECT_EQ(put("int32[1]", "[none, %i], %v", {1}, "float32[3, 1]", {7, 8, 9}),
            (Numbers{1, 7, 3, 8, 5, 9}));
  EXPECT_EQ(put("int64[]", "[%i], %v", {1}, "float32[]", {7}), (Numbers{1, 2, 7, 7, 5, 6}));
  EXPECT_EQ(put("int64[2]", "[%i], %v, true", {1, 1}, "float32[2]", {10, 20}),
            (Numbers{1, 2, 23, 44, 5, 6}));
}

TEST(Indexing, PutsValuesInPlace) {
  EXPECT_EQ(
      result("input %t: float32[3, 2] buffer mutated\ninput %i: int64[1] activation\n"
             "input %v: float32[1, 2] activation\n"
             "node %w: float32[3, 2] = aten.index_put_.default(%t, [%i], %v) writes %t views %t\n"
             "node %y: float32[3, 2] = aten.neg.default(%t)\ngroup g pointwise %y",
             {{"t", kRows}, {"i", {1}}, {"v", {7, 8}}}),
      (Numbers{-1, -2, -7, -8, -5, -6}));
}

TEST(Indexing, IndicesOfSomeDimensions) {
  const std::string cube = "input %t: float32[2, 3, 2] activation\n";
  Numbers t;
  for (int i = 0; i < 12; ++i) t.push_back(i);
  EXPECT_EQ(result(cube + "input %i: int64[2] activation\n"
                          "node %y: float32[2, 2, 2] = aten.index.Tensor(%t, [none, %i])",
                   {{"t", t}, {"i", {2, -3}}}),
            (Numbers{4, 5, 0, 1, 10, 11, 6, 7}));
  // Side by side their dimensions stay in place, apart they come first.
  const std::string pair = "input %i: int64[2, 1] activation\ninput %j: int64[2] activation\n";
  const Tensors given = {{"t", t}, {"i", {0, 1}}, {"j", {1, 0}}};
  EXPECT_EQ(
      result(cube + pair + "node %y: float32[2, 2, 2] = aten.index.Tensor(%t, [%i, %j])", given),
      (Numbers{2, 3, 0, 1, 8, 9, 6, 7}));
  EXPECT_EQ(
      result(cube + pair + "node %y: float32[2, 2, 3] = aten.index.Tensor(%t, [%i, none, %j])",
             given),
      (Numbers{1, 3, 5, 0, 2, 4, 7, 9, 11, 6, 8, 10}));
}

TEST(Indexing, EmbeddingByIndicesOfAnyStride) {
  const std::string places = "input %p: int64[1, 4] parameter\n";
  EXPECT_EQ(result(kTable + places +
                       "node %i: int64[1, 2](4, 2) = aten.slice.Tensor(%p, 1, 0, 4, 2) views %p\n"
                       "node %y: float32[1, 2, 2] = aten.embedding.default(%t, %i)",
                   {{"t", kRows}, {"p", {2, 9, 1, 9}}}),
            (Numbers{5, 6, 3, 4}));
  EXPECT_EQ(
      result(kTable + "input %p: int64[2] parameter\n"
                      "node %i: int64[2, 2](0, 1) = aten.expand.default(%p, [2, 2]) views %p\n"
                      "node %y: float32[2, 2, 2] = aten.embedding.default(%t, %i)",
             {{"t", kRows}, {"p", {2, 1}}}),
      (Numbers{5, 6, 3, 4, 5, 6, 3, 4}));
}

TEST(Indexing, ScatterLeavesItsOperandAlone) {
  Calls calls(kTable +
                  "input %i: int64[1, 2] activation\ninput %s: float32[1, 2] activation\n"
                  "node %y: float32[3, 2] = aten.scatter.src(%t, 0, %i, %s)\n"
                  "output %y\noutput %t\n",
              {{"t", kRows}, {"i", {2, 0}}, {"s", {-1, -2}}});
  EXPECT_EQ(calls.run(), (std::vector<Numbers>{{1, -2, 3, 4, -1, 6}, kRows}));
  EXPECT_TRUE(calls.host.asked.empty());
}

TEST(Indexing, MasksAreTheHosts) {
  result(kTable +
             "input %i: bool[3] activation\n"
             "node %y: float32[3, 2] = aten.index.Tensor(%t, [%i])",
         {{"t", kRows}, {"i", {1, 1, 1}}}, false);
}

}  // namespace
}  // namespace graft::compiler::test
