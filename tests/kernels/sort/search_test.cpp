// tests/kernels/sort/search_test.cpp: binary search against std::lower_bound and std::upper_bound.
#include "kernels/sort/search.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

std::vector<double> sorted_row(size_t n, unsigned seed, graft_dtype dtype) {
  std::vector<double> row = numbers(static_cast<int64_t>(n), seed, 0, 30, dtype);
  for (double& x : row) x = std::floor(x);
  std::sort(row.begin(), row.end());
  return row;
}

double expected(const std::vector<double>& row, double value, bool right) {
  if (std::isnan(value)) return static_cast<double>(row.size());
  const auto at = right ? std::upper_bound(row.begin(), row.end(), value)
                        : std::lower_bound(row.begin(), row.end(), value);
  return static_cast<double>(at - row.begin());
}

TEST(Search, RowsOfEveryDtype) {
  for (const graft_dtype dtype : {GRAFT_UINT8, GRAFT_INT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64,
                                  GRAFT_FLOAT16, GRAFT_BFLOAT16, GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    for (const size_t n : {1u, 2u, 9u, 64u, 100u}) {
      const auto first = sorted_row(n, 1, dtype), second = sorted_row(n, 2, dtype);
      auto all = first;
      all.insert(all.end(), second.begin(), second.end());
      auto x = numbers(2 * 150, 3, 0, 31, dtype);
      if (!is_floating(dtype))
        std::transform(x.begin(), x.end(), x.begin(), [](double v) { return std::floor(v); });
      if (is_floating(dtype)) x[7] = x[200] = std::nan("");
      DeviceTensor rows({2, static_cast<int64_t>(n)}, dtype), values({2, 150}, dtype);
      DeviceTensor output({2, 150}, n % 2 == 0 ? GRAFT_INT64 : GRAFT_INT32);
      rows.set(all);
      values.set(x);
      for (const bool right : {false, true}) {
        search_sorted(stream(), output, rows, values, nullptr, right);
        std::vector<double> found;
        for (size_t i = 0; i < x.size(); ++i) {
          found.push_back(expected(i < 150 ? first : second, x[i], right));
        }
        EXPECT_TRUE(near(output.get(), found, 0, 0)) << name_of(dtype) << " " << n;
      }
    }
  }
}

TEST(Search, OneRowForAllAndASorter) {
  const std::vector<double> shuffled = {5, 1, 3, 9, 7}, order = {1, 2, 0, 4, 3};
  DeviceTensor row({5}, GRAFT_FLOAT32), sorter({5}, GRAFT_INT64), values({2, 3}, GRAFT_FLOAT32);
  DeviceTensor output({2, 3}, GRAFT_INT64);
  row.set(shuffled);
  sorter.set(order);
  values.set({0, 1, 4, 7, 9, 10});
  const TensorView by = sorter;
  search_sorted(stream(), output, row, values, &by, false);
  EXPECT_TRUE(near(output.get(), {0, 0, 2, 3, 4, 5}, 0, 0));
  search_sorted(stream(), output, row, values, &by, true);
  EXPECT_TRUE(near(output.get(), {0, 1, 2, 4, 5, 5}, 0, 0));
}

TEST(Search, EmptyRow) {
  DeviceTensor row({0}, GRAFT_INT32), values({2}, GRAFT_INT32), output({2}, GRAFT_INT64);
  values.set({1, 2});
  search_sorted(stream(), output, row, values, nullptr, true);
  EXPECT_TRUE(near(output.get(), {0, 0}, 0, 0));
}

}  // namespace
