// tests/kernels/reduce/histogram_test.cpp: counts by bin, and membership, against loops on the
// host.
#include "kernels/reduce/histogram.h"

#include <algorithm>
#include <cmath>

#include "kernels/sort/membership.h"
#include "runtime/driver/dtype.h"
#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

// The sums over the parts of [parts, bins].
std::vector<double> summed(const DeviceTensor& partial, size_t bins) {
  const auto all = partial.get();
  std::vector<double> sums(bins, 0);
  for (size_t i = 0; i < all.size(); ++i) sums[i % bins] += all[i];
  return sums;
}

std::vector<double> whole_numbers(int64_t count, unsigned seed, double high) {
  auto x = numbers(count, seed, 0, high);
  for (double& value : x) value = std::floor(value);
  return x;
}

TEST(Histogram, IntegersOfEveryDtype) {
  for (const graft_dtype dtype : {GRAFT_UINT8, GRAFT_INT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64}) {
    const auto x = whole_numbers(1000, 1, 50);
    std::vector<double> counts(60, 0);
    for (const double value : x) ++counts[static_cast<size_t>(value)];
    DeviceTensor input({1000}, dtype), partial({3, 60}, GRAFT_INT64);
    input.set(x);
    count_integers(stream(), partial, input, nullptr);
    EXPECT_TRUE(near(summed(partial, 60), counts, 0, 0)) << name_of(dtype);
  }
}

TEST(Histogram, IntegersInARange) {
  for (const graft_dtype dtype : {GRAFT_UINT8, GRAFT_INT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64}) {
    const auto x = whole_numbers(1000, 1, 50);
    std::vector<double> counts(6, 0);
    for (const double value : x) {
      if (value >= 7 && value <= 31)
        ++counts[std::min<size_t>(5, static_cast<size_t>((value - 7) * 6 / 24))];
    }
    DeviceTensor input({1000}, dtype), partial({3, 6}, GRAFT_INT64);
    input.set(x);
    count_integers_in_range(stream(), partial, input, 7, 31);
    EXPECT_TRUE(near(summed(partial, 6), counts, 0, 0)) << name_of(dtype);
  }
}

TEST(Histogram, WeightedIntegers) {
  const auto x = whole_numbers(5000, 2, 7), w = numbers(5000, 3);
  for (const graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    std::vector<double> sums(7, 0);
    for (size_t i = 0; i < x.size(); ++i) sums[static_cast<size_t>(x[i])] += w[i];
    DeviceTensor input({5000}, GRAFT_INT64), weights({5000}, dtype), partial({2, 7}, dtype);
    input.set(x);
    const TensorView by = weights.set(w);
    count_integers(stream(), partial, input, &by);
    EXPECT_TRUE(near(summed(partial, 7), sums, 1e-4, 1e-3));
  }
}

TEST(Histogram, PartsDependOnSizesAlone) {
  EXPECT_EQ(histogram_parts(0, 10), 1);
  EXPECT_EQ(histogram_parts(1 << 20, 10), 32);
  EXPECT_EQ(histogram_parts(1 << 20, 1 << 20), 1);
  EXPECT_EQ(histogram_parts(int64_t{1} << 40, 10), 64);
}

// The bin of x among the edges, or the number of bins where it lies outside.
size_t bin_of(const std::vector<double>& edges, double x) {
  const size_t bins = edges.size() - 1;
  if (!(x >= edges.front() && x <= edges.back())) return bins;
  const auto above = std::upper_bound(edges.begin(), edges.end(), x) - edges.begin();
  return std::min(static_cast<size_t>(above) - 1, bins - 1);
}

void check_bins(graft_dtype dtype, BinSearch search, const std::vector<double>& edges) {
  SCOPED_TRACE(std::string(name_of(dtype)) + " way " + std::to_string(static_cast<int>(search)));
  auto x = numbers(3000, 5, -1, 9, dtype);
  x[3] = std::nan("");
  x[4] = edges.front();
  x[5] = edges.back();
  const size_t bins = edges.size() - 1;
  std::vector<double> counts(bins, 0);
  for (const double value : x) {
    const size_t bin = bin_of(edges, value);
    if (bin < bins) ++counts[bin];
  }
  DeviceTensor input({3000, 1}, dtype), edge({static_cast<int64_t>(edges.size())}, dtype);
  DeviceTensor partial({2, static_cast<int64_t>(bins)}, GRAFT_FLOAT64);
  input.set(x);
  const TensorView view = edge.set(edges);
  count_in_bins(stream(), partial, input, {&view, 1}, nullptr, search);
  EXPECT_TRUE(near(summed(partial, bins), counts, 0, 0));
}

TEST(Histogram, BinsOfEveryDtype) {
  const std::vector<double> even = {0, 1, 2, 3, 4, 5, 6, 7, 8}, uneven = {0, 0.5, 3, 3.5, 8};
  for (const graft_dtype dtype : {GRAFT_FLOAT16, GRAFT_BFLOAT16, GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    check_bins(dtype, BinSearch::kEdges, uneven);
    check_bins(dtype, BinSearch::kEven, even);
    check_bins(dtype, BinSearch::kEvenChecked, even);
  }
}

TEST(Histogram, TwoDimensionsWithWeights) {
  const std::vector<double> rows = {0, 1, 2}, columns = {0, 2, 4, 6};
  const auto x = numbers(2 * 500, 6, -0.5, 6), w = numbers(500, 7, 0, 1);
  std::vector<double> sums(6, 0);
  for (size_t i = 0; i < 500; ++i) {
    const size_t r = bin_of(rows, x[2 * i]), c = bin_of(columns, x[2 * i + 1]);
    if (r < 2 && c < 3) sums[r * 3 + c] += w[i];
  }
  DeviceTensor input({500, 2}, GRAFT_FLOAT64), first({3}, GRAFT_FLOAT64), last({4}, GRAFT_FLOAT64);
  DeviceTensor weights({500}, GRAFT_FLOAT64), partial({1, 6}, GRAFT_FLOAT64);
  input.set(x);
  const TensorView edges[] = {first.set(rows), last.set(columns)}, by = weights.set(w);
  count_in_bins(stream(), partial, input, edges, &by, BinSearch::kEdges);
  EXPECT_TRUE(near(summed(partial, 6), sums, 1e-12, 0));
  DeviceTensor integers({4, 1}, GRAFT_INT32);
  EXPECT_THROW(count_in_bins(stream(), partial, integers, {edges, 1}, nullptr, BinSearch::kEven),
               Error);
}

TEST(Membership, OfEveryDtype) {
  for (const graft_dtype dtype : {GRAFT_UINT8, GRAFT_INT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64,
                                  GRAFT_FLOAT16, GRAFT_BFLOAT16, GRAFT_FLOAT32, GRAFT_FLOAT64}) {
    const auto x = whole_numbers(200, 8, 20);
    DeviceTensor elements({200}, dtype), tests({3}, dtype), found({200}, GRAFT_BOOL);
    elements.set(x);
    tests.set({3, 7, 11});
    for (const bool invert : {false, true}) {
      std::vector<double> expected;
      for (const double v : x) expected.push_back((v == 3 || v == 7 || v == 11) != invert);
      is_among(stream(), found, elements, tests, invert);
      EXPECT_TRUE(near(found.get(), expected, 0, 0)) << name_of(dtype);
    }
  }
}

}  // namespace
