"""The list of charges, and what it was promised for."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from dpnb.accounting.exact import to_text
from dpnb.accounting.losses import GDP, Loss
from dpnb.copying import NotCopyable
from dpnb.errors import LedgerError
from dpnb.ledger import chain
from dpnb.ledger import charge as row
from dpnb.ledger.chain import Link
from dpnb.ledger.charge import Charge, Entry, chained_hash, charge_of, entry_of, result_hash
from dpnb.ledger.durable import DurableFile
from dpnb.mechanisms.measurement import Measurement

FORMAT = 4
"""1 to 3 were development versions': this one cannot read the plans of the first, the second named no cell, and the
third knew no interactive mechanisms.  Whoever changes what a plan makes of a unit's rows (which count, weights, steps)
raises it too: under individual accounting what each unit has paid is worked out from the plans once more."""
TABLES = f"""
CREATE TABLE promise (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE last (id INTEGER NOT NULL, hash TEXT NOT NULL);
{row.TABLE}
"""
_COLUMNS = ", ".join(row.COLUMNS)
_ENTRY_COLUMNS = ", ".join(row.ENTRY_COLUMNS)
_INSERT = f"INSERT INTO charges ({_COLUMNS}) VALUES ({', '.join('?' * len(row.COLUMNS))})"  # noqa: S608  (our own text)


class Ledger(NotCopyable):
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
        The file cannot be opened or written, is no ledger, was made for another promise, or was altered.
    """

    _not_copied = "it is the record of a budget that is spent once; open the file again, which gives the same ledger"

    _followed: Link | None
    """How far the chain has been verified; None while the file is being made."""

    def __init__(
        self, path: str | os.PathLike[str], promise: Mapping[str, str], settings: Mapping[str, str] | None = None
    ) -> None:
        self._use(DurableFile(path, TABLES, FORMAT))
        try:
            if self._file.is_new():
                self._create(promise, settings or {})
            self._followed = chain.start(self.path, self.promise, self.settings)
            self._check_promise(promise)
            self._verify()
        except BaseException:
            self.close()
            raise

    @classmethod
    def copied(cls, path: str | os.PathLike[str]) -> Ledger:
        """A copy in memory of what a ledger holds now, whatever it was made for: to be read and never written.

        The file is left as it is.  What other kernels write from now on is not seen.

        Parameters
        ----------
        path : str or path
            Of a file that is there.

        Raises
        ------
        LedgerError
            The file is missing, empty or no ledger, cannot be read, or was altered.
        """
        ledger = object.__new__(cls)
        ledger._use(DurableFile(path, TABLES, FORMAT, copied=True))
        try:
            if ledger._file.is_new():
                raise LedgerError(f"ledger {ledger.path!r}: must hold a promise, and is empty; give a session's ledger")
            ledger._followed = chain.start(ledger.path, ledger.promise, ledger.settings)
            ledger._verify()
            ledger._file.run("PRAGMA query_only = ON")
        except BaseException:
            ledger.close()
            raise
        return ledger

    def _use(self, file: DurableFile) -> None:
        self._file, self.path, self.lock = file, file.path, file.lock
        self._entries: list[Entry] = []  # of rows 1, 2, ...; they are read once, whoever counts them
        self._unwritten: int | None = None  # first row of a transaction that has not been committed
        self._followed = None
        self._reserved: Link | None = None  # the end of the chain once a transaction is committed

    # --- opening -----------------------------------------------------------------------------------------------

    def _create(self, promise: Mapping[str, str], settings: Mapping[str, str]) -> None:
        with self.transaction():
            if not self._file.create():
                return
            for item in sorted(promise.items()):
                self._file.run("INSERT INTO promise VALUES (?, ?)", *item)
            for item in sorted(settings.items()):
                self._file.run("INSERT INTO settings VALUES (?, ?)", *item)
            self._file.run("INSERT INTO last VALUES (0, ?)", chain.start(self.path, self.promise, self.settings).hash)

    def _check_promise(self, promise: Mapping[str, str]) -> None:
        stored = self.promise
        for name in sorted({*stored, *promise}):
            if stored.get(name) != promise.get(name):
                raise LedgerError(
                    f"ledger {self.path!r}: was made for another {name}; it says {stored.get(name)}, the session says "
                    f"{promise.get(name)}; a promise cannot change once it is made: give the {name} of the ledger, or "
                    "this session a ledger= of its own (its budget is then spent in addition)"
                )

    def _verify(self) -> None:
        """Verify the chain from the promise to the last row, as every transaction does."""
        with self.transaction():
            self._file.touch()  # a file that cannot be written fails now, not at a charge

    # --- reading -----------------------------------------------------------------------------------------------

    @property
    def promise(self) -> dict[str, str]:
        """What the file was made for."""
        return dict(self._file.run("SELECT name, value FROM promise"))

    @property
    def settings(self) -> dict[str, str]:
        """Figures that were fixed when the file was made."""
        return dict(self._file.run("SELECT name, value FROM settings"))

    @property
    def count(self) -> int:
        """How many rows there are."""
        ((last,),) = self._file.run("SELECT id FROM last")
        return int(last)

    def entries(self, after: int = 0) -> list[Entry]:
        """What counts of the rows with a larger id than `after`, in order; only of such as are on disk.

        A row that is being written may yet be undone, and whoever has counted it would be ahead of the ledger for ever.
        """
        with self.lock:
            clause, arguments = self._written(len(self._entries))
            rows = self._file.run(f"SELECT {_ENTRY_COLUMNS} FROM charges {clause}", *arguments)  # noqa: S608
            self._entries += [entry_of(values) for values in rows]
            return self._entries[after:]

    def charges(self, after: int = 0) -> list[Charge]:
        """Rows with a larger id than `after`, in order; only such as are on disk, as in `entries`."""
        with self.lock:
            clause, arguments = self._written(after)
            return self._select(clause, *arguments)

    def _written(self, after: int) -> tuple[str, tuple[int, ...]]:
        """Which rows are on disk and have a larger id."""
        if self._unwritten is None:
            return "WHERE id > ? ORDER BY id", (after,)
        return "WHERE id > ? AND id < ? ORDER BY id", (after, self._unwritten)

    def find(self, key: str) -> Charge | None:
        """The row of a request, if it was ever made."""
        found = self._select("WHERE key = ?", key)
        return found[0] if found else None

    def looks(self, version: str, branch: str, question: str) -> list[Charge]:
        """Rows that hold a released measurement of a question, in order."""
        return self._select(
            "WHERE version = ? AND branch = ? AND question = ? AND sigma IS NOT NULL AND measurement IS NOT NULL "
            "ORDER BY id",
            *(version, branch, question),
        )

    def unanswered(self, version: str, branch: str, question: str) -> list[Charge]:
        """Rows that were charged for a measurement of a question and hold none, in order."""
        return self._select(
            "WHERE version = ? AND branch = ? AND question = ? AND sigma IS NOT NULL AND measurement IS NULL "
            "ORDER BY id",
            *(version, branch, question),
        )

    def on_branch(self, branch: str, after: int = 0) -> list[Charge]:
        """Rows of one branch with a larger id than `after`, in order."""
        return self._select("WHERE branch = ? AND id > ? ORDER BY id", branch, after)

    def by_id(self, ids: tuple[int, ...]) -> list[Charge]:
        """The rows with these ids, in order."""
        marks = ", ".join("?" * len(ids))
        return self._select(f"WHERE id IN ({marks}) ORDER BY id", *ids)

    def _select(self, clause: str, *arguments: object) -> list[Charge]:
        rows = self._file.run(f"SELECT {_COLUMNS} FROM charges {clause}", *arguments)  # noqa: S608  (our own text)
        return [charge_of(dict(zip(row.COLUMNS, values, strict=True))) for values in rows]

    # --- writing -----------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep every other thread and kernel from writing until the block is done; an exception undoes the block.

        On leaving the block what it wrote is on disk.
        """
        with self.lock:
            try:
                with self._file.transaction():
                    if self._followed is not None:  # else the file is being made
                        self._followed = chain.followed(self._file, self._followed)
                    yield
                self._followed = self._reserved or self._followed
            finally:
                self._unwritten = self._reserved = None

    def reserve(
        self,
        *,
        key: str,
        version: str,
        question: str,
        loss: Loss,
        branch: str = "",
        plan: str = "",
        request: str = "",
        target: GDP = GDP(0),  # noqa: B008  (frozen)
        sigma: float | None = None,
        tau: float | None = None,
        looks: tuple[int, ...] = (),
        cell: str | None = None,
        launch: Mapping[str, Any] | None = None,
        said: Mapping[str, Any] | None = None,
    ) -> Charge:
        """Write a charge; call inside `transaction`, after the filter has admitted the loss.

        With ``sigma=None`` nothing will be measured and the row is released at once, with what it says; otherwise its
        own id is added to `looks`.
        """
        ((last, previous),) = self._file.run("SELECT id, hash FROM last")
        number = last + 1
        self._unwritten = number if self._unwritten is None else self._unwritten
        stored: dict[str, Any] = {
            "id": number,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "key": key,
            "branch": branch,
            "version": version,
            "question": question,
            "plan": plan,
            "request": request,
            "target": to_text(target.mu_squared),
            "loss": json.dumps(loss.to_json()),
            "sigma": None if sigma is None else sigma.hex(),
            "tau": None if tau is None else tau.hex(),
            "looks": json.dumps(looks if sigma is None else [*looks, number]),
            "cell": cell,
            "launch": None if launch is None else json.dumps(launch),
        }
        stored["hash"] = chained_hash(previous, stored)
        stored["state"] = "released" if sigma is None else "reserved"
        stored["measurement"] = None if said is None else json.dumps(said)
        stored["result_hash"] = result_hash(stored["hash"], stored["state"], stored["measurement"])
        self._file.run(_INSERT, *(stored[name] for name in row.COLUMNS))
        self._file.run("UPDATE last SET id = ?, hash = ?", number, stored["hash"])
        self._reserved = Link(number, stored["hash"])
        return charge_of(stored)

    def release(
        self, charge: Charge, measurement: Measurement, keys: tuple[tuple[Any, ...], ...] | None = None
    ) -> Charge:
        """Write the released values of a charge, and their keys if those are released too; return the row as it stands.

        Two kernels may answer one charge; the first to write wins, and the other's values are never shown.
        """
        content = {**measurement.to_json(), **({} if keys is None else {"keys": keys})}
        self._finish(charge, "released", json.dumps(content))
        return self.by_id((charge.id,))[0]

    def fail(self, charge: Charge) -> None:
        """Note that a charge could not be answered; it stays charged."""
        self._finish(charge, "failed", None)

    def _finish(self, charge: Charge, state: str, measurement: str | None) -> None:
        with self.transaction():
            ((chained,),) = self._file.run("SELECT hash FROM charges WHERE id = ?", charge.id)
            self._file.run(
                "UPDATE charges SET state = ?, measurement = ?, result_hash = ? WHERE id = ? AND state != 'released'",
                state,
                measurement,
                result_hash(chained, state, measurement),
                charge.id,
            )

    def close(self) -> None:
        """Close the file; the ledger cannot be used afterwards.  A ledger that is no longer used closes itself."""
        if self.lock.is_ours:  # a fork has nothing to close
            with self.lock:
                self._file.close()
