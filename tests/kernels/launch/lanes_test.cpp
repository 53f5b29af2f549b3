// tests/kernels/launch/lanes_test.cpp: how the kernels of GPU-like devices deal elements out to
// work-items.
#include "kernels/launch/lanes.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

#include "kernels/move/transpose_tile.h"
#include "kernels/pointwise/kernel.h"
#include "tests/codegen/compiled.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace graft {
namespace {

class Deals : public testing::TestWithParam<WorkMapping> {
 protected:
  // Elements that the first items of a launch write, where every other one holds -1.
  std::vector<float> run(const PointwiseSpec& spec, std::vector<float>* from, size_t written,
                         std::vector<uint64_t> numbers, uint64_t items) {
    const ir::Compiled kernel(pointwise_kernel(spec));
    std::vector<float> to(written, -1);
    std::vector<graft_kernel_argument> arguments(2 + numbers.size());
    arguments[0].address = to.data();
    arguments[1].address = from->data();
    for (size_t i = 0; i < numbers.size(); ++i) arguments[2 + i].bits = numbers[i];
    kernel(arguments.data(), items);
    return to;
  }

  PointwiseSpec spec(uint8_t outer, AccessPattern walk) const {
    PointwiseSpec spec;
    spec.op = find_op("positive")->id;
    spec.compute = GRAFT_FLOAT32;
    spec.deal = GetParam();
    spec.outer = outer;
    spec.operands = 2;
    spec.set(0, GRAFT_FLOAT32, AccessPattern::kDense);
    spec.set(1, GRAFT_FLOAT32, walk);
    return spec;
  }
};

TEST_P(Deals, NeighboursTakeNeighbouringElements) {
  std::vector<float> x(700);
  std::iota(x.begin(), x.end(), 0.0f);
  const uint64_t tile = 4 * kLanes;
  std::vector<float> expected(700, -1);
  for (uint64_t items : {1, 2, 64, 65}) {
    std::fill(expected.begin(), expected.end(), -1.0f);
    for (uint64_t item = 0; item < items; ++item) {
      for (uint64_t k = 0; k < 4; ++k) {
        const uint64_t at = item / kLanes * tile + k * kLanes + item % kLanes;
        expected[at] = x[at];
      }
    }
    EXPECT_EQ(run(spec(0, AccessPattern::kDense), &x, 700, {700, tile}, items), expected) << items;
  }
  EXPECT_EQ(run(spec(0, AccessPattern::kDense), &x, 700, {700, tile}, 3 * kLanes), x);
}

TEST_P(Deals, RowsAreOneRun) {
  std::vector<float> x(3 * 50), expected;
  std::iota(x.begin(), x.end(), 0.0f);
  // Rows of 25, every second element of each 50: the strides of the output and
  // of the input along the rows, then of the input along the row.
  const std::vector<uint64_t> numbers = {25, kLanes, 75, 25, 50, 2};
  for (int i = 0; i < 75; ++i) expected.push_back(static_cast<float>(i / 25 * 50 + i % 25 * 2));
  EXPECT_EQ(run(spec(1, AccessPattern::kStrided), &x, 75, numbers, 2 * kLanes), expected);
  for (size_t i = kLanes; i < expected.size(); ++i) expected[i] = -1;
  EXPECT_EQ(run(spec(1, AccessPattern::kStrided), &x, 75, numbers, kLanes), expected);
}

INSTANTIATE_TEST_SUITE_P(Lanes, Deals, testing::Values(WorkMapping::kLanes, WorkMapping::kLanes32));

// The kernels' other languages have them, too.
TEST(Lanes, TransposesPrintInEveryGpuDialect) {
  for (const char* dialect : {"opencl-c", "cuda-c"}) {
    for (graft_dtype dtype : {GRAFT_UINT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64}) {
      const std::string text = ir::print(turn_kernel(dtype, 64), *ir::find_dialect(dialect));
      EXPECT_NE(text.find(turn_key(dtype, 64)), std::string::npos) << dialect;
    }
  }
  EXPECT_EQ(turn_group(test::device(), GRAFT_FLOAT32) > 0, is_gpu_like(test::device()));
}

TEST(Lanes, SplitsCoverEveryElement) {
  for (int64_t count : {1, 63, 64, 65, 5000, 100000, 12345678}) {
    const LaneSplit split(test::device(), count);
    EXPECT_EQ(split.grid % kLanes, 0);
    EXPECT_EQ(split.tile % kLanes, 0);
    EXPECT_LE(split.tile, kLanes * kLaneElements);
    EXPECT_GE(split.grid / kLanes * split.tile, count);
    EXPECT_LT((split.grid / kLanes - 1) * split.tile, count);
  }
}

}  // namespace
}  // namespace graft
