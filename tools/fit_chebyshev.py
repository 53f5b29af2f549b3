#!/usr/bin/env python3
# tools/fit_chebyshev.py: computes the Chebyshev series of src/codegen/math/special_series.h.
"""Prints the header that holds the series, each cut where its terms fall below 2^-57 of the first.

A series is sum' c[k] T_k(t) over -1 <= t <= 1. The functions come from mpmath, with 40 digits.
Usage: tools/fit_chebyshev.py > src/codegen/math/special_series.h, then clang-format.
"""

from __future__ import annotations

from collections.abc import Callable

from mpmath import mp, mpf

mp.dps = 40
TERMS = 44
HEAD = """\
// src/codegen/math/special_series.h: Chebyshev series of special functions, by tools/fit_chebyshev.py.
#pragma once

namespace graft::ir {

// Each is the series over -1 <= t <= 1 of what its comment says, first term first.
"""


def series(function: Callable[[mpf], mpf]) -> list[mpf]:
    angles = [mp.pi * (k + mpf(1) / 2) / TERMS for k in range(TERMS)]
    values = [function(mp.cos(angle)) for angle in angles]
    found = [
        2 * sum(v * mp.cos(j * a) for v, a in zip(values, angles, strict=True)) / TERMS
        for j in range(TERMS)
    ]
    found[0] /= 2
    least = max(abs(c) for c in found) * mpf(2) ** -57
    while abs(found[-1]) < least:
        found.pop()
    return found


def root(function: Callable[[mpf], mpf], scale: int) -> Callable[[mpf], mpf]:
    """Of x = sqrt(scale (t + 1))."""
    return lambda t: function(mp.sqrt(scale * (t + 1)))


def inverse(function: Callable[[mpf], mpf], scale: mpf) -> Callable[[mpf], mpf]:
    """Of x = scale / (t + 1)."""
    return lambda t: function(scale / (t + 1))


def bessel(order: int, which: str) -> Callable[[mpf], mpf]:
    """Hankel's P, or x Q: Abramowitz and Stegun 9.2.5."""

    def value(x: mpf) -> mpf:
        phase = x - (2 * order + 1) * mp.pi / 4
        j, y = mp.besselj(order, x), mp.bessely(order, x)
        scale = mp.sqrt(mp.pi * x / 2)
        if which == "p":
            return scale * (j * mp.cos(phase) + y * mp.sin(phase))
        return x * scale * (y * mp.cos(phase) - j * mp.sin(phase))

    return lambda t: value(8 / mp.sqrt((t + 1) / 2))


def airy(which: str) -> Callable[[mpf], mpf]:
    """P, or z Q, of Ai and Bi for negative arguments: Abramowitz and Stegun 10.4.60."""

    def value(z: mpf) -> mpf:
        x = (3 * z / 2) ** (mpf(2) / 3)
        ai, bi, phase = mp.airyai(-x), mp.airybi(-x), z + mp.pi / 4
        scale = mp.sqrt(mp.pi) * x ** (mpf(1) / 4)
        if which == "p":
            return scale * (ai * mp.sin(phase) + bi * mp.cos(phase))
        return z * scale * (bi * mp.sin(phase) - ai * mp.cos(phase))

    return lambda t: value(mpf(7) / mp.sqrt((t + 1) / 2))


def airy_decay(z: mpf) -> mpf:
    x = (3 * z / 2) ** (mpf(2) / 3)
    return 2 * mp.sqrt(mp.pi) * x ** (mpf(1) / 4) * mp.exp(z) * mp.airyai(x)


