// tests/kernels/resample/patches_test.cpp: pieces of lines against counting.
#include "kernels/resample/patches.h"

#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

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

// image [1, 1, 3, 3], kernel 2 x 2, in columns of any layout.
TEST(Patches, ImagesAreCutAndSummedUp) {
  DeviceTensor image({1, 1, 3, 3}, {9, 9, 3, 1}, GRAFT_FLOAT32);
  DeviceTensor columns({1, 1, 2, 2, 2, 2}, {16, 16, 1, 2, 4, 8}, GRAFT_FLOAT32);
  image.set({0, 1, 2, 3, 4, 5, 6, 7, 8});
  unfold(stream(), columns, image, {});
  const std::vector<double> cut{0, 1, 3, 4, 1, 2, 4, 5, 3, 4, 6, 7, 4, 5, 7, 8};
  EXPECT_EQ(columns.get(), cut);
  fold(stream(), image, columns, {});
  EXPECT_EQ(image.get(), (std::vector<double>{0, 2, 2, 6, 16, 10, 6, 14, 8}));
}

TEST(Patches, AnImageOfAnotherRankIsRefused) {
  DeviceTensor image({3, 3}, {3, 1}, GRAFT_FLOAT32);
  DeviceTensor columns({1, 1, 2, 2, 2, 2}, {16, 16, 8, 4, 2, 1}, GRAFT_FLOAT32);
  EXPECT_THROW(unfold(stream(), columns, image, {}), Error);
}

}  // namespace
