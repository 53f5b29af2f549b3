// tests/kernels/linalg/householder_test.cpp: A = Q R holds, Q is orthogonal.
#include "kernels/linalg/householder.h"

#include <algorithm>
#include <cmath>

#include "kernels/linalg/matrix_batch.h"
#include "runtime/driver/error.h"
#include "tests/kernels/linalg/matrices.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr graft_dtype kTypes[] = {GRAFT_FLOAT32, GRAFT_FLOAT64};

Matrices identity(int64_t batch, int64_t n) {
  Matrices one(batch, n, n);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < n; ++i) one.at(b, i, i) = 1;
  }
  return one;
}

void check(const Matrices& a, graft_dtype dtype, bool by_columns) {
  const int64_t count = std::min(a.rows, a.columns);
  DeviceTensor matrices(a.sizes(), strides_of(a, by_columns), dtype);
  DeviceTensor factors({a.batch, count}, dtype);
  matrices.set(a.values);
  householder_factor(stream(), matrices, factors);
  const Matrices found(a.batch, a.rows, a.columns, matrices.get());
  const Matrices one = identity(a.batch, a.rows);
  DeviceTensor q(one.sizes(), strides_of(one, by_columns), dtype);
  q.set(one.values);
  apply_reflections(stream(), q, matrices, factors, false);
  const Matrices product_q(a.batch, a.rows, a.rows, q.get());
  const double error = 10 * tolerance(dtype);
  EXPECT_TRUE(
      near(product(product_q, triangle_of(found, true, false)).values, a.values, error, error))
      << a.rows << "x" << a.columns;
  EXPECT_TRUE(near(product(product_q, transposed_of(product_q)).values, one.values, error, error));
  apply_reflections(stream(), q, matrices, factors, true);
  EXPECT_TRUE(near(q.get(), one.values, error, error));
}

TEST(Householder, ProductOfTheFactors) {
  const int64_t shapes[][2] = {{1, 1}, {2, 2}, {7, 7}, {9, 4}, {4, 9}, {33, 33}, {100, 60}};
  for (const graft_dtype dtype : kTypes) {
    for (const auto& [rows, columns] : shapes) {
      const Matrices a(2, rows, columns, numbers(2 * rows * columns, 8, -2, 2, dtype));
      check(a, dtype, true);
      check(a, dtype, false);
    }
  }
}

TEST(Householder, ColumnsThatNeedNoReflection) {
  DeviceTensor matrices({1, 3, 2}, GRAFT_FLOAT64), factors({1, 2}, GRAFT_FLOAT64);
  matrices.set({-2, 5, 0, 3, 0, 0});
  householder_factor(stream(), matrices, factors);
  EXPECT_EQ(matrices.get(), (std::vector<double>{-2, 5, 0, 3, 0, 0}));
  EXPECT_EQ(factors.get(), (std::vector<double>{0, 0}));
}

TEST(Householder, LargeNumbersDoNotOverflow) {
  DeviceTensor matrices({1, 2, 1}, GRAFT_FLOAT32), factors({1, 1}, GRAFT_FLOAT32);
  matrices.set({3e30, 4e30});
  householder_factor(stream(), matrices, factors);
  EXPECT_NEAR(matrices.get()[0] / -5e30, 1, 1e-5);
  EXPECT_NEAR(factors.get()[0], 1.6, 1e-5);
}

TEST(Householder, FromTheRight) {
  DeviceTensor column({1, 2, 1}, GRAFT_FLOAT64), factors({1, 1}, GRAFT_FLOAT64);
  DeviceTensor matrices({1, 1, 2}, GRAFT_FLOAT64);
  column.set({3, 4});
  matrices.set({3, 4});
  householder_factor(stream(), column, factors);
  apply_reflections(stream(), transposed(matrices), column, factors, true);
  EXPECT_TRUE(near(matrices.get(), {-5, 0}, 0, 1e-12));
}

TEST(Householder, RefusesOtherRanksAndDtypes) {
  DeviceTensor flat({4, 4}, GRAFT_FLOAT32), half({1, 4, 4}, GRAFT_FLOAT16);
  DeviceTensor factors({1, 4}, GRAFT_FLOAT32);
  EXPECT_THROW(householder_factor(stream(), flat, factors), Error);
  EXPECT_THROW(apply_reflections(stream(), half, half, factors, true), Error);
}

}  // namespace
