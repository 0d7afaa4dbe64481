"""Opens the tables of the settings, each as an ordinary session, and checks what an analyst may do in it.

Each analyst has a session of their own over the same table and ledger: in reserved mode on their own node, of which
alone they see rows; in pooled mode on the node of the table, within their caps.
"""

from __future__ import annotations

import fcntl
import os
import runpy
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any

from dpnb._core.accountant.cap import Limit
from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.granting import charged_outside
from dpnb._core.accountant.tree import ABOVE_THRESHOLD, BudgetTree
from dpnb._core.tables import PrivateTables
from dpnb._sources.formats import read_tables
from dpnb.accounting.filters import FILTERS, Filter
from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError, InvalidValueError, LedgerError, RequestError
from dpnb.interactive.launches import columns_of_close
from dpnb.interactive.scan import hidden_noise
from dpnb.ledger import MEMORY, Charge, node_of
from dpnb.ledger.charge import CLOSE, unique_key
from dpnb.ledger.shared_rows import SharedRows
from dpnb.service.analysts import AnalystSession, known_of
from dpnb.service.configuration.parts import apply_division
from dpnb.service.configuration.settings import TableSettings
from dpnb.service.database_snapshots import with_snapshots
from dpnb.service.heads import follow_head, refuse_older
from dpnb.service.monitoring import described, log
from dpnb.service.running import HeldRows, RunningRequest
from dpnb.service.turns import Turns
from dpnb.session.backup import refuse_other_contents
from dpnb.session.base import BaseSession
from dpnb.session.declaration import Declaration, read_declaration
from dpnb.session.session import Session

LOCK_SUFFIX = "-service"
"""Of the file beside a ledger that is locked while a service uses the ledger."""

NO_TABLE = (
    "table: must be one that the service has now; got another; connect without table= to see which it has, or ask the "
    "curator"
)

IN_MEMORY = "ledger: must be a file, since a restart of the service would forget the charges; got ':memory:'"


