"""The function with which a notebook reads a table for a session."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from dpnb._backends.reading import Reading, Wanted
from dpnb._sources.source import DataSource
from dpnb.errors import SchemaError
from dpnb.schema import DeclaredColumn, schema_from

if TYPE_CHECKING:
    import pandas as pd


def read_table(
    source: str | os.PathLike[str],
    *,
    schema: Mapping[str, DeclaredColumn] | None = None,
    privacy_unit: str | None = None,
    missing: Sequence[str] = (),
    separator: str = ",",
    decimal: str = ".",
    encoding: str = "utf-8",
    date_format: str = "YYYY-MM-DD",
) -> pd.DataFrame:
    r"""Read a table for a session, so that no row decides what another row is read as.

    The readers of pandas infer the type of a column from all its values: one text makes texts of a column of numbers,
    and one missing value makes doubles of large integers.  This function keeps the types that a file states, and reads
    the values of a file that states none (CSV, Excel, SQLite) one by one, as the schema says.

    Parameters
    ----------
    source : str or path
        The file or folder; ``FILE#TABLE`` for a sheet of an Excel file or a table of a DuckDB or SQLite file, which may
        be left out if there is one.  Or ``URL#TABLE`` or ``URL#SELECT ...`` of a database, which is read once, now.
        :doc:`/how-to/where-your-table-is` lists the formats, and :doc:`/how-to/databases` the databases.
    schema : mapping of str to Bounded, Categories, Dates or Text, optional
        The columns to read, as `Session` takes them; without it all columns are read, of a CSV file as texts.
    privacy_unit : str, optional
        The column that identifies the privacy unit, which need not be in the schema.
    missing : list of str, default []
        The values that are missing, beside nulls and empty fields: a text that is in the list, a number or a date that
        one of its texts writes, so that ``"-9"`` also means -9.0, except in a CSV file, whose fields are texts.
    separator, decimal, encoding, date_format : str, default ",", ".", "utf-8" and "YYYY-MM-DD"
        Of CSV files: the character between fields, such as ``";"`` or ``"\t"``; the decimal mark, ``"."`` or ``","``;
        the encoding, such as ``"latin-1"``; and how dates are written, such as ``"DD.MM.YYYY"``, beside ISO 8601.  With
        ``decimal=","`` a number with a point does not count: it may have meant thousands.

    Returns
    -------
    pandas.DataFrame
        Shape (rows, columns).  Pass it to `Session` with the same `missing`, `separator`, `decimal`, `encoding` and
        `date_format`, which are part of what the session declares.

    Raises
    ------
    SchemaError
        There is no such file, it is of no known format or cannot be read, its library is not installed, or an argument
        is invalid.  The message quotes no row.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> import dpnb
    >>> schema = {"age": dpnb.Bounded(0, 120), "weight": dpnb.Bounded(0, 300)}
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "people.csv")
    ...     size = path.write_text("person;age;weight\n007;41;70,5\n7;-9;81,0\n")
    ...     table = dpnb.read_table(
    ...         path, schema=schema, privacy_unit="person", separator=";", decimal=",", missing=["-9"]
    ...     )
    >>> table.to_dict("list")
    {'person': ['007', '7'], 'age': ['41', None], 'weight': ['70.5', '81.0']}
    """
    from dpnb._sources.formats import read_tables  # imported when first used, since it imports pandas

    place: object = source
    if not isinstance(place, str | os.PathLike) or not isinstance(os.fspath(place), str):
        raise SchemaError(f"source: must be the path of a file, or FILE#TABLE; got {type(source).__name__}")
    if privacy_unit is not None and not isinstance(privacy_unit, str):
        raise SchemaError(f"privacy_unit: must be the name of a column; got {privacy_unit!r}")
    reading = Reading.declared(missing, separator, decimal, encoding, date_format)
    wanted = Wanted(None if schema is None else schema_from(schema), privacy_unit, reading)
    return read_tables({"": DataSource.parse(os.fspath(source), argument="source")}, "source", {"": wanted})[""]
