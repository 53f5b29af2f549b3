# tools/fit_polynomials.py: computes the polynomials of src/codegen/math.
"""Prints each polynomial's coefficients (constant term first) and its largest error.

Each is the Chebyshev interpolant of a smooth function, computed with 60 digits, so within a small
factor of the best one. Needs mpmath, which comes with torch. Usage: tools/fit_polynomials.py
"""

from __future__ import annotations

from collections.abc import Callable

from mpmath import mp, mpf

mp.dps = 60


def fit(function: Callable[[mpf], mpf], low: str | mpf, high: str | mpf, terms: int) -> list[mpf]:
    low, high = mpf(low), mpf(high)
    nodes = [mp.cos(mp.pi * (k + mpf(1) / 2) / terms) for k in range(terms)]
    points = [(low + high) / 2 + (high - low) / 2 * node for node in nodes]
    return interpolate(points, [function(point) for point in points])


def interpolate(points: list[mpf], values: list[mpf]) -> list[mpf]:
    """Newton's divided differences, expanded to powers."""
    table = list(values)
    for order in range(1, len(points)):
        for i in range(len(points) - 1, order - 1, -1):
            table[i] = (table[i] - table[i - 1]) / (points[i] - points[i - order])
    coefficients = [mpf(0)]
    for i in range(len(points) - 1, -1, -1):
        shifted = [mpf(0), *coefficients]
        scaled = [c * -points[i] for c in coefficients] + [mpf(0)]
        coefficients = [a + b for a, b in zip(shifted, scaled, strict=True)]
        coefficients[0] += table[i]
    return coefficients[: len(points)]


def largest_error(
    function: Callable[[mpf], mpf], coefficients: list[mpf], low: str | mpf, high: str | mpf
) -> mpf:
    low, high = mpf(low), mpf(high)
    worst = mpf(0)
    for k in range(1, 400):
        x = low + (high - low) * k / 400
        y = function(x)
        worst = max(worst, abs(mp.polyval(coefficients[::-1], x) - y) / max(abs(y), mpf(10) ** -30))
    return worst


def inverted(f: Callable[[mpf], mpf]) -> Callable[[mpf], mpf]:
    """f of the square root: for even and odd functions."""
    return lambda s: f(mp.sqrt(s)) if s > 0 else f(mpf(10) ** -20)


def log_gamma_over_roots(u: mpf) -> mpf:
    """log(gamma(x)) / ((x - 1) (x - 2)) for x = u + 1.5."""
    x = u + mpf(3) / 2
    if abs((x - 1) * (x - 2)) < mpf(10) ** -25:
        x += mpf(10) ** -20
    return mp.loggamma(x) / ((x - 1) * (x - 2))


def erf_inverse_ratio(w: mpf) -> mpf:
    """erfinv(x) / x for w = -log(1 - x^2)."""
    x = mp.sqrt(-mp.expm1(-max(w, mpf(10) ** -20)))
    return mp.erfinv(x) / x


HALF_LN2 = mp.log(2) / 2 * mpf("1.0001")
QUARTER_PI = mp.pi / 4 * mpf("1.0001")
LOG_LOW, LOG_HIGH = mp.sqrt(mpf("0.5")) - 1, mp.sqrt(2) - 1

# A function and the ends of its range, for several polynomials.
EXP = (lambda r: (mp.expm1(r) - r) / r**2 if abs(r) > mpf(10) ** -20 else mpf(1) / 2,
       -HALF_LN2, HALF_LN2)  # fmt: skip
LOG = (lambda f: (mp.log1p(f) - f + f * f / 2) / f**3 if abs(f) > mpf(10) ** -15 else mpf(1) / 3,
       LOG_LOW, LOG_HIGH)  # fmt: skip
SIN = (inverted(lambda r: (mp.sin(r) / r - 1) / r**2), mpf(10) ** -12, QUARTER_PI**2)
COS = (inverted(lambda r: (mp.cos(r) - 1 + r * r / 2) / r**4), mpf(10) ** -9, QUARTER_PI**2)
ATAN = inverted(lambda z: (mp.atan(z) / z - 1) / z**2)


def log_ratio(base: int) -> Callable[[mpf], mpf]:
    """(log(1 + f) / f - log(e)) / f for logarithms of this base."""
    small = -1 / mp.log(base**2)
    return lambda f: (mp.log1p(f) / f - 1) / f / mp.log(base) if abs(f) > mpf(10) ** -15 else small