class OpenTable(NotCopyable):
    """A table of the service, whose ledger is a file that no other service uses.

    `heads` is the folder of the files that name the last row of each ledger; without it, no such file is kept.  A
    ledger that lacks that row is accepted only if it is said to be `restored`; see `follow_head`.

    The one thread of `worker` executes the requests one after the other, in turns between analysts; `running` is the
    request that it executes now, and `held` has the charges that are not answered again before the curator allows it.
    """

    def __init__(
        self, settings: TableSettings, session: Session, heads: Path | None = None, *, restored: bool = False
    ) -> None:
        self.settings, self.session, self.name = settings, session, settings.name
        self._lock = _lock_ledger(session.ledger.path)
        self._pooled_rows = SharedRows(session.ledger, shows_actors=True)
        self._analysts: dict[str, AnalystSession] = {}
        self._lock_of_people, self._is_divided = threading.Lock(), True
        self._limits: dict[int, Limit] = {}
        self.outside = charged_outside(session._core.account)
        self.worker = Turns(f"dpnb-{self.name}")
        self.running: RunningRequest | None = None
        self._numbers = count(1)
        try:
            if heads is not None:
                follow_head(session, self.name, heads, restored=restored)
            session.ledger.declare_again()
            self.held = HeldRows(session.ledger)
            for charge in self.held.charges():
                log("held", table=self.name, row=charge.id, status=charge.status)
            self.divide(settings)
            self._close_lost_scans()
        except BaseException:
            self._lock.close()
            raise

    def divide(self, settings: TableSettings) -> None:
        """Divide the budget as the settings say now; see `apply_division`."""
        core = self.session._core
        _refuse_undivided(settings, core.account.tree)
        apply_division(core.account, settings.division, core.version)
        self.settings = settings
        self.admit_people()

    def admit_people(self) -> None:
        """Let those open the table who have a part of its budget now; in any thread."""
        with self._lock_of_people:  # so that of two threads the later one has read the later rows
            tree = self.session._core.account.tree
            parts = {
                one.name: one
                for one in tree.grants().values()
                if one.level == "analyst" and not (one.is_removed or one.is_handed_over)
            }
            self._is_divided = bool(self.settings.division.parts or parts)
            known = list(self._analysts.items())
            kept = {name: one for name, one in known if one.has_part(parts.get(name))}
            kept = {name: one for name, one in kept.items() if name in parts or not self._is_divided}
            self._analysts = kept | {name: self._analyst(one) for name, one in parts.items() if name not in kept}

    def _analyst(self, part: Grant) -> AnalystSession:
        core, rows = self.session._core, self._pooled_rows
        if part.mode == "reserved":
            metadata, parameters = known_of(self.session.ledger, part)
            rows = SharedRows(self.session.ledger, node_of(part.id), metadata=metadata, parameters=parameters)
        return AnalystSession(part.name, BaseSession(core.for_analyst(part)), rows, part)

    def limit(self, part: Grant) -> Limit:
        """The cap of a part of the budget, with what was charged to it."""
        if part.id not in self._limits:
            self._limits[part.id] = self.session._core.account.limit_of(part)
        return self._limits[part.id]

    def may_open(self, analyst: str) -> bool:
        """Whether an analyst may open the table."""
        return not self._is_divided or analyst in self._analysts

    def for_analyst(self, analyst: str) -> AnalystSession:
        """The session of an analyst; a `RequestError` for somebody who may not open the table, perhaps any more."""
        known = self._analysts
        if analyst not in known:
            if self._is_divided:
                raise RequestError(NO_TABLE)
            known[analyst] = AnalystSession(analyst, self.session, self._pooled_rows, None)
        return known[analyst]

    def has_opened(self, analyst: str) -> bool:
        """Whether there is a session of an analyst; does not wait for the ledger."""
        return analyst in self._analysts

    def has(self, one: AnalystSession) -> bool:
        """Whether it is still the session of its analyst."""
        return self._analysts.get(one.name) is one

    def refuse_ended(self, one: AnalystSession) -> None:
        """Refuse requests of a session from before the budget was divided in another way; call in the table's thread.

        A request that came before may be executed afterwards.
        """
        if not self.has(one):
            raise RequestError(
                "table: the curator has changed how its budget is divided; nothing was charged; connect again, and see "
                "what you may spend"
            )

    @contextmanager
    def running_request(
        self, analyst: str, call: str, request: str, refuse: Callable[[Charge], None]
    ) -> Iterator[RunningRequest]:
        """Say during the block which request the table executes; in its thread."""
        self.running = RunningRequest(next(self._numbers), analyst, call, request, refuse)
        try:
            yield self.running
        finally:
            self.running = None

    def _close_lost_scans(self) -> None:
        """Close the above-threshold mechanisms whose hidden noise is lost; they stay charged.

        Hidden noise is never stored, so none of an earlier process can be continued.
        """
        core = self.session._core
        for launch in list(core.account.tree.sync().values()):
            if launch.kind == ABOVE_THRESHOLD and not launch.is_closed and hidden_noise(launch) is None:
                columns = columns_of_close(launch)
                with core.account.ledger.transaction():
                    core.account.ledger.reserve(
                        kind=CLOSE,
                        request_key=unique_key(),
                        node=launch.node,
                        table_version=core.version,
                        **columns,
                    )
                log("scan_closed", table=self.name, row=launch.id, why="a restart ends open scans")

    def close(self) -> None:
        """Finish the requests that run or wait, then close the ledger and let another service use it."""
        self.worker.close()
        self.session.ledger.close()
        self._lock.close()


def open_table(settings: TableSettings, heads: Path | None = None, *, restored: bool = False) -> OpenTable:
    """Open a table; `heads` and `restored` are as for `OpenTable`."""
    session, digests, taken = (
        (_built(settings), None, None)
        if settings.session is not None
        else _declared(settings, None if restored else heads)
    )
    try:
        if digests is not None:
            refuse_other_contents(session.ledger, session._core.version, digests, taken)
        _refuse_unserved(session.filter, settings.place)
        return OpenTable(settings, session, heads, restored=restored)
    except BaseException:
        session.ledger.close()
        raise


def check_table(settings: TableSettings) -> None:
    """Check the declaration of a table, on mock data, without opening table or ledger.

    A Python file is not run, since it opens its ledger.
    """
    if settings.declaration is not None:
        declared = Session.from_toml(settings.declaration, rehearse=True)
        _refuse_other_files(settings, set(declared._core.tables.schemas))
        _read_declaration(settings.declaration)


