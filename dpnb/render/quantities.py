"""What the numbers of an answer are, as far as it decides how they are drawn: from the plan, never from values."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise

from dpnb._plan.measurements import (
    ColumnsView,
    Count,
    CountUnits,
    Discovery,
    JointAggregation,
    MeanCountView,
    MomentsView,
    Sum,
)
from dpnb.results.answer import Answer
from dpnb.results.table import Estimates

_BIN = re.compile(r"[\[(](?P<low>[^,]+), (?P<high>[^,]+)[\])]")


def released(estimates: Estimates) -> Answer | None:
    """The released answer that these estimates are, or are a rearrangement of; None for computed estimates."""
    source = estimates if estimates.source is None else estimates.source
    return source if isinstance(source, Answer) else None


def adds_up(estimates: Estimates) -> list[bool]:
    """For each output whether it is a count or a sum, which is drawn as a bar from 0."""
    answer, many = released(estimates), estimates.arrays.value.shape[1]
    if answer is None:
        return [False] * many
    plan, view = answer.plan.aggregation, answer.view
    shown = [(column.part, column.view) for column in view.columns] if isinstance(view, ColumnsView) else [(0, view)]
    parts = [part.aggregation for part in plan.parts] if isinstance(plan, JointAggregation) else [plan]
    adds = [
        isinstance(parts[part], Count | CountUnits | Sum | Discovery)
        or isinstance(one, MeanCountView)
        or (isinstance(one, MomentsView) and one.statistic == "count")
        for part, one in shown
    ]
    labels = answer.outputs[1] if answer.outputs else ()
    if len(adds) != len(labels) or not estimates.outputs:
        return adds if len(adds) == many else adds[:1] * many
    return [adds[labels.index(label)] for label in estimates.outputs[1]]  # the outputs may be rearranged


def is_ordered(estimates: Estimates) -> bool:
    """Whether all groups are ranges of numbers or dates, parts of dates, or numbers, so that an axis shows their order.

    A table in another order, for example sorted by its estimates, is not.
    """
    if not estimates.names:
        return False
    if all(isinstance(part, int | float) for key in estimates.keys for part in key):
        return True
    answer = released(estimates)
    return answer is not None and all(map(answer._has_ordered_keys, range(len(answer.names))))


def bin_edges(labels: Sequence[str]) -> list[str] | None:
    """The edges of adjacent ranges such as ``[0, 5]`` and ``(5, 10]``; None for other labels."""
    matches = [_BIN.fullmatch(label) for label in labels]
    bins = [(match["low"], match["high"]) for match in matches if match]
    if len(bins) < max(len(labels), 1) or any(one[1] != other[0] for one, other in pairwise(bins)):
        return None
    return [low for low, _ in bins] + [bins[-1][1]]
