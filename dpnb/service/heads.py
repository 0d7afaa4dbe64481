"""The last row of each ledger, in a file that a copy of the ledger does not bring back.

A ledger that is restored from an older copy lacks the charges that were made since, so that they could be spent again.
It is consistent in itself; only what is kept elsewhere tells that rows are missing.  So the service keeps number and
hash of the last row outside the ledger's folder, and starts only with a ledger that contains it.

The file is replaced after each commit, without waiting for the disk: after a power failure it may name an earlier row,
which the ledger contains too, or be damaged.  For the second case there is another one, from the last start, which was
on disk before the service served anything.
"""

from __future__ import annotations

import hashlib
import logging
import os
from pathlib import Path

import msgspec

from dpnb._core.accountant.grant import SETTINGS_ACTOR
from dpnb._core.accountant.granting import note_restored
from dpnb.copying import NotCopyable
from dpnb.errors import InvalidValueError, LedgerError
from dpnb.ledger.chain import ChainHead
from dpnb.ledger.origin import UNCOUNTED, RequestOrigin, requested_by
from dpnb.ledger.queries import stored_ledger
from dpnb.service.monitoring import log
from dpnb.session.session import Session

RESTORED = "--restored"
"""The option of the command line that accepts a ledger."""


class _StoredHead(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of a file."""

    ledger: str
    number: int
    hash: str


class HeadFile(NotCopyable):
    """The last row of one ledger, in a file of a folder that is created if it does not exist."""

    def __init__(self, folder: Path, table: str, ledger: str) -> None:
        self._ledger = os.path.realpath(ledger)
        name = (
            f"{table}-{hashlib.sha256(os.fsencode(self._ledger)).hexdigest()[:12]}"  # two services may share a folder
        )
        self.path, self._at_start = folder / f"{name}.head", folder / f"{name}.start"
        self._table, self._has_failed = table, False

    def read(self) -> ChainHead | None:
        """The highest row that is known; None if the files are missing or damaged."""
        return max(filter(None, map(_read, (self.path, self._at_start))), default=None)

    def begin(self, head: ChainHead) -> None:
        """Write the row with which the service starts, and wait for the disk."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            for path in (self._at_start, self.path):
                self._write(path, head, flushed=True)
        except OSError as error:
            fault = error.strerror or type(error).__name__
            raise InvalidValueError(
                f"heads: must be a folder in which the service can write; got {str(self.path.parent)!r} ({fault}); "
                "name another one in the settings"
            ) from None

    def keep(self, head: ChainHead) -> None:
        """Replace the row; what was charged stands even if that fails, and an earlier row is safe."""
        try:
            self._write(self.path, head, flushed=False)
            self._has_failed = False
        except OSError as error:
            if not self._has_failed:
                log("head_not_written", logging.ERROR, error, table=self._table)
            self._has_failed = True

    def _write(self, path: Path, head: ChainHead, *, flushed: bool) -> None:
        new = f"{path}.new"
        with os.fdopen(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600), "wb") as file:
            file.write(msgspec.json.encode(_StoredHead(self._ledger, *head)))
            if flushed:
                file.flush()
                os.fsync(file.fileno())
        os.replace(new, path)


def _read(path: Path) -> ChainHead | None:
    try:
        stored = msgspec.json.decode(path.read_bytes(), type=_StoredHead)
    except (OSError, msgspec.MsgspecError):
        return None
    return ChainHead(stored.number, stored.hash)


def refuse_older(path: str, table: str, folder: Path) -> None:
    """Refuse a ledger that lacks the last known row before a session opens it, which may declare a version there."""
    file = HeadFile(folder, table, path)
    known = file.read()
    if known is None:  # `follow_head` asks whether there are rows
        return
    with stored_ledger(path) as ledger:
        rows = 0 if ledger is None else ledger.count
        if ledger is None or not ledger.has(known):
            raise LedgerError(_refusal(file, path, rows, known))


def follow_head(session: Session, table: str, folder: Path, *, restored: bool) -> None:
    """Check that a ledger contains the last row that is known of it, and keep its last row from now on.

    A ledger that lacks the row, or has rows although none is known, is accepted only if it is said to be `restored`,
    which is then recorded in it.
    """
    ledger, file = session.ledger, HeadFile(folder, table, session.ledger.path)
    known = file.read()
    has_rows = any(one.node != UNCOUNTED for one in ledger.summaries())
    is_contained = not has_rows if known is None else ledger.has(known)
    if Path(ledger.path).parent.resolve() in file.path.resolve().parents:
        log("heads_beside_ledger", logging.WARNING, table=table, why="who restores the folder restores both")
    if is_contained and restored:
        log("restored_ignored", logging.WARNING, table=table, why="the ledger contains the last row; leave it out")
    elif not is_contained:
        if not restored:
            raise LedgerError(_refusal(file, ledger.path, ledger.count, known))
        with requested_by(RequestOrigin(SETTINGS_ACTOR)):
            note_restored(session._core.account, None if known is None else known.number, version=session._core.version)
        log("ledger_restored", logging.WARNING, table=table, rows=ledger.count, known=known and known.number)
    file.begin(ledger.last)
    ledger.follow(file.keep)


def _refusal(file: HeadFile, path: str, rows: int, known: ChainHead | None) -> str:
    if known is None:
        return (
            f"ledger {path!r}: has rows, and the file that names its last one is missing or damaged: "
            f"{str(file.path)!r}; if the service was moved, move that file too, under this name; otherwise, as after "
            f"an upgrade, make sure that this is the newest ledger, and start once with {RESTORED}, which the ledger "
            "records"
        )
    fault = "the file is missing or empty"
    if rows:
        fault = f"it has {rows} rows without that one, so that it is an older copy or another ledger"
    return (
        f"ledger {path!r}: must contain row {known.number} as the service has written it; {fault}, and what was "
        f"charged since could be spent again; put the newest ledger back; if it is lost, start once with {RESTORED}, "
        "which the ledger records, and count what is missing as spent"
    )
