"""The file of a long list of categories, which ``values_file`` of a declared column names.

It becomes the ``values`` of that column, so that declarations with equal lists are the same.  The file is public, as
the declaration is: errors may quote it.
"""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Collection
from pathlib import Path

from dpnb.errors import SchemaError
from dpnb.schema import Key

VALUES_FILE = "values_file"
"""The key of a column of categories that are in a file."""

MAX_BYTES = 2**21
MAX_CATEGORIES = 100_000

BYTE_ORDER_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}".encode()
NUMBER = re.compile(r"-?(0|[1-9][0-9]{0,14})(\.[0-9]{1,15})?")
SEPARATOR = re.compile("[,;\t]")

RULE = "must be a text file in UTF-8 with one category on each line and no header"


def read_values(path: Path, missing: Collection[str]) -> list[Key]:
    """The categories of a file, in its order: numbers if every line is one, otherwise texts.

    `missing` are the texts that are declared as missing values.  An error begins with the key, the file and the line.
    """
    lines = _lines(path)
    texts = [_category(path, number, line) for number, line in enumerate(lines, 1)]
    numeric = all(map(NUMBER.fullmatch, (line.decode().strip() for line in lines)))  # not those in quotation marks
    keys: dict[Key, int] = {}
    for number, text in enumerate(texts, 1):
        key = json.loads(text) if numeric else text
        if not text:
            raise _fault(path, number, "is empty; remove it, since a missing value needs no category")
        if text in missing:
            raise _fault(path, number, f"{text!r} is also in missing =; remove it from one of the two lists")
        if key in keys:
            raise _fault(path, number, f"{text!r} is on line {keys[key]} too; remove one")
        keys[key] = number
    return [*keys]


def _lines(path: Path) -> list[bytes]:
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
    except (OSError, ValueError) as error:
        fault = error.strerror if isinstance(error, OSError) else "its name has a null byte"
        raise SchemaError(f"{VALUES_FILE}: {path}: {RULE}; it cannot be read: {fault}") from None
    lines = content.removeprefix(BYTE_ORDER_MARK).splitlines()
    if len(content) > MAX_BYTES or len(lines) > MAX_CATEGORIES:
        raise SchemaError(
            f"{VALUES_FILE}: {path}: {RULE}, at most {MAX_CATEGORIES:,} lines and {MAX_BYTES:,} bytes; this has more"
        )
    if not lines:
        raise SchemaError(f"{VALUES_FILE}: {path}: {RULE}; it is empty")
    return lines


def _category(path: Path, number: int, line: bytes) -> str:
    try:
        text = line.decode().strip()
    except UnicodeDecodeError:
        raise _fault(path, number, "is not UTF-8; convert the file") from None
    if not text.startswith('"'):
        if SEPARATOR.search(text):
            remedy = (
                "keep the column of the categories alone, or put a category with such a character in quotation marks"
            )
            raise _fault(path, number, f"must have one category; got {text[:60]!r}; {remedy}")
        return text
    try:
        (category,) = next(csv.reader([text], strict=True))
    except (csv.Error, ValueError):
        remedy = "write a quotation mark within a category twice"
        raise _fault(path, number, f"must have one category in quotation marks; got {text[:60]!r}; {remedy}") from None
    return category


def _fault(path: Path, number: int, fault: str) -> SchemaError:
    return SchemaError(f"{VALUES_FILE}: {path}, line {number}: {fault}")
