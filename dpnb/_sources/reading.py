"""Reads the tables of a session from their sources, and computes the digests of their files."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from dpnb._backends.reading import ALL, Wanted
from dpnb._sources.formats import IN_WORDS, SourceFormat, format_of
from dpnb._sources.source import DataSource
from dpnb.errors import SchemaError

if TYPE_CHECKING:
    from dpnb._backends.source_table import SourceTable


def read_tables(
    sources: Mapping[str, DataSource],
    argument: str,
    wanted: Mapping[str, Wanted] | None = None,
    digests: dict[str, str] | None = None,
) -> dict[str, SourceTable]:
    """Read data frames, by the names of their tables.

    Of a table that is not in `wanted`, all columns are read.  `argument` names the argument of the command line, or the
    key of the settings, for errors.  `digests` receives the SHA-256 of each table's file, of the bytes that were
    read; a file that changes meanwhile is then refused.
    """
    return {
        name: _read(source, argument, (wanted or {}).get(name, ALL), name, digests) for name, source in sources.items()
    }


def _read(source: DataSource, argument: str, wanted: Wanted, name: str, digests: dict[str, str] | None) -> SourceTable:
    words = repr(source.words)
    if not source.scheme and not source.path.exists():
        raise SchemaError(f"{argument}: must be an existing file; got {words}; give the path of the table's file")
    found = format_of(source)
    if found is None:
        raise SchemaError(f"{argument}: must be {IN_WORDS}; got {words}; convert the table to one")
    try:
        return found.read(source, wanted) if digests is None else _unchanged(found, source, wanted, name, digests)
    except SchemaError as error:
        message = f"{argument}: {words}: {error}"
    except ImportError:
        message = (
            f"{argument}: reading {words} needs a library for {found.name}, and it is not installed; pip install "
            f'"dpnb[{found.extra}]"'
        )
    except Exception as error:  # noqa: BLE001  (libraries raise many types; their messages may quote rows)
        fault = type(error).__name__
        message = f"{argument}: {words} must be a readable table; reading it raised {fault}; check the file"
    raise SchemaError(message)


def _unchanged(
    found: SourceFormat, source: DataSource, wanted: Wanted, name: str, digests: dict[str, str]
) -> SourceTable:
    before = _identities(source.path)
    digests[name] = digest_of(source.path, source.table)
    table = found.read(source, wanted)
    if _identities(source.path) != before:
        raise SchemaError("must not change while it is read; try again")
    return table


def _members(file: Path) -> dict[str, Path]:
    """The files of a table by their names in its folder; a single one has no name."""
    return (
        {str(one.relative_to(file)): one for one in sorted(file.rglob("*")) if one.is_file()}
        if file.is_dir()
        else {"": file}
    )


def _identities(file: Path) -> dict[str, tuple[int, ...]]:
    """What changes when a file is written or replaced."""
    found: dict[str, tuple[int, ...]] = {}
    for name, one in _members(file).items():
        status = one.stat()
        found[name] = (status.st_dev, status.st_ino, status.st_ctime_ns, status.st_mtime_ns, status.st_size)
    return found


def digest_of(file: Path, table: str = "") -> str:
    """SHA-256 of the bytes of a table's files, of their names in a folder, and of the name of a table in a file."""
    whole = hashlib.sha256(f"#{table}\0".encode() if table else b"")
    for name, one in _members(file).items():
        with one.open("rb") as opened:
            whole.update(f"{name}\0{hashlib.file_digest(opened, 'sha256').hexdigest()}\0".encode())
    return whole.hexdigest()
