"""How a field of a CSV file is read, also if it is missing, and how the file is probably written.  Reads rows.

A reader that infers the type of a column from its values lets one row change what all others count as.  So a field
stays the text that it is; the schema says what it counts as.  A record is one physical line, whatever its quotation
marks say: a reader that looks for the end of an open quotation mark would take the following lines, other persons'
rows, for one field.  What cannot be read is dropped line by line, and counted for the curator alone.

How a file is probably written (separator, decimal mark, encoding, format of dates) is for the curator alone, who
confirms it.  A share of the lines decides, so that one line rarely changes anything.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import zipfile
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from dpnb._backends.reading import ALL, USUAL, Reading, Wanted
from dpnb._plan.constants import values_of
from dpnb._sources.source import DataSource
from dpnb.errors import SchemaError
from dpnb.schema import Bounded, Categories, Dates, encodable

if TYPE_CHECKING:
    from dpnb._backends.source_table import TextTable, Unreadable

SEPARATORS = (",", ";", "\t", "|")

DATE_FORMATS = ("DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY", "DD-MM-YYYY", "YYYY/MM/DD", "YYYY.MM.DD")

EXAMINED = 1000
"""Number of lines whose fields are examined, and of those with other characters than ASCII for the encoding."""

COMMA = re.compile(r"-?[0-9]+,[0-9]+")
THOUSANDS = re.compile(r"-?[0-9]{1,3}(,[0-9]{3})+")
POINT = re.compile(r"-?[0-9]+\.[0-9]+")


RECORDS_AT_ONCE = 2**9  # few, so that they stay in the processor's cache: half the time of 2**14

BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"
UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)

NUMERIC = re.compile(r"[-+0-9.,eE\s]*")
SWAPPED = str.maketrans(",.", ".,")


def probable_reading(path: Path) -> Reading:
    """How a CSV file is probably to be read; nothing is said of its missing values."""
    encoding = _probable_encoding(path) or USUAL.encoding
    with _opened(path) as file:
        lines = [line.decode(encoding, errors="replace") for line in islice(filter(None, _lines_of(file)), EXAMINED)]
    separator = max(SEPARATORS, key=lambda one: _columns(lines, one))
    fields = Counter(field for line in lines[1:] for field in _fields_of(line, separator) or ())
    commas = sum(count for field, count in fields.items() if COMMA.fullmatch(field) and not THOUSANDS.fullmatch(field))
    points = sum(count for field, count in fields.items() if POINT.fullmatch(field))
    dates = {one: sum(fields[field] for field in _dates(one, fields)) for one in DATE_FORMATS}
    most = max(DATE_FORMATS, key=dates.__getitem__)
    return Reading(
        separator=separator,
        decimal="," if commas > points else USUAL.decimal,
        encoding=encoding,
        date_format=most if 2 * dates[most] >= len(lines) > 1 else USUAL.date_format,
    )


def _probable_encoding(path: Path) -> str | None:
    """The encoding of most lines that have other characters than ASCII; None if no line has."""
    unicode = other = windows = 0
    with _opened(path) as file:
        for line in islice((line for line in _lines_of(file) if not line.isascii()), EXAMINED):
            try:
                line.decode()
                unicode += 1
            except UnicodeDecodeError:
                other += 1
                windows += any(0x80 <= byte < 0xA0 for byte in line)
    if not unicode + other:
        return None
    return USUAL.encoding if unicode >= other else "cp1252" if windows else "latin-1"


def _columns(lines: list[str], separator: str) -> int:
    """The number of columns with a separator; 0 for one, or if fewer than nine in ten lines have as many."""
    numbers = [len(_fields_of(line, separator) or ()) for line in lines] or [0]
    return numbers[0] if numbers[0] > 1 and 10 * numbers.count(numbers[0]) >= 9 * len(numbers) else 0


def _dates(date_format: str, fields: Counter[str]) -> Iterator[str]:
    """The fields that are dates in a format."""
    written = iso_dates(date_format)
    for field in fields:
        iso = written(field)
        if iso != field:
            try:
                date.fromisoformat(iso[:10])
            except ValueError:
                continue
            yield field


def read_text_table(source: DataSource, wanted: Wanted = ALL) -> TextTable:
    """Read a CSV file with a header line, which may be compressed (``.gz``, ``.bz2``, ``.xz`` or ``.zip``).

    Raises `SchemaError` if the first line has no column names.
    """
    import pandas as pd

    from dpnb._backends.source_table import TextTable, Unreadable

    reading = wanted.reading
    with _opened(source.path) as file:
        lines = _lines_of(file)
        first = next(filter(None, lines), b"")
        if first.startswith(UTF_16):
            raise SchemaError("table: must not be UTF-16; convert it to UTF-8")
        names = first.decode(reading.encoding, errors="replace").removeprefix(BYTE_ORDER_MARK)
        header = _fields_of(names, reading.separator)
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
    table.header, table.reading, table.unreadable, table.names_units_by_texts = header, reading, unreadable, True
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
        swapped = self[text] = with_point(text)
        return swapped


def with_point(text: str) -> str:
    """A number with a decimal comma as one with a decimal point; any other text as it is."""
    return text.translate(SWAPPED) if NUMERIC.fullmatch(text) else text


class _DatesOfFile(_Texts):
    """The same for a column of dates in another format than ISO 8601, which become texts in that."""

    def __init__(self, missing: Mapping[str | None, str | None], date_format: str) -> None:
        super().__init__(missing)
        self._write = iso_dates(date_format)

    def __missing__(self, text: str) -> str:
        written = self[text] = self._write(text)
        return written


def iso_dates(date_format: str) -> Callable[[str], str]:
    """Writes texts that begin with a date in a format as ISO 8601, and leaves others as they are."""
    digits = {"YYYY": "(?P<year>[0-9]{4})", "MM": "(?P<month>[0-9]{1,2})", "DD": "(?P<day>[0-9]{1,2})"}
    parts = (digits.get(part, re.escape(part)) for part in re.split("(YYYY|MM|DD)", date_format))
    pattern = re.compile(rf"{''.join(parts)}(?P<rest>(?:[T ].*)?)")

    def written(text: str) -> str:
        found = pattern.fullmatch(text)
        return text if found is None else "{year}-{month:0>2}-{day:0>2}{rest}".format(**found.groupdict())

    return written


def _texts_of(name: str, wanted: Wanted) -> _Texts:
    """What the fields of a column are read as."""
    reading = wanted.reading
    missing = dict.fromkeys(["", None, *reading.missing])
    column = None if wanted.schema is None else wanted.schema.get(name)
    if isinstance(column, Dates) and reading.date_format != USUAL.date_format:
        return _DatesOfFile(missing, reading.date_format)
    if reading.decimal == "." or name == wanted.unit:
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
            fields = _fields_of(line.decode(encoding), separator)
        except UnicodeDecodeError:
            broken = _fields_of(line.decode(encoding, errors="surrogateescape"), separator)
            fields = broken and [field if encodable(field) else None for field in broken]
            unreadable.values += fields is not None and len(fields) == length
        if fields is None:
            unreadable.quotes += 1
        elif len(fields) != length:
            unreadable.fields += 1
        else:
            yield fields


def _lines_of(file: IO[bytes]) -> Iterator[bytes]:
    r"""The lines of a file without their ends, which are ``\n``, ``\r\n`` or ``\r``."""
    for line in file:
        yield from line.splitlines()


def _fields_of(line: str, separator: str) -> list[str] | None:
    """The fields of a line; None if a quotation mark in it is open or misplaced."""
    if '"' not in line:
        return line.split(separator)
    try:
        return next(csv.reader([line], delimiter=separator, strict=True))
    except csv.Error:
        return None


def _opened(path: Path) -> IO[bytes]:
    suffix = path.suffix.lower()
    if suffix == ".zip":
        with zipfile.ZipFile(path) as archive:
            (name,) = archive.namelist()
            return io.BytesIO(archive.read(name))
    openers: dict[str, Callable[[Path], Any]] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    file: IO[bytes] = openers[suffix](path) if suffix in openers else path.open("rb")
    return file
