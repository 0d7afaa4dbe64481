"""No unit changes sums of products of what its rows add up to by more than is claimed, whatever a plan says of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import pandas as pd
import pytest

from compile.neighbours import OTHERS, SCHEMA, Row, squared
from dpnb._backends import MemoryBackend
from dpnb._compile import LinearQuery, linear_query, products, sensitivity
from dpnb._compile.features import UnitValueFeature
from dpnb._plan.expressions.nodes import (
    And,
    Arithmetic,
    AsNumber,
    Column,
    Compare,
    IsNull,
    Literal,
    Lookup,
    Not,
    WithinUnit,
)
from dpnb._plan.join import schema_of, unit_of
from dpnb._plan.measurements import (
    DeviationProducts,
    JointAggregation,
    Mean,
    Measured,
    UnitProducts,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, Join, PartSource, PerUnit, Plan, TableSource
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit, effective_bounds
from dpnb.accounting.individual import UnitChargeTerms
from dpnb.schema import Schema
from pairwise import pairwise, product

X, Y, G = Column("x"), Column("y"), Column("g")
BY_G = (GroupLevel("g", G),)
UNITS = {
    "one row": PrivacyUnit("u", 1),
    "three rows": PrivacyUnit("u", 3),
    "three rows, one group": PrivacyUnit("u", 3, ContributionBounds(max_groups=1)),
    "ten rows, one in a group": PrivacyUnit("u", 10, ContributionBounds(max_rows_per_group=1)),
    "two groups of two": PrivacyUnit("u", None, ContributionBounds(max_groups=2, max_rows_per_group=2)),
    "three rows, norm": PrivacyUnit("u", 3, ContributionBounds(max_norm=1.5)),
    "norm": PrivacyUnit("u", None, ContributionBounds(max_norm=1.5)),
}
ROWS = [1, 2, 3, 4, 100]
"""For which products are bounded: fewer and more than a unit has."""

A, B, LOW, MISSING = (9, 2, "a"), (5, 2, "b"), (-3, 0, "a"), (None, 2, "a")
FAMILY: list[tuple[Row, ...]] = [
    (A, A, A),
    (A, A, B),
    (A, LOW, LOW, MISSING),
    *((A,) * count + (B,) * count for count in (2, 3, 4)),
]
NAME = "q"
"""Of the unit: of its rows, the one with its number in a group counts in the examples with a limit on a group."""


def scores(rows: int) -> UnitProducts:
    """Those of a regression of x on y and g, at some coefficients."""
    of_g = Lookup("coefficients", (G,), (("a",), ("b",)), (0.0, -1.5), -1.5, 0.0)
    residual = Arithmetic("-", X, Arithmetic("+", Arithmetic("*", Literal(0.5), Y), of_g))
    indicator = AsNumber(Compare("==", G, Literal("b")))
    return UnitProducts((residual, Arithmetic("*", residual, Y), Arithmetic("*", residual, indicator)), rows)


def scores_within(rows: int) -> UnitProducts:
    """The same with fixed effects, of y alone."""
    residual = Arithmetic("-", X, Arithmetic("*", Literal(0.5), Y))
    known = And(Not(IsNull(X)), Not(IsNull(Y)))
    return UnitProducts((Arithmetic("*", residual, Arithmetic("-", Y, WithinUnit("mean", Y, None, known))),), rows)


KINDS: dict[str, Callable[[int], Measured]] = {
    "square": lambda rows: UnitProducts((X,), rows, squares=True),
    "pairs": lambda rows: UnitProducts((X, Y), rows),
    "beside a mean": lambda rows: JointAggregation(
        (WeightedAggregation(Mean(X), 9.0), WeightedAggregation(UnitProducts((X, Y), rows)))
    ),
}
SCHEMAS: dict[str, Schema] = {"": SCHEMA}
PER_UNIT = PerUnit("", (GroupLevel("x", X), GroupLevel("y", Y), GroupLevel("g", G)), order=(X,), rows=2)
SOURCES: dict[str, TableSource] = {
    "table": "",
    "part": PartSource("", GroupLevel("large", Compare(">", X, Literal(0))), True),
    "rows per unit": PER_UNIT,
    "rows per unit and group": PerUnit("", PER_UNIT.columns, None, (G,)),
}


@cache
def tables(mine: tuple[Row, ...], unit: str, *, several: bool = False) -> MemoryBackend:
    """The others' rows with one unit's rows among them; none for the table without it."""
    rows = [*OTHERS[:1], *((NAME, *row) for row in mine), *OTHERS[1:]]
    table = pd.DataFrame(rows, columns=["u", "x", "y", "g"]).astype(object)
    names = ("visits", "bills") if several else ("",)
    schemas, units = (dict.fromkeys(names, one) for one in (SCHEMA, UNITS[unit]))
    return MemoryBackend.read(dict.fromkeys(names, table), schemas, units)


def compiled(plan: Plan, unit: str) -> LinearQuery:
    names = ("", "visits", "bills")
    schemas, units = dict.fromkeys(names, SCHEMA), dict.fromkeys(names, UNITS[unit])
    return linear_query(plan, schema_of(plan.source, schemas), unit_of(plan.source, units, schemas))


def worst(query: LinearQuery, unit: str, *, several: bool = False) -> Fraction:
    """The largest squared change when one unit is added, as a part of what is claimed."""
    before = tables((), unit, several=several).sums(query)
    found = [
        squared(moved[moved != 0])
        for mine in FAMILY
        for moved in [tables(mine, unit, several=several).sums(query) - before]
    ]
    return Fraction(max(found), query.l2_sensitivity_squared)


def excess(units: Any = UNITS, rows: Any = ROWS) -> list[str]:
    """The plans whose sums one unit changes by more than is claimed."""
    levels = (BY_G, ())
    chosen = [(rows[i], kind, levels[k]) for i, j, k in sorted(pairwise(rows, KINDS, levels)) for kind in [[*KINDS][j]]]
    return [
        f"{unit}, {most}, {kind}, {len(by)}"
        for unit, (most, kind, by) in itertools.product(units, chosen)
        if worst(compiled(Plan(KINDS[kind](most), group_by=by), unit), unit) > 1
    ]


@pytest.fixture(autouse=True)
def _refuse_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The claim holds even under limits with which such plans are refused, since they would answer something else."""
    refusing = sensitivity._bounds_of

    def bounds_of(plan: Plan, unit: PrivacyUnit) -> ContributionBounds:
        if isinstance(plan.aggregation, DeviationProducts):
            return refusing(plan, unit)
        return effective_bounds(unit, plan.contribution_bounds)

    monkeypatch.setattr(sensitivity, "_bounds_of", bounds_of)


