"""The routes of the cockpit; `dpnb.service.cockpit.protections` says which requests reach them.

The document, its script and its style say nothing about the service and need no login.  Everything else is below
``/api/`` and needs the cookie of a login and the second value; see `protections`.  The figures for Prometheus are at
``/metrics`` and need a token, as the routes of the service do.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request as HttpRequest
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from dpnb._browser.curation import Login, NewToken, PeopleChanged, ServiceState, TableState, TokenHolder
from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError
from dpnb.ledger import node_of
from dpnb.service.access.tokens import AUDITORS, CURATORS, MONITORS, Identity, Role, StoredToken
from dpnb.service.app import Service
from dpnb.service.cockpit.page import DOCUMENT, Live, read_static
from dpnb.service.cockpit.protections import LIFETIME, Logins, NewLogin, Origins, Protected
from dpnb.service.cockpit.records import Audits, records
from dpnb.service.curation.acts import (
    LONGER,
    TOKEN_EVENTS,
    TokenAct,
    carry_out,
    change_people,
    change_tokens,
    may_change,
    may_rotate,
)
from dpnb.service.curation.rows import audit_page, plan_page
from dpnb.service.curation.state import described, table_state
from dpnb.service.monitoring import log, log_login
from dpnb.service.network.http import client_of, keep_connection, read_body
from dpnb.service.opening import OpenTable
from dpnb.service.quotas import RequestRate
from dpnb.service.served import ServedTable
from dpnb.session.disclosure.building import report_about
from dpnb.wire.limits import MAX_INTEGER, WireError
from dpnb.wire.messages import ACTS, PERSON_ACTS

COOKIE, SECURE_COOKIE = "dpnb-cockpit", "__Host-dpnb-cockpit"
CSRF = "x-csrf-token"
MAX_BODY = 10_000
"""Bytes of a login or an act."""

BODY_SECONDS = 10.0
FORMATS = ("html", "json")
"""Of a disclosure statement."""

REQUESTS_PER_MINUTE = 600
"""Of one person, over all pages."""

LONG_SECONDS = 5
"""Time after which the page shows a running request; a short one would only flicker."""

PAGES = 5
"""Pages of an audit in one reply."""

WRONG_TOKEN = "The token is unknown, expired or revoked."  # noqa: S105  (a message)
NO_LOGIN = "The login has ended. Log in again."


class TokenGiven(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The body of a login."""

    token: str


RouteHandler = Callable[[HttpRequest, Identity, Callable[[], bool]], Awaitable[Response]]
"""Answers a person, of whom it can be asked whether the login is still theirs."""


