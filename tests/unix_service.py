"""An application on a Unix socket, in a thread of this process, for tests of what connects to it."""

from __future__ import annotations

import asyncio
import gc
import itertools
import socket
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import uvicorn

from waiting import LIMIT, wait_until


class PromptServer(uvicorn.Server):
    """Ends when it is told to; uvicorn's own looks ten times a second, and then waits a tenth more."""

    async def main_loop(self) -> None:
        """Until it should end."""
        for tick in itertools.count():
            if await self.on_tick(tick):
                return
            await asyncio.sleep(0.005)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the sockets, and wait for the replies that are being sent."""
        for server in self.servers:
            server.close()
        told, times_without = set(), 0
        while times_without < 5:  # what was accepted before that may still be on its way
            for connection in self.server_state.connections - told:
                connection.shutdown()
                told.add(connection)
            await asyncio.sleep(0.002)
            is_busy = self.server_state.connections or self.server_state.tasks
            times_without = 0 if is_busy else times_without + 1
        await self.lifespan.shutdown()


@contextmanager
def served(app: Any, path: Path, end_streams: Callable[[], None]) -> Iterator[str]:
    """Serve an application; the value is its address.  Its streams end when it is told to end them."""
    server = PromptServer(uvicorn.Config(app, uds=str(path), log_level="critical"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    try:
        wait_until(lambda: server.started, "the service to start")
        yield f"unix://{path}"
    finally:
        end_streams()
        server.should_exit = True
        thread.join(LIMIT)
        path.unlink(missing_ok=True)
        with warnings.catch_warnings():  # uvicorn's loop ends before it has closed all of its sockets
            warnings.simplefilter("ignore", ResourceWarning)
            gc.collect()
