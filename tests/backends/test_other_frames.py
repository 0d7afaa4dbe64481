"""Data frames of other libraries: what a value counts as hangs on neither the library nor the rest of its column."""

from __future__ import annotations

import datetime
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpnb._backends.memory.prepare.prepared_table import PreparedTable, prepare
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.schema import Bounded, Categories, Dates, Schema, Text

Columns = dict[str, list[Any]]
LIMA = datetime.timezone(datetime.timedelta(hours=-5))

COLUMNS: Columns = {
    "person": ["ada", "ada\0", "béla", "ada", "čapek", ""],
    "age": [31, 2**53 + 1, -4, 0, 77, 31],
    "income": [0.5, -0.0, 1e300, float("inf"), float("nan"), 3.25],
    "pence": [Decimal("0.10"), Decimal("3.25"), Decimal("100.00"), Decimal("-1.00"), Decimal("7.50"), Decimal("0.00")],
    "town": ["north", "south", "north\0", "", "harbour", "south"],
    "grade": [1, 2, 3, 2**53 + 1, 2**53, 2],
    "smoker": [True, False, True, True, False, False],
    "born": [datetime.date(1913 + 10 * i, 8, 7) for i in range(6)],
    "seen": [datetime.datetime(2010, 3, 1 + i, 23, 59, tzinfo=LIMA) for i in range(6)],
    "street": ["elm", "elm\0", "", "zircon\0\0", "elm", "straße"],
    "moved": ["2010-03-01", "2010-03-01T12:30:00", "soon", "2010-12-31", "2010-03-01", "1999-01-01"],
}
SCHEMA: Schema = {
    "age": Bounded(0, 100),
    "income": Bounded(0, 10),
    "pence": Bounded(0, 10),
    "town": Categories(["north", "south", ""]),
    "grade": Categories([1, 2, 2**53]),
    "smoker": Categories([True]),
    "born": Dates("1900-01-01", "1950-12-31"),
    "seen": Dates("2010-01-01", "2010-12-31"),
    "street": Text(),
    "moved": Dates("2010-01-01", "2010-12-31"),
}
NULLS: Columns = {name: [*values, None] for name, values in COLUMNS.items()} | {"person": [*COLUMNS["person"], "ada"]}


def of_pandas(columns: Columns) -> Any:
    return pd.DataFrame({name: pd.Series(values, dtype=object) for name, values in columns.items()})


def of_pandas_itself(columns: Columns) -> Any:
    """With the types that pandas finds, but for whole numbers: beside a null it makes doubles of them before dpnb."""
    whole = dict.fromkeys(("age", "grade"), object)
    return pd.DataFrame({name: pd.Series(values, dtype=whole.get(name)) for name, values in columns.items()})


def of_nullable(columns: Columns) -> Any:
    whole = {name: pd.array(columns[name], "Int64") for name in ("age", "grade")}  # as nullable as the others become
    return of_pandas(columns).convert_dtypes().assign(**whole)


def of_polars(columns: Columns) -> Any:
    polars = pytest.importorskip("polars")
    return polars.DataFrame(columns, schema_overrides={"pence": polars.Decimal(20, 2)})


def of_polars_categories(columns: Columns) -> Any:
    polars = pytest.importorskip("polars")
    texts = [name for name in columns if isinstance(columns[name][0], str)]
    return of_polars(columns).cast(dict.fromkeys(texts, polars.Categorical))


def of_pyarrow(columns: Columns) -> Any:
    return pytest.importorskip("pyarrow").table(columns)


def of_pyarrow_dictionaries(columns: Columns) -> Any:
    pyarrow = pytest.importorskip("pyarrow")
    return pyarrow.table(
        {
            name: pyarrow.array(values).dictionary_encode() if isinstance(values[0], str) else values
            for name, values in columns.items()
        }
    )


def of_pandas_on_arrow(columns: Columns) -> Any:
    pytest.importorskip("pyarrow")
    return of_pyarrow(columns).to_pandas(types_mapper=pd.ArrowDtype)


Make = Callable[[Columns], Any]
OTHERS = [of_pandas_itself, of_nullable, of_polars, of_polars_categories, of_pyarrow, of_pyarrow_dictionaries]
OTHERS += [of_pandas_on_arrow]


