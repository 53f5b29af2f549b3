// tests/kernels/random/random_test.cpp: the generator's known answers, its mapping and
// distributions.
#include "kernels/random/random.h"

#include <algorithm>
#include <cmath>

#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

struct Words {
  uint32_t at[4];
};

// Philox 4x32-10 as the paper writes it.
Words philox(uint64_t seed, uint64_t block) {
  Words c{{static_cast<uint32_t>(block), static_cast<uint32_t>(block >> 32), 0, 0}};
  uint32_t key[2] = {static_cast<uint32_t>(seed), static_cast<uint32_t>(seed >> 32)};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = 0xD2511F53ull * c.at[0], b = 0xCD9E8D57ull * c.at[2];
    c = {{static_cast<uint32_t>(b >> 32) ^ c.at[1] ^ key[0], static_cast<uint32_t>(b),
          static_cast<uint32_t>(a >> 32) ^ c.at[3] ^ key[1], static_cast<uint32_t>(a)}};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return c;
}

double uniform_at(Philox p, uint64_t i) {
  return std::ldexp(philox(p.seed, p.offset + i / 4).at[i % 4] >> 8, -24);
}

const Philox kPhilox{0x123456789abcdef0ull, 0x1fffffff0ull};

TEST(Philox, KnownAnswer) {
  // Counter 0, key 0, from the authors' known-answer file.
  const Words zero = philox(0, 0);
  EXPECT_EQ(zero.at[0], 0x6627e8d5u);
  EXPECT_EQ(zero.at[1], 0xe169c58du);
  EXPECT_EQ(zero.at[2], 0xbc57ac4cu);
  EXPECT_EQ(zero.at[3], 0x9b00dbd8u);
}

// labels: no_float64
TEST(Random, UniformsFollowTheMappingBitForBit) {
  for (int64_t count : {1, 3, 4, 63, 64, 65, 1000, 100001}) {
    DeviceTensor output({count}, GRAFT_FLOAT32);
    uniform(stream(), output, kPhilox, 0, 1);
    const auto u = output.get();
    for (size_t i = 0; i < u.size(); ++i) ASSERT_EQ(u[i], uniform_at(kPhilox, i)) << i;
  }
  DeviceTensor strided({10, 7}, {1, 10}, GRAFT_FLOAT32);
  uniform(stream(), strided, kPhilox, 0, 1);
  const auto u = strided.get();
  for (size_t i = 0; i < u.size(); ++i) ASSERT_EQ(u[i], uniform_at(kPhilox, i)) << i;
}

TEST(Random, DoublesTakeTwoWords) {
  DeviceTensor output({101}, GRAFT_FLOAT64);
  uniform(stream(), output, kPhilox, 0, 1);
  const auto u = output.get();
  for (size_t i = 0; i < u.size(); ++i) {
    const Words w = philox(kPhilox.seed, kPhilox.offset + i / 2);
    const uint64_t bits = w.at[i % 2 * 2] | static_cast<uint64_t>(w.at[i % 2 * 2 + 1]) << 32;
    ASSERT_EQ(u[i], std::ldexp(static_cast<double>(bits >> 11), -53)) << i;
  }
}

double mean_of(const std::vector<double>& x) {
  double sum = 0;
  for (double value : x) sum += value;
  return sum / static_cast<double>(x.size());
}

double deviation_of(const std::vector<double>& x) {
  const double mean = mean_of(x);
  double sum = 0;
  for (double value : x) sum += (value - mean) * (value - mean);
  return std::sqrt(sum / static_cast<double>(x.size()));
}

TEST(Random, NormalIsBoxMuller) {
  for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16}) {
    DeviceTensor output({200001}, dtype);
    normal(stream(), output, kPhilox, 3, 2);
    const auto x = output.get();
    EXPECT_NEAR(mean_of(x), 3, 0.03);
    EXPECT_NEAR(deviation_of(x), 2, 0.03);
    if (dtype != GRAFT_FLOAT32) continue;
    for (size_t i = 0; i < x.size(); ++i) {
      const double u = uniform_at(kPhilox, i / 2 * 2), v = uniform_at(kPhilox, i / 2 * 2 + 1);
      if (i / 2 * 2 + 1 >= x.size()) break;
      const double radius = std::sqrt(-2 * std::log(1 - u)), angle = 2 * M_PI * v;
      const double z = radius * (i % 2 == 0 ? std::cos(angle) : std::sin(angle));
      ASSERT_NEAR(x[i], 3 + 2 * z, 8e-7 * (3 + 2 * radius)) << i;
    }
  }
}

TEST(Random, UniformStaysInItsInterval) {
  for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT16, GRAFT_BFLOAT16}) {
    DeviceTensor output({100000}, dtype);
    uniform(stream(), output, kPhilox, -1, 3);
    const auto x = output.get();
    EXPECT_GE(*std::min_element(x.begin(), x.end()), -1);
    EXPECT_LT(*std::max_element(x.begin(), x.end()), 3);
    EXPECT_NEAR(mean_of(x), 1, 0.02);
  }
}

