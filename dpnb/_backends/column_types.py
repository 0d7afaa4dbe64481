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

Of types that pandas infers the curator is warned where no value can count, as of times declared as numbers, and of
texts declared as numbers, of which those count that write one: ``pandas.read_csv(dtype=str)`` is how a CSV file is to
be read.  It is a warning, which analysts do not see: whether a session opens must not depend on one odd row.  Columns
of numbers are never doubtful, since pandas has numbers where all values of a column of texts are missing.

A reader that infers types from the rows of a text file (``polars.read_csv``, ``duckdb.read_csv``,
``pandas.read_csv(dtype_backend=...)``) declares the inferred types, which cannot be detected here.  If that matters,
give the reader the types.  What is not refused here, ``python -m dpnb check`` shows to the curator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NoReturn

import msgspec
import narwhals as nw
from narwhals.dependencies import is_pandas_dataframe, is_polars_dataframe, is_polars_lazyframe, is_pyarrow_table

from dpnb._backends.worker_thread import isolated_numeric_settings
from dpnb._plan.constants import values_of
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._plan.unreleased import closest
from dpnb.errors import SchemaError
from dpnb.schema import Bounded, Categories, ColumnType, Dates, Schema
from dpnb.times import UTC_ZONE, named_zone

StorageType = Literal[
    "texts", "whole numbers", "numbers", "decimal numbers", "truth values", "dates or times", "durations", "lists",
    "bytes",
]  # fmt: skip
"""The kind of values in a column."""

NUMBERS: tuple[StorageType, ...] = ("whole numbers", "numbers", "decimal numbers")

MIN_SPELLING = 0.8
"""The similarity from which the name of a column in the table is proposed for one that is not there."""

SEPARATORS = ";\t|,"
"""The usual separators of the fields of a text file."""

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


def storage_types_of(table: Any) -> dict[str, StorageType | None]:
    """The kinds of values that the columns of a data frame declare."""
    return {name: storage_type_of(dtype) for name, dtype in nw.from_native(table).collect_schema().items()}


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

    The table's other columns are not listed: in a pivoted table a column's name is data.  One that is nearly the
    declared name is named, to the curator who wrote that.
    """
    header = header_of(table)
    if header.count(name) > 1:
        raise SchemaError(f"column {name!r}: is in {which} more than once; rename the others")
    names = header or names
    hint, separator = "correct its name in the schema or in privacy_unit=", separator_in(header)
    same = closest(name, (one for one in names if one != name), MIN_SPELLING)
    if same is not None and str(same).strip().casefold() == name.strip().casefold():
        hint = f"did you mean {same!r}? Spell it as in the table"
    elif separator is not None:
        hint = f"the first line of the file is one field: declare separator={separator!r}"
    elif same is not None:
        hint = f"did you mean {same!r}? If so, {hint}"
    elif is_pandas_dataframe(table) and name in table.index.names:
        hint = "it is the index, or a level of it: pass table.reset_index()"
    elif is_pandas_dataframe(table) and table.columns.nlevels > 1:
        hint = (
            "the names of its columns have several levels: flatten them, as in table.columns = "
            "['_'.join(map(str, levels)) for levels in table.columns]"
        )
    raise SchemaError(f"column {name!r}: is not in {which}; {hint}")


def header_of(table: Any) -> list[str]:
    """The names of all columns of the source that a table was read from; empty for another table."""
    from dpnb._backends.source_table import SourceTable  # imported when first used, since it imports pandas

    return table.header if isinstance(table, SourceTable) else []


def separator_in(header: Sequence[object]) -> str | None:
    """Another separator than the declared one that the single field of a file's first line contains."""
    field = str(header[0]) if len(header) == 1 else ""
    return next((mark for mark in SEPARATORS if mark in field), None)


def refuse_mismatches(table: Any, schema: Schema) -> None:
    """Refuse columns in memory whose declared type cannot match the schema (see the module docstring); reads no row."""
    with isolated_numeric_settings():
        for name, column in schema.items():
            refuse_mismatch(name, column, declared_type(table, name))


