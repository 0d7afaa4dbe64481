"""The files from which a table is read, a digest of them, and whether a plan returns the same rows each time.

The digest is of device, inode and time of change; never of the size, which depends on the rows.
Only the digest is kept.

A query may read a table more than once, and under individual accounting the charges of units are computed again from
the table.  So a plan that is random, or depends on an undefined order of rows, is refused when the session is made.
What a plan does not show cannot be refused: functions written in Python, ties in an order, the first value of a group
in polars and Spark, columns that number rows, and rows that are modified.
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
from dpnb.errors import SchemaError

# --- stability of a table ---------------------------------------------------------------------------------------------


def refuse_unstable(name: str, native: Any, engine: Engine) -> None:
    """Refuse a table whose plan shows that its rows may differ between reads; the message does not quote the plan."""
    try:
        cause = engine.unstable(native)
    except Exception:  # noqa: BLE001  (a plan that cannot be inspected shows nothing)
        return
    if cause is not None:
        which = f"table {name!r}" if name else "table"
        raise SchemaError(
            f"{which}: must have the same rows whenever it is read; its plan has {cause}; write its result into a "
            "file or table once and pass that, or order every row"
        )


# --- the files from which a table is read -----------------------------------------------------------------------------


def paths_of(native: Any, engine: Engine) -> Paths:
    """A function that returns the files of a table; none if it does not list them, or none is on this machine."""
    try:
        return engine.files(native)
    except Exception:  # noqa: BLE001  (a plan that cannot be inspected shows nothing)
        return list


def digest_of(files: Mapping[str, Paths]) -> str | None:
    """A digest that identifies the unchanged files of some tables; None if there are no files."""
    identities = {name: _identities(paths) for name, paths in files.items()}
    if not any(identities.values()):
        return None
    return hashlib.sha256(json.dumps(identities, sort_keys=True).encode()).hexdigest()


def _identities(paths: Paths) -> list[tuple[int, ...]]:
    try:
        return sorted(_identity(path) for path in set(_expanded(paths())))
    except Exception:  # noqa: BLE001  (for example a deleted file; an engine's message may quote what replaced it)
        return [()]


def _identity(path: str) -> tuple[int, ...]:
    """Device, inode and both times, since on Windows the first is the time of creation."""
    stat = os.stat(path)
    return stat.st_dev, stat.st_ino, stat.st_ctime_ns, stat.st_mtime_ns


def _expanded(paths: Iterable[str]) -> list[str]:
    """The files on this machine that match some paths and patterns."""
    files = []
    for path in paths:
        local = os.path.expanduser(unquote(urlsplit(path).path) if path.startswith("file:") else path)
        matches = [local] if os.path.exists(local) else glob.glob(local, recursive=True)
        files += [os.path.realpath(match) for match in matches if os.path.isfile(match)]
    return files
