// tests/kernels/matmul/matmul_test.cpp: matrix products, by library and by kernel, against triple
// loops.
#include "kernels/matmul/matmul.h"

#include <algorithm>
#include <cmath>

#include "kernels/launch/lanes.h"
#include "kernels/launch/library.h"
#include "kernels/matmul/kernel.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "runtime/stream/command_trace.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

using Product = void (*)(Stream&, const TensorView&, const TensorView&, const TensorView&,
                         const MatmulEpilogue&);

std::vector<double> expect(const std::vector<double>& a, const std::vector<double>& b, int64_t m,
                           int64_t k, int64_t n) {
  std::vector<double> c(static_cast<size_t>(m * n));
  for (int64_t i = 0; i < m; ++i) {
    for (int64_t j = 0; j < n; ++j) {
      double sum = 0;
      for (int64_t p = 0; p < k; ++p) {
        sum += a[static_cast<size_t>(i * k + p)] * b[static_cast<size_t>(p * n + j)];
      }
      c[static_cast<size_t>(i * n + j)] = sum;
    }
  }
  return c;
}

void check(Product product, graft_dtype dtype, int64_t m, int64_t k, int64_t n, bool swap_a,
           bool swap_b) {
  SCOPED_TRACE(std::string(name_of(dtype)) + " " + std::to_string(m) + " " + std::to_string(k) +
               " " + std::to_string(n) + (swap_a ? " a^T" : "") + (swap_b ? " b^T" : ""));
  const auto x = numbers(m * k, 1, -3, 3, dtype), y = numbers(k * n, 2, -3, 3, dtype);
  DeviceTensor a({m, k}, swap_a ? std::vector<int64_t>{1, m} : std::vector<int64_t>{k, 1}, dtype);
  DeviceTensor b({k, n}, swap_b ? std::vector<int64_t>{1, k} : std::vector<int64_t>{n, 1}, dtype);
  a.set(x);
  b.set(y);
  DeviceTensor c({m, n}, dtype);
  product(stream(), c, a, b, {});
  const double t = tolerance(dtype);
  EXPECT_TRUE(near(c.get(), expect(x, y, m, k, n), t, 9 * t * std::sqrt(static_cast<double>(k))));
}

class Matmul : public ::testing::TestWithParam<Product> {};

TEST_P(Matmul, EveryDtypeAndTranspose) {
  const int64_t shapes[][3] = {{1, 1, 1},    {5, 7, 3},   {33, 65, 17}, {1, 100, 64},
                               {64, 100, 1}, {3, 77, 19}, {7, 131, 40}, {21, 64, 6}};
  for (auto& s : shapes) {
    for (int swaps = 0; swaps < 4; ++swaps) {
      check(GetParam(), GRAFT_FLOAT32, s[0], s[1], s[2], swaps & 1, swaps & 2);
    }
    for (auto dtype : {GRAFT_FLOAT64, GRAFT_BFLOAT16, GRAFT_FLOAT16, GRAFT_INT64, GRAFT_INT32}) {
      check(GetParam(), dtype, s[0], s[1], s[2], false, true);
    }
  }
}

// labels: torn_tables
TEST_P(Matmul, ScalesAndAdds) {
  const int64_t m = 9, k = 20, n = 13;
  const auto x = numbers(m * k, 1), y = numbers(k * n, 2), z = numbers(m * n, 3);
  DeviceTensor a({m, k}, GRAFT_FLOAT32), b({k, n}, GRAFT_FLOAT32), c({m, n}, GRAFT_FLOAT32);
  DeviceTensor full({m, n}, GRAFT_FLOAT32), row({1, n}, GRAFT_FLOAT32);
  a.set(x), b.set(y), full.set(z);
  row.set({z.begin(), z.begin() + n});
  const TensorView bias = row.spread(c, {0});
  const auto product = expect(x, y, m, k, n);
  for (bool whole : {false, true}) {
    for (double beta : {1.0, -0.5}) {
      auto expected = product;
      for (size_t i = 0; i < expected.size(); ++i) {
        expected[i] = 2 * expected[i] + beta * z[whole ? i : i % n];
      }
      GetParam()(stream(), c, a, b, {2.0, beta, whole ? &full.view() : &bias, false});
      EXPECT_TRUE(near(c.get(), expected, 1e-5, 1e-5));
    }
  }
  auto expected = product;
  for (size_t i = 0; i < expected.size(); ++i) expected[i] = std::max(0.0, product[i] + z[i % n]);
  GetParam()(stream(), c, a, b, {1.0, 1.0, &bias, true});
  EXPECT_TRUE(near(c.get(), expected, 1e-5, 1e-5));
}

