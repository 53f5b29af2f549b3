// tests/kernels/weight_only/int8_test.cpp: products with weights of int8.
#include <limits>

#include "kernels/weight_only/product.h"
#include "runtime/driver/error.h"
#include "tests/kernels/weight_only/quantized_weight.h"

namespace {

using namespace graft;
using namespace graft::test;

// What the kernel adds up: integers more 128 without their signs, and what that is too much.
WeightProduct product_of(const WeightCase& of, const WeightNumbers& from) {
  return {of, from, [](double q, double scale, double zero) { return (q - zero) * scale; },
          [](double scale, double zero) { return (255 + 128 + std::abs(zero)) * scale; }};
}

// How the tensors of a case lie.
struct Strides {
  bool turned_weight = false, turned_factors = false;
};

std::vector<double> computed(const WeightCase& of, const WeightNumbers& from,
                             const Strides& strides = {}) {
  using Sizes = std::vector<int64_t>;
  const bool turned = strides.turned_factors;
  DeviceTensor a({of.m, of.k}, turned ? Sizes{1, of.m} : Sizes{of.k, 1}, of.dtype);
  DeviceTensor output({of.m, of.n}, turned ? Sizes{1, of.m} : Sizes{of.n, 1}, of.dtype);
  DeviceTensor weight({of.n, of.k}, strides.turned_weight ? Sizes{1, of.n} : Sizes{of.k, 1},
                      GRAFT_INT8);
  // As a row's scales lie in torchao: its groups side by side.
  DeviceTensor scales({of.groups(), of.n}, {1, of.groups()}, of.scale_dtype);
  DeviceTensor zeros({of.groups(), of.n}, {1, of.groups()}, GRAFT_INT8);
  a.set(from.a), weight.set(from.integers), scales.set(from.scales), zeros.set(from.zeros);
  const TensorView* points = of.asymmetric ? &zeros.view() : nullptr;
  int8_weight_matmul(stream(), output, a, weight, {scales, points, of.size()});
  return output.get();
}

void check(const WeightCase& of, const Strides& strides = {}) {
  SCOPED_TRACE(of.text());
  const WeightNumbers from(of, -128, 127, false);
  EXPECT_TRUE(within(of, computed(of, from, strides), product_of(of, from)));
}

// labels: opencl_cpu
TEST(WeightOnlyInt8, EveryGroupSymmetricAndAsymmetric) {
  for (const int64_t group : {0, 32, 64, 128, 256}) {
    for (const bool asymmetric : {false, true}) {
      for (const int64_t m :
           {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{8}, int64_t{9}, kDecodedRows + 1}) {
        check({m, 37, 512, group, asymmetric, GRAFT_FLOAT32, GRAFT_FLOAT32, m <= kDecodedRows});
      }
    }
  }
}

TEST(WeightOnlyInt8, EveryDtype) {
  for (const graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_BFLOAT16, GRAFT_FLOAT16, GRAFT_FLOAT64}) {
    const bool decodes = dtype != GRAFT_FLOAT64, half = is_half(dtype);
    check({1, 70, 256, 0, false, dtype, dtype, decodes, half});
    check({5, 19, 256, 64, true, dtype, dtype, decodes, half});
    check({kDecodedRows + 8, 70, 256, 64, true, dtype, dtype, false});
  }
  check({1, 24, 128, 0, false, GRAFT_BFLOAT16, GRAFT_FLOAT32, true, true});
}

// Rows of more elements than integers are summed at once, and groups of more.
TEST(WeightOnlyInt8, IntegersOfManyElements) {
  for (const int64_t m : {1, 2, 3, 8}) {
    check({m, 9, 2048 + 96, 0, false, GRAFT_BFLOAT16, GRAFT_FLOAT32, true, true});
    check({m, 9, 2048 + 96, 0, true, GRAFT_FLOAT16, GRAFT_FLOAT32, true, true});
    check({m, 9, 8192, 4096, true, GRAFT_BFLOAT16, GRAFT_FLOAT32, true, true});
    check({m, 9, 5120, 2560, true, GRAFT_BFLOAT16, GRAFT_FLOAT32, true});
  }
}