TWO_PI = 2 / mp.pi
# name -> (what it is, function of t)
SERIES: dict[str, tuple[str, Callable[[mpf], mpf]]] = {
    "I0Near": ("exp(-x) I0(x), t = x / 4 - 1",
               lambda t: mp.besseli(0, 4 * (t + 1)) * mp.exp(-4 * (t + 1))),
    "I0Far": ("sqrt(x) exp(-x) I0(x), t = 16 / x - 1",
              inverse(lambda x: mp.sqrt(x) * mp.exp(-x) * mp.besseli(0, x), mpf(16))),
    "I1Near": ("exp(-x) I1(x) / x, t = x / 4 - 1",
               lambda t: mp.besseli(1, 4 * (t + 1)) * mp.exp(-4 * (t + 1)) / (4 * (t + 1))),
    "I1Far": ("sqrt(x) exp(-x) I1(x), t = 16 / x - 1",
              inverse(lambda x: mp.sqrt(x) * mp.exp(-x) * mp.besseli(1, x), mpf(16))),
    "K0Near": ("K0(x) + log(x / 2) I0(x), t = x^2 / 2 - 1",
               root(lambda x: mp.besselk(0, x) + mp.log(x / 2) * mp.besseli(0, x), 2)),
    "K0Far": ("sqrt(x) exp(x) K0(x), t = 4 / x - 1",
              inverse(lambda x: mp.sqrt(x) * mp.exp(x) * mp.besselk(0, x), mpf(4))),
    "K1Near": ("x (K1(x) - log(x / 2) I1(x)), t = x^2 / 2 - 1",
               root(lambda x: x * (mp.besselk(1, x) - mp.log(x / 2) * mp.besseli(1, x)), 2)),
    "K1Far": ("sqrt(x) exp(x) K1(x), t = 4 / x - 1",
              inverse(lambda x: mp.sqrt(x) * mp.exp(x) * mp.besselk(1, x), mpf(4))),
    "J0Near": ("J0(x), t = x^2 / 32 - 1", root(lambda x: mp.besselj(0, x), 32)),
    "J1Near": ("J1(x) / x, t = x^2 / 32 - 1", root(lambda x: mp.besselj(1, x) / x, 32)),
    "Y0Near": ("Y0(x) - 2 / pi log(x) J0(x), t = x^2 / 32 - 1",
               root(lambda x: mp.bessely(0, x) - TWO_PI * mp.log(x) * mp.besselj(0, x), 32)),
    "Y1Near": ("(Y1(x) - 2 / pi (log(x) J1(x) - 1 / x)) / x, t = x^2 / 32 - 1",
               root(lambda x: (mp.bessely(1, x)
                               - TWO_PI * (mp.log(x) * mp.besselj(1, x) - 1 / x)) / x, 32)),
    "J0P": ("Hankel's P of order 0, t = 128 / x^2 - 1", bessel(0, "p")),
    "J0Q": ("x Q of order 0, t = 128 / x^2 - 1", bessel(0, "q")),
    "J1P": ("Hankel's P of order 1, t = 128 / x^2 - 1", bessel(1, "p")),
    "J1Q": ("x Q of order 1, t = 128 / x^2 - 1", bessel(1, "q")),
    "Erfcx": ("(1 + 2 x) exp(x^2) erfc(x), t = (x - 2) / (x + 2)",
              lambda t: (lambda x: (1 + 2 * x) * mp.exp(x * x) * mp.erfc(x))(
                  2 * (1 + t) / (1 - t))),
    "AiryNear": ("Ai(x), t = (x + 1.25) / 3.75", lambda t: mp.airyai(mpf("3.75") * t - mpf("1.25"))),
    "AiryDecay": ("2 sqrt(pi) x^(1/4) exp(z) Ai(x), z = 2/3 x^(3/2), t = 5 / z - 1",
                  inverse(airy_decay, mpf(5))),
    "AiryP": ("P of Ai(-x), z = 2/3 x^(3/2), t = 98 / z^2 - 1", airy("p")),
    "AiryQ": ("z Q of Ai(-x), t = 98 / z^2 - 1", airy("q")),
}  # fmt: skip


def main() -> None:
    print(HEAD)
    for name, (what, function) in SERIES.items():
        numbers = ", ".join(mp.nstr(c, 18) for c in series(function))
        print(f"// {what}")
        print(f"inline constexpr double k{name}[] = {{{numbers}}};\n")
    print("}  // namespace graft::ir")


if __name__ == "__main__":
    main()