TEST_P(Matmul, AddsToItself) {
  for (const int64_t rows : {40, 1}) {
    for (const double beta : {1.0, 3.0}) {
      const auto x = numbers(rows * 50, 1), y = numbers(50 * 30, 2), z = numbers(rows * 30, 3);
      DeviceTensor a({rows, 50}, GRAFT_FLOAT32), b({50, 30}, GRAFT_FLOAT32);
      DeviceTensor c({rows, 30}, GRAFT_FLOAT32);
      a.set(x), b.set(y), c.set(z);
      auto expected = expect(x, y, rows, 50, 30);
      for (size_t i = 0; i < expected.size(); ++i) expected[i] += beta * z[i];
      GetParam()(stream(), c, a, b, {1.0, beta, &c.view(), false});
      EXPECT_TRUE(near(c.get(), expected, 1e-5, 1e-5)) << rows << " rows, beta " << beta;
    }
  }
}

TEST_P(Matmul, Batches) {
  const int64_t batch = 3, m = 6, k = 11, n = 5;
  const auto x = numbers(batch * m * k, 1), y = numbers(k * n, 2);
  DeviceTensor a({batch, m, k}, GRAFT_FLOAT32), b({k, n}, GRAFT_FLOAT32);
  DeviceTensor c({batch, m, n}, GRAFT_FLOAT32);
  a.set(x), b.set(y);
  const TensorView same = b.as({batch, k, n}, {0, n, 1});
  GetParam()(stream(), c, a, same, {});
  std::vector<double> expected;
  for (int64_t i = 0; i < batch; ++i) {
    const auto one = expect({x.begin() + i * m * k, x.begin() + (i + 1) * m * k}, y, m, k, n);
    expected.insert(expected.end(), one.begin(), one.end());
  }
  EXPECT_TRUE(near(c.get(), expected, 1e-5, 1e-5));
}

// Large enough for register blocks: edges of every kind, and strides that no panel copies at once.
// labels: opencl_cpu
TEST_P(Matmul, EdgesOfBlocks) {
  const int64_t shapes[][3] = {{8, 64, 32}, {9, 65, 33}, {23, 130, 70}, {4, 300, 40}, {70, 10, 31}};
  for (auto& s : shapes) {
    for (int swaps = 0; swaps < 4; ++swaps) {
      check(GetParam(), GRAFT_FLOAT32, s[0], s[1], s[2], swaps & 1, swaps & 2);
    }
  }
  for (auto dtype : {GRAFT_BFLOAT16, GRAFT_FLOAT16})
    check(GetParam(), dtype, 23, 130, 70, true, false);
}

// labels: opencl_cpu
TEST_P(Matmul, BlocksOfABatchWithEpilogue) {
  const int64_t batch = 3, m = 21, k = 50, n = 37;
  const auto x = numbers(batch * m * k, 1), y = numbers(batch * k * n, 2), z = numbers(n, 3);
  DeviceTensor a({batch, m, k}, {m * k + 3, 1, m}, GRAFT_FLOAT32);
  DeviceTensor b({batch, k, n}, {2 * k * n, 2 * n, 2}, GRAFT_FLOAT32);
  DeviceTensor c({batch, m, n}, {m * n, 1, m}, GRAFT_FLOAT32), row({1, 1, n}, GRAFT_FLOAT32);
  a.set(x), b.set(y), row.set(z);
  const TensorView bias = row.spread(c, {0, 1});
  for (const bool shared : {false, true}) {
    TensorView factor = b;
    if (shared) factor.strides[0] = 0;
    GetParam()(stream(), c, a, factor, {-0.5, 2.0, &bias, true});
    std::vector<double> expected;
    for (int64_t i = 0; i < batch; ++i) {
      const int64_t j = shared ? 0 : i;
      const auto one = expect({x.begin() + i * m * k, x.begin() + (i + 1) * m * k},
                              {y.begin() + j * k * n, y.begin() + (j + 1) * k * n}, m, k, n);
      for (size_t e = 0; e < one.size(); ++e) {
        expected.push_back(std::max(0.0, -0.5 * one[e] + 2 * z[e % static_cast<size_t>(n)]));
      }
    }
    EXPECT_TRUE(near(c.get(), expected, 1e-4, 1e-4)) << (shared ? "shared" : "own") << " factor";
  }
}

