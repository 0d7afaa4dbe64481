"""The files that a curator writes: TOML, and long lists of categories.

`dpnb.session.declaration` reads a table's declaration from such a file; `dpnb.service.configuration` the settings of a
service.

The file of a long list of categories, which ``values_file`` of a declared column names.

It becomes the ``values`` of that column, so that declarations with equal lists are the same.  The file is public, as
the declaration is: errors may quote it.
"""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from dpnb.errors import DpnbError, InvalidValueError, SchemaError
from dpnb.schema import Key

# --- the line number of each key in a TOML file -----------------------------------------------------------------------


KeyPath = tuple[str, ...]
"""A key, as its path from the top of the file."""


def lines_of(text: str) -> dict[KeyPath, int]:
    """For each key, the line (counted from 1) on which the first statement with that key begins.

    A TOML statement (a header, a key with its value, or only a comment) ends at the end of a line and can be parsed
    separately.  So lines are accumulated until `tomllib` can parse them; it knows which lines are inside a string or a
    list.
    """
    lines: dict[KeyPath, int] = {}
    table: KeyPath = ()
    statement, start = "", 1
    for number, line in enumerate(text.split("\n"), 1):
        statement += line + "\n"
        try:
            stated = tomllib.loads(statement)
        except tomllib.TOMLDecodeError:
            continue
        header = statement.lstrip(" \t").startswith("[")
        paths = [*_paths(stated, () if header else table)]
        for path in paths:
            lines.setdefault(path, start)
        if header:
            table = paths[-1]
        statement, start = "", number + 1
    return lines


def _paths(stated: Mapping[str, Any], above: KeyPath) -> Iterator[KeyPath]:
    for key, value in stated.items():
        yield (*above, key)
        if isinstance(value, Mapping):
            yield from _paths(value, (*above, key))


# --- a TOML file that a curator writes --------------------------------------------------------------------------------


ERROR_POSITION = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")
"""How `tomllib` reports the position of a syntax error."""

STATED_TEXT = re.compile(r"""^[ \t]*\w+[ \t]*=[ \t]*("[^"\n]*"|'[^'\n]*')""")
"""A key with a text as its value, on one line."""

NOT_STATED = "not_private_test_seed"
"""The one argument of a session that a file cannot contain, since it is for tests only."""


@dataclass(frozen=True, repr=False)
class TomlFile:
    """The content of one file."""

    path: str  # as the caller wrote it
    text: str
    content: dict[str, Any]  # the parsed TOML
    lines: dict[KeyPath, int]  # the line number of each key

    def locate(self, *keys: str) -> str:
        """File and line of a key; if the key is missing, of the table that should contain it."""
        while keys and keys not in self.lines:
            keys = keys[:-1]
        return f"{self.path}, line {self.lines[keys]}" if keys else self.path

    def fault(self, kind: type[DpnbError], keys: KeyPath, message: str) -> DpnbError:
        """An error about a key, to be raised."""
        return kind(f"{self.locate(*keys)}: {message}")

    def refuse_keys(self, entry: Mapping[str, Any], known: Mapping[str, bool], at: KeyPath) -> None:
        """Refuse unknown keys and missing required keys of one table of the file.

        `known` says of each allowed key whether it is required; `at` is the key of the table in the file.
        """
        listed = ", ".join(known)
        where = f" in {'.'.join(at)}" if at else ""
        for key in entry:
            if key not in known:
                why = "is only for tests, in Python" if key == NOT_STATED else "is not a key"
                raise self.fault(
                    InvalidValueError,
                    (*at, key),
                    f"{key!r} {why}{where}{near(key, known)}; the keys are {listed}; correct it or remove it",
                )
        for key, required in known.items():
            if required and key not in entry:
                raise self.fault(InvalidValueError, at, f"{key!r} is missing{where}; add it; the keys are {listed}")


def read_toml(path: str | os.PathLike[str], example: str, remedy: str = "check the path and the file") -> TomlFile:
    """Read a TOML file; `example` is a typical name and `remedy` what helps where there is none, for the errors."""
    argument: object = path
    if not isinstance(argument, str | os.PathLike) or not isinstance(os.fspath(argument), str):
        raise InvalidValueError(f"path: must be the path of a TOML file; got {path!r}; for example {example!r}")
    name = os.fspath(path)
    try:
        text = Path(name).read_bytes().decode()
    except (OSError, ValueError) as error:
        fault = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        helps = remedy if isinstance(error, FileNotFoundError) else "check the path and the file"
        raise InvalidValueError(f"{name}: must be a TOML file that can be read; {fault}; {helps}") from None
    try:
        return TomlFile(name, text, tomllib.loads(text), lines_of(text))
    except RecursionError:
        where, fault = "", "it is nested too deeply"
    except ValueError as error:  # TOMLDecodeError, or a number of thousands of digits
        message = str(error)
        position = ERROR_POSITION.search(message)
        line = position[1] or str(text.count("\n") + 1) if position else None
        where, fault = f", line {line}" if line else "", ERROR_POSITION.sub("", message)
    raise InvalidValueError(f"{name}{where}: must be TOML; {fault}; see https://toml.io for the syntax")


def near(word: object, known: Iterable[str]) -> str:
    """A suggestion of the most similar known word, if any."""
    similar: Sequence[str] = get_close_matches(word, list(known), 1) if isinstance(word, str) else ()
    return f"; did you mean {similar[0]!r}?" if similar else ""


# --- what a command changes in a file ---------------------------------------------------------------------------------


def with_text(file: TomlFile, key: str, value: str, before: str) -> str:
    """The text of a file in which a key at the top has another value, a text; a new line goes before another key."""
    lines = file.text.split("\n")
    stated = f"{key} = {json.dumps(value, ensure_ascii=False)}"
    at = file.lines.get((key,))
    if at is None:
        lines.insert(file.lines[before,] - 1, stated)
    else:
        lines[at - 1] = STATED_TEXT.sub(lambda _: stated, lines[at - 1], count=1)
    text = "\n".join(lines)
    try:
        if tomllib.loads(text) == {**file.content, key: value}:
            return text
    except tomllib.TOMLDecodeError:
        pass
    raise file.fault(InvalidValueError, (key,), f"{key}: cannot be changed here; write {stated} on a line of its own")


@contextmanager
def replaced_after(path: str, text: str) -> Iterator[None]:
    """Replace a file after the block, if that has not failed, by one with the same rights; a link stays one.

    It is written before the block, so that one that cannot be written is refused before anything else is done.
    """
    own = Path(os.path.realpath(path))
    new = own.with_name(f".{own.name}.new")
    try:
        with new.open("wb") as opened:
            shutil.copymode(own, new)
            opened.write(text.encode())
            opened.flush()
            os.fsync(opened.fileno())
    except OSError as error:
        raise InvalidValueError(
            f"{path}: must be in a folder in which this account can write, to be replaced ({error.strerror}); run the "
            "command as the account that owns it"
        ) from None
    try:
        yield
        os.replace(new, own)
    finally:
        new.unlink(missing_ok=True)


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
