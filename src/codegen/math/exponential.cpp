// src/codegen/math/exponential.cpp: exponentials, logarithms and powers.
// Polynomials: tools/fit_polynomials.py.
#include <vector>

#include "codegen/math/formulas.h"

namespace graft::ir {

namespace {

constexpr double kLog2E = 1.4426950408889634;
constexpr double kLog2EHigh = 1.4426950216293335, kLog2ELow = 1.9259629911e-8;
constexpr double kLog10EHigh = 0.43429449200630188, kLog10ELow = -1.0103050118e-8;
constexpr double kLog10Of2High = 0.3010300099849701, kLog10Of2Low = -1.4320988897559699e-8;
constexpr double kLn2 = 0.6931471805599453;
// ln 2 in two parts: n times the first is exact for |n| < 2^9 in float32, 2^20 in float64.
constexpr double kLn2High32 = 0.693145751953125, kLn2Low32 = 1.4286068203094173e-06;
constexpr double kLn2High64 = 0.693147180369123816490, kLn2Low64 = 1.90821492927058770002e-10;

Value like_bits(Value x, int bits) { return x.builder().constant(Type::kI32, bits); }

Value clamp(Value x, double low, double high) {
  const Value raised = select(x < low, low, x);
  return select(raised > high, high, raised);
}

Value power_of_two_wide(Value n) {
  return bitcast(Type::kF64, (cast(Type::kI64, cast(Type::kI32, n)) + 1023) << 52);
}

struct Quick {
  Value exponent;  // i32: n in the place of a float32's exponent
  Value r;         // x - n ln 2
};

// Adding 1.5 * 2^23 rounds to an integer and leaves it in the sum's low bits.
Quick reduce_quick(Value x) {
  const Value shifted = x * kLog2E + 0x1.8p23;
  const Value n = shifted - 0x1.8p23;
  return {bitcast(Type::kI32, shifted) << 23, x - n * kLn2High32 - n * kLn2Low32};
}

// exp(r) - 1 for |r| <= ln 2 / 2.
Value expm1_reduced(Value r) {
  return r + r * r *
                 polynomial(r, {0.5, 0.16666576989698776, 0.041666554617204574,
                                0.0083631790527225774, 0.0013926183587713495});
}

Value expm1_reduced_wide(Value r) {
  return r +
         r * r *
             polynomial(r, {0.5, 0.16666666666648288, 0.041666666666651355, 0.0083333333537293972,
                            0.0013888888905881542, 0.00019841208732536383, 2.4801536388690768e-5,
                            2.7625115578287629e-6, 2.7613806861538288e-7});
}

// (2^r - 1) / r for |r| <= 1/2.
Value exp2m1_ratio(Value r) {
  return polynomial(r, {0.69314718803520028, 0.24022650760645807, 0.055503570711525073,
                        0.0096180825199904669, 0.0013390886332106698, 0.00015453182829959741});
}

// (1 + e) 2^n - 1, n being what is in the low bits of shifted.
Value scaled_minus_one(Value e, Value shifted) {
  const Value scale = bitcast(Type::kF32, (bitcast(Type::kI32, shifted) << 23) + 0x3f800000);
  return scale * e + (scale - 1);
}

struct Reduced {
  Value n, r;  // x = n ln 2 + r
};

Reduced reduce_wide(Value x) {
  const Value n = round(x * kLog2E);
  return {n, x - n * kLn2High64 - n * kLn2Low64};
}

struct Parts {
  Value exponent, f;  // x = (1 + f) 2^exponent with sqrt(1/2) <= 1 + f < sqrt(2)
};

// Subnormal numbers are scaled into the normal range.
Parts split(Value x) {
  constexpr int kRoot = 0x3f3504f3;  // the bits of sqrt(1/2)
  const Value small = x < 0x1p-126;
  const Value origin = select(small, like_bits(x, kRoot + (23 << 23)), like_bits(x, kRoot));
  const Value bits = bitcast(Type::kI32, select(small, x * 0x1p23, x)) - origin;
  const Value fraction = bitcast(Type::kF32, (bits & 0x007fffff) + kRoot);
  return {cast(Type::kF32, bits >> 23), fraction - 1};
}

// Where the argument is infinite, zero, negative or NaN.
Value log_outcome(Value x, Value result) {
  const Value bounded = select(x == kInfinity, x, result);
  return select(x > 0, bounded, select(x == 0, like(x, -kInfinity), kNan));
}

Value widen(Value x) { return cast(Type::kF64, x); }
Value narrow(Value x) { return cast(Type::kF32, x); }

}  // namespace

Value polynomial(Value x, std::initializer_list<double> coefficients) {
  const std::vector<double> c(coefficients);
  Value result = like(x, c.back());
  for (size_t i = c.size() - 1; i-- > 0;) result = result * x + c[i];
  return result;
}

Value exp_wide(Value x) {
  const Reduced reduced = reduce_wide(clamp(x, -708.0, 708.0));
  return (1 + expm1_reduced_wide(reduced.r)) * power_of_two_wide(reduced.n);
}

Value expm1_wide(Value x) {
  const Reduced reduced = reduce_wide(clamp(x, -708.0, 708.0));
  const Value scale = power_of_two_wide(reduced.n);
  return scale * expm1_reduced_wide(reduced.r) + (scale - 1);
}

namespace {

struct WideParts {
  Value exponent, f;  // as Parts, normal numbers only
};

WideParts split_wide(Value x) {
  // The constant has sqrt(1/2)'s upper bits.
  const Value exponent = (bitcast(Type::kI64, x) - 0x3fe6a09e00000000) >> 52;
  const Value m = bitcast(Type::kF64, bitcast(Type::kI64, x) - (exponent << 52));
  return {cast(Type::kF64, exponent), m - 1};
}

// |x|^y within 2^-30, which float32's range keeps: y log2(x) is at most 151.
Value power_wide(Value x, Value y) {
  const WideParts parts = split_wide(x);
  const Value f = parts.f;
  const Value p = polynomial(
      f, {0.33333333384803755, -0.24999999498708299, 0.19999973727896375, -0.16666719806074658,
          0.14287886099982502, -0.12499927717186019, 0.11048250377157395, -0.099315531379480219,
          0.09804564386097083, -0.097276593897608982, 0.055550945560644931});
  const Value finite = parts.exponent + (f - f * f * (0.5 - f * p)) * kLog2E;
  const Value log2 = select(x == kInfinity, x, select(x == 0, -kInfinity, finite));
  const Value product = clamp(y * log2, -200.0, 200.0);
  const Value shifted = product + 0x1.8p52;
  const Value r = product - (shifted - 0x1.8p52);
  const Value mantissa = bitcast(Type::kI64, 1 + r * exp2m1_ratio(r));
  return bitcast(Type::kF64, mantissa + (bitcast(Type::kI64, shifted) << 52));
}

}  // namespace

Value log_wide(Value x) {
  const WideParts parts = split_wide(x);
  const Value f = parts.f;
  const Value p = polynomial(
      f, {0.33333333333338852, -0.25000000000107311, 0.19999999994304986, -0.16666666622603082,
          0.14285715223116479, -0.12500005510638871, 0.11111055238527022, -0.099996894687390433,
          0.090923836400096222, -0.08342309328215442, 0.076761582982888568, -0.070068789733532223,
          0.066723085796697862, -0.07234979927374686, 0.070087551819167159, -0.034531218925564483});
  const Value result = parts.exponent * kLn2 + (f - f * f * (0.5 - f * p));
  const Value positive = select(x == kInfinity, x, select(x == 0, -kInfinity, result));
  return select(x >= 0, positive, kNan);
}

Value log1p_wide(Value x) {
  const Value u = 1 + x;
  // What 1 + x lost; it matters for small x alone.
  const Value lost = select(abs(x) < 1, x - (u - 1), 0);
  return log_wide(u) + lost;
}

Value formula_exp(Value x) {
  const Quick q = reduce_quick(x);
  const Value mantissa = 1 + expm1_reduced(q.r);
  const Value result = bitcast(Type::kF32, bitcast(Type::kI32, mantissa) + q.exponent);
  // The sum is infinite, or NaN.
  return select(x <= 88.72283905206835, select(x < -87.3365447, 0.0, result), x + kInfinity);
}

// The factor comes in two halves, so that subnormal results are rounded once.
Value formula_exp2(Value x) {
  const Value bounded = clamp(x, -151.0, 129.0);
  const Value shifted = bounded + 0x1.8p23;
  const Value n = bitcast(Type::kI32, shifted) - 0x4b400000;
  const Value half = n >> 1;
  const Value first = bitcast(Type::kF32, (half + 127) << 23);
  const Value second = bitcast(Type::kF32, (n - half + 127) << 23);
  const Value r = bounded - (shifted - 0x1.8p23);
  return fma(r, exp2m1_ratio(r), like(x, 1)) * first * second;
}

Value exp2_bounded(Value x) {
  const Value shifted = x + 0x1.8p23;
  const Value r = x - (shifted - 0x1.8p23);
  const Value mantissa = 1 + r * exp2m1_ratio(r);
  return bitcast(Type::kF32, bitcast(Type::kI32, mantissa) + (bitcast(Type::kI32, shifted) << 23));
}

Value exp2m1_bounded(Value x) {
  const Value shifted = x + 0x1.8p23;
  const Value r = x - (shifted - 0x1.8p23);
  return scaled_minus_one(r * exp2m1_ratio(r), shifted);
}

Value expm1_of_double(Value x) {
  const Value shifted = x * (2 * kLog2E) + 0x1.8p23;
  const Value r = x - (shifted - 0x1.8p23) * (kLn2 / 2);
  const Value e =
      r * polynomial(r, {2.0000000215690266, 2.0000000053895581, 1.3333204104870924,
                         0.66666343751211987, 0.26781321104836742, 0.089175417353814845});
  return scaled_minus_one(e, shifted);
}

Value expm1_bounded(Value x) {
  const Quick q = reduce_quick(x);
  // 2^(n - 1) exists for n = 128, too.
  const Value half = bitcast(Type::kF32, q.exponent + 0x3f000000);
  return (half * expm1_reduced(q.r) + (half - 0.5)) * 2;
}

Value formula_expm1(Value x) { return select(x == 0, x, expm1_bounded(clamp(x, -18.0, 88.9))); }

Value formula_log(Value x) {
  const Parts parts = split(x);
  const Value f = parts.f;
  const Value p = polynomial(
      f, {0.33333330728190677, -0.25000306422569795, 0.2000104509416068, -0.16641281463106393,
          0.14214495923947963, -0.12998183763651529, 0.12622319849228376, -0.07902743772393441});
  const Value low = f * f * (f * p - 0.5);
  return log_outcome(x, fma(parts.exponent, like(x, kLn2), f + low));
}

// log(1 + f) / log(base) = c f + f (low f + f p), where c + low = 1 / log(base).
Value formula_log2(Value x) {
  const Parts parts = split(x);
  const Value f = parts.f;
  const Value p = polynomial(f, {-0.72134748653784417, 0.48089829928222635, -0.36068503113027607,
                                 0.28855681768676966, -0.2398717919576035, 0.20493275239316274,
                                 -0.18939059437106581, 0.18354936938116376, -0.11070724540024855});
  const Value low = f * (f * p + kLog2ELow);
  return log_outcome(x, parts.exponent + fma(f, like(x, kLog2EHigh), low));
}

Value formula_log10(Value x) {
  const Parts parts = split(x);
  const Value f = parts.f;
  const Value p =
      polynomial(f, {-0.21714723074471097, 0.14476481294774453, -0.10857701335720993,
                     0.086864257577060484, -0.07220860449290878, 0.061690905564321512,
                     -0.057012249802320763, 0.05525386586893821, -0.033326201602808123});
  const Value low = parts.exponent * kLog10Of2Low + f * (f * p + kLog10ELow);
  const Value fraction = fma(f, like(x, kLog10EHigh), low);
  return log_outcome(x, fma(parts.exponent, like(x, kLog10Of2High), fraction));
}

Value formula_log1p(Value x) {
  const Value u = 1 + x;
  // What 1 + x lost, as Kahan's formula has it.
  const Value lost = select(abs(x) < 0x1p24, (x - (u - 1)) / u, 0);
  return select(x == 0, x, select(x == -1, -kInfinity, formula_log(u) + lost));
}

Value formula_pow(Value x, Value y) {
  const Value magnitude = abs(x);
  const Value power = narrow(power_wide(widen(magnitude), widen(y)));
  // Every float32 from 2^24 on is even.
  const Value whole = y == trunc(y);
  const Value half = y * 0.5;
  const Value odd = whole & (half != trunc(half)) & (abs(y) < 0x1p24);
  const Value negative = copysign(like(x, 1), x) < 0;
  const Value real = whole | (x == 0) | is_inf(x);
  const Value outcome = select(negative & odd, -power, select(negative & !real, kNan, power));
  const Value one = (y == 0) | (x == 1) | ((magnitude == 1) & is_inf(y));
  return select(one, 1.0, select(is_nan(x) | is_nan(y), x + y, outcome));
}

Value formula_hypot(Value x, Value y) {
  const Value a = widen(x), b = widen(y);
  const Value length = narrow(sqrt(a * a + b * b));
  return select(is_inf(x) | is_inf(y), kInfinity, length);
}

}  // namespace graft::ir
