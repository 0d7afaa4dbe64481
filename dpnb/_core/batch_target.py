"""The target of a batch: one loss for the whole batch, or a half-width for each query."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dpnb._core.pricing.target import Target, target_from
from dpnb._plan.measurements import AnyView, Proportions
from dpnb._plan.plan import Plan, describe_plan
from dpnb.errors import RequestError

Queries = Sequence[tuple[Plan, AnyView]]


def batch_targets(queries: Queries, arguments: Mapping[str, Any]) -> tuple[Target, ...]:
    """The target of each query of a batch; for a loss, that of the whole batch.

    In `arguments`, which are those of the release, a list for ``within`` has one half-width for each query.
    """
    within = arguments.get("within")
    others = {name: value for name, value in arguments.items() if name != "within"}
    if isinstance(within, list | tuple):
        if len(within) != len(queries):
            raise RequestError(
                f"within: a list must have one half-width for each of the {len(queries)} queries; got {len(within)}"
            )
        return tuple(target_from(**others, within=width) for width in within)
    target = target_from(**others, within=within)
    if target.kind == "within":
        first, *rest = queries
        for plan, view in rest:
            if (plan.aggregation, view) != (first[0].aggregation, first[1]):
                raise RequestError(
                    f"within: the {describe_plan(*first)} and the {describe_plan(plan, view)} may have different "
                    "units; give a list with one half-width for each query, as in within=[10, 0.5]"
                )
    return (target,) * len(queries)


def refuse_view(plan: Plan, view: AnyView) -> None:
    """Refuse statistics of several groups at once."""
    if isinstance(view, Proportions):
        raise RequestError(
            f"plan: {describe_plan(plan, view)} cannot be part of a batch, which estimates all groups together, so "
            "that the errors of a group and of the total are not independent; plan the counts, or release the shares "
            "separately"
        )


def words_of(targets: Sequence[Target]) -> str:
    """The target as it was written."""
    words = [target.words for target in targets]
    if len(set(words)) == 1:
        return words[0]
    return f"within=[{', '.join(text.partition('=')[2] for text in words)}]"
