// tests/kernels/scan/scan_test.cpp: cumulative sums, triangles and ranges against loops on the
// host.
#include "kernels/scan/scan.h"

#include "kernels/linalg/triangular.h"
#include "kernels/move/range.h"
#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

TEST(Scan, SumsAndProductsAlongEachDimension) {
  const auto x = numbers(3 * 41 * 5, 1, 0.5, 1.5, GRAFT_FLOAT32);
  for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    for (int dim = 0; dim < 3; ++dim) {
      const size_t size = dim == 0   ? 3
                          : dim == 1 ? 41
                                     : 5,
                   step = dim == 0   ? 205
                          : dim == 1 ? 5
                                     : 1;
      auto sums = x, products = x;
      for (size_t i = 0; i < x.size(); ++i) {
        if (i / step % size == 0) continue;
        sums[i] += sums[i - step];
        products[i] *= products[i - step];
      }
      DeviceTensor input({3, 41, 5}, dtype), output({3, 41, 5}, dtype);
      input.set(x);
      cumulative_sum(stream(), output, input, dim);
      EXPECT_TRUE(near(output.get(), sums, 1e-5, 0));
      cumulative_product(stream(), output, input, dim);
      EXPECT_TRUE(near(output.get(), products, 1e-5, 0));
    }
  }
  DeviceTensor flags({5}, GRAFT_BOOL), counts({5}, GRAFT_INT64);
  flags.set({1, 0, 1, 1, 0});
  cumulative_sum(stream(), counts, flags, 0);
  EXPECT_TRUE(near(counts.get(), {1, 1, 2, 3, 3}, 0, 0));
}

TEST(Triangular, UpperAndLower) {
  const auto x = numbers(2 * 4 * 5, 1, 1, 2, GRAFT_FLOAT32);
  for (int64_t diagonal : {-2, -1, 0, 1, 3}) {
    for (bool upper : {false, true}) {
      DeviceTensor input({2, 4, 5}, GRAFT_FLOAT32), output({2, 4, 5}, {20, 1, 4}, GRAFT_FLOAT32);
      input.set(x);
      triangular(stream(), output, input, diagonal, upper);
      auto expected = x;
      for (size_t i = 0; i < x.size(); ++i) {
        const int64_t row = static_cast<int64_t>(i) / 5 % 4, column = static_cast<int64_t>(i) % 5;
        if (upper ? column - row < diagonal : column - row > diagonal) expected[i] = 0;
      }
      EXPECT_TRUE(near(output.get(), expected, 0, 0));
    }
  }
}

TEST(Range, ArangeAndLinspace) {
  DeviceTensor integers({1000}, GRAFT_INT64), halves({7}, GRAFT_FLOAT32);
  arange(stream(), integers, Scalar::of<int64_t>(-5), Scalar::of<int64_t>(3));
  const auto x = integers.get();
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], -5.0 + 3.0 * static_cast<double>(i));
  arange(stream(), halves, Scalar::of(1.0), Scalar::of(0.5));
  EXPECT_TRUE(near(halves.get(), {1, 1.5, 2, 2.5, 3, 3.5, 4}, 0, 0));
  linspace(stream(), halves, Scalar::of(-1.0), Scalar::of(0.2));
  EXPECT_TRUE(near(halves.get(), {-1, -0.8, -0.6, -0.4, -0.2, 0, 0.2}, 1e-6, 1e-7));
  DeviceTensor one({1}, GRAFT_FLOAT32);
  linspace(stream(), one, Scalar::of(4.0), Scalar::of(9.0));
  EXPECT_EQ(one.get()[0], 4);
}

}  // namespace
