// tests/kernels/variance_test.cpp: variances against two passes in double on the host.
#include <cmath>

#include "kernels/reduce.h"
#include "runtime/dtype.h"
#include "tests/kernels/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

void check(graft_dtype dtype, int64_t outer, int64_t n, int64_t inner, double shift,
           double correction, bool root) {
  SCOPED_TRACE(std::string(name_of(dtype)) + " [" + std::to_string(outer) + ", " +
               std::to_string(n) + ", " + std::to_string(inner) + "]");
  const auto x = numbers(outer * n * inner, 9, shift - 1, shift + 1, dtype);
  DeviceTensor input({outer, n, inner}, dtype);
  input.set(x);
  std::vector<double> means, variances;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      auto at = [&](int64_t j) { return x[static_cast<size_t>((o * n + j) * inner + i)]; };
      double mean = 0, sum = 0;
      for (int64_t j = 0; j < n; ++j) mean += at(j) / static_cast<double>(n);
      for (int64_t j = 0; j < n; ++j) sum += (at(j) - mean) * (at(j) - mean);
      sum /= std::max(0.0, static_cast<double>(n) - correction);
      means.push_back(mean);
      variances.push_back(root ? std::sqrt(sum) : sum);
    }
  }
  DeviceTensor output({outer, 1, inner}, dtype), mean({outer, 1, inner}, dtype);
  const TensorView mean_view = mean.spread(input, {1});
  variance(stream(), output.spread(input, {1}), &mean_view, input, correction, root);
  const double t = 4 * tolerance(dtype);
  EXPECT_TRUE(near(output.get(), variances, t + t * std::abs(shift), 0));
  EXPECT_TRUE(near(mean.get(), means, t, t));
  variance(stream(), output.spread(input, {1}), nullptr, input, correction, root);
  EXPECT_TRUE(near(output.get(), variances, t + t * std::abs(shift), 0));
}

TEST(Variance, MatchesTwoPasses) {
  const int64_t shapes[][3] = {{3, 100, 1}, {2, 37, 50}, {1, 100003, 1}, {4, 9, 3}, {2, 2, 2}};
  for (auto& s : shapes) {
    for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16}) {
      check(dtype, s[0], s[1], s[2], 0, 1, false);
      check(dtype, s[0], s[1], s[2], 0, 0, true);
    }
  }
}

TEST(Variance, SurvivesALargeMean) { check(GRAFT_FLOAT32, 2, 5000, 1, 1000, 1, false); }

TEST(Variance, OfOneElementIsNanUnlessUncorrected) {
  DeviceTensor input({1}, GRAFT_FLOAT32), output({1}, GRAFT_FLOAT32);
  input.set({3});
  variance(stream(), output, nullptr, input, 1, false);
  EXPECT_TRUE(std::isnan(output.get()[0]));
  variance(stream(), output, nullptr, input, 0, false);
  EXPECT_EQ(output.get()[0], 0);
}

}  // namespace
