// tests/kernels/sort/order_statistics_test.cpp: the k best elements, k-th elements, medians and
// modes against a sort on the host.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "kernels/sort/sort.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

// labels of the file: optimised
namespace {

using namespace graft;
using namespace graft::test;

constexpr graft_dtype kNumbers[] = {GRAFT_UINT8,    GRAFT_INT8,    GRAFT_INT16,
                                    GRAFT_INT32,    GRAFT_INT64,   GRAFT_FLOAT16,
                                    GRAFT_BFLOAT16, GRAFT_FLOAT32, GRAFT_FLOAT64};

// Integers from a small range, so that many are equal; NaN among those of floating dtypes.
std::vector<double> ties(int64_t count, unsigned seed, graft_dtype dtype, int nan_every = 0) {
  std::vector<double> x = numbers(count, seed, 0, 40);
  for (double& value : x) value = std::floor(value);
  if (!is_floating(dtype) || nan_every == 0) return x;
  for (size_t i = 1; i < x.size(); i += static_cast<size_t>(nan_every)) x[i] = std::nan("");
  return x;
}

std::vector<size_t> order_of(const std::vector<double>& x, size_t first, size_t n, bool largest) {
  std::vector<size_t> order(n);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t i, size_t j) {
    const double a = x[first + i], b = x[first + j];
    if (largest) return std::isnan(a) ? !std::isnan(b) : a > b;
    return std::isnan(b) ? !std::isnan(a) : a < b;
  });
  return order;
}

void check_top(graft_dtype dtype, int64_t rows, int64_t n, int64_t k,
               const std::vector<double>& x) {
  SCOPED_TRACE(std::string(name_of(dtype)) + " k " + std::to_string(k));
  DeviceTensor input({rows, n}, dtype), values({rows, k}, dtype), indices({rows, k}, GRAFT_INT64);
  input.set(x);
  for (bool largest : {true, false}) {
    std::vector<double> best, places;
    for (int64_t row = 0; row < rows; ++row) {
      const auto first = static_cast<size_t>(row * n);
      const auto order = order_of(x, first, static_cast<size_t>(n), largest);
      for (size_t i = 0; i < static_cast<size_t>(k); ++i) {
        best.push_back(x[first + order[i]]);
        places.push_back(static_cast<double>(order[i]));
      }
    }
    top_k(stream(), values, indices, input, 1, largest);
    EXPECT_TRUE(near(indices.get(), places, 0, 0));
    EXPECT_TRUE(near(values.get(), best, 0, 0));
  }
}

TEST(TopK, OfEveryDtype) {
  for (const graft_dtype dtype : kNumbers) check_top(dtype, 9, 700, 11, ties(6300, 1, dtype, 50));
}

TEST(TopK, OfEverySize) {
  const auto x = numbers(3 * 300, 3, -9, 9, GRAFT_FLOAT32);
  for (const int64_t k : {1, 2, 63, 64, 65, 299, 300}) check_top(GRAFT_FLOAT32, 3, 300, k, x);
  std::vector<double> rising(3 * 300);
  std::iota(rising.begin(), rising.end(), -450.0);
  for (const int64_t k : {1, 40, 64}) check_top(GRAFT_FLOAT32, 3, 300, k, rising);
  check_top(GRAFT_FLOAT32, 900, 1, 1, rising);
}

TEST(TopK, OfColumns) {
  const auto x = numbers(50 * 6, 4);
  DeviceTensor input({50, 6}, GRAFT_FLOAT64), values({3, 6}, GRAFT_FLOAT64);
  DeviceTensor indices({3, 6}, GRAFT_INT64);
  input.set(x);
  top_k(stream(), values, indices, input, 0, true);
  const auto best = values.get(), places = indices.get();
  for (size_t column = 0; column < 6; ++column) {
    std::vector<double> line;
    for (size_t i = 0; i < 50; ++i) line.push_back(x[i * 6 + column]);
    const auto order = order_of(line, 0, 50, true);
    for (size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(places[i * 6 + column], static_cast<double>(order[i]));
      EXPECT_EQ(best[i * 6 + column], line[order[i]]);
    }
  }
}

