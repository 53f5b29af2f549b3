// src/codegen/ops/op_table_special.cpp: rows of the op table: special functions and parts of
// numbers.
#include <cmath>
#include <numbers>

#include "codegen/math/special_functions.h"
#include "codegen/ops/complex_value.h"
#include "codegen/ops/op_table.h"

namespace graft {

namespace {

using namespace ir;

// The formula that calls a function in f64 with the inputs, and rounds once.
template <auto function>
constexpr Formula calls_wide() {
  return [](In x, In) {
    return [&]<size_t... i>(std::index_sequence<i...>)->Results {
      return cast(x[0].type(), function(cast(Type::kF64, x[i])...));
    }
    (std::make_index_sequence<arity(function)>());
  };
}

// At the poles below 0 as PyTorch, whose sine of pi x is what rounding leaves of 0 there: the
// results are large, yet finite, and depend on the dtype.
Value trigamma_of_rounded_angles(Value a) {
  const Value usual = cast(a.type(), ir::trigamma(cast(Type::kF64, a)));
  const Value sine = sin(a * std::numbers::pi);
  const Value large = std::numbers::pi * std::numbers::pi / (sine * sine);
  return select((a < 0) & (a == floor(a)), large, usual);
}

// n above 1; both factors may be huge.
Value polygamma(Value a, Value n) {
  const Value degree = cast(Type::kF64, n), next = degree + 1;
  const Value odd = degree - floor(degree * 0.5) * 2 != 0;
  const Value size = exp(lgamma(next)) * zeta(next, cast(Type::kF64, a));
  return cast(a.type(), select(odd, size, -size));
}

Value kaiser_window(Value at, Value length, Value beta) {
  const Value middle = (cast(Type::kF64, length) - 1) * 0.5, wide_beta = cast(Type::kF64, beta);
  const Value away = (cast(Type::kF64, at) - middle) / middle;
  const Value share = ir::bessel_i0(wide_beta * sqrt(abs(1 - away * away)));
  return cast(at.type(), share / ir::bessel_i0(wide_beta));
}

Value lcm(Value a, Value b) {
  const Value divisor = gcd(a, b);
  const Value multiple = a / divisor * b;  // 0 for a divisor of 0
  return ir::is_signed(a.type()) ? abs(multiple) : multiple;
}

struct Layout {
  Type bits;
  int mantissa;
  int64_t sign, magnitude, bias;
};

Layout layout_of(Value a) {
  if (a.type() == Type::kF32) return {Type::kI32, 23, INT32_MIN, INT32_MAX, 126};
  return {Type::kI64, 52, INT64_MIN, INT64_MAX, 1022};
}

// One step of the last place towards b. Where unit > 0 the last place is that of bfloat16, whose
// numbers are the upper bits of float32's.
Value next_after(Value a, Value b, int spare_bits) {
  const Layout layout = layout_of(a);
  const Value bits = bitcast(layout.bits, a);
  const Value unit = like(bits, 0) + (int64_t{1} << spare_bits);
  const Value away = (a < b) == (a > 0);
  const Value moved = bitcast(a.type(), select(away, bits + unit, bits - unit));
  const Value least = bitcast(a.type(), select(b < 0, unit | layout.sign, unit));
  const Value result = select(a == b, b, select(a == 0, least, moved));
  return select(is_nan(a) | is_nan(b), a + b, result);
}

// The same of float16 numbers, whose last place is worth 2^-24 up to 2^-14.
Value next_after_float16(Value a, Value b) {
  const Layout layout = layout_of(a);
  const Value bits = bitcast(layout.bits, a), size = abs(a);
  const int64_t unit = int64_t{1} << (layout.mantissa - 10);
  const Value away = (a < b) == (a > 0);
  const Value moved = bitcast(a.type(), select(away, bits + unit, bits - unit));
  const Value step = copysign(like(a, 0x1p-24), a);
  const Value tiny = copysign(select(away, a + step, a - step), a);
  const Value smallest = copysign(like(a, 0x1p-24), b);
  const Value finite = select((size < 0x1p-14) | ((size == 0x1p-14) & !away), tiny, moved);
  const Value result = select(is_inf(a), copysign(like(a, 65504), a), finite);
  return select(is_nan(a) | is_nan(b), a + b, select(a == b, b, select(a == 0, smallest, result)));
}

// Subnormal numbers are made normal first; a and 0 where there is no mantissa.
Results fraction_and_exponent(Value a) {
  const Layout layout = layout_of(a);
  const double raise = std::ldexp(1.0, layout.mantissa + 2);
  const Value tiny = abs(a) < std::ldexp(1.0, 1 - static_cast<int>(layout.bias));
  const Value bits = bitcast(layout.bits, select(tiny, a * raise, a));
  const Value field = (bits & layout.magnitude) >> layout.mantissa;
  const int64_t fraction_mask = (int64_t{1} << layout.mantissa) - 1;
  const Value kept = bits & (layout.sign | fraction_mask);
  const Value half = like(bits, 0) + (layout.bias << layout.mantissa);
  const Value fraction = bitcast(a.type(), kept | half);
  const Value exponent =
      field - layout.bias - select(tiny, like(bits, 0) + (layout.mantissa + 2), 0);
  const Value plain = (a == 0) | is_nan(a) | is_inf(a);
  return {select(plain, a, fraction), select(plain, 0, cast(Type::kI32, exponent))};
}

// a 2^n, rounded once. Two factors bring n into the exponents of normal numbers; those downwards
// leave a mantissa's bits to the last one, so that no step before it meets a subnormal number.
Value scaled_by_power_of_two(Value a, Value n) {
  const Layout layout = layout_of(a);
  const int most = static_cast<int>(layout.bias) + 1, least = 1 - most;
  const int down = least + layout.mantissa + 1;
  Value result = a, left = n;
  for (int step = 0; step < 2; ++step) {
    const Value above = left > most, below = left < least;
    result = result *
             select(above, std::ldexp(1.0, most), select(below, like(a, std::ldexp(1.0, down)), 1));
    left = left - select(above, most, select(below, like(a, down), 0));
  }
  left = select(left < most, select(left > least, left, least), most);
  const Value exponent = cast(layout.bits, left) + most;
  return select(is_nan(n), n, result * bitcast(a.type(), exponent << layout.mantissa));
}

constexpr uint8_t kSingleTypes = kFloatTypes | kNoHalfTypes;

// A row of a function's inputs alone.
template <auto function>
constexpr Op row(const char* name, uint8_t types, const char* stub) {
  return {name, arity(function), 0, 1, types, 0, stub, calls<function>()};
}

template <auto function>
constexpr Op wide_row(const char* name, uint8_t types, const char* stub) {
  return {name, arity(function), 0, 1, types, 0, stub, calls_wide<function>()};
}

// On [0, 1] instead of [-1, 1].
template <Value (*function)(Value, Value)>
constexpr Op shifted_row(const char* name, const char* stub) {
  const auto formula = [](In x, In) { return function(x[0] + x[0] - 1, x[1]); };
  return {name, 2, 0, 1, kSingleTypes, 0, stub, formula};
}

const Op kRows[] = {
    wide_row<ir::erfcx>("erfcx", kSingleTypes, "special_erfcx_stub"),
    wide_row<ir::ndtri>("ndtri", kSingleTypes, "special_ndtri_stub"),
    wide_row<ir::log_ndtr>("log_ndtr", kSingleTypes, "special_log_ndtr_stub"),
    wide_row<ir::bessel_i0>("i0", kFloatTypes, "i0_stub"),
    wide_row<ir::bessel_i0e>("i0e", kFloatTypes, "special_i0e_stub"),
    wide_row<ir::bessel_i1>("i1", kFloatTypes, "special_i1_stub"),
    wide_row<ir::bessel_i1e>("i1e", kFloatTypes, "special_i1e_stub"),
    wide_row<ir::bessel_j0>("bessel_j0", kSingleTypes, "special_bessel_j0_stub"),
    wide_row<ir::bessel_j1>("bessel_j1", kSingleTypes, "special_bessel_j1_stub"),
    wide_row<ir::bessel_y0>("bessel_y0", kSingleTypes, "special_bessel_y0_stub"),
    wide_row<ir::bessel_y1>("bessel_y1", kSingleTypes, "special_bessel_y1_stub"),
    wide_row<ir::bessel_i0>("modified_bessel_i0", kSingleTypes, "special_modified_bessel_i0_stub"),
    wide_row<ir::bessel_i1>("modified_bessel_i1", kSingleTypes, "special_modified_bessel_i1_stub"),
    wide_row<ir::bessel_k0>("modified_bessel_k0", kSingleTypes, "special_modified_bessel_k0_stub"),
    wide_row<ir::bessel_k1>("modified_bessel_k1", kSingleTypes, "special_modified_bessel_k1_stub"),
    wide_row<ir::bessel_k0e>("scaled_bessel_k0", kSingleTypes,
                             "special_scaled_modified_bessel_k0_stub"),
    wide_row<ir::bessel_k1e>("scaled_bessel_k1", kSingleTypes,
                             "special_scaled_modified_bessel_k1_stub"),
    wide_row<ir::spherical_bessel_j0>("spherical_bessel_j0", kSingleTypes,
                                      "special_spherical_bessel_j0_stub"),
    wide_row<ir::airy_ai>("airy_ai", kSingleTypes, "special_airy_ai_stub"),
    {"kaiser_window", 1, 2, 1, kFloatTypes, 0, "kaiser_window_stub", calls<kaiser_window>()},
    {"trigamma", 1, 0, 1, kFloatTypes, 0, "trigamma_stub", calls<trigamma_of_rounded_angles>()},
    {"polygamma", 1, 1, 1, kFloatTypes, 0, "", calls<polygamma>()},
    {"standard_gamma_gradient", 2, 0, 1, kFloatTypes, 0, "", calls_wide<ir::gamma_gradient>()},
    {"dirichlet_gradient", 3, 0, 1, kFloatTypes, 0, "", calls_wide<ir::dirichlet_gradient>()},
    row<ir::zeta>("zeta", kSingleTypes, "zeta_stub"),
    row<ir::igamma>("igamma", kFloatTypes, "igamma_stub"),
    row<ir::igammac>("igammac", kFloatTypes, "igammac_stub"),
    row<ir::chebyshev_t>("chebyshev_t", kSingleTypes, "chebyshev_polynomial_t_stub"),
    row<ir::chebyshev_u>("chebyshev_u", kSingleTypes, "chebyshev_polynomial_u_stub"),
    row<ir::chebyshev_v>("chebyshev_v", kSingleTypes, "chebyshev_polynomial_v_stub"),
    row<ir::chebyshev_w>("chebyshev_w", kSingleTypes, "chebyshev_polynomial_w_stub"),
    shifted_row<ir::chebyshev_t>("shifted_chebyshev_t", "shifted_chebyshev_polynomial_t_stub"),
    shifted_row<ir::chebyshev_u>("shifted_chebyshev_u", "shifted_chebyshev_polynomial_u_stub"),
    shifted_row<ir::chebyshev_v>("shifted_chebyshev_v", "shifted_chebyshev_polynomial_v_stub"),
    shifted_row<ir::chebyshev_w>("shifted_chebyshev_w", "shifted_chebyshev_polynomial_w_stub"),
    row<ir::hermite_h>("hermite_h", kSingleTypes, "hermite_polynomial_h_stub"),
    row<ir::hermite_he>("hermite_he", kSingleTypes, "hermite_polynomial_he_stub"),
    row<ir::laguerre_l>("laguerre_l", kSingleTypes, "laguerre_polynomial_l_stub"),
    row<ir::legendre_p>("legendre_p", kSingleTypes, "legendre_polynomial_p_stub"),
    {"nextafter", 2, 0, 1, kFloatTypes, 0, "nextafter_stub",
     [](In x, In) { return next_after(x[0], x[1], 0); }},
    // Of bfloat16 numbers in float32.
    {"nextafter_bfloat16", 2, 0, 1, kFloatTypes, 0, "",
     [](In x, In) { return next_after(x[0], x[1], x[0].type() == Type::kF32 ? 16 : 45); }},
    // Of float16 numbers in float32.
    {"nextafter_float16", 2, 0, 1, kFloatTypes, 0, "", calls<next_after_float16>()},
    {"frexp", 1, 0, 2, kFloatTypes, 0, "frexp_stub", calls<fraction_and_exponent>()},
    row<scaled_by_power_of_two>("ldexp", kFloatTypes, "ldexp_stub"),
    {"gcd", 2, 0, 1, kIntegerTypes, 0, "gcd_stub", calls<ir::gcd>()},
    {"lcm", 2, 0, 1, kIntegerTypes, 0, "lcm_stub", calls<lcm>()},
    {"complex", 2, 0, 1, kComplexTypes, 0, "complex_stub", Formula(),
     [](In x, In) -> Results {
       return {x[0], x[2]};
     }},
    {"polar", 2, 0, 1, kComplexTypes, 0, "polar_stub", Formula(),
     [](In x, In) -> Results {
       return {x[0] * cos(x[2]), x[0] * sin(x[2])};
     }},
};

}  // namespace

std::span<const Op> special_ops() { return kRows; }

}  // namespace graft
