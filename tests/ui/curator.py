"""A real service with a cockpit, analysts who ask, and the page of a curator in Chromium."""

from __future__ import annotations

import secrets
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import httpx
from playwright.sync_api import Page, expect

from dpnb._request import Release, RequestBudget
from dpnb._target import Target
from dpnb.service.access.tokens import Role, new_token
from dpnb.wire.decoding import encode_envelope
from dpnb.wire.messages import Envelope
from service.served import open_people, people
from waiting import LIMIT, LIMIT_MS

expect.set_options(timeout=LIMIT_MS)

DECLARATION = (
    'name = "{0}"\nbudget = {{ epsilon = 2.0, delta = 1e-6 }}\nversion = "2026"\n'
    '[schema]\nage = {{ type = "bounded", low = 0, high = 100, integer = true }}\n'
)
PARTS = """
mode = "reserved"
[tables.visits.projects]
aging = { ceiling = { share = 0.6 } }
[tables.visits.analysts]
ana = { project = "aging", ceiling = { share = 0.5 }, cap = { share = 0.5 } }
bob = { project = "aging", ceiling = { share = 0.5 }, cap = { share = 0.6 } }
cleo = { ceiling = { share = 0.25 } }
"""


class Service:
    """A service in a process of its own.

    Parameters
    ----------
    folder : Path
        Where its files are.
    tables : mapping of str to str
        The tables, and further lines of their settings.
    """

    def __init__(self, folder: Path, **tables: str) -> None:
        self.folder = folder
        self.socket = Path(tempfile.mkdtemp(prefix="dpnb-"), "run", "dpnb.sock")
        people().to_csv(folder / "people.csv", index=False)
        lines = [f'socket = "{self.socket}"', 'log = "service.log"', "time_grid = false", "[cockpit]", "port = 0"]
        for name, more in tables.items():
            (folder / f"{name}.toml").write_text(DECLARATION.format(name), "utf-8")
            lines += [f"[tables.{name}]", f'declaration = "{name}.toml"', 'data = "people.csv"', more]
        self.settings = folder / "curator.toml"
        self.settings.write_text("\n".join(lines), "utf-8")
        self.url = ""
        self._process: subprocess.Popen[str] | None = None

    def token(self, name: str, role: Role = "analyst") -> str:
        """A new token of a person."""
        return new_token(self.folder / "tokens.json", name, role=role)

    @contextmanager
    def served(self) -> Iterator[None]:
        """Serve until the end of the block."""
        command = [sys.executable, "-m", "dpnb", "serve", str(self.settings)]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
            self._process = process
            try:
                assert process.stdout is not None
                self.url = process.stdout.readline().partition("page is at ")[2].partition(";")[0]
                assert self.url.startswith("http://127.0.0.1:")
                assert "serving at" in process.stdout.readline()
                yield
            finally:
                self.stop()

    def stop(self) -> None:
        """Stop it as a curator does."""
        if self._process is not None:
            self._process.terminate()
            self._process.wait(LIMIT)

    def scan(self, token: str, table: str, name: str) -> None:
        """An analyst launches an above-threshold mechanism under a name."""
        from dpnb.remote.connect import connect

        session = connect(f"unix://{self.socket}", table=table, token=token)
        try:
            session.above_threshold(50, epsilon=0.01, name=name)
        finally:
            session.close()

    def ask(self, token: str, table: str, *requests: Callable[[Any], Any]) -> None:
        """What an analyst asks, each given the table's frame."""
        from dpnb.remote.connect import connect

        session = connect(f"unix://{self.socket}", table=table, token=token)
        try:
            for one in requests:
                one(session.frame)
        finally:
            session.close()

    def request(self, token: str, table: str, why: str, mu: str = "1/5") -> None:
        """An analyst requests budget for a count."""
        session = open_people(":memory:")
        query = session.frame.count()
        call = RequestBudget((Release(query.plan, query.view, Target("mu", Fraction(mu))),), why)
        session.ledger.close()
        transport = httpx.HTTPTransport(uds=str(self.socket))
        headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
        with httpx.Client(transport=transport, base_url="http://localhost", timeout=LIMIT) as client:
            body = encode_envelope(Envelope(secrets.token_hex(8), call))
            reply = client.post(f"/v3/tables/{table}/requests", content=body, headers=headers)
            assert reply.status_code == 200, reply.text


def login(page: Page, service: Service, token: str, at: str = "") -> None:
    """Open the cockpit and log in."""
    page.goto(f"{service.url}/{at}")
    page.get_by_label("Access token").fill(token)
    page.get_by_role("button", name="Log in").click()
    page.get_by_role("button", name="Log out").wait_for()