// What pick() finds in one line: the place in its sorted order.
size_t place_of(Pick which, const std::vector<double>& sorted, size_t nth) {
  const size_t n = sorted.size();
  const auto nan = static_cast<size_t>(
      std::count_if(sorted.begin(), sorted.end(), [](double x) { return std::isnan(x); }));
  if (which == Pick::kNth) return nth;
  if (which == Pick::kMedian) return nan > 0 ? n - nan : (n - 1) / 2;
  if (which == Pick::kNanMedian) return n == nan ? 0 : (n - nan - 1) / 2;
  size_t best = 0, longest = 0, length = 0;
  for (size_t i = 0; i < n; ++i) {
    ++length;
    if (i + 1 < n && sorted[i + 1] == sorted[i]) continue;
    if (length > longest) {
      best = i;
      longest = length;
    }
    length = 0;
  }
  return best;
}

void check_pick(Pick which, graft_dtype dtype, int64_t rows, int64_t n, int64_t nth, int every) {
  SCOPED_TRACE(std::string(name_of(dtype)) + " pick " + std::to_string(static_cast<int>(which)));
  const auto x = ties(rows * n, 5, dtype, every);
  std::vector<double> picked, places;
  for (int64_t row = 0; row < rows; ++row) {
    const auto first = static_cast<size_t>(row * n);
    const auto order = order_of(x, first, static_cast<size_t>(n), false);
    std::vector<double> sorted;
    for (const size_t i : order) sorted.push_back(x[first + i]);
    const size_t place = place_of(which, sorted, static_cast<size_t>(nth));
    picked.push_back(sorted[place]);
    places.push_back(static_cast<double>(order[place]));
  }
  DeviceTensor input({rows, n}, dtype), values({rows, 1}, dtype), indices({rows, 1}, GRAFT_INT64);
  input.set(x);
  pick(stream(), which, values, indices, input, 1, nth);
  EXPECT_TRUE(near(indices.get(), places, 0, 0));
  EXPECT_TRUE(near(values.get(), picked, 0, 0));
}

TEST(Pick, OfEveryDtype) {
  for (const graft_dtype dtype : kNumbers) {
    for (const Pick which : {Pick::kNth, Pick::kMedian, Pick::kNanMedian, Pick::kMode}) {
      check_pick(which, dtype, 6, 101, 17, 300);
    }
  }
}

TEST(Pick, OfLinesWithNan) {
  for (const Pick which : {Pick::kMedian, Pick::kNanMedian, Pick::kMode}) {
    check_pick(which, GRAFT_FLOAT32, 5, 30, 0, 7);
    check_pick(which, GRAFT_FLOAT32, 5, 1, 0, 1);
    check_pick(which, GRAFT_FLOAT32, 1, 8, 0, 1);
  }
  check_pick(Pick::kNth, GRAFT_FLOAT32, 1, 70000, 69999, 9);
}

TEST(Pick, OfLongRowsOfEveryDtype) {
  for (const graft_dtype dtype : kNumbers) {
    for (const Pick which : {Pick::kNth, Pick::kMedian, Pick::kNanMedian, Pick::kMode}) {
      check_pick(which, dtype, 2, 70001, 60000, which == Pick::kMedian ? 0 : 11);
    }
  }
  check_pick(Pick::kMedian, GRAFT_FLOAT32, 1, 70001, 0, 69000);
  check_pick(Pick::kNanMedian, GRAFT_FLOAT64, 1, 65536, 0, 1);
}

TEST(Pick, RefusesComplexNumbers) {
  DeviceTensor x({4}, GRAFT_COMPLEX64), one({1}, GRAFT_COMPLEX64), at({1}, GRAFT_INT64);
  EXPECT_THROW(pick(stream(), Pick::kMode, one, at, x, 0), Error);
  EXPECT_THROW(top_k(stream(), one, at, x, 0, true), Error);
}

}  // namespace
