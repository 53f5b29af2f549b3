// src/codegen/math/math.cpp: the definitions of the mathematical functions, once for all dialects.
#include "codegen/math/math.h"

#include <fmt/format.h>

#include <stdexcept>

#include "codegen/ir/builder.h"
#include "codegen/math/formulas.h"
#include "codegen/math/special_functions.h"
#include "runtime/driver/dtype.h"

namespace graft::ir {

namespace {

struct Definition {
  Math function;
  Value (*formula)(Value a, Value b);
  bool takes_f64 = false;
};

constexpr Definition kDefinitions[] = {
    {Math::k_exp, [](Value a, Value) { return formula_exp(a); }},
    {Math::k_exp2, [](Value a, Value) { return formula_exp2(a); }},
    {Math::k_expm1, [](Value a, Value) { return formula_expm1(a); }},
    {Math::k_log, [](Value a, Value) { return formula_log(a); }},
    {Math::k_log2, [](Value a, Value) { return formula_log2(a); }},
    {Math::k_log10, [](Value a, Value) { return formula_log10(a); }},
    {Math::k_log1p, [](Value a, Value) { return formula_log1p(a); }},
    {Math::k_sin, [](Value a, Value) { return formula_sin(a); }},
    {Math::k_cos, [](Value a, Value) { return formula_cos(a); }},
    {Math::k_tan, [](Value a, Value) { return formula_tan(a); }},
    {Math::k_asin, [](Value a, Value) { return formula_asin(a); }},
    {Math::k_acos, [](Value a, Value) { return formula_acos(a); }},
    {Math::k_atan, [](Value a, Value) { return formula_atan(a); }},
    {Math::k_atan2, [](Value a, Value b) { return formula_atan2(a, b); }},
    {Math::k_sinh, [](Value a, Value) { return formula_sinh(a); }},
    {Math::k_cosh, [](Value a, Value) { return formula_cosh(a); }},
    {Math::k_tanh, [](Value a, Value) { return formula_tanh(a); }},
    {Math::k_asinh, [](Value a, Value) { return formula_asinh(a); }},
    {Math::k_acosh, [](Value a, Value) { return formula_acosh(a); }},
    {Math::k_atanh, [](Value a, Value) { return formula_atanh(a); }},
    {Math::k_erf, [](Value a, Value) { return formula_erf(a); }},
    {Math::k_erfc, [](Value a, Value) { return formula_erfc(a); }},
    {Math::k_digamma, [](Value a, Value) { return formula_digamma(a); }, true},
    {Math::k_lgamma, [](Value a, Value) { return formula_lgamma(a); }},
    {Math::k_pow, [](Value a, Value b) { return formula_pow(a, b); }},
    {Math::k_hypot, [](Value a, Value b) { return formula_hypot(a, b); }},
    {Math::k_zeta, formula_zeta, true},
    {Math::k_igamma, formula_igamma, true},
    {Math::k_igammac, formula_igammac, true},
    {Math::k_chebyshev_t, formula_chebyshev_t, true},
    {Math::k_chebyshev_u, formula_chebyshev_u, true},
    {Math::k_chebyshev_v, formula_chebyshev_v, true},
    {Math::k_chebyshev_w, formula_chebyshev_w, true},
    {Math::k_hermite_h, formula_hermite_h, true},
    {Math::k_hermite_he, formula_hermite_he, true},
    {Math::k_laguerre_l, formula_laguerre_l, true},
    {Math::k_legendre_p, formula_legendre_p, true},
};

const Definition* find(Math function) {
  for (const Definition& definition : kDefinitions) {
    if (definition.function == function) return &definition;
  }
  return nullptr;
}

// The dtype of scalars that are computed in type.
graft_dtype dtype_of(Type type) {
  for (graft_dtype dtype : {GRAFT_UINT8, GRAFT_INT8, GRAFT_INT16, GRAFT_INT32, GRAFT_INT64}) {
    if (compute_type(dtype) == type) return dtype;
  }
  return type == Type::kF64 ? GRAFT_FLOAT64 : GRAFT_FLOAT32;
}

// By squaring, in a loop: GCC takes minutes and gigabytes over the same without one.
Value integer_power(Value base, Value exponent) {
  Builder& b = base.builder();
  const Variable result(like(base, 1)), square(base), rest(exponent);
  b.loop(b.constant(Type::kI32, 0), b.constant(Type::kI32, bytes_of(base.type()) * 8), [&](Value) {
    const Value set = (rest & 1) != 0;
    result = select(set, result * square, result);
    square = square * square;
    rest = rest >> 1;
  });
  if (!is_signed(base.type())) return result;
  const Value odd = (exponent & 1) != 0;
  const Value of_one = select(base == 1, like(base, 1), 0);
  const Value inverse = select(base == -1, select(odd, like(base, -1), 1), of_one);
  return select(exponent < 0, inverse, result);
}

void require_half(graft_dtype dtype) {
  if (is_half(dtype)) return;
  throw std::logic_error(
      fmt::format("no conversion of {}: give float16 or bfloat16", graft::name_of(dtype)));
}

Value float16_to_f32(Value stored) {
  const Value bits = cast(Type::kU32, stored);
  const Value magnitude = (bits & 0x7fff) << 13;
  // Exponents differ by 112; the product also makes subnormal numbers normal.
  const Value scaled = bitcast(Type::kU32, bitcast(Type::kF32, magnitude) * 0x1p112);
  const Value special = (bits & 0x7fff) >= 0x7c00;
  const Value exponent = special.builder().constant(Type::kU32, 0x7f800000);
  const Value result = select(special, magnitude | exponent, scaled);
  return bitcast(Type::kF32, result | ((bits & 0x8000) << 16));
}

Value f32_to_float16(Value value) {
  const Value bits = bitcast(Type::kU32, value);
  const Value magnitude = bits & 0x7fffffff;
  const Value sign = (bits >> 16) & 0x8000;
  // Adding 1/2 leaves a subnormal result, rounded, in the low bits.
  const Value aligned = bitcast(Type::kU32, bitcast(Type::kF32, magnitude) + 0.5);
  const Value subnormal = aligned - 0x3f000000;
  const Value normal = (magnitude - 0x38000000 + 0xfff + ((magnitude >> 13) & 1)) >> 13;
  const Value finite = select(magnitude < 0x38800000, subnormal, normal);
  const Value special = select(magnitude > 0x7f800000, like(bits, 0x7e00), like(bits, 0x7c00));
  return cast(Type::kU16, select(magnitude >= 0x47800000, special, finite) | sign);
}

Value bfloat16_to_f32(Value stored) { return bitcast(Type::kF32, cast(Type::kU32, stored) << 16); }

Value f32_to_bfloat16(Value value) {
  const Value bits = bitcast(Type::kU32, value);
  const Value rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  const Value is_nan = (bits & 0x7fffffff) > 0x7f800000;
  return cast(Type::kU16, select(is_nan, like(bits, 0x7fc0), rounded));
}

}  // namespace

bool is_defined(Math function, Type type) {
  if (is_integer(type)) return function == Math::k_pow || function == Math::k_gcd;
  const Definition* definition = find(function);
  if (definition == nullptr || !is_float(type)) return false;
  return type == Type::kF32 || definition->takes_f64;
}

Kernel define(Math function, Type type) {
  if (!is_defined(function, type)) {
    throw std::logic_error(fmt::format("{} has no definition for {}: the dialect must define it",
                                       name_of(function), name_of(type)));
  }
  const graft_dtype dtype = dtype_of(type);
  Builder b(fmt::format("graft_{}_{}", name_of(function), name_of(type)), Family::kCpuLike, type);
  const Value first = b.scalar(dtype);
  const Value second = arity_of(function) > 1 ? b.scalar(dtype) : Value();
  if (is_integer(type)) {
    b.return_(function == Math::k_gcd ? formula_gcd(first, second) : integer_power(first, second));
  } else {
    b.return_(find(function)->formula(first, second));
  }
  return b.finish();
}

Kernel define_load(graft_dtype dtype) {
  require_half(dtype);
  Builder b(fmt::format("graft_f32_from_{}", graft::name_of(dtype)), Family::kCpuLike, Type::kF32);
  const Value stored = b.stored_scalar(dtype, Type::kU16);
  b.return_(dtype == GRAFT_FLOAT16 ? float16_to_f32(stored) : bfloat16_to_f32(stored));
  return b.finish();
}

Kernel define_store(graft_dtype dtype) {
  require_half(dtype);
  Builder b(fmt::format("graft_{}_from_f32", graft::name_of(dtype)), Family::kCpuLike, Type::kU16);
  const Value value = b.scalar(GRAFT_FLOAT32);
  b.return_(dtype == GRAFT_FLOAT16 ? f32_to_float16(value) : f32_to_bfloat16(value));
  return b.finish();
}

Value rounded_to(graft_dtype dtype, Value value) {
  require_half(dtype);
  return dtype == GRAFT_FLOAT16 ? float16_to_f32(f32_to_float16(value))
                                : bfloat16_to_f32(f32_to_bfloat16(value));
}

}  // namespace graft::ir