TEST(WeightOnlyInt8, TheLargestIntegersDoNotOverflow) {
  for (const double integer : {-128.0, 127.0}) {
    for (const double x : {-2.0, 2.0}) {
      const WeightCase of{1, 8, 4096, 0, false, GRAFT_BFLOAT16, GRAFT_FLOAT32, true, true};
      WeightNumbers from(of, -128, 127, false);
      from.a.assign(from.a.size(), x);
      from.integers.assign(from.integers.size(), integer);
      EXPECT_TRUE(within(of, computed(of, from), product_of(of, from))) << integer << " " << x;
    }
  }
}

TEST(WeightOnlyInt8, WhatIsNotFiniteStaysSo) {
  for (const graft_dtype dtype : {GRAFT_BFLOAT16, GRAFT_FLOAT32}) {
    const WeightCase of{3, 16, 128, 32, false, dtype, GRAFT_FLOAT32, true};
    for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
      WeightNumbers from(of, -128, 127, false);
      from.a[128 + 70] = bad;
      const std::vector<double> found = computed(of, from);
      for (size_t i = 0; i < found.size(); ++i)
        EXPECT_EQ(std::isfinite(found[i]), i / 16 != 1) << i;
    }
  }
}

// Lines that end within a block, or within a word; too short ones; none.
TEST(WeightOnlyInt8, EveryDepth) {
  for (const int64_t k : {32, 36, 100, 124, 101, 33, 20, 1}) {
    const bool decodes = k % 4 == 0 && k >= 32;
    for (const int64_t m : {1, 4}) {
      check({m, 9, k, 0, false, GRAFT_FLOAT32, GRAFT_FLOAT32, decodes});
      check({m, 9, k, 0, true, GRAFT_FLOAT32, GRAFT_FLOAT32, decodes});
    }
  }
  check({1, 9, 60, 20, true, GRAFT_FLOAT32, GRAFT_FLOAT32, false});
}

TEST(WeightOnlyInt8, EveryStride) {
  for (const int64_t m : {int64_t{1}, int64_t{3}, kDecodedRows + 3}) {
    check({m, 20, 64, 32, true, GRAFT_FLOAT32, GRAFT_FLOAT32, m <= kDecodedRows}, {false, true});
    check({m, 20, 64, 32, true, GRAFT_FLOAT32, GRAFT_FLOAT32, false}, {true, false});
  }
}

// The weight's numbers are more than are kept at a time.
TEST(WeightOnlyInt8, BlocksOfALargeWeight) {
  const int64_t k = 4096, n = kDequantizedBytes / 8 / k + 3;
  check({2, n, k, 0, false, GRAFT_FLOAT64, GRAFT_FLOAT64, false});
}

TEST(WeightOnlyInt8, OneWrongScaleIsSeen) {
  for (const int64_t m : {int64_t{1}, kDecodedRows + 1}) {
    const WeightCase of{m, 37, 256, 32, true, GRAFT_FLOAT32, GRAFT_FLOAT32, m <= kDecodedRows};
    const WeightNumbers from(of, -128, 127, false);
    WeightNumbers wrong = from;
    wrong.scales[5 * 37 + 11] *= 1.25;
    EXPECT_TRUE(within(of, computed(of, from), product_of(of, from)));
    EXPECT_FALSE(within(of, computed(of, wrong), product_of(of, from)));
  }
}

TEST(WeightOnlyInt8, RefusesWhatDoesNotFit) {
  DeviceTensor a({2, 64}, GRAFT_FLOAT32), output({2, 8}, GRAFT_FLOAT32),
      weight({8, 64}, GRAFT_INT8);
  DeviceTensor scales({1, 8}, GRAFT_FLOAT32), bytes({8, 64}, GRAFT_UINT8);
  EXPECT_THROW(int8_weight_matmul(stream(), output, a, bytes, {scales, nullptr, 64}), Error);
  EXPECT_THROW(int8_weight_matmul(stream(), output, a, weight, {scales, nullptr, 32}), Error);
  EXPECT_THROW(int8_weight_matmul(stream(), output, weight, weight, {scales, nullptr, 64}), Error);
}

}  // namespace
