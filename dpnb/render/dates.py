"""Points in time as text, to the day, minute or second that the noise leaves significant."""

from __future__ import annotations

import math
from datetime import datetime, timedelta

DAY = 86_400.0

LENGTHS = ((DAY, len("2000-01-01")), (60.0, len("2000-01-01 00:00")), (1.0, len("2000-01-01 00:00:00")))
"""Lengths of texts, each for intervals of at least this many seconds; a text is a whole day, minute or second."""


def date_with_interval(value: float, low: float, high: float) -> tuple[str, str]:
    """An estimate and its interval, in seconds since 1970, as text.

    The texts are rounded down, and the last one includes its day, minute or second: so no interval looks narrower than
    it is.

    >>> date_with_interval(1.5e9, 1.4e9, 1.6e9)
    ('2017-07-14', '2014-05-13 to 2020-09-13')
    """
    width = high - low
    length = next((length for seconds, length in LENGTHS if width >= seconds), LENGTHS[-1][1])
    return _text(value, length), f"{_text(low, length)} to {_text(high, length)}"


def _text(seconds: float, length: int) -> str:
    if math.isnan(seconds):
        return "unknown"
    return (datetime(1970, 1, 1) + timedelta(seconds=math.floor(seconds))).isoformat(" ")[:length]
