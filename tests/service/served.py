"""A service in this process for tests, without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from pathlib import Path
from typing import Any, TypeVar

import httpx
import msgspec
import pandas as pd

import dpnb
from dpnb._request import AnyRequest, Release
from dpnb._target import Target
from dpnb.service.access.tokens import Role, TokenStore, new_token
from dpnb.service.app import Service
from dpnb.service.configuration.parts import DivisionSettings
from dpnb.service.configuration.settings import TableSettings
from dpnb.service.opening import OpenTable
from dpnb.wire.decoding import encode_envelope
from dpnb.wire.messages import Envelope

T = TypeVar("T")

SECRET = "XAVIER-7Q"
"""A text in a row, which no reply and no line of the log may contain."""

REQUESTS = "/v3/tables/people/requests"


def people() -> pd.DataFrame:
    return pd.DataFrame({"age": [20 + i % 60 for i in range(300)], "note": [SECRET] * 300})


def open_people(ledger: Path | str, **changes: Any) -> dpnb.Session:
    arguments: dict[str, Any] = {
        "name": "people",
        "budget": dpnb.Budget.gdp(1),
        "schema": {"age": dpnb.Bounded(0, 100, integer=True)},
        "ledger": ledger,
    }
    return dpnb.Session(people(), **{**arguments, **changes})


class Served:
    """A service with one table, an analyst's token and a client without one."""

    def __init__(
        self, folder: Path, client: httpx.AsyncClient, service: Service, name: str = "ana", role: Role = "analyst"
    ) -> None:
        self.tokens, self.client, self.service = folder / "tokens.json", client, service
        self.token = new_token(self.tokens, name, role=role)

    @property
    def session(self) -> dpnb.Session:
        return self.service.tables["people"].table.session

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def of(self, name: str, role: Role = "analyst") -> Served:
        """The same service with the token of another person."""
        return Served(self.tokens.parent, self.client, self.service, name, role)

    async def get(self, path: str, **headers: str) -> httpx.Response:
        return await self.client.get(path, headers={**self.headers, **headers})

    async def post(self, body: bytes, **headers: str) -> httpx.Response:
        given = {**self.headers, "Content-Type": "application/json", **headers}
        return await self.client.post(REQUESTS, content=body, headers=given)

    def count(self, number: str, mu: str = "1/10", **changes: Any) -> bytes:
        """The body of a request for the number of rows."""
        query = self.session.frame.count()
        return self.body(number, Release(query.plan, query.view, Target("mu", Fraction(mu))), **changes)

    def body(self, number: str, call: AnyRequest, **changes: Any) -> bytes:
        return encode_envelope(Envelope(number, call, **changes))

    @property
    def charges(self) -> int:
        return self.session.ledger.count


def run_served(
    folder: Path,
    scenario: Callable[[Served], Awaitable[None]],
    session: dpnb.Session | None = None,
    division: DivisionSettings | None = None,
    **options: Any,
) -> None:
    """Run a scenario against a service."""

    async def run() -> None:
        service = Service(TokenStore(folder / "tokens.json"), **options)
        settings = TableSettings("people", "here", division=division or DivisionSettings())
        service.add(OpenTable(settings, session or open_people(folder / "people.dpnb")))
        transport = httpx.ASGITransport(service.app(), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            try:
                await scenario(Served(folder, client, service))
            finally:
                await service.close()

    run_in_loop(run())


def run_in_loop(work: Coroutine[Any, Any, T]) -> T:
    """What `asyncio.run` returns, in another thread, since this one may have the loop of a browser test."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, work).result()


def content(response: httpx.Response) -> Any:
    return msgspec.json.decode(response.content)
