"""Moments in the future, as a person writes them: a date, or a period from now."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from dpnb.errors import InvalidValueError

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
