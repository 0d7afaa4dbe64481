"""Points in time of an answer, which are measured in seconds since 1970, as values of pandas."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpnb.results.estimates.noisy import Cells


def points_in_time(values: Cells, dates: Sequence[bool]) -> Any:
    """The numbers of all groups, shape (groups, outputs), in one column, those that are dates as timestamps.

    `dates` says for each output whether it is a date; an unknown one is NaT.
    """
    return _converted(values, dates, "datetime64[us]")


def durations(values: Cells, dates: Sequence[bool]) -> Any:
    """The same for standard deviations, which are durations where the numbers are dates."""
    return _converted(values, dates, "timedelta64[us]")


def _converted(values: Cells, dates: Sequence[bool], kind: str) -> Any:
    import pandas as pd  # imported when first used

    micro = np.round(np.where(np.isfinite(values), values, 0.0) * 1e6).astype(np.int64).astype(kind)
    times = np.where(np.isfinite(values), micro, np.array("NaT", dtype=kind))
    if all(dates):
        return times.ravel()
    make = pd.Timestamp if kind.startswith("datetime") else pd.Timedelta
    mixed = [make(time) if dated else float(value)
             for own, moments in zip(values, times, strict=True)
             for value, time, dated in zip(own, moments, dates, strict=True)]  # fmt: skip
    return np.array(mixed, dtype=object)
