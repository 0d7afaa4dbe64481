"""The noise scale of a Gaussian for an epsilon and a delta.

Kind: noise
Fault: In the formula of the analytic Gaussian mechanism a sign was wrong, so sigma was too small; in another place
the variance was used as the scale.
Reported: opendp/smartnoise-core#316
dpnb: A budget becomes the largest mu that implies it, rounded down; here the integral is evaluated with 50 digits.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import pandas as pd
import pytest

import dpnb
from attacks.common import session

PAIRS = [("0.01", "1e-9"), ("0.1", "1e-6"), ("1", "1e-6"), ("1", "1e-12"), ("5", "1e-3"), ("20", "1e-9")]
Scale = Callable[[str, str], float]
"""The noise scale of a count to which all of a budget is given."""


def delta_of(sigma: float, epsilon: str) -> mpmath.mpf:
    """The smallest delta of Gaussian noise on a count (Balle and Wang 2018, Theorem 8)."""
    with mpmath.workdps(50):
        step, budget = 1 / mpmath.mpf(sigma), mpmath.mpf(epsilon)
        far = mpmath.ncdf(-step / 2 - budget / step)
        return mpmath.ncdf(step / 2 - budget / step) - mpmath.e**budget * far


def attack(scale: Scale) -> list[tuple[str, str]]:
    """Budgets for which one answer exceeds its delta."""
    return [(epsilon, delta) for epsilon, delta in PAIRS
            if delta_of(scale(epsilon, delta), epsilon) > mpmath.mpf(delta)]  # fmt: skip


def released(epsilon: str, delta: str) -> float:
    made = session(pd.DataFrame({"x": [1.0]}), {"x": dpnb.Bounded(0, 1)}, budget=dpnb.Budget(epsilon, delta))
    return float(made.frame.count().release(share=1).noise_scale)


def variance_as_scale(epsilon: str, delta: str) -> float:
    return released(epsilon, delta) ** 2


def wrong_sign(epsilon: str, delta: str) -> float:
    """Solves with a plus where the second term is subtracted with the other sign of its argument."""
    goal, low, high = mpmath.mpf(delta), 1e-3, 1e7
    for _ in range(200):
        middle = (low * high) ** 0.5
        with mpmath.workdps(50):
            step, budget = 1 / mpmath.mpf(middle), mpmath.mpf(epsilon)
            reached = mpmath.ncdf(-step / 2 - budget / step) * mpmath.e ** min(budget, 1)
        low, high = (low, middle) if reached < goal else (middle, high)
    return high


def test_dpnb_resists() -> None:
    assert attack(released) == []


def test_dpnb_uses_all_of_the_budget() -> None:
    for epsilon, delta in PAIRS:
        assert delta_of(released(epsilon, delta) * 0.9999, epsilon) > mpmath.mpf(delta)


@pytest.mark.parametrize("wrong", [variance_as_scale, wrong_sign])
def test_the_control_is_caught(wrong: Scale) -> None:
    assert attack(wrong)
