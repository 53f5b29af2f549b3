// tests/kernels/random/sampling_test.cpp: samplers against the distributions that they promise.
#include "kernels/random/sampling.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr int64_t kCount = 60000;
const Philox kPhilox{0x5eed, 77};

// A distance of Kolmogorov that a right sampler exceeds once in about 10^6 seeds; ties of discrete
// distributions make it smaller still.
const double kFar = 2.7 / std::sqrt(static_cast<double>(kCount));

struct Samples {
  explicit Samples(std::vector<double> x) : values(std::move(x)) {
    std::sort(values.begin(), values.end());
  }
  double mean() const {
    return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
  }
  // The share of values up to x.
  double share(double x) const {
    const auto end = std::upper_bound(values.begin(), values.end(), x);
    return static_cast<double>(end - values.begin()) / static_cast<double>(values.size());
  }
  std::vector<double> values;
};

// The largest distance from a distribution on 0, 1, 2, ... with these logarithms of probabilities.
template <class LogProbability>
double distance(const Samples& samples, LogProbability log_probability) {
  double worst = 0, sum = 0;
  for (double k = 0; k <= samples.values.back(); ++k) {
    sum += std::exp(log_probability(k));
    worst = std::max(worst, std::abs(samples.share(k) - sum));
  }
  return worst;
}

std::vector<double> constant(double value) { return std::vector<double>(kCount, value); }

TEST(Sampling, PoissonBelowAndAboveTheRejection) {
  for (const double rate : {0.01, 1.0, 9.9, 10.0, 37.5, 1000.0}) {
    for (const graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64}) {
      DeviceTensor rates({kCount}, dtype), output({kCount}, dtype);
      rates.set(constant(rate));
      poisson(stream(), output, kPhilox, rates);
      const Samples samples(output.get());
      auto log_probability = [rate = rounded(rate, dtype)](double k) {
        return k * std::log(rate) - rate - std::lgamma(k + 1);
      };
      EXPECT_LT(distance(samples, log_probability), kFar) << rate;
      EXPECT_NEAR(samples.mean(), rate, 5 * std::sqrt(rate / kCount)) << rate;
    }
  }
}

TEST(Sampling, PoissonOfNothing) {
  DeviceTensor rates({1000}, GRAFT_FLOAT32), output({1000}, GRAFT_FLOAT32);
  rates.set(std::vector<double>(1000, 0.0));
  poisson(stream(), output, kPhilox, rates);
  EXPECT_TRUE(near(output.get(), std::vector<double>(1000, 0.0), 0, 0));
}

TEST(Sampling, BinomialOnBothSides) {
  struct Case {
    double count, chance;
  };
  for (const Case c : {Case{1, 0.3}, Case{12, 0.5}, Case{40, 0.9}, Case{100, 0.2}, Case{500, 0.5},
                       Case{1000, 0.97}, Case{100000, 0.00002}}) {
    DeviceTensor counts({kCount}, GRAFT_FLOAT64), chances({kCount}, GRAFT_FLOAT64);
    DeviceTensor output({kCount}, GRAFT_FLOAT64);
    counts.set(constant(c.count));
    chances.set(constant(c.chance));
    binomial(stream(), output, kPhilox, counts, chances);
    const Samples samples(output.get());
    auto log_probability = [c](double k) {
      return std::lgamma(c.count + 1) - std::lgamma(k + 1) - std::lgamma(c.count - k + 1) +
             k * std::log(c.chance) + (c.count - k) * std::log1p(-c.chance);
    };
    EXPECT_LT(distance(samples, log_probability), kFar) << c.count << " " << c.chance;
    EXPECT_GE(samples.values.front(), 0);
    EXPECT_LE(samples.values.back(), c.count);
  }
}

TEST(Sampling, BinomialAtItsEnds) {
  const double nan = std::nan("");
  DeviceTensor counts({6}, GRAFT_FLOAT32), chances({6}, GRAFT_FLOAT32), output({6}, GRAFT_FLOAT32);
  counts.set({0, -3, 7, 7, nan, 4});
  chances.set({0.5, 0.5, 0, 1, 0.5, nan});
  binomial(stream(), output, kPhilox, counts, chances);
  EXPECT_TRUE(near(output.get(), {0, 0, 0, 7, nan, nan}, 0, 0));
}

// The regularised lower incomplete gamma function, by its series.
double gamma_share(double shape, double x) {
  if (x <= 0) return 0;
  double term = 1 / shape, sum = term;
  for (int n = 1; n < 2000 && term > sum * 1e-16; ++n) sum += term *= x / (shape + n);
  return sum * std::exp(shape * std::log(x) - x - std::lgamma(shape));
}

// labels: no_float64
TEST(Sampling, GammaOfSmallAndLargeShapes) {
  const bool wide = (device().properties().features & GRAFT_FEATURE_FLOAT64) != 0;
  const graft_dtype dtype = wide ? GRAFT_FLOAT64 : GRAFT_FLOAT32;
  for (const double wanted : {0.1, 0.75, 1.0, 3.5, 60.0}) {
    const double shape = rounded(wanted, dtype);
    DeviceTensor shapes({kCount}, dtype), output({kCount}, dtype);
    shapes.set(constant(shape));
    standard_gamma(stream(), output, kPhilox, shapes);
    const Samples samples(output.get());
    double worst = 0;
    for (size_t i = 0; i < samples.values.size(); i += 50) {
      const double share = static_cast<double>(i) / static_cast<double>(kCount);
      worst = std::max(worst, std::abs(gamma_share(shape, samples.values[i]) - share));
    }
    EXPECT_LT(worst, kFar) << shape;
    EXPECT_GT(samples.values.front(), 0);
  }
}

TEST(Sampling, OrderFollowsTheSizesNotTheStrides) {
  DeviceTensor rates({30, 40}, GRAFT_FLOAT32), output({30, 40}, GRAFT_FLOAT32);
  DeviceTensor turned({30, 40}, {1, 30}, GRAFT_FLOAT32), again({30, 40}, {1, 30}, GRAFT_FLOAT32);
  const auto values = numbers(1200, 5, 0, 30, GRAFT_FLOAT32);
  rates.set(values);
  turned.set(values);
  poisson(stream(), output, kPhilox, rates);
  poisson(stream(), again, kPhilox, turned);
  EXPECT_EQ(output.get(), again.get());
  poisson(stream(), again, {kPhilox.seed + 1, kPhilox.offset}, rates);
  EXPECT_NE(output.get(), again.get());
}

}  // namespace
