"""Individual accounting by brute force: unit by unit, row by row of the raw table, in fractions.

Of dpnb it takes only what is public: a compiled question's weights, grids and limits, and the ledger's rows.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb._compile import LinearQuery, grid
from dpnb._compile.features import BRANCHING, CountFeature, TreeFeature, UnitFeature
from dpnb._core.pricing.pricer import cell_subset
from dpnb._core.pricing.query_state import plan_of, request_of
from dpnb._core.unit_budgets import IndividualAccounting
from dpnb._plan.measurements import CountActiveUnits
from dpnb.accounting import ZCDP
from dpnb.ledger import Charge

__all__ = [
    "QUESTIONS",
    "SCHEMA",
    "SITES",
    "Asked",
    "Oracle",
    "heard",
    "measured",
    "of_rows",
    "opened",
    "predicted",
    "unit_budget",
    "vectors",
]

SITES = ("a", "b", "c")
SCHEMA = {
    "site": dpnb.Categories(list(SITES)),
    "x": dpnb.Bounded(0, 8),
    "y": dpnb.Bounded(0, 8),
    "t": dpnb.Text(),
}
MOST_ROWS = 3

Row = dict[str, Any]
Vector = dict[int, int]


def of_rows(rows: list[tuple[Any, ...]]) -> pd.DataFrame:
    """A table of (who, site, x, y, t)."""
    return pd.DataFrame(rows, columns=["who", "site", "x", "y", "t"]).astype({"x": float, "y": float})


def opened(table: pd.DataFrame, *, mode: str | None = "skip", unit: str | None = "who", **changes: Any) -> dpnb.Session:
    """A session in which each unit has a budget of its own; with `mode` None one that accounts for the worst case."""
    given: dict[str, Any] = {
        "name": "people",
        "schema": SCHEMA,
        "budget": dpnb.Budget.gdp("1.03"),
        "ledger": ":memory:",
        "not_private_test_seed": 7,
    }
    if unit is not None:
        given |= {"privacy_unit": unit, "max_rows_per_unit": MOST_ROWS}
    if mode is not None:
        given |= {"accounting": "individual", "on_exhausted": mode}
    return dpnb.Session(table, **{**given, **changes})


# --- questions, and what a raw row gives to them ----------------------------------------------------------------------


def _x(row: Row) -> Fraction | None:
    return row["x"]


def _y(row: Row) -> Fraction | None:
    return row["y"]


def _one(row: Row) -> int:
    return 1


def _scaled(row: Row) -> tuple[Fraction, Fraction] | None:
    """Regressor and outcome, each brought to -1 to 1."""
    return None if row["x"] is None or row["y"] is None else ((row["x"] - 4) / 4, (row["y"] - 4) / 4)


def _moment(*places: int) -> Callable[[Row], Fraction | None]:
    def value(row: Row) -> Fraction | None:
        z = _scaled(row)
        return None if z is None else math.prod((z[place] for place in places), start=Fraction(1))

    return value


def _site(row: Row) -> int | None:
    return SITES.index(row["site"]) if row["site"] in SITES else None


@dataclass(frozen=True)
class Asked:
    """A question.

    Parameters
    ----------
    ask : callable
        Of a session, makes it.
    values : tuple of callable
        Feature by feature what a row gives; None for nothing.
    where : callable
    cell : callable
        The place of the row's group; None for a row in none.
    discovers : bool
        Asks which texts there are.
    """

    ask: Callable[[dpnb.Session], Any]
    values: tuple[Callable[[Row], Any], ...]
    where: Callable[[Row], bool] = lambda row: True
    cell: Callable[[Row], int | None] = lambda row: 0
    discovers: bool = False


def _at(site: str) -> Callable[[Row], bool]:
    return lambda row: row["site"] == site


QUESTIONS: dict[str, Asked] = {
    "count": Asked(lambda s: s.frame.count(), (_one,)),
    "count at a": Asked(lambda s: s.frame[s.frame["site"] == "a"].count(), (_one,), _at("a")),
    "count at b": Asked(lambda s: s.frame[s.frame["site"] == "b"].count(), (_one,), _at("b")),
    "sum": Asked(lambda s: s.frame["x"].sum(), (_x,)),
    "sum at a": Asked(lambda s: s.frame[s.frame["site"] == "a"]["x"].sum(), (_x,), _at("a")),
    "mean": Asked(lambda s: s.frame["x"].mean(), (_x, _x)),
    "counts by site": Asked(lambda s: s.frame.groupby("site").count(), (_one,), cell=_site),
    "means by site": Asked(lambda s: s.frame.groupby("site")["y"].mean(), (_y, _y), cell=_site),
    "units": Asked(lambda s: s.frame.count_units(), (_one,)),
    "units by site": Asked(lambda s: s.frame.groupby("site").count_units(), (_one,), cell=_site),
    "median": Asked(lambda s: s.frame["x"].median(), (_x,)),
    "several by site": Asked(
        lambda s: s.frame.groupby("site").agg(n="count", s=("x", "sum"), u="units"), (_one, _one, _x), cell=_site
    ),
    "regression": Asked(
        lambda s: s.frame.regress("y", on=["x"]),
        (_moment(), _moment(0), _moment(1), _moment(0, 0), _moment(0, 1), _moment(1, 1)),
    ),
    "active": Asked(lambda s: s.count_active_units("now"), (_one,)),
    "active later": Asked(lambda s: s.count_active_units("later"), (_one,)),
    "texts": Asked(lambda s: s.frame.discover("t", discovery_delta="1e-8"), (_one,), discovers=True),
    **{
        f"in part {site}": Asked(lambda s, site=site: s.partition("site")[site].frame.count(), (_one,), _at(site))
        for site in SITES
    },
    "sum in part a": Asked(lambda s: s.partition("site")["a"].frame["x"].sum(), (_x,), _at("a")),
    "active in part b": Asked(lambda s: s.partition("site")["b"].count_active_units("now"), (_one,), _at("b")),
}


def _units(table: pd.DataFrame, unit: str | None) -> dict[Any, list[Row]]:
    """The rows that count, by unit, with what the schema says of them."""
    found: dict[Any, list[Row]] = {}
    for number, row in enumerate(table.to_dict("records")):
        name = number if unit is None else row[unit]
        if pd.isna(name):
            continue
        read = {
            "site": row["site"],
            "t": row["t"] if isinstance(row["t"], str) else None,
            **{c: None if pd.isna(row[c]) else min(max(Fraction(row[c]), Fraction(0)), Fraction(8)) for c in "xy"},
        }
        found.setdefault(name, []).append(read)
    return found


def vectors(asked: Asked, query: LinearQuery, table: pd.DataFrame, unit: str | None) -> dict[Any, Vector]:
    """What each unit adds, in integer steps."""
    found = {name: _vector(asked, query, rows) for name, rows in _units(table, unit).items()}
    return {name: vector for name, vector in found.items() if vector is not None}


def _vector(asked: Asked, query: LinearQuery, rows: list[Row]) -> Vector | None:
    rows = [row for row in rows if asked.where(row)]
    if asked.discovers:
        texts = sorted({row["t"] for row in rows if row["t"] is not None})
        return dict.fromkeys(texts, 1) or None
    vector: Vector = {}
    base = 0
    for feature, value in zip(query.features, asked.values, strict=True):
        present: set[int] = set()
        for row in rows:
            cell, given = asked.cell(row), value(row)
            if cell is None or given is None or (isinstance(feature, UnitFeature) and cell in present):
                continue
            present.add(cell)
            for place, steps in _entries(feature, given):
                slot = cell * query.slots + base + place
                vector[slot] = vector.get(slot, 0) + steps * feature.weight
        base += feature.slots
    if query.cell_subset is not None:
        places = {cell: place for place, cell in enumerate(query.cell_subset)}
        kept = {slot: steps for slot, steps in vector.items() if slot // query.slots in places}
        vector = {places[slot // query.slots] * query.slots + slot % query.slots: kept[slot] for slot in kept}
    return vector or None


def _entries(feature: Any, value: Any) -> list[tuple[int, int]]:
    if isinstance(feature, CountFeature | UnitFeature):
        return [(0, 1)]
    if isinstance(feature, TreeFeature):
        if feature.pieces:
            # Exact too: a fraction is compared with the fraction that a double is.
            leaf = min(bisect_right(feature.edges.tolist(), value) - 1, len(feature.edges) - 2)
        else:
            leaf = min(int((value - Fraction(feature.low)) / Fraction(feature.width)), feature.leaves - 1)
        starts = [sum(BRANCHING**above for above in range(1, level)) for level in range(1, feature.levels + 1)]
        return [
            (start + leaf // BRANCHING ** (feature.levels - level), 1) for level, start in enumerate(starts, start=1)
        ]
    return [(0, math.trunc(value / Fraction(2) ** grid.exponent(feature)) - feature.centre)]


# --- who pays what ----------------------------------------------------------------------------------------------------


@dataclass
class Oracle:
    """Who takes part, question after question.

    Parameters
    ----------
    budget : Fraction
        Of each unit, as mu squared.
    mode : str
    paid : dict
        By unit, as mu squared.
    out : set
        Who was dropped.
    """

    budget: Fraction
    mode: str
    paid: dict[Any, Fraction] = field(default_factory=dict)
    out: set[Any] = field(default_factory=set)

    def pays(self, charge: Charge, each: dict[Any, Vector], *, whole: bool) -> dict[Any, Fraction]:
        """By unit, with which share of its vector it takes part, as the square; `whole` if nobody can in part."""
        shares: dict[Any, Fraction] = {}
        assert charge.sigma is not None
        for name, vector in each.items():
            asked = Fraction(sum(steps**2 for steps in vector.values())) / Fraction(charge.sigma) ** 2
            left = self.budget - self.paid.get(name, Fraction(0))
            if asked <= left and name not in self.out:
                share = Fraction(1)
            elif self.mode == "clip" and not whole:
                share = left / asked
            else:
                share = Fraction(0)
                self.out |= {name} if self.mode == "drop" else set()
            self.paid[name] = self.paid.get(name, Fraction(0)) + share * asked
            shares[name] = share
        return shares

    def everybody_pays(self, names: list[Any], cost: Fraction) -> None:
        """What another version of the table cost at worst."""
        for name in names:
            self.paid[name] = self.paid.get(name, Fraction(0)) + cost


def measured(session: dpnb.Session, charge: Charge, asked: Asked) -> LinearQuery:
    """The compiled question of a row of the ledger."""
    tables, plan = session._core.pricer.tables, asked.ask(session).plan
    whole = tables.compile(plan)
    only = cell_subset(whole, request_of(charge).target.groups)
    return whole if only is None else tables.compile(plan, only)


@contextmanager
def heard() -> Iterator[dict[int, dict[Any, int]]]:
    """What noise is added to, by row of the ledger: exact sums by place, or units of each group by key; no zeros."""
    found: dict[int, dict[Any, int]] = {}
    sums, groups = IndividualAccounting.sums, IndividualAccounting.groups

    def of_sums(self: IndividualAccounting, charge: Charge, query: LinearQuery) -> Any:
        exact = sums(self, charge, query)
        found[charge.id] = {place: int(total) for place, total in enumerate(exact) if total}
        return exact

    def of_groups(self: IndividualAccounting, charge: Charge, query: LinearQuery) -> Any:
        keys, units = groups(self, charge, query)
        found[charge.id] = {key[0]: int(total) for key, total in zip(keys, units, strict=True)}
        return keys, units

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IndividualAccounting, "sums", of_sums)
        patch.setattr(IndividualAccounting, "groups", of_groups)
        yield found


def unit_budget(session: dpnb.Session) -> Fraction:
    """What each unit may lose, as mu squared."""
    filter_ = session.filter
    return Fraction(filter_.budget.parts[0] * (2 if isinstance(filter_.budget, ZCDP) else 1))


_ASKED: dict[tuple[Any, ...], dict[str, Asked]] = {}
"""The questions by their plans, which are the same for all sessions with a unit and a discovery delta."""


def predicted(
    session: dpnb.Session, table: pd.DataFrame, mode: str, unit: str | None = "who"
) -> tuple[Oracle, dict[int, tuple[dict[Any, Fraction], Fraction]]]:
    """What the ledger's rows must have measured of the table, and how its units stand then.

    By row of the ledger: the sums without zeros, and by how much a sum may be off where somebody was scaled down.
    """
    if not (asked_by := _ASKED.setdefault((unit, session.budget.discovery_delta), {})):
        for asked in QUESTIONS.values():
            if session.budget.discovery_delta or not asked.discovers:
                asked_by[asked.ask(session).plan.to_json()] = asked
    oracle, found = Oracle(unit_budget(session), mode), {}
    for charge in session.ledger.charges():
        if charge.sigma is None:
            continue
        if charge.table_version != session.version:
            oracle.everybody_pays(list(_units(table, unit)), charge.gdp.mu_squared)
            continue
        asked = asked_by[plan_of(charge).to_json()]
        query = measured(session, charge, asked)
        each = vectors(asked, query, table, unit)
        whole = asked.discovers or isinstance(query.plan.aggregation, CountActiveUnits)
        shares = oracle.pays(charge, each, whole=whole)
        sums: dict[Any, Fraction] = {}
        slack = Fraction(0)
        for name, share in shares.items():
            part = 0 < share < 1
            slack += 2 + max(map(abs, each[name].values())) / Fraction(2) ** 35 if part else 0
            scale = Fraction(math.sqrt(share)) if part else share
            for slot, steps in each[name].items():
                sums[slot] = sums.get(slot, Fraction(0)) + scale * steps
        found[charge.id] = {slot: total for slot, total in sums.items() if total}, slack
    return oracle, found
