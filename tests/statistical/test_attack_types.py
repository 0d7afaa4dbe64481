"""Differencing by dtype: one odd value changes the type of a whole column, and must change nobody else's rows.

A table library keeps a column in a type that suits all of its values, so a single row can turn integers into doubles or
objects, and dates into objects.  If anybody else's row then counts differently, one person moves all of them.  Exact
sums with and without the odd row must stay within the claim.  Nothing here is drawn.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpnb._plan.expressions.nodes import Column, ExtractDatePart, FillNull, IsNull
from dpnb._plan.measurements import Count, CountUnits, Mean, Sum
from dpnb._plan.plan import GroupLevel, Plan, column
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._plan.schema import Bounded, Categories, Dates, Schema, Text
from pairwise import one_in, product
from statistical.attacks import change, neighbours

EXACT = 2**53
"""Above it a double does not hold every whole number."""

MOMENTS = np.array(["2020-01-01", "2020-05-05T10:00", "1999-12-31T23:59:59"] * 10, "datetime64[s]")

COLUMNS: dict[str, Callable[[], pd.Series]] = {
    "int64": lambda: pd.Series([1, 2, 3] * 10),
    "float64": lambda: pd.Series([1.0, 2.5, np.nan] * 10),
    "float32": lambda: pd.Series([0.1, 0.5, 3] * 10, dtype="float32"),
    "bool": lambda: pd.Series([True, False, True] * 10),
    "uint8": lambda: pd.Series([1, 2, 255] * 10, dtype="uint8"),
    "nullable integers": lambda: pd.Series([1, 2, 3] * 10, dtype="Int64"),
    "large nullable integers": lambda: pd.Series([EXACT, EXACT + 1, EXACT + 3] * 10, dtype="Int64"),
    "categories of large integers": lambda: pd.Series([EXACT, EXACT + 1, EXACT + 3] * 10, dtype="category"),
    "nullable doubles": lambda: pd.Series([1.5, 2, 3] * 10, dtype="Float64"),
    "nullable truth": lambda: pd.Series([True, False, True] * 10, dtype="boolean"),
    "texts": lambda: pd.Series(["1", "b", "c"] * 10, dtype="str"),
    "nullable texts": lambda: pd.Series(["1", "b", "c"] * 10, dtype="string"),
    "categories": lambda: pd.Series(["1", "b", "c"] * 10, dtype="category"),
    "complex": lambda: pd.Series([1 + 0j, 2, 3] * 10),
    "seconds": lambda: pd.Series(MOMENTS),
    "microseconds": lambda: pd.Series(MOMENTS.astype("datetime64[us]")),
    "nanoseconds": lambda: pd.Series(MOMENTS.astype("datetime64[ns]")),
    "nanoseconds with a zone": lambda: pd.Series(MOMENTS.astype("datetime64[ns]")).dt.tz_localize("Europe/Paris"),
    "far years": lambda: pd.Series(np.array(["12020-05-05", "-0005-01-01", "2020-01-01"] * 10, "datetime64[s]")),
    "durations": lambda: pd.Series(np.array([1, 2, 3] * 10, "timedelta64[D]").astype("timedelta64[ns]")),
    "months": lambda: pd.Series(pd.period_range("2020-01", periods=30, freq="M")),
}

ODD: dict[str, Any] = {
    "text": "odd",
    "none": None,
    "NA": pd.NA,
    "nan": np.nan,
    "NaT": pd.NaT,
    "double": 0.5,
    "integer": 7,
    "huge": 10**400,
    "list": [1],
    "date": datetime.date(2020, 5, 5),
}


def extended(base: pd.Series, value: Any) -> list[pd.Series]:
    """The column with one more row, of each type that it may then have; only those that keep the other rows' values."""
    added = np.empty(1, object)
    added[0] = value
    objects = pd.concat([base.astype(object), pd.Series(added, dtype=object)], ignore_index=True)
    made = [objects, objects.infer_objects()]
    if value is None or value is pd.NA or value is pd.NaT or value != value:
        with contextlib.suppress(TypeError, ValueError):  # a type without a null
            made.append(pd.concat([base, pd.Series([None], dtype=object).astype(base.dtype)], ignore_index=True))
    return [one for one in made if one[:-1].astype(object).equals(base.astype(object))]


TEXTS = tuple(
    (text,) for text in ["1", "2", "3", "b", "c", "True", "False", "0.5", *(str(EXACT + k) for k in range(4))]
)
MOMENT_TEXTS = tuple((str(value),) for value in np.unique(MOMENTS.astype("datetime64[ns]").astype(np.int64)).tolist())
FAR_TEXTS = tuple((str(value),) for value in pd.Series(COLUMNS["far years"]()).astype("int64").unique().tolist())
DURATION_TEXTS = tuple((str(days * 86_400 * 10**9),) for days in (1, 2, 3))

AS: dict[str, tuple[Schema, list[Plan]]] = {
    "numbers": (
        {"x": Bounded(-4, 4)},
        [Plan(Count(Column("x"))), Plan(Sum(Column("x"))), Plan(Mean(FillNull(Column("x"), 2)))],
    ),
    "categories": (
        {"x": Categories([1, 2, 3, "1", "b", "c", 0.5, EXACT + 1, EXACT + 3])},
        [Plan(Count(Column("x"))), Plan(Count(), group_by=(column("x"),)), Plan(Count(), IsNull(Column("x")))],
    ),
    "dates": (
        {"x": Dates("2000-01-01", "2030-01-01")},
        [
            Plan(Count(Column("x"))),
            *(
                Plan(Count(), group_by=(GroupLevel("part", ExtractDatePart(part, Column("x"))),))
                for part in ("year", "month", "day", "hour", "dayofweek")
            ),
        ],
    ),
    "texts": (
        {"x": Text()},
        [
            Plan(Count(Column("x"))),
            Plan(Count(), group_by=(column("x"),), group_keys=(*TEXTS, *MOMENT_TEXTS, *FAR_TEXTS, *DURATION_TEXTS)),
        ],
    ),
}


