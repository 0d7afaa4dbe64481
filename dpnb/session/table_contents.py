"""Refuse files of a table whose contents differ from those that a version was first used with.

A service records a digest of the data files of a version, of the bytes of the files, so a copied file or a moved
machine stays valid.  It is computed from rows.  So it is keyed with a secret, in a file beside the ledger that only the
curator can read, and it is in a row whose content no log, statement or audit shows and no analyst receives: who knows
all rows but one could else find the last by trial.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
import stat
from collections.abc import Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from dpnb.errors import InvalidValueError
from dpnb.ledger import Ledger
from dpnb.ledger.charge import TABLE_FILES, digest
from dpnb.ledger.node import UNCOUNTED
from dpnb.ledger.queries import stored_ledger

SUFFIX = "-secret"
"""Of the file of the secret, beside the ledger."""

BYTES = 32

KEY = digest(["table_contents"])

TAKEN = "taken"
"""The key of the time at which the files of a version were read from databases."""


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
    folder = os.open(path.parent, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
