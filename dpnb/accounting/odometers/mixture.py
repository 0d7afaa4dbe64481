"""Odometers report.  They never refuse; a reading is a statement about what has been lost so far.

There are two readings, never to be mixed.  "time-uniform": with confidence 1 - delta the realised loss is below the
bound at every moment at once, so also at a moment chosen because of the answers.  "accumulator" (in a later issue):
still inside any budget that was fixed beforehand and is at least this large.

===============  =====================================================================================
MixtureOdometer  Whitehouse et al. 2023, Theorem 3 (second bound) by way of Theorem 5; Robbins 1970
===============  =====================================================================================

Why a sum of mu squared is all it takes.  Let V be that sum and L the realised loss.  For a mu-GDP release chosen after
seeing the past, the moments of its loss are at most those of a normal with mean mu^2/2 and variance mu^2 (it is a
post-processing of a Gaussian pair), so exp(lambda (L - V/2) - lambda^2 V/2) is a non-negative supermartingale for every
lambda >= 0, started at 1.  It stays so when lambda is averaged over a half-normal weight, and by Ville's inequality
an average ever exceeds 1/delta with probability at most delta.  Solving for L gives the bounds below.  The parameter of
the weight must be fixed before the first answer; no delta is spent elsewhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Decimal, localcontext
from fractions import Fraction
from typing import Literal, Protocol, Self

from dpnb.accounting.exact import Number, binary_down, binary_up, decimal_up, exact, non_negative, positive, shown
from dpnb.accounting.losses import GDP, Loss
from dpnb.accounting.mixture import log_half_of_one_plus_exp, optimal_ratio, optimal_ratio_onesided
from dpnb.errors import ConversionError, InvalidValueError

__all__ = ["MixtureOdometer", "Odometer", "Reading", "Sided"]

Reading = Literal["time-uniform", "accumulator"]
Sided = Literal["one", "two"]

# Some twenty double operations and elementary functions, each within 2 units of 2^-53 and none of them amplifying
# (logarithms of small numbers go through log1p and expm1), are off by less than 2^-47 together.
_MARGIN = 1 + 2.0**-45
_LEAST_DELTA = Fraction(1, 10**300)


class Odometer(Protocol):
    """What every odometer can do; all odometers are frozen."""

    @property
    def reading(self) -> Reading:
        """What the bound means."""
        ...

    @property
    def bound(self) -> float:
        """The reading now, in nats, rounded up."""
        ...

    def step(self, loss: Loss) -> Self:
        """The odometer after the loss; it counts from the launch of the release, before its answer is seen."""
        ...

    def statement(self) -> str:
        """The reading in words, with its numbers."""
        ...


@dataclass(frozen=True, slots=True, init=False, repr=False)
class MixtureOdometer:
    """With confidence 1 - delta, the realised loss never exceeds the mixture boundary at V = sum of mu squared.

    With r = (V + gamma)/gamma the bound is

    ======  ==================================================================
    "one"   V/2 + sqrt(2 (V + gamma) log((1 + r^(1/2)/delta)/2))
    "two"   V/2 + sqrt(2 (V + gamma) log(r^(1/2)/delta))
    ======  ==================================================================

    "two" is the curve of Whitehouse et al. 2023, Theorem 3.  It comes from a weight on both signs of lambda; losses
    need one sign only, and P(N(0, 1) > x) <= exp(-x^2/2)/2 in the half-normal average gives "one": valid, and smaller.

    Parameters
    ----------
    gamma : Number
        Greater than 0, in the scale of mu squared; the double above it is used.
    delta : Number
        In [1e-300, 1): the chance that the statement is wrong at any moment.
    sided : {"one", "two"}

    Attributes
    ----------
    v : Fraction
        Sum of mu squared.

    Raises
    ------
    InvalidValueError
        A number is out of its range, or `sided` is another word.

    Examples
    --------
    >>> odometer = MixtureOdometer.tuned(1, delta=1e-6)
    >>> odometer.bound, round(odometer.step(GDP(0.1)).bound, 3)
    (0.0, 1.081)
    """

    gamma: float
    delta: Fraction
    sided: Sided
    v: Fraction

    def __init__(self, gamma: Number, delta: Number, sided: Sided = "one") -> None:
        number = exact(delta, name="delta")
        if not _LEAST_DELTA <= number < 1:
            raise InvalidValueError(
                f"delta must be at least 1e-300 and below 1, got {shown(delta)}; give for example 1e-6"
            )
        if sided not in ("one", "two"):
            raise InvalidValueError(f"sided must be 'one' or 'two', got {shown(sided)}; 'one' is the smaller bound")
        double = binary_up(positive(gamma, name="gamma"))
        if double == math.inf:
            raise InvalidValueError(f"gamma must be at most 1e308, got {shown(gamma)}; choose it near mu0 squared / 30")
        self._set(double, number, sided, Fraction(0))

    @classmethod
    def tuned(cls, v: Number, delta: Number, sided: Sided = "one") -> MixtureOdometer:
        """The odometer whose bound at V = `v` is as small as any gamma makes it.

        Parameters
        ----------
        v : Number
            Greater than 0; for example the budget's mu0 squared.
        delta, sided
            As for the class.

        Raises
        ------
        InvalidValueError
            As for the class.
        """
        aim = positive(v, name="v")
        draft = cls(1, delta, sided)
        best = optimal_ratio_onesided if sided == "one" else optimal_ratio
        return cls(aim / Fraction(best(draft._log_inverse_delta)), delta, sided)

    def _set(self, gamma: float, delta: Fraction, sided: Sided, v: Fraction) -> None:
        object.__setattr__(self, "gamma", gamma)
        object.__setattr__(self, "delta", delta)
        object.__setattr__(self, "sided", sided)
        object.__setattr__(self, "v", v)

    @property
    def reading(self) -> Reading:
        """``"time-uniform"``."""
        return "time-uniform"

    @property
    def bound(self) -> float:
        """The bound now, in nats, rounded up; 0 while nothing that costs was released."""
        return self.bound_at(self.v)

    def bound_at(self, v: Number) -> float:
        """The bound that will be read when the sum of mu squared is `v`, rounded up; 0 at 0.

        Parameters
        ----------
        v : Number
            At least 0.

        Raises
        ------
        InvalidValueError
            `v` is negative, not finite or no number.
        """
        number = non_negative(v, name="v")
        if not number:
            return 0.0
        v_up = binary_up(number)
        ratio = v_up / self.gamma
        log_r = math.log1p(ratio) if ratio < math.inf else math.log(v_up) - math.log(self.gamma)
        log_q = self._log_inverse_delta + log_r / 2
        exponent = log_half_of_one_plus_exp(log_q) if self.sided == "one" else log_q
        deviation = math.sqrt(v_up + self.gamma) * math.sqrt(2 * exponent)
        return (deviation + v_up / 2) * _MARGIN

    def step(self, loss: Loss) -> MixtureOdometer:
        """The odometer after `loss`.

        Raises
        ------
        ConversionError
            `loss` is not GDP, or carries a delta, for which this odometer has nothing set aside.
        """
        if not isinstance(loss, GDP) or loss.delta:
            raise ConversionError(
                f"loss: the mixture odometer counts GDP losses without a delta, got {shown(loss)};"
                " read the filter instead"
            )
        after = object.__new__(MixtureOdometer)
        after._set(self.gamma, self.delta, self.sided, self.v + loss.mu_squared)
        return after

    def statement(self) -> str:
        """The reading in words, with its numbers, each rounded against us."""
        if not self.v:
            return "Nothing has been released that costs anything, so the privacy loss so far is 0."
        if self.bound == math.inf:
            return "The privacy loss so far is too large to be bounded by a number."
        confidence, bound = _confidence(self.delta), _three_digits(self.bound)
        return f"With confidence {confidence}, the privacy loss so far is at most {bound}, at whatever moment you look."

    def __repr__(self) -> str:
        delta, v = decimal_up(self.delta), decimal_up(self.v)
        return f"MixtureOdometer(gamma={self.gamma!r}, delta={delta!r}, sided={self.sided!r}, v={v!r})"

    @property
    def _log_inverse_delta(self) -> float:
        # Near 1 the complement carries the digits.
        if 2 * self.delta > 1:
            return -math.log1p(-binary_up(1 - self.delta))
        return -math.log(binary_down(self.delta))


def _three_digits(x: float) -> str:
    number = Decimal(x)
    places = max(0, 2 - number.adjusted())
    rounded = number.quantize(Decimal(1).scaleb(-places), rounding=ROUND_CEILING).normalize()
    return f"{rounded:f}" if number.adjusted() > -7 else str(rounded)


def _confidence(delta: Fraction) -> str:
    """1 - delta as a percentage, rounded down but never by more than a hundredth of delta."""
    # Digits after the point at which one unit, in percent, is between a hundredth and a thousandth of delta.
    places = max(0, math.ceil(-math.log10(binary_up(delta))))
    if places > 12:
        with localcontext(prec=3, rounding=ROUND_CEILING):
            return f"1 - {(Decimal(delta.numerator) / Decimal(delta.denominator)).normalize():g}"
    units = math.floor(100 * (1 - delta) * 10**places)
    return f"{Decimal(units).scaleb(-places).normalize():f}%"
