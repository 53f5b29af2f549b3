// tests/kernels/move/copy_test.cpp: copies with conversion, strides and transposition.
#include "kernels/move/copy.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/kernels/tensor/device_tensor.h"

namespace graft {
namespace {

using test::DeviceTensor;
using test::numbers;
using test::stream;

TEST(Copy, MovesContiguousBytes) {
  for (graft_dtype dtype : {GRAFT_BOOL, GRAFT_INT16, GRAFT_FLOAT32, GRAFT_INT64}) {
    DeviceTensor a({3, 5}, dtype), b({3, 5}, dtype);
    std::vector<double> x;
    for (int i = 0; i < 15; ++i) x.push_back(dtype == GRAFT_BOOL ? i % 2 : i);
    copy(stream(), b, a.set(x));
    EXPECT_EQ(b.get(), x);
  }
}

class Transposes : public testing::TestWithParam<std::pair<int64_t, int64_t>> {};

void transposes(int64_t rows, int64_t columns) {
  for (graft_dtype dtype : {GRAFT_UINT8, GRAFT_BFLOAT16, GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    DeviceTensor a({rows, columns}, dtype), b({columns, rows}, dtype);
    std::vector<double> x, expected;
    for (int64_t i = 0; i < rows * columns; ++i) x.push_back(static_cast<double>(i % 113));
    a.set(x);
    copy(stream(), b, a.as({columns, rows}, {1, columns}));
    for (int64_t j = 0; j < columns; ++j) {
      for (int64_t i = 0; i < rows; ++i)
        expected.push_back(x[static_cast<size_t>(i * columns + j)]);
    }
    EXPECT_EQ(b.get(), expected) << name_of(dtype);
  }
}

TEST_P(Transposes, OfEverySize) { transposes(GetParam().first, GetParam().second); }

// labels: races
TEST(Copy, TransposesPartsOfTiles) { transposes(17, 33); }

INSTANTIATE_TEST_SUITE_P(Copy, Transposes,
                         testing::Values(std::pair{1, 9}, std::pair{8, 8}, std::pair{16, 16},
                                         std::pair{17, 33}, std::pair{100, 7},
                                         std::pair{129, 257}));

// labels: races
TEST(Copy, PermutesFourDimensions) {
  // Channels first to channels last.
  const int64_t n = 3, c = 20, h = 9, w = 11;
  DeviceTensor a({n, c, h, w}, GRAFT_FLOAT32), b({n, h, w, c}, GRAFT_FLOAT32);
  std::vector<double> x = numbers(n * c * h * w, 1, -2, 2, GRAFT_FLOAT32), expected;
  a.set(x);
  copy(stream(), b, a.as({n, h, w, c}, {c * h * w, w, 1, h * w}));
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t at = 0; at < h * w; ++at) {
      for (int64_t k = 0; k < c; ++k) {
        expected.push_back(x[static_cast<size_t>((i * c + k) * h * w + at)]);
      }
    }
  }
  EXPECT_EQ(b.get(), expected);
}

// from walks backwards along each set of its loops; a permuted and a broadcast one among them.
TEST(Copy, TakesNegativeStrides) {
  const int64_t sizes[] = {3, 4, 2, 5, 6};  // one loop more than a kernel has
  const std::vector<int64_t> strides = {0, 60, 1, 12, 2};
  const std::vector<double> x = numbers(240, 7, -2, 2, GRAFT_FLOAT32);
  for (unsigned backwards = 0; backwards < 32; ++backwards) {
    DeviceTensor a({240}, GRAFT_FLOAT32), b({3, 4, 2, 5, 6}, GRAFT_FLOAT32);
    TensorView from = a.set(x).as({3, 4, 2, 5, 6}, strides);
    for (int d = 0; d < 5; ++d) {
      if ((backwards >> d & 1) == 0) continue;
      from.address += static_cast<uint64_t>((sizes[d] - 1) * strides[d]) * sizeof(float);
      from.strides[d] = -strides[d];
    }
    std::vector<double> expected;
    for (int64_t e = 0; e < b.view().count(); ++e) {
      int64_t position = 0, rest = e;
      for (int d = 4; d >= 0; --d) {
        const int64_t at = rest % sizes[d];
        rest /= sizes[d];
        position += ((backwards >> d & 1) != 0 ? sizes[d] - 1 - at : at) * strides[d];
      }
      expected.push_back(x[static_cast<size_t>(position)]);
    }
    copy(stream(), b, from);
    EXPECT_EQ(b.get(), expected) << backwards;
  }
}

TEST(Copy, ReversesLongRowsOfEveryWidth) {
  for (graft_dtype dtype : {GRAFT_BOOL, GRAFT_FLOAT16, GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    const int64_t n = 70001;
    DeviceTensor a({n}, dtype), b({n}, dtype), c({n}, dtype);
    std::vector<double> x;
    for (int64_t i = 0; i < n; ++i) x.push_back(static_cast<double>(i % 2));
    TensorView from = a.set(x).as({n}, {1}), back = b.as({n}, {1});
    from.address += static_cast<uint64_t>(n - 1) * size_of(dtype);
    back.address += static_cast<uint64_t>(n - 1) * size_of(dtype);
    from.strides[0] = back.strides[0] = -1;
    copy(stream(), b, from);
    EXPECT_EQ(b.get()[1], x[static_cast<size_t>(n - 2)]);
    copy(stream(), c, back);
    EXPECT_EQ(c.get(), x) << name_of(dtype);
  }
}

TEST(Copy, ConvertsBetweenAllRealTypes) {
  const graft_dtype dtypes[] = {GRAFT_BOOL,    GRAFT_UINT8,  GRAFT_INT8,    GRAFT_INT16,
                                GRAFT_INT32,   GRAFT_INT64,  GRAFT_FLOAT16, GRAFT_BFLOAT16,
                                GRAFT_FLOAT32, GRAFT_FLOAT64};
  for (graft_dtype from : dtypes) {
    for (graft_dtype to : dtypes) {
      DeviceTensor a({5}, from), b({5}, to);
      a.set({0, 1, 2, 5, 100});
      copy(stream(), b, a);
      std::vector<double> expected;
      for (double value : a.get()) {
        expected.push_back(to == GRAFT_BOOL ? double(value != 0) : test::rounded(value, to));
      }
      EXPECT_EQ(b.get(), expected) << name_of(from) << " to " << name_of(to);
    }
  }
}

TEST(Copy, TruncatesToIntegers) {
  DeviceTensor a({5}, GRAFT_FLOAT32), b({5}, GRAFT_INT64), c({5}, GRAFT_INT8);
  a.set({1.9, -1.9, 0.5, -0.5, 127.9});
  copy(stream(), b, a);
  copy(stream(), c, a);
  EXPECT_EQ(b.get(), (std::vector<double>{1, -1, 0, 0, 127}));
  EXPECT_EQ(c.get(), (std::vector<double>{1, -1, 0, 0, 127}));
}

TEST(Copy, ExpandsAndNegates) {
  DeviceTensor a({3}, GRAFT_FLOAT32), b({2, 3}, GRAFT_FLOAT32);
  a.set({1, 2, 3});
  copy(stream(), b, a.as({2, 3}, {0, 1}));
  EXPECT_EQ(b.get(), (std::vector<double>{1, 2, 3, 1, 2, 3}));
  copy(stream(), b, a.as({2, 3}, {0, 1}), false, true);
  EXPECT_EQ(b.get(), (std::vector<double>{-1, -2, -3, -1, -2, -3}));
}

TEST(Copy, ConjugatesComplexNumbers) {
  DeviceTensor a({4}, GRAFT_FLOAT32), b({4}, GRAFT_FLOAT32);
  a.set({1, 2, 3, 4});
  TensorView from = a.as({2}, {1}), to = b.as({2}, {1});
  from.dtype = to.dtype = GRAFT_COMPLEX64;
  copy(stream(), to, from, true, false);
  EXPECT_EQ(b.get(), (std::vector<double>{1, -2, 3, -4}));
  copy(stream(), to, from, true, true);
  EXPECT_EQ(b.get(), (std::vector<double>{-1, 2, -3, 4}));
  copy(stream(), b.as({2}, {1}), from);
  EXPECT_EQ((std::vector<double>{b.get()[0], b.get()[1]}), (std::vector<double>{1, 3}));
  copy(stream(), to, a.as({2}, {1}));
  EXPECT_EQ(b.get(), (std::vector<double>{1, 0, 2, 0}));
}

}  // namespace
}  // namespace graft
