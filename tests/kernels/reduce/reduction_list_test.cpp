// tests/kernels/reduce/reduction_list_test.cpp: reductions of whole tensors of a list.
#include "kernels/reduce/reduction_list.h"

#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>

#include "runtime/driver/error.h"
#include "tests/kernels/tensor/device_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

double reference(ListReduction reduction, const std::vector<double>& values) {
  double result = reduction == ListReduction::kMax ? -std::numeric_limits<double>::infinity() : 0;
  for (const double x : values) {
    if (reduction == ListReduction::kNorm1) result += std::abs(x);
    if (reduction == ListReduction::kNorm2 || reduction == ListReduction::kSquares) result += x * x;
    if (reduction == ListReduction::kNormInf) result = std::max(result, std::abs(x));
    if (reduction == ListReduction::kMax) result = std::max(result, x);
  }
  return reduction == ListReduction::kNorm2 ? std::sqrt(result) : result;
}

// Reduces size tensors, of which some are longer than a work-item takes where long_ones is set.
void check(ListReduction reduction, graft_dtype input, graft_dtype output, bool long_ones) {
  SCOPED_TRACE(std::string(name_of(input)) + " to " + name_of(output));
  std::deque<DeviceTensor> sources, results;
  std::vector<TensorView> inputs, outputs;
  std::vector<double> expected;
  for (unsigned i = 0; i < 21; ++i) {
    const int64_t count = long_ones && i % 5 == 2 ? 20001 + i : 1 + i * 7;
    const auto values = numbers(count, i + 1, -2, 1, input);
    inputs.push_back(sources.emplace_back(std::vector<int64_t>{count}, input).set(values));
    outputs.push_back(results.emplace_back(std::vector<int64_t>{1}, output));
    expected.push_back(reference(reduction, values));
  }
  reduce_list(stream(), reduction, outputs, inputs);
  const double relative = 4 * std::max(tolerance(input), tolerance(output));
  for (size_t i = 0; i < expected.size(); ++i) {
    EXPECT_TRUE(near(results[i].get(), {expected[i]}, relative, relative)) << "tensor " << i;
  }
}

TEST(ReductionList, OfShortAndOfLongTensors) {
  for (const auto reduction :
       {ListReduction::kNorm1, ListReduction::kNorm2, ListReduction::kNormInf,
        ListReduction::kSquares, ListReduction::kMax}) {
    for (const bool long_ones : {false, true}) {
      check(reduction, GRAFT_FLOAT32, GRAFT_FLOAT32, long_ones);
      check(reduction, GRAFT_BFLOAT16, GRAFT_FLOAT32, long_ones);
      check(reduction, GRAFT_FLOAT32, GRAFT_FLOAT64, long_ones);
    }
  }
}

TEST(ReductionList, RefusesListsThatDoNotFit) {
  DeviceTensor a({3}, GRAFT_FLOAT32), b({3}, GRAFT_INT64), one({1}, GRAFT_FLOAT32);
  const TensorView inputs[] = {a, a}, whole[] = {b}, output[] = {one}, outputs[] = {one, one};
  const auto norm = ListReduction::kNorm2;
  EXPECT_THROW(reduce_list(stream(), norm, output, inputs), Error);
  EXPECT_THROW(reduce_list(stream(), norm, output, whole), Error);
  EXPECT_THROW(reduce_list(stream(), norm, inputs, outputs), Error);
}

}  // namespace
