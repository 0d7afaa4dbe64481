"""What the ledger already knows: looks at a question, and how many rows there are, from released counts only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from dpnb.answer.estimate import released_rows
from dpnb.errors import UnknownErrorSize
from dpnb.interactive.refinement import Look, Refinement
from dpnb.ledger import Charge
from dpnb.query.linear import LinearQuery
from dpnb.query.plan import Count, Mean, Plan


@dataclass(frozen=True)
class Rows:
    """How many rows an error may rest on.

    Parameters
    ----------
    smallest : float
        Rows of the smallest group.
    source : str
        Where the figure comes from, in words.
    """

    smallest: float
    source: str


def refinement_of(looks: list[Charge]) -> Refinement:
    """What released rows of the ledger say about one question."""
    taken = tuple(Look(look.loss, look.measurement) for look in looks if look.measurement is not None)
    return Refinement(taken, looks[0].tau if taken else None)


Known = Callable[[Plan], tuple[LinearQuery, Refinement]]
"""Compiles a plan and finds what is known of it."""


def known_rows(query: LinearQuery, public_size: int | None, known: Known) -> Rows | None:
    """Rows that the error of `query` depends on; None when it depends on none or nobody knows.

    Tried in this order: the count inside earlier looks at the mean itself, a released count of the column, a released
    count of rows, `public_size` (of units, each of which has a row; shared equally among groups; a filter leaves an
    unknown part of it, so it does not serve there).

    Parameters
    ----------
    query : LinearQuery
    public_size : int, optional
    known : callable
    """
    plan = query.plan
    if not isinstance(plan.aggregation, Mean):
        return None
    column = plan.aggregation.column
    for counted in (plan.aggregation, Count(column), Count()):
        rows = _released(Plan(counted, plan.where, plan.by), known)
        if rows is not None:
            return rows
    if public_size is not None and plan.where is None:
        shared = f", shared equally by {query.cells} groups" if plan.by else ""
        return Rows(public_size / query.cells, f"public_size={public_size}{shared}, a row each")
    return None


def _released(counted: Plan, known: Known) -> Rows | None:
    query, refinement = known(counted)
    if not refinement.looks:
        return None
    rows = released_rows(query, *refinement.combined())
    if rows is None or np.isnan(rows).any():
        return None
    return Rows(float(rows.min()), f"the released {counted.words}")


def refuse_unknown(plan: Plan) -> NoReturn:
    """Name the count that has to be released before an error in the answer's units can be promised.

    Raises
    ------
    UnknownErrorSize
    """
    column = getattr(plan.aggregation, "column", None)
    raise UnknownErrorSize(
        f"within: the error of the {plan.words} depends on how many rows there are (in the smallest group), which no "
        f"released count tells clearly enough; release the {Plan(Count(column), plan.where, plan.by).words} first, "
        "or choose the budget with mu=, rho=, epsilon= or share="
    )
