// src/kernels/linalg/plane_rotation.h: the rotation of two columns that makes them independent.
#pragma once

#include "kernels/linalg/matrix_number.h"

namespace graft {

inline Value magnitude(Value x) { return abs(x); }
// Of numbers whose squares neither overflow nor vanish.
inline Value magnitude(ComplexValue z) { return sqrt(z.re * z.re + z.im * z.im); }

// Jacobi's rotation: [[first, cross], [cross*, second]] becomes diagonal when its columns are
// turned, and its rows as the conjugates are. The smaller of the two angles, which Jacobi's methods
// need to converge. Golub & Van Loan, Matrix Computations, 4th ed., algorithm 8.5.1. REQUIRES: the
// numbers are of order 1, size = |cross| > 0.
template <class Number>
class PlaneRotation {
 public:
  PlaneRotation(Value first, Value second, Number cross, Value size)
      : phase_(conjugate(over_real(cross, size))) {
    const Value zeta = (second - first) / (size * 2);
    const Value tangent = 1 / (abs(zeta) + sqrt(1 + zeta * zeta));
    tangent_ = select(zeta < 0, -tangent, tangent);
    cosine_ = 1 / sqrt(1 + tangent_ * tangent_);
    sine_ = tangent_ * cosine_;
  }

  // How much the diagonal changes: first loses, second gains it.
  Value moved(Value size) const { return tangent_ * size; }

  Number first(Number p, Number q) const { return by(p, cosine_) - by(q * phase_, sine_); }
  Number second(Number p, Number q) const { return by(p, sine_) + by(q * phase_, cosine_); }

 private:
  static Value by(Value x, Value factor) { return x * factor; }
  static ComplexValue by(ComplexValue z, Value factor) { return {z.re * factor, z.im * factor}; }

  Number phase_;
  Value tangent_, cosine_, sine_;
};

// Calls sweep, which returns whether it turned any columns, until one turns none; 40 times at most,
// far more than the six to ten that small matrices take. Returns what the last one did: not 0 where
// the columns are not independent yet.
template <class Sweep>
Value sweep_until_still(ir::Builder& b, Sweep sweep) {
  const ir::Variable turned(b.i64(0));
  b.loop(b.i64(0), b.i64(40), [&](Value) {
    turned = sweep();
    b.break_if(turned.get() == 0);
  });
  return turned.get();
}

// 2^-23 or 2^-52, of the value's type.
inline Value epsilon_like(Value x) {
  return like(x, x.type() == ir::Type::kF64 ? 0x1p-52 : 0x1p-23);
}

// Turns columns p and q (places of their first elements) of the rows of a.
template <class Matrix, class Number>
void turn_columns(ir::Builder& b, const Matrix& a, Value p, Value q, Value rows,
                  const PlaneRotation<Number>& rotation) {
  b.vector_loop(b.i64(0), rows, [&](Value i) {
    const Value at_p = a.down(p, i), at_q = a.down(q, i);
    const Number x = a.load(at_p), y = a.load(at_q);
    a.store(at_p, rotation.first(x, y));
    a.store(at_q, rotation.second(x, y));
  });
}

template <class Matrix>
void exchange_columns(ir::Builder& b, const Matrix& a, Value p, Value q, Value rows) {
  b.vector_loop(b.i64(0), rows, [&](Value i) {
    const Value at_p = a.down(p, i), at_q = a.down(q, i);
    const auto x = a.load(at_p), y = a.load(at_q);
    a.store(at_p, y);
    a.store(at_q, x);
  });
}

// The identity matrix, n by n, at the place base.
template <class Matrix>
void store_identity(ir::Builder& b, const Matrix& a, Value base, Value n) {
  const auto zero = number_like(a.load(base), 0);
  b.loop(b.i64(0), n, [&](Value j) {
    b.vector_loop(b.i64(0), n, [&](Value i) {
      a.store(a.at(base, i, j), select(i == j, number_like(zero, 1), zero));
    });
  });
}

// Sorts values[first .. first + n), smallest first or last; exchange(i, k) does as much to what
// goes with them.
template <class Exchange>
void sort_with(ir::Builder& b, const ir::Address& values, Value first, Value n, bool ascending,
               Exchange exchange) {
  b.loop(b.i64(0), n, [&](Value k) {
    const ir::Variable place(k), best(values.load(first + k));
    b.loop(k + 1, n, [&](Value i) {
      const Value found = values.load(first + i);
      const Value better = ascending ? found < best.get() : found > best.get();
      place = select(better, i, place.get());
      best = select(better, found, best.get());
    });
    b.if_(place.get() != k, [&] {
      values.store(first + place.get(), values.load(first + k));
      values.store(first + k, best.get());
      exchange(k, place.get());
    });
  });
}

}  // namespace graft
