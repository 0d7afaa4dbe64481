"""The second server of the process, which serves the cockpit on a socket of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import uvicorn

from dpnb.service.address import listen
from dpnb.service.app import Service
from dpnb.service.cockpit.app import Cockpit
from dpnb.service.cockpit.protections import Origins
from dpnb.service.connections import Bounds, Gate
from dpnb.service.http import server_config
from dpnb.service.metrics import Metrics
from dpnb.service.ports import PortAddress


class CockpitServer(uvicorn.Server):
    """Serves the cockpit while the service runs, on at most `most` connections, which are apart from those of analysts.

    `url` is the address that a curator opens.
    """

    def __init__(self, service: Service, address: PortAddress, most: int, metrics: Metrics) -> None:
        tls = address.tls
        self._cockpit = Cockpit(service, Origins(address.allowed_hosts, tls is not None))
        per_peer = None if tls is None else most // 2  # without TLS it is on the loopback, where a tunnel may end
        self._gate = Gate("cockpit", Bounds(most, per_peer), metrics)
        opened = listen(address)
        self._address, self.url = address, opened.url
        self._listening = replace(opened, socket=self._gate.listening(opened.socket))
        self._task: asyncio.Task[None] | None = None
        super().__init__(server_config(self._cockpit.app(), self._gate, tls, lifespan=False))

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave the signals to the service."""
        yield

    def begin(self) -> None:
        """Begin to serve, in the running loop."""
        self._task = asyncio.get_running_loop().create_task(self.serve([self._listening.socket]))

    async def end(self) -> None:
        """End the streams and the running requests."""
        self._cockpit.end_streams()
        self._gate.stop()
        self.should_exit = True
        if self._task is not None:
            await self._task

    def close(self) -> None:
        """Close the socket."""
        self._listening.remove(self._address)
