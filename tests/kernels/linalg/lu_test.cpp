// tests/kernels/linalg/lu_test.cpp: P A = L U holds, and singular matrices are told.
#include "kernels/linalg/lu.h"

#include <algorithm>
#include <cmath>

#include "runtime/driver/error.h"
#include "tests/kernels/linalg/matrices.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr graft_dtype kTypes[] = {GRAFT_FLOAT32, GRAFT_FLOAT64};

struct Factors {
  Matrices matrices;
  std::vector<double> pivots, info;
};

Factors factor(const Matrices& a, graft_dtype dtype, bool by_columns) {
  DeviceTensor matrices(a.sizes(), strides_of(a, by_columns), dtype);
  DeviceTensor pivots({a.batch, std::min(a.rows, a.columns)}, GRAFT_INT32);
  DeviceTensor info({a.batch}, GRAFT_INT32);
  matrices.set(a.values);
  lu_factor(stream(), matrices, pivots, info);
  return {{a.batch, a.rows, a.columns, matrices.get()}, pivots.get(), info.get()};
}

Matrices exchanged(Matrices a, const std::vector<double>& pivots) {
  const int64_t count = static_cast<int64_t>(pivots.size()) / a.batch;
  for (int64_t b = 0; b < a.batch; ++b) {
    for (int64_t k = 0; k < count; ++k) {
      const auto other = static_cast<int64_t>(pivots[static_cast<size_t>(b * count + k)]) - 1;
      for (int64_t j = 0; j < a.columns; ++j) std::swap(a.at(b, k, j), a.at(b, other, j));
    }
  }
  return a;
}

// The first rows and columns of each matrix.
Matrices narrowed(const Matrices& a, int64_t rows, int64_t columns) {
  Matrices part(a.batch, rows, columns);
  for (int64_t b = 0; b < a.batch; ++b) {
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < columns; ++j) part.at(b, i, j) = a.at(b, i, j);
    }
  }
  return part;
}

TEST(Lu, ProductOfTheFactors) {
  const int64_t shapes[][3] = {{1, 1, 1}, {3, 7, 7}, {2, 33, 33},
                               {2, 5, 9}, {2, 9, 5}, {1, 70, 70}};
  for (const graft_dtype dtype : kTypes) {
    for (const auto& [batch, rows, columns] : shapes) {
      for (const bool by_columns : {true, false}) {
        const Matrices a(batch, rows, columns, numbers(batch * rows * columns, 5, -2, 2, dtype));
        const Factors found = factor(a, dtype, by_columns);
        const int64_t k = std::min(rows, columns);
        const Matrices l = triangle_of(narrowed(found.matrices, rows, k), false, true);
        const Matrices u = triangle_of(narrowed(found.matrices, k, columns), true, false);
        EXPECT_TRUE(near(product(l, u).values, exchanged(a, found.pivots).values,
                         10 * tolerance(dtype), 10 * tolerance(dtype)))
            << rows << "x" << columns;
        EXPECT_EQ(found.info, std::vector<double>(static_cast<size_t>(batch), 0));
        for (const double x : l.values) EXPECT_LE(std::abs(x), 1);
      }
    }
  }
}

TEST(Lu, PicksTheFirstLargestPivot) {
  const Factors found = factor({1, 3, 3, {1, 2, 3, -4, 1, 1, 4, 5, 6}}, GRAFT_FLOAT64, true);
  EXPECT_EQ(found.pivots[0], 2);
}

TEST(Lu, SingularMatricesAreTold) {
  const Matrices a(4, 2, 2, {1, 2, 2, 4, 0, 0, 0, 0, 0, 1, 0, 3, 1, 0, 0, 1});
  for (const graft_dtype dtype : kTypes) {
    const Factors found = factor(a, dtype, true);
    EXPECT_EQ(found.info, (std::vector<double>{2, 1, 1, 0}));
    for (const double x : found.matrices.values) EXPECT_TRUE(std::isfinite(x));
  }
}

TEST(Lu, ExchangesRowsThereAndBack) {
  const Matrices a(2, 4, 3, numbers(24, 1));
  const std::vector<double> given = {3, 4, 3, 4, 1, 2, 4, 4};
  DeviceTensor matrices(a.sizes(), GRAFT_FLOAT64), pivots({2, 4}, GRAFT_INT32);
  matrices.set(a.values);
  pivots.set(given);
  exchange_rows(stream(), matrices, pivots, false);
  EXPECT_EQ(matrices.get(), exchanged(a, given).values);
  exchange_rows(stream(), matrices, pivots, true);
  EXPECT_EQ(matrices.get(), a.values);
}

TEST(Lu, PermutationOfPivots) {
  DeviceTensor permutation({2, 4}, GRAFT_INT64), pivots({2, 3}, GRAFT_INT32);
  pivots.set({3, 4, 3, 1, 2, 3});
  permutation_of_pivots(stream(), permutation, pivots);
  EXPECT_EQ(permutation.get(), (std::vector<double>{2, 3, 0, 1, 0, 1, 2, 3}));
}

TEST(Lu, PivotsThatAreNoRowsAreReported) {
  DeviceTensor permutation({1, 2}, GRAFT_INT64), pivots({1, 2}, GRAFT_INT32);
  pivots.set({1, 9});
  permutation_of_pivots(stream(), permutation, pivots);
  EXPECT_THROW(stream().synchronize(), Error);
}

TEST(Lu, RefusesOtherRanksAndDtypes) {
  DeviceTensor flat({4, 4}, GRAFT_FLOAT32), half({1, 4, 4}, GRAFT_FLOAT16);
  DeviceTensor pivots({1, 4}, GRAFT_INT32), info({1}, GRAFT_INT32);
  EXPECT_THROW(lu_factor(stream(), flat, pivots, info), Error);
  EXPECT_THROW(lu_factor(stream(), half, pivots, info), Error);
}

}  // namespace
