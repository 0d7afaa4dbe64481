"""What a check counts is what a session counts."""

from __future__ import annotations

import datetime
import math
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpnb
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._plan.privacy_unit import PrivacyUnit, privacy_unit_from
from dpnb.curator.tally import summarize_column, summarize_units
from dpnb.schema import ColumnType

COLUMNS: dict[str, ColumnType] = {
    "bounded": dpnb.Bounded(-1, 10),
    "whole": dpnb.Bounded(0, 5, integer=True),
    "categories": dpnb.Categories(["a", "1", 25, 0.5]),
    "truth": dpnb.Categories([True, False]),
    "dates": dpnb.Dates("1950-01-01", "2000-12-31"),
    "text": dpnb.Text(),
}
ODD: list[Any] = [
    0, 1, -7, 25, 2**70, 0.5, math.nan, math.inf, -math.inf, True, False, None, pd.NA, pd.NaT, "", "a", "1", "1_000",
    " 3 ", "nan", "sekret", "1960-01-01", "1900-01-01T10:00", "3/4/1960", Decimal("2.5"), Decimal("nan"), b"7", [1], {},
    pd.Timestamp("1960-01-01"), datetime.date(1913, 8, 7), np.datetime64("2020-01-01"), datetime.timedelta(days=1),
]  # fmt: skip


class Unwritable:
    def __repr__(self) -> str:
        raise ValueError("odd")


def counts_alone(value: Any, column: ColumnType) -> bool:
    """Whether a session counts a value, in a table of nothing else."""
    table = prepare(pd.DataFrame({"x": pd.Series([value], dtype=object)}), {"x": column}, PrivacyUnit())
    return bool(np.isfinite(table.numbers["x"])[0]) if "x" in table.numbers else bool(table.codes["x"][0] >= 0)


@given(st.lists(st.sampled_from(ODD), max_size=12), st.sampled_from([*COLUMNS]))
def test_values_count_in_a_check_as_each_counts_in_a_session(values: list[Any], name: str) -> None:
    column = COLUMNS[name]
    table = pd.DataFrame({"x": pd.Series(values, dtype=object)})
    found = summarize_column(table, "x", column)
    assert found.rows == len(values)
    assert found.counts == sum(counts_alone(value, column) for value in values)
    assert found.counts + found.dropped + found.missing + found.unusable == found.rows
    assert found.outside <= found.counts + found.dropped
    assert sum(count for _, count in found.examples) <= found.unusable


def by_pandas(values: list[Any]) -> int:
    """A control: what counts as a number by another rule than a session's."""
    return int(np.isfinite(pd.to_numeric(pd.Series(values, dtype=object), errors="coerce")).sum())


def test_another_rule_would_not_agree() -> None:
    values = ["1_000", "3", "x", True]
    assert sum(counts_alone(value, COLUMNS["bounded"]) for value in values) == 3
    assert by_pandas(values) != 3


@pytest.mark.parametrize(
    "values",
    [
        pd.Series([-5, 0, 5, 99, 100], dtype="int64"),
        pd.Series([-5, 0, 5, 99, 100], dtype="Int64"),
        pd.Series([-5.0, 0, 5, 99, 100]),
        pd.Series(["-5", "0", "5", "99", "100"]),
        pd.Series(["-5", "0", "5", "99", "100"], dtype="category"),
    ],
    ids=lambda values: str(values.dtype),
)
def test_what_is_outside_is_counted_on_both_sides(values: Any) -> None:
    found = summarize_column(pd.DataFrame({"x": values}), "x", dpnb.Bounded(0, 10))
    assert (found.below, found.above, found.counts, found.dropped, found.unusable) == (1, 2, 5, 0, 0)


def test_what_is_outside_and_does_not_count_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    def dropping(table: Any, schema: Any, unit: Any) -> Any:
        prepared = prepare(table, schema, unit)
        prepared.numbers["x"][[0, 3]] = np.nan  # as if these were not clamped
        return prepared

    monkeypatch.setattr("dpnb.curator.tally.prepare", dropping)
    found = summarize_column(pd.DataFrame({"x": [-5, 0, 5, 99]}), "x", dpnb.Bounded(0, 10))
    assert (found.below, found.above, found.counts, found.dropped, found.unusable) == (1, 1, 2, 2, 0)


def test_dates_outside_are_counted_on_both_sides() -> None:
    moments = pd.to_datetime(["1949-12-31", "1960-01-01", None, "2001-01-01", "2002-01-01"])
    found = summarize_column(pa.table({"x": pa.array(moments)}), "x", COLUMNS["dates"])
    assert (found.below, found.above, found.counts, found.missing) == (1, 2, 4, 1)
    assert found.kind == "dates or times"


@pytest.mark.parametrize(
    "values", [pd.Series(["four", "three", None, 7, "12345"], dtype=object), pa.array(["a", "123456", None])]
)
def test_texts_that_are_longer_than_declared_are_counted(values: Any) -> None:
    table = pd.DataFrame({"x": values}) if isinstance(values, pd.Series) else pa.table({"x": values})
    found = summarize_column(table, "x", dpnb.Text(max_length=4))
    longer = 2 if len(values) == 5 else 1
    assert (found.below, found.above, found.dropped) == (0, longer, 0)
    assert found.counts == len(values) - 1
    assert summarize_column(table, "x", dpnb.Text()).above == 0


def test_the_most_frequent_values_that_do_not_count_are_shown_escaped() -> None:
    values = ["b\x1b[2J"] * 3 + ["c" * 100] * 2 + [Unwritable()] + ["a"] + [None] + ["\u202e"] * 4
    found = summarize_column(pd.DataFrame({"x": pd.Series(values, dtype=object)}), "x", COLUMNS["categories"])
    (bidi, four), (escaped, three), (long, two) = found.examples
    assert (bidi, escaped) == (r"'\u202e'", r"'b\x1b[2J'")
    assert (four, three, two) == (4, 3, 2)
    assert len(long) < 50
    odd = summarize_column(pd.DataFrame({"x": pd.Series([Unwritable()], dtype=object)}), "x", COLUMNS["categories"])
    assert odd.examples == (("<Unwritable>", 1),)


def test_a_category_that_no_row_has_is_named() -> None:
    found = summarize_column(pd.DataFrame({"x": [25, 25, 0.5]}), "x", COLUMNS["categories"])
    assert found.absent == ("a", "1")


def test_rows_are_counted_by_whose_they_are() -> None:
    tables = {
        "seen": pd.DataFrame({"who": ["a", "a", "a", "b", None], "x": 1}),
        "paid": pd.DataFrame({"who": ["b", "c", None, None], "x": 1}),
    }
    schema = {"x": COLUMNS["bounded"]}
    units = {"seen": privacy_unit_from("who", schema, rows=2), "paid": privacy_unit_from("who", schema, norm=1)}
    found = summarize_units(tables, dict.fromkeys(tables, schema), units)
    seen, paid = found["seen"], found["paid"]
    assert (seen.rows, seen.units, seen.rows_without_unit, seen.beyond) == (5, 2, 1, 1)
    assert (paid.rows, paid.units, paid.rows_without_unit, paid.beyond) == (4, 2, 2, 0)
    rows = summarize_units({"": tables["seen"]}, {"": schema}, {"": PrivacyUnit()})[""]
    assert (rows.rows, rows.units, rows.rows_without_unit, rows.beyond) == (5, 5, 0, 0)
