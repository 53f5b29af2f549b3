// tests/kernels/weight_only/int4_test.cpp: products with weights of 4 bits.
#include <limits>
#include <utility>

#include "kernels/weight_only/packed_int4.h"
#include "kernels/weight_only/product.h"
#include "runtime/driver/error.h"
#include "tests/kernels/weight_only/quantized_weight.h"

namespace {

using namespace graft;
using namespace graft::test;

// What the kernel adds up: integers from 0 to 15, and what is added for 8 and the zero.
WeightProduct product_of(const WeightCase& of, const WeightNumbers& from) {
  return {of, from, [](double q, double scale, double zero) { return (q - 8) * scale + zero; },
          [](double scale, double zero) { return (15 + 8) * scale + std::abs(zero); }};
}

// As PyTorch has the bytes of _convert_weight_to_int4pack.
std::vector<double> pairs_of(const std::vector<double>& integers) {
  std::vector<double> pairs;
  for (size_t i = 0; i < integers.size(); i += 2) {
    pairs.push_back(integers[i] * 16 + integers[i + 1]);
  }
  return pairs;
}

enum class Lie { kApart, kPairs, kRows };  // scales and zeros; kRows: a row's groups side by side

std::vector<double> computed(const WeightCase& of, const WeightNumbers& from, Lie lie) {
  DeviceTensor a({of.m, of.k}, of.dtype), output({of.m, of.n}, of.dtype);
  DeviceTensor pairs({of.n, of.k / 2}, GRAFT_UINT8), packed({of.n * of.k / 8}, GRAFT_INT32);
  a.set(from.a), pairs.set(pairs_of(from.integers));
  pack_int4(stream(), packed, pairs);
  const int64_t groups = of.groups();
  const auto multiply = [&](const TensorView& scales, const TensorView& zeros) {
    const TensorView* given = of.asymmetric ? &zeros : nullptr;
    int4_weight_matmul(stream(), output, a, packed, {scales, given, of.size()});
    return output.get();
  };
  if (lie == Lie::kPairs) {
    DeviceTensor both({groups, of.n, 2}, of.scale_dtype);
    std::vector<double> values;
    for (size_t i = 0; i < from.scales.size(); ++i) {
      values.push_back(from.scales[i]), values.push_back(from.zeros[i]);
    }
    both.set(values);
    const TensorView scales = both.as({groups, of.n}, {2 * of.n, 2});
    TensorView zeros = scales;
    zeros.address += size_of(of.scale_dtype);
    return multiply(scales, zeros);
  }
  const std::vector<int64_t> strides =
      lie == Lie::kRows ? std::vector<int64_t>{1, groups} : std::vector<int64_t>{of.n, 1};
  DeviceTensor scales({groups, of.n}, strides, of.scale_dtype);
  DeviceTensor zeros({groups, of.n}, strides, of.scale_dtype);
  scales.set(from.scales), zeros.set(from.zeros);
  return multiply(scales, zeros);
}

void check(WeightCase of, Lie lie = Lie::kApart) {
  of.integers = of.decodes && is_half(of.dtype);
  SCOPED_TRACE(of.text());
  const WeightNumbers from(of, 0, 15, true);
  EXPECT_TRUE(within(of, computed(of, from, lie), product_of(of, from)));
}

// labels: opencl_cpu
TEST(WeightOnlyInt4, EveryGroupSymmetricAndAsymmetric) {
  for (const int64_t group : {0, 8, 32, 64, 128, 256}) {
    for (const bool asymmetric : {false, true}) {
      for (const int64_t m :
           {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{8}, int64_t{9}, kDecodedRows + 1}) {
        check({m, 40, 512, group, asymmetric, GRAFT_FLOAT32, GRAFT_FLOAT32, m <= kDecodedRows});
      }
    }
  }
}

TEST(WeightOnlyInt4, EveryDtype) {
  for (const graft_dtype dtype : {GRAFT_FLOAT32, GRAFT_BFLOAT16, GRAFT_FLOAT16, GRAFT_FLOAT64}) {
    const bool decodes = dtype != GRAFT_FLOAT64;
    check({1, 72, 256, 64, true, dtype, dtype, decodes}, Lie::kPairs);
    check({5, 24, 256, 64, true, dtype, dtype, decodes}, Lie::kPairs);
    check({kDecodedRows + 8, 72, 256, 64, true, dtype, dtype, false}, Lie::kPairs);
  }
}

TEST(WeightOnlyInt4, ScalesOfOtherDtypesAndStrides) {
  check({2, 16, 128, 32, true, GRAFT_FLOAT32, GRAFT_BFLOAT16, true}, Lie::kPairs);
  check({2, 16, 128, 32, true, GRAFT_FLOAT32, GRAFT_BFLOAT16, true}, Lie::kRows);
  check({2, 16, 128, 32, false, GRAFT_BFLOAT16, GRAFT_FLOAT32, true}, Lie::kRows);
  check({kDecodedRows + 4, 16, 128, 32, true, GRAFT_FLOAT32, GRAFT_BFLOAT16, false}, Lie::kRows);
  check({2, 16, 16, 8, true, GRAFT_FLOAT32, GRAFT_FLOAT32, false});
}

TEST(WeightOnlyInt4, FactorsOfAnyMagnitude) {
  WeightCase of{2, 16, 256, 64, true, GRAFT_BFLOAT16, GRAFT_FLOAT32, true, true};
  WeightNumbers from(of, 0, 15, true);
  const double magnitudes[] = {0x1p-120, 0x1p-80, 2, 0x1p100};
  for (size_t i = 0; i < from.a.size(); ++i) from.a[i] *= magnitudes[i / 64 % 4];
  EXPECT_TRUE(within(of, computed(of, from, Lie::kApart), product_of(of, from)));
  for (double& x : from.a) x = 0;
  for (const double x : computed(of, from, Lie::kApart)) EXPECT_EQ(x, 0);
}

// The second group is too long for integers, whose sums would not hold.
TEST(WeightOnlyInt4, TheLargestIntegersDoNotOverflow) {
  for (const int64_t group : {512, 1024}) {
    for (const double x : {-2.0, 2.0}) {
      const WeightCase of{2,    8,           1024, group, false, GRAFT_BFLOAT16, GRAFT_FLOAT32,
                          true, group == 512};
      WeightNumbers from(of, 0, 15, true);
      from.a.assign(from.a.size(), x);
      from.integers.assign(from.integers.size(), 15);
      EXPECT_TRUE(within(of, computed(of, from, Lie::kApart), product_of(of, from)))
          << group << " " << x;
    }
  }
}

// Of an infinite element kernels may give the infinite sum, or NaN.
TEST(WeightOnlyInt4, WhatIsNotFiniteStaysSo) {
  for (const graft_dtype dtype : {GRAFT_BFLOAT16, GRAFT_FLOAT32}) {
    const WeightCase of{3, 16, 128, 32, false, dtype, GRAFT_FLOAT32, true};
    for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
      WeightNumbers from(of, 0, 15, true);
      from.a[128 + 70] = bad;
      const std::vector<double> found = computed(of, from, Lie::kApart);
      for (size_t i = 0; i < found.size(); ++i) {
        EXPECT_EQ(std::isfinite(found[i]), i / 16 != 1) << i;
        if (i / 16 != 1 || !std::isnan(bad)) continue;
        EXPECT_TRUE(std::isnan(found[i])) << i;
      }
    }
  }
}

