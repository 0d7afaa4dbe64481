"""Budgets that are added up in doubles.

Kind: budget
Fault: Sums of doubles are rounded. Ten tenths are more or less than one, depending on the order; and a charge that is
small beside what was spent changes nothing, so any number of such queries is free. One remedy was to allow a little
more.
Reported: opendp/dpcreator#473; opendp/dpcreator#547; opendp/dpcreator#572; OpenMined/PySyft#6917 (the order of
queries)
dpnb: Charges and budgets are exact rational numbers, rounded once, when they are stated.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction

import pandas as pd
import pytest

import dpnb
from attacks.common import session

Spend = Callable[[list[str]], tuple[int, Fraction]]
"""Charges, as decimals, out of a budget of 1: how many are accepted, and what is said to be spent."""

TENTHS = ["0.1"] * 11
THIRDS = [*["0.3"] * 3, "0.1", "1e-20"]
SMALL_AFTER_LARGE = ["0.5", *["1e-17"] * 40]
MIXED = ["0.1", "0.2", "0.3", "0.4"]


def attack(spend: Spend) -> list[str]:
    """What goes wrong."""
    found = []
    if spend(TENTHS) != (10, Fraction(1)):
        found.append("ten tenths are not one, or there is an eleventh")
    if spend(THIRDS) != (4, Fraction(1)):
        found.append("the budget is exceeded by a little, or not used up")
    if spend(SMALL_AFTER_LARGE)[1] != Fraction(1, 2) + 40 * Fraction(1, 10**17):
        found.append("small charges are free")
    if len({spend(list(order)) for order in itertools.permutations(MIXED)}) > 1:
        found.append("the order decides")
    return found


def released(charges: list[str]) -> tuple[int, Fraction]:
    """Of a budget of rho = 1; every charge is a part of it for another sub-session."""
    made = session(pd.DataFrame({"x": [1.0]}), {"x": dpnb.Bounded(0, 1)}, budget=dpnb.Budget.from_mu_squared(2))
    accepted = 0
    for charge in charges:
        try:
            made.delegate(name=str(accepted), rho=charge)
            accepted += 1
        except dpnb.errors.BudgetExceeded:
            continue
    return accepted, made.spent.rho


def in_doubles(tolerance: float) -> Spend:
    def spend(charges: list[str]) -> tuple[int, Fraction]:
        spent, accepted = 0.0, 0
        for charge in map(float, charges):
            if spent + charge <= 1 + tolerance:
                spent, accepted = spent + charge, accepted + 1
        return accepted, Fraction(spent)

    return spend


def test_dpnb_resists() -> None:
    assert attack(released) == []


@pytest.mark.parametrize("tolerance", [0.0, 1e-15])
def test_the_control_is_caught(tolerance: float) -> None:
    assert "small charges are free" in attack(in_doubles(tolerance))
    assert "the order decides" in attack(in_doubles(tolerance))
