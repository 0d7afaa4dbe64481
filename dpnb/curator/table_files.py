"""A table that a curator keeps in a file, where there is no session that was given it."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from dpnb.errors import SchemaError

FORMATS = ".csv (also compressed, as .csv.gz) or .parquet"


def read_tables(named: Mapping[str, str], argument: str) -> dict[str, Any]:
    """Data frames by the names of their tables.

    Parameters
    ----------
    named : mapping of str to str
        Path of each.
    argument : str
        Of the command line, for errors.

    Raises
    ------
    SchemaError
        A file is missing, of another kind, or cannot be read.
    """
    return {name: _read(path, argument) for name, path in named.items()}


def files_of(given: Sequence[str], schemas: Mapping[str, object], argument: str) -> dict[str, str]:
    """Which file each of several declared tables is in: ``FILE`` for the only one, else ``NAME=FILE`` each.

    Raises
    ------
    SchemaError
        A table has no file, or two, or a name is none of theirs.
    """
    if list(schemas) == [""]:
        if len(given) != 1:
            raise SchemaError(f"{argument}: there is one table; got {len(given)} files; give one FILE")
        return {"": given[0]}
    known = ", ".join(schemas)
    files: dict[str, str] = {}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or name not in schemas or name in files:
            raise SchemaError(f"{argument}: must be NAME=FILE, once for each of the tables {known}; got {text!r}")
        files[name] = path
    missing = [name for name in schemas if name not in files]
    if missing:
        raise SchemaError(f"{argument}: must be given for each of the tables {known}; add {missing[0]}=FILE")
    return files


def _read(path: str, argument: str) -> Any:
    file = Path(path)
    if not file.is_file():
        raise SchemaError(f"{argument}: must be a file that is there; got {path!r}; give the path of the table's file")
    kinds: dict[str, Callable[[Path], Any]] = {".parquet": _parquet, ".csv": _csv}
    kind = next((suffix for suffix in file.suffixes[-2:] if suffix.lower() in kinds), "")
    if not kind:
        raise SchemaError(f"{argument}: must be a {FORMATS} file; got {path!r}; write the table to one")
    try:
        return kinds[kind.lower()](file)
    except ImportError:
        fault = ""
    except Exception as error:  # noqa: BLE001  (libraries have many; what they say may quote rows)
        fault = type(error).__name__
    if not fault:
        raise SchemaError(
            f"{argument}: reading {path!r} needs a library for Parquet, and there is none; pip install pyarrow, or "
            "give a .csv file"
        )
    raise SchemaError(f"{argument}: {path!r} must be a table that can be read; reading it gave {fault}; check the file")


def _csv(file: Path) -> Any:
    # Each column's type is decided by all of its values, and not by one chunk after the other.
    return pd.read_csv(file, low_memory=False)


def _parquet(file: Path) -> Any:
    for library in ("pyarrow", "fastparquet", "polars"):
        try:
            importlib.import_module(library)
        except ImportError:
            continue
        return importlib.import_module("polars").read_parquet(file) if library == "polars" else pd.read_parquet(file)
    raise ImportError
