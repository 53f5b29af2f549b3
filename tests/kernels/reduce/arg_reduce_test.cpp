// tests/kernels/reduce/arg_reduce_test.cpp: positions of extrema against a loop on the host.
#include <cmath>

#include "kernels/reduce/reduce.h"
#include "runtime/driver/dtype.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

bool wins(double x, double best, Extremum extremum) {
  if (std::isnan(best)) return false;
  if (std::isnan(x)) return true;
  return extremum == Extremum::kMax ? x > best : x < best;
}

void check(Extremum extremum, graft_dtype dtype, const std::vector<double>& x, int64_t outer,
           int64_t n, int64_t inner) {
  SCOPED_TRACE(std::string(name_of(dtype)) + " [" + std::to_string(outer) + ", " +
               std::to_string(n) + ", " + std::to_string(inner) + "]");
  DeviceTensor input({outer, n, inner}, dtype);
  input.set(x);
  std::vector<double> positions, values;
  for (int64_t o = 0; o < outer; ++o) {
    for (int64_t i = 0; i < inner; ++i) {
      int64_t best = 0;
      auto at = [&](int64_t j) { return x[static_cast<size_t>((o * n + j) * inner + i)]; };
      for (int64_t j = 1; j < n; ++j) {
        if (wins(at(j), at(best), extremum)) best = j;
      }
      positions.push_back(static_cast<double>(best));
      values.push_back(at(best));
    }
  }
  DeviceTensor indices({outer, 1, inner}, GRAFT_INT64), other({outer, 1, inner}, GRAFT_INT64);
  DeviceTensor extreme({outer, 1, inner}, dtype);
  arg_reduce(stream(), extremum, indices.spread(input, {1}), input);
  EXPECT_TRUE(near(indices.get(), positions, 0, 0));
  reduce_with_index(stream(), extremum, extreme.spread(input, {1}), other.spread(input, {1}),
                    input);
  EXPECT_TRUE(near(other.get(), positions, 0, 0));
  EXPECT_TRUE(near(extreme.get(), values, 0, 0));
}

TEST(ArgReduce, FindsTheFirstOfEquals) {
  const int64_t shapes[][3] = {{1, 1, 1}, {3, 100, 1}, {2, 37, 50}, {1, 100003, 1}, {4, 9, 3}};
  for (auto extremum : {Extremum::kMax, Extremum::kMin}) {
    for (auto& s : shapes) {
      const int64_t count = s[0] * s[1] * s[2];
      for (auto dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64, GRAFT_BFLOAT16, GRAFT_INT64}) {
        // Few distinct values: most extrema occur several times.
        auto x = numbers(count, 5, -6, 6, GRAFT_INT32);
        check(extremum, dtype, x, s[0], s[1], s[2]);
      }
    }
    check(extremum, GRAFT_FLOAT32, numbers(5000, 8, -1, 1, GRAFT_FLOAT32), 5, 1000, 1);
    check(extremum, GRAFT_UINT8, numbers(500, 8, 0, 255, GRAFT_UINT8), 5, 100, 1);
  }
}

// labels: sub_groups_8
TEST(ArgReduce, NanWins) {
  auto x = numbers(600, 4, -2, 2, GRAFT_FLOAT32);
  x[50] = x[70] = x[333] = NAN;
  for (auto extremum : {Extremum::kMax, Extremum::kMin}) {
    check(extremum, GRAFT_FLOAT32, x, 3, 200, 1);
    check(extremum, GRAFT_FLOAT32, x, 1, 20, 30);
  }
}

TEST(ArgReduce, InfinitiesAloneHaveAPosition) {
  std::vector<double> x(40, -std::numeric_limits<double>::infinity());
  check(Extremum::kMax, GRAFT_FLOAT32, x, 2, 20, 1);
  for (double& value : x) value = -value;
  check(Extremum::kMin, GRAFT_FLOAT32, x, 2, 20, 1);
}

TEST(ArgReduce, CountsOverAllDimensionsInRowMajorOrder) {
  DeviceTensor input({6, 7}, {1, 6}, GRAFT_FLOAT32);
  std::vector<double> x(42, 0.0);
  x[23] = x[30] = 5;
  input.set(x);
  DeviceTensor index({1, 1}, GRAFT_INT64);
  arg_reduce(stream(), Extremum::kMax, index.spread(input, {0, 1}), input);
  EXPECT_EQ(index.get()[0], 23);
}

}  // namespace
