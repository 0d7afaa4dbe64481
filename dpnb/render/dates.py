"""Points in time as text, to the day, minute or second that the noise leaves significant."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

DAY = 86_400.0

FORMATS = ((DAY, "%Y-%m-%d"), (60.0, "%Y-%m-%d %H:%M"), (1.0, "%Y-%m-%d %H:%M:%S"))
"""Formats, each for intervals of at least this many seconds; a text stands for the whole day, minute or second."""


def date_with_interval(value: float, low: float, high: float) -> tuple[str, str]:
    """An estimate and its interval, in seconds since 1970, as text.

    The texts are rounded down, and the last one includes its day, minute or second: so no interval looks narrower than
    it is.

    Examples
    --------
    >>> date_with_interval(1.5e9, 1.4e9, 1.6e9)
    ('2017-07-14', '2014-05-13 to 2020-09-13')
    """
    width = high - low
    form = next((form for seconds, form in FORMATS if width >= seconds), FORMATS[-1][1])
    return _text(value, form), f"{_text(low, form)} to {_text(high, form)}"


def _text(seconds: float, form: str) -> str:
    if math.isnan(seconds):
        return "unknown"
    return f"{datetime(1970, 1, 1) + timedelta(seconds=math.floor(seconds)):{form}}"
