// tests/kernels/pooling/volume_average_test.cpp: averages of boxes against counting.
#include "kernels/pooling/volume_average.h"

#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

using Line = std::vector<double>;

TEST(VolumeAverage, BoxesWithPaddingAndDivisor) {
  DeviceTensor input({1, 1, 3}, {3, 3, 1}, GRAFT_FLOAT64);
  DeviceTensor output({1, 1, 2}, {2, 2, 1}, GRAFT_FLOAT64);
  input.set({1, 2, 6});
  AverageBoxes boxes{{1, 1, 3}, {1, 1, 2}, {0, 0, 1}, true, 0};
  avg_pool3d(stream(), output, input, boxes);
  EXPECT_TRUE(near(output.get(), Line{1, 8.0 / 3}, 1e-12, 1e-12));
  boxes.count_padding = false;
  avg_pool3d(stream(), output, input, boxes);
  EXPECT_TRUE(near(output.get(), Line{1.5, 4}, 1e-12, 1e-12));
  boxes.divisor = 4;
  avg_pool3d(stream(), output, input, boxes);
  EXPECT_TRUE(near(output.get(), Line{0.75, 2}, 1e-12, 1e-12));
  output.set({4, 8});
  avg_pool3d_backward(stream(), input, output, boxes);
  EXPECT_TRUE(near(input.get(), Line{1, 3, 2}, 1e-12, 1e-12));
}

TEST(VolumeAverage, AdaptiveBoxesMayOverlap) {
  DeviceTensor input({1, 1, 3}, {3, 3, 1}, GRAFT_FLOAT64);
  DeviceTensor output({1, 1, 2}, {2, 2, 1}, GRAFT_FLOAT64);
  input.set({1, 2, 6});
  adaptive_avg_pool3d(stream(), output, input);
  EXPECT_TRUE(near(output.get(), Line{1.5, 4}, 1e-12, 1e-12));
  adaptive_avg_pool3d_backward(stream(), input, output);
  EXPECT_TRUE(near(input.get(), Line{0.75, 2.75, 2}, 1e-12, 1e-12));
}

TEST(VolumeAverage, WithoutBoxesTheGradientIsZero) {
  DeviceTensor input({2, 1, 1, 2}, {2, 2, 2, 1}, GRAFT_FLOAT32);
  DeviceTensor none({2, 1, 1, 0}, {1, 1, 1, 1}, GRAFT_FLOAT32);
  input.set({1, 2, 3, 4});
  adaptive_avg_pool3d_backward(stream(), input, none);
  EXPECT_EQ(input.get(), (Line{0, 0, 0, 0}));
}

}  // namespace
