// tests/kernels/move/masked_test.cpp: masked scattering and repeated positions against loops.
#include "kernels/move/masked.h"

#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

TEST(MaskedScatter, TakesTheSourceInOrder) {
  for (auto dtype : {GRAFT_BOOL, GRAFT_UINT8, GRAFT_BFLOAT16, GRAFT_INT32, GRAFT_FLOAT64}) {
    DeviceTensor to({2, 3}, {1, 2}, dtype), mask({2, 3}, GRAFT_BOOL), ordinals({2, 3}, GRAFT_INT64);
    DeviceTensor source({4}, dtype);
    to.set({0, 1, 0, 1, 0, 1}), source.set({1, 0, 1, 0});
    mask.set({1, 0, 0, 1, 1, 0}), ordinals.set({1, 1, 1, 2, 3, 3});
    masked_scatter(stream(), to, mask, ordinals, source);
    EXPECT_TRUE(near(to.get(), {1, 1, 0, 0, 1, 1}, 0, 0)) << name_of(dtype);
  }
}

TEST(MaskedScatter, ReportsASourceThatIsTooShort) {
  DeviceTensor to({3}, GRAFT_FLOAT32), mask({3}, GRAFT_BOOL), ordinals({3}, GRAFT_INT64);
  DeviceTensor source({1}, GRAFT_FLOAT32);
  to.set({1, 2, 3}), mask.set({1, 0, 1}), ordinals.set({1, 1, 2}), source.set({9});
  masked_scatter(stream(), to, mask, ordinals, source);
  EXPECT_THROW(stream().synchronize(), Error);
}

TEST(MaskedFill, WritesWhatIsMaskedAlone) {
  for (auto dtype : {GRAFT_BOOL, GRAFT_UINT8, GRAFT_BFLOAT16, GRAFT_INT32, GRAFT_FLOAT64}) {
    DeviceTensor to({6}, dtype), mask({2, 3}, GRAFT_BOOL);
    const auto filled = [&](const TensorView& view) {
      to.set({0, 0, 0, 0, 0, 0});
      masked_fill(stream(), view, mask, Scalar::of(1.0));
      return to.get();
    };
    mask.set({1, 0, 0, 0, 1, 0});
    EXPECT_TRUE(near(filled(to.as({2, 3}, {3, 1})), {1, 0, 0, 0, 1, 0}, 0, 0)) << name_of(dtype);
    EXPECT_TRUE(near(filled(to.as({2, 3}, {1, 0})), {1, 1, 0, 0, 0, 0}, 0, 0)) << name_of(dtype);
    EXPECT_TRUE(near(filled(to.as({2, 3}, {1, 2})), {1, 0, 0, 1, 0, 0}, 0, 0)) << name_of(dtype);
  }
}

TEST(MaskedFill, KnowsWhichViewsOverlap) {
  const DeviceTensor memory({24}, GRAFT_FLOAT32);
  EXPECT_FALSE(overlaps_itself(memory.as({2, 3, 4}, {12, 4, 1})));
  EXPECT_FALSE(overlaps_itself(memory.as({4, 3, 2}, {1, 4, 12})));
  EXPECT_FALSE(overlaps_itself(memory.as({3, 1, 4}, {8, 0, 2})));
  EXPECT_FALSE(overlaps_itself(memory.as({0, 3}, {0, 0})));
  EXPECT_TRUE(overlaps_itself(memory.as({3, 4}, {0, 1})));
  EXPECT_TRUE(overlaps_itself(memory.as({3, 4}, {3, 1})));
}

TEST(RepeatPositions, RepeatsEachAsOftenAsItsCount) {
  for (auto dtype : {GRAFT_INT32, GRAFT_INT64}) {
    DeviceTensor repeats({4}, dtype), ends({4}, GRAFT_INT64), output({6}, dtype);
    repeats.set({2, 0, 3, 1}), ends.set({2, 2, 5, 6});
    repeat_positions(stream(), output, repeats, ends);
    EXPECT_TRUE(near(output.get(), {0, 0, 2, 2, 2, 3}, 0, 0));
  }
}

TEST(RepeatPositions, ReportsWhatDoesNotAddUp) {
  DeviceTensor repeats({3}, GRAFT_INT64), ends({3}, GRAFT_INT64);
  repeats.set({2, 0, 3}), ends.set({2, 2, 5});
  for (const int64_t size : {0, 4, 6}) {
    const DeviceTensor output({size}, GRAFT_INT64);
    repeat_positions(stream(), output, repeats, ends);
    EXPECT_THROW(stream().synchronize(), Error) << size;
  }
  repeats.set({2, -1, 3}), ends.set({2, 1, 4});
  const DeviceTensor output({4}, GRAFT_INT64);
  repeat_positions(stream(), output, repeats, ends);
  EXPECT_THROW(stream().synchronize(), Error);
}

}  // namespace