class Cockpit(NotCopyable):
    """The curator's page of a running service, served under the names of `origins`."""

    def __init__(self, service: Service, origins: Origins) -> None:
        self._service, self._origins = service, origins
        self._logins = Logins(service.tokens)
        self._rates: dict[str, RequestRate] = {}
        self._live, self._audits = Live(self._version), Audits()
        self._cookie = SECURE_COOKIE if origins.is_secure else COOKIE
        self._files = {
            "/": (DOCUMENT.encode(), "text/html; charset=utf-8"),
            "/cockpit.js": (read_static("cockpit.js"), "text/javascript; charset=utf-8"),
            "/cockpit.css": (read_static("cockpit.css"), "text/css; charset=utf-8"),
        }

    def end_streams(self) -> None:
        """End all streams of events, so that the service can stop."""
        self._live.end()
        self._audits.end()

    def app(self) -> ASGIApp:
        """The ASGI application."""
        routes = [Route(path, self._file, methods=["GET"]) for path in self._files]
        routes += [
            Route("/login", self._login, methods=["POST"]),
            Route("/api/logout", self._logged_in(self._logout, AUDITORS), methods=["POST"]),
            Route("/api/state", self._logged_in(self._state, AUDITORS), methods=["GET"]),
            Route("/api/events", self._logged_in(self._events, AUDITORS), methods=["GET"]),
            Route("/api/tables/{table}/log", self._logged_in(self._log, AUDITORS), methods=["GET"]),
            Route("/api/tables/{table}/plan", self._logged_in(self._plan, AUDITORS), methods=["GET"]),
            Route("/api/tables/{table}/statement", self._logged_in(self._statement, AUDITORS), methods=["GET"]),
            Route("/api/tables/{table}/records", self._logged_in(self._records, AUDITORS), methods=["GET"]),
            Route("/api/tables/{table}/audits", self._logged_in(self._audit, AUDITORS), methods=["POST"]),
            Route("/api/tables/{table}/acts", self._logged_in(self._act, CURATORS), methods=["POST"]),
            Route("/api/tables/{table}/people", self._logged_in(self._people, CURATORS), methods=["POST"]),
            Route("/api/tokens", self._logged_in(self._change_tokens, CURATORS), methods=["POST"]),
            Route("/metrics", self._service.figures_route(), methods=["GET"]),
        ]
        app = Starlette(
            routes=routes,
            exception_handlers={
                **dict.fromkeys((DpnbError, WireError, msgspec.MsgspecError, RecursionError), _invalid),
                HTTPException: _refused_by_http,
                Exception: _failed,
            },
        )
        app.router.redirect_slashes = False
        return Protected(app, self._origins)

    async def _file(self, request: HttpRequest) -> Response:
        content, kind = self._files[request.url.path]
        return Response(content, media_type=kind)

    # --- logins -------------------------------------------------------------------------------------------------

    async def _login(self, request: HttpRequest) -> Response:
        given = msgspec.json.decode(await _body(request), type=TokenGiven)
        begun = self._logins.begin(given.token)
        if begun is None:
            return self._refuse_login(request)
        if not isinstance(begun, NewLogin):
            _note("role_refused", begun, request)
            return _refusal(403, f"The token has the role {begun.role}; this page is for {' and '.join(AUDITORS)}.")
        person = begun.person
        _note("login", person, request)
        self._logins.end(request.cookies.get(self._cookie, ""))
        response = _json(Login(begun.csrf, person.name, person.role, _stamp(begun.ends)))
        response.set_cookie(
            self._cookie,
            begun.cookie,
            max_age=int(LIFETIME.total_seconds()),
            path="/",
            httponly=True,
            samesite="strict",
            secure=self._origins.is_secure,
        )
        return response

    def _refuse_login(self, request: HttpRequest) -> Response:
        client = client_of(request)
        log_login("login_refused", client=client, page="cockpit", fault=self._service.tokens.fault)
        if seconds := self._service.failures.wait(client or ""):
            return _refusal(429, "Too many failed logins; wait a minute.", {"Retry-After": str(seconds)})
        return _refusal(401, WRONG_TOKEN)

    async def _logout(self, request: HttpRequest, person: Identity, is_valid: Callable[[], bool]) -> Response:
        self._logins.end(request.cookies.get(self._cookie, ""))
        log_login("logout", actor=person.name, client=client_of(request), page="cockpit")
        response = _json({})
        response.delete_cookie(self._cookie, path="/", httponly=True, samesite="strict", secure=self._origins.is_secure)
        return response

    def _logged_in(self, answer: RouteHandler, roles: tuple[Role, ...]) -> Callable[[HttpRequest], Any]:
        """A route that answers only with a login of one of the roles, which is checked with its token every time."""

        async def route(request: HttpRequest) -> Response:
            cookie, csrf = request.cookies.get(self._cookie, ""), request.headers.get(CSRF, "")
            person = self._logins.person(cookie, csrf)
            if person is None:
                return _refusal(401, NO_LOGIN)
            keep_connection(request.scope)
            if person.role not in roles:
                _note("role_refused", person, request)
                return _refusal(403, f"A person with the role {person.role} can only read.")
            rate = self._rates.setdefault(person.name, RequestRate(REQUESTS_PER_MINUTE))
            if seconds := rate.wait():
                return _refusal(429, "Too many requests; wait a minute.", {"Retry-After": str(seconds)})
            return await answer(request, person, self._logins.checker(cookie, csrf))

        return route

    # --- reading ------------------------------------------------------------------------------------------------

    def _served(self, request: HttpRequest) -> ServedTable:
        served = self._service.tables.get(request.path_params["table"])
        if served is None:
            raise HTTPException(404, "The service does not have this table now.")
        return served

    def _version(self) -> str:
        tokens = " ".join(f"{one.hash} {one.expires}" for one in self._service.tokens.holders())
        tables = list(self._service.tables.values())
        audits = [self._audits.last(served.table.name) for served in tables]
        audited = [f"{one.begun} {one.ended}" for one in audits if one is not None]
        return "\n".join([tokens, *map(version_of, tables), *audited])

    async def _state(self, request: HttpRequest, person: Identity, is_valid: Callable[[], bool]) -> Response:
        may_act = person.role in CURATORS
        tables = [served.table for served in self._service.tables.values()]
        views = [await asyncio.to_thread(table_view, table) for table in tables]
        holders = self._service.tokens.holders() if may_act else ()
        return _json(
            ServiceState(
                time=_stamp(datetime.now(UTC)),
                name=person.name,
                role=person.role,
                may_act=may_act,
                tables=views,
                tokens=[_holder(person, one) for one in holders],
            )
        )

    async def _log(self, request: HttpRequest, person: Identity, is_valid: Callable[[], bool]) -> Response:
        table, after = self._served(request).table, _row_number(request, "after")
        return _json(await asyncio.to_thread(audit_page, table, after, PAGES))

    async def _plan(self, request: HttpRequest, person: Identity, is_valid: Callable[[], bool]) -> Response:
        return _json(await asyncio.to_thread(plan_page, self._served(request).table, _row_number(request, "row")))

    async def _statement(self, request: HttpRequest, person: Identity, is_valid: Callable[[], bool]) -> Response:
        """The disclosure statement, or that of one analyst's part; a text, so that no browser shows it as a page."""
        table, form = self._served(request).table, request.query_params.get("format", "html")
        if form not in FORMATS:
            raise HTTPException(400, "format: must be html or json.")
        analyst = request.query_params.get("analyst", "")[:LONGER]
        # Not from its file: closing that would end the locks with which the ledger is being written.
        report = await asyncio.to_thread(report_about, table.session.ledger, analyst or None)
        log("statement", actor=person.name, role=person.role, table=table.name, about=analyst, page="cockpit")
        text = await asyncio.to_thread(report.to_html if form == "html" else report.to_json)
        return Response(text, headers={"Content-Disposition": "attachment"}, media_type="text/plain; charset=utf-8")

    async def _records(self, request: HttpRequest, person: Identity, is_valid: Callable[[], bool]) -> Response:
        return await self._records_of(self._served(request).table, person)

    async def _records_of(self, table: OpenTable, person: Identity) -> Response:
        audit = self._audits.last(table.name)
        figures = partial(self._service.figures_of, table.name) if person.role in MONITORS else list
        return _json(await asyncio.to_thread(lambda: records(table, audit, figures())))

    async def _audit(self, request: HttpRequest, person: Identity, is_valid: Callable[[], bool]) -> Response:
        """Start an audit, which changes nothing: so an auditor may."""
        table = self._served(request).table
        await _body(request, is_valid)
        if self._audits.start(table, person.name):
            log("audit_started", actor=person.name, role=person.role, table=table.name, page="cockpit")
        return await self._records_of(table, person)

    async def _events(self, request: HttpRequest, person: Identity, is_valid: Callable[[], bool]) -> Response:
        if self._live.is_full:
            raise HTTPException(429, "Too many open pages; close others.")
        headers = {"X-Accel-Buffering": "no"}
        return StreamingResponse(self._live.stream(is_valid), headers=headers, media_type="text/event-stream")

    # --- acts ---------------------------------------------------------------------------------------------------

    async def _act(self, request: HttpRequest, person: Identity, is_valid: Callable[[], bool]) -> Response:
        served = self._served(request)
        one = ACTS.decode(await _body(request, is_valid))
        await asyncio.to_thread(carry_out, served, person, one, page="cockpit")
        served.end_revoked()
        return _json(await asyncio.to_thread(table_view, served.table))

    async def _people(self, request: HttpRequest, person: Identity, is_valid: Callable[[], bool]) -> Response:
        served, service = self._served(request), self._service
        one = PERSON_ACTS.decode(await _body(request, is_valid))
        change = partial(change_people, service.tables, served, service.tokens, person, one, page="cockpit")
        token = await asyncio.to_thread(change)
        served.end_revoked()
        return _json(PeopleChanged(await asyncio.to_thread(table_view, served.table), token))

    async def _change_tokens(self, request: HttpRequest, person: Identity, is_valid: Callable[[], bool]) -> Response:
        one, tokens = msgspec.json.decode(await _body(request, is_valid), type=TokenAct), self._service.tokens
        role = tokens.role_of(one.name)
        if one.act != "new" and role is None:
            raise HTTPException(404, "There is nobody with a valid token of this name.")
        if one.act == "new" and role is not None:
            raise HTTPException(422, "The person has a valid token: replace it.")
        if not may_change(person, role or one.role, one):
            _note("role_refused", person, request)
            raise HTTPException(403, f"Only the owner can do this about a person with the role {role or one.role}.")
        token = await asyncio.to_thread(change_tokens, tokens, one)
        log(TOKEN_EVENTS[one.act], actor=person.name, role=person.role, name=one.name, page="cockpit")
        return _json(NewToken(one.name, token))


