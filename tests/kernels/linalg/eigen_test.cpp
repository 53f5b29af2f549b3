// tests/kernels/linalg/eigen_test.cpp: A V = V diag(w) holds, V is orthonormal, w ascends.
#include "kernels/linalg/eigen.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "runtime/driver/error.h"
#include "tests/kernels/linalg/matrices.h"
#include "tests/kernels/tensor/complex_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr graft_dtype kTypes[] = {GRAFT_FLOAT32, GRAFT_FLOAT64};
constexpr double kJunk = 77;

struct Eigen {
  std::vector<double> values;
  Matrices vectors;
  std::vector<double> info;
};

// The other triangle than the one that is read holds junk.
Eigen decomposed(Matrices a, graft_dtype dtype, bool upper, bool by_columns = true,
                 bool with_vectors = true) {
  for (int64_t b = 0; b < a.batch; ++b) {
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t j = 0; j < a.rows; ++j) {
        if (upper ? j < i : j > i) a.at(b, i, j) = kJunk;
      }
    }
  }
  DeviceTensor matrices(a.sizes(), strides_of(a, by_columns), dtype);
  DeviceTensor vectors(a.sizes(), strides_of(a, by_columns), dtype);
  DeviceTensor values({a.batch, a.rows}, dtype), info({a.batch}, GRAFT_INT32);
  matrices.set(a.values);
  symmetric_eigen(stream(), values, with_vectors ? &vectors.view() : nullptr, matrices, info,
                  upper);
  return {values.get(), {a.batch, a.rows, a.rows, vectors.get()}, info.get()};
}

Matrices symmetric(int64_t batch, int64_t n, unsigned seed, graft_dtype dtype) {
  Matrices a(batch, n, n, numbers(batch * n * n, seed, -2, 2, dtype));
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < n; ++i) {
      for (int64_t j = 0; j < i; ++j) a.at(b, j, i) = a.at(b, i, j);
    }
  }
  return a;
}

Matrices scaled_columns(Matrices a, const std::vector<double>& values) {
  for (int64_t b = 0; b < a.batch; ++b) {
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t j = 0; j < a.columns; ++j) {
        a.at(b, i, j) *= values[static_cast<size_t>(b * a.columns + j)];
      }
    }
  }
  return a;
}

Matrices identity(int64_t batch, int64_t n) {
  Matrices one(batch, n, n);
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < n; ++i) one.at(b, i, i) = 1;
  }
  return one;
}

void check(const Matrices& a, graft_dtype dtype, const Eigen& found) {
  const int64_t n = a.rows;
  const double bound = 8 * std::sqrt(static_cast<double>(n)) * tolerance(dtype);
  const Matrices back = product(a, found.vectors);
  EXPECT_TRUE(near(back.values, scaled_columns(found.vectors, found.values).values, 0, bound * 4));
  const Matrices gram = product(transposed_of(found.vectors), found.vectors);
  EXPECT_TRUE(near(gram.values, identity(a.batch, n).values, 0, bound)) << n;
  EXPECT_EQ(found.info, std::vector<double>(static_cast<size_t>(a.batch), 0));
  for (int64_t b = 0; b < a.batch; ++b) {
    const auto first = found.values.begin() + b * n;
    EXPECT_TRUE(std::is_sorted(first, first + n));
  }
}

TEST(Eigen, VectorsTurnTheMatrixDiagonal) {
  const int64_t shapes[][2] = {{3, 1}, {4, 2}, {3, 3}, {5, 7}, {2, 16}, {2, 33}, {1, 64}};
  for (const graft_dtype dtype : kTypes) {
    for (const auto& [batch, n] : shapes) {
      for (const bool upper : {true, false}) {
        const Matrices a = symmetric(batch, n, 3, dtype);
        check(a, dtype, decomposed(a, dtype, upper, upper == (n != 7)));
      }
    }
  }
}

TEST(Eigen, ValuesAloneAreTheSame) {
  const Matrices a = symmetric(3, 9, 11, GRAFT_FLOAT64);
  EXPECT_TRUE(near(decomposed(a, GRAFT_FLOAT64, false, true, false).values,
                   decomposed(a, GRAFT_FLOAT64, false).values, 1e-14, 1e-14));
}