FITS = {
    "exp f32: (exp(r) - 1 - r) / r^2": (*EXP, 5),
    "exp2 f32: (2^r - 1) / r": (
        lambda r: (mp.mpf(2) ** r - 1) / r if abs(r) > mpf(10) ** -20 else mp.log(2),
        mpf("-0.5001"),
        mpf("0.5001"),
        6,
    ),
    "exp f64: the same": (*EXP, 9),
    "log f32: (log(1 + f) - f + f^2 / 2) / f^3": (*LOG, 8),
    "log f64: the same": (*LOG, 16),
    "log f64 within pow: the same": (*LOG, 11),
    "log2 f32: (log2(1 + f) / f - log2(e)) / f": (log_ratio(2), LOG_LOW, LOG_HIGH, 9),
    "log10 f32: (log10(1 + f) / f - log10(e)) / f": (log_ratio(10), LOG_LOW, LOG_HIGH, 9),
    "sin f64: (sin(r) / r - 1) / r^2 in r^2": (*SIN, 5),
    "cos f64: (cos(r) - 1 + r^2 / 2) / r^4 in r^2": (*COS, 5),
    "sin f32: (sin(r) / r - 1) / r^2 in r^2": (*SIN, 3),
    "cos f32: (cos(r) - 1 + r^2 / 2) / r^4 in r^2": (*COS, 3),
    "atan: (atan(z) / z - 1) / z^2 in z^2": (ATAN, mpf(10) ** -12, mpf(1), 15),
    "atan f32: the same": (ATAN, mpf(10) ** -12, mpf("0.2501"), 6),
    "asin f32: (asin(s) / s - 1) / s^2 in s^2": (
        inverted(lambda s: (mp.asin(s) / s - 1) / s**2),
        mpf(10) ** -12,
        mpf("0.25"),
        6,
    ),
    "sin(pi r) / r in r^2": (
        inverted(lambda r: mp.sin(mp.pi * r) / r),
        mpf(10) ** -12,
        mpf("0.0626"),
        7,
    ),
    "cos(pi r) in r^2": (
        inverted(lambda r: mp.cos(mp.pi * r)),
        mpf(10) ** -12,
        mpf("0.0626"),
        7,
    ),
    "lgamma: lgamma(u + 1.5) / ((u + 0.5) (u - 0.5))": (
        log_gamma_over_roots,
        mpf(-1),
        mpf(1),
        20,
    ),
    "erfinv f32: erfinv(x) / x in w - 2.5, w = -log(1 - x^2)": (
        lambda v: erf_inverse_ratio(v + mpf("2.5")),
        mpf("-2.5"),
        mpf("2.5"),
        10,
    ),
    "erfinv f32: the same in sqrt(w) - 3": (
        lambda v: erf_inverse_ratio((v + 3) ** 2),
        mp.sqrt(5) - 3,
        mpf("1.1"),
        10,
    ),
    "erf: log2(1 - erf(x)) / x, 0 < x < 3.95": (
        lambda x: mp.log(mp.erfc(x)) / x / mp.log(2),
        mpf(10) ** -15,
        mpf("3.95"),
        11,
    ),
    "gelu: log2 of the normal distribution's tail beyond t, 0 < t < 5.6": (
        lambda t: mp.log(mp.erfc(t / mp.sqrt(2)) / 2) / mp.log(2),
        mpf(0),
        mpf("5.6"),
        12,
    ),
    "erfc: erfc(x) exp(x^2) in t = (x - 2) / (x + 2), 0 < x < 10.5": (
        lambda t: mp.erfc(2 * (1 + t) / (1 - t)) * mp.exp((2 * (1 + t) / (1 - t)) ** 2),
        mpf(-1),
        mpf("8.5") / mpf("12.5"),
        14,
    ),
}


def main() -> None:
    for name, (function, low, high, terms) in FITS.items():
        coefficients = fit(function, low, high, terms)
        worst = largest_error(function, coefficients, low, high)
        print(f"{name}: largest relative error {mp.nstr(worst, 3)}")
        print("  {" + ", ".join(mp.nstr(c, 17) for c in coefficients) + "}")


if __name__ == "__main__":
    main()
