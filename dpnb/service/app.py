"""The routes of the service.

Every route but the health check needs a token.  A body is read up to a limit, and a page or a plain name in an error
repeats nothing that the client sent.  No reply contains the text of an exception that dpnb did not write for analysts.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Callable
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError
from dpnb.service.events import ChangeFeed
from dpnb.service.log import log, log_login
from dpnb.service.opening import OpenTable
from dpnb.service.requests import UNAUTHORIZED, RequestRunner
from dpnb.service.settings import is_loopback
from dpnb.service.tokens import LONGEST_TOKEN, TokenStore
from dpnb.wire import VERSION
from dpnb.wire.decoding import decode_request
from dpnb.wire.limits import MAX_BODY, MAX_INTEGER, MAX_PENDING
from dpnb.wire.replies import Changed, Refused

BODY_SECONDS = 60.0
"""Time that a client has to send a body."""

NUMBERS = re.compile(r"(?:[0-9]{1,19}(?:,[0-9]{1,19})*)?", re.ASCII)
LOOPBACK_NAMES = ("localhost", "127.0.0.1", "[::1]", "::1")

NO_TABLE = (
    "table: must be one that the service has now; got another; connect without table= to see which it has, or ask the "
    "curator"
)
NO_ROUTE = "Not Found"
"""How Starlette describes an address without a route, such as one of another version."""

Valid = Callable[[], bool]


class ServedTable(NotCopyable):
    """A table with its running requests and streams.

    Parameters
    ----------
    table : OpenTable
        The table.
    """

    def __init__(self, table: OpenTable) -> None:
        self.table = table
        self.feed = ChangeFeed(self._state, table.session.ledger.foreign_changes)
        self.runner = RequestRunner(table, self.feed.notify)
        table.session._core.on_change(self.feed.notify)

    def _state(self) -> Changed:
        rows = self.table.rows
        return Changed(rows.count, rows.answered)


class Service(NotCopyable):
    """The tables and tokens of a running service; both may be replaced while it runs.

    Parameters
    ----------
    tokens : TokenStore
        The tokens.
    hosts : tuple of str
        Names that requests may be addressed to; all if empty, as on a Unix socket, which no web page can reach.
    """

    def __init__(self, tokens: TokenStore, hosts: tuple[str, ...] = ()) -> None:
        self.tokens, self._hosts = tokens, hosts
        self.tables: dict[str, ServedTable] = {}

    def add(self, table: OpenTable) -> None:
        """Serve a table; call in the event loop."""
        self.tables[table.name] = ServedTable(table)

    async def remove(self, name: str) -> None:
        """Serve a table no longer, after its running requests."""
        served = self.tables.pop(name)
        served.feed.end()
        await asyncio.to_thread(served.table.close)

    def end_streams(self) -> None:
        """End all streams of events, so that the service can stop."""
        for served in self.tables.values():
            served.feed.end()

    async def close(self) -> None:
        """Finish the running requests and close the tables."""
        for name in list(self.tables):
            await self.remove(name)

    def app(self) -> Starlette:
        """The ASGI application."""
        base = f"/v{VERSION}"
        routes = [
            Route(f"{base}/health", _health, methods=["GET"]),
            Route(f"{base}/tables", self._authenticated(self._names), methods=["GET"]),
            Route(f"{base}/tables/{{table}}", self._authenticated(self._table), methods=["GET"]),
            Route(f"{base}/tables/{{table}}/requests", self._authenticated(self._requests), methods=["POST"]),
            Route(f"{base}/tables/{{table}}/rows", self._authenticated(self._rows), methods=["GET"]),
            Route(f"{base}/tables/{{table}}/events", self._authenticated(self._events), methods=["GET"]),
        ]
        hosts = [Middleware(TrustedHostMiddleware, allowed_hosts=list(self._hosts), www_redirect=False)]

        @contextlib.asynccontextmanager
        async def lifespan(app: Starlette) -> AsyncIterator[None]:
            yield
            await self.close()

        app = Starlette(
            routes=routes,
            middleware=hosts if self._hosts else [],
            lifespan=lifespan,
            exception_handlers={HTTPException: _refused_by_http, Exception: _failed},
        )
        app.router.redirect_slashes = False
        return app

    # --- authentication -----------------------------------------------------------------------------------------

    def _authenticated(self, answer: Callable[[HttpRequest, str, Valid], Any]) -> Callable[[HttpRequest], Any]:
        """A route that answers only with a valid token."""

        async def route(request: HttpRequest) -> Response:
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            token = token if scheme.lower() == "bearer" and len(token) <= LONGEST_TOKEN else ""
            actor = self.tokens.owner(token)
            if actor is None:
                log_login("login_refused", client=_client(request), fault=self.tokens.fault)
                return _reply(*UNAUTHORIZED, headers={"WWW-Authenticate": "Bearer"})
            response: Response = await answer(request, actor, lambda: self.tokens.owner(token) == actor)
            return response

        return route

    def _served(self, request: HttpRequest) -> ServedTable:
        served = self.tables.get(request.path_params["table"])
        if served is None:
            raise HTTPException(404, NO_TABLE)
        return served

    # --- routes -------------------------------------------------------------------------------------------------

    async def _names(self, request: HttpRequest, actor: str, is_valid: Valid) -> Response:
        log_login("login", actor=actor, client=_client(request))
        return _reply(200, sorted(self.tables))

    async def _table(self, request: HttpRequest, actor: str, is_valid: Valid) -> Response:
        table = self._served(request).table
        log_login("login", actor=actor, client=_client(request), table=table.name)
        return _reply(200, await asyncio.to_thread(lambda: table.description))

    async def _requests(self, request: HttpRequest, actor: str, is_valid: Valid) -> Response:
        served = self._served(request)
        body = await _body(request)
        try:
            decoded = decode_request(body)
        except DpnbError as error:
            log("refused", actor=actor, table=served.table.name, refusal=type(error).__name__)
            return _reply(400, Refused("RequestError", str(error)))
        return _reply(*await served.runner.run(decoded, actor, is_valid))

    async def _rows(self, request: HttpRequest, actor: str, is_valid: Valid) -> Response:
        served = self._served(request)
        after, pending = (_numbers(request.query_params.get(name, "")) for name in ("after", "pending"))
        if len(after) > 1 or len(pending) > MAX_PENDING:
            raise HTTPException(400, "rows: must have one number after=, and a limited list of numbers pending=")
        first = after[0] if after else 0
        return _reply(200, await asyncio.to_thread(served.runner.rows, first, pending))

    async def _events(self, request: HttpRequest, actor: str, is_valid: Valid) -> Response:
        feed = self._served(request).feed
        if feed.is_full:
            raise HTTPException(429, "events: too many open streams; close other sessions of this table")
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(feed.stream(is_valid), media_type="text/event-stream", headers=headers)


async def _health(request: HttpRequest) -> Response:
    """That the service runs; nothing about tables or requests, since it needs no token."""
    return _reply(200, {"status": "ok", "version": VERSION})


async def _body(request: HttpRequest) -> bytes:
    """The body of a request, read up to the limit."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "body: must be of the type application/json")
    if "content-encoding" in request.headers:
        raise HTTPException(415, "body: must not be compressed")
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_SECONDS):
            async for part in request.stream():
                body += part
                if len(body) > MAX_BODY:
                    raise HTTPException(
                        413, f"body: must have at most {MAX_BODY:,} bytes; request fewer groups at once"
                    )
    except TimeoutError:
        raise HTTPException(408, f"body: must be sent within {BODY_SECONDS:.0f} seconds") from None
    return bytes(body)


