"""How a CSV file is probably written: separator, decimal mark, encoding, format of dates.  Reads rows.

For the curator alone, who confirms it.  A share of the lines decides, so that one line rarely changes anything.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from datetime import date
from itertools import islice
from pathlib import Path

from dpnb._backends.reading import USUAL, Reading
from dpnb._sources.text_file import fields_of, iso_dates, lines_of, opened

SEPARATORS = (",", ";", "\t", "|")

DATE_FORMATS = ("DD.MM.YYYY", "DD/MM/YYYY", "MM/DD/YYYY", "DD-MM-YYYY", "YYYY/MM/DD", "YYYY.MM.DD")

EXAMINED = 1000
"""Number of lines whose fields are examined, and of those with other characters than ASCII for the encoding."""

COMMA = re.compile(r"-?[0-9]+,[0-9]+")
THOUSANDS = re.compile(r"-?[0-9]{1,3}(,[0-9]{3})+")
POINT = re.compile(r"-?[0-9]+\.[0-9]+")


def probable_reading(path: Path) -> Reading:
    """How a CSV file is probably to be read; nothing is said of its missing values."""
    encoding = probable_encoding(path) or USUAL.encoding
    with opened(path) as file:
        lines = [line.decode(encoding, errors="replace") for line in islice(filter(None, lines_of(file)), EXAMINED)]
    separator = max(SEPARATORS, key=lambda one: _columns(lines, one))
    fields = Counter(field for line in lines[1:] for field in fields_of(line, separator) or ())
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


def probable_encoding(path: Path) -> str | None:
    """The encoding of most lines that have other characters than ASCII; None if no line has."""
    unicode = other = windows = 0
    with opened(path) as file:
        for line in islice((line for line in lines_of(file) if not line.isascii()), EXAMINED):
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
    numbers = [len(fields_of(line, separator) or ()) for line in lines] or [0]
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