# --- what the page shows ----------------------------------------------------------------------------------------------


def table_view(table: OpenTable) -> TableState:
    """The state of a table; with nothing but a fault if its ledger cannot be read."""
    try:
        state = table_state(table)
    except DpnbError as error:
        return described(table, str(error))
    is_long = state.running is not None and state.running.seconds >= LONG_SECONDS
    return state if is_long else msgspec.structs.replace(state, running=None)


def _holder(reader: Identity, one: StoredToken) -> TokenHolder:
    may_extend = may_change(reader, one.role, TokenAct(one.name, "extend"))
    return TokenHolder(one.name, one.role, one.created, one.expires, may_rotate(reader, one.role, one.name), may_extend)


def version_of(served: ServedTable) -> str:
    """A text that changes with anything that the page shows of a table."""
    try:
        ledger, tree = served.table.session.ledger, served.table.session._core.account.tree
        nodes = map(node_of, tree.grants())
        lapsed = sum(tree.cap_with_raises(node).lapsed(ledger.time_in(node)) for node in nodes)
        one = served.table.running
        running = 0 if one is None or one.seconds < LONG_SECONDS else one.number
        return f"{served.table.name} {served.version} {ledger.count} {ledger.foreign_changes()} {lapsed} {running}"
    except DpnbError as error:
        return f"{served.table.name} {error}"


