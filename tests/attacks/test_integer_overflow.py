"""Sums in machine integers wrap round.

Kind: sums
Fault: A sum that is kept in the type of its column wraps round at the largest integer, so one row more changes it by
nearly the whole range. In OpenDP the days of dates were summed in 32 bits.
Reported: arXiv:2207.10635 (Casacuberta et al. 2022); opendp/opendp#2937
dpnb: No sum is kept in the type of a column: integers of any size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import EXACT, answer

Total = Callable[[Any, float], float]
DTYPES = ["int8", "int16", "int32", "int64", "uint8", "uint64"]


def attack(total: Total, dtype: str) -> float:
    """How far one row moves the sum, as a multiple of the claim, for several numbers of other rows."""
    value = np.iinfo(dtype).max // 4
    sums = [total(np.full(count, value, dtype), float(value)) for count in range(1, 9)]
    return float(np.abs(np.diff(sums)).max() / value)


def released(rows: Any, bound: float) -> float:
    schema = {"x": dpnb.Bounded(-bound, bound)}
    return float(answer(pd.DataFrame({"x": rows}), schema, lambda frame: frame["x"].sum()).estimate)


def in_its_own_type(rows: Any, bound: float) -> float:
    return float(np.sum(rows, dtype=rows.dtype))


def dates(count: int) -> pd.DataFrame:
    return pd.DataFrame({"d": [pd.Timestamp("2024-01-01")] * count})


def mean_year(count: int) -> float:
    """As in opendp#2937, with the number of days that just fits into 32 bits."""
    schema = {"d": dpnb.Dates("2000-01-01", "2025-12-31")}
    query: Callable[[Any], Any] = lambda frame: frame["d"].dt.year.mean()  # noqa: E731
    return float(answer(dates(count), schema, query, mu=100).estimate)


@pytest.mark.parametrize("dtype", DTYPES)
def test_dpnb_resists(dtype: str) -> None:
    assert attack(released, dtype) <= 1 + EXACT


def test_dpnb_resists_with_dates() -> None:
    for count in (108_882, 108_883):
        assert mean_year(count) == pytest.approx(2024, abs=0.1)


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_control_is_caught(dtype: str) -> None:
    assert attack(in_its_own_type, dtype) > 2.9


def test_the_control_with_dates_is_caught() -> None:
    days = np.int32((pd.Timestamp("2024-01-01") - pd.Timestamp("1970-01-01")).days)
    sums = [int(np.sum(np.full(count, days), dtype=np.int32)) for count in (108_882, 108_883)]
    assert sums[0] - sums[1] > 2**31
