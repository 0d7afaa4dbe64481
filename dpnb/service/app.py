"""The routes of the service.

Every route but the health check needs a token.  A body is read up to a limit, and an error about an address or the form
of a body repeats nothing that the client sent.  No reply contains the text of an exception that dpnb did not write for
analysts.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from time import monotonic
from typing import Any, TypeVar

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from dpnb._browser.curation import PeopleChanged, TableState
from dpnb.copying import NotCopyable
from dpnb.errors import (
    AccessDenied,
    DpnbError,
    InvalidValueError,
    LedgerReplaced,
    RequestError,
    ServiceUnavailable,
)
from dpnb.service.access.identities import HubIdentities, Identities, Valid
from dpnb.service.access.tokens import AUDITORS, CURATORS, LONGEST_TOKEN, MONITORS, Identity, Role, TokenStore
from dpnb.service.curation.acts import carry_out, change_people
from dpnb.service.curation.rows import audit_page, plan_page
from dpnb.service.curation.state import table_state
from dpnb.service.monitoring import log, log_login
from dpnb.service.network.http import STOPPING_SECONDS, Held, PiecewiseResponse, client_of, keep_connection, read_body
from dpnb.service.opening import NO_TABLE, OpenTable
from dpnb.service.quotas import (
    FAILED_TOO_OFTEN,
    TOO_MANY_OPEN,
    TOO_MUCH_WORK,
    TOO_OFTEN,
    FailedLogins,
    OpenRequests,
    RequestRate,
)
from dpnb.service.requests import UNAUTHORIZED
from dpnb.service.served import Rules, ServedAnalyst, ServedTable
from dpnb.service.turns import FreeWork, TooMuch
from dpnb.wire.decoding import HEAD
from dpnb.wire.limits import MAX_BODY, MAX_INTEGER, MAX_PENDING, WireError
from dpnb.wire.messages import ACTS, PERSON_ACTS, VERSION, Refused

T = TypeVar("T")
BODY_SECONDS = 60.0
"""Time that a client has to send a body."""

MOST_SENDERS = 1000
"""People of whom something is kept while they send nothing."""

NUMBERS = re.compile(r"(?:[0-9]{1,19}(?:,[0-9]{1,19})*)?", re.ASCII)

NO_ROUTE = "Not Found"
"""How Starlette describes an address without a route, such as one of another version."""

Answering = Callable[[HttpRequest, Identity, Valid], Awaitable[Response]]
ANALYSTS: tuple[Role, ...] = ("analyst",)
NO_ACT = "act: must be one that this service knows, with its fields only; its version may be older"
MAX_ACT = 10_000
"""Bytes of an act."""


class Service(NotCopyable):
    """The tables and tokens of a running service; both may be replaced while it runs.

    Requests must be addressed to one of `hosts`; to any name if it is empty, as on a Unix socket, which no web page can
    reach.  All routes are below the path `prefix`.
    """

    def __init__(
        self,
        tokens: TokenStore,
        hosts: tuple[str, ...] = (),
        rules: Rules | None = None,
        hub: HubIdentities | None = None,
        prefix: str = "",
    ) -> None:
        self.tokens, self._hosts, self._rules = tokens, hosts, rules or Rules()
        self.tables: dict[str, ServedTable] = {}
        self._senders: OrderedDict[str, OpenRequests] = OrderedDict()
        self.failures = FailedLogins()
        self._stopping = math.inf
        self._work = FreeWork(self._rules.limits, self._rules.metrics)
        self._hub, self._prefix, self.identities = hub, prefix, Identities(tokens, hub)

    def add(self, table: OpenTable) -> None:
        """Serve a table; call in the event loop."""
        self.tokens.clock.reach(table.session.ledger.time_in())
        self.tables[table.name] = ServedTable(table, self._rules, self._work)

    async def remove(self, name: str) -> None:
        """Serve a table no longer, after its running requests."""
        served = self.tables.pop(name)
        served.end()
        self._rules.metrics.forget(name)
        await asyncio.to_thread(served.table.close)

    def end_streams(self) -> None:
        """End all streams of events, so that the service can stop."""
        self._stopping = monotonic()
        for served in self.tables.values():
            served.end()

    async def close(self) -> None:
        """Finish the running requests and close the tables."""
        for name in list(self.tables):
            await self.remove(name)
        await asyncio.to_thread(self._work.close)
        if self._hub is not None:
            self._hub.close()

    def app(self) -> Starlette:
        """The ASGI application."""
        base = f"{self._prefix}/v{VERSION}"
        routes = [
            Route(f"{base}/health", _health, methods=["GET"]),
            Route(f"{base}/tables", self._authenticated(self._names, (*ANALYSTS, *AUDITORS)), methods=["GET"]),
            Route(f"{base}/tables/{{table}}", self._authenticated(self._table, ANALYSTS), methods=["GET"]),
            Route(f"{base}/tables/{{table}}/requests", self._authenticated(self._requests, ANALYSTS), methods=["POST"]),
            Route(f"{base}/tables/{{table}}/rows", self._authenticated(self._rows, ANALYSTS), methods=["GET"]),
            Route(f"{base}/tables/{{table}}/events", self._authenticated(self._events, ANALYSTS), methods=["GET"]),
            Route(f"{base}/tables/{{table}}/audit", self._authenticated(self._audit, AUDITORS), methods=["GET"]),
            Route(f"{base}/tables/{{table}}/plan", self._authenticated(self._plan, AUDITORS), methods=["GET"]),
            Route(f"{base}/tables/{{table}}/state", self._authenticated(self._state, AUDITORS), methods=["GET"]),
            Route(f"{base}/tables/{{table}}/acts", self._authenticated(self._act, CURATORS), methods=["POST"]),
            Route(f"{base}/tables/{{table}}/people", self._authenticated(self._people, CURATORS), methods=["POST"]),
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

    def _authenticated(self, answer: Answering, roles: tuple[Role, ...]) -> ASGIApp:
        """A route that answers only with a valid token of one of the roles."""

        async def route(request: HttpRequest, held: contextlib.AsyncExitStack) -> Response:
            scheme, _, token = request.headers.get("authorization", "").partition(" ")
            token = token if scheme.lower() == "bearer" and len(token) <= LONGEST_TOKEN else ""
            try:
                person = await self.identities.find(token)
            except AccessDenied as error:
                return self._refuse_login(request, _reply(403, Refused("AccessDenied", str(error))), str(error))
            except ServiceUnavailable as error:
                log("jupyterhub_unavailable", logging.WARNING, client=client_of(request))
                return _reply(503, Refused("ServiceUnavailable", str(error)))
            if person is None:
                refusal = _reply(*UNAUTHORIZED, headers={"WWW-Authenticate": "Bearer"})
                return self._refuse_login(request, refusal, self.tokens.fault)
            keep_connection(request.scope)
            if person.role not in roles:
                log_login("role_refused", actor=person.name, role=person.role, client=client_of(request))
                return _reply(403, Refused("AccessDenied", _needs(roles, person.role)))
            sender = self._sender(person.name)
            if seconds := sender.rate.wait():
                self._rules.metrics.limited("requests_per_minute")
                return _reply(*TOO_OFTEN, headers={"Retry-After": str(seconds)})
            if sender.open >= self._rules.limits.connections:
                self._rules.metrics.limited("connections")
                return _reply(*TOO_MANY_OPEN, headers={"Retry-After": "1"})
            held.enter_context(sender.opened())
            request.state.place = partial(self._place, sender, held)
            try:
                if person.role == "analyst":  # a curator must be able to act at any time
                    self._work.refuse_beyond(person.name)
                return await answer(request, person, Valid(self.identities, token, person))
            except TooMuch as error:
                return _reply(*TOO_MUCH_WORK, headers={"Retry-After": str(error.seconds)})

        return Held(route)

    async def _place(self, sender: OpenRequests, held: contextlib.AsyncExitStack) -> None:
        """Wait until a reply with rows may be made, but not for clients that do not read once the service stops."""
        await held.enter_async_context(sender.replies)
        if monotonic() - self._stopping > STOPPING_SECONDS:
            raise HTTPException(503, "service: stops; send the request again")

    def _refuse_login(self, request: HttpRequest, refusal: Response, fault: str) -> Response:
        self._rules.metrics.refused_logins.inc()
        log_login("login_refused", client=client_of(request), fault=fault)
        if seconds := self.failures.wait(client_of(request) or ""):
            return _reply(*FAILED_TOO_OFTEN, headers={"Retry-After": str(seconds)})
        return refusal

    def _sender(self, name: str) -> OpenRequests:
        """What a person has sent; those who sent nothing for long are forgotten."""
        sender = self._senders.setdefault(name, OpenRequests(RequestRate(self._rules.limits.requests_per_minute)))
        self._senders.move_to_end(name)
        for other in list(self._senders)[: max(len(self._senders) - MOST_SENDERS, 0)]:
            if not self._senders[other].open:
                del self._senders[other]
        return sender

    def _served(self, request: HttpRequest, person: Identity) -> ServedAnalyst:
        served = self._any_served(request)
        try:
            return served.analyst(person.name)
        except RequestError as error:
            raise HTTPException(404, str(error)) from None

    def _any_served(self, request: HttpRequest) -> ServedTable:
        """A table, for those who may see all of them."""
        served = self.tables.get(request.path_params["table"])
        if served is None:
            raise HTTPException(404, NO_TABLE)
        return served

    # --- routes -------------------------------------------------------------------------------------------------

    def figures_route(self) -> ASGIApp:
        """The figures of the process, at the port of the cockpit, since Prometheus reads no Unix socket."""
        return self._authenticated(self._rules.metrics.reply, MONITORS)

    def figures_of(self, table: str) -> list[tuple[str, str]]:
        """The figures of a table and of the process, in words; reads its ledger."""
        return self._rules.metrics.in_words(table)

    async def _names(self, request: HttpRequest, person: Identity, is_valid: Valid) -> Response:
        log_login("login", actor=person.name, role=person.role, client=client_of(request))
        sees_all = person.role in AUDITORS
        names = [name for name, one in self.tables.items() if sees_all or one.table.may_open(person.name)]
        return _reply(200, sorted(names))

    async def _table(self, request: HttpRequest, person: Identity, is_valid: Valid) -> Response:
        session = self._served(request, person).session
        log_login("login", actor=person.name, client=client_of(request), table=request.path_params["table"])
        return _reply(200, await self._work.reply(person.name, lambda: session.description))

    async def _requests(self, request: HttpRequest, person: Identity, is_valid: Valid) -> Response:
        served = self._served(request, person)
        try:
            with self._work.receiving(person.name):
                decoded = await self._work.decode(person.name, await _body(request))
        except DpnbError as error:
            log("refused", actor=person.name, table=request.path_params["table"], refusal=type(error).__name__)
            return _reply(400, Refused("RequestError", str(error)))
        return _reply(*await served.runner.run(decoded, is_valid, is_valid.last_known, request.state.place))

    async def _rows(self, request: HttpRequest, person: Identity, is_valid: Valid) -> Response:
        served = self._served(request, person)
        after, pending = (_numbers(request.query_params.get(name, "")) for name in ("after", "pending"))
        if len(after) > 1 or len(pending) > MAX_PENDING:
            raise HTTPException(400, "rows: must have one number after=, and a limited list of numbers pending=")
        first, head = after[0] if after else 0, request.query_params.get("head", "")
        if HEAD.fullmatch(head) is None:
            raise HTTPException(400, "rows: head= must be the hash of a row in hexadecimal")
        await request.state.place()
        try:
            return _reply(200, await served.next_rows(first, pending, head))
        except LedgerReplaced as error:
            return _reply(409, Refused("LedgerReplaced", str(error)))

    async def _events(self, request: HttpRequest, person: Identity, is_valid: Valid) -> Response:
        feed = self._served(request, person).feed
        if feed.is_full:
            raise HTTPException(429, "events: too many open streams; close other sessions of this table")
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        return StreamingResponse(feed.stream(is_valid.last_known), media_type="text/event-stream", headers=headers)

    async def _audit(self, request: HttpRequest, person: Identity, is_valid: Valid) -> Response:
        table, after = self._any_served(request).table, _numbers(request.query_params.get("after", ""))
        log_login("audit", actor=person.name, role=person.role, client=client_of(request), table=table.name)
        return _reply(200, await self._work.reply(person.name, partial(audit_page, table, after[0] if after else 0)))

    async def _plan(self, request: HttpRequest, person: Identity, is_valid: Valid) -> Response:
        table, rows = self._any_served(request).table, _numbers(request.query_params.get("row", ""))
        log_login("plan", actor=person.name, role=person.role, client=client_of(request), table=table.name)
        try:
            return _reply(200, await self._work.reply(person.name, partial(plan_page, table, rows[0] if rows else 0)))
        except DpnbError as error:
            return _reply(422, Refused("InvalidValueError", str(error)))

    async def _state(self, request: HttpRequest, person: Identity, is_valid: Valid) -> Response:
        table = self._any_served(request).table
        log_login("state", actor=person.name, role=person.role, client=client_of(request), table=table.name)
        return _reply(200, await self._work.reply(person.name, partial(table_state, table)))

    async def _act(self, request: HttpRequest, person: Identity, is_valid: Valid) -> Response:
        def do(served: ServedTable, body: bytes) -> None:
            carry_out(served, person, ACTS.decode(body))

        return await self._acted(request, is_valid, do, lambda state, nothing: state)

    async def _people(self, request: HttpRequest, person: Identity, is_valid: Valid) -> Response:
        def do(served: ServedTable, body: bytes) -> str | None:
            return change_people(self.tables, served, self.tokens, person, PERSON_ACTS.decode(body))

        return await self._acted(request, is_valid, do, PeopleChanged)

    async def _acted(
        self,
        request: HttpRequest,
        is_valid: Valid,
        do: Callable[[ServedTable, bytes], T],
        reply: Callable[[TableState, T], object],
    ) -> Response:
        served = self._any_served(request)
        try:
            body = (await _body(request))[:MAX_ACT]
            if not await asyncio.to_thread(is_valid):  # as before a charge: what the Hub said before does not do
                return _reply(*UNAUTHORIZED, headers={"WWW-Authenticate": "Bearer"})
            done = await asyncio.to_thread(do, served, body)
        except (msgspec.MsgspecError, RecursionError):
            return _reply(400, Refused("RequestError", NO_ACT))
        except (InvalidValueError, WireError) as error:
            return _reply(422, Refused("InvalidValueError", str(error)))
        except ServiceUnavailable as error:
            return _reply(503, Refused("ServiceUnavailable", str(error)))
        served.end_revoked()
        return _reply(200, reply(await asyncio.to_thread(table_state, served.table), done))


def _needs(roles: tuple[Role, ...], role: Role) -> str:
    """Why a route is refused, in words."""
    return (
        f"token: must have the role {' or '.join(roles)} for this; it has {role}; ask the owner of the service for "
        "another token"
    )


async def _health(request: HttpRequest) -> Response:
    """That the service runs; nothing about tables or requests, since it needs no token."""
    return _reply(200, {"status": "ok", "version": VERSION})


async def _body(request: HttpRequest) -> bytes:
    if "content-encoding" in request.headers:
        raise HTTPException(415, "body: must not be compressed")
    return await read_body(request, MAX_BODY, BODY_SECONDS, "; request fewer groups at once")


def _numbers(text: str) -> tuple[int, ...]:
    """Numbers of rows in an address, separated by commas."""
    if NUMBERS.fullmatch(text) is None:
        raise HTTPException(400, "rows: after=, pending= and row= must be numbers of rows")
    return tuple(min(int(part), MAX_INTEGER) for part in text.split(",") if part)


def _reply(status: int, content: Any, headers: dict[str, str] | None = None) -> Response:
    return PiecewiseResponse(
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
