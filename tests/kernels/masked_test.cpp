// tests/kernels/masked_test.cpp: masked scattering and repeated positions against loops.
#include "kernels/masked.h"

#include "runtime/dtype.h"
#include "runtime/error.h"
#include "tests/kernels/device_tensor.h"

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

TEST(RepeatPositions, RepeatsEachAsOftenAsItsCount) {
  for (auto dtype : {GRAFT_INT32, GRAFT_INT64}) {
    DeviceTensor repeats({4}, dtype), ends({4}, GRAFT_INT64), output({6}, dtype);
    repeats.set({2, 0, 3, 1}), ends.set({2, 2, 5, 6});
    repeat_positions(stream(), output, repeats, ends);
    EXPECT_TRUE(near(output.get(), {0, 0, 2, 2, 2, 3}, 0, 0));
  }
}

}  // namespace
