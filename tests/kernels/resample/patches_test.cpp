// tests/kernels/resample/patches_test.cpp: pieces of lines against counting.
#include "kernels/resample/patches.h"

#include <gtest/gtest.h>

namespace {

using namespace graft;

TEST(Patches, PiecesStandSideBySide) {
  const LinearMap taps = patch_taps({5, 2, 3, 1, 0, 2});
  std::vector<int32_t> sources;
  for (const Tap& tap : taps.list) sources.push_back(tap.from);
  EXPECT_EQ(taps.to, 6);
  EXPECT_EQ(sources, (std::vector<int32_t>{0, 2, 1, 3, 2, 4}));
}

TEST(Patches, PaddingHasNoTerms) {
  const LinearMap taps = patch_taps({3, 3, 2, 2, 1, 1});
  ASSERT_EQ(taps.list.size(), 4u);
  EXPECT_EQ(taps.list[0].to, 1);  // i = 1 - 1 = 0
  EXPECT_EQ(taps.list[0].from, 0);
  EXPECT_EQ(taps.list.back().to, 4);
  EXPECT_EQ(taps.list.back().from, 2);
}

}  // namespace