# --- requests and replies ---------------------------------------------------------------------------------------------


def _note(event: str, person: Identity, request: HttpRequest) -> None:
    log_login(event, actor=person.name, role=person.role, client=client_of(request), page="cockpit")


def _row_number(request: HttpRequest, name: str) -> int:
    text = request.query_params.get(name, "0")
    if not text.isascii() or not text.isdecimal() or len(text) > 19:
        raise HTTPException(400, f"{name}: must be the number of a row.")
    return min(int(text), MAX_INTEGER)


async def _body(request: HttpRequest, is_valid: Callable[[], bool] = lambda: True) -> bytes:
    body = await read_body(request, MAX_BODY, BODY_SECONDS)
    if not is_valid():  # while the body was sent
        raise HTTPException(401, NO_LOGIN)
    return body


def _json(content: Any) -> Response:
    return Response(msgspec.json.encode(content), media_type="application/json")


def _refusal(status: int, message: str, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode({"message": message}), status, headers, "application/json")


async def _refused_by_http(request: HttpRequest, error: Exception) -> Response:
    return _refusal(error.status_code, error.detail) if isinstance(error, HTTPException) else _refusal(400, "")


async def _failed(request: HttpRequest, error: Exception) -> Response:
    """What nothing foresaw; Starlette then raises the exception again, and the log gets its type and place."""
    log("cockpit_failed", logging.ERROR, error)
    return _refusal(500, "failed; the service's log has the details")


async def _invalid(request: HttpRequest, error: Exception) -> Response:
    """A body that cannot be decoded, or an act that is refused; nothing of the former is repeated."""
    if isinstance(error, DpnbError | WireError):
        return _refusal(422, str(error))
    return _refusal(400, "body: must be one of the acts of this page; reload it")


def _stamp(time: datetime) -> str:
    return time.isoformat(timespec="seconds").replace("+00:00", "Z")
