// tests/kernels/linalg/matrices.h: batches of matrices on the host, for the tests of linear
// algebra.
#pragma once

#include <utility>
#include <vector>

#include "tests/kernels/tensor/device_tensor.h"

namespace graft::test {

// A dense batch in row-major order, as DeviceTensor takes and gives its values.
struct Matrices {
  int64_t batch, rows, columns;
  std::vector<double> values;

  Matrices(int64_t batch, int64_t rows, int64_t columns)
      : batch(batch), rows(rows), columns(columns) {
    values.resize(static_cast<size_t>(batch * rows * columns));
  }
  Matrices(int64_t batch, int64_t rows, int64_t columns, std::vector<double> values)
      : batch(batch), rows(rows), columns(columns), values(std::move(values)) {}

  double& at(int64_t b, int64_t i, int64_t j) {
    return values[static_cast<size_t>((b * rows + i) * columns + j)];
  }
  double at(int64_t b, int64_t i, int64_t j) const {
    return values[static_cast<size_t>((b * rows + i) * columns + j)];
  }
  std::vector<int64_t> sizes() const { return {batch, rows, columns}; }
};

inline Matrices product(const Matrices& a, const Matrices& b) {
  Matrices c(a.batch, a.rows, b.columns);
  for (int64_t n = 0; n < a.batch; ++n) {
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t j = 0; j < b.columns; ++j) {
        for (int64_t k = 0; k < a.columns; ++k) c.at(n, i, j) += a.at(n, i, k) * b.at(n, k, j);
      }
    }
  }
  return c;
}

inline Matrices transposed_of(const Matrices& a) {
  Matrices t(a.batch, a.columns, a.rows);
  for (int64_t n = 0; n < a.batch; ++n) {
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t j = 0; j < a.columns; ++j) t.at(n, j, i) = a.at(n, i, j);
    }
  }
  return t;
}

// The upper or lower triangle, with ones on the diagonal when unit is set.
inline Matrices triangle_of(const Matrices& a, bool upper, bool unit) {
  Matrices t = a;
  for (int64_t n = 0; n < a.batch; ++n) {
    for (int64_t i = 0; i < a.rows; ++i) {
      for (int64_t j = 0; j < a.columns; ++j) {
        if (upper ? j < i : j > i) t.at(n, i, j) = 0;
        if (unit && i == j) t.at(n, i, j) = 1;
      }
    }
  }
  return t;
}

// Seeded values with a diagonal that keeps triangular systems well conditioned.
inline Matrices well_conditioned(int64_t batch, int64_t n, unsigned seed, graft_dtype dtype) {
  Matrices a(batch, n, n, numbers(batch * n * n, seed, -1, 1, dtype));
  for (int64_t b = 0; b < batch; ++b) {
    for (int64_t i = 0; i < n; ++i) a.at(b, i, i) += static_cast<double>(n);
  }
  for (double& x : a.values) x = rounded(x, dtype);
  return a;
}

// Strides of matrices that lie column by column (as LAPACK's) or row by row, with a gap between
// columns (rows) so that a kernel that forgets the strides shows.
inline std::vector<int64_t> strides_of(const Matrices& a, bool by_columns) {
  const int64_t line = (by_columns ? a.rows : a.columns) + 2;
  const int64_t lines = by_columns ? a.columns : a.rows;
  return by_columns ? std::vector<int64_t>{line * lines, 1, line}
                    : std::vector<int64_t>{line * lines, line, 1};
}

}  // namespace graft::test
