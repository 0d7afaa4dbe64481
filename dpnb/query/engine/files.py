"""Which files a table is read from, and what identifies them as the same files, unchanged.

Device, inode and time of change; never the size, which depends on the rows.  Only a digest of these is ever kept.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import unquote, urlsplit

from dpnb.query.engine import duckdb_plan

Paths = Callable[[], Iterable[str]]
"""Looks up the files of a table each time: by now a pattern may match more of them."""


def paths_of(native: Any, engine: str) -> Paths:
    """What looks up the files of a table; it finds none if the engine does not list them or they are elsewhere."""
    try:
        return _FINDERS[engine](native)
    except Exception:  # noqa: BLE001  (a plan that cannot be inspected shows nothing)
        return list


def digest_of(files: Mapping[str, Paths]) -> str | None:
    """A digest that identifies the unchanged files of some tables; None if there are no files."""
    marks = {name: _marks(paths) for name, paths in files.items()}
    if not any(marks.values()):
        return None
    return hashlib.sha256(json.dumps(marks, sort_keys=True).encode()).hexdigest()


def _marks(paths: Paths) -> list[tuple[int, ...]]:
    try:
        return sorted(_mark(path) for path in set(_expanded(paths())))
    except Exception:  # noqa: BLE001  (a file has gone, say, and the engine's message may quote what is there instead)
        return [()]


def _mark(path: str) -> tuple[int, ...]:
    """With both times, since on Windows the first is the time of creation."""
    stat = os.stat(path)
    return stat.st_dev, stat.st_ino, stat.st_ctime_ns, stat.st_mtime_ns


def _expanded(paths: Iterable[str]) -> list[str]:
    """The files on this machine that some paths and patterns match."""
    found = []
    for path in paths:
        local = os.path.expanduser(unquote(urlsplit(path).path) if path.startswith("file:") else path)
        there = [local] if os.path.exists(local) else glob.glob(local, recursive=True)
        found += [os.path.realpath(one) for one in there if os.path.isfile(one)]
    return found


def _polars(native: Any) -> Paths:
    found = partial(_polars_paths, native)
    found()
    return found


def _polars_paths(native: Any) -> list[str]:
    tree = native._ldf.visit()
    waiting, found = [tree.get_node()], []
    while waiting:
        tree.set_node(waiting.pop())
        with suppress(NotImplementedError):  # polars does not expose every operation
            found += [str(path) for path in getattr(tree.view_current_node(), "paths", ())]
        waiting += tree.get_inputs()
    return found


def _duckdb(native: Any) -> Paths:
    found = duckdb_plan.file_patterns(native)
    return lambda: found


def _spark(native: Any) -> Paths:
    found = list(native.inputFiles())  # Spark has listed them too, and reads no others
    return lambda: found


_FINDERS: dict[str, Callable[[Any], Paths]] = {"polars": _polars, "duckdb": _duckdb, "pyspark": _spark}
