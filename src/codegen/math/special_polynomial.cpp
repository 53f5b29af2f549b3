// src/codegen/math/special_polynomial.cpp: orthogonal polynomials by their recurrences.
#include <functional>
#include <limits>

#include "codegen/math/special_functions.h"

namespace graft::ir {

namespace {

// Degrees up to here keep within the loop's counter.
constexpr double kLargestDegree = 1e9;
// From here on a degree does not fit int64, and counts as negative.
constexpr double kNoDegree = 0x1p63;

// -1 for NaN and what is out of reach.
Value degree(Value n) { return trunc(select((n > -1) & (n < kNoDegree), n, -1)); }

Value odd(Value n) { return n - floor(n * 0.5) * 2 != 0; }

// p(0) = 1, p(1) = first, p(k) = step(k, p(k - 1), p(k - 2)): A. & S. 22.7. Steps are rounded once
// where they subtract: what cancels there grows with the degree.
Value recurrence(Value n, Value first,
                 const std::function<Value(Value k, Value p1, Value p0)>& step) {
  Builder& b = n.builder();
  const Variable before(like(n, 1)), last(first);
  const Value bounded = select(n > kLargestDegree, kLargestDegree, n);
  const Value end = cast(Type::kI32, select(bounded > 0, bounded, 0)) + 1;
  b.loop(b.constant(Type::kI32, 2), end, [&](Value k) {
    b.break_if(is_nan(last));
    const Value next = step(cast(n.type(), k), last, before);
    before = last.get();
    last = next;
  });
  return select(n < 0, 0, select(n == 0, 1, last.get()));
}

// All four kinds of Chebyshev's share the recurrence.
Value chebyshev(Value x, Value n, Value first) {
  return recurrence(n, first, [&](Value, Value p1, Value p0) { return fma(x + x, p1, -p0); });
}

// Inside (-1, 1) and from a degree on the closed form is as exact and needs no loop.
Value closed_or(Value x, Value n, int from, Value closed, Value otherwise) {
  return select((n > from) & (abs(x) < 1), closed, otherwise);
}

// The degree that the recurrence runs to: 1 where a closed form takes its place.
Value looped(Value x, Value n, int from) { return select((n > from) & (abs(x) < 1), 1, n); }

Value at_ends(Value x, Value n, Value right, Value left, Value otherwise) {
  const Value end = select(x > 0, right, left);
  return select((abs(x) == 1) & (n >= 0), end, otherwise);
}

}  // namespace

Value formula_chebyshev_t(Value x, Value n) {
  n = degree(n);
  const Value loop = chebyshev(x, looped(x, n, 6), x);
  const Value left = select(odd(n), like(x, -1), 1);
  return at_ends(x, n, like(x, 1), left, closed_or(x, n, 6, cos(n * acos(x)), loop));
}

Value formula_chebyshev_u(Value x, Value n) {
  n = degree(n);
  const Value angle = acos(x), loop = chebyshev(x, looped(x, n, 8), x + x);
  const Value closed = sin((n + 1) * angle) / sin(angle);
  const Value left = select(odd(n), -(n + 1), n + 1);
  return at_ends(x, n, n + 1, left, closed_or(x, n, 8, closed, loop));
}

Value formula_chebyshev_v(Value x, Value n) {
  n = degree(n);
  const Value angle = acos(x), loop = chebyshev(x, looped(x, n, 8), x + x - 1);
  const Value closed = cos((n + 0.5) * angle) / cos(angle * 0.5);
  const Value left = select(odd(n), -(n + n + 1), n + n + 1);
  return at_ends(x, n, like(x, 1), left, closed_or(x, n, 8, closed, loop));
}

Value formula_chebyshev_w(Value x, Value n) {
  n = degree(n);
  const Value angle = acos(x), loop = chebyshev(x, looped(x, n, 8), x + x + 1);
  const Value closed = sin((n + 0.5) * angle) / sin(angle * 0.5);
  const Value left = select(odd(n), like(x, -1), 1);
  return at_ends(x, n, n + n + 1, left, closed_or(x, n, 8, closed, loop));
}

// Degrees whose values overflow are NaN, as in PyTorch.
static Value bounded_degree(Value n, Value value) {
  const double most = n.type() == Type::kF32 ? 128 : 512;
  return select(n > most, std::numeric_limits<double>::quiet_NaN(), value);
}

Value formula_hermite_h(Value x, Value n) {
  n = degree(n);
  const Value result = recurrence(
      n, x + x, [&](Value k, Value p1, Value p0) { return fma(x + x, p1, (2 - k - k) * p0); });
  return bounded_degree(n, result);
}

Value formula_hermite_he(Value x, Value n) {
  n = degree(n);
  const Value result =
      recurrence(n, x, [&](Value k, Value p1, Value p0) { return fma(x, p1, (1 - k) * p0); });
  return bounded_degree(n, result);
}

Value formula_laguerre_l(Value x, Value n) {
  n = degree(n);
  return recurrence(n, 1 - x, [&](Value k, Value p1, Value p0) {
    return fma(k + k - 1 - x, p1, (1 - k) * p0) / k;
  });
}

Value formula_legendre_p(Value x, Value n) {
  n = degree(n);
  const Value loop = recurrence(n, x, [&](Value k, Value p1, Value p0) {
    return fma((k + k - 1) * x, p1, (1 - k) * p0) / k;
  });
  return at_ends(x, n, like(x, 1), select(odd(n), like(x, -1), 1), loop);
}

}  // namespace graft::ir
