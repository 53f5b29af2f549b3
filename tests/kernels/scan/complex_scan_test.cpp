// tests/kernels/scan/complex_scan_test.cpp: products and logarithms of sums so far, against loops.
#include "kernels/scan/complex_scan.h"

#include "kernels/scan/cumulative_extremum.h"
#include "kernels/scan/scan.h"
#include "tests/kernels/tensor/complex_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

TEST(ComplexScan, EveryDimension) {
  constexpr int64_t kSizes[] = {3, 4, 5}, kSteps[] = {20, 5, 1};
  for (const graft_dtype dtype : {GRAFT_COMPLEX64, GRAFT_COMPLEX128}) {
    auto x = complex_numbers(60, 1, dtype);
    for (Number& z : x) z.imag(z.imag() / 4);  // no sum turns by more than pi
    const double t = tolerance(part_of(dtype));
    for (int dim = 0; dim < 3; ++dim) {
      for (const auto& strides : {std::vector<int64_t>{20, 5, 1}, {1, 3, 12}}) {
        ComplexTensor in({3, 4, 5}, strides, dtype), out({3, 4, 5}, {20, 5, 1}, dtype);
        in.set(x);
        auto products = x, sums = x;
        for (int64_t i = 0; i < 60; ++i) {
          const int64_t position = i / kSteps[dim] % kSizes[dim], before = i - kSteps[dim];
          if (position == 0) continue;
          const auto at = static_cast<size_t>(i), last = static_cast<size_t>(before);
          products[at] = products[last] * x[at];
          sums[at] = std::log(std::exp(sums[last]) + std::exp(x[at]));
        }
        cumulative_product(stream(), out, in, dim);
        EXPECT_TRUE(near(out.parts(), parts_of(products), t, t));
        running_log_sum_exp(stream(), out, in, dim);
        EXPECT_TRUE(near(out.parts(), parts_of(sums), t, t));
      }
    }
  }
}

}  // namespace
