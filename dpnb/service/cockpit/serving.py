"""The second server of the process, which serves the cockpit on a socket of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import uvicorn

from dpnb.service.address import listen
from dpnb.service.app import Service, allowed_hosts
from dpnb.service.cockpit.app import Cockpit
from dpnb.service.cockpit.protections import Origins
from dpnb.service.ports import PortAddress

MOST_CONNECTIONS = 200


class CockpitServer(uvicorn.Server):
    """Serves the cockpit while the service runs.

    Parameters
    ----------
    service : Service
        The service.
    address : PortAddress
        Where it listens.

    Raises
    ------
    InvalidValueError
        If the address cannot be used, or the page was not built.

    Attributes
    ----------
    url : str
        The address that a curator opens.
    """

    def __init__(self, service: Service, address: PortAddress) -> None:
        tls = address.tls
        self._cockpit = Cockpit(service, Origins(allowed_hosts(address.host, address.names), tls is not None))
        self._address, self._listening = address, listen(address)
        self.url = self._listening.url
        self._task: asyncio.Task[None] | None = None
        super().__init__(
            uvicorn.Config(
                self._cockpit.app(),
                log_config=None,
                access_log=False,
                server_header=False,
                proxy_headers=False,
                lifespan="off",
                ws="none",
                h11_max_incomplete_event_size=64 * 1024,
                limit_concurrency=MOST_CONNECTIONS,
                ssl_certfile=None if tls is None else str(tls.certificate),
                ssl_keyfile=None if tls is None else str(tls.key),
            )
        )

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
        self.should_exit = True
        if self._task is not None:
            await self._task

    def close(self) -> None:
        """Close the socket."""
        self._listening.remove(self._address)
