"""Exact numbers, their conversion to doubles without under-counting, formulas in doubles, and frozen values.

Losses and budgets are exact rationals.  A float argument was written by a person, so it *means* the shortest
decimal that denotes it: ``0.1`` is 1/10, and ten of them are 1.  The conversion to doubles has two conventions:

``decimal_*``
    The double is read back by :func:`exact`, that is, as its shortest decimal.  For losses, budgets, epsilon, delta:
    everything that is shown, stored or passed on.
``binary_*`` (and plain ``sqrt_*``)
    The double is its literal binary value.  For noise scales, which are binary numbers in all arithmetic.

Within a convention "up" is the smallest double that is not below the exact number and "down" the largest that is not
above it, at every magnitude: beyond the largest double, up is ``inf`` and down the largest finite double.

Reading a double as its shortest decimal keeps the order of doubles, because each shortest decimal lies in the interval
of reals that round to its double, and these intervals do not overlap.  So "smallest" and "largest" are found by looking
at neighbours.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, Self

import numpy as np

from dpnb.errors import InvalidValueError

#: Anything that denotes an exact number.
Number = int | float | str | Fraction | Decimal | np.integer[Any] | np.floating[Any]

MARGIN = 1 + 2.0**-45
"""A formula of some twenty double operations and elementary functions, times this, is not below its exact value.

