"""The way of a request from its struct to its answered rows: the one place where budget is spent.

`Executor.run` notes the rows of a request in the log.  Where the rows of the table are in this process
(`LocalExecutor`), a request passes these steps; a remote session sends it to the service (`RemoteExecutor`), where it
passes them.

1. Find the rows of the identical request; if all of them are answered, those are the answer.
2. Check that the tables can be read.
3. In one transaction, which blocks all other writers: look again, price the request from public values and the ledger,
   let every filter on the path admit it, and write its charges.  They are durable when the transaction ends.
4. For each row without an answer: read rows and draw noise under guard, and write the answer with its words.

A crash after 3 wastes budget until the identical request is made again, which continues with 4; it never exceeds it.
Nothing that is observable after 3 depends on rows, except the noisy answer.  What is shown is read from the rows of the
ledger alone (`dpnb._core.releases`).

A kind of request is a struct (`dpnb._request`), and a `Kind` that has its price and its answer.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

import msgspec

from dpnb._backends.worker_thread import isolated_numeric_settings, run_guarded
from dpnb._core import open_sessions
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.history.log import RequestLog
from dpnb._core.history.words import AnswerReader
from dpnb._core.pricing.pricer import QueryPricer
from dpnb._core.tables import PrivateTables
from dpnb._request import ALWAYS, Conditions, Request, request_from
from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError, LedgerError, RequestError
from dpnb.ledger import Charge
from dpnb.ledger.charge import RELEASE
from dpnb.ledger.origin import current_origin, refuse_beyond_room
from dpnb.progress import Stage, at

# --- the connection ---------------------------------------------------------------------------------------------------


class Connection(Protocol):
    """The connection of a session to the service that has its table; a local session has none.

    A session is notified of a change of `is_current` or `text` as of any other change: the connection calls
    `SessionCore.changed`, from any thread.  The properties are read often, from several threads, and must neither wait
    nor raise.
    """

    @property
    def where(self) -> str:
        """Where the table is, in words, for example "on the curator's server, https://dp.example.org"."""

    @property
    def is_current(self) -> bool:
        """Whether the copy of the ledger includes what the service has charged, as far as is known."""

    @property
    def text(self) -> str:
        """The state in words, for example "up to date".

        While it is not current, since when, why and what happens next: "out of date since 14:02: the service cannot be
        reached; reconnecting".
        """

    def refresh(self) -> None:
        """Try to bring the copy up to date now; returns without waiting for the service."""


class RemoteCalls(Protocol):
    """The service that holds the table, as one session, sub-session or part uses it; see `dpnb.remote`."""

    def run(
        self, request: Request, conditions: Conditions, is_answer: Callable[[Sequence[Charge]], bool]
    ) -> list[Charge]:
        """Have the service execute a request, and return its rows, which the session's ledger has now.

        `is_answer` says whether rows are those of the request; a `ServiceError` if they are not.  A refusal of the
        service is raised as a local session would raise it; a `DpnbError` also if the service cannot be reached.
        """

    def at(self, node: str) -> Self:
        """The same service for a sub-session or a part, by its node in the session's ledger."""


FAILED = (
    "the query failed after it was charged; the charge stands and nothing was released; "
    "releasing it with the same arguments uses the same charge"
)

INTERRUPTED = (
    "after the query was charged; the charge stands and nothing was released; releasing it with the same arguments "
    "uses the same charge"
)

R = TypeVar("R", bound=Request)


@dataclass(frozen=True)
class PricedRow:
    """The charge of one row, and what its answer needs at most."""

    request: Request  # as the row stores it
    key: str  # of the row
    columns: Mapping[str, Any]  # what `Ledger.reserve` writes beside those
    description: str = ""  # of the request, for a refusal of its answer
    stored_bytes: int = 0  # of the answer, at most
    undo: Callable[[], None] | None = None  # called if the charge is not written