def _declared(settings: TableSettings, heads: Path | None) -> tuple[Session, dict[str, str], str | None]:
    """The declared session, the digests of the data files, and when they were read from databases, if they were.

    With `heads`, of a ledger that is not an older one.
    """
    declaration = settings.declaration
    if declaration is None:
        raise InvalidValueError(f"{settings.place}: declaration: must be given; got None; add it")
    stated = _read_declaration(declaration)
    declared = stated.located(lambda: PrivateTables.of_arguments(stated.arguments(), several=stated.several))
    if heads is not None and isinstance(path := stated.arguments()["ledger"], str):
        refuse_older(path, settings.name, heads)
    digests: dict[str, str] = {}
    sources, taken = stated.located(lambda: with_snapshots(settings, stated, declared))
    tables = read_tables(sources, f"{settings.place}: data", declared.wanted, digests)
    return Session.from_toml(declaration, tables[""] if list(tables) == [""] else tables), digests, taken


def _read_declaration(path: Path) -> Declaration:
    """The declaration of a table; refuses what a session may have, and a service may not."""
    declared = read_declaration(path, Session)
    if declared.content.get("ledger") == MEMORY:
        raise InvalidValueError(f"{declared.locate('ledger')}: {IN_MEMORY}")
    filter_ = declared.content.get("filter", "gdp")
    if isinstance(filter_, str) and filter_ in FILTERS:
        _refuse_unserved(FILTERS[filter_], declared.locate("filter"))
    return declared


def _refuse_other_files(settings: TableSettings, declared: set[str]) -> None:
    if settings.data.sources(declared).keys() != declared:
        if declared == {""}:
            raise InvalidValueError(
                f"{settings.place}: data: must be one file, since the declaration has one table; got names of tables; "
                'write data = "visits.csv"'
            )
        shown = ", ".join(sorted(declared))
        raise InvalidValueError(
            f"{settings.place}: data: must have a file for each table of the declaration, which has {shown}; correct it"
        )


def _refuse_unserved(filter_: Filter | type[Filter], place: str) -> None:
    if not filter_.is_served:
        served = ", ".join(repr(name) for name, each in FILTERS.items() if each.is_served)
        raise InvalidValueError(
            f"{place}: filter: a service enforces one of {served}; got {filter_.name!r}, which only a session enforces"
        )


def _refuse_undivided(settings: TableSettings, tree: BudgetTree) -> None:
    """Refuse to serve a ledger with reserved parts to all: everyone would see what each analyst alone received."""
    if not settings.division.parts and any(one.mode == "reserved" for one in tree.grants().values()):
        raise InvalidValueError(
            f"{settings.place}: mode: the budget of this ledger is divided in reserved mode, in which an analyst alone "
            "sees their answers; got no analysts; write mode = 'reserved' and the analysts again, or start a new ledger"
        )


def _built(settings: TableSettings) -> Session:
    file, function = settings.session or ("", "")
    fault: dict[str, Any] = {}
    session: object = None
    try:
        session = runpy.run_path(str(file), run_name="dpnb_service")[function]()
    except DpnbError:
        raise
    except BaseException as error:  # noqa: BLE001  (its message may quote rows)
        fault = described(error)
    if fault:
        places = "; ".join(fault["where"][-2:])
        raise InvalidValueError(
            f"{settings.place}: session: {function} in {str(file)!r} raised {fault['type']} ({places}); correct it"
        )
    if not isinstance(session, Session):
        raise InvalidValueError(
            f"{settings.place}: session: {function} in {str(file)!r} must return a dpnb.Session; "
            f"got {type(session).__name__}"
        )
    return session


def _lock_ledger(path: str) -> IO[str]:
    """A lock that belongs to this process until it ends, however it ends."""
    if path == MEMORY:
        raise LedgerError(IN_MEMORY)
    file = os.path.realpath(path)  # a link to the ledger has the same lock
    lock = os.fdopen(os.open(f"{file}{LOCK_SUFFIX}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise LedgerError(
            f"ledger {path!r}: is used by another service, or by another table of this one; stop the other service, "
            "or remove the other table"
        ) from None
    return lock
