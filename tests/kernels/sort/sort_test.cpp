// tests/kernels/sort/sort_test.cpp: sorted lines against std::stable_sort on the host.
#include "kernels/sort/sort.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

// labels of the file: optimised
namespace {

using namespace graft;
using namespace graft::test;

constexpr graft_dtype kOrdered[] = {GRAFT_BOOL,    GRAFT_UINT8,  GRAFT_INT8,    GRAFT_INT16,
                                    GRAFT_INT32,   GRAFT_INT64,  GRAFT_FLOAT16, GRAFT_BFLOAT16,
                                    GRAFT_FLOAT32, GRAFT_FLOAT64};

bool comes_before(double a, double b, bool descending) {
  if (descending) return std::isnan(a) ? !std::isnan(b) : a > b;
  return std::isnan(b) ? !std::isnan(a) : a < b;
}

// Positions of the elements of one line in their sorted order.
std::vector<size_t> order_of(const std::vector<double>& line, bool descending) {
  std::vector<size_t> order(line.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return comes_before(line[a], line[b], descending); });
  return order;
}

// The values with all that is special, ties among them.
std::vector<double> special_numbers(int64_t count, unsigned seed, graft_dtype dtype) {
  std::vector<double> x = numbers(count, seed, dtype == GRAFT_UINT8 ? 0 : -100, 100, dtype);
  if (dtype == GRAFT_BOOL) {
    for (double& value : x) value = value > 0;
  } else if (!is_floating(dtype)) {
    for (double& value : x) value = std::floor(value);
  } else {
    const double infinity = std::numeric_limits<double>::infinity();
    const double special[] = {0.0, -0.0, std::nan(""), -infinity, infinity, -std::nan(""), 1, 1};
    for (size_t i = 0; i < x.size(); i += 3) x[i] = special[i / 3 % 8];
  }
  return x;
}

// Sorts [outer, n, inner] along dim 1.
void check(const TensorView& input, DeviceTensor& values, DeviceTensor& indices,
           const std::vector<double>& x, int64_t n, int64_t inner, bool descending) {
  std::vector<double> sorted(x.size()), places(x.size());
  const auto step = static_cast<size_t>(inner), length = static_cast<size_t>(n);
  for (size_t line = 0; line < x.size() / length; ++line) {
    const size_t base = line / step * length * step + line % step;
    std::vector<double> elements;
    for (size_t j = 0; j < length; ++j) elements.push_back(x[base + j * step]);
    const std::vector<size_t> order = order_of(elements, descending);
    for (size_t j = 0; j < length; ++j) {
      sorted[base + j * step] = elements[order[j]];
      places[base + j * step] = static_cast<double>(order[j]);
    }
  }
  sort(stream(), values, indices, input, 1, descending);
  EXPECT_TRUE(near(indices.get(), places, 0, 0));
  EXPECT_TRUE(near(values.get(), sorted, 0, 0));
}

void check_all(int64_t outer, int64_t n, int64_t inner, graft_dtype dtype) {
  SCOPED_TRACE(std::string(name_of(dtype)) + " of length " + std::to_string(n));
  const auto x = special_numbers(outer * n * inner, 1, dtype);
  for (bool descending : {false, true}) {
    DeviceTensor input({outer, n, inner}, dtype), values({outer, n, inner}, dtype);
    DeviceTensor indices({outer, n, inner}, GRAFT_INT64);
    check(input.set(x), values, indices, x, n, inner, descending);
  }
}

TEST(Sort, ShortRowsOfEveryDtype) {
  for (const graft_dtype dtype : kOrdered) check_all(5, 37, 1, dtype);
}

TEST(Sort, RowsOfEveryDtype) {
  for (const graft_dtype dtype : kOrdered) check_all(70, 301, 1, dtype);
}

TEST(Sort, LongRowsOfEveryDtype) {
  for (const graft_dtype dtype : kOrdered) check_all(2, 70001, 1, dtype);
}

TEST(Sort, Columns) {
  check_all(3, 40, 7, GRAFT_FLOAT32);
  check_all(3, 140, 7, GRAFT_INT64);
}

TEST(Sort, LinesOfOneAndRankZeroAndNothing) {
  check_all(9, 1, 1, GRAFT_FLOAT32);
  DeviceTensor input({}, GRAFT_FLOAT32), values({}, GRAFT_FLOAT32), indices({}, GRAFT_INT64);
  input.set({7});
  sort(stream(), values, indices, input, 0, true);
  EXPECT_EQ(values.get()[0], 7);
  EXPECT_EQ(indices.get()[0], 0);
  DeviceTensor nothing({3, 0}, GRAFT_FLOAT32), places({3, 0}, GRAFT_INT64);
  sort(stream(), nothing, places, nothing, 1, false);
}

TEST(Sort, StridedAndInPlace) {
  const auto x = special_numbers(4 * 90, 2, GRAFT_FLOAT32);
  DeviceTensor values({4, 90, 1}, {180, 2, 1}, GRAFT_FLOAT32);
  DeviceTensor indices({4, 90, 1}, {1, 4, 1}, GRAFT_INT64);
  values.set(x);
  check(values, values, indices, x, 90, 1, false);
}

TEST(Sort, EqualKeysSkipPasses) {
  std::vector<double> x(100000, 3.0);
  x[99999] = 2;
  DeviceTensor input({1, 100000, 1}, GRAFT_INT64), values({1, 100000, 1}, GRAFT_INT64);
  DeviceTensor indices({1, 100000, 1}, GRAFT_INT64);
  check(input.set(x), values, indices, x, 100000, 1, false);
}

TEST(Sort, RefusesComplexNumbers) {
  DeviceTensor x({4}, GRAFT_COMPLEX64), indices({4}, GRAFT_INT64);
  EXPECT_THROW(sort(stream(), x, indices, x, 0, false), Error);
}

}  // namespace
