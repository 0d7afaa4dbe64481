"""``python -m dpnb backup``: a copy of a ledger and its secret, in a folder that nobody else can read.

The file with the highest row that is known of a ledger (:mod:`dpnb.service.heads`) is never part of it: restored with
the ledger, it would fit the older copy, and what was charged since could be spent again.

A file beside the ledger names the state that was copied last, and when, for the curator's page: nothing else reads it.
"""

from __future__ import annotations

import os
import stat
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile

import msgspec

from dpnb._sources.databases.snapshots import SUFFIX as SNAPSHOTS
from dpnb.errors import InvalidValueError, LedgerError
from dpnb.ledger import Ledger
from dpnb.session.table_contents import SUFFIX

PRIVATE_FOLDER, OTHERS = 0o700, 0o077

NOTE = "-backup"
"""Of the file beside a ledger that says when it was copied last."""


class Backup(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The last copy of a ledger, as the file says that anyone who may write beside the ledger may have written."""

    time: str  # UTC, ISO 8601
    rows: int  # number of the last row that was copied
    head: str  # its hash


def back_up(path: str, folder: str) -> str:
    """Copy a ledger, which may be in use, and return what was copied, in words.

    A copy from before is replaced, unless it has rows that the ledger lacks: then the ledger is the older one.
    """
    own = Path(os.path.realpath(path))
    with closing(Ledger.read_only_copy(own)) as ledger:
        target = _private(Path(folder)) / Path(path).name
        if own.parent == target.parent.resolve():
            raise InvalidValueError(
                f"folder: must be another one than that of the ledger, which the copy would replace; got {folder!r}; "
                "give a folder on another disk"
            )
        _refuse_newer(target, ledger)
        _write(target, ledger.content())
        rows, head = ledger.last
    with suppress(FileNotFoundError):
        _write(Path(f"{target}{SUFFIX}"), Path(f"{own}{SUFFIX}").read_bytes())
    with suppress(InvalidValueError):  # a folder of the ledger that this account can only read
        time = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
        _write(Path(f"{own}{NOTE}"), msgspec.json.encode(Backup(time, rows, head)), owner=own.stat())
    snapshots = Path(f"{own}{SNAPSHOTS}")
    left = f"; {snapshots} has rows of the table, and is not copied" if snapshots.is_dir() else ""
    return f"{target}: {rows:,} row{'s' if rows != 1 else ''}; the hash of the last row is {head}{left}"


def last_backup(path: str) -> Backup | None:
    """The last copy of a ledger, if its file can be read."""
    try:
        return msgspec.json.decode(Path(f"{os.path.realpath(path)}{NOTE}").read_bytes(), type=Backup)
    except (OSError, msgspec.MsgspecError):
        return None


def _private(folder: Path) -> Path:
    """The folder, made if it does not exist; refused if others can use it."""
    try:
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        status = folder.stat()
    except OSError as error:
        raise InvalidValueError(
            f"folder: must be a folder, or a name for a new one; got {str(folder)!r} ({error.strerror}); make the "
            "folder above it"
        ) from None
    if status.st_uid != os.geteuid() or stat.S_IMODE(status.st_mode) & OTHERS:
        raise InvalidValueError(
            f"folder: must belong to this account, and nobody else may use it, since a ledger has answers and the "
            f"secret keys digests of rows; others can use {str(folder)!r}; run chmod 700 on it, or name another one"
        )
    return folder


def _refuse_newer(target: Path, ledger: Ledger) -> None:
    if not target.exists():
        return
    with closing(Ledger.read_only_copy(target)) as copy:
        if ledger.created == copy.created and ledger.has(copy.last):
            return
        count = copy.count
    raise LedgerError(
        f"ledger {ledger.path!r}: must contain the {count:,} rows of the copy {str(target)!r} to replace it; it does "
        "not, so that it is an older state or another ledger; nothing was written; keep the copy, and find the newest "
        "ledger, or give another folder"
    )


def _write(path: Path, content: bytes, owner: os.stat_result | None = None) -> None:
    """Replace a file by one that is complete and on disk, with mode 0600 whatever the mask is.

    As root, it gets the owner of another file.
    """
    try:
        with NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as made:  # with mode 0600
            try:
                made.write(content)
                made.flush()
                os.fsync(made.fileno())
                if owner is not None and os.geteuid() == 0:
                    os.fchown(made.fileno(), owner.st_uid, owner.st_gid)
                os.replace(made.name, path)
            except BaseException:
                Path(made.name).unlink(missing_ok=True)
                raise
        folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        raise InvalidValueError(f"folder: {str(path)!r} cannot be written ({error.strerror}); make room") from None