def doubtful_types(table: Any, schema: Schema) -> dict[str, str]:
    """Columns of pandas or Dask of whose type no value can count as declared, or only texts that write numbers; why."""
    import pandas as pd  # imported when first used

    table = nw.to_native(table, pass_through=True)
    meta = getattr(table, "_meta", table)
    found: dict[str, str] = {}
    if not is_pandas_dataframe(meta):
        return found
    for name, column in schema.items():
        dtype = meta[name].dtype if [*meta.columns].count(name) == 1 else None
        declared = f"is declared dpnb.{type(column).__name__}, and the table has"
        if isinstance(dtype, pd.StringDtype) and isinstance(column, Bounded):
            found[name] = f"{declared} texts: only those that write a number count; convert it to numbers"
        elif getattr(dtype, "kind", "") in ("m", "M"):
            kind: StorageType = "dates or times" if getattr(dtype, "kind", "") == "M" else "durations"
            if not matches(column, kind):
                found[name] = f"{declared} {kind}, which do not count; {remedy(column, kind)}"
    return found


def undeclared_zones(table: Any, schema: Schema) -> dict[str, str]:
    """Columns declared as dates in UTC whose type states another zone, with that zone; reads no row."""
    dates = [name for name, column in schema.items() if isinstance(column, Dates) and column.zone == UTC_ZONE]
    with isolated_numeric_settings():
        zones = {name: zone_of_column(table, name) for name in dates}
    return {name: zone for name, zone in zones.items() if zone is not None}


def unit_kind(table: Any, name: str) -> StorageType | None:
    """The kind of identifiers in a column in memory, by its type; None if that is open, or there is no such column.

    Refuses floating-point numbers, among which different identifiers are one number.
    """
    import pandas as pd  # imported when first used

    from dpnb._backends.source_table import TextTable

    with isolated_numeric_settings():
        kind = "texts" if isinstance(table, TextTable) else declared_type(table, name)
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


def declared_type(table: Any, name: str) -> StorageType | None:
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


def zone_of_column(table: Any, name: str) -> str | None:
    """The zone of the tz database that the type of a column states; None for UTC, a distance from it, or no zone.

    DuckDB and Spark have the zone of the connection for all columns, which says nothing about this one.
    """
    import pandas as pd  # imported when first used

    table = nw.to_native(table, pass_through=True)
    if is_pyarrow_table(table):
        of_name = [field.type for field in table.schema if field.name == name]
        return named_zone(getattr(of_name[0], "tz", None)) if len(of_name) == 1 else None
    if is_polars_dataframe(table) or is_polars_lazyframe(table):
        return named_zone(getattr(table.collect_schema().get(name), "time_zone", None))
    meta = getattr(table, "_meta", table)  # of a Dask data frame
    if not is_pandas_dataframe(meta) or [*meta.columns].count(name) != 1:
        return None
    dtype = meta[name].dtype
    arrow = dtype.pyarrow_dtype if isinstance(dtype, pd.ArrowDtype) else dtype
    return named_zone(getattr(arrow, "tz", None))


def storage_type_of_arrow(dtype: Any) -> StorageType | None:
    """The kind of values that an Arrow type declares; None if it is open.

    An extension type has the values of its storage: what a driver does not know comes as texts (`opaque`) or bytes.
    """
    import pyarrow as pa

    while True:
        if isinstance(dtype, pa.BaseExtensionType):
            dtype = dtype.storage_type
        elif pa.types.is_dictionary(dtype) or pa.types.is_run_end_encoded(dtype):
            dtype = dtype.value_type
        else:
            break
    if pa.types.is_fixed_size_binary(dtype) or pa.types.is_binary_view(dtype):
        return "bytes"
    if pa.types.is_interval(dtype):
        return "durations"
    return storage_type_of(nw.from_native(pa.chunked_array([], dtype), series_only=True).dtype)