def assert_same(found: PreparedTable, expected: PreparedTable) -> None:
    assert found.max_rows == expected.max_rows
    assert found.texts == expected.texts
    np.testing.assert_array_equal(found.units, expected.units)
    np.testing.assert_array_equal(found.names[found.units], expected.names[expected.units])
    assert list(found.grids) == list(expected.grids)
    for name in expected.grids:
        np.testing.assert_array_equal(found.steps(name), expected.steps(name), err_msg=name)
    for of in ("numbers", "codes"):
        columns, those = getattr(found, of), getattr(expected, of)
        assert list(columns) == list(those)
        for name in those:
            np.testing.assert_array_equal(columns[name], those[name], err_msg=name)
            assert columns[name].dtype == those[name].dtype, name


@pytest.mark.parametrize("columns", [COLUMNS, NULLS], ids=["nothing null", "nulls"])
@pytest.mark.parametrize("most", [None, 1])
@pytest.mark.parametrize("make", OTHERS)
def test_every_library_gives_the_same_rows(make: Make, most: int | None, columns: Columns) -> None:
    unit = PrivacyUnit("person", max_rows=most)
    assert_same(prepare(make(columns), SCHEMA, unit), prepare(of_pandas(columns), SCHEMA, unit))


@pytest.mark.parametrize("unit", ["age", "grade", "smoker", "born", "seen", "pence"])
@pytest.mark.parametrize("columns", [COLUMNS, NULLS], ids=["nothing null", "nulls"])
@pytest.mark.parametrize("make", OTHERS)
def test_every_library_names_the_same_units(make: Make, columns: Columns, unit: str) -> None:
    some = {"street": Text()}
    expected = prepare(of_pandas(columns), some, PrivacyUnit(unit, max_rows=None))
    assert_same(prepare(make(columns), some, PrivacyUnit(unit, max_rows=None)), expected)


@pytest.mark.parametrize("make", [of_pandas, *OTHERS])
def test_a_null_in_another_row_changes_no_value(make: Make) -> None:
    unit = PrivacyUnit(None)
    alone, beside = prepare(make(COLUMNS), SCHEMA, unit), prepare(make(NULLS), SCHEMA, unit)
    assert_same(beside.taken(np.arange(alone.rows)), alone)


UNUSUAL: dict[str, tuple[list[Any], Callable[[Any], Any]]] = {
    "whole numbers of 128 bits": ([2**100, 2**100], lambda polars: polars.Int128),
    "arrays": ([[1, 2], [3, 4]], lambda polars: polars.Array(polars.Int64, 2)),
    "records": ([{"a": 1}, {"a": 2}], lambda polars: polars.Struct({"a": polars.Int64})),
    "lists": ([[1], [2, 3]], lambda polars: polars.List(polars.Int64)),
    "bytes": ([b"1\0", b"2"], lambda polars: polars.Binary),
    "times of day": ([datetime.time(1), datetime.time(2)], lambda polars: polars.Time),
    "nothing": ([None, None], lambda polars: polars.Null),
    "numbers of 32 bits": ([0.1, 0.2], lambda polars: polars.Float32),
}
"""What numpy has no array of one value each for, and how polars calls its type."""


@pytest.mark.parametrize(("values", "kind"), UNUSUAL.values(), ids=UNUSUAL)
@pytest.mark.parametrize("declared", [Bounded(0, 10), Categories([1, 2]), Dates("2000-01-01", "2001-01-01"), Text()])
def test_unusual_values_count_the_same_beside_a_null_and_without(
    values: list[Any], kind: Callable[[Any], Any], declared: Any
) -> None:
    polars = pytest.importorskip("polars")
    for unit in (PrivacyUnit(None), PrivacyUnit("who", max_rows=None)):
        alone, beside = (
            prepare(polars.DataFrame({"x": column, "who": column}), {"x": declared}, unit)
            for column in (polars.Series(some, dtype=kind(polars)) for some in (values, [*values, None]))
        )
        assert_same(beside.taken(np.arange(alone.rows)), alone)