// Lines of two elements a word: whole and broken blocks of words, odd lines, more columns than one
// work-item takes, and few columns in the place of few rows.
TEST_P(Matmul, FewRowsOfBfloat16) {
  for (const int64_t m : {1, 2, 3, 7}) {
    for (const int64_t k : {32, 33, 34, 50, 1030}) {
      for (const int64_t n : {3, 8, 37}) {
        check(GetParam(), GRAFT_BFLOAT16, m, k, n, false, true);
        check(GetParam(), GRAFT_BFLOAT16, n + 8, k, m, false, true);
      }
    }
  }
}

TEST_P(Matmul, FewRowsOfBfloat16AddToThemselves) {
  const int64_t batch = 2, m = 2, k = 70, n = 5;
  const auto x = numbers(batch * m * k, 1, -3, 3, GRAFT_BFLOAT16);
  const auto y = numbers(batch * k * n, 2, -3, 3, GRAFT_BFLOAT16);
  const auto z = numbers(batch * m * n, 3, -3, 3, GRAFT_BFLOAT16);
  for (const int64_t gap : {2, 3}) {  // words that lie on whole addresses, and that do not
    DeviceTensor a({batch, m, k}, {m * (k + gap), k + gap, 1}, GRAFT_BFLOAT16);
    DeviceTensor b({batch, k, n}, {(k + gap) * n, 1, k + gap}, GRAFT_BFLOAT16);
    DeviceTensor c({batch, m, n}, GRAFT_BFLOAT16);
    a.set(x), b.set(y), c.set(z);
    GetParam()(stream(), c, a, b, {0.5, 2.0, &c.view(), false});
    std::vector<double> expected;
    for (int64_t i = 0; i < batch; ++i) {
      const auto one = expect({x.begin() + i * m * k, x.begin() + (i + 1) * m * k},
                              {y.begin() + i * k * n, y.begin() + (i + 1) * k * n}, m, k, n);
      for (const double value : one) {
        expected.push_back(0.5 * value + 2 * z[expected.size()]);
      }
    }
    EXPECT_TRUE(near(c.get(), expected, 1e-2, 0.1)) << gap;
  }
}

TEST_P(Matmul, NothingToSum) {
  DeviceTensor a({2, 0}, GRAFT_FLOAT32), b({0, 3}, GRAFT_FLOAT32), c({2, 3}, GRAFT_FLOAT32);
  GetParam()(stream(), c, a, b, {});
  EXPECT_TRUE(near(c.get(), std::vector<double>(6, 0.0), 0, 0));
  DeviceTensor row({1, 3}, GRAFT_FLOAT32);
  row.set({1, 2, 3});
  const TensorView bias = row.spread(c, {0});
  GetParam()(stream(), c, a, b, {1.0, 2.0, &bias, false});
  EXPECT_TRUE(near(c.get(), {2, 4, 6, 2, 4, 6}, 0, 0));
}

TEST(MatmulArguments, AreChecked) {
  DeviceTensor a({2, 3}, GRAFT_FLOAT32), b({4, 3}, GRAFT_FLOAT32), c({2, 3}, GRAFT_FLOAT32);
  EXPECT_THROW(matmul(stream(), c, a, b), Error);
  DeviceTensor d({3, 3}, GRAFT_FLOAT64);
  EXPECT_THROW(matmul(stream(), c, a, d), Error);
}

// Whether a product of n x n matrices runs as the generated kernel of rows.
bool runs_as_rows(int64_t n) {
  DeviceTensor a({n, n}, GRAFT_FLOAT32), b({n, n}, GRAFT_FLOAT32), c({n, n}, GRAFT_FLOAT32);
  a.set(numbers(n * n, 1, -3, 3, GRAFT_FLOAT32));
  b.set(numbers(n * n, 2, -3, 3, GRAFT_FLOAT32));
  trace_commands();
  matmul(stream(), c, a, b);
  const std::vector<TracedCommand> found = take_traced_commands();
  return std::ranges::any_of(found,
                             [](const TracedCommand& one) { return one.name == "matmul_float32"; });
}

TEST(MatmulLibrary, TinyProductsSkipIt) {
  const bool processor = !is_gpu_like(device());
  EXPECT_EQ(runs_as_rows(2), processor);
  EXPECT_EQ(runs_as_rows(16), processor);
  if (has_blas(device())) {
    EXPECT_FALSE(runs_as_rows(17));
  }
}

INSTANTIATE_TEST_SUITE_P(LibraryOrKernel, Matmul, ::testing::Values(&matmul, &generated_matmul));

}  // namespace
