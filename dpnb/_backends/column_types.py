"""The type of a column, as far as its container declares it, and which columns of a schema can match it.

If no value of a column's declared type can match the schema, none of its values count, and every answer about it is
zero with a narrow interval.  So a session refuses such a column when it is opened, but only if the container itself
declares the type, never if a library inferred the type from the values: then the refusal would reveal a row's value.

===================================  ==========================================================================
container                            types
===================================  ==========================================================================
Arrow, polars, DuckDB, Spark         declared; for a dictionary, that of its values, which Arrow declares too
pandas, Arrow-backed types,          declared: pandas uses them only on request
``Int64``, ``boolean``, ``string``
pandas, numpy types and ``object``   follow from the rows
pandas, ``str``                      follows from the rows: pandas 3 infers it
pandas, ``category``                 which values a category has follows from the rows
pandas, times with a zone, periods   follow from the rows: pandas infers them
Dask                                 follow from the rows of a sample
===================================  ==========================================================================

A reader that infers types from the rows of a text file (``polars.read_csv``, ``duckdb.read_csv``,
``pandas.read_csv(dtype_backend=...)``) declares the inferred types, which cannot be detected here.  If that matters,
give the reader the types.  What is not refused here, ``python -m dpnb check`` shows to the curator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NoReturn

import msgspec
import narwhals as nw
from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe, is_pyarrow_table

from dpnb._backends.guard import isolated_numeric_settings
from dpnb._plan.constants import values_of
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import SchemaError
from dpnb.schema import Bounded, Categories, ColumnType, Dates, Schema

StorageType = Literal[
    "texts", "whole numbers", "numbers", "decimal numbers", "truth values", "dates or times", "durations", "lists",
    "bytes",
]  # fmt: skip
"""The kind of values in a column."""

NUMBERS: tuple[StorageType, ...] = ("whole numbers", "numbers", "decimal numbers")

SHOWN = 3
"""Largest number of categories that a remedy lists."""


def storage_type_of(dtype: Any) -> StorageType | None:
    """The kind of values that a narwhals type declares; None if it is open."""
    if dtype in (nw.String, nw.Categorical) or isinstance(dtype, nw.Enum):
        return "texts"
    if dtype == nw.Boolean:
        return "truth values"
    if dtype.is_integer():
        return "whole numbers"
    if dtype.is_float():
        return "numbers"
    if dtype.is_decimal():
        return "decimal numbers"
    if dtype in (nw.Date, nw.Datetime):
        return "dates or times"
    if dtype in (nw.Duration, nw.Time):
        return "durations"
    if dtype.is_nested():
        return "lists"
    return "bytes" if dtype == nw.Binary else None


def matches(column: ColumnType, kind: StorageType) -> bool:
    """Whether a value of this kind can count in a column of the schema."""
    if isinstance(column, Bounded):
        return kind in (*NUMBERS, "truth values")
    if isinstance(column, Dates):
        return kind in ("dates or times", "texts")  # in ISO 8601; engines are stricter
    if isinstance(column, Categories):
        known = values_of(column.values)
        if kind == "truth values":
            return bool(known.numbers.keys() & {0, 1})
        if kind == "whole numbers":
            return any(number == number // 1 for number in known.numbers)
        return bool(known.texts if kind == "texts" else known.numbers) and kind in ("texts", *NUMBERS)
    return kind in ("texts", "whole numbers", "numbers", "truth values")


def remedy(column: ColumnType, kind: StorageType) -> str:
    """What to declare instead of a column that does not match, or what to do with the table."""
    if kind == "dates or times":
        return "declare dpnb.Dates(first, last)"
    if kind in ("durations", "lists", "bytes"):
        return f"{kind} cannot be queried; derive another column from them, or leave this one out of the schema"
    if isinstance(column, Bounded):
        return "cast it to numbers before opening the session, or declare Categories or Text"
    if isinstance(column, Dates):
        return "cast it to dates, or declare dpnb.Bounded(low, high)"
    if not isinstance(column, Categories):
        return "cast it to text, or declare dpnb.Bounded(low, high)"
    if kind == "truth values":
        return "write the categories as truth values, dpnb.Categories([True, False])"
    return "declare dpnb.Bounded(low, high), or list numbers as categories"


def _listed(keys: list[Any]) -> str:
    shown = ", ".join(map(repr, keys[:SHOWN]))
    return f"dpnb.Categories([{shown}{', ...' if len(keys) > SHOWN else ''}])"


def refuse_mismatch(name: str, column: ColumnType, kind: StorageType | None) -> None:
    """Refuse a column that cannot match its declared kind; the error names no type, as a type may list its values."""
    if kind is not None and not matches(column, kind):
        words = type(column).__name__
        if isinstance(column, Categories):
            words = _listed(list(column.values)).removeprefix("dpnb.")
        raise SchemaError(
            f"column {name!r}: {words} matches no value of a column that the table declares to hold {kind}; "
            f"{remedy(column, kind)}"
        )


def refuse_absent(name: str, names: Sequence[object], which: str = "the table", table: Any = None) -> NoReturn:
    """Refuse a declared column that is not among the names of a table's columns, with what is probably meant.

    The table's other columns are not listed: in a pivoted table a column's name is data.
    """
    same = [one for one in names if isinstance(one, str) and one.strip().casefold() == name.strip().casefold()]
    hint = "correct its name in the schema or in privacy_unit="
    if same:
        hint = f"did you mean {same[0]!r}? Spell it as in the table"
    elif is_pandas_dataframe(table) and name in table.index.names:
        hint = "it is the index, or a level of it: pass table.reset_index()"
    elif is_pandas_dataframe(table) and table.columns.nlevels > 1:
        hint = (
            "the names of its columns have several levels: flatten them, as in table.columns = "
            "['_'.join(map(str, levels)) for levels in table.columns]"
        )
    raise SchemaError(f"column {name!r}: is not in {which}; {hint}")


def refuse_mismatches(table: Any, schema: Schema) -> None:
    """Refuse columns in memory whose declared type cannot match the schema (see the module docstring); reads no row."""
    with isolated_numeric_settings():
        for name, column in schema.items():
            refuse_mismatch(name, column, _declared(table, name))


def unit_kind(table: Any, name: str) -> StorageType | None:
    """The kind of identifiers in a column in memory, by its type; None if that is open, or there is no such column.

    Refuses floating-point numbers, among which different identifiers are one number.
    """
    import pandas as pd  # imported when first used

    from dpnb._backends.text_table import TextTable

    with isolated_numeric_settings():
        kind = "texts" if isinstance(table, TextTable) else _declared(table, name)
    if kind is None and is_pandas_dataframe(table) and [*table.columns].count(name) == 1:
        dtype = table[name].dtype
        dtype = dtype.categories.dtype if isinstance(dtype, pd.CategoricalDtype) else dtype
        # A column of objects is open: one odd value in a row makes one of whole numbers, and must not refuse the table.
        kinds: dict[str, StorageType] = {"i": "whole numbers", "u": "whole numbers", "f": "numbers", "c": "numbers"}
        kind = "texts" if isinstance(dtype, pd.StringDtype) else kinds.get(dtype.kind)
    if kind == "numbers":
        raise SchemaError(
            f"privacy_unit {name!r}: must not be a column of floating-point numbers, in which one row without an "
            "identifier turns all others into doubles and several large ones into one; read it as text, for example "
            f"with pandas.read_csv(path, dtype={{{name!r}: str}})"
        )
    return kind


def refuse_mixed_units(kinds: Mapping[str, StorageType | None], units: Mapping[str, PrivacyUnit]) -> None:
    """Refuse tables of which some identify units by texts and others by whole numbers: 007 and 7 may be one person."""
    texts, numbers = ([name for name in kinds if kinds[name] == kind] for kind in ("texts", "whole numbers"))
    if texts and numbers and all(unit.type is msgspec.UNSET for unit in units.values()):
        raise SchemaError(
            f"privacy_unit {units[texts[0]].column!r}: must have one type in all tables; the table {texts[0]!r} has "
            f"texts, {numbers[0]!r} whole numbers, and a person with two names would have two limits; declare "
            "unit_type='integer' to read all as whole numbers, or 'text'"
        )


def _declared(table: Any, name: str) -> StorageType | None:
    """The type that a table in memory declares for a column; None if it declares none, or has no such column."""
    import pandas as pd  # imported when first used

    if is_polars_dataframe(table):
        dtype = dict(table.schema).get(name)
        return (
            None if dtype is None else storage_type_of(nw.from_native(table.get_column(name), series_only=True).dtype)
        )
    if is_pyarrow_table(table):
        return storage_type_of_arrow(table.schema.field(name).type) if table.column_names.count(name) == 1 else None
    labels: list[Any] = [*table.columns] if is_pandas_dataframe(table) else []
    if [label for label in labels if isinstance(label, str)].count(name) != 1:
        return None
    series = table[name]
    if isinstance(series.dtype, pd.ArrowDtype):
        return storage_type_of_arrow(series.dtype.pyarrow_dtype)
    # pandas never infers the types whose missing value is `pandas.NA`.
    declares = not isinstance(series.dtype, pd.CategoricalDtype) and getattr(series.dtype, "na_value", None) is pd.NA
    return storage_type_of(nw.from_native(series, series_only=True).dtype) if declares else None


def storage_type_of_arrow(dtype: Any) -> StorageType | None:
    """The kind of values that an Arrow type declares; None if it is open."""
    import pyarrow as pa

    while pa.types.is_dictionary(dtype):
        dtype = dtype.value_type
    return storage_type_of(nw.from_native(pa.chunked_array([], dtype), series_only=True).dtype)
