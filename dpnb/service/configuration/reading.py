"""Typed values from a TOML file: the annotation of a field of a dataclass names what reads the key of that name.

That is a function, as in ``port: Annotated[int, whole(0, 65535, 8443)]``, or another such dataclass for a table of the
file.  Fields without it are no keys: the caller gives their values, but for ``place``, which is file and line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import MISSING, fields
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_origin, get_type_hints

from dpnb.errors import DpnbError, InvalidValueError
from dpnb.session.toml_file import KeyPath, TomlFile

T = TypeVar("T")

ValueReader = Callable[[Any, Path], Any]
"""Reads a value of a file in a folder; raises `SettingError`."""


class SettingError(ValueError):
    """A value that breaks a rule, which begins with a verb such as "must be", and a remedy.

    `got` describes the value where it must not be repeated, and `key` is a key inside it, where the fault is.
    """

    def __init__(self, rule: str, remedy: str, *, got: str | None = None, key: str = "") -> None:
        super().__init__(rule)
        self.rule, self.remedy, self.got, self.key = rule, remedy, got, key


def fault(file: TomlFile, at: KeyPath, value: object, rule: str, remedy: str, *, got: str | None = None) -> DpnbError:
    """The error about a value of a file, to be raised: file, line, key, rule, value and remedy."""
    shown = repr(value) if got is None else got
    return file.fault(InvalidValueError, at, f"{'.'.join(at)}: {rule}; got {shown}; {remedy}")


def read_struct(
    file: TomlFile, kind: type[T], entry: object, at: KeyPath, *, others: Iterable[str] = (), **given: Any
) -> T:
    """Read the table `entry` of a file, whose key is `at`; `others` are keys in it that the caller reads."""
    if not isinstance(entry, dict):
        raise fault(file, at, entry, "must be a table", f"write a line [{'.'.join(at)}] and its keys below it")
    readers = {name: reader for name, reader in _readers(kind).items() if name not in given}
    required = {one.name for one in fields(kind) if one.default is MISSING and one.default_factory is MISSING}  # type: ignore[arg-type]
    file.refuse_keys(entry, {name: name in required for name in readers} | dict.fromkeys(others, False), at)
    if any(one.name == "place" for one in fields(kind)):  # type: ignore[arg-type]
        given.setdefault("place", file.locate(*at))
    values = {
        name: _read_value(file, readers[name], value, (*at, name)) for name, value in entry.items() if name in readers
    }
    return kind(**given, **values)


def _read_value(file: TomlFile, reader: ValueReader | type, value: object, at: KeyPath) -> Any:
    """Read one value, whose key is `at`."""
    if isinstance(reader, type):
        return read_struct(file, reader, value, at)
    try:
        return reader(value, Path(file.path).absolute().parent)
    except SettingError as error:
        at = (*at, error.key) if error.key else at
        raise fault(file, at, value, error.rule, error.remedy, got=error.got) from None


def keys_of(*kinds: type) -> dict[str, bool]:
    """The names of the keys, none of which is required."""
    return dict.fromkeys((name for kind in kinds for name in _readers(kind)), False)


def _readers(kind: type) -> Mapping[str, ValueReader | type]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: hint.__metadata__[0] for name, hint in hints.items() if get_origin(hint) is Annotated}


# --- functions that read a value --------------------------------------------------------------------------------------


def flag(value: Any, folder: Path) -> bool:
    """Read true or false."""
    if isinstance(value, bool):
        return value
    raise SettingError("must be true or false", "write it without quotes")


def whole(least: int, most: int, example: int) -> ValueReader:
    """Read a whole number within limits."""

    def read(value: Any, folder: Path) -> int:
        if type(value) is int and least <= value <= most:
            return value
        raise SettingError(f"must be a whole number from {least:,} to {most:,}", f"for example {example}")

    return read


def matching(pattern: re.Pattern[str], rule: str, example: str) -> ValueReader:
    """Read a text of a form."""

    def read(value: Any, folder: Path) -> str:
        if isinstance(value, str) and pattern.fullmatch(value):
            return value
        raise SettingError(f"must be {rule}", f"for example {example!r}")

    return read


def choice(*known: str) -> ValueReader:
    """Read one of several texts."""

    def read(value: Any, folder: Path) -> str:
        if value in known:
            return str(value)
        raise SettingError(f"must be {' or '.join(map(repr, known))}", "correct it, or leave it out for the default")

    return read


def file_path(value: Any, folder: Path) -> Path:
    """Read a path, relative to the folder of the file."""
    if isinstance(value, str) and value:
        return folder / value
    raise SettingError("must be the path of a file", "write it in quotes")


def existing_file(value: Any, folder: Path) -> Path:
    """Read the path of a file that exists."""
    found = file_path(value, folder)
    if found.exists():
        return found
    raise SettingError("must be an existing file", "correct the path", got=f"{value!r}, which is {str(found)!r}")