Each is within 2 units of 2^-53 and none of them amplifies (logarithms of small numbers go through log1p and expm1), so
that together they are off by less than 2^-47.
"""
LEAST_FAILURE = Fraction(1, 10**300)
"""The smallest delta that the formulas in doubles accept."""

_LARGEST = sys.float_info.max
# Python refuses decimal texts of integers beyond 4300 digits; no loss or budget needs that many.
_MAX_DIGITS = 4000
_EXPONENT = re.compile(r"[eE]([+-]?[\d_]+)\s*$")
_INTEGER = r"(?:[0-9]+|0x[0-9a-f]+)"
_STORED = re.compile(rf"(-?)({_INTEGER})(?:/({_INTEGER}))?")


def exact(value: Number, *, name: str = "value") -> Fraction:
    """The exact number that `value` denotes.

    A float of any width means the shortest decimal that denotes it; the others are taken as they are.  NaN, infinite
    numbers, bools and texts that are not numbers are refused.

    >>> exact(0.1), exact("1/3"), exact(1e-6)
    (Fraction(1, 10), Fraction(1, 3), Fraction(1, 1000000))
    """
    if isinstance(value, Fraction):  # of a subclass, neither the arithmetic nor the comparisons
        return value if type(value) is Fraction else Fraction(int(value.numerator), int(value.denominator))
    if isinstance(value, float):  # also numpy.float64, whose own repr is not a bare number
        if (number := _of_repr(float.__repr__(value))) is None:
            raise _not_a_number(value, name)
        return number
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        return Fraction(int(value))
    if isinstance(value, np.floating):
        return _of_text(np.format_float_scientific(value, unique=True), value, name)
    if isinstance(value, (str, Decimal)):
        return _of_text(str(value), value, name)
    raise _not_a_number(value, name)


def positive(value: Number, *, name: str = "value") -> Fraction:
    """The exact number that `value` denotes, which must be greater than zero."""
    number = value if type(value) is Fraction else exact(value, name=name)
    if number.numerator <= 0:  # in integers: a comparison of Fractions takes longer
        raise InvalidValueError(f"{name} must be greater than 0, got {shown(value)}; give a positive number")
    return number


def non_negative(value: Number, *, name: str = "value") -> Fraction:
    """The exact number that `value` denotes, which must be at least zero."""
    number = value if type(value) is Fraction else exact(value, name=name)
    if number.numerator < 0:
        raise InvalidValueError(f"{name} must not be negative, got {shown(value)}; give 0 or more")
    return number


@lru_cache(maxsize=1024)  # the same few confidences and shares are displayed again and again
def decimal_up(x: Fraction) -> float:
    """The smallest double whose decimal meaning is at least `x`: ``decimal_up(Fraction(3, 10)) == 0.3``."""
    return _smallest(_nearest(x), lambda f: exact(f) >= x)


def decimal_down(x: Fraction) -> float:
    """The largest double whose decimal meaning is at most `x`."""
    return 0.0 - decimal_up(-x)  # never a negative zero


def binary_up(x: Fraction) -> float:
    """The smallest double whose literal value is at least `x`."""
    return _smallest(_nearest(x), lambda f: Fraction(f) >= x)


def binary_down(x: Fraction) -> float:
    """The largest double whose literal value is at most `x`."""
    return 0.0 - binary_up(-x)


@lru_cache(maxsize=1024)  # queries that differ in their rows only have the same noise scale
def sqrt_up(x: Fraction) -> float:
    """The smallest double whose literal value is at least the square root of `x`, which is not negative."""
    return _smallest(_near_sqrt(x), lambda f: f >= 0 and Fraction(f) ** 2 >= x)


def sqrt_down(x: Fraction) -> float:
    """The largest double whose literal value is at most the square root of `x`, which is not negative."""
    return _largest(_near_sqrt(x), lambda f: f <= 0 or Fraction(f) ** 2 <= x)


def decimal_sqrt_up(x: Fraction) -> float:
    """The smallest double whose decimal meaning is at least the square root of `x`, which is not negative."""
    return _smallest(_near_sqrt(x), lambda f: f >= 0 and exact(f) ** 2 >= x)


def decimal_sqrt_down(x: Fraction) -> float:
    """The largest double whose decimal meaning is at most the square root of `x`, which is not negative."""
    return _largest(_near_sqrt(x), lambda f: f <= 0 or exact(f) ** 2 <= x)


def display_up(x: float, digits: int = 4) -> str:
    """A finite double in a few digits, rounded up in its decimal meaning: for displaying a loss."""
    return _few_digits(x, digits, ROUND_CEILING)


def display_down(x: float, digits: int = 4) -> str:
    """A finite double in a few digits, rounded down in its decimal meaning: for displaying a budget."""
    return _few_digits(x, digits, ROUND_FLOOR)


def amount_text(amount: Fraction, up: bool, digits: int | None = None) -> str:
    """An amount in a message, rounded up for a loss, and down for a budget; with the digits of a double by default."""
    number = decimal_up(amount) if up else decimal_down(amount)
    return repr(number) if digits is None else (display_up if up else display_down)(number, digits)


def few_digits_down(share: float) -> float:
    """A share of the budget, at least 0, rounded down to six digits, so that it prints as a short number; or NaN.

    >>> few_digits_down(0.26767021050000006)
    0.26767
    """
    if math.isnan(share):
        return share
    return float(Context(prec=6, rounding=ROUND_FLOOR).create_decimal(float.__repr__(share)))


@lru_cache(maxsize=1024)  # most requests have one of a few costs
def percent_up(share: float) -> str:
    """A finite share, at least 0, in percent, rounded up to tenths, or hundredths up to 0.99%: for the budget spent."""
    return _percent(share, "0.1" if share > 0.0099 else "0.01", ROUND_CEILING)


def percent_down(share: float) -> str:
    """A finite share, at least 0, in percent, rounded down to tenths: for the remaining budget."""
    return _percent(share, "0.1", ROUND_FLOOR)


def _percent(share: float, unit: str, rounding: str) -> str:
    # Decimal arithmetic: a product of doubles could be rounded in the wrong direction.
    return f"{(100 * Decimal(float.__repr__(float(share)))).quantize(Decimal(unit), rounding):f}%"


def _few_digits(x: float, digits: int, rounding: str) -> str:
    number = Context(prec=digits, rounding=rounding).create_decimal(float.__repr__(x)).normalize()
    return f"{number:f}" if number.is_zero() or -5 < number.adjusted() < 7 else f"{number:e}"


def to_text(number: Fraction) -> str:
    """`number` as text that :func:`from_text` reads back exactly, for the ledger: ``"9/100"``.

    Integers too long for Python's decimal texts are written in hexadecimal, so that every exact loss can be stored.
    """
    top, bottom = [str(n) if n.bit_length() < 3 * _MAX_DIGITS else hex(n) for n in number.as_integer_ratio()]
    return top if bottom == "1" else f"{top}/{bottom}"


def from_text(text: object) -> Fraction:
    """The number that :func:`to_text` wrote; raises `InvalidValueError` if the text is not of that form."""
    match = _STORED.fullmatch(text) if isinstance(text, str) else None
    try:
        size = Fraction(_integer_of(match[2]), _integer_of(match[3] or "1")) if match else None
    except (ValueError, ZeroDivisionError):
        size = None
    if match is None or size is None:
        raise InvalidValueError(f"a stored number must read like '9/100', got {shown(text)}; was the file edited?")
    return -size if match[1] else size


def shown(value: object) -> str:
    """The repr of `value` for an error message, shortened to one line; never raises."""
    try:
        text = repr(value)
    except ValueError:  # a Fraction too long for Python's decimal texts
        text = "a number of thousands of digits"
    return text if len(text) <= 60 else f"{text[:57]}..."


@lru_cache(maxsize=1024)  # the same few losses, confidences and defaults in every request
def _of_repr(text: str) -> Fraction | None:
    """The number that the repr of a float denotes; None for NaN and infinity."""
    return Fraction(text) if text[-1].isdigit() else None


def _of_text(text: str, value: object, name: str) -> Fraction:
    exponent = _EXPONENT.search(text)
    try:
        is_long = len(text) > _MAX_DIGITS or (exponent and abs(int(exponent[1])) > _MAX_DIGITS)
        number = Fraction(0 if is_long else text)
    except (ValueError, ZeroDivisionError):
        raise _not_a_number(value, name) from None
    if is_long:
        raise InvalidValueError(f"{name} must have at most {_MAX_DIGITS} digits, got {shown(value)}; round it")
    return number


def _not_a_number(value: object, name: str) -> InvalidValueError:
    return InvalidValueError(
        f"{name} must be a finite number (int, float, str, Fraction or Decimal), got {shown(value)}; write it as 0.1"
        " or '1/10'"
    )


def _nearest(x: Fraction) -> float:
    """A double next to `x`; infinite beyond the largest one."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def _near_sqrt(x: Fraction) -> float:
    """A double next to the square root of `x`, by integer arithmetic, so that every magnitude is supported."""
    if x < 0:
        raise InvalidValueError(f"a square root needs a number of at least 0, got {shown(x)}; give 0 or more")
    # Scale by a power of four until the integer part has some 160 bits; its root is then good to 80 bits.
    half_shift = (160 - x.numerator.bit_length() + x.denominator.bit_length()) // 2
    scaled = x * Fraction(4) ** half_shift
    return _nearest(Fraction(math.isqrt(scaled.numerator // scaled.denominator)) / Fraction(2) ** half_shift)


def _smallest(guess: float, reaches: Callable[[float], bool]) -> float:
    """The smallest double that satisfies the monotone rule `reaches`, starting from one next to it."""
    f = min(max(guess, -_LARGEST), _LARGEST)
    while not reaches(f):
        f = math.nextafter(f, math.inf)
        if f == math.inf:
            return f
    while (below := math.nextafter(f, -math.inf)) != -math.inf and reaches(below):
        f = below
    return f + 0.0  # never a negative zero


def _largest(guess: float, stays: Callable[[float], bool]) -> float:
    """The largest double that satisfies the monotone rule `stays`, starting from one next to it."""
    f = min(max(guess, -_LARGEST), _LARGEST)
    while not stays(f):
        f = math.nextafter(f, -math.inf)
    while (above := math.nextafter(f, math.inf)) != math.inf and stays(above):
        f = above
    return f + 0.0


def _integer_of(text: str) -> int:
    return int(text, 16) if text.startswith("0x") else int(text)


def of_budget(name: str, spent: float, budget: float) -> str:
    """The loss spent, rounded up, and the budget, rounded down, with enough digits that it does not exceed the budget.

    If six digits are not enough, all of the budget is spent but for less than a millionth; the loss is still rounded
    up.
    """
    for digits in range(4, 7):
        used, whole = display_up(spent, digits), display_down(budget, digits)
        if float(used) <= float(whole):
            return f"{name} {used} of {whole}"
    return f"{name} {display_up(spent)}, all of it"


# --- formulas in doubles ----------------------------------------------------------------------------------------------


def failure_probability(delta: Number, *, name: str = "delta", example: str = "1e-6") -> Fraction:
    """A delta or alpha in [1e-300, 1) as an exact number."""
    number = exact(delta, name=name)
    if not LEAST_FAILURE <= number < 1:
        raise InvalidValueError(
            f"{name} must be at least 1e-300 and below 1, got {shown(delta)}; give for example {example}"
        )
    return number


def order_in_doubles(order: Number) -> Fraction:
    """A Renyi order as an exact number.

    It must be at most 1e300, and so far above 1 that doubles can show the difference.
    """
    number = exact(order, name="order")
    if not Fraction(1, 10**300) <= number - 1 <= 10**300:
        raise InvalidValueError(
            f"order must be greater than 1 and at most 1e300, got {shown(order)}; give for example 2"
        )
    return number


@lru_cache(maxsize=1024)  # each odometer has one delta
def log_inverse(delta: Fraction) -> float:
    """log(1/delta), within two units in the last place, for delta in (0, 1)."""
    # Near 1 the significant digits are in 1 - delta.
    if 2 * delta > 1:
        return -math.log1p(-binary_up(1 - delta))
    return -math.log(binary_down(delta))


class Frozen:
    """Base class of frozen dataclasses with a custom constructor (``init=False``), and of states with a next state."""

    def _set(self, **values: object) -> None:
        """Set the fields, in a constructor."""
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _changed(self, **changes: object) -> Self:
        """A copy with some fields changed, without the checks of the constructor."""
        new = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new
