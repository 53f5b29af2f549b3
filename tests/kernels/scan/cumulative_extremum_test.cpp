// tests/kernels/scan/cumulative_extremum_test.cpp: running extrema and sums of exponentials against
// loops on the host.
#include "kernels/scan/cumulative_extremum.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

// Visits [outer, n, inner] line by line: body(element, element before it, is the first).
template <class Body>
void each(int64_t outer, int64_t n, int64_t inner, Body body) {
  for (int64_t i = 0; i < outer * n * inner; ++i) {
    const int64_t j = i / inner % n;
    body(static_cast<size_t>(i), static_cast<size_t>(j == 0 ? i : i - inner), j);
  }
}

void check_extremum(Extremum extremum, graft_dtype dtype, int64_t outer, int64_t n, int64_t inner) {
  SCOPED_TRACE(std::string(name_of(dtype)) + " inner " + std::to_string(inner));
  auto x = numbers(outer * n * inner, 3, 0, dtype == GRAFT_BOOL ? 2 : 20);
  for (double& value : x) value = std::floor(value);
  if (is_floating(dtype)) x[x.size() / 2] = x[x.size() / 2 + 1] = std::nan("");
  std::vector<double> best(x.size()), places(x.size());
  each(outer, n, inner, [&](size_t i, size_t before, int64_t j) {
    const bool beats = extremum == Extremum::kMax ? x[i] >= best[before] : x[i] <= best[before];
    const bool takes = j == 0 || std::isnan(x[i]) || (!std::isnan(best[before]) && beats);
    best[i] = takes ? x[i] : best[before];
    places[i] = takes ? static_cast<double>(j) : places[before];
  });
  DeviceTensor input({outer, n, inner}, dtype), values({outer, n, inner}, dtype);
  DeviceTensor indices({outer, n, inner}, {1, outer * inner, outer}, GRAFT_INT64);
  input.set(x);
  running_extremum(stream(), extremum, values, indices, input, 1);
  EXPECT_TRUE(near(values.get(), best, 0, 0));
  EXPECT_TRUE(near(indices.get(), places, 0, 0));
}

TEST(Running, ExtremaOfEveryDtype) {
  for (const graft_dtype dtype :
       {GRAFT_BOOL, GRAFT_UINT8, GRAFT_INT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64, GRAFT_FLOAT16,
        GRAFT_BFLOAT16, GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    check_extremum(Extremum::kMax, dtype, 5, 33, 1);
    check_extremum(Extremum::kMin, dtype, 3, 12, 70);
  }
}

TEST(Running, LogSumExp) {
  for (const graft_dtype dtype : {GRAFT_FLOAT16, GRAFT_BFLOAT16, GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    for (const int64_t inner : {1, 66}) {
      auto x = numbers(4 * 10 * inner, 3, -5, 60, dtype);
      x[0] = x[1] = -std::numeric_limits<double>::infinity();
      x[x.size() - 1] = std::numeric_limits<double>::infinity();
      std::vector<double> expected(x.size());
      each(4, 10, inner, [&](size_t i, size_t before, int64_t j) {
        const double high = std::max(x[i], expected[before]),
                     low = std::min(x[i], expected[before]);
        expected[i] = j == 0             ? x[i]
                      : std::isinf(high) ? high
                                         : high + std::log1p(std::exp(low - high));
      });
      DeviceTensor input({4, 10, inner}, dtype), output({4, 10, inner}, dtype);
      input.set(x);
      running_log_sum_exp(stream(), output, input, 1);
      EXPECT_TRUE(near(output.get(), expected, tolerance(dtype), 1e-9)) << name_of(dtype);
    }
  }
}

TEST(Running, RankZeroAndWhatHasNoOrder) {
  DeviceTensor one({}, GRAFT_FLOAT32), value({}, GRAFT_FLOAT32), index({}, GRAFT_INT64);
  one.set({5});
  running_extremum(stream(), Extremum::kMax, value, index, one, 0);
  EXPECT_EQ(value.get()[0], 5);
  EXPECT_EQ(index.get()[0], 0);
  DeviceTensor complex({2}, GRAFT_COMPLEX64), places({2}, GRAFT_INT64);
  EXPECT_THROW(running_extremum(stream(), Extremum::kMin, complex, places, complex, 0), Error);
  EXPECT_THROW(running_log_sum_exp(stream(), places, places, 0), Error);
}

}  // namespace
