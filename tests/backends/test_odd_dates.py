"""Dates that microseconds, or Python, cannot hold do not count, and are no errors."""

from __future__ import annotations

from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpnb
from dpnb._backends import opened
from dpnb._backends.memory.prepare.columns import column_of
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._compile import linear_query
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import PrivacyUnit, privacy_unit_from
from dpnb.schema import schema_from

SCHEMA = schema_from({"d": dpnb.Dates("1970-01-01", "2017-12-31"), "y": dpnb.Bounded(0, 1)})
UNITS = {"row": privacy_unit_from(None, SCHEMA), "person": privacy_unit_from("u", SCHEMA, rows=2)}


def counted(table: Any, unit: PrivacyUnit) -> list[int]:
    from dpnb._plan.expressions.nodes import Column
    from dpnb._plan.measurements import Count

    query = linear_query(Plan(Count(Column("d"))), SCHEMA, unit)
    return [int(value) for value in opened({"": table}, {"": SCHEMA}, {"": unit}).sums(query).ravel()]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("odd", ["date '300000-01-01'", "date '5877642-06-25 (BC)'", "date 'infinity'", "NULL"])
def test_a_date_beyond_microseconds_is_no_error_in_duckdb(odd: str, unit: str) -> None:
    table = duckdb.connect().sql(f"SELECT * FROM (VALUES (1, date '2000-05-05', 1.0), (2, {odd}, 1.0)) AS t(u, d, y)")
    assert counted(table, UNITS[unit]) == [1]


def test_control_duckdb_itself_fails_for_such_a_date() -> None:
    with pytest.raises(duckdb.ConversionException):
        duckdb.connect().sql("SELECT epoch_us(d) FROM (VALUES (date '300000-01-01')) AS t(d)").fetchall()


@pytest.mark.parametrize("steps", ["TIMESTAMP_S", "TIMESTAMP_MS", "TIMESTAMP", "TIMESTAMP_NS", "TIMESTAMPTZ", "DATE"])
def test_other_dates_count_in_duckdb_whatever_their_type(steps: str) -> None:
    connection = duckdb.connect()
    connection.sql("SET TimeZone = 'Asia/Tokyo'")
    table = connection.sql(f"SELECT 1 AS u, cast('2000-05-05' AS {steps}) AS d, 1.0 AS y")
    assert counted(table, UNITS["row"]) == [1]


@pytest.mark.parametrize(
    ("kind", "size", "odd"),
    [(pa.date32(), pa.int32(), 2**31 - 1), (pa.date32(), pa.int32(), -(2**31)), (pa.date64(), pa.int64(), 2**62)],
)
@pytest.mark.parametrize("arrow", [True, False], ids=["arrow", "pandas"])
@pytest.mark.parametrize("unit", UNITS)
def test_a_date_that_python_has_not_is_no_error_in_arrow(
    kind: Any, size: Any, odd: int, arrow: bool, unit: str
) -> None:
    odd -= odd % 86_400_000 if kind == pa.date64() else 0
    days = pa.array([0, odd], size).view(kind)
    table = pa.table({"u": [1, 2], "d": days, "y": [1.0, 1.0]})
    found = counted(table if arrow else table.to_pandas(types_mapper=pd.ArrowDtype), UNITS[unit])
    assert found == [1]


def test_what_names_a_unit_may_be_a_date_that_python_has_not() -> None:
    days = pa.array([0, 0, 2**31 - 1], pa.int32()).view(pa.date32())
    table = pa.table({"u": days, "d": pa.array([0, 0, 0], pa.date32()), "y": [1.0] * 3})
    assert counted(table.to_pandas(types_mapper=pd.ArrowDtype), UNITS["person"]) == [2]


def test_a_value_that_cannot_be_read_changes_no_other() -> None:
    import narwhals as nw

    days = pa.array([7, 2**31 - 1, None], pa.int32()).view(pa.date32())
    series = nw.from_native(pd.Series(days.to_pandas(types_mapper=pd.ArrowDtype)), series_only=True)
    found = column_of(series)
    assert [str(value)[:10] for value in found] == ["1970-01-08", "None", "None"]


@pytest.mark.parametrize("outside", ["clamp", "drop"])
def test_a_moment_beyond_microseconds_does_not_wrap_round_into_the_bounds(outside: Any) -> None:
    schema = schema_from({"d": dpnb.Dates("1970-01-01", "2017-12-31", outside=outside)})
    far = 2**64 // 10**6 + 1_400_000_000  # seconds; in microseconds of 64 bits it would be the year 2014
    table = pa.table({"d": pa.array([far, -far, 0, None], pa.int64()).view(pa.timestamp("s"))})
    unit = privacy_unit_from(None, schema)
    assert np.isnan(prepare(table, schema, unit).numbers["d"]).tolist() == [True, True, False, True]
