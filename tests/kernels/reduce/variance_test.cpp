// tests/kernels/reduce/variance_test.cpp: variances against two passes in double on the host.
#include <cmath>

#include "kernels/reduce/reduce.h"
#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

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

// labels: sub_groups_32
TEST(Variance, SurvivesALargeMean) { check(GRAFT_FLOAT32, 2, 5000, 1, 1000, 1, false); }

TEST(Variance, OfOneElementIsNanUnlessUncorrected) {
  DeviceTensor input({1}, GRAFT_FLOAT32), output({1}, GRAFT_FLOAT32);
  input.set({3});
  variance(stream(), output, nullptr, input, 1, false);
  EXPECT_TRUE(std::isnan(output.get()[0]));
  variance(stream(), output, nullptr, input, 0, false);
  EXPECT_EQ(output.get()[0], 0);
}

// Along the last dimension, down 5 columns, of 3 lines.
void check_offset(int64_t outer, int64_t n, int64_t inner, double offset, double spread) {
  SCOPED_TRACE("[" + std::to_string(outer) + ", " + std::to_string(n) + ", " +
               std::to_string(inner) + "] about " + std::to_string(offset));
  const auto x = numbers(outer * n * inner, 5, offset - spread, offset + spread, GRAFT_FLOAT32);
  DeviceTensor input({outer, n, inner}, GRAFT_FLOAT32);
  DeviceTensor output({outer, 1, inner}, GRAFT_FLOAT32), means({outer, 1, inner}, GRAFT_FLOAT32);
  input.set(x);
  const TensorView mean_view = means.spread(input, {1});
  variance(stream(), output.spread(input, {1}), &mean_view, input, 1, false);
  const std::vector<double> variances = output.get(), middles = means.get();
  for (int64_t line = 0; line < outer * inner; ++line) {
    const int64_t at = line / inner * n * inner + line % inner;
    double mean = 0, squares = 0;
    for (int64_t j = 0; j < n; ++j) mean += x[static_cast<size_t>(at + j * inner)];
    mean /= static_cast<double>(n);
    for (int64_t j = 0; j < n; ++j) {
      const double apart = x[static_cast<size_t>(at + j * inner)] - mean;
      squares += apart * apart;
    }
    const double expected = squares / static_cast<double>(n - 1);
    ASSERT_NEAR(variances[static_cast<size_t>(line)], expected, 4e-6 * expected);
    ASSERT_NEAR(middles[static_cast<size_t>(line)], mean, 6e-8 * mean + 1e-6 * spread);
  }
}

TEST(Variance, OfLongLinesAndLargeMeans) {
  const int64_t shapes[][3] = {{1, 300, 1}, {1, 300007, 1}, {1, 30011, 5}, {3, 5000, 1}};
  for (const auto& s : shapes) {
    for (const double offset : {0.0, 100.7, 123456789.0}) {
      check_offset(s[0], s[1], s[2], offset, 0);
      check_offset(s[0], s[1], s[2], offset, 20);
    }
  }
}

}  // namespace