class Kind(NotCopyable, ABC, Generic[R]):
    """A kind of request in one session: what it costs, and its answer from rows."""

    code: str = RELEASE
    """The kind of its rows in the ledger."""

    reads_rows = True

    def __init__(self, pricer: QueryPricer) -> None:
        self.pricer, self.account = pricer, pricer.account

    def node(self, request: R) -> str:
        """The node that pays."""
        return self.account.root_node

    def lock(self, request: R) -> AbstractContextManager[object]:
        """The lock that is held from the charge of a request to its answer."""
        return nullcontext()

    def recorded(self, request: R) -> list[Charge]:
        """The rows of the identical request, if any kernel has made it before."""
        first = self.account.ledger.by_key(self.node(request), self.pricer.version, request.key)
        return [] if first is None else [first]

    def refuse_ended(self, request: R, conditions: Conditions) -> None:
        """Refuse a charge to a session or mechanism that is closed, or to a budget that is frozen."""
        self.account.tree.refuse_ended(conditions.inside or self.account.root_node, self.pricer.version)

    def prepare(self, request: R) -> Mapping[str, Any]:
        """The answer of a new row that was paid for at a launch, as columns; called before the transaction."""
        return {}

    @abstractmethod
    def price(self, request: R, conditions: Conditions) -> list[PricedRow]:
        """The charges of a request, once every filter on the path has admitted them; called in the transaction."""

    def answer(self, request: R, row: Charge) -> Charge:
        """A row with its answer, from rows and noise; called under guard, once the charge is durable."""
        raise TypeError(f"{self.code} {row.id}")  # never: it was released with its charge

    def is_answer(self, request: R, rows: Sequence[Charge]) -> bool:
        """Whether rows of a service are the answer of a request, and not that of another one."""
        place = self.code, self.node(request), self.pricer.version
        found = [(row.kind, row.node, row.table_version, row.request, row.request_key, row.status) for row in rows]
        return found == [(*place, request.text, request.key, "released")]


class Executor(NotCopyable, ABC):
    """Charges the requests of one session and answers them.

    `kinds` has the kinds of requests by their structs, and `listeners` are called whenever something was charged,
    answered or refused.
    """

    def __init__(self, account: Accountant, version: str, log: RequestLog) -> None:
        self.account, self.version, self.log = account, version, log
        self.kinds: dict[type[Request], Kind[Any]] = {}
        self.listeners: list[Callable[[], None]] = []

    def changed(self) -> None:
        """Notify the listeners."""
        for listener in self.listeners:
            listener()

    def run(self, request: Request, conditions: Conditions = ALWAYS) -> list[Charge]:
        """The answered rows of a request, which is charged unless it was before.

        After a `BudgetExceeded` nothing was charged; after an `ExecutionError` the same request uses the same charge.
        """
        rows = self._run(self.kinds[type(request)], request, conditions)
        for row in rows:
            self.log.note_request(row, open_sessions.current_cell())
        self.changed()
        return rows

    @abstractmethod
    def _run(self, kind: Kind[Any], request: Request, conditions: Conditions) -> list[Charge]: ...

    def find(self, request: Request) -> list[Charge]:
        """The rows of the identical request, if any kernel has made it before; nothing is charged or read."""
        with self.account.ledger.lock.checked():  # another thread may write a row that is rolled back
            return self.kinds[type(request)].recorded(request)

    @contextmanager
    def refusals_of(self, describe: Callable[[], str], spoken: Callable[[str], str] | None = None) -> Iterator[None]:
        """Record in the log what is refused in the block, of the request that `describe` returns in words.

        `spoken` makes a title of these words.
        """
        try:
            yield
        except open_sessions.REFUSALS as error:
            self.refused(describe(), error, spoken)
            raise

    def refused(self, description: str, error: DpnbError, spoken: Callable[[str], str] | None = None) -> None:
        """Record that a request was refused before anything was charged."""
        self.log.note_refusal(description, error, open_sessions.current_cell(), spoken)
        self.changed()


