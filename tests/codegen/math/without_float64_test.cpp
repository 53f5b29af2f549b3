// tests/codegen/math/without_float64_test.cpp: kernels for devices that cannot compute in float64.
#include "codegen/math/without_float64.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "codegen/ir/builder.h"
#include "codegen/math/math.h"
#include "tests/codegen/compiled.h"

namespace graft::ir {
namespace {

using Limits = std::numeric_limits<double>;

// out[0] = float32 of the scalar.
Kernel narrowed_scalar() {
  Builder b("narrowed_scalar");
  const Address out = b.write(GRAFT_FLOAT32);
  out.store(b.i64(0), cast(Type::kF32, b.scalar(GRAFT_FLOAT64)));
  return b.finish();
}

uint32_t bits_after(const Compiled& kernel, double number) {
  float out = 0;
  graft_kernel_argument arguments[2] = {{&out}, {}};
  arguments[1].bits = std::bit_cast<uint64_t>(number);
  kernel(arguments);
  return std::bit_cast<uint32_t>(out);
}

TEST(WithoutFloat64, ScalarsAreRoundedAsACastRoundsThem) {
  const std::optional<Kernel> kernel = without_float64(narrowed_scalar());
  ASSERT_TRUE(kernel);
  EXPECT_FALSE(needs_float64(*kernel));
  EXPECT_EQ(print(*kernel, *find_dialect("opencl-c")).find("f64 v"), std::string::npos);
  const Compiled run(*kernel);
  std::vector<double> numbers = {0.0,
                                 -0.0,
                                 1.0,
                                 -1.0,
                                 0.1,
                                 1e-5,
                                 0.999,
                                 3.4028235677973366e38,
                                 3.4028235e38,
                                 1e39,
                                 Limits::infinity(),
                                 -Limits::infinity(),
                                 Limits::denorm_min(),
                                 Limits::min(),
                                 1.4e-45,
                                 7e-46,
                                 7.1e-46,
                                 1.1754943508222875e-38,
                                 1.1754942e-38,
                                 1 + 0x1p-24,
                                 1 + 0x3p-24,
                                 1 + 0x1p-24 + 0x1p-52};
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) numbers.push_back(std::bit_cast<double>(random()));
  for (int i = 0; i < 20000; ++i) {
    numbers.push_back(std::ldexp(1 + static_cast<double>(random() >> 11) * 0x1p-53,
                                 static_cast<int>(random() % 320) - 170));
  }
  for (const double number : numbers) {
    if (std::isnan(number)) continue;
    EXPECT_EQ(bits_after(run, number), std::bit_cast<uint32_t>(static_cast<float>(number)))
        << number;
  }
  EXPECT_TRUE(std::isnan(std::bit_cast<float>(bits_after(run, Limits::quiet_NaN()))));
}

TEST(WithoutFloat64, WhatIsComputedInFloat64IsComputedInFloat32) {
  Builder b("bias");
  const Address out = b.write(GRAFT_FLOAT32), in = b.read(GRAFT_FLOAT32);
  const Value wide = cast(Type::kF64, in.load(b.i64(0)));
  out.store(b.i64(0), cast(Type::kF32, 1 / (wide + b.scalar(GRAFT_FLOAT64))));
  const std::optional<Kernel> kernel = without_float64(b.finish());
  ASSERT_TRUE(kernel);
  float to = 0, from = 3;
  graft_kernel_argument arguments[3] = {{&to}, {&from}, {}};
  arguments[2].bits = std::bit_cast<uint64_t>(0.5);
  Compiled{*kernel}(arguments);
  EXPECT_EQ(to, 1 / 3.5f);
}

TEST(WithoutFloat64, KernelsWithoutItStayAsTheyAre) {
  Builder b("plain");
  const Address out = b.write(GRAFT_FLOAT32);
  out.store(b.item(), exp(b.scalar(GRAFT_FLOAT32)));
  const Kernel kernel = b.finish();
  EXPECT_FALSE(needs_float64(kernel));
  EXPECT_EQ(without_float64(kernel)->body, kernel.body);
}

TEST(WithoutFloat64, FunctionsThatNeedItAreTheLanguagesOwn) {
  Builder b("power");
  const Address out = b.write(GRAFT_FLOAT32);
  const Value x = b.scalar(GRAFT_FLOAT32);
  b.keep_float64();
  out.store(b.item(), pow(x, x));
  const Kernel kernel = b.finish();
  EXPECT_TRUE(needs_float64(kernel)) << "then this test needs another function";
  const std::string text = print(*without_float64(kernel), *find_dialect("opencl-c"));
  EXPECT_NE(text.find(" = pow(v"), std::string::npos) << text;
  EXPECT_EQ(text.find("graft_pow"), std::string::npos);
}

// One kernel for each thing that float32 cannot stand in for.
Kernel refused(int which) {
  Builder b("refused");
  const Address out = b.write(which == 0 ? GRAFT_FLOAT64 : GRAFT_INT64);
  const Value wide = b.scalar(GRAFT_FLOAT64), i = b.item();
  if (which == 0) out.store(i, wide);
  if (which == 1) out.store(i, bitcast(Type::kI64, wide));
  if (which == 2) out.store(i, cast(Type::kI64, wide));
  if (which == 3) out.store(i, select(digamma(cast(Type::kF32, wide)) > 0, i, i + 1));
  if (which == 4) {
    b.keep_float64();
    out.store(i, select(wide > 0, i, i + 1));
  }
  return b.finish();
}

TEST(WithoutFloat64, RefusesWhereFloat32WouldBeWrong) {
  ASSERT_TRUE(needs_float64(define(Math::k_digamma, Type::kF32)));
  for (int which = 0; which < 5; ++which) EXPECT_FALSE(without_float64(refused(which))) << which;
}

}  // namespace
}  // namespace graft::ir