// The weight's numbers are more than are kept at a time.
TEST(WeightOnlyInt4, BlocksOfALargeWeight) {
  const int64_t k = 4096, n = kDequantizedBytes / 8 / k + 8;
  check({2, n, k, 128, true, GRAFT_FLOAT64, GRAFT_FLOAT64, false});
}

TEST(WeightOnlyInt4, OneWrongScaleIsSeen) {
  for (const auto& [m, dtype] : {std::pair{int64_t{1}, GRAFT_FLOAT32},
                                 {int64_t{1}, GRAFT_BFLOAT16},
                                 {kDecodedRows + 1, GRAFT_FLOAT32}}) {
    const bool decodes = m <= kDecodedRows;
    const WeightCase of{m, 40, 256, 32, true, dtype, GRAFT_FLOAT32, decodes, is_half(dtype)};
    const WeightNumbers from(of, 0, 15, true);
    WeightNumbers wrong = from;
    wrong.scales[5 * 40 + 11] *= 1.25;
    EXPECT_TRUE(within(of, computed(of, from, Lie::kPairs), product_of(of, from)));
    EXPECT_FALSE(within(of, computed(of, wrong, Lie::kPairs), product_of(of, from)));
  }
}

TEST(WeightOnlyInt4, RefusesWhatDoesNotFit) {
  DeviceTensor a({2, 64}, GRAFT_FLOAT32), output({2, 8}, GRAFT_FLOAT32);
  DeviceTensor packed({64}, GRAFT_INT32), few({56}, GRAFT_INT32), scales({2, 8}, GRAFT_FLOAT32);
  DeviceTensor tiny({16, 8}, GRAFT_FLOAT32), pairs({8, 30}, GRAFT_UINT8);
  EXPECT_THROW(int4_weight_matmul(stream(), output, a, few, {scales, nullptr, 32}), Error);
  EXPECT_THROW(int4_weight_matmul(stream(), output, a, packed, {scales, nullptr, 16}), Error);
  EXPECT_THROW(int4_weight_matmul(stream(), output, a, packed, {tiny, nullptr, 4}), Error);
  EXPECT_THROW(pack_int4(stream(), packed, pairs), Error);
}

}  // namespace
