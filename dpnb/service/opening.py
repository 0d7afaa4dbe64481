"""Opens the tables of the settings, each as an ordinary session, and checks what an analyst may do in it.

Each analyst has a session of their own over the same table and ledger: in reserved mode on their own node, of which
alone they see rows; in pooled mode on the node of the table, within their caps.
"""

from __future__ import annotations

import fcntl
import json
import os
import runpy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import IO, Any

import msgspec

from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.limit import Limit
from dpnb._core.accountant.tree import ABOVE_THRESHOLD, BudgetTree
from dpnb._core.tables import PrivateTables
from dpnb._request import ALWAYS, AnyRequest, CloseMechanism, CompareWithThreshold, Conditions, LaunchMechanism
from dpnb.accounting.filters import FILTERS, Filter
from dpnb.copying import NotCopyable
from dpnb.errors import ChargesStopped, DpnbError, InvalidValueError, LedgerError, RequestError
from dpnb.interactive.launches import columns_of_close
from dpnb.interactive.threshold.hidden_noise import hidden_noise
from dpnb.ledger import MEMORY, Charge, Ledger, node_of, parent_launch
from dpnb.ledger.charge import CLOSE, unique_key
from dpnb.ledger.declared import STATED, of_version
from dpnb.ledger.shared_rows import SharedRows
from dpnb.service.configuration.parts import apply_division
from dpnb.service.configuration.settings import TableSettings
from dpnb.service.heads import follow_head
from dpnb.service.monitoring.log import described, log
from dpnb.service.running import HeldRows, RunningRequest
from dpnb.service.turns import Turns
from dpnb.session.base import BaseSession
from dpnb.session.declaration import Declaration, read_declaration
from dpnb.session.session import Session
from dpnb.session.table_files import read_tables, refuse_other_contents
from dpnb.wire.replies import EarlierColumns, Table

LOCK_SUFFIX = "-service"
"""Of the file beside a ledger that is locked while a service uses the ledger."""

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
        self._limits: dict[int, Limit] = {}
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
        parts = apply_division(core.account, settings.division, core.version)
        known = list(self._analysts.items())
        analysts = {name: one for name, one in known if one.has_part(parts.get(name)) and (name in parts or not parts)}
        for name, part in parts.items():
            if name not in analysts:
                rows = self._pooled_rows
                if part.mode == "reserved":
                    metadata, parameters = _known_of(self.session.ledger, part)
                    root = node_of(part.id)
                    rows = SharedRows(self.session.ledger, root, metadata=metadata, parameters=parameters)
                analysts[name] = AnalystSession(name, BaseSession(core.for_analyst(part)), rows, part)
        self.settings, self._analysts = settings, analysts

    def limit(self, part: Grant) -> Limit:
        """The cap of a part of the budget, with what was charged to it."""
        if part.id not in self._limits:
            self._limits[part.id] = self.session._core.account.limit_of(part)
        return self._limits[part.id]

    def may_open(self, analyst: str) -> bool:
        """Whether an analyst may open the table."""
        return not self.settings.division.parts or analyst in self._analysts

    def for_analyst(self, analyst: str) -> AnalystSession:
        """The session of an analyst who may open the table."""
        known = self._analysts
        if analyst not in known:
            known[analyst] = AnalystSession(analyst, self.session, self._pooled_rows, None)
        return known[analyst]

    def refuse_ended(self, one: AnalystSession) -> None:
        """Refuse requests of a session from before the budget was divided in another way; call in the table's thread.

        A request that came before may be executed afterwards.
        """
        if self._analysts.get(one.name) is not one:
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


