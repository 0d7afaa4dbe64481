"""Sums of doubles, or of single-precision numbers, overflow.

Kind: sums
Fault: An infinite intermediate sum swallows all later rows, so one row decides whether the answer is plus or minus
infinity. In OpenDP a column that was cast to single precision was checked for overflow as if it were double.
Reported: opendp/opendp#2941; arXiv:2207.10635 (Casacuberta et al. 2022);
https://docs.tmlt.dev/core/latest/topic-guides/known-vulnerabilities.html (Tumult Core, "Floating point overflow")
dpnb: Sums are integers of any size, and every bound and noise scale is a finite, normal double, or the query is
refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import EXACT, Floats, answer

Total = Callable[[Floats, float], float]
"""Rows and their bound to their sum, as a multiple of the bound."""

CASES = {"float32": (1e38, 7), "float64": (1e308, 7)}


def attack(total: Total, dtype: str) -> float:
    """How far one row moves the sum, as a multiple of the claim: four large rows, or three, and many negative ones."""
    big, negative = CASES[dtype]
    sums = [total(np.array([big] * ahead + [-big] * negative, dtype), big) for ahead in (4, 3)]
    moved = abs(sums[0] - sums[1])
    return moved if np.isfinite(moved) else float("inf")


def released(rows: Floats, bound: float) -> float:
    """With the largest bound that a schema may have, for values beyond it."""
    bound = min(bound, 1e100)
    schema = {"x": dpnb.Bounded(-bound, bound)}
    return float(answer(pd.DataFrame({"x": rows}), schema, lambda frame: frame["x"].sum()).estimate) / bound


def one_after_another(rows: Floats, bound: float) -> float:
    with np.errstate(all="ignore"):
        return float(np.cumsum(rows)[-1]) / bound


@pytest.mark.parametrize("dtype", CASES)
def test_dpnb_resists(dtype: str) -> None:
    assert attack(released, dtype) <= 1 + EXACT


@pytest.mark.parametrize("bound", [1e101, 1e308, float("inf"), 1e-101])
def test_dpnb_refuses_bounds_that_could_overflow_or_vanish(bound: float) -> None:
    with pytest.raises(dpnb.errors.DpnbError):
        dpnb.Bounded(0, bound)


@pytest.mark.parametrize("dtype", CASES)
def test_the_control_is_caught(dtype: str) -> None:
    assert attack(one_after_another, dtype) == float("inf")
