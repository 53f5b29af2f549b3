// tests/kernels/launch/loop_nest_test.cpp: what a launch passes is what its kernel declares; which
// elements a kernel takes is lanes_test's and pointwise_test's.
#include "kernels/launch/loop_nest.h"

#include <gtest/gtest.h>

#include "tests/kernels/tensor/device_tensor.h"

namespace graft {
namespace {

Axis axis_of(int64_t size, int64_t stride) {
  Axis axis;
  axis.size = size;
  axis.strides[0] = stride;
  axis.strides[1] = -stride;
  return axis;
}

TEST(LoopNest, ALaunchPassesWhatTheKernelDeclares) {
  const Axis loops[] = {axis_of(3, 1000), axis_of(4, 200), axis_of(5, 30), axis_of(6, 2)};
  for (const WorkMapping deal :
       {WorkMapping::kSpans, WorkMapping::kLanes, WorkMapping::kLanes32, WorkMapping::kShuffles}) {
    for (int outer = 0; outer < 4; ++outer) {
      for (const bool lines : {false, true}) {
        NestShape shape{deal, outer, lines, 3, {}};
        shape.operands[0].walk = AccessPattern::kSecond;
        shape.operands[0].still = 1;
        shape.operands[1].walk = AccessPattern::kScalar;
        shape.operands[2] = {AccessPattern::kStrided, true, 0};
        ir::Builder b("nest");
        const LoopNest nest(b, shape);
        Arguments arguments;
        append_nest(arguments, test::device(), shape,
                    std::span(loops).last(static_cast<size_t>(outer) + 1));
        const auto& declared = b.kernel().parameters;
        ASSERT_EQ(arguments.span().list.size(), declared.size()) << outer << lines;
        for (size_t i = 0; i < declared.size(); ++i) {
          EXPECT_EQ(arguments.span().list[i].dtype, declared[i].dtype) << i;
        }
      }
    }
  }
}

TEST(LoopNest, KnowsWhereBackwardOperandsBegin) {
  const Axis loops[] = {axis_of(4, 200), axis_of(6, 2)};
  EXPECT_EQ(reach(loops, 0).extent, 3 * 200 + 5 * 2 + 1);
  EXPECT_EQ(reach(loops, 1).extent, 3 * 200 + 5 * 2 + 1);
  EXPECT_EQ(reach(loops, 0).before, 0);
  EXPECT_EQ(reach(loops, 1).before, 3 * 200 + 5 * 2);
}

TEST(LoopNest, PositionsAreInt32WhereTheyFit) {
  const Axis narrow[] = {axis_of(1 << 10, 1 << 19), axis_of(1 << 10, 1)};
  const Axis wide[] = {axis_of(1 << 10, 1 << 21), axis_of(1 << 10, 1)};
  EXPECT_EQ(lanes_of(narrow, 2), WorkMapping::kLanes32);
  EXPECT_EQ(lanes_of(wide, 2), WorkMapping::kLanes);
}

TEST(LoopNest, NothingIsLaunchedForNoElement) {
  for (const WorkMapping deal : {WorkMapping::kSpans, WorkMapping::kLanes}) {
    for (const auto& [rows, length] : {std::pair(0, 5), {5, 0}, {0, 0}}) {
      const Axis loops[] = {axis_of(rows, 5), axis_of(length, 1)};
      Arguments arguments;
      EXPECT_EQ(append_nest(arguments, test::device(), {deal, 1, false, 0, {}}, loops), 0);
    }
  }
  // Rows without elements still have their result.
  const Axis loops[] = {axis_of(5, 0), axis_of(0, 1)};
  Arguments arguments;
  EXPECT_GT(append_nest(arguments, test::device(), {WorkMapping::kSpans, 1, true, 0, {}}, loops),
            0);
}

}  // namespace
}  // namespace graft
