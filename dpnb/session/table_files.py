"""Read a curator's tables from files, and refuse files that differ from those that a version was first used with.

Text files are read by `dpnb._backends.text_table`.

A service records a digest of the data files of a version, of the bytes of the files, so a copied file or a moved
machine stays valid.  It is computed from rows.  So it is keyed with a secret, in a file beside the ledger that only the
curator can read, and it is in a row whose content no log, statement or audit shows and no analyst receives: who knows
all rows but one could else find the last by trial.
"""

from __future__ import annotations

import hashlib
import hmac
import importlib
import os
import secrets
import stat
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from dpnb._core.tables import PrivateTables
from dpnb.errors import InvalidValueError, SchemaError
from dpnb.ledger import Ledger
from dpnb.ledger.charge import TABLE_FILES, digest
from dpnb.ledger.node import UNCOUNTED

# --- the contents of the data files of a version ----------------------------------------------------------------------


SUFFIX = "-secret"
"""Of the file of the secret, beside the ledger."""

BYTES = 32


def refuse_other_contents(ledger: Ledger, version: str, digests: Mapping[str, str]) -> None:
    """Record the contents of a version's files in the ledger, or refuse other ones.

    `digests` are those of each table's file, as `read_tables` computes them.  They are also refused if the secret is
    lost or can be read by others.
    """
    path = Path(f"{os.path.realpath(ledger.path)}{SUFFIX}")
    key = digest(["table_contents"])
    known = ledger.by_key(UNCOUNTED, version, key)
    secret = _secret(path, make=known is None)
    own = None if secret is None else _keyed(secret, digests)
    if known is None:
        with ledger.transaction():
            known = ledger.by_key(UNCOUNTED, version, key) or ledger.note(TABLE_FILES, version, {"contents": own}, key)
    recorded = (known.launch or {})["contents"]
    if own is None or own["secret"] != recorded["secret"]:
        fault = "is missing" if own is None else "is another one"
        raise InvalidValueError(
            f"version: the files of {version!r} cannot be compared with those that it was first used with, since the "
            f"secret {str(path)!r} {fault}; nothing was charged; put it back, from the place of the ledger or its "
            "backup, or give another version in the declaration"
        )
    now, first = own["tables"], recorded["tables"]
    changed = sorted(name for name in {*now, *first} if now.get(name) != first.get(name))
    if changed:
        names = ", ".join(changed) or "the table"
        raise InvalidValueError(
            f"version: must be changed, since the data of {names} changed after {version!r} was first used with this "
            "ledger, also if nothing was asked about it; nothing was charged; put the old file back, or give another "
            "version in the declaration"
        )


def _keyed(secret: bytes, digests: Mapping[str, str]) -> dict[str, Any]:
    """The digests as the ledger has them, with one of the secret, which is random."""

    def of(*parts: str) -> str:
        return hmac.new(secret, "\0".join(parts).encode(), hashlib.sha256).hexdigest()

    return {"secret": of("secret"), "tables": {name: of("table", name, one) for name, one in digests.items()}}


def _secret(path: Path, *, make: bool) -> bytes | None:
    """The secret of a ledger, made if there is none; None if there is none and none is made."""
    try:
        if make and not os.path.lexists(path):
            _make(path)
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InvalidValueError(f"ledger: its secret {str(path)!r} cannot be made or read: {error.strerror}") from None
    with os.fdopen(file, "rb") as opened:
        status, secret = os.fstat(file), opened.read(BYTES + 1)
    if stat.S_IMODE(status.st_mode) & 0o077:
        raise InvalidValueError(
            f"ledger: its secret {str(path)!r} must be a file that only the curator can read; others can; run chmod 600"
        )
    if len(secret) != BYTES:
        raise InvalidValueError(f"ledger: its secret {str(path)!r} must have {BYTES} bytes; put the right file back")
    return secret


def _make(path: Path) -> None:
    """Make a secret, durable and complete before it has its name; another process may be first."""
    with NamedTemporaryFile(dir=path.parent, prefix=path.name) as made:  # with mode 0600
        made.write(secrets.token_bytes(BYTES))
        made.flush()
        os.fsync(made.fileno())
        try:
            os.link(made.name, path)
        except FileExistsError:
            return
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


# --- tables from files ------------------------------------------------------------------------------------------------


FORMATS = ".csv (also compressed, as .csv.gz), .parquet or .feather (or .arrow) file, or a folder of .parquet files"

ARROW = (".feather", ".arrow")
PARQUET = ".parquet"
CSV = ".csv"
COMPRESSED = (".gz", ".bz2", ".xz", ".zip")