def _numbers(text: str) -> tuple[int, ...]:
    """Numbers of rows in an address, separated by commas."""
    if NUMBERS.fullmatch(text) is None:
        raise HTTPException(400, "rows: after= and pending= must be numbers of rows")
    return tuple(min(int(part), MAX_INTEGER) for part in text.split(",") if part)


def _reply(status: int, content: Any, headers: dict[str, str] | None = None) -> Response:
    return Response(
        msgspec.json.encode(content),
        status,
        {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", **(headers or {})},
        "application/json",
    )


async def _refused_by_http(request: HttpRequest, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 400
    detail = error.detail if isinstance(error, HTTPException) else ""
    if detail == NO_ROUTE:  # not a refusal: the client then says that the versions differ
        return _reply(status, {"version": VERSION})
    return _reply(status, Refused("RequestError", detail))


async def _failed(request: HttpRequest, error: Exception) -> Response:
    """What nothing foresaw; Starlette then raises the exception again, and the log gets its type and place."""
    return _reply(500, Refused("ServiceError", "failed; the curator's log has the details"))


def _client(request: HttpRequest) -> str | None:
    return request.client.host if request.client is not None else None


def allowed_hosts(host: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names that requests to a port may be addressed to, so that a web page cannot reach it under its own name."""
    return (*names, *(LOOPBACK_NAMES if is_loopback(host) else (host,)))
