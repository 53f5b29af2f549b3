// src/codegen/math/special_functions.h: special functions in terms of the basic instructions.
#pragma once

#include <span>

#include "codegen/ir/builder.h"

namespace graft::ir {

// All take and give f64 unless stated otherwise: float32 rows compute wide and round once. Errors
// stay below 1e-13 of max(1, |result|), those with a bound of their own aside
// (tests/codegen/math/special_test.cpp). Poles, infinities and arguments outside the domain give
// what PyTorch's CPU kernels give. A. & S.: Abramowitz and Stegun, Handbook of Mathematical
// Functions.

// sum' c[k] T_k(t), |t| <= 1, by Clenshaw's recurrence (Mathematics of Computation 9, 1955).
Value chebyshev_series(Value t, std::span<const double> c);

// special_bessel.cpp. Series near 0, Hankel's expansions beyond 8 (A. & S. 9.2.5, 9.7).
Value bessel_i0(Value x);
Value bessel_i0e(Value x);  // exp(-|x|) I0(x)
Value bessel_i1(Value x);
Value bessel_i1e(Value x);
Value bessel_k0(Value x);
Value bessel_k0e(Value x);  // exp(x) K0(x)
Value bessel_k1(Value x);
Value bessel_k1e(Value x);
Value bessel_j0(Value x);
Value bessel_j1(Value x);
Value bessel_y0(Value x);
Value bessel_y1(Value x);
Value spherical_bessel_j0(Value x);
Value airy_ai(Value x);  // NaN at infinities, as PyTorch's

// special_gamma.cpp
Value trigamma(Value x);
// Hurwitz' function: sum of (k + q)^-x. The two of the regularised incomplete gamma function.
Value formula_zeta(Value x, Value q);
Value formula_igamma(Value a, Value x);
Value formula_igammac(Value a, Value x);
// Integers: both operands' sign is dropped; gcd(0, 0) is 0.
Value formula_gcd(Value a, Value b);

// special_gradients.cpp. The formulas, and with them the errors against the exact gradient (up to
// 1e-3 of it), are PyTorch's (ATen/native/Distributions.h); what is within 1e-12 is its result.
// How a sample x of the standard gamma distribution changes with alpha.
Value gamma_gradient(Value alpha, Value x);
// How a sample x of the beta distribution of alpha and total - alpha changes with alpha, over 1 -
// x.
Value dirichlet_gradient(Value x, Value alpha, Value total);

// special_error.cpp
Value erfcx(Value x);     // exp(x^2) erfc(x)
Value log_ndtr(Value x);  // log of the normal distribution
Value ndtri(Value p);     // its inverse
// Inverse of erf; of f32 too, which it computes in f32.
Value erf_inverse(Value x);

// special_polynomial.cpp: f32 or f64, in which they compute; n is cut to an integer; 0 for n < 0.
Value formula_chebyshev_t(Value x, Value n);
Value formula_chebyshev_u(Value x, Value n);
Value formula_chebyshev_v(Value x, Value n);
Value formula_chebyshev_w(Value x, Value n);
Value formula_hermite_h(Value x, Value n);
Value formula_hermite_he(Value x, Value n);
Value formula_laguerre_l(Value x, Value n);
Value formula_legendre_p(Value x, Value n);

}  // namespace graft::ir