class AnalystSession(NotCopyable):
    """The session of one analyst on a table, and the rows of the ledger that the analyst may see.

    Without a part of the budget, the whole budget is for all.
    """

    def __init__(self, name: str, session: BaseSession, rows: SharedRows, part: Grant | None) -> None:
        self.name, self.session, self.rows, self._part = name, session, rows, part
        self._is_reserved = part is not None and part.mode == "reserved"

    def has_part(self, part: Grant | None) -> bool:
        """Whether this is the session of a part of the budget; of None, of the whole budget."""
        return (None if self._part is None else self._part.id) == (None if part is None else part.id)

    @property
    def description(self) -> Table:
        """The table as the analyst may know it."""
        core = self.session._core
        public, number = core.pricer.public, 0
        metadata, parameters = _known_of(core.account.ledger, self._part)
        if self._part is not None and not self._is_reserved:
            (number,) = self.rows.by_ids((self._part.id,))
        return Table(
            core.name,
            core.version,
            metadata,
            parameters,
            core.tables.columns,
            public.units,
            dict(public.rows),
            core.notice,
            self.name,
            "reserved" if self._is_reserved else "pooled",
            number,
            core.tables.engine,
            tuple(EarlierColumns(last, of_version(one.metadata)) for last, one in self.rows.earlier),
        )

    def translated(self, conditions: Conditions | None) -> Conditions:
        """The conditions of a request with the ledger's own numbers of rows."""
        if conditions is None or not conditions.inside:
            return conditions or ALWAYS
        return msgspec.structs.replace(conditions, inside=self.rows.node(conditions.inside))

    def refuse_other_version(self, request_id: str) -> None:
        """Refuse a request that was charged for another version of the table: it would be charged again."""
        charged, version = self.rows.version_of(request_id), self.session._core.version
        if charged not in (None, version):
            raise RequestError(
                f"request: was charged for version {charged!r} of the table, and this is version {version!r}; nothing "
                "more was charged; connect again, and make a new request"
            )

    def refuse_foreign(self, node: str, request: AnyRequest, conditions: Conditions) -> None:
        """Refuse a request to a mechanism that another analyst launched, or a launch under the name of one.

        That is possible in pooled mode only: in reserved mode nobody else has the node.  The node and the conditions
        have the ledger's own numbers of rows; see `translated`.
        """
        if conditions.inside:
            self._refuse_foreign(conditions.inside)
        match request:
            case LaunchMechanism() | CloseMechanism() | CompareWithThreshold():
                self._refuse_foreign(node, request.name)
            case _:
                self._refuse_foreign(node)

    def _refuse_foreign(self, node: str, name: str | None = None) -> None:
        """Refuse the mechanisms that contain the node, and the one with this name in it."""
        tree = self.session._core.account.tree
        launches = tree.sync()
        concerned = [one for one in launches.values() if name is not None and (one.node, one.name) == (node, name)]
        while (parent := parent_launch(node)) is not None and parent[0] in launches:
            concerned.append(launches[parent[0]])
            node = concerned[-1].node
        if any(one.actor not in (None, self.name) for one in concerned):
            raise RequestError(
                "launch: belongs to another analyst, who alone can use it; nothing was charged; launch one under "
                "another name"
            )

    def refuse_revoked(self) -> None:
        """Refuse requests of an analyst whose part of the budget, or that of their project, was revoked."""
        if self._part is None:
            return
        tree = self.session._core.account.tree
        project = tree.grant_of(self._part.node)
        for part, whose in ((tree.grants()[self._part.id], "your part"), (project, "the part of your project")):
            if part is not None and part.is_revoked:
                raise ChargesStopped(
                    f"table: the curator has revoked {whose} of the budget; nothing was charged; recorded answers stay "
                    "free"
                )


def _known_of(ledger: Ledger, part: Grant | None) -> tuple[dict[str, str], dict[str, str]]:
    """What an analyst knows as the metadata and parameters of the ledger: in reserved mode, of the own ceiling only."""
    known = ledger.opened  # another session may have declared something else since
    metadata, words = dict(known.metadata), ledger.stated()
    if words is not None:
        metadata[STATED] = words
    if part is None or part.mode != "reserved":
        return metadata, dict(known.parameters)
    return {**metadata, "budget": json.dumps(part.budget.to_json())}, dict(part.parameters)


def open_table(settings: TableSettings, heads: Path | None = None, *, restored: bool = False) -> OpenTable:
    """Open a table; `heads` and `restored` are as for `OpenTable`."""
    session, digests = (_built(settings), None) if settings.session is not None else _declared(settings)
    try:
        if digests is not None:
            refuse_other_contents(session.ledger, session._core.version, digests)
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


def _declared(settings: TableSettings) -> tuple[Session, dict[str, str]]:
    """The declared session, and the digests of the data files."""
    declaration = settings.declaration
    if declaration is None:
        raise InvalidValueError(f"{settings.place}: declaration: must be given; got None; add it")
    stated = _read_declaration(declaration)
    declared = stated.located(lambda: PrivateTables.of_arguments(stated.arguments(), several=stated.several))
    digests: dict[str, str] = {}
    tables = read_tables(dict(settings.data), f"{settings.place}: data", declared, digests)
    return Session.from_toml(declaration, tables[""] if list(tables) == [""] else tables), digests


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
    given = {name for name, _ in settings.data}
    if given != declared:
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
