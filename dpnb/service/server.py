"""Starts, reloads and stops the service, and the cockpit beside it.

``SIGTERM`` and ``SIGINT`` stop it after the running requests, without waiting long for clients that do not read; a
second one stops it at once, and what was charged then is answered when a curator lets the request run again.
``SIGHUP`` reads the settings again: tables are added and removed, and with an invalid file the service keeps what it
has.
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType

import uvicorn

from dpnb.errors import DpnbError, InvalidValueError
from dpnb.service.access.clock import Clock
from dpnb.service.access.identities import HubIdentities
from dpnb.service.access.tokens import TokenStore, now, read_tokens
from dpnb.service.app import Service
from dpnb.service.cockpit.app import Cockpit
from dpnb.service.cockpit.protections import Origins
from dpnb.service.configuration.ports import Listening, PortAddress, listen
from dpnb.service.configuration.settings import Settings, TableSettings, read_settings
from dpnb.service.monitoring import Metrics, log, set_up_log
from dpnb.service.network.connections import Gate, most_connections
from dpnb.service.network.http import server_config
from dpnb.service.opening import OpenTable, check_table, open_table
from dpnb.service.served import Rules, ServedTable
from dpnb.service.turns import SETTINGS


class _CockpitServer(uvicorn.Server):
    """Serves the cockpit beside the service, on at most `most` connections, which are apart from those of analysts."""

    def __init__(self, service: Service, address: PortAddress, most: int, metrics: Metrics) -> None:
        tls = address.tls
        self._cockpit = Cockpit(service, Origins(address.allowed_hosts, tls is not None))
        per_peer = None if tls is None else most // 2  # without TLS it is on the loopback, where a tunnel may end
        self._gate = Gate("cockpit", most, per_peer, metrics)
        opened = listen(address)
        self.listening = replace(opened, socket=self._gate.listening(opened.socket))
        self._task: asyncio.Task[None] | None = None
        super().__init__(server_config(self._cockpit.app(), self._gate, tls, lifespan=False))

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the service."""
        yield

    def begin(self) -> None:
        """Begin to serve, in the running loop."""
        self._task = asyncio.get_running_loop().create_task(self.serve([self.listening.socket]))

    async def end(self) -> None:
        """End the streams and the running requests."""
        self._cockpit.end_streams()
        self._gate.stop()
        self.should_exit = True
        if self._task is not None:
            await self._task


# --- the process of the service ---------------------------------------------------------------------------------------


PRIVATE = 0o077
"""The mask of the files that a service creates, such as ledgers and logs: other users read none of them."""

KILLED = 1
"""Exit code after a second signal."""


def check_service(path: Path) -> str:
    """Check the settings, the declarations and the token file, and return what would be served, in words.

    Neither a table nor a ledger is opened.
    """
    settings = read_settings(path)
    read_tokens(settings.tokens)
    _refuse_unusable(settings)
    for table in settings.tables.values():
        check_table(table)
    names = ", ".join(settings.tables)
    page = "" if settings.cockpit is None else f", and the curator's page at {settings.cockpit.url}"
    return f"{path}: fine; would serve {names} at {settings.address.url}{page}"


def serve(
    path: Path,
    announce: Callable[[str], None],
    announce_cockpit: Callable[[str], None] = lambda url: None,
    *,
    restored: bool = False,
) -> int:
    """Serve the tables of a settings file until a signal; returns the exit code.

    `announce` is called with the address once the service listens, and `announce_cockpit` before that with the address
    of the curator's page, if there is one.  Ledgers that lack their last row are accepted only if they are said to be
    `restored`.
    """
    settings = read_settings(path)
    read_tokens(settings.tokens)
    _refuse_unusable(settings)
    usual = os.umask(PRIVATE)
    try:
        return _serve(settings, (announce, announce_cockpit), usual, restored=restored)
    finally:
        os.umask(usual)


def _serve(settings: Settings, announce: tuple[Callable[[str], None], ...], usual: int, *, restored: bool) -> int:
    """Serve; `usual` is the mask for the folders above the socket, which analysts must be able to enter."""
    try:
        set_up_log(settings.log)
    except OSError as error:
        raise InvalidValueError(
            f"log: {str(settings.log)!r} must be a file that can be written; {error.strerror}"
        ) from None
    with ExitStack() as opened:
        tables = []
        for one in settings.tables.values():
            tables.append(open_table(one, settings.heads, restored=restored))
            opened.callback(tables[-1].close)
            log("table_opened", table=one.name)
        os.umask(usual)
        try:
            listening = listen(settings.address)
        finally:
            os.umask(PRIVATE)
        opened.callback(listening.remove)
        service = _Running(settings, tables, listening, announce)
        opened.pop_all()  # from here on the service closes the tables
    try:
        return service.run()
    finally:
        listening.remove()


