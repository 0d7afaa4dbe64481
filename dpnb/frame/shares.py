"""Shares within groups: ``groupby("g")["x"].value_counts(normalize=True)`` and ``crosstab(..., normalize="index")``."""

from __future__ import annotations

from dpnb._plan.measurements import Count, Proportions
from dpnb._plan.plan import GroupLevel, group_keys
from dpnb.frame.view import TableView


def shares_within(view: TableView, by: tuple[GroupLevel, ...], leading: int) -> Proportions:
    """The counts as shares that add up to 1 for each combination of the first `leading` levels.

    The groups are all combinations of the levels' public values, the last level fastest.
    """
    size = len(group_keys(view.plan(Count(), by[leading:]), view.schema))
    return Proportions(", ".join(level.name for level in by[:leading]), size)
