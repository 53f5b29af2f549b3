// tests/kernels/linalg/cholesky_test.cpp: L L^T = A holds, and matrices that are not positive are
// told.
#include "kernels/linalg/cholesky.h"

#include <cmath>

#include "kernels/linalg/matrix_batch.h"
#include "runtime/driver/error.h"
#include "tests/kernels/linalg/matrices.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr graft_dtype kTypes[] = {GRAFT_FLOAT32, GRAFT_FLOAT64};

Matrices positive(int64_t batch, int64_t n, graft_dtype dtype) {
  const Matrices a(batch, n, n, numbers(batch * n * n, 6, -1, 1, dtype));
  Matrices p = product(a, transposed_of(a));
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < n; ++i) p.at(b, i, i) += 1;
  }
  for (double& x : p.values) x = rounded(x, dtype);
  return p;
}

TEST(Cholesky, ProductOfTheFactor) {
  for (const graft_dtype dtype : kTypes) {
    for (const int64_t n : {1, 2, 7, 33, 100}) {
      for (const bool by_columns : {true, false}) {
        const Matrices a = positive(2, n, dtype);
        DeviceTensor matrices(a.sizes(), strides_of(a, by_columns), dtype);
        DeviceTensor info({2}, GRAFT_INT32);
        matrices.set(a.values);
        cholesky_factor(stream(), matrices, info);
        const Matrices found(2, n, n, matrices.get());
        const Matrices l = triangle_of(found, false, false);
        const double error = 10 * tolerance(dtype);
        EXPECT_TRUE(near(product(l, transposed_of(l)).values, a.values, error, error)) << n;
        EXPECT_EQ(info.get(), (std::vector<double>{0, 0}));
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t j = i + 1; j < n; ++j) EXPECT_EQ(found.at(1, i, j), a.at(1, i, j));
        }
      }
    }
  }
}

TEST(Cholesky, OneTriangleIsRead) {
  const double nan = std::nan("");
  DeviceTensor matrices({1, 2, 2}, GRAFT_FLOAT64), info({1}, GRAFT_INT32);
  matrices.set({4, nan, 2, 5});
  cholesky_factor(stream(), matrices, info);
  EXPECT_TRUE(near(matrices.get(), {2, nan, 1, 2}, 0, 0));
  matrices.set({4, 2, nan, 5});
  cholesky_factor(stream(), transposed(matrices), info);
  EXPECT_TRUE(near(matrices.get(), {2, 1, nan, 2}, 0, 0));
}

TEST(Cholesky, NotPositiveDefinite) {
  const double nan = std::nan("");
  DeviceTensor matrices({4, 2, 2}, GRAFT_FLOAT32), info({4}, GRAFT_INT32);
  matrices.set({1, 2, 2, 1, 0, 0, 0, 0, 1, 0, 0, 1, 1, nan, nan, nan});
  cholesky_factor(stream(), matrices, info);
  EXPECT_EQ(info.get(), (std::vector<double>{2, 1, 0, 2}));
}

TEST(Cholesky, EmptyAndNotSquare) {
  DeviceTensor none({2, 0, 0}, GRAFT_FLOAT32), info({2}, GRAFT_INT32);
  cholesky_factor(stream(), none, info);
  EXPECT_EQ(info.get(), (std::vector<double>{0, 0}));
  DeviceTensor wide({2, 2, 3}, GRAFT_FLOAT32);
  EXPECT_THROW(cholesky_factor(stream(), wide, info), Error);
}

}  // namespace