def read_tables(
    named: Mapping[str, str],
    argument: str,
    declared: PrivateTables | None = None,
    digests: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Read data frames, by the names of their tables.

    Without `declared`, all columns of text files are read.  `argument` names the argument of the command line, or the
    key of the settings, for errors.  `digests` receives the SHA-256 of each table's file, of the bytes that were
    read; a file that changes meanwhile is then refused.
    """
    return {name: _read(path, argument, declared, name, digests) for name, path in named.items()}


def files_of(arguments: Sequence[str], schemas: Mapping[str, object], argument: str) -> dict[str, str]:
    """The file of each declared table, from arguments ``FILE`` for a single table, ``NAME=FILE`` for several."""
    if list(schemas) == [""]:
        if len(arguments) != 1:
            raise SchemaError(f"{argument}: there is one table; got {len(arguments)} files; give one FILE")
        return {"": arguments[0]}
    known = ", ".join(schemas)
    files: dict[str, str] = {}
    for text in arguments:
        name, equals, path = text.partition("=")
        if not equals or name not in schemas or name in files:
            raise SchemaError(f"{argument}: must be NAME=FILE, once for each of the tables {known}; got {text!r}")
        files[name] = path
    missing = [name for name in schemas if name not in files]
    if missing:
        raise SchemaError(f"{argument}: must be given for each of the tables {known}; add {missing[0]}=FILE")
    return files


def _read(path: str, argument: str, declared: PrivateTables | None, name: str, digests: dict[str, str] | None) -> Any:
    file = Path(path)
    if not file.exists():
        raise SchemaError(f"{argument}: must be an existing file; got {path!r}; give the path of the table's file")
    kinds: dict[str, Callable[[Path], Any]] = {
        PARQUET: _parquet,
        CSV: lambda file: _csv(file, declared, name),
        **dict.fromkeys(ARROW, _arrow),
    }
    kind = format_of(file)
    if kind not in kinds:
        raise SchemaError(f"{argument}: must be a {FORMATS}; got {path!r}; convert the table to one")
    try:
        if digests is None:
            return kinds[kind](file)
        before = _identities(file)
        digests[name] = _digest(file)
        table = kinds[kind](file)
        if _identities(file) != before:
            raise SchemaError("must not change while it is read; try again")
        return table
    except SchemaError as error:
        message = f"{argument}: {path!r}: {error}"
    except ImportError:
        message = (
            f"{argument}: reading {path!r} needs a library for its format, and none is installed; pip install pyarrow, "
            "or give a .csv file"
        )
    except Exception as error:  # noqa: BLE001  (libraries raise many types; their messages may quote rows)
        fault = type(error).__name__
        message = f"{argument}: {path!r} must be a readable table; reading it raised {fault}; check the file"
    raise SchemaError(message)


def format_of(file: Path) -> str:
    """The format of a table's file, as its suffix in lower case; empty if it is none of these."""
    if file.is_dir():
        return PARQUET if any(file.rglob(f"*{PARQUET}")) else ""
    *others, last = ["", *map(str.lower, file.suffixes)]
    if last in COMPRESSED:
        return CSV if others[-1] == CSV else ""
    return last if last in (PARQUET, CSV, *ARROW) else ""


def _csv(file: Path, declared: PrivateTables | None, name: str) -> Any:
    from dpnb._backends.text_table import read_text_table  # imported when first used, since it imports pandas

    if declared is None or name not in declared.schemas:
        return read_text_table(file)
    return read_text_table(file, declared.missing, {*declared.schemas[name], declared.units[name].column or ""})


def _arrow(file: Path) -> Any:
    import pandas as pd  # imported when first used

    importlib.import_module("pyarrow")
    # With the types of the file: with numpy's, a null changes the type of its column.
    return pd.read_feather(file, dtype_backend="pyarrow")


def _parquet(file: Path) -> Any:
    import pandas as pd  # imported when first used

    if find_spec("pyarrow") is None:
        return importlib.import_module("polars").read_parquet(
            sorted(file.rglob(f"*{PARQUET}")) if file.is_dir() else file  # which polars takes as a list
        )
    return pd.read_parquet(file, engine="pyarrow", dtype_backend="pyarrow")


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


def _digest(file: Path) -> str:
    """SHA-256 of the bytes of a table's files, and of their names in a folder."""
    whole = hashlib.sha256()
    for name, one in _members(file).items():
        with one.open("rb") as opened:
            whole.update(f"{name}\0{hashlib.file_digest(opened, 'sha256').hexdigest()}\0".encode())
    return whole.hexdigest()
