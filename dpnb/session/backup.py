"""A copy of a ledger, and the check that files of a table have the contents that a version was first used with.

A service records a digest of the data files of a version, of the bytes of the files, so a copied file or a moved
machine stays valid.  It is computed from rows.  So it is keyed with a secret, in a file beside the ledger that only the
curator can read, and it is in a row whose content no log, statement or audit shows and no analyst receives: who knows
all rows but one could else find the last by trial.

A copy has the secret too.  It never has the file with the highest row that is known of a ledger
(:mod:`dpnb.service.heads`): restored with the ledger, that would fit the older copy, and what was charged since could
be spent again.  A file beside the ledger names the state that was copied last, and when, for the curator's page:
nothing else reads it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Mapping
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import msgspec

from dpnb._sources.database_snapshots import OTHERS, PRIVATE_FOLDER, synchronize
from dpnb._sources.database_snapshots import SUFFIX as SNAPSHOTS
from dpnb.errors import InvalidValueError, LedgerError
from dpnb.ledger import Ledger
from dpnb.ledger.charge import TABLE_FILES, digest
from dpnb.ledger.origin import UNCOUNTED
from dpnb.ledger.queries import stored_ledger

SUFFIX = "-secret"
"""Of the file of the secret, beside the ledger."""

BYTES = 32

KEY = digest(["table_contents"])

TAKEN = "taken"
"""The key of the time at which the files of a version were read from databases."""


NOTE = "-backup"
"""Of the file beside a ledger that says when it was copied last."""


def was_served(path: str, version: str) -> bool:
    """Whether a service has used a version of the ledger in a file."""
    with stored_ledger(path) as ledger:
        return ledger is not None and ledger.by_key(UNCOUNTED, version, KEY) is not None


def refuse_other_contents(ledger: Ledger, version: str, digests: Mapping[str, str], taken: str | None = None) -> None:
    """Record the contents of a version's files in the ledger, or refuse other ones.

    `digests` are those of each table's file, as `read_tables` computes them.  They are also refused if the secret is
    lost or can be read by others.  `taken` says when the files were read from databases, which is recorded too.
    """
    path = Path(f"{os.path.realpath(ledger.path)}{SUFFIX}")
    known = ledger.by_key(UNCOUNTED, version, KEY)
    secret = _secret(path, make=known is None)
    own = None if secret is None else _keyed(secret, digests)
    if known is None:
        with ledger.transaction():
            details = {"contents": own} if taken is None else {"contents": own, TAKEN: taken}
            known = ledger.by_key(UNCOUNTED, version, KEY) or ledger.note(TABLE_FILES, version, details, KEY)
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
    synchronize(path.parent)


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
        synchronize(path.parent)
    except OSError as error:
        raise InvalidValueError(f"folder: {str(path)!r} cannot be written ({error.strerror}); make room") from None
