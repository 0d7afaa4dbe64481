"""Tables over subsets of levels: the design against known figures, the estimates against dense least squares."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb._compile.marginals import MIN_SHARE, Levels, Marginals

SIX = ((0,), (1,), (2,), (0, 1), (0, 2), (1, 2))


def _matrix(sizes: tuple[int, ...], table: Levels) -> np.ndarray:
    """The table as a matrix that is applied to the flat cells of all levels."""
    cells = list(product(*map(range, sizes)))
    keys = list(product(*(range(sizes[level]) for level in table)))
    return np.array([[float(tuple(cell[level] for level in table) == key) for cell in cells] for key in keys])


def test_batch_of_all_margins_needs_a_third_less_than_separate_tables() -> None:
    margins = Marginals((5, 4, 10), SIX)
    precisions = margins.optimal([1.0] * 6)
    variances = dict(zip(margins.subsets, margins.variances(precisions), strict=True))
    assert max(variances[table] for table in SIX) <= 1 + 1e-12
    assert 6 / precisions.sum() >= 1.45
    assert 6 / precisions.sum() <= 1.493  # the optimum of all Gaussian mechanisms


@st.composite
def designs(draw: st.DrawFn) -> tuple[Marginals, np.ndarray]:
    sizes = tuple(draw(st.lists(st.integers(1, 4), min_size=1, max_size=3)))
    tables = [part for count in range(len(sizes) + 1) for part in combinations(range(len(sizes)), count)]
    workload = tuple(draw(st.lists(st.sampled_from(tables), min_size=1, unique=True)))
    margins = Marginals(sizes, workload)
    limits = draw(st.lists(st.floats(0.1, 10), min_size=len(workload), max_size=len(workload)))
    return margins, np.array(limits)


@given(designs())
def test_variances_are_those_of_weighted_least_squares(design: tuple[Marginals, np.ndarray]) -> None:
    margins, limits = design
    precisions = margins.optimal(limits)
    information = sum(
        precision * _matrix(margins.sizes, table).T @ _matrix(margins.sizes, table)
        for table, precision in zip(margins.subsets, precisions, strict=True)
    )
    inverse = np.linalg.pinv(information, rcond=1e-12, hermitian=True)
    for table, variance in zip(margins.subsets, margins.variances(precisions), strict=True):
        query = _matrix(margins.sizes, table)
        np.testing.assert_allclose(np.diag(query @ inverse @ query.T), variance, rtol=1e-6)


@given(designs(), st.integers(0, 2**32 - 1))
def test_estimates_are_those_of_weighted_least_squares(design: tuple[Marginals, np.ndarray], seed: int) -> None:
    margins, limits = design
    precisions, rng = margins.optimal(limits), np.random.default_rng(seed)
    measured, rows, values = {}, [], []
    for table, precision in zip(margins.subsets, precisions, strict=True):
        noisy = rng.normal(10, 3, (*(margins.sizes[level] for level in table), 2))
        if precision:
            measured[table] = noisy
            rows.append(_matrix(margins.sizes, table) * np.sqrt(precision))
            values.append(noisy.reshape(-1, 2) * np.sqrt(precision))
    cells, *_ = np.linalg.lstsq(np.concatenate(rows), np.concatenate(values), rcond=None)
    for table in margins.subsets:
        estimate = margins.estimate(table, measured, precisions)
        np.testing.assert_allclose(estimate.reshape(-1, 2), _matrix(margins.sizes, table) @ cells, rtol=1e-6, atol=1e-6)


@given(designs(), st.integers(0, 2**32 - 1))
def test_estimates_add_up(design: tuple[Marginals, np.ndarray], seed: int) -> None:
    margins, limits = design
    precisions, rng = margins.optimal(limits), np.random.default_rng(seed)
    measured = {table: rng.normal(10, 3, (*(margins.sizes[level] for level in table), 1)) for table in margins.subsets}
    estimates = {table: margins.estimate(table, measured, precisions) for table in margins.subsets}
    for table, part in product(margins.subsets, repeat=2):
        if set(part) <= set(table):
            summed = estimates[table].sum(axis=tuple(at for at, level in enumerate(table) if level not in part))
            np.testing.assert_allclose(summed, estimates[part], rtol=1e-9, atol=1e-9)


@given(designs())
def test_limits_are_met_at_no_more_than_the_cost_of_separate_tables(design: tuple[Marginals, np.ndarray]) -> None:
    margins, limits = design
    precisions = margins.optimal(limits)
    variances = margins.variances(precisions)
    for table, limit in zip(margins.workload, limits, strict=True):
        assert variances[margins.subsets.index(table)] * limit <= 1 + 1e-9
        assert precisions[margins.subsets.index(table)] >= MIN_SHARE * precisions.max() * (1 - 1e-9)
    assert precisions.sum() <= limits.sum() * (1 + 1e-9)


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_design_does_not_depend_on_the_scale(scale: float) -> None:
    margins = Marginals((5, 4, 10), SIX)
    np.testing.assert_allclose(margins.optimal([scale] * 6), scale * margins.optimal([1.0] * 6), rtol=1e-9)


def test_excluded_table_is_not_measured() -> None:
    margins = Marginals((3, 4), ((0, 1), (0,)), excluded=((1,), ()))
    measured = {
        table for table, precision in zip(margins.subsets, margins.optimal([1.0, 1.0]), strict=True) if precision
    }
    assert measured == {(0, 1), (0,)}
