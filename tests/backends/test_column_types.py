"""Columns that cannot match what their container declares are refused, and nothing that follows from rows is."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import duckdb
import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpnb
from dpnb._backends.column_types import StorageType, matches, refuse_mismatch, refuse_mismatches, storage_type_of
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._plan.constants import values_of
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import SchemaError
from dpnb.schema import ColumnType

CODES = dpnb.Categories([0, 25, 50])
WORDS = dpnb.Categories(["yes", "no"])
HALVES = dpnb.Categories([0.5, 1.5])
TRUE = dpnb.Categories([True, False])
NUMBER = dpnb.Bounded(0, 100)
DAYS = dpnb.Dates("1970-01-01", "2020-01-01")
TEXT = dpnb.Text()


def session(table: Any, **schema: ColumnType) -> dpnb.Session:
    budget = dpnb.Budget(epsilon=100, delta=1e-6, discovery_delta=1e-7)
    return dpnb.Session(table, name="t", budget=budget, schema=schema, ledger=":memory:", not_private_test_seed=1)


# --- the fault: confident zeros --------------------------------------------------------------------------------------


def test_categories_count_whether_a_container_has_numbers_or_their_texts() -> None:
    values = ["0", "25", "25", "50"] * 500
    tables = (
        pd.DataFrame({"coins": values}, dtype=object),
        pl.DataFrame({"coins": values}),
        pl.LazyFrame({"coins": values}),
        pa.table({"coins": values}),
        pl.DataFrame({"coins": [*map(float, values)]}),
        pl.LazyFrame({"coins": [*map(int, values)]}),
    )
    for table in tables:
        for column in (CODES, dpnb.Categories(["0", "25", "50"])):
            found = session(table, coins=column).frame.groupby("coins").count().release(mu=5).to_pandas().iloc[:, 0]
            np.testing.assert_allclose(found, [500, 1000, 500], atol=5)


def test_a_category_too_large_for_an_engine_s_integers_counts_nothing_and_stops_nothing() -> None:
    column = dpnb.Categories([1, 1e22])
    for table in (pl.DataFrame({"coins": [1, 2]}), pl.LazyFrame({"coins": [1, 2]})):
        found = session(table, coins=column).frame.groupby("coins").count().release(mu=10).to_pandas().iloc[:, 0]
        np.testing.assert_allclose(found, [1, 0], atol=2)


def test_categories_of_another_type_gave_confident_zeros_and_are_refused() -> None:
    values = ["north", "south"] * 500
    left_to_check = session(pd.DataFrame({"coins": values}, dtype=object), coins=dpnb.Categories([0.5, 1.5]))
    zeros = left_to_check.frame.groupby("coins").count().release(mu=5)
    assert max(abs(zeros.to_pandas().iloc[:, 0])) < 5
    for table in (pl.DataFrame({"coins": [1, 2]}), pl.LazyFrame({"coins": [1, 2]}), pa.table({"coins": [1, 2]})):
        with pytest.raises(SchemaError, match=r"column 'coins'.*to hold whole numbers; declare dpnb.Bounded"):
            session(table, coins=WORDS)


# --- the rules, beside what counts in memory -------------------------------------------------------------------------

OF_KIND: dict[StorageType, tuple[Any, list[Any]]] = {
    "texts": (pl.String, ["yes", "no", "elm", "0", "2010-03-01", ""]),
    "whole numbers": (pl.Int64, [0, 1, 25, 50, -3, 2**60]),
    "numbers": (pl.Float64, [0.0, 0.5, 1.0, 25.0, 1e300]),
    "decimal numbers": (pl.Decimal(24, 2), [Decimal("0.50"), Decimal("1.00"), Decimal("25.00"), Decimal(2**60)]),
    "truth values": (pl.Boolean, [True, False]),
    "dates or times": (pl.Datetime, [datetime.datetime(2010, 3, 1), datetime.datetime(1970, 1, 1)]),
    "durations": (pl.Duration, [datetime.timedelta(days=1), datetime.timedelta(0)]),
    "lists": (pl.List(pl.Int64), [[1], [0, 25]]),
    "bytes": (pl.Binary, [b"elm", b"yes"]),
}
DECLARED: dict[str, ColumnType] = {
    "bounded": NUMBER,
    "whole": dpnb.Bounded(0, 100, integer=True),
    "codes": CODES,
    "words": WORDS,
    "halves": HALVES,
    "true": TRUE,
    "large": dpnb.Categories([2**60, 2**61]),
    "mixed": dpnb.Categories(["yes", 25]),
    "days": DAYS,
    "text": TEXT,
}
CAST_FIRST = {("bounded", "texts"), ("whole", "texts")}
"""In memory a text counts as the number that it writes; in an engine it cannot, and nowhere silently."""


def counting(table: Any, column: ColumnType) -> int:
    found = prepare(table, {"x": column}, PrivacyUnit())
    return sum(int((~np.isnan(values)).sum()) for values in found.numbers.values()) + sum(
        int((values >= 0).sum()) for values in found.codes.values()
    )


@pytest.mark.parametrize("kind", OF_KIND)
@pytest.mark.parametrize("declared", DECLARED)
def test_what_is_refused_counts_nothing_and_what_counts_nothing_is_refused(declared: str, kind: StorageType) -> None:
    dtype, values = OF_KIND[kind]
    table, column = pl.DataFrame({"x": pl.Series(values, dtype=dtype)}), DECLARED[declared]
    assert storage_type_of(nw.from_native(table)["x"].dtype) == kind
    if (declared, kind) in CAST_FIRST:
        assert not matches(column, kind)
    else:
        # Every category of the whole kinds above is among the values, but for those that no such value can equal.
        known = values_of(getattr(column, "values", ()))
        listed: list[Any] = []
        if kind in ("whole numbers", "texts", "numbers"):
            listed = [key for key in known.texts if kind == "texts"] + [key for key in known.numbers if _is(key, kind)]
        more = pl.DataFrame({"x": pl.Series([*values, *listed], dtype=dtype)})
        assert matches(column, kind) == (counting(more, column) > 0)


def _is(key: Any, kind: StorageType) -> bool:
    return kind == "numbers" or (kind == "whole numbers" and key == key // 1)


@pytest.mark.parametrize("kind", OF_KIND)
@pytest.mark.parametrize("declared", DECLARED)
def test_a_refusal_names_column_kind_and_remedy_and_no_value(declared: str, kind: StorageType) -> None:
    column = DECLARED[declared]
    if matches(column, kind):
        refuse_mismatch("x", column, kind)
        return
    with pytest.raises(SchemaError, match=f"^column 'x': .* declares to hold {kind}; ."):
        refuse_mismatch("x", column, kind)


REMEDIES: list[tuple[ColumnType, StorageType, str]] = [
    (WORDS, "truth values", r"dpnb.Categories\(\[True, False\]\)"),
    (WORDS, "whole numbers", r"dpnb.Bounded\(low, high\)"),
    (NUMBER, "texts", "cast it to numbers"),
    (NUMBER, "dates or times", "dpnb.Dates"),
    (DAYS, "whole numbers", "cast it to dates"),
    (TEXT, "dates or times", "dpnb.Dates"),
    (TEXT, "decimal numbers", "cast it to text"),
    (TEXT, "lists", "leave this one out"),
]


@pytest.mark.parametrize(("column", "kind", "remedy"), REMEDIES)
def test_the_remedy_says_what_to_write(column: ColumnType, kind: StorageType, remedy: str) -> None:
    with pytest.raises(SchemaError, match=remedy):
        refuse_mismatch("x", column, kind)


# --- containers ------------------------------------------------------------------------------------------------------


def lazy_duckdb(values: list[str]) -> Any:
    import duckdb

    frame = pa.table({"x": pa.array(values, pa.string())})
    return duckdb.from_arrow(frame)


Make = Callable[[list[str]], Any]

DECLARING: dict[str, Make] = {
    "polars": lambda values: pl.DataFrame({"x": values}, schema={"x": pl.String}),
    "polars, lazy": lambda values: pl.LazyFrame({"x": values}, schema={"x": pl.String}),
    "polars, categories": lambda values: pl.DataFrame({"x": values}, schema={"x": pl.Categorical}),
    "polars, enum": lambda values: pl.DataFrame({"x": values}, schema={"x": pl.Enum(["1", "2", "yes"])}),
    "Arrow": lambda values: pa.table({"x": pa.array(values, pa.string())}),
    "Arrow, dictionary": lambda values: pa.table({"x": pa.array(values, pa.string()).dictionary_encode()}),
    "DuckDB": lazy_duckdb,
    "pandas, string": lambda values: pd.DataFrame({"x": pd.array(values, "string")}),
    "pandas, on Arrow": lambda values: pd.DataFrame({"x": pd.array(values, pd.ArrowDtype(pa.string()))}),
    "pandas, dictionary on Arrow": lambda values: pd.DataFrame(
        {"x": pd.array(values, pd.ArrowDtype(pa.dictionary(pa.int32(), pa.string())))}
    ),
}
FOLLOWING: dict[str, Make] = {
    "pandas, object": lambda values: pd.DataFrame({"x": pd.Series(values, dtype=object)}),
    "pandas, inferred text": lambda values: pd.DataFrame({"x": pd.Series(values, dtype="str")}),
    "pandas, categories": lambda values: pd.DataFrame({"x": pd.Series(values, dtype="category")}),
}


@pytest.mark.parametrize("values", [[], ["1", "2"], ["yes"]], ids=["no rows", "numbers in texts", "a word"])
@pytest.mark.parametrize("make", DECLARING.values(), ids=DECLARING)
def test_what_a_container_declares_decides_whatever_the_rows_are(make: Make, values: list[str]) -> None:
    for column in (NUMBER, dpnb.Bounded(0, 9, integer=True)):
        with pytest.raises(SchemaError, match=r"column 'x'.*declares to hold texts"):
            session(make(values), x=column)
    for column in (WORDS, TEXT, CODES, TRUE):
        assert session(make(values), x=column).frame.count() is not None


@pytest.mark.parametrize("values", [[], ["1", "2"], ["yes"]], ids=["no rows", "numbers in texts", "a word"])
@pytest.mark.parametrize("make", FOLLOWING.values(), ids=FOLLOWING)
def test_a_type_that_follows_from_the_rows_is_never_refused(make: Make, values: list[str]) -> None:
    for column in DECLARED.values():
        assert session(make(values), x=column).frame.count() is not None


TYPES: dict[str, tuple[list[Any], bool]] = {
    "int64": ([1, 2], False),
    "float64": ([1.5, 2.0], False),
    "bool": ([True, False], False),
    "datetime64[ns]": ([pd.Timestamp(0)], False),
    "datetime64[ns, UTC]": ([pd.Timestamp(0, tz="UTC")], False),
    "timedelta64[ns]": ([pd.Timedelta(0)], False),
    "period[M]": ([pd.Period("2020-01")], False),
    "Int64": ([1, None], True),
    "UInt8": ([1, 2], True),
    "Float64": ([1.5, None], True),
    "boolean": ([True, None], True),
    "int64[pyarrow]": ([1, None], True),
    "timestamp[us][pyarrow]": ([pd.Timestamp(0), None], True),
}


@pytest.mark.parametrize("dtype", TYPES)
def test_of_pandas_types_only_those_that_it_does_not_choose_itself_are_declared(dtype: str) -> None:
    values, declares = TYPES[dtype]
    if not declares:  # what pandas makes of the values on its own
        assert pd.DataFrame({"x": values})["x"].dtype.kind == pd.Series(values, dtype=dtype).dtype.kind
    refused = 0
    for column in (WORDS, DAYS, NUMBER, TEXT):
        for rows in (values, []):
            try:
                refuse_mismatches(pd.DataFrame({"x": pd.Series(rows, dtype=dtype)}), {"x": column})
            except SchemaError:
                refused += 1
    assert (refused > 0) == declares
    assert refused % 2 == 0  # with rows and without


UNDECLARED: list[Any] = [
    pl.DataFrame({"x": [None]}),
    pl.DataFrame({"x": pl.Series([object()], dtype=pl.Object)}),
    pa.table({"x": pa.nulls(1)}),
    pa.table({"x": pa.array([5, 7]).dictionary_encode()}),
]


@pytest.mark.parametrize("table", UNDECLARED, ids=["null", "object", "null of Arrow", "dictionary of numbers"])
def test_a_type_that_says_nothing_is_left_alone(table: Any) -> None:
    refuse_mismatches(table, {"x": NUMBER})


def test_a_dictionary_is_of_the_kind_of_its_values() -> None:
    table = pa.table({"x": pa.array([5, 7]).dictionary_encode()})
    with pytest.raises(SchemaError, match="hold whole numbers"):
        refuse_mismatches(table, {"x": WORDS})


STRANGE = {
    "opaque": pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "numeric", "PostgreSQL"), pa.array(["1.5", "2"])),
    "uuid": pa.ExtensionArray.from_storage(pa.uuid(), pa.array([b"0" * 16] * 2, pa.binary(16))),
    "interval": pa.array([(1, 2, 3)] * 2, pa.month_day_nano_interval()),
    "bytes of one length": pa.array([b"12"] * 2, pa.binary(2)),
    "binary view": pa.array([b"12"] * 2, pa.binary_view()),
    "runs of bytes": pa.RunEndEncodedArray.from_arrays([2], pa.array([b"12"])),
    "a dictionary of bytes": pa.array([b"1", b"2"]).dictionary_encode(),
    "duration": pa.array([1, 2], pa.duration("s")),
    "time": pa.array([1, 2], pa.time32("s")),
    "list": pa.array([[1], [2]]),
    "struct": pa.array([{"a": 1}] * 2),
    "map": pa.array([[("a", 1)]] * 2, pa.map_(pa.string(), pa.int64())),
}


@pytest.mark.parametrize("name", STRANGE)
@pytest.mark.parametrize("container", ["pandas", "pyarrow", "polars", "duckdb"])
def test_a_type_of_which_no_value_can_be_read_as_declared_is_refused(container: str, name: str) -> None:
    table: Any = pa.table({"x": STRANGE[name]})
    if container == "pandas":
        table = pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(table["x"])})
    elif container == "polars":
        if name in ("interval", "runs of bytes", "opaque"):
            pytest.skip("polars has no such type, or reads its texts")
        table = pl.from_arrow(table)
    elif container == "duckdb":
        if name == "runs of bytes":
            pytest.skip("DuckDB has no such type")
        table = duckdb.from_arrow(table)
    with pytest.raises(SchemaError, match=r"column 'x'"):
        session(table, x=NUMBER)


@pytest.mark.parametrize("container", ["pandas", "pyarrow"])
def test_values_behind_an_unknown_type_that_can_be_read_are_read(container: str) -> None:
    array = pa.ExtensionArray.from_storage(pa.opaque(pa.string(), "numeric", "PostgreSQL"), pa.array(["1.5", "0.5"]))
    table: Any = pa.table({"x": array})
    if container == "pandas":
        table = pd.DataFrame({"x": pd.arrays.ArrowExtensionArray(table["x"])})
    assert counting(table, HALVES) == counting(table, TEXT) == 2
    session(table, x=HALVES)
    nothing: Any = pa.table({"x": pa.nulls(2)})  # a type that follows from the rows
    session(nothing, x=NUMBER)


@pytest.mark.parametrize("table", [None, 3, pd.DataFrame([[1, 2]], columns=["x", "x"]), pl.DataFrame({"y": [1]})])
def test_what_is_wrong_otherwise_is_left_to_those_who_read_the_table(table: Any) -> None:
    refuse_mismatches(table, {"x": NUMBER})
    with pytest.raises(SchemaError, match=r"data frame|column 'x'"):
        session(table, x=NUMBER)
