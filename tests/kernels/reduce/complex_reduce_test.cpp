// tests/kernels/reduce/complex_reduce_test.cpp: reductions of complex numbers against loops.
#include "kernels/reduce/complex_reduce.h"

#include <algorithm>
#include <cmath>

#include "runtime/driver/error.h"
#include "tests/kernels/tensor/complex_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

// The result of reducing the middle one of [3, n, 2], or all.
template <class Step>
std::vector<Number> folded(const std::vector<Number>& x, int64_t n, bool all, Number first,
                           Step step) {
  std::vector<Number> results(all ? 1 : 6, first);
  for (int64_t i = 0; i < 6 * n; ++i) {
    const int64_t to = all ? 0 : i / (2 * n) * 2 + i % 2;
    Number& result = results[static_cast<size_t>(to)];
    result = step(result, x[static_cast<size_t>(i)]);
  }
  return results;
}

TEST(ComplexReduce, ProductsOfAnyLength) {
  for (const graft_dtype dtype : {GRAFT_COMPLEX64, GRAFT_COMPLEX128}) {
    for (const int64_t n : {0, 1, 2, 7, 16, 33}) {
      for (const bool all : {false, true}) {
        auto x = complex_numbers(6 * n, 1, dtype);
        for (Number& z : x) z = std::polar(1.0, std::arg(z));
        ComplexTensor in({3, n, 2}, {2 * n, 2, 1}, dtype);
        in.set(x);
        ComplexTensor out(all ? std::vector<int64_t>{1} : std::vector<int64_t>{3, 2},
                          all ? std::vector<int64_t>{1} : std::vector<int64_t>{2, 1}, dtype);
        TensorView target = in.view();
        target.address = out.view().address;
        target.strides[0] = all ? 0 : 2;
        target.strides[1] = 0;
        target.strides[2] = all ? 0 : 1;
        reduce(stream(), Reduction::kProd, target, in);
        const auto expected = folded(x, n, all, 1.0, [](Number a, Number b) { return a * b; });
        EXPECT_TRUE(near(out.parts(), parts_of(expected), 0, 1e-4)) << n << all;
        EXPECT_TRUE(n > 0 || out.parts()[0] == 1);
      }
    }
  }
}

TEST(ComplexReduce, NormsCountsAndTruth) {
  auto x = complex_numbers(60, 1, GRAFT_COMPLEX64);
  x[3] = x[17] = 0.0;
  ComplexTensor in({60}, {1}, GRAFT_COMPLEX64);
  in.set(x);
  const auto result = [&](Reduction reduction, graft_dtype dtype) {
    DeviceTensor out({1}, dtype);
    reduce(stream(), reduction, out.spread(in, {0}), in, 3.0);
    return out.get()[0];
  };
  double sums[4] = {}, largest = 0;
  for (const Number& z : x) {
    const double size = std::abs(z);
    for (int p = 0; p < 4; ++p) sums[p] += size == 0 ? 0 : std::pow(size, p);
    largest = std::max(largest, size);
  }
  EXPECT_EQ(result(Reduction::kNorm0, GRAFT_FLOAT32), sums[0]);
  EXPECT_NEAR(result(Reduction::kNorm1, GRAFT_FLOAT32), sums[1], 1e-3);
  EXPECT_NEAR(result(Reduction::kNorm2, GRAFT_FLOAT32), std::sqrt(sums[2]), 1e-4);
  EXPECT_NEAR(result(Reduction::kNormP, GRAFT_FLOAT32), std::cbrt(sums[3]), 1e-4);
  EXPECT_NEAR(result(Reduction::kNormInf, GRAFT_FLOAT32), largest, 1e-5);
  EXPECT_EQ(result(Reduction::kNormNegInf, GRAFT_FLOAT32), 0);
  EXPECT_EQ(result(Reduction::kCountNonzero, GRAFT_INT64), 58);
  EXPECT_EQ(result(Reduction::kAny, GRAFT_BOOL), 1);
  EXPECT_EQ(result(Reduction::kAll, GRAFT_BOOL), 0);
}

TEST(ComplexReduce, SumsConvertAndOrderIsRefused) {
  DeviceTensor real({4}, GRAFT_FLOAT32);
  real.set({1, 2, 3, 4});
  ComplexTensor out({1}, {1}, GRAFT_COMPLEX128);
  TensorView target = out.view();
  target.strides[0] = 0;
  target.sizes[0] = 4;
  reduce(stream(), Reduction::kMean, target, real);
  EXPECT_EQ(out.parts(), (std::vector<double>{2.5, 0}));
  ComplexTensor in({4}, {1}, GRAFT_COMPLEX128);
  EXPECT_THROW(reduce(stream(), Reduction::kMax, target, in), Error);
}

}  // namespace
