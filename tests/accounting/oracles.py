"""The GDP curve by another road: adaptive quadrature, or the printed formula with hundreds of digits to spare."""

from __future__ import annotations

from fractions import Fraction

import mpmath


def real(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def delta_printed(mu: Fraction, epsilon: Fraction, *, digits: int = 400) -> mpmath.mpf:
    """Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2), as it stands."""
    with mpmath.workdps(digits):
        m, e = real(mu), real(epsilon)
        return mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


def delta_by_quadrature(mu: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """The integral of the derivative in mu, phi(epsilon/t - t/2), over (0, mu]: no cancellation at all."""
    with mpmath.workdps(40):
        m, e = real(mu), real(epsilon)
        pieces = [m * k / 64 for k in range(65)]
        return mpmath.quad(lambda t: mpmath.npdf(e / t - t / 2) if t else mpmath.mpf(0), pieces)
