"""A cockpit in this process for tests, and the browser of a person who uses it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest

from dpnb._browser.curation import ServiceState
from dpnb.service.access.tokens import Role
from dpnb.service.cockpit import page
from dpnb.service.cockpit.app import Cockpit
from dpnb.service.cockpit.protections import Origins
from service.served import Served, run_served

ORIGIN = "http://localhost:8444"
ACTS = "/api/tables/people/acts"
LOG = "/api/tables/people/log"
FREEZE = {"act": "freeze", "why": "an audit"}


class Browser:
    """A browser with a cockpit open: it keeps the cookie and the second value."""

    def __init__(self, served: Served, app: Any, origin: str = ORIGIN) -> None:
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        self.served, self.origin = served, origin
        self.client = httpx.AsyncClient(transport=transport, base_url=origin)
        self.csrf = ""

    async def login(self) -> httpx.Response:
        """Log in with the token of the person."""
        response = await self.post("/login", {"token": self.served.token})
        if response.status_code == 200:
            self.csrf = response.json()["csrf"]
        return response

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.client.get(path, headers={"X-CSRF-Token": self.csrf, **headers})

    async def post(self, path: str, content: Any, **headers: str) -> httpx.Response:
        given = {"X-CSRF-Token": self.csrf, "Origin": self.origin, **headers}
        given = {name: value for name, value in given.items() if value}
        return await self.client.post(path, json=content, headers=given)

    async def state(self) -> Any:
        """What the page shows."""
        response = await self.get("/api/state")
        assert response.status_code == 200, response.text
        msgspec.json.decode(response.content, type=ServiceState)  # as strictly as the page reads it
        return response.json()


class Opened:
    """A served table with its cockpit."""

    def __init__(self, served: Served, cockpit: Cockpit) -> None:
        self.served, self.cockpit = served, cockpit
        self.app = cockpit.app()

    def browser(self, name: str, role: Role, origin: str = ORIGIN) -> Browser:
        """The browser of a person, who has not logged in."""
        return Browser(self.served.of(name, role), self.app, origin)

    async def logged_in(self, name: str = "eve", role: Role = "curator") -> Browser:
        """The browser of a person who has logged in."""
        browser = self.browser(name, role)
        assert (await browser.login()).status_code == 200
        return browser


page.POLL_SECONDS = 0.02  # a person would not notice; a test would wait half a second for each change


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A script and a style, so that no test of the routes needs a build."""
    folder = tmp_path / "static"
    folder.mkdir()
    for name in ("cockpit.js", "cockpit.css"):
        (folder / name).write_text("", "utf-8")
    monkeypatch.setattr(page, "STATIC", folder)


def run_cockpit(
    folder: Path, scenario: Callable[[Opened], Awaitable[None]], origins: Origins | None = None, **options: Any
) -> None:
    """Run a scenario against a cockpit."""

    async def run(served: Served) -> None:
        await scenario(Opened(served, Cockpit(served.service, origins or Origins(("localhost",)))))

    run_served(folder, run, **options)
