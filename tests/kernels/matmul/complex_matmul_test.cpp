// tests/kernels/matmul/complex_matmul_test.cpp: complex products, by parts and by kernel, against
// loops.
#include "kernels/matmul/complex_matmul.h"

#include <cmath>
#include <limits>

#include "runtime/driver/error.h"
#include "tests/kernels/tensor/complex_tensor.h"

namespace {

using namespace graft;
using namespace graft::test;

constexpr graft_dtype kTypes[] = {GRAFT_COMPLEX64, GRAFT_COMPLEX128};

struct Case {
  int64_t m, k, n;
  bool turn_a = false, turn_b = false, conjugate_a = false, conjugate_b = false;
};

std::vector<Number> expect(const Case& c, const std::vector<Number>& a,
                           const std::vector<Number>& b) {
  std::vector<Number> sums(static_cast<size_t>(c.m * c.n));
  for (int64_t i = 0; i < c.m; ++i) {
    for (int64_t j = 0; j < c.n; ++j) {
      Number& sum = sums[static_cast<size_t>(i * c.n + j)];
      for (int64_t p = 0; p < c.k; ++p) {
        const Number x = a[static_cast<size_t>(i * c.k + p)];
        const Number y = b[static_cast<size_t>(p * c.n + j)];
        sum += (c.conjugate_a ? std::conj(x) : x) * (c.conjugate_b ? std::conj(y) : y);
      }
    }
  }
  return sums;
}

std::vector<int64_t> strides(int64_t rows, int64_t columns, bool turned) {
  return turned ? std::vector<int64_t>{1, rows} : std::vector<int64_t>{columns, 1};
}

void check(const Case& c, graft_dtype dtype, const ComplexEpilogue& factors = {}) {
  SCOPED_TRACE(std::to_string(c.m) + " " + std::to_string(c.k) + " " + std::to_string(c.n));
  const auto x = complex_numbers(c.m * c.k, 1, dtype), y = complex_numbers(c.k * c.n, 2, dtype);
  const auto z = complex_numbers(c.m * c.n, 3, dtype);
  ComplexTensor a({c.m, c.k}, strides(c.m, c.k, c.turn_a), dtype);
  ComplexTensor b({c.k, c.n}, strides(c.k, c.n, c.turn_b), dtype);
  ComplexTensor out({c.m, c.n}, {c.n + 1, 1}, dtype), added({c.m, c.n}, {1, c.m}, dtype);
  a.set(x), b.set(y), added.set(z);
  ComplexEpilogue epilogue = factors;
  epilogue.addend = &added.view();
  complex_matmul(stream(), out, {a, c.conjugate_a}, {b, c.conjugate_b}, epilogue);
  auto expected = expect(c, x, y);
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] *= factors.alpha;
    if (factors.beta != 0.0) expected[i] += factors.beta * z[i];
  }
  const double t = tolerance(dtype == GRAFT_COMPLEX64 ? GRAFT_FLOAT32 : GRAFT_FLOAT64);
  const double absolute = 20 * t * std::sqrt(static_cast<double>(c.k));
  EXPECT_TRUE(near(out.parts(), parts_of(expected), t, absolute));
}

TEST(ComplexMatmul, ShapesTransposesAndConjugates) {
  for (const graft_dtype dtype : kTypes) {
    for (const auto& [m, k, n] :
         {std::array<int64_t, 3>{1, 1, 1}, {5, 7, 3}, {1, 9, 70}, {70, 9, 1}, {65, 66, 67}}) {
      for (int flags = 0; flags < 16; ++flags) {
        check({m, k, n, (flags & 1) != 0, (flags & 2) != 0, (flags & 4) != 0, (flags & 8) != 0},
              dtype);
      }
    }
  }
}

TEST(ComplexMatmul, ComplexFactors) {
  for (const graft_dtype dtype : kTypes) {
    for (const Case& c : {Case{5, 7, 3}, Case{65, 66, 67}}) {
      check(c, dtype, {{0.5, -2}, {1, 0.25}, nullptr});
      check(c, dtype, {1.0, 1.0, nullptr});
      check(c, dtype, {{0, 1}, 0.0, nullptr});
    }
  }
}

TEST(ComplexMatmul, BatchesThatShareAFactor) {
  const auto x = complex_numbers(3 * 4 * 5, 1, GRAFT_COMPLEX64);
  const auto y = complex_numbers(5 * 2, 2, GRAFT_COMPLEX64);
  ComplexTensor a({3, 4, 5}, {20, 5, 1}, GRAFT_COMPLEX64), b({5, 2}, {2, 1}, GRAFT_COMPLEX64);
  ComplexTensor out({3, 4, 2}, {8, 2, 1}, GRAFT_COMPLEX64);
  a.set(x), b.set(y);
  TensorView same = out.view();
  same.address = b.view().address;
  same.sizes[1] = 5;
  same.strides[0] = 0;
  complex_matmul(stream(), out, {a}, {same});
  EXPECT_TRUE(near(out.parts(), parts_of(expect({12, 5, 2}, x, y)), 1e-5, 1e-5));
}

TEST(ComplexMatmul, NothingToSumAndInfinity) {
  ComplexTensor a({2, 0}, {1, 1}, GRAFT_COMPLEX64), b({0, 2}, {2, 1}, GRAFT_COMPLEX64);
  ComplexTensor out({2, 2}, {2, 1}, GRAFT_COMPLEX64);
  complex_matmul(stream(), out, {a}, {b});
  EXPECT_EQ(out.parts(), std::vector<double>(8, 0.0));
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  ComplexTensor one({1, 1}, {1, 1}, GRAFT_COMPLEX64), far({1, 1}, {1, 1}, GRAFT_COMPLEX64);
  ComplexTensor product({1, 1}, {1, 1}, GRAFT_COMPLEX64);
  one.set({1.0}), far.set({{1.0, kInfinity}});
  complex_matmul(stream(), product, {far}, {one}, {1.0, 1.0, &one.view()});
  EXPECT_EQ(product.parts()[1], kInfinity);
}

TEST(ComplexMatmul, RefusesShapesThatDoNotMultiply) {
  ComplexTensor a({2, 3}, {3, 1}, GRAFT_COMPLEX64), b({2, 3}, {3, 1}, GRAFT_COMPLEX64);
  EXPECT_THROW(complex_matmul(stream(), a, {a}, {b}), Error);
}

}  // namespace
