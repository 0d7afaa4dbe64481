"""Interactive mechanisms are let in where a theorem says so, and nowhere else."""

from __future__ import annotations

from typing import Any

import pytest

from dpnb.accounting.filters import (
    ApproxDPFilter,
    BasicFilter,
    Filter,
    GDPFilter,
    RDPFilter,
    RogersFilter,
    ZCDPFilter,
)


@pytest.mark.parametrize(
    "filter_",
    [
        GDPFilter(1),
        GDPFilter(1, 1e-8),
        ZCDPFilter(0.5),
        ZCDPFilter(0.5, 1e-8),
        RDPFilter({8: 1}),
        RDPFilter({8: 1}, 1e-8),
        RDPFilter({2: 1, 8: 1}),
        ApproxDPFilter(1, conversion_delta=1e-6),
        ApproxDPFilter(1, conversion_delta=1e-6, slack_delta=1e-8),
        BasicFilter(1, 1e-6),
        RogersFilter(1, 1e-6),
    ],
)
def test_interleaving_is_allowed_where_it_is_proved(filter_: Any) -> None:
    assert filter_.interleaving_obstacle is None


def test_a_filter_that_names_no_theorem_refuses_them() -> None:
    assert "names no theorem" in str(Filter.interleaving_obstacle.fget(RDPFilter({8: 1})))  # type: ignore[attr-defined]


def test_only_the_filter_that_bounds_no_sum_has_no_rule_for_parts() -> None:
    assert "Rogers" in str(RogersFilter(1, 1e-6).partition_obstacle)
    assert BasicFilter(1, 1e-6).partition_obstacle is None
