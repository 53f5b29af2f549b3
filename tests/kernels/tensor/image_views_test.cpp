// tests/kernels/tensor/image_views_test.cpp: which batches of images are one matrix.
#include "kernels/tensor/image_views.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace graft {
namespace {

TensorView images(const std::vector<int64_t>& strides) {
  TensorView view{};
  view.dtype = GRAFT_FLOAT32;
  view.rank = 4;
  std::ranges::copy(std::vector<int64_t>{2, 3, 4, 5}, view.sizes);
  std::ranges::copy(strides, view.strides);
  return view;
}

TEST(ImageViews, ChannelsLastIsAMatrixOfPixels) {
  const auto matrix = as_matrix(images({60, 1, 15, 3}));
  ASSERT_TRUE(matrix);
  EXPECT_EQ(matrix->rank, 2);
  EXPECT_EQ(std::vector(matrix->sizes, matrix->sizes + 2), (std::vector<int64_t>{40, 3}));
  EXPECT_EQ(std::vector(matrix->strides, matrix->strides + 2), (std::vector<int64_t>{3, 1}));
}

TEST(ImageViews, PixelsThatDoNotLieInOneLineAreNone) {
  const TensorView channels_between = images({60, 20, 5, 1});
  const TensorView rows_with_a_margin = images({72, 1, 18, 3});
  const TensorView images_with_a_margin = images({80, 1, 15, 3});
  EXPECT_FALSE(as_matrix(channels_between));
  EXPECT_FALSE(as_matrix(rows_with_a_margin));
  EXPECT_FALSE(as_matrix(images_with_a_margin));
}

}  // namespace
}  // namespace graft
