// tests/kernels/linalg/singular_values_test.cpp: A V = U S with orthogonal columns, values descend.
#include "kernels/linalg/singular_values.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/driver/error.h"
#include "tests/kernels/linalg/matrices.h"
#include "tests/kernels/tensor/complex_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr graft_dtype kTypes[] = {GRAFT_FLOAT32, GRAFT_FLOAT64};

struct Singular {
  std::vector<double> values;
  Matrices turned, vectors;
  std::vector<double> info;
};

Singular decomposed(const Matrices& a, graft_dtype dtype, bool by_columns = true,
                    bool with_vectors = true) {
  const Matrices square(a.batch, a.columns, a.columns);
  DeviceTensor matrices(a.sizes(), strides_of(a, by_columns), dtype);
  DeviceTensor vectors(square.sizes(), strides_of(square, by_columns), dtype);
  DeviceTensor values({a.batch, a.columns}, dtype), info({a.batch}, GRAFT_INT32);
  matrices.set(a.values);
  singular_values(stream(), values, with_vectors ? &vectors.view() : nullptr, matrices, info);
  return {values.get(),
          {a.batch, a.rows, a.columns, matrices.get()},
          {a.batch, a.columns, a.columns, vectors.get()},
          info.get()};
}

void check(const Matrices& a, graft_dtype dtype, bool by_columns = true) {
  const Singular found = decomposed(a, dtype, by_columns);
  const double bound = 100 * tolerance(dtype);
  EXPECT_EQ(found.info, std::vector<double>(static_cast<size_t>(a.batch), 0));
  const Matrices us = product(a, found.vectors), gram = product(transposed_of(us), us);
  const Matrices one = product(transposed_of(found.vectors), found.vectors);
  for (int64_t b = 0; b < a.batch; ++b) {
    const double* values = found.values.data() + b * a.columns;
    EXPECT_TRUE(std::is_sorted(values, values + a.columns, std::greater<>()));
    for (int64_t i = 0; i < a.columns; ++i) {
      for (int64_t j = 0; j < a.columns; ++j) {
        const double scale = std::max(values[0] * values[0], 1e-300);
        const double expected = i == j ? values[i] * values[i] : 0;
        EXPECT_LE(std::abs(gram.at(b, i, j) - expected), bound * scale) << i << " " << j;
        EXPECT_LE(std::abs(one.at(b, i, j) - (i == j ? 1 : 0)), bound);
      }
    }
  }
}

TEST(SingularValues, ColumnsBecomeOrthogonal) {
  const int64_t shapes[][3] = {{3, 1, 1}, {3, 5, 1}, {4, 2, 2}, {3, 7, 7}, {2, 40, 9}, {1, 64, 64}};
  for (const graft_dtype dtype : kTypes) {
    for (const auto& [batch, rows, columns] : shapes) {
      for (const bool by_columns : {true, false}) {
        check({batch, rows, columns, numbers(batch * rows * columns, 6, -2, 2, dtype)}, dtype,
              by_columns);
      }
    }
  }
}

TEST(SingularValues, KnownValues) {
  const Matrices a(3, 3, 2, {3, 0, 0, -4, 0, 0, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 0, 0});
  for (const graft_dtype dtype : kTypes) {
    for (const bool with_vectors : {true, false}) {
      EXPECT_TRUE(near(decomposed(a, dtype, true, with_vectors).values,
                       {4, 3, std::sqrt(6.0), 0, 0, 0}, tolerance(dtype), tolerance(dtype)));
    }
  }
}

TEST(SingularValues, MatricesOfLowRank) {
  for (const graft_dtype dtype : kTypes) {
    const Matrices left(2, 12, 3, numbers(72, 1, -1, 1)), right(2, 3, 10, numbers(60, 2, -1, 1));
    Matrices a = product(left, right);
    for (double& x : a.values) x = rounded(x, dtype);
    check(a, dtype);
    const Singular found = decomposed(a, dtype);
    for (size_t i = 3; i < 10; ++i) EXPECT_LE(found.values[i], 100 * tolerance(dtype));
  }
}

TEST(SingularValues, SizesOfElementsDoNotMatter) {
  const Matrices a(1, 4, 3, numbers(12, 9, -1, 1, GRAFT_FLOAT32));
  const std::vector<double> expected = decomposed(a, GRAFT_FLOAT64).values;
  for (const double scale : {1e30, 1e-30}) {
    Matrices scaled = a;
    for (double& x : scaled.values) x *= scale;
    std::vector<double> found = decomposed(scaled, GRAFT_FLOAT32).values;
    for (double& x : found) x /= scale;
    EXPECT_TRUE(near(found, expected, 1e-5, 1e-6));
  }
}

TEST(SingularValues, ComplexMatrices) {
  // A unitary matrix times diag(3, 2): columns (1, i) / sqrt 2 and (i, 1) / sqrt 2.
  const double r = std::sqrt(0.5);
  for (const graft_dtype dtype : {GRAFT_COMPLEX64, GRAFT_COMPLEX128}) {
    ComplexTensor matrices({1, 2, 2}, {4, 1, 2}, dtype), vectors({1, 2, 2}, {4, 1, 2}, dtype);
    DeviceTensor values({1, 2}, part_of(dtype)), info({1}, GRAFT_INT32);
    // Turned from the right by (1, 1; -1, 1) / sqrt 2, so that something has to be found.
    const test::Number p(3 * r), q(0, 2 * r), s(0, 3 * r), t(2 * r);
    matrices.set({(p - q) * r, (p + q) * r, (s - t) * r, (s + t) * r});
    singular_values(stream(), values, &vectors.view(), matrices, info);
    EXPECT_TRUE(near(values.get(), {3, 2}, tolerance(part_of(dtype)), 0));
    EXPECT_EQ(info.get(), std::vector<double>{0});
  }
}

TEST(SingularValues, NanIsTold) {
  Matrices a(2, 3, 2, numbers(12, 1));
  a.at(1, 0, 1) = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(decomposed(a, GRAFT_FLOAT64).info, (std::vector<double>{0, -4}));
}

TEST(SingularValues, RefusesWideMatricesAndOtherDtypes) {
  DeviceTensor wide({1, 2, 3}, GRAFT_FLOAT32), half({1, 2, 2}, GRAFT_FLOAT16);
  DeviceTensor values({1, 2}, GRAFT_FLOAT32), info({1}, GRAFT_INT32);
  EXPECT_THROW(singular_values(stream(), values, nullptr, wide, info), Error);
  EXPECT_THROW(singular_values(stream(), values, nullptr, half, info), Error);
}

}  // namespace
