"""Tables in text files (CSV): every field is read as text, and no row changes how another is read.  Reads rows.

A reader that infers the type of a column from its values lets one row change what all others count as.  So a field
stays the text that it is; the schema says what it counts as.  A record is one physical line, whatever its quotation
marks say: a reader that looks for the end of an open quotation mark would take the following lines, other persons'
rows, for one field.  What cannot be read is dropped line by line, and counted for the curator alone.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import zipfile
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pandas as pd

from dpnb.errors import SchemaError
from dpnb.schema import encodable

RECORDS_AT_ONCE = 2**9  # few, so that they stay in the processor's cache: half the time of 2**14

BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"


@dataclass
class Unreadable:
    """How many lines a file has, and how many could not be read.  For the curator alone, like all figures from rows."""

    lines: int = 0  # all lines with fields
    fields: int = 0  # lines with fewer or more fields than the first, which are dropped
    quotes: int = 0  # lines with an open or misplaced quotation mark, which are dropped
    values: int = 0  # lines with values that are not UTF-8, which are missing


class TextTable(pd.DataFrame):
    """A data frame of texts and None, as `read_text_table` returns it."""

    _metadata = ("header", "missing", "unreadable")  # how pandas knows that these are not columns
    header: list[str]  # the names of all columns of the file
    missing: tuple[str, ...]  # the texts that were read as missing values
    unreadable: Unreadable


def read_text_table(path: Path, missing: Collection[str] = (), columns: Collection[str] | None = None) -> TextTable:
    """Read a CSV file in UTF-8 with a header line, which may be compressed (``.gz``, ``.bz2``, ``.xz`` or ``.zip``).

    Texts in `missing` are missing values, like empty fields.  Raises `SchemaError` if the first line has no column
    names.
    """
    with _open(path) as file:
        lines = _lines(file)
        header = _fields(next(filter(None, lines), b"").decode(errors="replace").removeprefix(BYTE_ORDER_MARK))
        if header is None:
            raise SchemaError("table: the first line must have the names of the columns; got an open quotation mark")
        indices = [index for index, name in enumerate(header) if columns is None or name in columns]
        unreadable, values = Unreadable(), {index: list[str | None]() for index in indices}
        texts = {index: _Texts(dict.fromkeys(["", None, *missing])) for index in indices}
        records = _records(lines, len(header), unreadable)
        while block := list(islice(records, RECORDS_AT_ONCE)):
            for index in indices:
                values[index] += [texts[index][record[index]] for record in block]
    table = TextTable({place: values[index] for place, index in enumerate(indices)}, dtype=object)
    table.columns = pd.Index([header[index] for index in indices], dtype=object)
    table.header, table.missing, table.unreadable = header, tuple(missing), unreadable
    return table


class _Texts(dict[str | None, str | None]):
    """One object for equal texts, of which most columns have few; None for those that are missing values."""

    def __missing__(self, text: str) -> str:
        self[text] = text
        return text


def _records(lines: Iterator[bytes], length: int, unreadable: Unreadable) -> Iterator[Sequence[str | None]]:
    """The fields of each line that has as many as the header; None for a field that is not UTF-8."""
    for line in lines:
        if not line:
            continue  # as pandas and other readers do
        unreadable.lines += 1
        fields: Sequence[str | None] | None
        try:
            fields = _fields(line.decode())
        except UnicodeDecodeError:
            broken = _fields(line.decode(errors="surrogateescape"))
            fields = broken and [field if encodable(field) else None for field in broken]
            unreadable.values += fields is not None and len(fields) == length
        if fields is None:
            unreadable.quotes += 1
        elif len(fields) != length:
            unreadable.fields += 1
        else:
            yield fields


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    r"""The lines of a file without their ends, which are ``\n``, ``\r\n`` or ``\r``."""
    for line in file:
        yield from line.splitlines()


def _fields(line: str) -> list[str] | None:
    """The fields of a line; None if a quotation mark in it is open or misplaced."""
    if '"' not in line:
        return line.split(",")
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error:
        return None


def _open(path: Path) -> IO[bytes]:
    suffix = path.suffix.lower()
    if suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            (name,) = archive.namelist()
            return io.BytesIO(archive.read(name))
    openers: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    opened: IO[bytes] = openers[suffix](path) if suffix in openers else path.open("rb")
    return opened
