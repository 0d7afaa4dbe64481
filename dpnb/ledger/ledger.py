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
from dpnb.copying import NotCopyable, safe_repr
from dpnb.errors import LedgerError
from dpnb.ledger import chain
from dpnb.ledger import charge as row
from dpnb.ledger.chain import ChainHead
from dpnb.ledger.charge import Charge, ChargeSummary, chained_hash, charge_of, entry_of, result_hash
from dpnb.ledger.sqlite_file import SqliteFile
from dpnb.mechanisms.measurement import Measurement

FORMAT = 5
"""1 to 4 were development versions'.  A change of what a plan makes of a unit's rows (which count, weights, steps)
raises it too: under individual accounting what each unit has paid is worked out from the plans once more."""
TABLES = f"""
CREATE TABLE metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE parameters (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE head (id INTEGER NOT NULL, hash TEXT NOT NULL);
{row.TABLE}
"""
_COLUMNS = ", ".join(row.COLUMNS)
_INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES ({', '.join('?' * len(row.COLUMNS))})"  # noqa: S608  (our own text)


class Ledger(NotCopyable):
    """A durable list of charges, shared by every kernel that opens the same file.

    Parameters
    ----------
    path : str or path
        The file; made if there is none.  ``":memory:"`` forgets everything with the process.
    metadata : mapping of str to str
        What was promised about which table; a file made for another promise is refused.
    parameters : mapping of str to str
        Figures that belong to a new file; an old one keeps its own.

    Raises
    ------
    LedgerError
        The file cannot be opened or written, is no ledger, was made for another promise, or was altered.
    """

    _not_copied = "it is the record of a budget that is spent once; open the file again, which gives the same ledger"

    _followed: ChainHead | None
    """How far the chain has been verified; None while the file is being made."""

    def __init__(
        self, path: str | os.PathLike[str], promise: Mapping[str, str], settings: Mapping[str, str] | None = None
    ) -> None:
        self._use(SqliteFile(path, TABLES, FORMAT))
        try:
            if self._file.is_new():
                self._create(promise, settings or {})
            self._followed = chain.chain_start(self.path, self.metadata, self.parameters)
            self._check_promise(promise)
            self._verify()
        except BaseException:
            self.close()
            raise

    @classmethod
    def read_only_copy(cls, path: str | os.PathLike[str]) -> Ledger:
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
        ledger._use(SqliteFile(path, TABLES, FORMAT, copied=True))
        try:
            if ledger._file.is_new():
                raise LedgerError(f"ledger {ledger.path!r}: must hold a promise, and is empty; give a session's ledger")
            ledger._followed = chain.chain_start(ledger.path, ledger.metadata, ledger.parameters)
            ledger._verify()
            ledger._file.run("PRAGMA query_only = ON")
        except BaseException:
            ledger.close()
            raise
        return ledger

    @safe_repr
    def __repr__(self) -> str:
        return f"<Ledger {self.path!r}>"

    def _use(self, file: SqliteFile) -> None:
        self._file, self.path, self.lock = file, file.path, file.lock
        self._entries: list[ChargeSummary] = []  # of rows 1, 2, ...; they are read once, whoever counts them
        self._unwritten: int | None = None  # first row of a transaction that has not been committed
        self._followed = None
        self._reserved: ChainHead | None = None  # the end of the chain once a transaction is committed

    # --- opening -----------------------------------------------------------------------------------------------

    def _create(self, promise: Mapping[str, str], settings: Mapping[str, str]) -> None:
        with self.transaction():
            if not self._file.create():
                return
            for item in sorted(promise.items()):
                self._file.run("INSERT INTO metadata VALUES (?, ?)", *item)
            for item in sorted(settings.items()):
                self._file.run("INSERT INTO parameters VALUES (?, ?)", *item)
            self._file.run(
                "INSERT INTO head VALUES (0, ?)", chain.chain_start(self.path, self.metadata, self.parameters).hash
            )

    def _check_promise(self, promise: Mapping[str, str]) -> None:
        stored = self.metadata
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
    def metadata(self) -> dict[str, str]:
        """What the file was made for."""
        return dict(self._file.run("SELECT key, value FROM metadata"))

    @property
    def parameters(self) -> dict[str, str]:
        """Figures that were fixed when the file was made."""
        return dict(self._file.run("SELECT key, value FROM parameters"))

    @property
    def count(self) -> int:
        """How many rows there are."""
        ((last,),) = self._file.run("SELECT id FROM head")
        return int(last)

    def summaries(self, after: int = 0) -> list[ChargeSummary]:
        """What counts of the rows with a larger id than `after`, in order; only of such as are on disk.

        A row that is being written may yet be undone, and whoever has counted it would be ahead of the ledger for ever.
        """
        with self.lock.checked():
            clause, arguments = self._written(len(self._entries))
            rows = self._file.run(f"SELECT {row.ENTRY_COLUMNS} FROM events {clause}", *arguments)  # noqa: S608
            self._entries += [entry_of(values) for values in rows]
            return self._entries[after:]

    def charges(self, after: int = 0) -> list[Charge]:
        """Rows with a larger id than `after`, in order; only such as are on disk, as in `entries`."""
        with self.lock.checked():
            clause, arguments = self._written(after)
            return self._select(clause, *arguments)

    def _written(self, after: int) -> tuple[str, tuple[int, ...]]:
        """Which rows are on disk and have a larger id."""
        if self._unwritten is None:
            return "WHERE id > ? ORDER BY id", (after,)
        return "WHERE id > ? AND id < ? ORDER BY id", (after, self._unwritten)

    def by_request_key(self, key: str) -> Charge | None:
        """The row of a request, if it was ever made."""
        found = self._select("WHERE request_key = ?", key)
        return found[0] if found else None

    def observations(self, version: str, branch: str, question: str) -> list[Charge]:
        """Rows that hold a released measurement of a question, in order."""
        return self._select(
            "WHERE table_version = ? AND node = ? AND query_key = ? AND sigma IS NOT NULL AND result IS NOT NULL "
            "ORDER BY id",
            *(version, branch, question),
        )

    def unanswered(self, version: str, branch: str, question: str) -> list[Charge]:
        """Rows that were charged for a measurement of a question and hold none, in order."""
        return self._select(
            "WHERE table_version = ? AND node = ? AND query_key = ? AND sigma IS NOT NULL AND result IS NULL "
            "ORDER BY id",
            *(version, branch, question),
        )

    def of_node(self, branch: str, after: int = 0) -> list[Charge]:
        """Rows of one branch with a larger id than `after`, in order."""
        return self._select("WHERE node = ? AND id > ? ORDER BY id", branch, after)

    def by_id(self, ids: tuple[int, ...]) -> list[Charge]:
        """The rows with these ids, in order."""
        marks = ", ".join("?" * len(ids))
        return self._select(f"WHERE id IN ({marks}) ORDER BY id", *ids)

    def _select(self, clause: str, *arguments: object) -> list[Charge]:
        rows = self._file.run(f"SELECT {_COLUMNS} FROM events {clause}", *arguments)  # noqa: S608  (our own text)
        return [charge_of(dict(zip(row.COLUMNS, values, strict=True))) for values in rows]

    # --- writing -----------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Keep every other thread and kernel from writing until the block is done; an exception undoes the block.

        On leaving the block what it wrote is on disk.
        """
        with self.lock.checked():
            try:
                with self._file.transaction():
                    if self._followed is not None:  # else the file is being made
                        self._followed = chain.verify_chain(self._file, self._followed)
                    yield
                self._followed = self._reserved or self._followed
            finally:
                self._unwritten = self._reserved = None

    def reserve(
        self,
        *,
        kind: str = row.RELEASE,
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
        ((last, previous),) = self._file.run("SELECT id, hash FROM head")
        number = last + 1
        self._unwritten = number if self._unwritten is None else self._unwritten
        stored: dict[str, Any] = {
            "id": number,
            "time": datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "kind": kind,
            "request_key": key,
            "node": branch,
            **dict.fromkeys(row.RESERVED_FOR_LATER),
            "table_version": version,
            "query_key": question,
            "plan": plan,
            "arguments": request,
            "total_mu_squared": to_text(target.mu_squared),
            "loss": json.dumps(loss.to_json()),
            "sigma": None if sigma is None else sigma.hex(),
            "tau": None if tau is None else tau.hex(),
            "observations": json.dumps(looks if sigma is None else [*looks, number]),
            "cell_id": cell,
            "details": None if launch is None else json.dumps(launch),
        }
        stored["hash"] = chained_hash(previous, stored)
        stored["status"] = "released" if sigma is None else "reserved"
        stored["result"] = None if said is None else json.dumps(said)
        stored["result_hash"] = result_hash(stored["hash"], stored["status"], stored["result"])
        self._file.run(_INSERT, *(stored[name] for name in row.COLUMNS))
        self._file.run("UPDATE head SET id = ?, hash = ?", number, stored["hash"])
        self._reserved = ChainHead(number, stored["hash"])
        return charge_of(stored)

    def release(
        self, charge: Charge, measurement: Measurement, keys: tuple[tuple[Any, ...], ...] | None = None
    ) -> Charge:
        """Write the released values of a charge, and their keys if those are released too; return the row as it stands.

        Two kernels may answer one charge; the first to write wins, and the other's values are never shown.
        """
        content = {**measurement.to_json(), **({} if keys is None else {"group_keys": keys})}
        self._finish(charge, "released", json.dumps(content))
        return self.by_id((charge.id,))[0]

    def fail(self, charge: Charge) -> None:
        """Note that a charge could not be answered; it stays charged."""
        self._finish(charge, "failed", None)

    def _finish(self, charge: Charge, status: str, result: str | None) -> None:
        with self.transaction():
            ((chained,),) = self._file.run("SELECT hash FROM events WHERE id = ?", charge.id)
            self._file.run(
                "UPDATE events SET status = ?, result = ?, result_hash = ? WHERE id = ? AND status != 'released'",
                status,
                result,
                result_hash(chained, status, result),
                charge.id,
            )

    def close(self) -> None:
        """Close the file; the ledger cannot be used afterwards.  A ledger that is no longer used closes itself."""
        if self.lock.is_own_process:  # a fork has nothing to close
            with self.lock.checked():
                self._file.close()
