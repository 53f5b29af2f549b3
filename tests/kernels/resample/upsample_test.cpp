// tests/kernels/resample/upsample_test.cpp: the maps of interpolation and padding against known
// values.
#include "kernels/resample/upsample.h"

#include <gtest/gtest.h>

#include <cmath>

namespace {

using namespace graft;

std::vector<int32_t> sources(const LinearMap& taps) {
  std::vector<int32_t> result;
  for (const Tap& tap : taps.list) result.push_back(tap.from);
  return result;
}

using Sources = std::vector<int32_t>;

TEST(Upsample, NearestPicksAsPyTorchDoes) {
  EXPECT_EQ(sources(nearest_taps({3, 7, false, {}, false})), (Sources{0, 0, 0, 1, 1, 2, 2}));
  EXPECT_EQ(sources(nearest_exact_taps({3, 7, false, {}, false})), (Sources{0, 0, 1, 1, 1, 2, 2}));
  EXPECT_EQ(sources(nearest_taps({7, 3, false, {}, false})), (Sources{0, 2, 4}));
  EXPECT_EQ(sources(nearest_exact_taps({7, 3, false, {}, false})), (Sources{1, 3, 5}));
  EXPECT_EQ(sources(nearest_taps({3, 6, false, 1.5, false})), (Sources{0, 0, 1, 1, 2, 2}));
  EXPECT_TRUE(nearest_taps({5, 5, false, {}, false}).is_identity());
}

TEST(Upsample, LinearKeepsALineStraight) {
  for (bool wide : {false, true}) {
    const LinearMap taps = linear_taps({5, 9, true, {}, wide});
    std::vector<double> line(9);
    for (const Tap& tap : taps.list) line[static_cast<size_t>(tap.to)] += tap.weight * tap.from;
    for (size_t i = 0; i < 9; ++i) EXPECT_NEAR(line[i], static_cast<double>(i) * 0.5, 1e-6);
  }
}

TEST(Upsample, WeightsOfEachElementSumToOne) {
  for (int64_t to : {1, 3, 4, 11, 40}) {
    for (bool align : {false, true}) {
      const Interpolation line{11, to, align, {}, true};
      for (const LinearMap& taps :
           {linear_taps(line), cubic_taps(line), antialias_taps(line, Filter::kLinear),
            antialias_taps(line, Filter::kCubic), antialias_taps(line, Filter::kLanczos)}) {
        std::vector<double> sums(static_cast<size_t>(to));
        for (const Tap& tap : taps.list) {
          ASSERT_TRUE(tap.from >= 0 && tap.from < 11);
          sums[static_cast<size_t>(tap.to)] += tap.weight;
        }
        for (const double sum : sums) EXPECT_NEAR(sum, 1, 1e-12);
      }
    }
  }
}

TEST(Upsample, PaddingReflectsAndReplicates) {
  EXPECT_EQ(sources(reflection_taps(4, 2, 3)), (Sources{2, 1, 0, 1, 2, 3, 2, 1, 0}));
  EXPECT_EQ(sources(replication_taps(3, 2, 1)), (Sources{0, 0, 0, 1, 2, 2}));
  EXPECT_EQ(sources(replication_taps(5, -1, -2)), (Sources{1, 2}));
}

TEST(Upsample, TheReverseOfAMapHasItsTermsInOrder) {
  const LinearMap back = replication_taps(2, 1, 1).transposed();
  EXPECT_EQ(back.to, 2);
  EXPECT_EQ(back.from, 4);
  EXPECT_EQ(sources(back), (Sources{0, 1, 2, 3}));
}

}  // namespace
