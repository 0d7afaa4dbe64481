"""What dpnb assumes of the arithmetic of other libraries, measured in the installed versions before all other tests.

The exactness of the noise assumes the accuracy of scipy's `ndtri` (`dpnb.mechanisms.gaussian`), thresholds and
intervals on that of its tail, and what settles a draw that doubles cannot place on mpmath's `erfc`.  None of that is
proved anywhere.  If a test here fails, do not use dpnb with that version: pin an older one and report it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from fractions import Fraction

import mpmath
import numpy as np
import pytest
import scipy
from mpmath import libmp
from numpy.typing import NDArray
from scipy.special import ndtri

from dpnb.accounting.exact import MARGIN
from dpnb.mechanisms import gaussian
from dpnb.mechanisms import selection as partition_selection

Floats = NDArray[np.float64]
Inverse = Callable[[Floats], Floats]

DIGITS = 64
"""Of the uniform number that noise is made from: it is (k + 1/2) 2^-64, from 2^-65 to 1/2."""


def arguments_of_noise() -> Floats:
    """Places in every binade from 2^-65 to 1/2, its ends, the whole middle, and both sides of the seams.

    scipy takes other approximations from exp(-2) on (towards 1/2), and from z = -8 on (in the tail).
    """
    chance = np.random.default_rng(5)
    binades = np.exp2(np.repeat(np.arange(-65.0, -1.0), 40) + np.tile(np.linspace(0, 1, 40), 64))
    middle, near_half = chance.random(1500) / 2, 0.5 - np.exp2(-chance.uniform(1, 54, 600))
    first = (np.arange(60) + 0.5) * 2.0**-DIGITS
    seams = [math.exp(-2), 0.5, *(math.exp(-r * r / 2) for r in (2.0, 8.0, 9.3))]
    around = [seam * (1 + side * 2.0**-52) for seam in seams for side in range(-4, 5)]
    places = np.concatenate([binades, middle, near_half, first, around])
    return np.unique(places[(places >= 2.0**-65) & (places <= 0.5)])


def arguments_of_tails() -> Floats:
    """Half of an alpha, or the delta of one group: down to what a double holds."""
    return np.exp2(-np.concatenate([np.linspace(1.01, 1021, 800), np.random.default_rng(6).uniform(1.01, 70, 800)]))


def worst(inverse: Inverse, places: Floats, relative_to: Callable[[mpmath.mpf], mpmath.mpf]) -> tuple[float, float]:
    """The largest error of an inverse and where; by one Newton step, whose own error is of second order."""
    found = (mpmath.mpf(0), 0.0)
    with mpmath.workprec(200):
        for u, z in zip(places.tolist(), map(mpmath.mpf, inverse(places).tolist()), strict=True):
            error = abs((mpmath.erfc(-z / mpmath.sqrt(2)) / 2 - mpmath.mpf(u)) / mpmath.npdf(z)) / relative_to(z)
            found = max(found, (error, u))
    return float(found[0]), found[1]


def complaint(found: tuple[float, float], allowed: float) -> str:
    return (
        f"scipy {scipy.__version__} is not accurate enough for dpnb: ndtri({found[1]!r}) is off by {found[0]:.2g}, and "
        f"at most {allowed:.2g} is assumed; install another version of scipy"
    )


def noise_is_placed_well(inverse: Inverse) -> None:
    found = worst(inverse, arguments_of_noise(), lambda z: 1 + abs(z))
    assert found[0] < gaussian.INVERSE_ERROR, complaint(found, gaussian.INVERSE_ERROR)


def test_ndtri_is_as_accurate_as_the_noise_assumes() -> None:
    noise_is_placed_well(ndtri)
    assert gaussian._INVERSE_MARGIN >= 1000 * gaussian.INVERSE_ERROR * (1 - 1e-12)


@pytest.mark.parametrize("where", [(2.0**-65, 2.0**-60), (0.1, 0.102), (0.4999, 0.5)], ids=str)
def test_control_an_ndtri_that_is_wrong_somewhere_is_caught(where: tuple[float, float]) -> None:
    def wrong(places: Floats) -> Floats:
        z = np.asarray(ndtri(places))
        return np.where((places >= where[0]) & (places <= where[1]), z + 2e-14 * (1 + np.abs(z)), z)

    with pytest.raises(AssertionError, match=rf"scipy {scipy.__version__} is not accurate enough.*another version"):
        noise_is_placed_well(wrong)


def test_ndtri_is_as_accurate_as_thresholds_and_intervals_assume() -> None:
    """Eight units of 2^-53, relative; intervals leave room for 256, thresholds for a thousand times 8."""
    found = worst(ndtri, arguments_of_tails(), abs)
    assert found[0] <= 8 * 2.0**-53, complaint(found, 8 * 2.0**-53)
    assert MARGIN - 1 >= 256 * 2.0**-53
    assert partition_selection._MARGIN - 1 >= 1e-12 - 2.0**-52


def test_mpmath_is_as_accurate_as_the_last_resort_assumes() -> None:
    """Its erfc in 200 bits against 400 bits: wrong by less than 2^60 units in the last place, by far."""

    def at(x: Fraction, precision: int) -> Fraction:
        place = libmp.from_rational(x.numerator, x.denominator, 500, "n")
        return Fraction(*libmp.to_rational(libmp.mpf_erfc(place, precision, "n")))

    for x in map(Fraction, np.linspace(0.001, 12, 200).tolist()):
        fine = at(x, 400)
        assert abs(at(x, 200) - fine) < fine * Fraction(1, 2**190)


def test_doubles_are_those_of_ieee_754() -> None:
    assert (sys.float_info.mant_dig, sys.float_info.max_exp, sys.float_info.min_exp) == (53, 1024, -1021)
    assert 2.0**53 + 1 == 2.0**53  # rounded to nearest, ties to even
    assert 2.0**53 + 3 == 2.0**53 + 4
    assert 5e-324 / 2 == 0 < 5e-324  # subnormal numbers are there
