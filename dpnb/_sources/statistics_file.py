"""Files of Stata, SPSS and SAS, with the types and labels that they state.  Reads rows.

A number with a value label is the number where the declaration has numbers, and its label where it has texts.  What the
file itself defines as missing is missing: extended missing values of Stata and SAS, user-missing values of SPSS, and
empty texts.
"""

from __future__ import annotations

import codecs
import re
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpnb._backends.reading import USUAL, Wanted
from dpnb._sources.columns import chosen_names, table_of_arrow
from dpnb._sources.source import DataSource
from dpnb.errors import SchemaError
from dpnb.schema import Categories, Text, text_of

if TYPE_CHECKING:
    from dpnb._backends.source_table import SourceTable

DAY = 86_400.0

BYTES = "ISO-8859-1"
"""The encoding in which any bytes are a text: ReadStat raises at a text that is not in the encoding of its file."""

OTHER_NAMES = {"BIG-5": "big5", "WINDOWS-936": "gbk"}
"""Names of encodings that Python does not know."""

OLD_STATA = re.compile(rb"[\x68-\x75]|<stata_dta><header><release>117")
"""How a file of Stata 13 or earlier begins, which has no Unicode."""

Dating = tuple[tuple[tuple[re.Pattern[str], float], ...], np.datetime64]
"""Formats of dates with the seconds of the unit in which they are stored, and the point in time of the number 0."""

STATA: Dating = (
    ((re.compile(r"%-?t?d.*"), DAY), (re.compile(r"%-?t[cC].*"), 1e-3)),
    np.datetime64("1960-01-01"),
)
SPSS: Dating = (
    ((re.compile(r"([AEJS]?DATE|DATETIME|YMDHMS|MOYR|QYR|WKYR)[0-9.]*"), 1.0),),
    np.datetime64("1582-10-14"),
)
SAS: Dating = (
    (
        (re.compile(r"(DATE|WEEKDAT[EX]|(IS|E|B)8601DA|(MMDDYY|DDMMYY|YYMMDD)[BCDNPS]?)[0-9.]*"), DAY),
        (re.compile(r"(DATETIME|DTDATE|DATEAMPM|MDYAMPM|IS8601DT|[EB]8601DT|B8601DN)[0-9.]*"), 1.0),
    ),
    np.datetime64("1960-01-01"),
)

LAST = 253_402_300_800.0
"""The end of the year 9999, in seconds since 1970; of the years before 1 no date counts either."""

FIRST = -62_135_596_800.0


def reader(function: str, dating: Dating) -> Callable[[DataSource, Wanted], SourceTable]:
    """The reader of a kind of files by a function of pyreadstat."""

    def read(source: DataSource, wanted: Wanted) -> SourceTable:
        import pyarrow as pa
        import pyreadstat

        # Otherwise the encoding that the file states.
        encoding = None if wanted.reading.encoding == USUAL.encoding else wanted.reading.encoding
        load, path = getattr(pyreadstat, function), str(source.path)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _, about = load(path, metadataonly=True, encoding=encoding)
            names = chosen_names(about.column_names, wanted)
            codec = encoding or _codec_of(about.file_encoding or _unstated(source.path))
            as_stored = {name: name.encode(codec).decode(BYTES) for name in names}
            # Without its dates, of which one beyond the year 9999 raises, and its texts as bytes, for the same reason.
            frame, _ = load(path, usecols=[*as_stored.values()], encoding=BYTES, disable_datetime_conversion=True)
        columns = {}
        for name in names:
            labels = about.variable_value_labels.get(name, {})
            columns[name] = _column(
                frame.pop(as_stored[name]).to_numpy(),
                about.readstat_variable_types[name],
                _seconds(dating, about.original_variable_types[name]),
                labels if _by_label(wanted, name) else {},
                codec,
            )
            if name == wanted.unit:
                columns[name] = _identifiers(columns[name])
        return table_of_arrow(pa.table(columns), about.column_names, wanted, [wanted.unit or ""])

    return read


def _unstated(path: Path) -> str:
    """The encoding of the texts of a file that does not state it."""
    with path.open("rb") as file:
        return "cp1252" if OLD_STATA.match(file.read(100)) else "utf-8"


def _codec_of(stated: str) -> str:
    """The encoding that a file states, by the name that it has in Python."""
    name = OTHER_NAMES.get(stated.upper(), stated)
    try:
        codecs.lookup(name)
    except LookupError:
        name = ""
    if not name:
        raise SchemaError(
            f"is in the encoding {stated}, which Python does not know; write encoding = with another name"
        )
    return name


def _by_label(wanted: Wanted, name: str) -> bool:
    """Whether a column with labels is declared by them."""
    column = None if wanted.schema is None else wanted.schema.get(name)
    return isinstance(column, Text) or (
        isinstance(column, Categories) and any(isinstance(value, str) for value in column.values)
    )


def _seconds(dating: Dating, written: str | None) -> tuple[float, float] | None:
    """The seconds of a unit, and those of the number 0 since 1970, of a column of dates; None for other columns."""
    formats, first = dating
    begin = float((first - np.datetime64("1970-01-01")) / np.timedelta64(1, "s"))
    return next(((unit, begin) for pattern, unit in formats if pattern.fullmatch(written or "")), None)


def _column(
    values: Any, stored: str, seconds: tuple[float, float] | None, labels: Mapping[Any, str], codec: str
) -> Any:
    """A column as an Arrow array."""
    import pyarrow as pa

    if stored.startswith("string"):
        read = (_decoded(value, codec) for value in values)
        return pa.array([None if text is None else labels.get(text, text) for text in read], pa.string())
    numbers = np.asarray(values, np.float64)
    if seconds is not None:
        unit, begin = seconds
        with np.errstate(all="ignore"):
            moments = (np.floor(numbers) if unit == DAY else numbers) * unit + begin
            known = (moments >= FIRST) & (moments < LAST)
            micros = np.floor(np.where(known, moments, 0) * 1e6).astype(np.int64)
        return pa.array(micros, pa.timestamp("us"), mask=~known)
    if labels:
        distinct, codes = np.unique(numbers, return_inverse=True)
        texts = [labels.get(number, text_of(number)) for number in distinct.tolist()]
        return pa.DictionaryArray.from_arrays(pa.array(codes.astype(np.int32)), pa.array(texts, pa.string()))
    array = pa.array(numbers, mask=np.isnan(numbers))
    return array.cast(pa.int64()) if stored.startswith("int") else array


def _decoded(value: Any, codec: str) -> str | None:
    """A text of which the bytes were read; None for an empty one, and one that is not in its encoding."""
    try:
        return (value.encode(BYTES).decode(codec) or None) if isinstance(value, str) else None
    except UnicodeDecodeError:
        return None


def _identifiers(column: Any) -> Any:
    """Numbers as the texts that write them: the same where another file stores whole numbers as texts or doubles."""
    import pyarrow as pa

    return pa.array([text_of(value) for value in column.to_pylist()], pa.string())