def test_a_category_that_no_row_has_is_no_unit() -> None:
    who = pd.Categorical(["x", None, "y"], categories=["nobody", "y", "x"])
    found = prepare(pd.DataFrame({"t": ["a", "b", "c"], "who": who}), {"t": Text()}, PrivacyUnit("who", max_rows=None))
    expected = prepare(
        pd.DataFrame({"t": ["c", "a"], "who": ["y", "x"]}), {"t": Text()}, PrivacyUnit("who", max_rows=None)
    )
    assert found.units.tolist() == [0, 1]
    np.testing.assert_array_equal(found.names, expected.names)


def test_texts_in_several_pieces_of_arrow_are_the_same_texts() -> None:
    pa = pytest.importorskip("pyarrow")
    pieces = [pa.array(["b", None]), pa.array([], pa.string()), pa.array(["a", "b"])]
    schema = {"t": Text(), "g": Categories(["a", "b"])}
    for chunks in (pieces, [piece.dictionary_encode() for piece in pieces]):
        column = pa.chunked_array(chunks)
        found = prepare(pa.table({"t": column, "g": column}), schema, PrivacyUnit())
        assert found.codes["g"].tolist() == [1, -1, 0, 1]
        place = found.texts["t"]
        assert found.codes["t"].tolist() == [place["b"], -1, place["a"], place["b"]]


ODD_DICTIONARIES: dict[str, Callable[[Any], list[Any]]] = {
    "more values than their places have room for": lambda pa: [
        pa.DictionaryArray.from_arrays(pa.array(range(100), pa.int8()), [f"{part}{i}" for i in range(100)])
        for part in "ab"
    ],
    "a null among the values": lambda pa: [pa.array(["a", None, "b"]).dictionary_encode(null_encoding="encode")] * 2,
    "records": lambda pa: [pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array([{"a": 1}, {"a": 2}]))] * 2,
    "times": lambda pa: [pa.array([datetime.datetime(2010, 3, 1), None]).dictionary_encode()] * 2,
    "numbers": lambda pa: [pa.array([5, 7, None, 5]).dictionary_encode(), pa.array([9, 5]).dictionary_encode()],
}


@pytest.mark.parametrize("name", ODD_DICTIONARIES)
def test_values_of_odd_dictionaries_count_as_each_of_them_would(name: str) -> None:
    pa = pytest.importorskip("pyarrow")
    column = pa.chunked_array(ODD_DICTIONARIES[name](pa))
    single = pd.Series(column.to_pylist(), dtype=object)
    schema = {
        "t": Text(),
        "g": Categories(["a", "b", "a7", 5]),
        "d": Dates("2010-01-01", "2010-12-31"),
        "n": Bounded(0, 10),
    }
    tables = pa.table(dict.fromkeys(schema, column)), pd.DataFrame(dict.fromkeys(schema, single))
    assert_same(*(prepare(table, schema, PrivacyUnit()) for table in tables))
    named = (pa.table({"n": column, "t": column}), pd.DataFrame({"n": single, "t": single}))
    assert_same(*(prepare(table, {"n": schema["n"]}, PrivacyUnit("t", max_rows=1)) for table in named))


def test_a_text_that_is_none_does_not_count_and_is_no_error() -> None:
    pa = pytest.importorskip("pyarrow")
    column = pa.array([b"a", b"\xff", b"b"]).view(pa.string())
    found = prepare(pa.table({"t": column}), {"t": Text()}, PrivacyUnit())
    assert found.codes["t"].tolist() == [0, -1, 1]


def test_an_odd_row_changes_nothing_for_the_others() -> None:
    moved = COLUMNS["moved"]
    alone, beside = (pd.DataFrame({"moved": values}) for values in (moved, [*moved, 7]))
    assert alone["moved"].dtype != beside["moved"].dtype
    found = [prepare(frame, {"moved": SCHEMA["moved"]}, PrivacyUnit()).numbers["moved"] for frame in (alone, beside)]
    np.testing.assert_array_equal(found[0], found[1][:-1])
    assert np.isfinite(found[0]).sum() == 5


@pytest.mark.parametrize("make", [of_pandas, *OTHERS])
def test_a_table_without_rows_has_none(make: Make) -> None:
    empty = prepare(make(COLUMNS)[:0], SCHEMA, PrivacyUnit("person", max_rows=1))
    assert empty.rows == 0
    assert [len(values) for values in (*empty.numbers.values(), *empty.codes.values())] == [0] * len(SCHEMA)
