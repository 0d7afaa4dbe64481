"""Moments and spans of time of any library, in whole microseconds."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd

TIMES = (np.datetime64, np.timedelta64, date, timedelta)
"""pandas' own kinds are dates and spans too."""


def time_name(value: Any) -> str | None:
    """The text that names a unit called by a moment or a span of time; None for none."""
    try:
        found = microseconds(value)
        return None if found is None else f"{'span' if is_span(value) else 'moment'} {found}"
    except Exception:  # noqa: BLE001  (an odd date: it names nobody)
        return None


def is_span(value: Any) -> bool:
    """Whether a time is a span, and no moment."""
    return isinstance(value, np.timedelta64 | timedelta)


def microseconds(value: Any) -> int | None:
    """A moment (since 1970, in UTC) or a span in microseconds; None for none."""
    if is_span(value):
        span = np.timedelta64(value).astype("timedelta64[us]") if isinstance(value, np.timedelta64) else value
        whole = span.astype(np.int64) if isinstance(span, np.timedelta64) else span // timedelta(microseconds=1)
        return None if pd.isna(value) else int(whole)
    if pd.isna(value):
        return None
    if isinstance(value, datetime) and value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    moment = value.to_datetime64() if isinstance(value, pd.Timestamp) else np.datetime64(value)
    return int(moment.astype("datetime64[us]").astype(np.int64))
