"""Points in time and durations of any library, in whole microseconds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np

TIMES = (np.datetime64, np.timedelta64, date, timedelta)
"""Types of dates, times and durations, of which those of pandas are subclasses."""


def time_name(value: Any) -> str | None:
    """The name of a unit whose value in the unit column is a point in time or a duration; None if it is missing."""
    try:
        whole = microseconds(value)
        return None if whole is None else f"{'span' if is_duration(value) else 'moment'} {whole}"
    except Exception:  # noqa: BLE001  (an unusual date that cannot be converted: the row has no unit)
        return None


def is_duration(value: Any) -> bool:
    """Whether a time is a duration, not a point in time."""
    return isinstance(value, np.timedelta64 | timedelta)


def microseconds(value: Any) -> int | None:
    """A point in time (since 1970, in UTC) or a duration in microseconds; None if it is missing."""
    import pandas as pd  # imported when first used

    if is_duration(value):
        span = np.timedelta64(value).astype("timedelta64[us]") if isinstance(value, np.timedelta64) else value
        whole = span.astype(np.int64) if isinstance(span, np.timedelta64) else span // timedelta(microseconds=1)
        return None if pd.isna(value) else int(whole)
    if pd.isna(value):
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    moment = value.to_datetime64() if isinstance(value, pd.Timestamp) else np.datetime64(value)
    return int(moment.astype("datetime64[us]").astype(np.int64))
