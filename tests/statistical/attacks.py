"""What the attacks share: tables that differ in one person, their exact sums, and lower bounds on mu."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy import stats

from dpnb._backends.memory.execute import execute
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._compile import LinearQuery, linear_query
from dpnb._core.tables import PrivateTables, UnreadTables
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.frame.frame import Frame
from dpnb.frame.view import TableView
from dpnb.mechanisms.gaussian import measure
from dpnb.mechanisms.randomness import NotPrivateSeededSource
from dpnb.schema import Schema

__all__ = [
    "ALARM",
    "Ask",
    "Floats",
    "Neighbours",
    "change",
    "changes",
    "neighbours",
    "noisy_shadows",
    "seen_difference",
]

ALARM = 1e-7
"""How often a bound of this module is wrong, at most."""

Floats = NDArray[np.float64]
Moved = Callable[[pd.DataFrame], float]
Ask = Callable[[Any], Plan]
"""A question, put to a view of the table, or to a function that gives the view of a table by its name."""


@dataclass(frozen=True)
class Neighbours:
    """One question of two tables, of which the second lacks one privacy unit.

    Parameters
    ----------
    query : LinearQuery
    sums, others : array of int
        Exact sums with and without that unit.
    """

    query: LinearQuery
    sums: NDArray[Any]
    others: NDArray[Any]

    @property
    def difference(self) -> list[int]:
        """What the unit adds, cell by cell."""
        return [int(a) - int(b) for a, b in zip(self.sums, self.others, strict=True)]

    @property
    def mu_squared_share(self) -> Fraction:
        """The square of what the unit can be told by, as a share of the square of what is claimed; exact."""
        return Fraction(sum(step**2 for step in self.difference), self.query.l2_sensitivity_squared)


def neighbours(
    ask: Ask,
    tables: dict[str, tuple[pd.DataFrame, pd.DataFrame]],
    schemas: dict[str, Any],
    limits: dict[str, Any],
    only: tuple[int, ...] | None = None,
) -> Neighbours:
    """Ask one question of tables with a unit and without it.

    Parameters
    ----------
    ask : callable
    tables : dict of str to (DataFrame, DataFrame)
        With the unit and without it; one table has the name "".
    schemas : dict
        Of each table.
    limits : dict
        What a session takes: ``privacy_unit`` and what bounds a unit.
    only : tuple of int, optional
        Places of the groups that are measured, as when an answer is refined for some groups.
    """
    one = set(tables) == {""}
    renamed = {"max_rows_per_unit": "rows", "max_groups_per_unit": "groups", "max_norm_per_unit": "norm"}
    declared = {renamed.get(name, name.removeprefix("max_")): value for name, value in limits.items()}
    bounds = dict.fromkeys(("rows", "groups", "rows_per_group", "norm")) | {"privacy_unit": None} | declared
    found = []
    for side in (0, 1):
        held = PrivateTables.declared(schemas[""] if one else schemas, several=not one, **bounds)
        given = {name: pair[side] for name, pair in tables.items()}
        held.read(UnreadTables(given[""] if one else given))

        def view(name: str, held: PrivateTables = held) -> Frame:
            return Frame(TableView(name, held.schemas, held.units, _plan_alone, lambda delta: str(delta)))

        plan = ask(view("") if one else view)
        query = held.compile(plan, only)
        found.append((query, held.opened.sums(query)))
    return Neighbours(found[0][0], found[0][1], found[1][1])


def changes(others: pd.DataFrame, schema: Schema, plans: list[Plan], unit: PrivacyUnit) -> Moved:
    """How far the exact sums of a table are from those of `others`, at most, as a multiple of the claim."""
    queries = [linear_query(plan, schema, unit) for plan in plans]

    def sums(table: pd.DataFrame) -> list[NDArray[Any]]:
        prepared = prepare(table, schema, unit)
        return [execute(query, prepared, schema) for query in queries]

    before = sums(others)

    def moved(rows: pd.DataFrame) -> float:
        pairs = map(Neighbours, queries, sums(rows), before)
        return max(math.sqrt(pair.mu_squared_share) for pair in pairs)

    return moved


def change(rows: pd.DataFrame, others: pd.DataFrame, schema: Schema, plan: Plan, unit: PrivacyUnit) -> float:
    """How far the exact sums of two tables are apart, as a multiple of the claimed sensitivity."""
    return changes(others, schema, [plan], unit)(rows)


def noisy_shadows(
    sums: NDArray[Any], direction: list[int], *, sigma: float, draws: int, seed: int, scale: float = 1.0
) -> Floats:
    """Project many noisy releases of the same sums on a direction: what tells two tables apart best, in sigmas.

    Parameters
    ----------
    sums : array of int
    direction : list of int
        What the unit adds.
    sigma : float
    draws, seed : int
    scale : float
        By which the noise is wrongly scaled, in a control.
    """
    # Slots that the unit does not change tell nothing: their noise is independent of all others.
    changed = np.flatnonzero(np.array([step != 0 for step in direction]))
    kept = np.array([int(sums[place]) for place in changed], dtype=object)
    length = math.sqrt(sum(step**2 for step in direction))
    weights = np.array([direction[place] / length for place in changed])
    released = measure(np.tile(kept, draws), sigma=sigma * scale, source=NotPrivateSeededSource(seed))
    # Sums are taken off as integers; as doubles they would lose the low digits.
    grid = Fraction(2) ** released.exponent
    base = [round(int(total) / grid) for total in kept]
    steps = np.array([value - base[place % len(base)] for place, value in enumerate(released.values)], np.float64)
    return np.asarray(steps.reshape(draws, -1) @ weights * (2.0**released.exponent / sigma))


def seen_difference(with_unit: Floats, without: Floats, shift: float) -> tuple[float, float]:
    """A lower bound on mu and the most likely mu, from many releases of two neighbouring tables.

    An attacker who says "the unit is there" above a threshold is right with probability p if it is, and wrong with
    probability q if it is not; under mu-GDP, whatever the noise, Phi^-1(p) - Phi^-1(q) <= mu.  Clopper and Pearson
    bound both.

    Parameters
    ----------
    with_unit, without : float64 arrays
        Shadows of both, each with its own sums taken off.
    shift : float
        Distance of the exact sums, in sigmas.
    """
    threshold = shift / 2
    there, wrongly = int(np.sum(with_unit + shift > threshold)), int(np.sum(without > threshold))
    n, m = len(with_unit), len(without)
    least = stats.beta.ppf(ALARM / 2, there, n - there + 1) if there else 0.0
    most = stats.beta.isf(ALARM / 2, wrongly + 1, m - wrongly) if wrongly < m else 1.0
    bound = float(stats.norm.ppf(least) - stats.norm.ppf(most))
    likely = float(stats.norm.ppf((there + 0.5) / (n + 1)) - stats.norm.ppf((wrongly + 0.5) / (m + 1)))
    return bound, likely


def _plan_alone(plan: Plan, view: AnyView) -> Plan:
    del view
    return plan
