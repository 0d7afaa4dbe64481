"""The leaves of a quantile tree: fine near 0, at most 1/64 of the value, and found alike by every formula."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from dpnb._compile.features import BRANCHING, TREE_DEPTH, TreeFeature
from dpnb._compile.grid import STEPS, Piece, edges_of, pieces_of
from dpnb._compile.lowering import features_of
from dpnb._plan.expressions.nodes import Arithmetic, Column, Seconds
from dpnb._plan.expressions.nodes import Literal as Number
from dpnb._plan.measurements import QuantileTree
from dpnb.schema import Bounded, Dates, DeclaredColumn

LEAVES = BRANCHING**TREE_DEPTH
WIDE = [
    (0, 1e9, False), (-1e9, 1e9, False), (0, 1, False), (0, 120, False), (-2, 6, False), (-1, 1e9, False),
    (1e3, 1e9, False), (-1e9, -5, False), (0, 1e100, False), (1e-100, 1e100, False), (0, 1e-100, False),
    (-1e-100, 1e100, False), (-1e100, 1e100, False), (0, 2.0**30, False), (0, 1e6, True), (0, 5000, True),
    (-3000, 3000, True), (10, 100_000, True), (-5, 1e7, True), (0, 1e18, True),
]  # fmt: skip


def column(kind: DeclaredColumn) -> TreeFeature:
    (feature,) = features_of(QuantileTree(Column("x"), graded=True), {"x": kind})
    assert isinstance(feature, TreeFeature)
    return feature


def counted(pieces: tuple[Piece, ...], numbers: NDArray[np.float64], leaves: int) -> NDArray[np.float64]:
    """The leaf by the sum over pieces that engines compute."""
    below = sum(-piece.count for piece in pieces if piece.count < 0)
    leaf = np.full(len(numbers), float(below))
    for piece in pieces:
        steps = (numbers - piece.start) * (1 / piece.width)
        leaf += np.floor(np.clip(steps, min(piece.count, 0), max(piece.count, 0)))
    leaf = np.clip(leaf, 0, leaves - 1)
    return np.where(numbers < 0, np.minimum(leaf, below - 1), leaf) if below else leaf


@pytest.mark.parametrize(("low", "high", "whole"), WIDE)
def test_every_formula_finds_the_same_leaf(low: float, high: float, whole: bool) -> None:
    """At all edges and the doubles beside them, at the smallest doubles, and at random."""
    pieces = pieces_of(low, high, LEAVES, whole=whole)
    edges = edges_of(pieces)
    chance = np.random.default_rng(1)
    near = chance.choice([-1.0, 1.0], 2000) * np.exp(chance.uniform(-300, 200, 2000))
    tiny = [-5e-324, 5e-324, -1e-310, 0.0, -0.0]
    some = np.concatenate([edges, np.nextafter(edges, -np.inf), np.nextafter(edges, np.inf), near, tiny])
    numbers = np.clip(np.concatenate([some, chance.uniform(low, high, 2000)]), low, high)
    with np.errstate(over="ignore"):
        found = counted(pieces, numbers, len(edges) - 1)
    assert (found == np.clip(np.searchsorted(edges, numbers, side="right") - 1, 0, len(edges) - 2)).all()


@pytest.mark.parametrize(("low", "high", "whole"), WIDE)
def test_leaves_cover_the_bounds_and_are_fine_near_zero(low: float, high: float, whole: bool) -> None:
    edges = edges_of(pieces_of(low, high, LEAVES, whole=whole))
    widths = np.diff(edges)
    assert edges[0] <= low
    assert edges[-1] >= high
    assert (widths > 0).all()
    assert len(widths) <= LEAVES
    assert widths.max() <= 3 * (high - low) / LEAVES  # with equal leaves, once
    distance = np.minimum(np.abs(edges[1:]), np.abs(edges[:-1]))
    assert (widths <= np.maximum(distance / STEPS, widths.min())).all()
    assert np.log2(widths) == pytest.approx(np.round(np.log2(widths)))
    if whole:
        assert (edges == np.floor(edges)).all()
        assert widths.min() >= 1
    else:  # as fine as a millionth of the bounds, which equal leaves are not
        assert widths.min() < 1e-6 * max(abs(low), abs(high)) or low > 0 or high < 0


@pytest.mark.parametrize(("low", "high"), [(1900, 2000), (1e6, 1.01e6), (-2000, -1900), (64, 128)])
def test_a_range_far_from_zero_has_equal_leaves(low: float, high: float) -> None:
    feature = column(Bounded(low, high))
    assert feature.pieces == ()
    assert feature.width == (high - low) / LEAVES


def test_what_is_not_graded_keeps_its_leaves() -> None:
    """Few whole numbers have a leaf each, the 0 of a date means nothing, and a recorded plan means what it meant."""
    assert column(Bounded(0, 120, integer=True)).pieces == ()
    dates = {"x": Dates("1960-01-01", "2020-01-01")}
    (feature,) = features_of(QuantileTree(Seconds(Column("x")), graded=True), dates)
    assert isinstance(feature, TreeFeature)
    assert feature.pieces == ()
    recorded = Bounded(0, 1e9)
    (feature,) = features_of(QuantileTree(Column("x")), {"x": recorded})
    assert isinstance(feature, TreeFeature)
    assert feature.pieces == ()
    assert column(recorded).pieces


def test_an_expression_of_either_sign_is_fine_on_both_sides() -> None:
    node = Arithmetic("-", Column("x"), Number(1e6))
    (feature,) = features_of(QuantileTree(node, graded=True), {"x": Bounded(0, 1e9)})
    assert isinstance(feature, TreeFeature)
    edges = feature.edges
    assert 0.0 in edges
    assert np.diff(edges[(np.abs(edges) < 1000)]).max() <= 1000 / STEPS
