"""The list of charges, and the guarantee that it was created for."""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from dpnb.accounting.exact import to_text
from dpnb.accounting.losses import GDP, Loss, PureGDP
from dpnb.copying import NotCopyable, safe_repr
from dpnb.errors import LedgerError, StorageFull
from dpnb.ledger import chain
from dpnb.ledger import charge as row
from dpnb.ledger.chain import ChainHead
from dpnb.ledger.charge import Charge, ChargeSummary, chained_hash, charge_of, result_hash, summary_of
from dpnb.ledger.connection import MEMORY
from dpnb.ledger.node import ROOT
from dpnb.ledger.origin import RequestOrigin, current_origin, refuse_beyond_room
from dpnb.ledger.row_times import RowTimes
from dpnb.ledger.sqlite_file import SqliteFile
from dpnb.mechanisms.measurement import Measurement
from dpnb.threads import end_if_asked

FORMAT = 6
"""1 to 5 were development versions.  A change in how a plan uses a unit's rows (which count, weights, steps) raises it
too: under individual accounting what each unit has paid is recomputed from the plans."""
TABLES = f"""
CREATE TABLE metadata (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE parameters (key TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE head (id INTEGER NOT NULL, hash TEXT NOT NULL);
{row.TABLE}
"""
MAX_STORED = 10_000
"""Rows that `Ledger.stored` and others return at once; SQLite limits the number of ids."""
MOMENT = 1.0
"""Seconds of `Ledger.one_moment` at most, so that an interrupt at its end has no effect after that."""
_COLUMNS = ", ".join(row.COLUMNS)
_OBSERVED = "WHERE table_version = ? AND node = ? AND query_key = ? AND sigma IS NOT NULL AND result IS NOT NULL"
_LENGTH = "OCTET_LENGTH" if sqlite3.sqlite_version_info >= (3, 43) else "LENGTH"  # which reads the whole text
_SIZE = " + ".join(f"{_LENGTH}(COALESCE({name}, ''))" for name in row.COLUMNS if name != "id")
INSERT = f"INSERT INTO events ({_COLUMNS}) VALUES ({', '.join('?' * len(row.COLUMNS))})"  # noqa: S608  (our own text)


class _Moment(threading.local):
    """The time until which this thread does not look for new rows."""

    end = 0.0


