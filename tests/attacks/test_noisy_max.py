"""The loss of permute-and-flip, stated as that of another mechanism.

Kind: noise
Fault: The largest group was selected by permute-and-flip, and charged rho = epsilon^2/8 under zCDP, which is right
for the exponential mechanism and a quarter of what is right here.
Reported: opendp/opendp#2911
dpnb: Permute-and-flip is charged what holds for every epsilon-DP mechanism, and only the exponential mechanism by its
range.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest

import dpnb
from attacks.common import Floats, session
from dpnb.accounting import ZCDP, BoundedRange, convert
from pairwise import product

ORDERS = np.array([1.01, 1.5, 2.0, 4.0, 16.0, 64.0])
Charge = Callable[[float], float]
"""From an epsilon to the rho that is charged."""
Law = Callable[[tuple[int, int], float], Floats]


def chances(counts: tuple[int, int], epsilon: float) -> Floats:
    """Of permute-and-flip for two counts, of which one row changes one: visit in random order, and keep with e^-gap."""
    keep = np.exp(epsilon * (np.array(counts) - max(counts)))
    first, second = keep[0] * (1 - keep[1] / 2), keep[1] * (1 - keep[0] / 2)
    return np.array([first, second]) / (first + second)


def chances_by_weight(counts: tuple[int, int], epsilon: float) -> Floats:
    """Of the exponential mechanism."""
    weights = np.exp(epsilon * (np.array(counts) - max(counts)))
    return np.asarray(weights / weights.sum())


def divergence(one: Floats, other: Floats, order: float) -> float:
    """Of Renyi, of this order."""
    return math.log(float(np.sum(one**order * other ** (1 - order)))) / (order - 1)


def attack(charge: Charge, law: Law = chances) -> float:
    """The Renyi divergence of two neighbouring tables, as a multiple of what was charged."""
    worst = 0.0
    for epsilon in (0.25, 1.0, 2.0):
        pair, charged_rho = [law((5, 5), epsilon), law((6, 5), epsilon)], charge(epsilon)
        for one, other in (pair, pair[::-1]):
            worst = max(worst, *(divergence(one, other, order) / (order * charged_rho) for order in ORDERS))
    return worst


def charged(epsilon: float, kind: str) -> float:
    """The rho that is charged where the answer is in pure DP with this epsilon."""
    table, schema = pd.DataFrame({"g": ["a", "b"] * 5}), {"g": dpnb.Categories(["a", "b"])}
    made = session(
        table, schema, budget=dpnb.Budget(epsilon=30, delta=1e-6), filter="basic" if kind == "pure" else "zcdp"
    )
    for requested in np.linspace(epsilon / 2, epsilon, 40):
        top = made.frame["g"].value_counts().idxmax()
        loss = top.preview(epsilon=float(requested)).loss
        if loss.epsilon >= epsilon:
            break
    return float(convert(loss, ZCDP).rho)


def of_the_exponential_mechanism(epsilon: float) -> float:
    return epsilon**2 / 8


def test_dpnb_resists() -> None:
    assert 0.5 < attack(lambda epsilon: charged(epsilon, "pure")) <= 1
    assert 0.5 < attack(lambda epsilon: charged(epsilon, "range"), chances_by_weight) <= 1


@pytest.mark.parametrize(
    ("filter_", "counts"), product(["basic", "zcdp"], [(6, 5), (5, 5), (9, 5)], together=1), ids=str
)
def test_the_attacked_chances_are_those_of_dpnb(counts: tuple[int, int], filter_: str) -> None:
    """Six standard deviations of 400 selections; false alarm below 1e-8."""
    table = pd.DataFrame({"g": ["a"] * counts[0] + ["b"] * counts[1]})
    schema = {"g": dpnb.Categories(["a", "b"])}
    budget = dpnb.Budget(epsilon=10**4, delta=1e-6)
    query = session(table, schema, budget=budget, filter=filter_).frame["g"].value_counts().idxmax()
    keys = [query.release(epsilon=1 + k / 10**6).key for k in range(400)]  # the same epsilon would repeat the answer
    loss = query.preview(epsilon=1).loss
    law = chances_by_weight if isinstance(loss, BoundedRange) else chances
    assert (law is chances) is (filter_ == "basic")
    chance = law(counts, float(loss.epsilon))[0]
    assert abs(keys.count("a") - 400 * chance) <= 6 * math.sqrt(400 * chance * (1 - chance))


def test_the_control_is_caught() -> None:
    assert attack(of_the_exponential_mechanism) > 1.9
