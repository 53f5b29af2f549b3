// src/kernels/fft/plan.h: how a length is taken apart, and the tables of its transform.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "runtime/driver/export.h"

namespace graft {

// Primes up to here are summed as they stand; a length with a larger one goes to Bluestein's.
inline constexpr int64_t kMostFftPrime = 61;

// The radices that one launch takes for a length, or nothing where a prime is too large.
GRAFT_EXPORT std::vector<int> fft_radices(int64_t length);

// The largest divisor of length that is neither above its square root nor above most.
GRAFT_EXPORT int64_t fft_divisor(int64_t length, int64_t most);

// The least length of factors 2, 3 and 5 that is at least so long.
GRAFT_EXPORT int64_t fft_good_length(int64_t least);

// exp(-2 pi i power / length); the angle is reduced in whole numbers first.
GRAFT_EXPORT std::complex<double> fft_root(int64_t power, int64_t length);

// exp(-i pi k^2 / length) for k in [0, count).
GRAFT_EXPORT std::vector<std::complex<double>> fft_chirp(int64_t count, int64_t length);

// The transform on the host, for tables. REQUIRES: fft_radices knows the length.
GRAFT_EXPORT std::vector<std::complex<double>> fft_on_host(
    const std::vector<std::complex<double>>& x);

}  // namespace graft