TEST(Random, BernoulliExponentialAndIntegers) {
  DeviceTensor flags({100000}, GRAFT_BOOL);
  bernoulli(stream(), flags, kPhilox, 0.3);
  EXPECT_NEAR(mean_of(flags.get()), 0.3, 0.01);
  DeviceTensor p({100000}, GRAFT_FLOAT32), drawn({100000}, GRAFT_FLOAT32);
  p.set(std::vector<double>(100000, 0.8));
  bernoulli(stream(), drawn, kPhilox, p.view());
  EXPECT_NEAR(mean_of(drawn.get()), 0.8, 0.01);
  exponential(stream(), drawn, kPhilox, 4);
  EXPECT_NEAR(mean_of(drawn.get()), 0.25, 0.01);
  DeviceTensor dice({100000}, GRAFT_INT64);
  random_integers(stream(), dice, kPhilox, 6, -2);
  const auto x = dice.get();
  EXPECT_EQ(*std::min_element(x.begin(), x.end()), -2);
  EXPECT_EQ(*std::max_element(x.begin(), x.end()), 3);
  for (size_t i = 0; i < 1000; ++i) {
    ASSERT_EQ(x[i], -2.0 + philox(kPhilox.seed, kPhilox.offset + i / 4).at[i % 4] % 6) << i;
  }
}

// How far the shares of sorted samples are from a distribution.
template <class Share>
double distance(std::vector<double> x, Share share) {
  std::sort(x.begin(), x.end());
  double worst = 0;
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = (static_cast<double>(i) + 0.5) / static_cast<double>(x.size());
    worst = std::max(worst, std::abs(share(x[i]) - at));
  }
  return worst;
}

TEST(Random, CauchyAndLogNormal) {
  for (const graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    DeviceTensor output({100001}, dtype);
    cauchy(stream(), output, kPhilox, 2, 0.5);
    EXPECT_LT(
        distance(output.get(), [](double x) { return 0.5 + std::atan((x - 2) / 0.5) / M_PI; }),
        0.009);
    log_normal(stream(), output, kPhilox, 0.5, 0.75);
    EXPECT_LT(distance(output.get(),
                       [](double x) {
                         return 0.5 * std::erfc(-(std::log(x) - 0.5) / (0.75 * std::sqrt(2.0)));
                       }),
              0.009);
  }
}

// labels: no_float64
TEST(Random, GeometricCountsTrials) {
  std::vector<graft_dtype> dtypes = {GRAFT_FLOAT32, GRAFT_INT64, GRAFT_INT32};
  if ((device().properties().features & GRAFT_FEATURE_FLOAT64) != 0) {
    dtypes.push_back(GRAFT_FLOAT64);
  }
  for (const graft_dtype dtype : dtypes) {
    for (const double p : {0.9, 0.3, 0.01}) {
      DeviceTensor output({100001}, dtype);
      geometric(stream(), output, kPhilox, p);
      const auto x = output.get();
      EXPECT_EQ(*std::min_element(x.begin(), x.end()), 1);
      EXPECT_NEAR(mean_of(x), 1 / p, 0.02 / p) << name_of(dtype) << " " << p;
      const auto ones = static_cast<double>(std::count(x.begin(), x.end(), 1.0));
      EXPECT_NEAR(ones / static_cast<double>(x.size()), p, 0.008);
    }
  }
}

TEST(Random, PermutationHoldsEveryNumberOnce) {
  DeviceTensor order({1000}, GRAFT_INT64);
  random_permutation(stream(), order, kPhilox);
  auto x = order.get();
  EXPECT_NE(x[0] * 1000 + x[1], 1);
  std::sort(x.begin(), x.end());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(x[i], static_cast<double>(i));
}

TEST(Dropout, KeepsAndScales) {
  const int64_t count = 100003;
  for (auto dtype : {GRAFT_FLOAT32, GRAFT_BFLOAT16, GRAFT_FLOAT64}) {
    const auto x = numbers(count, 1, 0.5, 2, dtype);
    DeviceTensor input({count}, dtype), output({count}, dtype), mask({count}, GRAFT_BOOL);
    input.set(x);
    dropout(stream(), output, mask, input, kPhilox, 0.25);
    const auto y = output.get(), kept = mask.get();
    EXPECT_NEAR(mean_of(kept), 0.75, 0.01);
    for (size_t i = 0; i < y.size(); ++i) {
      ASSERT_NEAR(y[i], kept[i] != 0 ? x[i] / 0.75 : 0, 4 * tolerance(dtype) * x[i]) << i;
    }
    DeviceTensor grad({count}, dtype);
    dropout_backward(stream(), grad, input, mask, 2);
    const auto g = grad.get();
    for (size_t i = 0; i < g.size(); ++i) ASSERT_EQ(g[i], kept[i] != 0 ? 2 * x[i] : 0) << i;
  }
  DeviceTensor input({4}, GRAFT_FLOAT32), output({4}, GRAFT_FLOAT32), mask({4}, GRAFT_BOOL);
  input.set({1, 2, 3, 4});
  dropout(stream(), output, mask, input, kPhilox, 1.0);
  EXPECT_TRUE(near(output.get(), {0, 0, 0, 0}, 0, 0));
}

}  // namespace