TEST(Eigen, KnownValues) {
  for (const graft_dtype dtype : kTypes) {
    const Eigen found =
        decomposed({4, 2, 2, {2, 1, 1, 2, 0, 1, 1, 0, 0, 0, 0, 0, 5, 0, 0, -3}}, dtype, false);
    EXPECT_TRUE(near(found.values, {1, 3, -1, 1, 0, 0, -3, 5}, tolerance(dtype), tolerance(dtype)));
  }
}

TEST(Eigen, RepeatedValuesKeepAnOrthonormalBasis) {
  // The projection off (1, 1, ..., 1): 0 once, 1 five times.
  Matrices a = identity(1, 6);
  for (double& x : a.values) x -= 1.0 / 6;
  const Eigen found = decomposed(a, GRAFT_FLOAT64, false);
  check(a, GRAFT_FLOAT64, found);
  EXPECT_TRUE(near(found.values, {0, 1, 1, 1, 1, 1}, 1e-14, 1e-14));
}

TEST(Eigen, SizesOfElementsDoNotMatter) {
  for (const double scale : {1e30, 1e-30}) {
    Matrices a = symmetric(1, 5, 2, GRAFT_FLOAT32);
    const Eigen expected = decomposed(a, GRAFT_FLOAT64, false);
    for (double& x : a.values) x *= scale;
    Eigen found = decomposed(a, GRAFT_FLOAT32, false);
    for (double& x : found.values) x /= scale;
    EXPECT_TRUE(near(found.values, expected.values, 1e-5, 1e-5));
  }
}

TEST(Eigen, SmallValuesOfGradedMatricesComeOut) {
  const Eigen found = decomposed({1, 2, 2, {1, 1e-4, 1e-4, 1.01e-8}}, GRAFT_FLOAT64, false);
  const double small = found.values[0];
  EXPECT_NEAR(small, 1e-10, 1e-14);
}

TEST(Eigen, HermitianMatrices) {
  for (const graft_dtype dtype : {GRAFT_COMPLEX64, GRAFT_COMPLEX128}) {
    const int64_t n = 9;
    std::vector<test::Number> a = complex_numbers(n * n, 4, dtype);
    const auto at = [&](int64_t i, int64_t j) -> test::Number& {
      return a[static_cast<size_t>(i * n + j)];
    };
    for (int64_t i = 0; i < n; ++i) {
      at(i, i) = at(i, i).real();
      for (int64_t j = 0; j < i; ++j) at(j, i) = std::conj(at(i, j));
    }
    for (const bool upper : {true, false}) {
      ComplexTensor matrices({1, n, n}, {n * n, 1, n}, dtype);
      ComplexTensor vectors({1, n, n}, {n * n, n, 1}, dtype);
      DeviceTensor values({1, n}, part_of(dtype)), info({1}, GRAFT_INT32);
      matrices.set(a);
      symmetric_eigen(stream(), values, &vectors.view(), matrices, info, upper);
      const std::vector<double> w = values.get(), parts = vectors.parts();
      const auto v = [&](int64_t i, int64_t j) {
        const auto k = static_cast<size_t>(2 * (i * n + j));
        return test::Number(parts[k], parts[k + 1]);
      };
      for (int64_t i = 0; i < n; ++i) {
        for (int64_t j = 0; j < n; ++j) {
          test::Number turned = 0, gram = 0;
          for (int64_t k = 0; k < n; ++k) {
            turned += at(i, k) * v(k, j);
            gram += std::conj(v(k, i)) * v(k, j);
          }
          const double bound = 50 * tolerance(part_of(dtype));
          EXPECT_LE(std::abs(turned - w[static_cast<size_t>(j)] * v(i, j)), bound);
          EXPECT_LE(std::abs(gram - (i == j ? 1.0 : 0.0)), bound);
        }
      }
    }
  }
}

TEST(Eigen, NanIsTold) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  Matrices a = identity(3, 3);
  a.at(1, 2, 0) = nan;
  const Eigen found = decomposed(a, GRAFT_FLOAT32, false);
  EXPECT_EQ(found.info, (std::vector<double>{0, 2, 0}));
}

TEST(Eigen, RefusesWhatIsNotSquare) {
  DeviceTensor matrices({1, 2, 3}, GRAFT_FLOAT32), half({1, 2, 2}, GRAFT_FLOAT16);
  DeviceTensor values({1, 2}, GRAFT_FLOAT32), info({1}, GRAFT_INT32);
  EXPECT_THROW(symmetric_eigen(stream(), values, nullptr, matrices, info, false), Error);
  EXPECT_THROW(symmetric_eigen(stream(), values, nullptr, half, info, false), Error);
}

}  // namespace
