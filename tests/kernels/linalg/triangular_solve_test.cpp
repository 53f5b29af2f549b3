// tests/kernels/linalg/triangular_solve_test.cpp: A X = B for every triangle and layout.
#include "kernels/linalg/triangular_solve.h"

#include <cmath>

#include "runtime/driver/error.h"
#include "tests/kernels/linalg/matrices.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr graft_dtype kTypes[] = {GRAFT_FLOAT32, GRAFT_FLOAT64};

// Matrices whose triangles stay well conditioned with a diagonal of ones too.
Matrices left_of(int64_t batch, int64_t n, bool unit, graft_dtype dtype) {
  Matrices a = well_conditioned(batch, n, 3, dtype);
  if (!unit) return a;
  for (double& x : a.values) x = rounded(x / static_cast<double>(n), dtype);
  return a;
}

struct Layout {
  bool left_by_columns, right_by_columns;
};

void check(int64_t n, graft_dtype dtype, Layout layout, bool upper, bool unit) {
  const int64_t batch = 2, columns = 5;
  const Matrices a = left_of(batch, n, unit, dtype);
  const Matrices x(batch, n, columns, numbers(batch * n * columns, 4, -2, 2, dtype));
  const Matrices b = product(triangle_of(a, upper, unit), x);
  DeviceTensor left(a.sizes(), strides_of(a, layout.left_by_columns), dtype);
  DeviceTensor right(b.sizes(), strides_of(b, layout.right_by_columns), dtype);
  left.set(a.values);
  right.set(b.values);
  triangular_solve(stream(), right, left, upper, unit);
  const double error = 10 * tolerance(dtype);
  EXPECT_TRUE(near(right.get(), x.values, error, error))
      << n << (upper ? " upper" : " lower") << (unit ? " unit" : "");
}

TEST(TriangularSolve, EveryTriangleAndLayout) {
  for (const graft_dtype dtype : kTypes) {
    for (const int64_t n : {1, 2, 7, 33, 100}) {
      for (int bits = 0; bits < 16; ++bits) {
        check(n, dtype, {(bits & 1) != 0, (bits & 2) != 0}, (bits & 4) != 0, (bits & 8) != 0);
      }
    }
  }
}

TEST(TriangularSolve, TheOtherTriangleIsNotRead) {
  const double nan = std::nan("");
  DeviceTensor left({1, 2, 2}, GRAFT_FLOAT64), right({1, 2, 1}, GRAFT_FLOAT64);
  left.set({2, nan, 3, 4});
  right.set({2, 11});
  triangular_solve(stream(), right, left, false, false);
  EXPECT_TRUE(near(right.get(), {1, 2}, 0, 0));
  left.set({nan, 3, nan, nan});
  right.set({7, 2});
  triangular_solve(stream(), right, left, true, true);
  EXPECT_TRUE(near(right.get(), {1, 2}, 0, 0));
}

TEST(TriangularSolve, OneMatrixForTheWholeBatch) {
  DeviceTensor left({1, 2, 2}, GRAFT_FLOAT32), right({3, 2, 1}, GRAFT_FLOAT32);
  left.set({2, 1, 0, 4});
  right.set({3, 4, 5, 4, 4, 8});
  triangular_solve(stream(), right, left.as({3, 2, 2}, {0, 2, 1}), true, false);
  EXPECT_TRUE(near(right.get(), {1, 1, 2, 1, 1, 2}, 0, 0));
}

TEST(TriangularSolve, MatricesDenseInNeitherDimension) {
  DeviceTensor memory({1, 4, 4}, GRAFT_FLOAT32), right({1, 2, 1}, GRAFT_FLOAT32);
  memory.set({2, 9, 0, 9, 9, 9, 9, 9, 3, 9, 4, 9, 9, 9, 9, 9});
  right.set({2, 11});
  triangular_solve(stream(), right, memory.as({1, 2, 2}, {16, 8, 2}), false, false);
  EXPECT_TRUE(near(right.get(), {1, 2}, 0, 0));
}

TEST(TriangularSolve, NothingToSolveAndWrongSizes) {
  DeviceTensor left({1, 3, 3}, GRAFT_FLOAT32), none({1, 3, 0}, GRAFT_FLOAT32);
  DeviceTensor other({1, 4, 2}, GRAFT_FLOAT32), wide({1, 3, 1}, GRAFT_FLOAT64);
  triangular_solve(stream(), none, left, true, false);
  EXPECT_THROW(triangular_solve(stream(), other, left, true, false), Error);
  EXPECT_THROW(triangular_solve(stream(), wide, left, true, false), Error);
}

}  // namespace
