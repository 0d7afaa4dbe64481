"""The curves by another road: quadrature, printed formulas with digits to spare, a search over orders."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath

from dpnb.accounting.exact import exact


def real(x: Fraction) -> mpmath.mpf:
    return mpmath.mpf(x.numerator) / x.denominator


def is_just_above(x: float, truth: mpmath.mpf) -> bool:
    """Whether a result is at least `truth`, to 60 digits, and by no more than two doubles."""
    with mpmath.workdps(80):
        value = real(exact(x))
        return bool(truth - abs(truth) * mpmath.mpf(10) ** -60 <= value <= truth + abs(truth) * mpmath.mpf(2) ** -51)


def delta_printed(mu: Fraction, epsilon: Fraction, *, digits: int = 400) -> mpmath.mpf:
    """Phi(-epsilon/mu + mu/2) - e^epsilon Phi(-epsilon/mu - mu/2), as it stands."""
    with mpmath.workdps(digits):
        m, e = real(mu), real(epsilon)
        return mpmath.ncdf(-e / m + m / 2) - mpmath.exp(e) * mpmath.ncdf(-e / m - m / 2)


def delta_exceeds(mu: float, epsilon: float, delta: float) -> bool:
    """Whether the printed figure is above a delta, with as many digits as it takes to tell.

    It has two terms of at most 1, so their difference is good to all but the last 30 digits after the point.
    """
    digits = 60 - math.frexp(delta)[1] // 3  # the first digit of delta, and 60 more
    while digits < 5000:
        with mpmath.workdps(digits):
            difference = delta_printed(exact(mu), exact(epsilon), digits=digits) - real(exact(delta))
            if abs(difference) > mpmath.mpf(10) ** (30 - digits):
                return bool(difference > 0)
        digits *= 2
    raise AssertionError("the figure is the delta, as far as 5,000 digits can tell")


def delta_by_quadrature(mu: Fraction, epsilon: Fraction) -> mpmath.mpf:
    """The integral of the derivative in mu, phi(epsilon/t - t/2), over (0, mu]: no cancellation at all.

    Eight pieces are enough: their sum and that of 64 agree in 30 digits.
    """
    with mpmath.workdps(40):
        m, e = real(mu), real(epsilon)
        pieces = [m * k / 8 for k in range(9)]
        return mpmath.quad(lambda t: mpmath.npdf(e / t - t / 2) if t else mpmath.mpf(0), pieces)


def epsilon_at(order: mpmath.mpf, rdp: mpmath.mpf, delta: mpmath.mpf) -> mpmath.mpf:
    """Canonne, Kamath and Steinke's figure for one order, as printed."""
    return rdp + mpmath.log(1 - 1 / order) + (mpmath.log(1 / delta) - mpmath.log(order)) / (order - 1)


def log_delta_at(order: mpmath.mpf, rdp: mpmath.mpf, epsilon: mpmath.mpf) -> mpmath.mpf:
    return (order - 1) * (rdp - epsilon) + order * mpmath.log(1 - 1 / order) - mpmath.log(order - 1)


def best_over_orders(figure: Callable[[mpmath.mpf], mpmath.mpf]) -> mpmath.mpf:
    """The minimum over all orders, by golden section in the logarithm of order - 1, with 80 digits.

    The section stops at ten digits of it.  Then two parabolas each double them, and a smooth function is within 80
    digits of its minimum.
    """
    with mpmath.workdps(80):
        ratio = (mpmath.sqrt(5) - 1) / 2

        def at(t: mpmath.mpf) -> mpmath.mpf:
            return figure(1 + mpmath.exp(t))

        # Coarse scans first: far out the functions are flat.
        best = min(map(mpmath.mpf, range(-60, 740, 16)), key=at)
        best = min((best + k for k in range(-16, 17, 4)), key=at)
        low, high = best - 4, best + 4
        left, right = high - ratio * (high - low), low + ratio * (high - low)
        at_left, at_right = at(left), at(right)
        while high - low > mpmath.mpf(10) ** -10:
            if at_left < at_right:
                high, right, at_right = right, left, at_left
                left = high - ratio * (high - low)
                at_left = at(left)
            else:
                low, left, at_left = left, right, at_right
                right = low + ratio * (high - low)
                at_right = at(right)
        middle, at_middle = min(((left, at_left), (right, at_right)), key=lambda point: point[1])
        for step in (mpmath.mpf(10) ** -10, mpmath.mpf(10) ** -20):
            below, above = at(middle - step), at(middle + step)
            if below + above > 2 * at_middle:
                middle += step * (below - above) / (below + above - 2 * at_middle) / 2
                at_middle = min(at_middle, at(middle))
        return at_middle