@pytest.mark.parametrize("unit", UNITS)
def test_a_unit_changes_sums_of_products_by_no_more_than_is_claimed(unit: str) -> None:
    assert excess([unit]) == []


@pytest.mark.parametrize("rows", ROWS)
@pytest.mark.parametrize("kind", [scores, scores_within])
def test_a_unit_changes_scores_of_a_regression_by_no_more_than_is_claimed(
    kind: Callable[[int], UnitProducts], rows: int
) -> None:
    for unit in ("one row", "three rows", "three rows, one group", "ten rows, one in a group"):
        if kind is scores or unit != "one row":  # whose deviations are 0
            assert 0 < worst(compiled(Plan(kind(rows)), unit), unit) <= 1


@pytest.mark.parametrize("unit", ["one row", "three rows", "three rows, one group", "two groups of two"])
@pytest.mark.parametrize("by", [(), BY_G], ids=["whole", "by group"])
def test_the_claim_is_what_a_unit_can_change(unit: str, by: tuple[GroupLevel, ...]) -> None:
    rows = UNITS[unit].max_rows or 2
    assert worst(compiled(Plan(UnitProducts((X,), rows, squares=True), group_by=by), unit), unit) == 1


@pytest.mark.parametrize(("source", "rows", "by"), product(list(SOURCES)[1:], [1, 2, 3], [(), BY_G], together=1))
def test_a_unit_changes_products_of_other_tables_by_no_more_than_is_claimed(
    source: str, rows: int, by: tuple[GroupLevel, ...]
) -> None:
    where = Compare(">", WithinUnit("max", X, 3), Literal(0))
    for unit in ("three rows", "three rows, one group", "ten rows, one in a group"):
        plan = Plan(UnitProducts((X, Y), rows), where, by, source=SOURCES[source])
        assert 0 < worst(compiled(plan, unit), unit) <= 1


@pytest.mark.parametrize("rows", [1, 3, 9])
def test_a_unit_in_both_tables_changes_products_of_a_merge_by_no_more_than_is_claimed(rows: int) -> None:
    unit = "three rows"
    plan = Plan(UnitProducts((Column("x_x"), Column("y_y")), rows), source=Join("visits", "bills"))
    found = worst(compiled(plan, unit), unit, several=True)
    assert found == 1 if rows != 3 else 0 < found <= 1
    by = (GroupLevel("g", Column("g_x")),)
    plan = Plan(UnitProducts((Column("x_x"),), rows, squares=True), group_by=by, source=plan.source)
    assert 0 < worst(compiled(plan, unit), unit, several=True) <= 1


