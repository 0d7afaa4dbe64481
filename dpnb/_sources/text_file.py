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
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import IO, Any

import pandas as pd

from dpnb._backends.reading import ALL, Reading, Wanted
from dpnb._backends.source_table import TextTable, Unreadable
from dpnb._plan.constants import values_of
from dpnb.errors import SchemaError
from dpnb.schema import Bounded, Categories, encodable

RECORDS_AT_ONCE = 2**9  # few, so that they stay in the processor's cache: half the time of 2**14

BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"

SWAPPED = str.maketrans(",.", ".,")


def read_text_table(path: Path, wanted: Wanted = ALL) -> TextTable:
    """Read a CSV file with a header line, which may be compressed (``.gz``, ``.bz2``, ``.xz`` or ``.zip``).

    Raises `SchemaError` if the first line has no column names.
    """
    reading = wanted.reading
    with _open(path) as file:
        lines = _lines(file)
        first = next(filter(None, lines), b"").decode(reading.encoding, errors="replace")
        header = _fields(first.removeprefix(BYTE_ORDER_MARK), reading.separator)
        if header is None:
            raise SchemaError("table: the first line must have the names of the columns; got an open quotation mark")
        indices = [index for index, name in enumerate(header) if wanted.columns is None or name in wanted.columns]
        unreadable, values = Unreadable(), {index: list[str | None]() for index in indices}
        texts = {index: _texts_of(header[index], wanted) for index in indices}
        records = _records(lines, len(header), reading, unreadable)
        while block := list(islice(records, RECORDS_AT_ONCE)):
            for index in indices:
                values[index] += [texts[index][record[index]] for record in block]
    table = TextTable({place: values[index] for place, index in enumerate(indices)}, dtype=object)
    table.columns = pd.Index([header[index] for index in indices], dtype=object)
    table.header, table.reading, table.unreadable = header, reading, unreadable
    return table


class _Texts(dict[str | None, str | None]):
    """One object for equal texts, of which most columns have few; None for those that are missing values."""

    def __missing__(self, text: str) -> str:
        self[text] = text
        return text


class _Numbers(_Texts):
    """The same for a column of numbers with a decimal comma, which become texts with a decimal point.

    A text with a point writes no number then: where the comma is the decimal mark, 1.000 may be a thousand.
    """

    def __missing__(self, text: str) -> str:
        swapped = self[text] = text.translate(SWAPPED)
        return swapped


def _texts_of(name: str, wanted: Wanted) -> _Texts:
    """What the fields of a column are read as."""
    missing = dict.fromkeys(["", None, *wanted.reading.missing])
    column = None if wanted.schema is None else wanted.schema.get(name)
    if wanted.reading.decimal == "." or name == wanted.unit:
        return _Texts(missing)
    if isinstance(column, Bounded):
        return _Numbers(missing)
    if isinstance(column, Categories) and values_of(column.values).numbers:
        texts = [value for value in column.values if isinstance(value, str)]
        return _Numbers(missing | {text: text for text in texts if text not in missing})
    return _Texts(missing)


def _records(
    lines: Iterator[bytes], length: int, reading: Reading, unreadable: Unreadable
) -> Iterator[Sequence[str | None]]:
    """The fields of each line that has as many as the header; None for a field that cannot be decoded."""
    encoding, separator = reading.encoding, reading.separator
    for line in lines:
        if not line:
            continue  # as pandas and other readers do
        unreadable.lines += 1
        fields: Sequence[str | None] | None
        try:
            fields = _fields(line.decode(encoding), separator)
        except UnicodeDecodeError:
            broken = _fields(line.decode(encoding, errors="surrogateescape"), separator)
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


def _fields(line: str, separator: str) -> list[str] | None:
    """The fields of a line; None if a quotation mark in it is open or misplaced."""
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
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