@pytest.mark.parametrize(("base", "declared"), product(COLUMNS, AS, together=1))
def test_one_odd_value_changes_no_other_row_through_the_type_of_its_column(base: str, declared: str) -> None:
    schema, plans = AS[declared]
    others = pd.DataFrame({"x": COLUMNS[base]()})
    found = {}
    for name, value in ODD.items():
        for made in extended(others["x"], value):
            moved = max(change(pd.DataFrame({"x": made}), others, schema, plan, PrivacyUnit()) for plan in plans)
            found[f"{name} as {made.dtype}"] = moved
    assert {name: moved for name, moved in found.items() if moved > 1} == {}


IDS: dict[str, Callable[[], pd.Series]] = {
    **{name: COLUMNS[name] for name in COLUMNS if name not in ("bool", "nullable truth")},
    "days": lambda: pd.Series(pd.date_range("1950-01-01", periods=30)).astype("datetime64[ns]"),
    "days with a zone": lambda: pd.Series(pd.date_range("1950-01-01", periods=30, tz="Asia/Tokyo")),
    "many large nullable integers": lambda: pd.Series(range(EXACT, EXACT + 30), dtype="Int64"),
    "many durations": lambda: pd.Series(pd.to_timedelta(range(30), unit="h")),
    "fractions": lambda: pd.Series(np.arange(30) / 7),
}


@pytest.mark.parametrize("base", one_in(3, IDS))
def test_one_odd_id_changes_nobody_elses_rows_through_the_type_of_its_column(base: str) -> None:
    """Neither whose rows are whose, nor which rows of a person count."""
    schema: Schema = {"x": Bounded(0, 63), "g": Categories(["a", "b", "c"])}
    unit = PrivacyUnit("u", 2)
    plans = [Plan(Sum(Column("x"))), Plan(CountUnits()), Plan(Count(), group_by=(column("g"),))]
    ids = IDS[base]()
    chance = np.random.default_rng(5)
    rest = {"x": chance.integers(0, 64, len(ids) * 6), "g": chance.choice(["a", "b", "c"], len(ids) * 6)}
    others = pd.DataFrame({"u": pd.concat([ids] * 6, ignore_index=True), **rest})
    found = {}
    for name, value in ODD.items():
        for made in extended(others["u"], value):
            rows = pd.DataFrame({"u": made, "x": [*rest["x"], 63], "g": [*rest["g"], "a"]})
            found[f"{name} as {made.dtype}"] = max(change(rows, others, schema, plan, unit) for plan in plans)
    assert {name: moved for name, moved in found.items() if moved > 1} == {}


@pytest.mark.parametrize("base", one_in(3, IDS))
def test_one_odd_id_in_one_table_changes_nobody_elses_pairs_in_a_join(base: str) -> None:
    """Ids of two tables are compared, so the type of one may decide how the other is read."""
    ids = IDS[base]()
    others = pd.DataFrame({"u": ids, "x": 1.0})
    found = {}
    for name, value in ODD.items():
        for made in extended(ids, value):
            tables = {"left": (others, others), "right": (pd.DataFrame({"u": made, "x": 1.0}), others)}
            pair = neighbours(
                lambda view: view("left").merge(view("right"), on="u").count(),
                tables,
                {table: {"x": Bounded(0, 3)} for table in tables},
                {"privacy_unit": "u", "max_rows_per_unit": 1},
            )
            found[f"{name} as {made.dtype}"] = pair.mu_squared_share
    assert {name: moved for name, moved in found.items() if moved > 1} == {}


# --- controls: what careless readings of the same columns do ----------------------------------------------------------


def counted_as_numbers(values: pd.Series) -> int:
    """Rows of a numeric column, and none of any other."""
    return int(values.count()) if pd.api.types.is_numeric_dtype(values) else 0


def distinct_as_doubles(values: pd.Series) -> int:
    """Whole numbers, as doubles once one is missing."""
    array = values.to_numpy(dtype=float, na_value=np.nan) if values.isna().any() else values.to_numpy()
    return len(pd.unique(array[~pd.isna(array)]))


def nanoseconds_as_texts(values: pd.Series) -> int:
    """What `numpy` makes of moments when they are asked for as objects."""
    return sum(isinstance(value, int) for value in values.to_numpy().astype(object))


@pytest.mark.parametrize(
    ("reading", "base", "odd"),
    [
        (counted_as_numbers, "int64", "odd"),
        (distinct_as_doubles, "many large nullable integers", None),
        (nanoseconds_as_texts, "nanoseconds", "odd"),
    ],
)
def test_control_careless_readings_let_one_odd_value_change_many_rows(
    reading: Callable[[pd.Series], int], base: str, odd: Any
) -> None:
    values = IDS[base]()
    assert max(abs(reading(made) - reading(values)) for made in extended(values, odd)) > 1


def test_control_two_rows_more_are_seen_by_the_same_comparison() -> None:
    others = pd.DataFrame({"x": [1.0, 2.0]})
    rows = pd.DataFrame({"x": [1.0, 2.0, 3.0, 3.0]})
    assert change(rows, others, {"x": Bounded(0, 3)}, Plan(Sum(Column("x"))), PrivacyUnit()) > 1
