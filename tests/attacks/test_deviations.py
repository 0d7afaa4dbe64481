"""The rounded mean in a sum of squared deviations.

Kind: sums
Fault: A variance is computed from deviations from the mean of the table. One row changes in which direction that mean
is rounded, and with it the deviation of every other row. The claim covered the rounding of the sum alone.
Reported: opendp/opendp#2923
dpnb: A variance is computed from noisy exact sums; deviations are from a public point, the middle of the bounds.
Bounds that are narrow beside their size are refused.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import Floats, answer

ROWS, LOW, WIDTH = 4096, 2.0**21, 4
OTHERS = np.full(ROWS, LOW + 0.25, np.float32)
"""Their mean is exact; with one row a little smaller it is not. (As reported, in double precision, for 2**50.)"""

CLAIM = 2 * (WIDTH**2 / 4) / ROWS
"""Twice what one row can change the variance, to first order."""


def attack(variance: Callable[[Floats], float]) -> float:
    """How far one replaced row moves the variance, as a multiple of the claim."""
    return abs(variance(np.r_[np.float32(LOW), OTHERS[1:]]) - variance(OTHERS)) / CLAIM


def released(rows: Floats) -> float:
    schema = {"x": dpnb.Bounded(LOW, LOW + WIDTH)}
    return float(answer(pd.DataFrame({"x": rows}), schema, lambda frame: frame["x"].var(), mu=1000).estimate)


def by_the_mean(rows: Floats) -> float:
    mean = np.cumsum(rows)[-1] / np.float32(len(rows))
    return float(np.mean((rows - mean).astype(np.float64) ** 2))


def test_dpnb_resists() -> None:
    assert attack(released) < 2


def test_dpnb_refuses_bounds_within_which_doubles_are_coarse() -> None:
    with pytest.raises(dpnb.errors.SchemaError, match="subtract a public constant"):
        dpnb.Bounded(2.0**50, 2.0**50 + 1)


def test_the_control_is_caught() -> None:
    assert attack(by_the_mean) > 20
