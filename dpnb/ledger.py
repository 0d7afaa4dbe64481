"""The ledger remembers: an SQLite file with one row for each request, written before a row of the table is read.

A row is *reserved* (charged, durable), then *released* (the noisy values are in it) or *failed* (still charged).  A
crash leaves it reserved.  Nothing is shown before it is released here, so whoever repeats a request that was charged
but never answered gets it answered under the same charge, and the first answer written is the only one ever shown.

It stores nothing computed from rows but released values.  Rows are chained by hashes, so that an edited or truncated
middle is noticed; the file is not a seal against somebody who rewrites it whole.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

from dpnb.accounting.exact import from_text, to_text
from dpnb.accounting.losses import GDP, loss_from_json
from dpnb.errors import DpnbError, LedgerError
from dpnb.mechanisms.measurement import Measurement

FORMAT = 1
APPLICATION_ID = 0x64706E62  # "dpnb"
MEMORY = ":memory:"
BUSY_SECONDS = 60.0
NETWORK_FILE_SYSTEMS = frozenset(
    {"nfs", "nfs4", "cifs", "smb3", "smbfs", "9p", "afs", "ceph", "glusterfs", "lustre", "sshfs"}
)

TABLES = """
CREATE TABLE promise (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE charges (
    id INTEGER PRIMARY KEY, time TEXT NOT NULL, key TEXT NOT NULL UNIQUE, version TEXT NOT NULL, plan TEXT NOT NULL,
    request TEXT NOT NULL, target TEXT NOT NULL, loss TEXT NOT NULL, sigma TEXT, tau TEXT, looks TEXT NOT NULL,
    hash TEXT NOT NULL, state TEXT NOT NULL, measurement TEXT, result_hash TEXT NOT NULL
);
CREATE INDEX charges_by_question ON charges (version, plan);
"""
STATES = ("reserved", "released", "failed")


@dataclass(frozen=True)
class Charge:
    """One row of the ledger.

    Parameters
    ----------
    id : int
        1, 2, ... in order.
    time : str
        When it was reserved; UTC, ISO 8601.
    key : str
        Identity of the request: table version, plan and arguments.
    version, plan, request : str
        Of what was asked; plan and request are JSON.
    target : GDP
        How well the question is known with this answer: its total loss, earlier looks included.
    loss : GDP
        What this row cost.
    sigma : float or None
        Scale of the fresh noise, in grid units; None when nothing was measured.
    tau : float or None
        Parameter of the confidence sequence, fixed by a question's first look.
    looks : tuple of int
        Ids of the rows whose measurements make the answer, this one included.
    state : str
        ``reserved``, ``released`` or ``failed``.
    measurement : Measurement or None
        The released values.
    """

    id: int
    time: str
    key: str
    version: str
    plan: str
    request: str
    target: GDP
    loss: GDP
    sigma: float | None
    tau: float | None
    looks: tuple[int, ...]
    state: str
    measurement: Measurement | None


class Ledger:
    """A durable list of charges, shared by every kernel that opens the same file.

    Parameters
    ----------
    path : str or path
        The file; made if there is none.  ``":memory:"`` forgets everything with the process.
    promise : mapping of str to str
        What was promised about which table; a file made for another promise is refused.
    settings : mapping of str to str
        Figures that belong to a new file; an old one keeps its own.

    Raises
    ------
    LedgerError
        The file cannot be opened, is no ledger, was made for another promise, or was altered.
    """

    def __init__(
        self, path: str | os.PathLike[str], promise: Mapping[str, str], settings: Mapping[str, str] | None = None
    ) -> None:
        self.path = str(path) if str(path) == MEMORY else str(Path(path).absolute())
        self.lock = threading.RLock()
        self._connection = self._connect()
        with self._translated():
            self._prepare()
            if not self._has_tables():
                self._create(promise, settings or {})
            self._check_promise(promise)
            self._verify()

    # --- opening -----------------------------------------------------------------------------------------------

    def _connect(self) -> sqlite3.Connection:
        try:
            return sqlite3.connect(self.path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)
        except sqlite3.Error as error:
            raise LedgerError(
                f"ledger {self.path!r}: cannot be opened ({error}); its folder must exist and be writable"
            ) from None

    def _prepare(self) -> None:
        application, tables = self._pragma("application_id"), self._table_names()
        if tables and (application != APPLICATION_ID or self._pragma("user_version") != FORMAT):
            kind = f"format {self._pragma('user_version')}" if application == APPLICATION_ID else "another program's"
            raise LedgerError(
                f"ledger {self.path!r}: must be a dpnb ledger of format {FORMAT}; it is {kind}; give another file name"
            )
        if self.path != MEMORY:
            self._set_journal_mode(_journal_mode(self.path))
        self._connection.execute("PRAGMA synchronous = FULL")

    def _set_journal_mode(self, mode: str) -> None:
        deadline = time.monotonic() + BUSY_SECONDS
        while str(self._pragma("journal_mode")).upper() != mode:
            try:
                self._connection.execute(f"PRAGMA journal_mode = {mode}")
            except sqlite3.OperationalError:  # another kernel is opening the file; SQLite does not wait here by itself
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def _create(self, promise: Mapping[str, str], settings: Mapping[str, str]) -> None:
        with self.transaction():
            if self._has_tables():  # another kernel was quicker
                return
            for statement in TABLES.split(";")[:-1]:
                self._connection.execute(statement)
            self._connection.executemany("INSERT INTO promise VALUES (?, ?)", sorted(promise.items()))
            self._connection.executemany("INSERT INTO settings VALUES (?, ?)", sorted(settings.items()))
            self._connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._connection.execute(f"PRAGMA user_version = {FORMAT}")

    def _check_promise(self, promise: Mapping[str, str]) -> None:
        stored = self.promise
        for name in sorted({*stored, *promise}):
            if stored.get(name) != promise.get(name):
                raise LedgerError(
                    f"ledger {self.path!r}: was made for another {name}; it says {stored.get(name)}, the session says "
                    f"{promise.get(name)}; a promise cannot change once it is made: restore the {name}, or give this "
                    "session a ledger= of its own (its budget is then spent in addition)"
                )

    def _verify(self) -> None:
        previous = self._genesis()
        for expected, row in enumerate(self._connection.execute("SELECT * FROM charges ORDER BY id"), start=1):
            stored = dict(zip(_COLUMNS, row, strict=True))
            chained = _digest([previous, *(stored[name] for name in _RESERVED)])
            result = _digest([chained, stored["state"], stored["measurement"]])
            if stored["id"] != expected or (chained, result) != (stored["hash"], stored["result_hash"]):
                raise LedgerError(
                    f"ledger {self.path!r}: row {expected} is not what was written; the file was altered; "
                    "restore it from a copy that has every charge"
                )
            previous = chained

    def _genesis(self) -> str:
        return _digest([self.promise, self.settings])

    def _table_names(self) -> list[str]:
        return [name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]

    def _has_tables(self) -> bool:
        return bool(self._table_names())

    def _pragma(self, name: str) -> Any:
        return self._connection.execute(f"PRAGMA {name}").fetchone()[0]

    # --- reading -----------------------------------------------------------------------------------------------

    @property
    def promise(self) -> dict[str, str]:
        """What the file was made for."""
        with self._translated():
            return dict(self._connection.execute("SELECT name, value FROM promise"))

    @property
    def settings(self) -> dict[str, str]:
        """Figures that were fixed when the file was made."""
        with self._translated():
            return dict(self._connection.execute("SELECT name, value FROM settings"))

    def charges(self, after: int = 0) -> list[Charge]:
        """Rows with a larger id than `after`, in order."""
        return self._select("WHERE id > ? ORDER BY id", after)

    def latest(self, most: int) -> list[Charge]:
        """The last rows, newest first."""
        return self._select("ORDER BY id DESC LIMIT ?", most)

    def find(self, key: str) -> Charge | None:
        """The row of a request, if it was ever made."""
        found = self._select("WHERE key = ?", key)
        return found[0] if found else None

    def looks(self, version: str, plan: str) -> list[Charge]:
        """Rows that hold a released measurement of a question, in order."""
        return self._select("WHERE version = ? AND plan = ? AND measurement IS NOT NULL ORDER BY id", version, plan)

    def by_id(self, ids: tuple[int, ...]) -> list[Charge]:
        """The rows with these ids, in order."""
        marks = ", ".join("?" * len(ids))
        return self._select(f"WHERE id IN ({marks}) ORDER BY id", *ids)

    def _select(self, clause: str, *arguments: object) -> list[Charge]:
        with self.lock, self._translated():
            rows = self._connection.execute(f"SELECT * FROM charges {clause}", arguments).fetchall()  # noqa: S608  (our own text)
        return [_charge(dict(zip(_COLUMNS, row, strict=True))) for row in rows]

    # --- writing -----------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep every other thread and kernel from writing until the block is done; an exception undoes the block.

        On leaving the block what it wrote is on disk.
        """
        with self.lock, self._translated():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    def reserve(
        self,
        *,
        key: str,
        version: str,
        plan: str,
        request: str,
        target: GDP,
        loss: GDP,
        sigma: float | None,
        tau: float | None,
        looks: tuple[int, ...],
    ) -> Charge:
        """Write a charge; call inside `transaction`, after the filter has admitted the loss.

        With ``sigma=None`` nothing will be measured and the row is released at once; otherwise its own id is added to
        `looks`.
        """
        last = self._connection.execute("SELECT id, hash FROM charges ORDER BY id DESC LIMIT 1").fetchone()
        number, previous = (last[0] + 1, last[1]) if last else (1, self._genesis())
        stored: dict[str, Any] = {
            "id": number,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "key": key,
            "version": version,
            "plan": plan,
            "request": request,
            "target": to_text(target.mu_squared),
            "loss": json.dumps(loss.to_json()),
            "sigma": None if sigma is None else sigma.hex(),
            "tau": None if tau is None else tau.hex(),
            "looks": json.dumps(looks if sigma is None else [*looks, number]),
        }
        stored["hash"] = _digest([previous, *(stored[name] for name in _RESERVED)])
        stored["state"] = "released" if sigma is None else "reserved"
        stored["measurement"] = None
        stored["result_hash"] = _digest([stored["hash"], stored["state"], None])
        self._connection.execute(_INSERT, [stored[name] for name in _COLUMNS])
        return _charge(stored)

    def release(self, charge: Charge, measurement: Measurement) -> Charge:
        """Write the released values of a charge, unless it has some; return the row as it stands.

        Two kernels may answer one charge; the first to write wins, and the other's values are never shown.
        """
        self._finish(charge, "released", json.dumps(measurement.to_json()))
        return self.by_id((charge.id,))[0]

    def fail(self, charge: Charge) -> None:
        """Note that a charge could not be answered; it stays charged."""
        self._finish(charge, "failed", None)

    def _finish(self, charge: Charge, state: str, measurement: str | None) -> None:
        with self.transaction():
            found = self._connection.execute("SELECT hash FROM charges WHERE id = ?", [charge.id]).fetchone()
            self._connection.execute(
                "UPDATE charges SET state = ?, measurement = ?, result_hash = ? WHERE id = ? AND state != 'released'",
                [state, measurement, _digest([found[0], state, measurement]), charge.id],
            )

    def close(self) -> None:
        """Close the file; the ledger cannot be used afterwards."""
        with self.lock:
            self._connection.close()

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            self._unusable(error)

    def _unusable(self, error: sqlite3.Error) -> NoReturn:
        busy = "locked" in str(error) or "busy" in str(error)
        remedy = (
            f"another kernel has held it for {BUSY_SECONDS:.0f} seconds; interrupt or restart that kernel"
            if busy
            else "give the path of a dpnb ledger, or of a file that does not exist yet in a folder you can write to"
        )
        raise LedgerError(f"ledger {self.path!r}: cannot be used ({error}); {remedy}") from None


_RESERVED = ("id", "time", "key", "version", "plan", "request", "target", "loss", "sigma", "tau", "looks")
_COLUMNS = (*_RESERVED, "hash", "state", "measurement", "result_hash")
_INSERT = f"INSERT INTO charges VALUES ({', '.join('?' * len(_COLUMNS))})"  # noqa: S608  (marks alone)


def _charge(stored: Mapping[str, Any]) -> Charge:
    try:
        measurement = stored["measurement"]
        return Charge(
            id=stored["id"],
            time=stored["time"],
            key=stored["key"],
            version=stored["version"],
            plan=stored["plan"],
            request=stored["request"],
            target=GDP.from_squared(from_text(stored["target"])),
            loss=loss_from_json(json.loads(stored["loss"])),
            sigma=None if stored["sigma"] is None else float.fromhex(stored["sigma"]),
            tau=None if stored["tau"] is None else float.fromhex(stored["tau"]),
            looks=tuple(json.loads(stored["looks"])),
            state=stored["state"],
            measurement=None if measurement is None else Measurement.from_json(json.loads(measurement)),
        )
    except (DpnbError, ValueError, TypeError, KeyError) as error:
        raise LedgerError(f"ledger: row {stored.get('id')} cannot be read ({type(error).__name__})") from None


def _digest(content: object) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def _journal_mode(path: str) -> str:
    """WAL needs memory shared between the processes, which a network file system does not give."""
    return "DELETE" if _file_system(path) in NETWORK_FILE_SYSTEMS or path.startswith("\\\\") else "WAL"


def _file_system(path: str) -> str:
    """Type of the file system that holds a path, where the machine tells (Linux); else an empty text."""
    try:
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ""
    best, kind = "", ""
    resolved = os.path.realpath(path)
    for line in mounts:
        before, _, after = line.partition(" - ")
        point = before.split()[4].replace("\\040", " ")
        inside = resolved == point or resolved.startswith(point.rstrip("/") + "/")
        if inside and len(point) >= len(best) and after:
            best, kind = point, after.split()[0]
    return kind.removeprefix("fuse.")