class Ledger(NotCopyable):
    """A durable list of charges, shared by every kernel that opens the same file.

    Parameters
    ----------
    path : str or path
        The file, created if it does not exist.  ``":memory:"`` keeps the ledger in memory only.
    metadata : mapping of str to str
        The metadata: table, privacy unit, budget and filter; a file created with other metadata is refused.
    parameters : mapping of str to str, optional
        The parameters of a new file; an existing file keeps its own.

    Raises
    ------
    LedgerError
        If the file cannot be opened or written, is not a ledger, was created with other metadata, or was altered.
    """

    _not_copied = "it is the record of a budget that is spent once; open the file again, which gives the same ledger"

    _followed: ChainHead | None
    """The last verified row of the chain; None while the file is being created."""

    def __init__(
        self, path: str | os.PathLike[str], metadata: Mapping[str, str], parameters: Mapping[str, str] | None = None
    ) -> None:
        self._use(SqliteFile(path, TABLES, FORMAT))
        try:
            if self._file.is_new():
                self._create(metadata, parameters or {})
            self._followed = chain.chain_start(self.path, self.metadata, self.parameters)
            self._refuse_other_metadata(metadata)
            self._verify()
        except BaseException:
            self.close()
            raise

    @classmethod
    def read_only_copy(cls, path: str | os.PathLike[str]) -> Ledger:
        """A read-only copy in memory of the current content of a ledger, with whatever metadata it has.

        The file is not changed.  Later writes of other kernels are not visible in the copy.

        Parameters
        ----------
        path : str or path
            Path of an existing file.

        Raises
        ------
        LedgerError
            If the file is missing, empty, unreadable, not a ledger, or was altered.
        """
        ledger = object.__new__(cls)
        ledger._use(SqliteFile(path, TABLES, FORMAT, copied=True))
        try:
            if ledger._file.is_new():
                raise LedgerError(f"ledger {ledger.path!r}: must be a session's ledger; it is empty; give another path")
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

    @property
    def short_name(self) -> str:
        """The name of the file, without its folder."""
        return "memory" if self.path == MEMORY else Path(self.path).name

    def _use(self, file: SqliteFile) -> None:
        self._file, self.path, self.lock = file, file.path, file.lock
        self._summaries: list[ChargeSummary] = []  # of rows 1, 2, ...; each row is read only once
        self._unwritten: int | None = None  # first row of a transaction that has not been committed
        self._followed = None
        self._new: list[ChargeSummary] = []  # of the rows of the current transaction
        self._moment = _Moment()
        self._times = RowTimes()
        self._time: str | None = None  # of the current transaction
        self._committed: Callable[[ChainHead], None] = lambda head: None
        self._is_writing = False
        self._reserved: ChainHead | None = None  # the end of the chain once the transaction is committed

    # --- opening -----------------------------------------------------------------------------------------------

    def _create(self, metadata: Mapping[str, str], parameters: Mapping[str, str]) -> None:
        with self.transaction():
            if not self._file.create():
                return
            for item in sorted(metadata.items()):
                self._file.run("INSERT INTO metadata VALUES (?, ?)", *item)
            for item in sorted(parameters.items()):
                self._file.run("INSERT INTO parameters VALUES (?, ?)", *item)
            self._file.run(
                "INSERT INTO head VALUES (0, ?)", chain.chain_start(self.path, self.metadata, self.parameters).hash
            )

    def _refuse_other_metadata(self, metadata: Mapping[str, str]) -> None:
        stored = self.metadata
        for name in sorted({*stored, *metadata}):
            if stored.get(name) != metadata.get(name):
                raise LedgerError(
                    f"ledger {self.path!r}: was created for another {name}; it has {stored.get(name)}, the session has "
                    f"{metadata.get(name)}; the guarantee of a ledger cannot change: use the {name} of the ledger, or "
                    "give this session another ledger= (its budget is then spent in addition)"
                )

    def _verify(self) -> None:
        """Verify the chain from the metadata to the last row, as every transaction does."""
        with self.transaction():
            self._file.touch()  # so that a file that cannot be written fails now, not at a charge

    # --- reading -----------------------------------------------------------------------------------------------

    @property
    def metadata(self) -> dict[str, str]:
        """The table, privacy unit, budget and filter that the file was created for."""
        return dict(self._file.run("SELECT key, value FROM metadata"))

    @property
    def parameters(self) -> dict[str, str]:
        """Numbers that were fixed when the file was created."""
        return dict(self._file.run("SELECT key, value FROM parameters"))

    @property
    def time(self) -> str:
        """The time now, by the clock; in a transaction, that of its beginning.  Decisions use `time_in`."""
        with self.lock.checked():
            if self._is_writing and self._time is not None:
                return self._time
            time = _time_of_row()
            self._time = time if self._is_writing else None
            return time

    def time_in(self, node: str = ROOT) -> str:
        """The time now, as the rows of a node have it; in a transaction, the time of all rows that it writes there.

        What is admitted until a certain time is so decided by the time that its row records.  It is never earlier than
        that of an earlier row, whatever the clock says; in a reserved part, than that of an earlier row of this part.
        """
        with self.lock.checked():
            rows = self.summaries(after=self._times.last_id)
            times = self.times(after=self._times.last_id) if rows else {}
            for one in rows:
                self._times.add(one, times.get(one.id, ""))
            return max(self.time, self._times.latest(self._times.scope(node)))

    def times(self, after: int = 0) -> dict[int, str]:
        """The times of the rows with an id larger than `after` by their ids."""
        return dict(self._file.run("SELECT id, time FROM events WHERE id > ? ORDER BY id", after))

    @property
    def last(self) -> ChainHead:
        """The number and the hash of the last row."""
        ((number, chained),) = self._file.run("SELECT id, hash FROM head")
        return ChainHead(int(number), str(chained))

    @property
    def count(self) -> int:
        """The number of rows."""
        return self.last.number

    @property
    def head(self) -> str:
        """The hash of the last row, which depends on all rows."""
        return self.last.hash

    def has(self, head: ChainHead) -> bool:
        """Whether the row with this number has this hash; true before the first row."""
        return not head.number or self._file.run("SELECT hash FROM events WHERE id = ?", head.number) == [(head.hash,)]

    def follow(self, committed: Callable[[ChainHead], None]) -> None:
        """Call a function with the last row after each transaction of this connection that has written rows."""
        self._committed = committed

    def foreign_changes(self) -> int:
        """A number that changes when another connection, of this or another process, has changed the file."""
        ((version,),) = self._file.run("PRAGMA data_version")
        return int(version)

    def summaries(self, after: int = 0, *, until: int | None = None) -> list[ChargeSummary]:
        """Summaries of the committed rows with an id larger than `after`, in order.

        A row that is being written may still be rolled back, and a caller that had counted it would stay ahead of the
        ledger.  If `until` is given, rows after that one may be missing: those of other kernels are not looked for if
        it is known.
        """
        with self.lock.checked():
            if not self._has_all_summaries() and not (until is not None and until <= len(self._summaries)):
                clause, arguments = self._written(len(self._summaries))
                rows = self._file.run(f"SELECT {row.SUMMARY_COLUMNS} FROM events {clause}", *arguments)  # noqa: S608
                self._summaries += [summary_of(values) for values in rows]
            return self._summaries[after:]

    def summary(self, number: int) -> ChargeSummary:
        """The summary of a committed row."""
        with self.lock.checked():
            return (self._summaries if number <= len(self._summaries) else self.summaries())[number - 1]

    @contextmanager
    def one_moment(self) -> Iterator[None]:
        """Let this thread look for rows of other kernels once, and read the ledger as it is then until the block ends.

        Only for what is displayed: a transaction always has all rows.
        """
        before = self._moment.end
        if before < time.monotonic():
            self.summaries()
        try:
            self._moment.end = time.monotonic() + MOMENT
            yield
        finally:
            self._moment.end = before

    def _has_all_summaries(self) -> bool:
        """Whether no row is to be looked for.

        In a transaction none is missing, since that has verified the chain and blocks writers.
        """
        if self._is_writing:
            return self._followed is not None and len(self._summaries) >= self._followed.number
        return self._moment.end > time.monotonic()

    def charges(self, after: int = 0) -> list[Charge]:
        """The committed rows with an id larger than `after`, in order."""
        with self.lock.checked():
            clause, arguments = self._written(after)
            return self._select(clause, *arguments)

    def _written(self, after: int) -> tuple[str, tuple[int, ...]]:
        """The SQL clause for committed rows with an id larger than `after`."""
        if self._unwritten is None:
            return "WHERE id > ? ORDER BY id", (after,)
        return "WHERE id > ? AND id < ? ORDER BY id", (after, self._unwritten)

    def by_request_key(self, key: str) -> Charge | None:
        """The row of a request; None if the request was never made."""
        rows = self._select("WHERE request_key = ?", key)
        return rows[0] if rows else None

    def by_request_id(self, node: str, request_id: str) -> Charge | None:
        """The first row in a node that a request at a service wrote, by the id that its client chose."""
        rows = self._select("WHERE node = ? AND request_id = ?", node, request_id)
        return rows[0] if rows else None

    def observations(self, table_version: str, node: str, query_key: str) -> list[Charge]:
        """Rows with a released measurement of a query, in order."""
        return self._select(f"{_OBSERVED} ORDER BY id", *(table_version, node, query_key))

    def count_observations(self, table_version: str, node: str, query_key: str) -> int:
        """The number of rows of `observations`, whose measurements are not read."""
        ((number,),) = self._file.run(
            f"SELECT COUNT(*) FROM events {_OBSERVED}",  # noqa: S608  (our own text)
            *(table_version, node, query_key),
        )
        return int(number)

    def reserved(self) -> list[int]:
        """The ids of the charges that are neither answered nor recorded as failed, in order."""
        return [number for (number,) in self._file.run("SELECT id FROM events WHERE status = 'reserved' ORDER BY id")]

    def unanswered(self, table_version: str, node: str, query_key: str) -> list[Charge]:
        """Rows that were charged for a measurement of a query but have none, in order."""
        return self._select(
            "WHERE table_version = ? AND node = ? AND query_key = ? AND sigma IS NOT NULL AND result IS NULL "
            "ORDER BY id",
            *(table_version, node, query_key),
        )

    def of_node(self, node: str, after: int = 0) -> list[Charge]:
        """Rows of one node with an id larger than `after`, in order."""
        return self._select("WHERE node = ? AND id > ? ORDER BY id", node, after)

    def by_id(self, ids: tuple[int, ...]) -> list[Charge]:
        """The rows with these ids, in order."""
        marks = ", ".join("?" * len(ids))
        return self._select(f"WHERE id IN ({marks}) ORDER BY id", *ids)

    def _select(self, clause: str, *arguments: object) -> list[Charge]:
        rows = self._file.run(f"SELECT {_COLUMNS} FROM events {clause}", *arguments)  # noqa: S608  (our own text)
        return [charge_of(dict(zip(row.COLUMNS, values, strict=True))) for values in rows]

    def stored(self, ids: Sequence[int], columns: tuple[str, ...] = row.COLUMNS) -> list[dict[str, str | int | None]]:
        """The columns of the rows with these ids, at most `MAX_STORED`, as they are stored, in order."""
        clause = f"WHERE id IN ({', '.join('?' * len(ids))}) ORDER BY id"
        rows = self._file.run(f"SELECT {', '.join(columns)} FROM events {clause}", *ids)  # noqa: S608
        return [dict(zip(columns, values, strict=True)) for values in rows]

    def sizes(self, ids: Sequence[int], *, finished: bool = False) -> dict[int, int]:
        """The bytes of the rows with these ids, at most `MAX_STORED`; the rows themselves are not kept in memory.

        If `finished`, only of those that are no longer reserved.
        """
        clause = f"WHERE id IN ({', '.join('?' * len(ids))}){' AND status != ?' if finished else ''}"
        status = ("reserved",) if finished else ()
        return dict(self._file.run(f"SELECT id, {_SIZE} FROM events {clause}", *ids, *status))  # noqa: S608

    def stored_bytes(self, after: int = 0) -> dict[tuple[str, str], int]:
        """The bytes of the rows with an id larger than `after`, by who made the requests and the kind of row."""
        clause = "WHERE id > ? AND actor IS NOT NULL GROUP BY actor, kind"
        rows = self._file.run(f"SELECT actor, kind, SUM({_SIZE}) FROM events {clause}", after)  # noqa: S608
        return {(actor, kind): size for actor, kind, size in rows}

    def words(self, ids: Sequence[int]) -> list[tuple[int, str, str, str | None]]:
        """Id, time, status and stored words of the rows with these ids, at most `MAX_STORED`, in order."""
        clause = f"WHERE id IN ({', '.join('?' * len(ids))}) ORDER BY id"
        return self._file.run(f"SELECT id, time, status, words FROM events {clause}", *ids)  # noqa: S608

    def released_among(self, ids: Sequence[int]) -> set[int]:
        """Those of the rows with these ids, at most `MAX_STORED`, that are released."""
        marks = ", ".join("?" * len(ids))
        return {
            number
            for (number,) in self._file.run(
                f"SELECT id FROM events WHERE id IN ({marks}) AND status = 'released'",  # noqa: S608
                *ids,
            )
        }

    # --- writing -----------------------------------------------------------------------------------------------

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Block all other writers, in any thread or kernel, until the block ends; an exception rolls it back.

        When the block ends, its writes are on disk.
        """
        with self.lock.checked():
            try:
                with self._file.transaction():
                    if self._followed is not None:  # else the file is being created
                        is_next = len(self._summaries) == self._followed.number
                        summaries = self._summaries if is_next else None
                        self._followed = chain.verify_chain(self._file, self._followed, summaries)
                    self._is_writing = True
                    yield
                if self._followed is not None and len(self._summaries) == self._followed.number:
                    self._summaries += self._new
                if self._reserved is not None:
                    self._followed = self._reserved
                    self._committed(self._followed)
            finally:
                self._unwritten = self._reserved = self._time = None
                self._new = []
                self._is_writing = False

    def reserve(
        self,
        *,
        kind: str = row.RELEASE,
        request_key: str,
        table_version: str,
        query_key: str,
        loss: Loss,
        node: str = "",
        plan: str = "",
        arguments: str = "",
        total_loss: GDP = GDP(0),  # noqa: B008  (frozen)
        sigma: float | None = None,
        tau: float | None = None,
        observations: tuple[int, ...] = (),
        cell_id: str | None = None,
        launch: Mapping[str, Any] | None = None,
        result: Mapping[str, Any] | None = None,
        words: str | None = None,
        charged: PureGDP | None = None,
        answered: bool = True,
    ) -> Charge:
        """Write a charge; call inside `transaction`, after the filter has admitted the loss.

        With ``sigma=None`` nothing will be measured, and the row is released at once, with `result` and its `words`,
        unless `answered` is False: then `answer` writes the result.  With a sigma its own id is added to
        `observations`.  The origin of the request is that of `dpnb.ledger.requested_by`.  Work that was asked to end is
        not charged.
        """
        end_if_asked()
        end = self._reserved or self._followed  # verified when the transaction began
        if end is None:  # never: rows are written to a ledger that was created
            raise TypeError("ledger")
        previous, number = end.hash, end.number + 1
        self._unwritten = number if self._unwritten is None else self._unwritten
        stored: dict[str, Any] = {
            "id": number,
            "time": self.time_in(node),
            "kind": kind,
            "request_key": request_key,
            "node": node,
            **self._origin(node),
            "table_version": table_version,
            "query_key": query_key,
            "plan": plan,
            "arguments": arguments,
            "total_mu_squared": to_text(total_loss.mu_squared),
            "loss": json.dumps(loss.to_json()),
            "charged_mu_squared": None if charged is None else to_text(charged.mu_squared),
            "charged_epsilon": None if charged is None else to_text(charged.epsilon),
            "sigma": None if sigma is None else sigma.hex(),
            "tau": None if tau is None else tau.hex(),
            "observations": json.dumps(observations if sigma is None else [*observations, number]),
            "cell_id": cell_id,
            "details": None if launch is None else json.dumps(launch),
        }
        stored["hash"] = chained_hash(previous, stored)
        stored["status"] = "released" if sigma is None and answered else "reserved"
        stored["result"] = None if result is None else json.dumps(result)
        stored["words"] = words
        stored["result_hash"] = result_hash(stored["hash"], stored["status"], stored["result"], words)
        values = tuple(stored[name] for name in row.COLUMNS)
        refuse_beyond_room(sum(len(str(value)) for value in values))
        self._file.run(INSERT, *values)
        self._file.run("UPDATE head SET id = ?, hash = ?", number, stored["hash"])
        self._reserved = ChainHead(number, stored["hash"])
        self._new.append(row.summary_of_row(values))
        return charge_of(stored)

    def _origin(self, node: str) -> dict[str, str | None]:
        """The origin's columns of a new row; the id is stored once for each node, with the first row."""
        origin = current_origin()
        if origin is None:
            return dict.fromkeys(row.ORIGIN_COLUMNS)
        if origin.id is not None and self.by_request_id(node, origin.id) is not None:
            origin = RequestOrigin(origin.actor)
        return dict(zip(row.ORIGIN_COLUMNS, (origin.actor, origin.id, origin.digest), strict=True))

    def release(
        self,
        charge: Charge,
        measurement: Measurement,
        keys: tuple[tuple[Any, ...], ...] | None = None,
        words: str | None = None,
    ) -> Charge:
        """Write the released values of a charge, their keys if those are released too, and the answer in words.

        Return the stored row.  Two kernels may answer one charge; the first to write wins, and the values of the other
        are never shown.
        """
        content = {**measurement.to_json(), **({} if keys is None else {"group_keys": keys})}
        if self._finish(charge, "released", json.dumps(content), words) and keys is None:
            return replace(charge, status="released", measurement=measurement)
        return self.by_id((charge.id,))[0]

    def answer(self, charge: Charge, result: Mapping[str, Any], words: str | None = None) -> Charge:
        """Write the result of a charge that is not a measurement; return the stored row, as `release` does."""
        self._finish(charge, "released", json.dumps(result), words)
        return self.by_id((charge.id,))[0]

    def fail(self, charge: Charge) -> None:
        """Record that a charge could not be answered; it stays charged."""
        self._finish(charge, "failed", None)

    def _finish(self, charge: Charge, status: str, result: str | None, words: str | None = None) -> bool:
        """Write the status and the result of a charge, unless it is released already; whether that was written."""
        try:
            return self._write_end(charge, status, result, words)
        except StorageFull as error:
            full = str(error)
        raise StorageFull(
            f"{full}; the charge stands, and has no answer; repeating the release with the same arguments then uses "
            "the same charge"
        )

    def _write_end(self, charge: Charge, status: str, result: str | None, words: str | None) -> bool:
        with self.transaction():
            ((chained,),) = self._file.run("SELECT hash FROM events WHERE id = ?", charge.id)
            changed = self._file.change(
                "UPDATE events SET status = ?, result = ?, words = ?, result_hash = ? "
                "WHERE id = ? AND status != 'released'",
                *(status, result, words, result_hash(chained, status, result, words), charge.id),
            )
        return bool(changed)

    def close(self) -> None:
        """Close the file; the ledger cannot be used afterwards.  It is also closed when it is garbage-collected."""
        if self.lock.is_own_process:  # a fork must not close it
            with self.lock.checked():
                self._file.close()


def _time_of_row() -> str:
    """The time of a new row.

    Of a request to a service, when it was received: the time of the charge would tell an analyst, to the millisecond,
    when the requests before it ended, and how long that takes depends on rows.
    """
    origin = current_origin()
    received = None if origin is None else origin.received
    return (received or datetime.now(UTC)).isoformat(timespec="milliseconds").replace("+00:00", "Z")