class _Running(uvicorn.Server):
    """A running service."""

    def __init__(
        self,
        settings: Settings,
        tables: list[OpenTable],
        listening: Listening,
        announce: tuple[Callable[[str], None], ...],
    ) -> None:
        self._settings, self._tables, self._announce = settings, tables, announce
        address = settings.address
        hosts = address.allowed_hosts if isinstance(address, PortAddress) else ()
        self._metrics = Metrics()
        rules = Rules(settings.limits, settings.time_grid, self._metrics)
        hub = None if settings.jupyterhub is None else HubIdentities(settings.jupyterhub)
        prefix = address.prefix if isinstance(address, PortAddress) else ""
        tokens = TokenStore(settings.tokens, Clock(now, settings.heads / "clock"))
        self._service = Service(tokens, hosts, rules, hub, prefix)
        tls = address.tls if isinstance(address, PortAddress) else None
        most, cockpit_most = most_connections(settings.cockpit is not None)
        per_peer = None if settings.behind_proxy else settings.limits.connections
        self._gate = Gate("service", most, per_peer, self._metrics)
        super().__init__(server_config(self._service.app(), self._gate, tls, lifespan=True))
        self._cockpit = None
        if settings.cockpit is not None:
            self._cockpit = _CockpitServer(self._service, settings.cockpit, cockpit_most, self._metrics)
        self._listening = replace(listening, socket=self._gate.listening(listening.socket))
        self._reloading = asyncio.Lock()
        self._background: set[asyncio.Task[None]] = set()

    def run(self) -> int:  # type: ignore[override]
        """Serve until a signal."""
        try:
            super().run(sockets=[self._listening.socket])
        finally:
            self._listening.socket.close()
            if self._cockpit is not None:
                self._cockpit.listening.remove()
        if self.force_exit:
            log("stopped_at_once", logging.WARNING)
            os._exit(KILLED)  # the thread of a running request would be waited for
        log("stopped")
        return 0

    async def startup(self, sockets: list[object] | None = None) -> None:  # type: ignore[override]
        """Begin to listen."""
        for table in self._tables:
            self._service.add(table)
        await super().startup(sockets)  # type: ignore[arg-type]
        asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, self._reload_later)
        address = self._settings.address
        if isinstance(address, PortAddress) and address.tls is None:
            log("plain_http", logging.WARNING, why="the port is on the loopback; other machines cannot reach it")
        log("started", address=self._listening.address.url, tables=sorted(self._service.tables), process=os.getpid())
        announce, announce_cockpit = self._announce
        if self._cockpit is not None:
            self._cockpit.begin()
            url = self._cockpit.listening.address.url
            log("cockpit_started", address=url)
            announce_cockpit(url)
        announce(self._listening.address.url)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Stop after the running requests; at once when called again.

        Unlike uvicorn's own, which raises the signal again at the end, so that the exit code is not 0.
        """
        self.force_exit, self.should_exit = self.should_exit, True

    async def main_loop(self) -> None:
        """Serve until a signal, then end the streams of events, which would keep the service from stopping."""
        await super().main_loop()
        log("stopping")
        self._gate.stop()
        self._service.end_streams()
        if self._cockpit is not None:
            await self._cockpit.end()

    # --- reload -------------------------------------------------------------------------------------------------

    def _reload_later(self) -> None:
        task = asyncio.get_running_loop().create_task(self._reload())
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    async def _reload(self) -> None:
        """Add and remove tables, all of it or nothing, and then divide the budgets of the others as the file says."""
        async with self._reloading:
            opened: list[OpenTable] = []
            try:
                new = await asyncio.to_thread(read_settings, self._settings.path)
                read_tokens(new.tokens)
                self._refuse_changes(new)
                for name in new.tables.keys() - self._settings.tables.keys():
                    opened.append(await asyncio.to_thread(open_table, new.tables[name], new.heads))
            except Exception as error:  # noqa: BLE001  (whatever is wrong with the file, the service goes on)
                for table in opened:
                    table.close()
                log("reload_refused", logging.ERROR, error, why="the service keeps its settings")
                return
            removed = sorted(self._settings.tables.keys() - new.tables.keys())
            for name in removed:
                await self._service.remove(name)
            for table in opened:
                self._service.add(table)
            for name, served in self._service.tables.items():
                if new.tables[name] != self._settings.tables.get(name, new.tables[name]):
                    await self._divide(served, new.tables[name])
            self._settings = new
            log("reloaded", added=sorted(table.name for table in opened), removed=removed)

    async def _divide(self, served: ServedTable, settings: TableSettings) -> None:
        """Divide a budget as the settings say now; the table keeps its division if that cannot be done."""
        try:
            turn = served.table.worker.submit(SETTINGS, partial(served.table.divide, settings))
            await asyncio.wrap_future(turn.future)
        except DpnbError as error:
            log("division_refused", logging.ERROR, error, table=settings.name, why="the table keeps its division")
        else:
            log("divided", table=settings.name)
        await asyncio.to_thread(served.drop_refused)
        served.end_revoked()

    def _refuse_changes(self, new: Settings) -> None:
        """Refuse what only a restart can change."""
        old = self._settings
        keys = "cockpit", "tokens", "heads", "log", "time_grid", "limits", "jupyterhub", "behind_proxy"
        changed = ["the address"] if old.address != new.address else []
        changed += [key for key in keys if getattr(old, key) != getattr(new, key)]
        for name in sorted(old.tables.keys() & new.tables.keys()):
            if replace(old.tables[name], division=new.tables[name].division) != new.tables[name]:
                changed.append(f"tables.{name}")
        if changed:
            raise InvalidValueError(
                f"{new.path}: {', '.join(changed)}: can be changed by a restart only; nothing was changed; restart the "
                "service"
            )


def _refuse_unusable(settings: Settings) -> None:
    for address in (settings.address, settings.cockpit):
        if isinstance(address, PortAddress) and address.tls is not None:
            tls = address.tls
            try:
                ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate, tls.key, lambda: "")
            except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
                reason = error.reason if isinstance(error, ssl.SSLError) else getattr(error, "strerror", None)
                raise InvalidValueError(
                    f"{tls.place}: tls: must be the PEM files of a certificate and its key, without a passphrase; they "
                    f"cannot be used ({reason or type(error).__name__}); check both files"
                ) from None
