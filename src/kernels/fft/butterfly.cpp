// src/kernels/fft/butterfly.cpp: the short transforms that longer ones are made of.
#include "kernels/fft/butterfly.h"

#include <cmath>
#include <numbers>

namespace graft {
namespace {

using Numbers = std::vector<ComplexValue>;

ComplexValue scaled(ComplexValue a, double by) { return {a.re * by, a.im * by}; }
ComplexValue turned_back(ComplexValue a) { return {a.im, -a.re}; }  // times -i

double cosine(int k, int n) { return std::cos(2 * std::numbers::pi * k / n); }
double sine(int k, int n) { return std::sin(2 * std::numbers::pi * k / n); }

Numbers three(const Numbers& x) {
  const ComplexValue sum = x[1] + x[2];
  const ComplexValue middle = x[0] + scaled(sum, cosine(1, 3));
  const ComplexValue side = turned_back(scaled(x[1] - x[2], sine(1, 3)));
  return {x[0] + sum, middle + side, middle - side};
}

Numbers four(const Numbers& x) {
  const ComplexValue even = x[0] + x[2], odd = x[1] + x[3], apart = x[0] - x[2];
  const ComplexValue side = turned_back(x[1] - x[3]);
  return {even + odd, apart + side, even - odd, apart - side};
}

Numbers five(const Numbers& x) {
  const ComplexValue outer = x[1] + x[4], inner = x[2] + x[3];
  const ComplexValue wide = x[1] - x[4], near = x[2] - x[3];
  const double c1 = cosine(1, 5), c2 = cosine(2, 5), s1 = sine(1, 5), s2 = sine(2, 5);
  const ComplexValue first = x[0] + scaled(outer, c1) + scaled(inner, c2);
  const ComplexValue second = x[0] + scaled(outer, c2) + scaled(inner, c1);
  const ComplexValue one = turned_back(scaled(wide, s1) + scaled(near, s2));
  const ComplexValue two = turned_back(scaled(wide, s2) - scaled(near, s1));
  return {x[0] + outer + inner, first + one, second + two, second - two, first - one};
}

Numbers eight(const Numbers& x) {
  const Numbers even = four({x[0], x[2], x[4], x[6]}), odd = four({x[1], x[3], x[5], x[7]});
  const double root = std::numbers::sqrt2 / 2;
  const auto diagonal = [&](ComplexValue a) { return scaled(a + turned_back(a), root); };
  const Numbers side = {odd[0], diagonal(odd[1]), turned_back(odd[2]),
                        turned_back(diagonal(odd[3]))};
  Numbers y(8);
  for (size_t k = 0; k < 4; ++k) {
    y[k] = even[k] + side[k];
    y[k + 4] = even[k] - side[k];
  }
  return y;
}

}  // namespace

bool has_butterfly(int radix) { return (radix >= 2 && radix <= 5) || radix == 8; }

std::vector<ComplexValue> butterfly(const std::vector<ComplexValue>& x) {
  switch (x.size()) {
    case 2:
      return {x[0] + x[1], x[0] - x[1]};
    case 3:
      return three(x);
    case 4:
      return four(x);
    case 5:
      return five(x);
    default:
      return eight(x);
  }
}

}  // namespace graft
