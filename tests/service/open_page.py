"""The curator's page of a service, as an open browser tab follows it."""

from __future__ import annotations

import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import httpx

from dpnb.service.access.tokens import new_token
from service.hub_running import free_ports


class OpenPage:
    """An open page: it reads the state of all tables after each event, and logs in again when the service is back.

    Parameters
    ----------
    tokens : Path
        The file of the service's tokens, in which it makes one of a curator.
    """

    def __init__(self, tokens: Path) -> None:
        (port,) = free_ports(1)
        self.settings = f"[cockpit]\nport = {port}\n"
        self._url, self._token = f"http://127.0.0.1:{port}", new_token(tokens, "eve", role="curator")
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self.states, self.logins = 0, 0
        self.last: Any = None

    def __enter__(self) -> OpenPage:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()

    @property
    def rows(self) -> int:
        """The number of rows of the only table's ledger, as the page shows it."""
        return 0 if self.last is None else int(self.last["tables"][0]["rows"])

    def _follow(self) -> None:
        while not self._ended.is_set():
            with suppress(httpx.TransportError), httpx.Client(base_url=self._url, verify=False) as client:
                login = client.post("/login", json={"token": self._token}, headers={"Origin": self._url})
                self.logins += login.status_code == 200
                client.headers["X-CSRF-Token"] = login.raise_for_status().json()["csrf"]
                with client.stream("GET", "/api/events") as stream:
                    for line in stream.iter_lines():  # a comment arrives at least every few seconds
                        if self._ended.is_set():
                            return
                        if line.startswith("data:"):
                            self.last = client.get("/api/state").raise_for_status().json()
                            self.states += 1
            self._ended.wait(0.05)
