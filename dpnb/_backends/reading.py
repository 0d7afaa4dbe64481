"""How a table is read from its source, as far as the source does not say it: part of what a version declares."""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from dpnb.errors import SchemaError
from dpnb.schema import Schema, encodable

DATE_FORMAT = re.compile(r"(?=.*YYYY)(?=.*MM)(?=.*DD)(YYYY|MM|DD)([-./ ])(YYYY|MM|DD)\2(YYYY|MM|DD)")

MAX_MISSING = 100
"""Number of texts that are missing values."""

ASCII = bytes(range(128))

ESCAPED = "iso2022"
"""Encodings with this prefix raise at an escape sequence that is not complete, whatever is to be done about errors."""


class Reading(msgspec.Struct, frozen=True):
    """What a value in a source is read as; the same for all rows and tables of a session."""

    missing: tuple[str, ...] = ()  # in ascending order: values that are missing, beside nulls and empty fields
    separator: str = ","  # of the fields of a text file
    decimal: str = "."  # the decimal mark of numbers in a text file
    encoding: str = "utf-8"  # of a text file
    date_format: str = "YYYY-MM-DD"  # of dates in a text file, beside ISO 8601

    @classmethod
    def declared(
        cls,
        missing: object = (),
        separator: object = ",",
        decimal: object = ".",
        encoding: object = "utf-8",
        date_format: object = "YYYY-MM-DD",
    ) -> Reading:
        """Check what a curator declares."""
        return cls(
            _missing(missing), _separator(separator), _decimal(decimal), _encoding(encoding), _date_format(date_format)
        )

    def to_dict(self) -> dict[str, Any]:
        """What is not the default, by name."""
        return {name: value for name, value in msgspec.structs.asdict(self).items() if value != getattr(USUAL, name)}


USUAL = Reading()
"""How a table is read if nothing is declared."""

READING = Reading.__struct_fields__
"""The arguments of a session that declare it."""


@dataclass(frozen=True)
class Wanted:
    """What is wanted of a source: the declared columns, or all without `schema`; and how it is read."""

    schema: Schema | None = None
    unit: str | None = None  # the column that identifies a privacy unit
    reading: Reading = USUAL

    @property
    def columns(self) -> Mapping[str, object] | None:
        """The names of the columns, of which the unit's column need not be declared; None for all."""
        if self.schema is None:
            return None
        return dict.fromkeys([*self.schema, *([] if self.unit is None else [self.unit])])


ALL = Wanted()
"""All columns, as usual."""


def _missing(texts: object) -> tuple[str, ...]:
    if isinstance(texts, list | tuple) and len(set(map(str, texts))) == len(texts) <= MAX_MISSING:
        checked = tuple(text for text in texts if isinstance(text, str) and text and encodable(text))
        if len(checked) == len(texts):
            return tuple(sorted(checked))
    raise SchemaError(
        f"missing: must be a list of at most {MAX_MISSING} different texts, such as ['NA', '-9']; got {texts!r}; empty "
        "fields are missing without being listed"
    )


def _separator(text: object) -> str:
    if isinstance(text, str) and len(text) == 1 and encodable(text) and text not in '"\r\n\0':
        return text
    raise SchemaError(
        "separator: must be one character between the fields of a text file, such as ';' or a tab, '\\t'; got "
        f"{text!r}; a line break, a NUL and a quotation mark are none"
    )


def _decimal(text: object) -> str:
    if text in (".", ","):
        return str(text)
    raise SchemaError(f"decimal: must be '.' or ',', the decimal mark of numbers in a text file; got {text!r}")


def _encoding(name: object) -> str:
    """The name of an encoding whose lines can be found without decoding them, so that each is decoded alone."""
    try:
        found = codecs.lookup(name).name.removesuffix("-sig") if isinstance(name, str) else "utf-16"
        is_ascii = "".join(map(chr, ASCII)).encode(found) == ASCII and not found.endswith("escape")
        if is_ascii and not found.startswith(ESCAPED):
            return found
    except (LookupError, ValueError):
        pass
    raise SchemaError(
        "encoding: must be one that Python knows and that writes ASCII as such, for example 'latin-1' or 'cp1252'; got "
        f"{name!r}; convert a file in UTF-16 or ISO 2022 to UTF-8"
    )


def _date_format(text: object) -> str:
    if isinstance(text, str) and DATE_FORMAT.fullmatch(text):
        return text
    raise SchemaError(
        "date_format: must have YYYY, MM and DD in the order of a text file's dates, with '.', '/', '-' or a space "
        f"between them, such as 'DD.MM.YYYY'; got {text!r}; a year must have four digits in the file"
    )