class LocalExecutor(Executor):
    """Charges requests and answers them from rows of this process."""

    def __init__(
        self,
        account: Accountant,
        version: str,
        log: RequestLog,
        *,
        tables: PrivateTables,
        reader: AnswerReader,
    ) -> None:
        super().__init__(account, version, log)
        self._tables, self._reader = tables, reader

    def _run(self, kind: Kind[Any], request: Request, conditions: Conditions) -> list[Charge]:
        with kind.lock(request):
            known, prepared = self.find(request), None
            if kind.reads_rows and (not known or any(row.status != "released" for row in known)):
                self._tables.ready()
            if not known:
                prepared = kind.prepare(request)
            rows = self._charge(kind, request, conditions, prepared or {})
            return [row if row.status == "released" else self._answer(kind, request, row) for row in rows]

    def _charge(
        self, kind: Kind[Any], request: Request, conditions: Conditions, prepared: Mapping[str, Any]
    ) -> list[Charge]:
        """The rows of a request: the recorded ones, or new ones, which are durable when this returns."""
        ledger, node = self.account.ledger, kind.node(request)
        prices: list[PricedRow] = []
        try:
            with ledger.transaction():
                known = kind.recorded(request)
                if known:
                    return known
                kind.refuse_ended(request, conditions)
                prices = kind.price(request, conditions)
                for price in prices:
                    _refuse_unreadable(price.request)
                stored = sum([price.stored_bytes for price in prices])
                if stored:
                    self._tables.work_limits.refuse_stored(prices[0].description, stored)
                    if current_origin() is not None:
                        refuse_beyond_room(stored)
                return [
                    ledger.reserve(
                        kind=kind.code,
                        request_key=price.key,
                        node=node,
                        table_version=self.version,
                        request=price.request.text,
                        cell_id=open_sessions.current_cell(),
                        **price.columns,
                        **prepared,
                    )
                    for price in prices
                ]
        except BaseException:
            for price in prices:
                if price.undo is not None and not self._is_recorded(kind, request):
                    price.undo()
            raise

    def _is_recorded(self, kind: Kind[Any], request: Request) -> bool:
        """Whether a request is in the ledger although writing it has failed, as by an interrupt after the commit."""
        with suppress(DpnbError):
            return bool(kind.recorded(request))
        return False

    def _answer(self, kind: Kind[Any], request: Request, row: Charge) -> Charge:
        """Read rows, draw noise and write the answer of a charge.

        A noisy value that did not reach the ledger must not be shown, for example in a traceback, since the charge will
        be answered with other noise.  So the writing is guarded like the reading.
        """
        ledger = self.account.ledger

        def answered() -> Charge:
            found = kind.answer(request, row)
            with at(Stage.WRITING):
                return ledger.answer(found, self._reader.words_to_store(found))

        open_sessions.before_reading(row)
        try:
            return run_guarded(
                isolated_numeric_settings()(answered), FAILED, interrupted=INTERRUPTED, public_errors=LedgerError
            )
        except BaseException:
            with suppress(LedgerError):  # if this cannot be written either, the charge has no answer
                ledger.fail(row)
            self.changed()
            raise


class RemoteExecutor(Executor):
    """Sends the requests of one session to the service; the session's ledger is a copy, to which `calls` adds rows.

    What the service returns is compared with what was sent, so that the row of another request is never shown as the
    answer, as it could be when the rows of service and session differ.
    """

    def __init__(self, account: Accountant, version: str, log: RequestLog, *, calls: RemoteCalls) -> None:
        super().__init__(account, version, log)
        self._calls = calls

    def _run(self, kind: Kind[Any], request: Request, conditions: Conditions) -> list[Charge]:
        known = self.find(request)
        if known and kind.is_answer(request, known):
            return known
        return self._calls.run(request, conditions, lambda rows: kind.is_answer(request, rows))


def _refuse_unreadable(request: Request) -> None:
    """Refuse a request that could not be read again: its row would make the ledger unusable."""
    try:
        is_read = request_from(request.text) == request
    except (msgspec.MsgspecError, RecursionError):
        is_read = False
    if not is_read:
        raise RequestError("request: has a number or a structure that no ledger can store; use fewer digits")
