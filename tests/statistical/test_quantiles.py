"""Quantiles of a noisy tree: better than a flat histogram, with a variance that is known exactly, and covered.

Seeds are fixed; each statistical test states its false-alarm rate and has a control beside it.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.typing import NDArray

from dpnb._compile.features import BRANCHING, TreeFeature
from dpnb._plan.expressions.nodes import Column, Expression, Round
from dpnb._plan.measurements import QuantilesView, QuantileTree
from dpnb._plan.plan import Plan
from dpnb.results.estimates.quantiles import consistent_leaves, prefixes, rank_scale
from dpnb.schema import Bounded
from statistical.noisy_sums import Asked, asked, covered

pytestmark = pytest.mark.statistical

Array = NDArray[np.float64]


def tree(levels: int) -> Array:
    """Which leaves each observed node adds up, shape (nodes, leaves), the root left out."""
    leaves = BRANCHING**levels
    rows = [np.kron(np.eye(BRANCHING**level), np.ones(leaves // BRANCHING**level)) for level in range(1, levels + 1)]
    return np.concatenate(rows)


def least_squares(levels: int) -> tuple[Array, Array]:
    """The map from nodes to leaves of generalised least squares, and the covariance of the leaves."""
    design = tree(levels)
    covariance = np.linalg.inv(design.T @ design)
    return covariance @ design.T, covariance


def feature(levels: int) -> TreeFeature:
    return TreeFeature(Column("x"), 0.0, 4.0**levels - 1, 1.0, levels, True)


# --- exact -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("levels", [1, 2, 3])
def test_consistent_leaves_are_those_of_least_squares(levels: int) -> None:
    nodes = np.random.default_rng(1).normal(0, 10, (5, len(tree(levels))))
    ours = consistent_leaves(nodes, levels)
    assert ours == pytest.approx(nodes @ least_squares(levels)[0].T, abs=1e-9)
    if levels > 1:
        assert not np.allclose(ours, nodes[:, -(BRANCHING**levels) :])


@pytest.mark.parametrize("levels", [1, 2, 3, 4])
@pytest.mark.parametrize("q", [0.0, 0.3, 0.5, 1.0])
def test_the_scale_of_a_rank_is_that_of_least_squares(levels: int, q: float) -> None:
    leaves = BRANCHING**levels
    covariance = least_squares(levels)[1]
    below = np.tril(np.ones((leaves + 1, leaves)), -1) - q
    exact = np.sqrt(np.einsum("ij,jk,ik->i", below, covariance, below))
    assert prefixes(levels).rank_scale(q) == pytest.approx(exact, abs=1e-9)
    assert rank_scale(feature(levels), q) == pytest.approx(exact.max())


# --- simulated -------------------------------------------------------------------------------------------------------


def ranks(leaves: Array, q: float) -> Array:
    """Noise of the rank at every edge."""
    below = np.concatenate([np.zeros((len(leaves), 1)), np.cumsum(leaves, axis=1)], axis=1)
    return below - q * below[:, -1:]


@pytest.mark.parametrize("levels", [2, 6])
def test_the_scale_of_a_rank_is_the_one_that_is_seen(levels: int) -> None:
    """6,000 draws: one of 4,097 standard deviations is off by 7% (7.6 standard errors) with probability 2e-10.

    Leaves that were not made consistent are off by far more.
    """
    chance = np.random.default_rng(2)
    squares, raw, batches = np.zeros(BRANCHING**levels + 1), np.zeros(BRANCHING**levels + 1), 12
    for _ in range(batches):
        nodes = chance.normal(0, 1, (500, feature(levels).slots))
        squares += (ranks(consistent_leaves(nodes, levels), 0.5) ** 2).mean(axis=0) / batches
        raw += (ranks(nodes[:, -(BRANCHING**levels) :], 0.5) ** 2).mean(axis=0) / batches
    scale = prefixes(levels).rank_scale(0.5)
    assert np.sqrt(squares) == pytest.approx(scale, rel=0.07, abs=1e-9)
    assert np.sqrt(raw).max() > 1.5 * scale.max()


@pytest.mark.parametrize(("levels", "factor"), [(2, 1.14), (3, 1.59), (4, 2.40), (5, 4.04), (6, 6.80)])
def test_a_tree_beats_a_flat_histogram_at_the_same_budget(levels: int, factor: float) -> None:
    """How many times larger a flat histogram's error of rank is, root mean square over all quantiles of even data.

    A row is in `levels` nodes, so a node has sqrt(levels) times the noise of a flat leaf.  A factor of 1,500 draws is
    off by 10% (over 5 standard errors) with probability below 1e-6.  The control, the tree's leaves alone, loses by
    sqrt(levels).
    """
    chance, leaves = np.random.default_rng(3), BRANCHING**levels
    at = np.arange(leaves + 1) / leaves

    def error(counts: Array) -> float:
        below = np.concatenate([np.zeros((len(counts), 1)), np.cumsum(counts, axis=1)], axis=1)
        return float(np.mean((below - at * below[:, -1:]) ** 2))

    errors = []
    for _ in range(5):
        nodes = chance.normal(0, levels**0.5, (300, feature(levels).slots))
        flat = chance.normal(0, 1, (300, leaves))
        errors.append([error(consistent_leaves(nodes, levels)), error(nodes[:, -leaves:]), error(flat)])
    ours, alone, plain = np.sqrt(np.mean(errors, axis=0))
    assert plain / ours == pytest.approx(factor, rel=0.1)
    assert plain / alone == pytest.approx(levels**-0.5, rel=0.1)


# --- covered ---------------------------------------------------------------------------------------------------------

LEVELS = (0.0, 0.05, 0.25, 0.5, 0.9, 1.0)
ROWS = 200


def shapes() -> dict[str, tuple[Array, Bounded, Expression]]:
    chance = np.random.default_rng(1)
    x, e = Column("x"), chance.exponential(1, ROWS)
    z = chance.normal(0, 1, ROWS)
    return {
        "even": (chance.uniform(-2, 6, ROWS), Bounded(-2, 6), x),
        "skewed": (np.minimum(e, 10), Bounded(0, 10), x),
        "almost constant": (np.where(np.arange(ROWS) == 0, 3.1, 3.0), Bounded(0, 10), x),
        "bounds far too wide": (z, Bounded(-1000, 1000), x),
        "at the bounds": (np.where(chance.random(ROWS) < 0.9, 10.0, 0.0), Bounded(0, 10), x),
        "beyond the bounds": (z * 10, Bounded(-2, 6), x),
        "whole numbers": (chance.poisson(3, ROWS) * 1.0, Bounded(0, 20), Round(x, 0)),
        "incomes": (np.exp(10.4 + 0.7 * z), Bounded(0, 1e9), x),
        "gains and losses": (np.sinh(4 * z), Bounded(-1e9, 1e9), x),
        "many whole numbers": (np.floor(np.exp(3 + 2 * z)), Bounded(0, 1e6, integer=True), x),
    }


def case(shape: str) -> tuple[Asked, Array, Bounded]:
    x, bounds, node = shapes()[shape]
    plan = Plan(QuantileTree(node, graded=True))
    question = asked(plan, QuantilesView(LEVELS), pd.DataFrame({"x": x}), {"x": bounds})
    clamped = np.clip(x, bounds.low, bounds.high)
    return question, np.quantile(clamped, LEVELS, method="inverted_cdf")[None], bounds


@pytest.mark.parametrize("shape", shapes())
def test_quantiles_are_covered_at_every_noise_level(shape: str) -> None:
    """A quantile is left out only if the edge before it is seen too high or the one after it too low, 2.5% each.

    Unless the noise drowns all rows only one of the two can happen: less than 93% of 700 draws then has probability
    1e-10 at each of 250 checks.  Where it does, less than 89% of draws at 95% has probability 1e-9.
    """
    question, truth, _ = case(shape)
    told = {n: covered(question.estimates(n / ROWS, 700, 5), truth).min() for n in (1e6, 1e4, 1000, 100, 30, 10)}
    assert not {n: share for n, share in told.items() if share < 0.93}
    assert covered(question.estimates(0.1 / ROWS, 700, 5), truth).min() > 0.89


def test_quantile_intervals_of_half_the_width_are_caught() -> None:
    question, truth, _ = case("even")
    assert covered(question.estimates(1e6 / ROWS, 500, 5, shrink=0.4), truth).min() < 0.9


@pytest.mark.parametrize("shape", shapes())
def test_quantiles_and_their_intervals_stay_within_the_bounds(shape: str) -> None:
    question, _, bounds = case(shape)
    for n in (1e6, 100, 10, 0.1):
        found = question.estimates(n / ROWS, 200, 6)
        assert bounds.low <= np.nanmin([found.low.min(), *found.value.ravel()])
        assert np.nanmax([found.high.max(), *found.value.ravel()]) <= bounds.high


def test_the_rank_error_of_a_median_between_wide_bounds_is_the_one_that_is_stated() -> None:
    """20,000 incomes between 0 and 1e9 at mu 0.2: the median lies within a leaf of the ranks that are stated.

    Of 2,000 draws more than 8% have probability 1e-8 if 5% are further off.  The control has equal leaves.
    """
    incomes = np.exp(np.random.default_rng(0).normal(10.4, 0.7, 20_000))
    bounds, sigma = Bounded(0, 1e9), 6**0.5 / 0.2
    ranks = np.sort(incomes)

    def off(*, graded: bool) -> tuple[Array, Array]:
        plan, view = Plan(QuantileTree(Column("x"), graded=graded)), QuantilesView((0.5,))
        question = asked(plan, view, pd.DataFrame({"x": incomes}), {"x": bounds})
        medians = question.estimates(0.2, 2000 if graded else 50, 9).value[:, 0]
        below = np.searchsorted(ranks, medians * (1 - 1 / 64))
        above = np.searchsorted(ranks, medians * (1 + 1 / 64))
        return np.maximum(np.maximum(below - 10_000, 10_000 - above), 0), np.abs(medians - np.median(incomes))

    stated = 1.96 * sigma * rank_scale(feature(6), 0.5)
    ranks_off, values_off = off(graded=True)
    assert (ranks_off > stated).mean() < 0.08
    assert values_off.mean() < 100
    ranks_off, values_off = off(graded=False)
    assert (ranks_off > 5000).all()
    assert (values_off > 10_000).all()


def test_a_whole_number_is_told_exactly_between_wide_bounds() -> None:
    """With little noise: of equal leaves, 244 numbers wide, no number is told."""
    x = np.repeat([0.0, 3.0, 7.0], [20, 50, 30])
    table, bounds = pd.DataFrame({"x": x}), Bounded(0, 1e6, integer=True)
    for graded in (True, False):
        plan = Plan(QuantileTree(Column("x"), graded=graded))
        found = asked(plan, QuantilesView((0.1, 0.5, 0.9)), table, {"x": bounds}).estimates(1e5, 20, 9)
        exact = (found.value == [0, 3, 7]).all() and (found.low == found.high).all()
        assert exact is np.bool_(graded)


def test_a_quantile_of_a_count_that_drowns_may_be_anything() -> None:
    """In 95% of draws each edge alone is possible; the hull of 4,096 leaves is all but 5% of the range on average.

    With little noise it is narrow, which is the control.
    """
    question, _, bounds = case("even")
    found = question.estimates(0.1 / ROWS, 300, 7)
    assert np.isnan(found.value).mean() > 0.99
    assert ((found.high - found.low) / (bounds.high - bounds.low)).mean() > 0.95
    assert ((case("even")[0].estimates(50, 300, 7).half_width) * 2 < 0.2 * (bounds.high - bounds.low)).all()
