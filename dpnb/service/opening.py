"""Opens the tables of the settings: each as an ordinary session, whose ledger no other service uses."""

from __future__ import annotations

import fcntl
import os
import runpy
from concurrent.futures import ThreadPoolExecutor
from typing import IO, Any

from dpnb._core.accountant.tree import ABOVE_THRESHOLD
from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError, InvalidValueError, LedgerError
from dpnb.interactive.closing import close_launch
from dpnb.interactive.threshold.hidden_noise import hidden_noise
from dpnb.ledger import MEMORY
from dpnb.ledger.shared_rows import SharedRows
from dpnb.service.log import described, log
from dpnb.service.settings import TableSettings
from dpnb.session.declaration import read_declaration
from dpnb.session.session import Session
from dpnb.session.table_files import read_tables
from dpnb.wire.replies import Table

LOCK_SUFFIX = "-service"
"""Of the file beside a ledger that is locked while a service uses the ledger."""


class OpenTable(NotCopyable):
    """A table of the service.

    Parameters
    ----------
    settings : TableSettings
        Its settings.
    session : Session
        The session that holds table and ledger.

    Raises
    ------
    LedgerError
        If the ledger is in memory, or another service uses it.

    Attributes
    ----------
    worker : ThreadPoolExecutor
        One thread, which executes the requests one after the other.
    rows : SharedRows
        The rows of the ledger as the analyst may see them.
    """

    def __init__(self, settings: TableSettings, session: Session) -> None:
        self.settings, self.session, self.name = settings, session, settings.name
        self._lock = _lock_ledger(session.ledger.path)
        self.rows = SharedRows(session.ledger)
        self.worker = ThreadPoolExecutor(1, thread_name_prefix=f"dpnb-{self.name}")
        self._close_lost_scans()

    @property
    def description(self) -> Table:
        """The table as an analyst may know it."""
        core, ledger = self.session._core, self.session.ledger
        public = core.pricer.public
        return Table(
            core.name,
            core.version,
            ledger.metadata,
            ledger.parameters,
            core.tables.columns,
            public.units,
            dict(public.rows),
            core.notice,
        )

    def _close_lost_scans(self) -> None:
        """Close the above-threshold mechanisms whose hidden noise is lost; they stay charged.

        Hidden noise is never stored, so none of an earlier process can be continued.
        """
        core = self.session._core
        for launch in list(core.account.tree.sync().values()):
            if launch.kind == ABOVE_THRESHOLD and not launch.is_closed and hidden_noise(launch) is None:
                close_launch(core, launch)
                log("scan_closed", table=self.name, row=launch.id, why="a restart ends open scans")

    def close(self) -> None:
        """Finish the running request, then close the ledger and let another service use it."""
        self.worker.shutdown(wait=True)
        self.session.ledger.close()
        self._lock.close()


def open_table(settings: TableSettings) -> OpenTable:
    """Open a table.

    Parameters
    ----------
    settings : TableSettings
        Its settings.

    Raises
    ------
    DpnbError
        If the declaration, the table or the ledger cannot be used.
    """
    session = _built(settings) if settings.builder is not None else _declared(settings)
    try:
        return OpenTable(settings, session)
    except BaseException:
        session.ledger.close()
        raise


def check_table(settings: TableSettings) -> None:
    """Check the declaration of a table, on mock data, without opening table or ledger.

    A Python file is not run, since it opens its ledger.

    Raises
    ------
    DpnbError
        If the declaration is invalid.
    """
    if settings.declaration is not None:
        declared = Session.from_toml(settings.declaration, rehearse=True)
        _refuse_other_files(settings, set(declared._core.tables.schemas))
        _refuse_in_memory(settings)


def _declared(settings: TableSettings) -> Session:
    declaration = settings.declaration
    if declaration is None:
        raise InvalidValueError(f"{settings.place}: declaration: must be given; got None; add it")
    _refuse_in_memory(settings)
    tables = read_tables(dict(settings.data), f"{settings.place}: data")
    return Session.from_toml(declaration, tables[""] if list(tables) == [""] else tables)


def _refuse_in_memory(settings: TableSettings) -> None:
    declared = read_declaration(str(settings.declaration), Session)
    if declared.content.get("ledger") == MEMORY:
        raise InvalidValueError(f"{declared.locate('ledger')}: {IN_MEMORY}")


IN_MEMORY = "ledger: must be a file, since a restart of the service would forget the charges; got ':memory:'"


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


def _built(settings: TableSettings) -> Session:
    """The session that the curator's function returns."""
    file, function = settings.builder or ("", "")
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
    lock = os.fdopen(os.open(f"{path}{LOCK_SUFFIX}", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise LedgerError(
            f"ledger {path!r}: is used by another service, or by another table of this one; stop the other service, "
            "or remove the other table"
        ) from None
    return lock
