// tests/kernels/matmul/tiled_matmul_test.cpp: products and convolutions in local memory, every
// shape of tile, on the device under test where it is GPU-like.
#include "kernels/matmul/tiled_matmul.h"

#include <cstring>

#include "kernels/convolution/tiled_convolution.h"
#include "kernels/tuning/tile_tuning.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

// labels of the file: opencl_cpu
namespace {

using namespace graft;
using namespace graft::test;

bool gpu_like() { return device().properties().device_class == GRAFT_GPU_LIKE; }

// Shapes that differ in what each kernel does: items' runs, idle items as tiles load, one item's
// row, factors of unequal length.
const TileShape kShapes[] = {
    {16, 16, 4, 2, 2, 1}, {16, 32, 8, 4, 2, 2}, {8, 16, 16, 1, 4, 4}, {32, 4, 4, 2, 1, 1}};

void check(const TileShape& shape, int64_t m, int64_t k, int64_t n) {
  SCOPED_TRACE(shape.text() + " " + std::to_string(m) + " " + std::to_string(k) + " " +
               std::to_string(n));
  const auto x = numbers(m * k, 1), y = numbers(k * n, 2);
  DeviceTensor a({m, k}, {1, m}, GRAFT_FLOAT32), b({k, n}, GRAFT_FLOAT32);
  DeviceTensor c({m, n}, GRAFT_FLOAT32);
  a.set(x), b.set(y);
  tiled_matmul(stream(), c, a, b, {}, shape);
  std::vector<double> expected(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m * n; ++i) {
    for (int64_t p = 0; p < k; ++p) {
      expected[static_cast<size_t>(i)] +=
          x[static_cast<size_t>(i / n * k + p)] * y[static_cast<size_t>(p * n + i % n)];
    }
  }
  EXPECT_TRUE(near(c.get(), expected, 1e-5, 1e-4));
}

// labels: races
TEST(TiledMatmul, EveryShapeOfTile) {
  if (!gpu_like()) {
    DeviceTensor a({64, 64}, GRAFT_FLOAT32), c({64, 64}, GRAFT_FLOAT32);
    EXPECT_FALSE(tiled_matmul(stream(), c, a, a, {}));
    return;
  }
  for (const TileShape& shape : kShapes) {
    for (const int64_t k : {1, 3, 4, 16, 17, 65}) check(shape, 19, k, 37);
    check(shape, 1, 40, 1);
  }
}

// A NaN beyond a factor's edge, or infinity times the zeros that fill a tile, must not spread.
TEST(TiledMatmul, WhatLiesBeyondTheEdgeIsNotRead) {
  if (!gpu_like()) return;
  const double nan = std::nan(""), infinite = HUGE_VAL;
  DeviceTensor whole({20, 20}, GRAFT_FLOAT32), c({5, 5}, GRAFT_FLOAT32);
  std::vector<double> values(400, nan);
  for (size_t i = 0; i < 5; ++i) {
    for (size_t j = 0; j < 5; ++j) values[i * 20 + j] = i == 4 ? infinite : 1;
  }
  whole.set(values);
  const TensorView part = whole.as({5, 5}, {20, 1});
  for (const TileShape& shape : kShapes) {
    tiled_matmul(stream(), c, part, part, {}, shape);
    EXPECT_TRUE(near(c.get(), std::vector<double>(25, infinite), 0, 0)) << shape.text();
  }
}

TEST(TileTuning, MeasuresKeepsAndUses) {
  if (!gpu_like()) {
    EXPECT_THROW(tune_tiles(stream(), 1, {}), Error);
    return;
  }
  EXPECT_THROW(tune_tiles(stream(), 0, {}), Error);
  size_t told = 0, expected = 0;
  const auto found = tune_tiles(stream(), 1, [&](size_t done, size_t all, const TileMeasurement&) {
    EXPECT_EQ(done, ++told);
    expected = all;
  });
  ASSERT_EQ(found.size(), 4u);
  EXPECT_EQ(told, expected);
  const auto used = tile_for(device(), TileUse::kMatmul, GRAFT_FLOAT32, 1024, 1024);
  for (const TileMeasurement& one : found) {
    EXPECT_GT(one.gflops, 0) << one.row;
    if (one.row == "matmul_4_large") {
      EXPECT_EQ(used, one.shape);
    }
  }
}

}  // namespace
