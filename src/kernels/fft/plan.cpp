// src/kernels/fft/plan.cpp: how a length is taken apart, and the tables of its transform.
#include "kernels/fft/plan.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace graft {

std::vector<int> fft_radices(int64_t length) {
  std::vector<int> radices;
  int twos = 0;
  for (; length % 2 == 0; length /= 2) ++twos;
  // Eights, and what they leave in fours where that is possible.
  for (; twos >= 5 || twos == 3; twos -= 3) radices.push_back(8);
  for (; twos >= 2; twos -= 2) radices.push_back(4);
  if (twos == 1) radices.push_back(2);
  for (int prime = 3; prime <= kMostFftPrime; prime += 2) {
    for (; length % prime == 0; length /= prime) radices.push_back(prime);
  }
  if (length != 1) radices.clear();
  return radices;
}

int64_t fft_divisor(int64_t length, int64_t most) {
  int64_t best = 1;
  for (int64_t low = 2; low <= most && low * low <= length; ++low) {
    if (length % low == 0) best = low;
  }
  return best;
}

int64_t fft_good_length(int64_t least) {
  for (int64_t length = std::max<int64_t>(least, 1);; ++length) {
    int64_t rest = length;
    for (const int64_t prime : {2, 3, 5}) {
      while (rest % prime == 0) rest /= prime;
    }
    if (rest == 1) return length;
  }
}

std::complex<double> fft_root(int64_t power, int64_t length) {
  power %= length;
  // Within an eighth of the circle, so that equal numbers come from equal angles.
  const int64_t quarter = (8 * power / length + 1) / 2;
  const int64_t numerator = 4 * power - quarter * length;  // of a quarter, within +-1/2
  const double angle =
      std::numbers::pi / 2 * static_cast<double>(numerator) / static_cast<double>(length);
  const double c = std::cos(angle), s = std::sin(angle);
  switch (quarter % 4) {
    case 0:
      return {c, -s};
    case 1:
      return {-s, -c};
    case 2:
      return {-c, s};
    default:
      return {s, c};
  }
}

std::vector<std::complex<double>> fft_chirp(int64_t count, int64_t length) {
  std::vector<std::complex<double>> chirp;
  int64_t square = 0;  // k^2 modulo the period
  for (int64_t k = 0; k < count; ++k) {
    chirp.push_back(fft_root(square, 2 * length));
    square = (square + 2 * k + 1) % (2 * length);
  }
  return chirp;
}

std::vector<std::complex<double>> fft_on_host(const std::vector<std::complex<double>>& x) {
  const auto length = static_cast<int64_t>(x.size());
  std::vector<std::complex<double>> from = x, to = x, roots;
  for (int64_t power = 0; power < length; ++power) roots.push_back(fft_root(power, length));
  int64_t done = 1;
  for (const int64_t radix : fft_radices(length)) {
    const int64_t share = length / radix;
    for (int64_t p = 0; p < share / done; ++p) {
      for (int64_t target = 0; target < radix * done; ++target) {
        const int64_t k = target / done, q = target % done;
        std::complex<double> sum = 0;
        for (int64_t j = 0; j < radix; ++j) {
          sum += from[static_cast<size_t>(p * done + q + j * share)] *
                 roots[static_cast<size_t>(k * (j * share + p * done) % length)];
        }
        to[static_cast<size_t>(p * done * radix + target)] = sum;
      }
    }
    std::swap(from, to);
    done *= radix;
  }
  return from;
}

}  // namespace graft
