"""A service on a Unix socket, in a thread of this process, for tests of what connects to it."""

from __future__ import annotations

import asyncio
import gc
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import uvicorn

import dpnb
from dpnb.service.access.tokens import TokenStore
from dpnb.service.app import Service
from dpnb.service.configuration.parts import DivisionSettings
from dpnb.service.configuration.settings import TableSettings
from dpnb.service.opening import OpenTable
from waiting import LIMIT, wait_until


@contextmanager
def running(folder: Path, session: dpnb.Session, division: DivisionSettings) -> Iterator[tuple[str, Service]]:
    """A service with one table, ``people``; its address, and the service."""
    service = Service(TokenStore(folder / "tokens.json"))
    service.add(OpenTable(TableSettings("people", "here", division=division), session))
    socket = folder / "s"
    server = uvicorn.Server(uvicorn.Config(service.app(), uds=str(socket), log_level="critical"))

    async def serve() -> None:
        await server.serve()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started, "the service to start")
        yield f"unix://{socket}", service
    finally:
        service.end_streams()
        server.should_exit = True
        thread.join(LIMIT)
        with warnings.catch_warnings():  # uvicorn's loop ends before it has closed all of its sockets
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
