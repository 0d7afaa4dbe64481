"""What the ledger already knows: looks at a question, and how many rows there are, from released counts only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpnb.answer.estimates.noisy import noisy_features
from dpnb.errors import UnknownErrorSize
from dpnb.interactive.refinement import Refinement
from dpnb.query.aggregations import (
    AnyView,
    Columns,
    Count,
    Discovery,
    FromMoments,
    Joint,
    Mean,
    Measured,
    Misfit,
    Moments,
    Shares,
    Single,
)
from dpnb.query.linear import LinearQuery
from dpnb.query.linear.features import Ones
from dpnb.query.plan import Plan, question_words

Floats = NDArray[np.float64]

CLEAR = 2.0
"""A released count serves if it exceeds its noise scale this many times."""


@dataclass(frozen=True)
class Rows:
    """How many rows errors may rest on.

    Parameters
    ----------
    each : float64 array, shape (cells,)
        Rows of each group.
    source : str
        Where the figures come from, in words.
    """

    each: Floats
    source: str


Known = Callable[[Plan], tuple[LinearQuery, Refinement]]
"""Compiles a plan and finds what is known of it."""


def rows_needed(plan: Plan, view: AnyView) -> Single | None:
    """The aggregation whose error depends on a number of rows, if that number is all it depends on."""
    parts = [part.aggregation for part in plan.aggregation.parts] if isinstance(plan.aggregation, Joint) else []
    shown: list[tuple[Measured, AnyView]] = [(plan.aggregation, view)]
    if isinstance(view, Columns):
        shown = [(parts[named.part], named.view) for named in view.columns]
    for aggregation, single in shown:
        if isinstance(aggregation, Joint | Discovery):
            continue
        if isinstance(aggregation, Mean | Misfit) or isinstance(single, Shares):
            return aggregation
        if isinstance(aggregation, Moments) and isinstance(single, FromMoments) and single.statistic in ("mean", "var"):
            return aggregation
    return None


def known_rows(query: LinearQuery, view: AnyView, public_size: int | None, known: Known) -> Rows | None:
    """Rows that the errors of a question depend on; None when they depend on none or nobody knows.

    Tried in this order: the count inside earlier looks at the question itself, a released count of the column, a
    released count of rows, `public_size` (of units, each of which has a row; shared equally among groups; a filter
    leaves an unknown part of it, so it does not serve there).

    Parameters
    ----------
    query : LinearQuery
    view : View
    public_size : int, optional
    known : callable
    """
    plan = query.plan
    needed = rows_needed(plan, view)
    if needed is None:
        return None
    columns = needed.columns if isinstance(needed, Moments) else (getattr(needed, "column", None),)
    counts = [plan.aggregation, *(Count(column) for column in columns if column is not None), Count()]
    for counted in dict.fromkeys(counts):
        rows = _released(replace_aggregation(plan, counted), known)
        if rows is not None:
            return rows
    if public_size is not None and plan.where is None and plan.keys is None:
        shared = f", shared equally by {query.cells} groups" if plan.by else ""
        each = np.full(query.cells, public_size / query.cells)
        return Rows(each, f"public_size={public_size}{shared}, a row each")
    return None


def replace_aggregation(plan: Plan, aggregation: object) -> Plan:
    """The same rows and groups, measured otherwise."""
    return msgspec.structs.replace(plan, aggregation=aggregation)


def _released(counted: Plan, known: Known) -> Rows | None:
    query, refinement = known(counted)
    if not refinement.looks:
        return None
    sums, sigma = refinement.combined()
    for _, first, count in query.parts:
        feature, noisy = noisy_features(query, sums, sigma, first, count)[0]
        if isinstance(feature, Ones) and (noisy.single > CLEAR * noisy.scale).all():
            return Rows(noisy.single, f"the released {counted.words}")
    return None


def refuse_unknown(plan: Plan, view: AnyView) -> NoReturn:
    """Name what has to be released before an error in the answer's units can be promised.

    Raises
    ------
    UnknownErrorSize
    """
    question = question_words(plan, view)
    if isinstance(plan.aggregation, Discovery):
        raise UnknownErrorSize(
            f"within: how wide intervals must be that hold all at once, for {question}, depends on how many are named, "
            "which nobody knows beforehand; leave out simultaneous=True, or choose the budget with mu=, rho=, epsilon= "
            "or share="
        )
    needed = rows_needed(plan, view)
    if needed is None:
        raise UnknownErrorSize(
            f"within: the error of the {question} depends on the answer itself; take a first look with mu=, rho=, "
            "epsilon= or share=, and ask for within= then"
        )
    columns = needed.columns if isinstance(needed, Moments) else (getattr(needed, "column", None),)
    count = replace_aggregation(plan, Count(columns[0] if len(columns) == 1 else None))
    raise UnknownErrorSize(
        f"within: the error of the {question} depends on how many rows there are (in the smallest group), which no "
        f"released count tells clearly enough; release the {count.words} first, or choose the budget with mu=, rho=, "
        "epsilon= or share="
    )
