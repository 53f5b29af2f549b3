// src/codegen/ir/composition.cpp: the compositions of instructions that several kernels share.
#include <limits>

#include "codegen/ir/builder.h"

namespace graft::ir {

Value is_nan(Value a) { return is_float(a.type()) ? a != a : a.builder().boolean(false); }

Value is_inf(Value a) {
  if (!is_float(a.type())) return a.builder().boolean(false);
  return abs(a) == std::numeric_limits<double>::infinity();
}

// a where that is better than b, or where this one is NaN.
static Value better_of(Value better, Value nan, Value a, Value b) {
  return select(is_float(a.type()) ? better | is_nan(nan) : better, a, b);
}

Value maximum(Value a, Value b) { return better_of(a > b, a, a, b); }
Value minimum(Value a, Value b) { return better_of(a < b, a, a, b); }
Value fmax(Value a, Value b) { return better_of(a > b, b, a, b); }
Value fmin(Value a, Value b) { return better_of(a < b, b, a, b); }

Value floor_mod(Value a, Value b) {
  const Value remainder = is_float(a.type()) ? fmod(a, b) : a % b;
  if (!is_signed(a.type())) return remainder;
  const Value differs = (remainder != 0) & ((remainder < 0) != (b < 0));
  if (is_float(a.type())) return select(differs, remainder + b, remainder);
  return remainder + (b & -cast(a.type(), differs));  // a branch is foretold wrongly half the time
}

// f32: the quotient in f64 meets an integer only where the exact one does. Infinite divisors leave
// a zero of the quotient's sign, or -1; infinite dividends NaN, as in Python.
static Value floor_div_f32(Value a, Value b) {
  const Value quotient = a / b;
  const Value floored = cast(Type::kF32, floor(cast(Type::kF64, a) / cast(Type::kF64, b)));
  const Value opposite = (a < 0) != (b < 0);
  const Value beyond = select(opposite & (a != 0), select(is_nan(a), a, -1), quotient);
  const Value finite = select(is_inf(b), beyond, floored);
  const Value nan = like(a, std::numeric_limits<double>::quiet_NaN());
  return select(b == 0, quotient, select(is_inf(a), nan, finite));
}

// f64: the algorithm of PyTorch's div_floor, which is Python's: exact where the quotient is.
Value floor_div(Value a, Value b) {
  if (!is_float(a.type())) {
    const Value quotient = a / b;
    if (!is_signed(a.type())) return quotient;
    const Value inexact = quotient * b != a;
    const Value adjust = inexact & ((a < 0) != (b < 0)) & (b != 0);
    return quotient - cast(a.type(), adjust);
  }
  if (a.type() == Type::kF32) return floor_div_f32(a, b);
  const Value remainder = fmod(a, b);
  const Value shifted = (a - remainder) / b;
  const Value adjust = (remainder != 0) & ((remainder < 0) != (b < 0));
  const Value quotient = select(adjust, shifted - 1, shifted);
  const Value floored = floor(quotient);
  const Value rounded = select(quotient - floored > 0.5, floored + 1, floored);
  const Value result = select(quotient != 0, rounded, copysign(like(a, 0), a / b));
  return select(b == 0, a / b, result);
}

Value sigmoid(Value a) { return 1 / (1 + exp(-a)); }
Value rsqrt(Value a) { return 1 / sqrt(a); }

Values fold(const Values& first, Value begin, Value end,
            const std::function<Values(const Values& acc, Value i)>& step,
            const std::function<Values(const Values& a, const Values& b)>& combine,
            uint32_t lanes) {
  Builder& b = begin.builder();
  const auto at = [&b, &begin](int64_t number) { return b.constant(begin.type(), number); };
  const auto arrays = [&] {
    std::vector<Lanes> made;
    for (const Value& value : first) made.emplace_back(b, value.type(), lanes);
    return made;
  };
  const auto load = [](const std::vector<Lanes>& from, Value lane) {
    Values acc;
    for (const Lanes& array : from) acc.push_back(array.load(lane));
    return acc;
  };
  const auto store = [](const std::vector<Lanes>& to, Value lane, const Values& acc) {
    for (size_t k = 0; k < to.size(); ++k) to[k].store(lane, acc[k]);
  };
  // Only the second is addressed by what is known at run time: the first can live in registers.
  const std::vector<Lanes> whole_steps = arrays(), totals = arrays();
  const auto each = [&](Value count, const std::function<void(Value lane)>& body) {
    b.vector_loop(at(0), count, body);
  };
  each(at(lanes), [&](Value lane) { store(whole_steps, lane, first); });
  const Value whole = begin + (end - begin) / lanes * lanes;
  const auto whole_step = [&](Value i) {
    each(at(lanes),
         [&](Value lane) { store(whole_steps, lane, step(load(whole_steps, lane), i + lane)); });
  };
  b.loop(begin, whole, whole_step, at(lanes));
  each(at(lanes), [&](Value lane) { store(totals, lane, load(whole_steps, lane)); });
  each(end - whole,
       [&](Value lane) { store(totals, lane, step(load(totals, lane), whole + lane)); });
  for (uint32_t width = lanes / 2; width > 0; width /= 2) {
    each(at(width), [&](Value lane) {
      store(totals, lane, combine(load(totals, lane), load(totals, lane + width)));
    });
  }
  return load(totals, at(0));
}

Value reduce(Value first, Value begin, Value end, const std::function<Value(Value i)>& body,
             const std::function<Value(Value a, Value b)>& combine, uint32_t lanes) {
  const auto step = [&](const Values& acc, Value i) { return Values{combine(acc[0], body(i))}; };
  const auto join = [&](const Values& a, const Values& b) { return Values{combine(a[0], b[0])}; };
  return fold({first}, begin, end, step, join, lanes)[0];
}

}  // namespace graft::ir