@pytest.mark.parametrize("rows", [1, 2, 5])
@pytest.mark.parametrize("unit", ["three rows", "ten rows, one in a group", "two groups of two"])
def test_products_of_deviations_for_fewer_rows_than_a_unit_has(rows: int, unit: str) -> None:
    """Limits on groups and their rows have no effect: a unit has one number each."""
    assert 0 < worst(compiled(Plan(DeviationProducts((X, Y), rows)), unit), unit) <= 1


@pytest.mark.parametrize(("rows", "kind"), product([1, 2, 3], KINDS, together=1))
def test_under_individual_accounting_a_unit_pays_for_what_it_changes(rows: int, kind: str) -> None:
    """The charge of a unit covers the square of the change of the sums when it is left out, and no more than steps."""
    query = compiled(Plan(KINDS[kind](rows), group_by=BY_G), "three rows")
    mine = [(A, A, B), (A, LOW, MISSING), (B,), (MISSING,), (A, A, A, A)]
    listed = [(f"{NAME}{index}", *row) for index, rows_of in enumerate(mine) for row in rows_of]

    def opened(without: int | None = None) -> MemoryBackend:
        kept = [row for row in listed if row[0] != f"{NAME}{without}"]
        table = pd.DataFrame(kept, columns=["u", "x", "y", "g"]).astype(object)
        return MemoryBackend.read({"": table}, SCHEMAS, {"": UNITS["three rows"]})

    terms = UnitChargeTerms(1.0, query.l2_sensitivity_squared, True)
    whole, budgets = opened().unit_budgets(Fraction(2) ** 200, "drop").after_query(query, terms)
    changes = [whole - opened(index).sums(query) for index in range(len(mine))]
    squares = [squared(change[change != 0]) for change in changes]
    paid = [budgets.spent_by(index) for index in range(len(mine))]
    assert all(one >= square for one, square in zip(paid, squares, strict=True))
    assert [float(one) for one in paid] == pytest.approx([float(square) for square in squares], rel=1e-6)
    assert max(squares) <= query.l2_sensitivity_squared


def test_products_of_deviations_are_those_of_all_rows_whatever_counts_in_a_group() -> None:
    plan = Plan(DeviationProducts((X, Y), 3))
    for mine in FAMILY[:3]:
        unit = PrivacyUnit("u", 3, ContributionBounds(max_groups=1, max_rows_per_group=1))
        rows = [*((f"{NAME}{number}", *row) for number in range(9) for row in mine)]
        table = pd.DataFrame(rows, columns=["u", "x", "y", "g"]).astype(object)
        found = [
            MemoryBackend.read({"": table}, SCHEMAS, {"": one}).sums(linear_query(plan, SCHEMA, one)).tolist()
            for one in (UNITS["three rows"], unit)
        ]
        assert found[0] == found[1]


# --- controls ---------------------------------------------------------------------------------------------------------


def claim(monkeypatch: pytest.MonkeyPatch, of: Callable[[UnitValueFeature, Any, int], Fraction]) -> None:
    """Claim another number of times the square of what one group can have."""
    sound = sensitivity._max_norms_squared

    def changed(features: Any, limits: Any, cells: int) -> list[Fraction]:
        return [
            of(one, limits, cells) * one.limit_squared if isinstance(one, UnitValueFeature) else claimed
            for one, claimed in zip(features, sound(features, limits, cells), strict=True)
        ]

    monkeypatch.setattr(sensitivity, "_max_norms_squared", changed)


def test_numbers_in_several_rows_of_a_unit_are_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(products, "once", lambda node: node)
    assert excess(["three rows"]) != []


def test_a_claim_for_one_group_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A unit may have more rows than those for which its products are bounded, in several groups."""
    claim(monkeypatch, lambda feature, limits, cells: Fraction(1))
    assert excess(["three rows"], [1, 2]) != []


def test_a_claim_for_the_rows_that_count_in_a_group_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a unit adds in a group is of all of its rows there, also of those beyond the limit of a group."""

    def of_counted(feature: UnitValueFeature, limits: Any, cells: int) -> Fraction:
        return max(Fraction(1), Fraction(sensitivity.rows_of_unit(limits, cells) or cells, feature.max_rows))

    claim(monkeypatch, of_counted)
    assert excess(["two groups of two"]) != []
    assert excess(["ten rows, one in a group"]) != []
