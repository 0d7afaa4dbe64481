"""Types of columns that follow from all of their rows.

Kind: values
Fault: A library gives a column a type that suits all of its values, so one odd value turns numbers into doubles or
texts, and dates into objects. If the values of other rows are then read differently, one person changes all of them.
Reported: opendp/opendp#2374; opendp/opendp#2587 (types inferred from the first rows of a file)
dpnb: Each value is read alone, by the declared type of its column, whatever type the container gave the column.

Exact sums with and without the odd row must stay within the claim. Nothing here is drawn.
"""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pandas.api.types import is_integer_dtype, is_numeric_dtype

from dpnb._plan.expressions.nodes import Column, ExtractDatePart, FillNull, IsNull
from dpnb._plan.measurements import Count, CountUnits, Mean, Sum
from dpnb._plan.plan import GroupLevel, Plan, column
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import SchemaError
from dpnb.schema import Bounded, Categories, Dates, Schema, Text
from pairwise import one_in, product
from statistical.attacks import change, changes, neighbours

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

PARTS = [
    Plan(Count(), group_by=(GroupLevel("part", ExtractDatePart(part, Column("x"))),))
    for part in ("year", "month", "day", "hour", "dayofweek")
]
AS: dict[str, tuple[Schema, list[Plan]]] = {
    "numbers": (
        {"x": Bounded(-4, 4)},
        [Plan(Count(Column("x"))), Plan(Sum(Column("x"))), Plan(Mean(FillNull(Column("x"), 2)))],
    ),
    "categories": (
        {"x": Categories([1, 2, 3, "1", "b", "c", 0.5, EXACT + 1, EXACT + 3])},
        [Plan(Count(Column("x"))), Plan(Count(), group_by=(column("x"),)), Plan(Count(), IsNull(Column("x")))],
    ),
    "dates": ({"x": Dates("2000-01-01", "2030-01-01")}, [Plan(Count(Column("x"))), *PARTS]),
    "texts": (
        {"x": Text()},
        [
            Plan(Count(Column("x"))),
            Plan(Count(), group_by=(column("x"),), group_keys=(*TEXTS, *MOMENT_TEXTS, *FAR_TEXTS, *DURATION_TEXTS)),
        ],
    ),
}


IDS: dict[str, Callable[[], pd.Series]] = {
    **{name: COLUMNS[name] for name in COLUMNS if name not in ("bool", "nullable truth")},
    "days": lambda: pd.Series(pd.date_range("1950-01-01", periods=30)).astype("datetime64[ns]"),
    "days with a zone": lambda: pd.Series(pd.date_range("1950-01-01", periods=30, tz="Asia/Tokyo")),
    "many large nullable integers": lambda: pd.Series(range(EXACT, EXACT + 30), dtype="Int64"),
    "many durations": lambda: pd.Series(pd.to_timedelta(range(30), unit="h")),
    "fractions": lambda: pd.Series(np.arange(30) / 7),
}


Moved = Callable[[pd.Series], Callable[[pd.Series], float]]
"""How far a column and versions with one row more move a result; in multiples of the claim."""


def attack(from_base: Moved, base: pd.Series) -> dict[str, float]:
    """Odd values, and the type that the column then has, that move more than one row may."""
    found, moved = {}, from_base(base)
    for name, value in ODD.items():
        for made in extended(base, value):
            if (far := moved(made)) > 1:
                found[f"{name} as {made.dtype}"] = far
    return found


def declared_as(declared: str) -> Moved:
    def from_base(base: pd.Series) -> Callable[[pd.Series], float]:
        moved = changes(pd.DataFrame({"x": base}), *AS[declared], PrivacyUnit())
        return lambda made: moved(pd.DataFrame({"x": made}))

    return from_base


