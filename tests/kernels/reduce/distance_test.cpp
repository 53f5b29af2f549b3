// tests/kernels/reduce/distance_test.cpp: distances between rows and their gradients, in every
// norm.
#include "kernels/reduce/distance.h"

#include <cmath>
#include <limits>

#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNorms[] = {0, 0.5, 1, 1.5, 2, 3.25, kInf};

using Rows = std::vector<std::vector<double>>;

Rows rows_of(const std::vector<double>& x, size_t count, size_t width, size_t first = 0) {
  Rows rows;
  for (size_t i = 0; i < count; ++i) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>((first + i) * width);
    rows.emplace_back(begin, begin + static_cast<std::ptrdiff_t>(width));
  }
  return rows;
}

double distance(const std::vector<double>& a, const std::vector<double>& b, double p) {
  double folded = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    const double d = std::abs(a[i] - b[i]);
    if (p == 0) {
      folded += d != 0;
    } else if (std::isinf(p)) {
      folded = std::max(folded, d);
    } else {
      folded += std::pow(d, p);
    }
  }
  return p == 0 || std::isinf(p) ? folded : std::pow(folded, 1 / p);
}

// The derivative of distance(a, b) by a[i].
double slope(const std::vector<double>& a, const std::vector<double>& b, size_t i, double p) {
  const double whole = distance(a, b, p), d = a[i] - b[i];
  if (p == 0 || whole == 0 || d == 0) return 0;
  const double sign = d > 0 ? 1 : -1;
  if (std::isinf(p)) return std::abs(d) == whole ? sign : 0;
  return sign * std::pow(std::abs(d) / whole, p - 1);
}

constexpr size_t kBatch = 2, kN = 5, kK = 7, kM = 19;

struct Operands {
  explicit Operands(graft_dtype dtype)
      : a({kBatch, kN, kM}, dtype), b({kBatch, kK, kM}, dtype), x(numbers(kBatch * kN * kM, 1)) {
    y = numbers(kBatch * kK * kM, 2);
    for (size_t i = 0; i < kM; ++i) y[i] = x[i];  // one pair of equal rows
    for (double& value : x) value = rounded(value, dtype);
    for (double& value : y) value = rounded(value, dtype);
    a.set(x);
    b.set(y);
  }
  DeviceTensor a, b;
  std::vector<double> x, y;
};

TEST(Distance, CrossInEveryNorm) {
  for (const graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    const Operands operands(dtype);
    for (const double p : kNorms) {
      DeviceTensor output({kBatch, kN, kK}, dtype);
      cross_distances(stream(), output, operands.a, operands.b, p);
      std::vector<double> expected;
      for (size_t batch = 0; batch < kBatch; ++batch) {
        for (const auto& left : rows_of(operands.x, kN, kM, batch * kN)) {
          for (const auto& right : rows_of(operands.y, kK, kM, batch * kK)) {
            expected.push_back(distance(left, right, p));
          }
        }
      }
      const double relative = dtype == GRAFT_FLOAT32 ? 2e-5 : 1e-12;
      EXPECT_TRUE(near(output.get(), expected, relative, 0)) << name_of(dtype) << " p " << p;
    }
  }
}

TEST(Distance, CrossGradients) {
  const graft_dtype dtype = GRAFT_FLOAT64;
  const Operands operands(dtype);
  const auto g = numbers(kBatch * kN * kK, 3);
  DeviceTensor grad({kBatch, kN, kK}, dtype), distances({kBatch, kN, kK}, dtype);
  DeviceTensor slopes({kBatch, kN, kM}, dtype);
  grad.set(g);
  for (const double p : kNorms) {
    cross_distances(stream(), distances, operands.a, operands.b, p);
    cross_distances_backward(stream(), slopes, grad, operands.a, operands.b, distances, p);
    std::vector<double> expected;
    for (size_t row = 0; row < kBatch * kN; ++row) {
      const auto left = rows_of(operands.x, 1, kM, row)[0];
      const Rows others = rows_of(operands.y, kK, kM, row / kN * kK);
      for (size_t i = 0; i < kM; ++i) {
        double sum = 0;
        for (size_t j = 0; j < kK; ++j) sum += g[row * kK + j] * slope(left, others[j], i, p);
        expected.push_back(sum);
      }
    }
    EXPECT_TRUE(near(slopes.get(), expected, 1e-9, 1e-9)) << "p " << p;
  }
}

TEST(Distance, PairsAndTheirGradients) {
  const graft_dtype dtype = GRAFT_FLOAT64;
  const Operands operands(dtype);
  const TensorView a = operands.a.as({kBatch * kN, kM}, {kM, 1});
  const size_t n = kBatch * kN, pairs = n * (n - 1) / 2;
  const Rows rows = rows_of(operands.x, n, kM);
  const auto g = numbers(static_cast<int64_t>(pairs), 4);
  DeviceTensor output({static_cast<int64_t>(pairs)}, dtype),
      grad({static_cast<int64_t>(pairs)}, dtype);
  DeviceTensor slopes({static_cast<int64_t>(n), kM}, dtype);
  grad.set(g);
  for (const double p : kNorms) {
    pair_distances(stream(), output, a, p);
    pair_distances_backward(stream(), slopes, grad, a, output, p);
    std::vector<double> expected, sums(n * kM, 0.0);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = i + 1; j < n; ++j) {
        for (size_t c = 0; c < kM; ++c) {
          const double change = g[expected.size()] * slope(rows[i], rows[j], c, p);
          sums[i * kM + c] += change;
          sums[j * kM + c] -= change;
        }
        expected.push_back(distance(rows[i], rows[j], p));
      }
    }
    EXPECT_TRUE(near(output.get(), expected, 1e-12, 0)) << "p " << p;
    EXPECT_TRUE(near(slopes.get(), sums, 1e-9, 1e-9)) << "p " << p;
  }
}

TEST(Distance, NothingToDo) {
  DeviceTensor none({1, 0, 3}, GRAFT_FLOAT32), some({1, 2, 3}, GRAFT_FLOAT32);
  DeviceTensor output({1, 0, 2}, GRAFT_FLOAT32);
  cross_distances(stream(), output, none, some, 2);
  DeviceTensor narrow({1, 2, 0}, GRAFT_FLOAT32), zeros({1, 2, 2}, GRAFT_FLOAT32);
  cross_distances(stream(), zeros, narrow, narrow, 2);
  EXPECT_TRUE(near(zeros.get(), {0, 0, 0, 0}, 0, 0));
}

}  // namespace
