// tests/kernels/resample/pad_test.cpp: borders of a tensor's own elements.
#include "kernels/resample/pad.h"

#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

using Line = std::vector<double>;

TEST(Pad, BothModesAndTheirGradients) {
  const Padding::Edge edges[] = {{1, 0}, {2, 1}};
  DeviceTensor inner({2, 3}, {3, 1}, GRAFT_FLOAT32), outer({3, 6}, {6, 1}, GRAFT_FLOAT32);
  inner.set({0, 1, 2, 3, 4, 5});
  pad(stream(), outer, inner, {Padding::kReflect, edges});
  EXPECT_EQ(outer.get(), (Line{5, 4, 3, 4, 5, 4, 2, 1, 0, 1, 2, 1, 5, 4, 3, 4, 5, 4}));
  pad(stream(), outer, inner, {Padding::kReplicate, edges});
  EXPECT_EQ(outer.get(), (Line{0, 0, 0, 1, 2, 2, 0, 0, 0, 1, 2, 2, 3, 3, 3, 4, 5, 5}));
  outer.set(Line(18, 1.0));
  pad_backward(stream(), inner, outer, {Padding::kReflect, edges});
  EXPECT_EQ(inner.get(), (Line{1, 3, 2, 2, 6, 4}));
  pad_backward(stream(), inner, outer, {Padding::kReplicate, edges});
  EXPECT_EQ(inner.get(), (Line{6, 2, 4, 3, 1, 2}));
}

TEST(Pad, NegativeEdgesTakeAway) {
  const Padding::Edge edges[] = {{-1, 1}};
  DeviceTensor inner({4}, {1}, GRAFT_INT16), outer({4}, {1}, GRAFT_INT16);
  inner.set({1, 2, 3, 4});
  pad(stream(), outer, inner, {Padding::kReplicate, edges});
  EXPECT_EQ(outer.get(), (Line{2, 3, 4, 4}));
}

TEST(Pad, SizesThatDoNotFitAreRefused) {
  const Padding::Edge edges[] = {{1, 1}};
  DeviceTensor inner({4}, {1}, GRAFT_FLOAT32), outer({5}, {1}, GRAFT_FLOAT32);
  EXPECT_THROW(pad(stream(), outer, inner, {Padding::kReplicate, edges}), Error);
}

}  // namespace
