"""The ledger: charges are written in transactions, then answered; and the guarantee that it was created for."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from dpnb.accounting.exact import to_text
from dpnb.accounting.losses import GDP, Loss, PureGDP
from dpnb.copying import NotCopyable, safe_repr
from dpnb.errors import LedgerError, StorageFull
from dpnb.ledger import chain
from dpnb.ledger import charge as row
from dpnb.ledger.chain import ChainHead
from dpnb.ledger.charge import Charge, ChargeSummary, chained_hash, result_hash, sealed, summary_of
from dpnb.ledger.declared import Declared
from dpnb.ledger.declaring_ledger import DeclaringLedger
from dpnb.ledger.file_format import FORMAT, TABLES
from dpnb.ledger.origin import ROOT, UNCOUNTED, RequestOrigin, current_origin, refuse_beyond_room
from dpnb.ledger.queries import INSERT, UPDATE, DeclarationChange, end_of, refuse_other
from dpnb.ledger.row_times import RowTimes, time_of_row
from dpnb.ledger.sqlite_file import SqliteFile
from dpnb.threads import end_if_asked

MOMENT = 1.0
"""Seconds of `Ledger.one_moment` at most, so that an interrupt at its end has no effect after that."""


class _ReadUntil(threading.local):
    """The time until which this thread does not look for new rows."""

    end = 0.0


class Ledger(DeclaringLedger, NotCopyable):
    """A durable list of charges, shared by every kernel that opens the same file.

    The file is created if it does not exist; ``":memory:"`` keeps the ledger in memory only.  `metadata` has table,
    privacy unit, budget and filter, and `parameters` are those of a new file.  For a file that has others, `change`
    says what is declared from now on, which a row records for a `version` of the table, or refuses them.
    """

    _may_lack_answers = False
    """Whether answers may have been taken out; a session would answer their charges a second time."""

    _not_copied = "it is the record of a budget that is spent once; open the file again, which gives the same ledger"

    def __init__(
        self,
        path: str | os.PathLike[str],
        metadata: Mapping[str, str],
        parameters: Mapping[str, str] | None = None,
        version: str = "",
        change: DeclarationChange = refuse_other,
    ) -> None:
        self._use(SqliteFile(path, TABLES, FORMAT))
        try:
            if self._file.is_new():
                self._create(metadata, parameters or {})
            self.refuse_redacted()
            self._followed = chain.chain_start(self.path, *self.created)
            self._verify(lambda: self._declare(Declared(metadata, parameters or {}), version, change))
        except BaseException:
            self.close()
            raise

    @classmethod
    def read_only_copy(cls, path: str | os.PathLike[str]) -> Ledger:
        """A read-only copy in memory of the current content of a ledger, with whatever metadata it has.

        The file must exist and is not changed.  Later writes of other kernels are not visible in the copy.  Not in a
        process that may be writing the ledger: to close a file that it has read ends all its locks of the file.
        """
        ledger = object.__new__(cls)
        ledger._use(SqliteFile(path, TABLES, FORMAT, copied=True))
        try:
            if ledger._file.is_new():
                raise LedgerError(f"ledger {ledger.path!r}: must be a session's ledger; it is empty; give another path")
            ledger._followed = chain.chain_start(ledger.path, *ledger.created)
            ledger._may_lack_answers = True
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
        self._summaries: list[ChargeSummary] = []  # of rows 1, 2, ...; each row is read only once
        self._unwritten: int | None = None  # first row of a transaction that has not been committed
        self._followed = None
        self._agreed: ChainHead | None = None  # the end of the chain up to which nothing has replaced that
        self._new: list[ChargeSummary] = []  # of the rows of the current transaction
        self._moment = _ReadUntil()
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
            self._file.run("INSERT INTO head VALUES (0, ?)", chain.chain_start(self.path, *self.created).hash)

    def _verify(self, declare: Callable[[], None] = lambda: None) -> None:
        """Verify the whole chain, as every transaction does with what is new; then declare."""
        with self.transaction():
            self._file.touch()  # so that a file that cannot be written fails now, not at a charge
            declare()

    # --- reading -----------------------------------------------------------------------------------------------

    @property
    def time(self) -> str:
        """The time now, by the clock; in a transaction, as it was first read there.  Decisions use `time_in`."""
        with self.lock.checked():
            if self._is_writing and self._time is not None:
                return self._time
            time = time_of_row()
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

    def follow(self, committed: Callable[[ChainHead], None]) -> None:
        """Call a function with the last row after each transaction of this connection that has written rows."""
        self._committed = committed

    def summaries(self, after: int = 0, *, until: int | None = None) -> list[ChargeSummary]:
        """Summaries of the committed rows with an id larger than `after`, in order.

        A row that is being written may still be rolled back, and a caller that had counted it would stay ahead of the
        ledger.  If `until` is given, rows after that one may be missing: those of other kernels are not looked for if
        it is known.
        """
        with self.lock.checked():
            known = len(self._summaries)
            if self._is_writing:  # the transaction has verified the chain and blocks writers
                has_all = self._followed is not None and known >= self._followed.number
            else:
                has_all = self._moment.end > time.monotonic()
            if not (has_all or (until is not None and until <= known)):
                clause, arguments = self._written(known)
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
                        self._followed = chain.verify_chain(
                            self._file, self._followed, summaries, may_lack_answers=self._may_lack_answers
                        )
                    self._is_writing = True
                    yield
                if self._followed is not None and len(self._summaries) == self._followed.number:
                    self._summaries += self._new
                if self._reserved is not None:
                    self._returns = self._returns and not self._has_returned
                    self._followed = self._agreed = self._reserved
                    self._committed(self._followed)
            finally:
                self._unwritten = self._reserved = self._time = None
                self._new = []
                self._is_writing = self._has_returned = False

    def reserve(
        self,
        *,
        kind: str = row.RELEASE,
        request_key: str,
        table_version: str,
        query_key: str,
        loss: Loss,
        node: str = "",
        request: str = "",
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
        if self._returns or self._followed is not self._agreed:  # others have written
            self._declare_before(kind)
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
            "request": request,
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
        stored["salt"], stored["answer_digest"] = sealed(stored["result"], words)
        stored["result_hash"] = result_hash(stored["hash"], stored["status"], stored["answer_digest"])
        values = row.columns_of(stored)
        if current_origin() is not None:
            refuse_beyond_room(sum(map(len, map(str, values))))
        self._file.run(INSERT, *values)
        self._file.run("UPDATE head SET id = ?, hash = ?", number, stored["hash"])
        self._reserved = ChainHead(number, stored["hash"])
        summary = row.summary_of_row(values)
        self._new.append(summary)
        return Charge(
            id=number,
            time=stored["time"],
            kind=kind,
            request_key=request_key,
            node=node,
            table_version=table_version,
            query_key=query_key,
            request=request,
            total_loss=total_loss,
            loss=loss,
            sigma=sigma,
            tau=tau,
            observations=observations if sigma is None else (*observations, number),
            status=stored["status"],
            measurement=None,
            cell_id=cell_id,
            launch=summary.launch,
            result=None if result is None else json.loads(stored["result"]),
            charged=charged,
            origin=summary.origin,
        )

    def note(self, kind: str, version: str, details: Mapping[str, Any], key: str | None = None) -> Charge:
        """Write a row about the table, by default with a key of its own; call inside `transaction`."""
        about: dict[str, Any] = {"kind": kind, "table_version": version, "request_key": key or row.unique_key()}
        return self.reserve(**about, node=UNCOUNTED, query_key="", loss=GDP(0), launch=details)

    def _origin(self, node: str) -> dict[str, str | None]:
        """The origin's columns of a new row; the id is stored once for each node, with the first row."""
        origin = current_origin()
        if origin is None:
            return dict.fromkeys(row.ORIGIN_COLUMNS)
        if origin.id is not None and self.by_request_id(node, origin.id) is not None:
            origin = RequestOrigin(origin.actor)
        return dict(zip(row.ORIGIN_COLUMNS, (origin.actor, origin.id, origin.digest), strict=True))

    def answer(self, answered: Charge, words: str | None = None) -> Charge:
        """Write the answer of a charge, which it has now, and the answer in words; return the stored row.

        Two kernels may answer one charge; the first to write wins, and the values of the other are never shown.
        """
        measurement, keys, content = answered.measurement, answered.group_keys, answered.result
        if measurement is not None:
            content = {**measurement.to_json(), **({} if keys is None else {"group_keys": keys})}
        if self._finish(answered, "released", json.dumps(content), words) and keys is None and measurement is not None:
            return answered
        return self.by_id((answered.id,))[0]

    def fail(self, charge: Charge) -> None:
        """Record that a charge could not be answered; it stays charged."""
        self._finish(charge, "failed", None)

    def _finish(self, charge: Charge, status: str, result: str | None, words: str | None = None) -> bool:
        """Write the status and the result of a charge, unless it is released already; whether that was written."""
        try:
            with self.transaction():
                ((chained,),) = self._file.run("SELECT hash FROM events WHERE id = ?", charge.id)
                answer = status, result, words, *sealed(result, words)
                return bool(
                    self._file.change(f"{UPDATE} AND status != 'released'", *end_of(chained, answer), charge.id)
                )
        except StorageFull as error:
            full = str(error)
        raise StorageFull(
            f"{full}; the charge stands, and has no answer; repeating the release with the same arguments then uses "
            "the same charge"
        )

    def close(self) -> None:
        """Close the file; the ledger cannot be used afterwards.  It is also closed when it is garbage-collected."""
        if self.lock.is_own_process:  # a fork must not close it
            with self.lock.checked():
                self._file.close()
