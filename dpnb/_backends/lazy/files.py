"""Which files a table is read from, and what identifies them as the same files, unchanged.

Device, inode and time of change; never the size, which depends on the rows.  Only a digest of these is ever kept.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from dpnb._backends.lazy.engines.engine import Engine, Paths


def paths_of(native: Any, engine: Engine) -> Paths:
    """What looks up the files of a table; it finds none if the engine does not list them or they are elsewhere."""
    try:
        return engine.files(native)
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
