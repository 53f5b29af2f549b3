// tests/kernels/pooling/window_average_test.cpp: the weights of windows against counting.
#include "kernels/pooling/window_average.h"

#include <gtest/gtest.h>

namespace {

using namespace graft;

// {to, from, 1 / weight} of each term.
using Terms = std::vector<std::vector<int64_t>>;
Terms terms(const LinearMap& taps) {
  Terms result;
  for (const Tap& tap : taps.list) {
    result.push_back({tap.to, tap.from, static_cast<int64_t>(1 / tap.weight + 0.5)});
  }
  return result;
}

TEST(WindowAverage, CountsPaddingOrNot) {
  AverageLine line{3, 2, 3, 2, 1, true, false};
  EXPECT_EQ(terms(average_taps(line)), (Terms{{0, 0, 3}, {0, 1, 3}, {1, 1, 3}, {1, 2, 3}}));
  line.count_padding = false;
  EXPECT_EQ(terms(average_taps(line)), (Terms{{0, 0, 2}, {0, 1, 2}, {1, 1, 2}, {1, 2, 2}}));
  line.total = true;
  EXPECT_EQ(terms(average_taps(line)), (Terms{{0, 0, 1}, {0, 1, 1}, {1, 1, 1}, {1, 2, 1}}));
}

TEST(WindowAverage, AWindowBeyondTheEndIsShorter) {
  EXPECT_EQ(terms(average_taps({3, 2, 2, 2, 0, true, false})),
            (Terms{{0, 0, 2}, {0, 1, 2}, {1, 2, 1}}));
}

TEST(WindowAverage, LengthsAreWhatSumsAreDividedBy) {
  AverageLine line{3, 2, 3, 2, 1, true, true};
  EXPECT_EQ(window_lengths(line), (std::vector<int64_t>{3, 3}));
  line.count_padding = false;
  EXPECT_EQ(window_lengths(line), (std::vector<int64_t>{2, 2}));
}

TEST(WindowAverage, AdaptiveWindowsOverlap) {
  EXPECT_EQ(terms(adaptive_average_taps(3, 2)),
            (Terms{{0, 0, 2}, {0, 1, 2}, {1, 1, 2}, {1, 2, 2}}));
}

}  // namespace