def as_ids(base: pd.Series) -> Callable[[pd.Series], float]:
    """Neither whose rows are whose, nor which rows of a person count."""
    schema: Schema = {"x": Bounded(0, 63), "g": Categories(["a", "b", "c"])}
    plans = [Plan(Sum(Column("x"))), Plan(CountUnits()), Plan(Count(), group_by=(column("g"),))]
    chance = np.random.default_rng(5)
    rest = {"x": chance.integers(0, 64, len(base) * 6), "g": chance.choice(["a", "b", "c"], len(base) * 6)}
    others = pd.DataFrame({"u": pd.concat([base] * 6, ignore_index=True), **rest})
    moved = changes(others, schema, plans, PrivacyUnit("u", 2))

    def from_made(made: pd.Series) -> float:
        ids = pd.concat([base.astype(made.dtype)] * 5 + [made], ignore_index=True)
        return moved(pd.DataFrame({"u": ids, "x": [*rest["x"], 63], "g": [*rest["g"], "a"]}))

    return from_made


def as_ids_of_one_table_of_two(base: pd.Series) -> Callable[[pd.Series], float]:
    """Ids of two tables are compared, so the type of one may decide how the other is read.

    A column of floating-point numbers may be refused when the session is opened, by its type.
    """
    others = pd.DataFrame({"u": base, "x": 1.0})

    def from_made(made: pd.Series) -> float:
        try:
            pair = neighbours(
                lambda view: view("left").merge(view("right"), on="u").count(),
                {"left": (others, others), "right": (pd.DataFrame({"u": made, "x": 1.0}), others)},
                {table: {"x": Bounded(0, 3)} for table in ("left", "right")},
                {"privacy_unit": "u", "max_rows_per_unit": 1},
            )
        except SchemaError:
            assert any(is_numeric_dtype(ids) and not is_integer_dtype(ids) for ids in (made, base))
            return 0.0
        return float(pair.mu_squared_share)

    return from_made


@pytest.mark.parametrize(("base", "declared"), product(COLUMNS, AS, together=1))
def test_dpnb_resists(base: str, declared: str) -> None:
    assert attack(declared_as(declared), COLUMNS[base]()) == {}


@pytest.mark.parametrize("base", one_in(3, IDS))
@pytest.mark.parametrize("ids", [as_ids, as_ids_of_one_table_of_two])
def test_dpnb_resists_in_the_column_of_the_unit(ids: Moved, base: str) -> None:
    assert attack(ids, IDS[base]()) == {}


# --- controls: what careless readings of the same columns do ----------------------------------------------------------


def counted_as_numbers(values: pd.Series) -> int:
    """Rows of a numeric column, and none of any other."""
    return int(values.count()) if pd.api.types.is_numeric_dtype(values) else 0


def distinct_as_doubles(values: pd.Series) -> int:
    """Whole numbers, as doubles once one is missing."""
    if values.dtype == object:
        return values.astype(str).nunique()
    array = values.to_numpy(dtype=float, na_value=np.nan) if values.isna().any() else values.to_numpy()
    return len(pd.unique(array[~pd.isna(array)]))


def nanoseconds_as_texts(values: pd.Series) -> int:
    """What `numpy` makes of moments when they are asked for as objects."""
    return sum(isinstance(value, int) for value in values.to_numpy().astype(object))


@pytest.mark.parametrize(
    ("reading", "base", "odd"),
    [
        (counted_as_numbers, "int64", "text"),
        (distinct_as_doubles, "many large nullable integers", "none"),
        (nanoseconds_as_texts, "nanoseconds", "text"),
    ],
)
def test_the_control_is_caught(reading: Callable[[pd.Series], int], base: str, odd: str) -> None:
    found = attack(lambda values: lambda made: abs(reading(made) - reading(values)), IDS[base]())
    assert any(name.startswith(f"{odd} as") for name in found)


def test_control_two_rows_more_are_seen_by_the_same_comparison() -> None:
    others = pd.DataFrame({"x": [1.0, 2.0]})
    rows = pd.DataFrame({"x": [1.0, 2.0, 3.0, 3.0]})
    assert change(rows, others, {"x": Bounded(0, 3)}, Plan(Sum(Column("x"))), PrivacyUnit()) > 1
