"""Dates that a library cannot hold.

Kind: values
Fault: A garbled timestamp, far in the future or the past, makes the extraction of its year fail or abort the process,
so one row decides whether there is an answer at all; or it wraps round to another date.
Reported: opendp/opendp#2942; opendp/opendp#2937 (dates before 1970)
dpnb: A date outside the declared ones is treated as declared (by default it counts as the nearer bound), and no date
raises.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import CONTAINERS, EXACT, in_container, told_apart

USUAL = [pd.Timestamp("2021-03-14").value // 1000, pd.Timestamp("1961-07-02").value // 1000] * 10
ODD = [9 * 10**18, -(2**63) + 1, 253402300800000000, -1]
"""In microseconds since 1970; the first is in the year 287,000 or so."""

QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "year": lambda frame: frame["d"].dt.year.sum(),
    "month": lambda frame: frame.groupby(frame["d"].dt.month).count(),
    "hour": lambda frame: frame["d"].dt.hour.sum(),
    "before": lambda frame: frame[frame["d"] < "1970-01-01"].count(),
}
Ratio = Callable[[list[int], list[int]], float]


def attack(ratio: Ratio) -> list[int]:
    """Moments that make a question fail, or that move its answer by more than the claim."""
    found = []
    for moment in ODD:
        try:
            seen = ratio([*USUAL, moment], USUAL)
        except Exception:  # noqa: BLE001  (that it fails is what is looked for)
            seen = float("inf")
        if seen > 1 + EXACT:
            found.append(moment)
    return found


def released(container: str) -> Ratio:
    def ratio(rows: list[int], others: list[int]) -> float:
        tables = [pd.DataFrame({"d": np.array(part, "datetime64[us]")}) for part in (rows, others)]
        if container in ("polars", "lazy polars"):
            polars = pytest.importorskip("polars")
            frames = [polars.DataFrame({"d": polars.Series(part, dtype=polars.Datetime("us"))}) for part in
                      (rows, others)]  # fmt: skip
            tables = [frame.lazy() if container == "lazy polars" else frame for frame in frames]
        elif container == "duckdb":
            tables = [in_container(table, container) for table in tables]
        return told_apart(*tables, {"d": dpnb.Dates("1950-01-01", "2030-12-31")}, *QUESTIONS.values())

    return ratio


def by_the_library(rows: list[int], others: list[int]) -> float:
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    sums = [sum((epoch + timedelta(microseconds=moment)).year for moment in part) for part in (rows, others)]
    return abs(sums[0] - sums[1]) / 2030


@pytest.mark.parametrize("container", CONTAINERS)
def test_dpnb_resists(container: str) -> None:
    pytest.importorskip(container.split()[-1])
    assert attack(released(container)) == []


def test_the_control_is_caught() -> None:
    assert len(attack(by_the_library)) == 3
