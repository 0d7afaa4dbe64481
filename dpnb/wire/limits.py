"""The limits of a client's request, and its exact amounts and moments.

What the analyst wrote is what is charged, so amounts are not rounded.  Their size is limited, since the sum of charges
with very large denominators takes long to compute.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from fractions import Fraction

from dpnb.accounting.exact import to_text
from dpnb.errors import DpnbError, InvalidValueError


class WireError(DpnbError):
    """A message is not of the form that both sides agreed on, or exceeds a limit.  Nothing was charged."""


MAX_BODY = 2**20
"""Bytes of a request."""

MAX_DEPTH = 150
"""Levels of nested lists and objects: an expression has at most `dpnb._plan.expressions.nodes.MAX_DEPTH`."""

MAX_VALUES = 250_000
"""Values, lists and objects of a request."""

MAX_LIST = 100_000
"""Elements of a list, and fields of an object."""

MAX_TEXT = 10_000
"""Characters of any text."""

MAX_NAME = 1000
"""Characters of the name of a launch, and of a cell id."""

MAX_ID = 100
"""Characters of a request id."""

MAX_SHOWN = 60
"""Characters of a field's path that an error repeats."""

MAX_INTEGER = 2**63 - 1
"""Largest absolute value of a whole number."""

MAX_QUERIES = 256
"""Queries of a batch."""

MAX_REQUESTED = 20
"""Queries of a request for budget."""

MAX_WHY = 500
"""Characters of a reason."""

MAX_PENDING = 10_000
"""Rows without an answer about which a request inquires."""


_PERIOD = re.compile(r"([1-9][0-9]{0,4})([hdw])", re.ASCII)
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


def moment_from_text(text: str, name: str, now: datetime) -> datetime:
    """The moment that a text states, in UTC; it must be in the future.

    A date with or without a time, as in ISO 8601, or a period such as ``12h``, ``30d`` or ``8w``; without a time zone,
    in UTC.  Errors call it `name`.

    >>> moment_from_text("30d", "expires", datetime(2027, 1, 1, tzinfo=UTC)).date()
    datetime.date(2027, 1, 31)
    """
    period = _PERIOD.fullmatch(text)
    if period is not None:
        return now + timedelta(**{_UNITS[period[2]]: int(period[1])})
    try:
        moment = datetime.fromisoformat(text)
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        moment = None
    if moment is None:
        raise InvalidValueError(f"{name}: must be a period or a date; got {text!r}; for example 30d or 2027-01-31")
    if moment <= now:
        raise InvalidValueError(f"{name}: must be in the future; got {text!r}; for example 30d")
    return moment


# --- exact amounts in messages ----------------------------------------------------------------------------------------


MAX_BITS = 200
"""Bits of a numerator or denominator."""

_DECIMAL = re.compile(r"[0-9]{1,30}(?:\.[0-9]{1,40})?(?:[eE][-+]?[0-9]{1,2})?", re.ASCII)
_FORM = re.compile(r"-?[0-9]{1,61}(?:/[0-9]{1,61})?", re.ASCII)


@dataclass(frozen=True)
class AmountRange:
    """The amounts that a field may hold."""

    least: Fraction  # smallest absolute value
    most: Fraction  # largest absolute value
    words: str  # both, for an error
    zero: bool = False  # whether 0 is also allowed
    negative: bool = False  # whether negative amounts are allowed

    def __contains__(self, amount: Fraction) -> bool:
        if not amount:
            return self.zero
        return (amount > 0 or self.negative) and self.least <= abs(amount) <= self.most


LOSS = AmountRange(Fraction(1, 10**12), Fraction(10**6), "from 1e-12 to 1e6")
"""Losses and shares of the budget."""

CAP = AmountRange(Fraction(1, 10**30), Fraction(10**12), "0, or from 1e-30 to 1e12", zero=True)
"""The largest cost of a request, as mu squared."""

PART = AmountRange(Fraction(1, 10**30), Fraction(10**6), "0, or from 1e-30 to 1e6", zero=True)
"""A component of a cap or of an approved amount."""

WIDTH = AmountRange(Fraction(1, 10**58), Fraction(10**58), "from 1e-58 to 1e58")
"""Half-widths of intervals, in the answer's units."""

THRESHOLD = AmountRange(WIDTH.least, WIDTH.most, "0, or from 1e-58 to 1e58 in absolute value", zero=True, negative=True)
"""Thresholds, in the answer's units."""

CONFIDENCE = AmountRange(Fraction(1, 10**58), 1 - Fraction(1, 10**58), "between 0 and 1")
"""Confidences of intervals."""


def amount_from_text(text: str, field: str, allowed: AmountRange) -> Fraction:
    """The amount that a text states: an integer, or a fraction in lowest terms; `WireError` otherwise."""
    if len(text) <= 130 and _FORM.fullmatch(text):
        top, _, bottom = text.partition("/")
        denominator = int(bottom or "1")
        if denominator:
            amount = Fraction(int(top), denominator)
            if to_text(amount) == text:
                return checked_amount(amount, field, allowed)
    raise WireError(f"{field}: must be an exact amount in lowest terms, such as '1/10'; got another text")


def limit_to_send(cost: Fraction) -> Fraction:
    """The largest cost of a request as it is sent; a cost that is too long is rounded up.

    >>> limit_to_send(Fraction(1, 10))
    Fraction(1, 10)
    >>> limit_to_send(Fraction(1, 3**200)) >= Fraction(1, 3**200)
    True
    """
    if _bits(cost) > MAX_BITS:
        cost = Fraction(-(-cost.numerator * 2**150 // cost.denominator), 2**150)
    return checked_amount(max(cost, CAP.least) if cost > 0 else cost, "at_most", CAP)


def checked_amount(amount: Fraction, field: str, allowed: AmountRange) -> Fraction:
    """An amount, if it is in range and not too long; `WireError` otherwise."""
    if amount not in allowed:
        raise WireError(f"{field}: must be {allowed.words}; got another amount")
    if _bits(amount) > MAX_BITS:
        raise WireError(
            f"{field}: numerator and denominator must have at most {MAX_BITS} bits each; got more; write fewer digits"
        )
    return amount


def _bits(amount: Fraction) -> int:
    return max(amount.numerator.bit_length(), amount.denominator.bit_length())


def decimal_from_text(text: str, field: str) -> Fraction:
    """The amount that a person wrote: a decimal such as ``0.1`` or ``1e-8``, or an exact amount such as ``1/3``.

    >>> decimal_from_text("1e-8", "discovery_delta")
    Fraction(1, 100000000)
    """
    if len(text) <= 80 and _DECIMAL.fullmatch(text):
        return checked_amount(Fraction(text), field, PART)
    if "/" in text:
        return amount_from_text(text, field, PART)
    raise WireError(f"{field}: must be a decimal such as 0.1 or 1e-8, or a fraction such as 1/3; got another text")
