"""A small service over real sessions, for tests of the client: it fails and loses connections when a test says so."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from dpnb import Session
from dpnb._request import ALWAYS
from dpnb.errors import DpnbError, LedgerReplaced
from dpnb.interactive.calls import execute
from dpnb.ledger.shared_rows import SharedRows
from dpnb.wire import messages as replies
from dpnb.wire.decoding import decode_envelope
from dpnb.wire.messages import Changed, Done, LedgerRow, Refused, Rows, Table
from unix_service import served
from waiting import LIMIT

TOKEN = "the-token-of-ana"
PAGE = 50


class SmallService:
    """A service for one analyst.

    Parameters
    ----------
    sessions : mapping of str to Session
        The sessions by table name.
    faults : list of str
        What happens at the next requests, in order: ``before`` and ``after`` lose the connection before or after the
        call is executed; a number is the status of the reply.
    """

    def __init__(self, sessions: Mapping[str, Session], faults: list[str] | None = None) -> None:
        self.sessions, self.faults = dict(sessions), [] if faults is None else faults
        self.shared = {name: SharedRows(session.ledger) for name, session in self.sessions.items()}
        self.seen: list[dict[str, Any]] = []
        self.executed: list[str] = []
        self.may_continue = threading.Event()
        self.may_continue.set()
        self.versions: dict[str, str] = {}
        self._replies: dict[str, tuple[str, replies.AnyReply]] = {}
        self._ended = threading.Event()
        self.app = Starlette(
            routes=[
                Route("/v3/tables", self._tables),
                Route("/v3/tables/{table}", self._table),
                Route("/v3/tables/{table}/rows", self._rows),
                Route("/v3/tables/{table}/requests", self._requests, methods=["POST"]),
                Route("/v3/tables/{table}/events", self._events),
                Route(
                    "/v3/moved", lambda request: Response(status_code=307, headers={"Location": "http://127.0.0.1:9"})
                ),
            ]
        )

    # --- replies ------------------------------------------------------------------------------------------------

    def _checked(self, request: Request) -> Response | None:
        self.seen.append({"path": request.url.path, "headers": dict(request.headers)})
        if request.headers.get("Authorization") != f"Bearer {TOKEN}":
            return Response(status_code=401)
        name = request.path_params.get("table")
        return None if name is None or name in self.sessions else refused(404, "RequestError", "table: unknown")

    def _tables(self, request: Request) -> Response:
        return self._checked(request) or _json(tuple(self.sessions))

    def _table(self, request: Request) -> Response:
        if (denied := self._checked(request)) is not None:
            return denied
        name = request.path_params["table"]
        core = self.sessions[name]._core
        public, ledger = core.pricer.public, core.account.ledger
        version = self.versions.get(name, core.version)
        return _json(
            Table(
                name,
                version,
                ledger.metadata,
                ledger.parameters,
                core.tables.columns,
                public.units,
                dict(public.rows),
                core.notice,
            )
        )

    def rows_after(self, name: str, after: int, pending: tuple[int, ...]) -> Rows:
        shared = self.shared[name]
        new = shared.after(after, PAGE)
        more = shared.count > after + len(new)
        return Rows(tuple(map(LedgerRow, [*shared.changed(pending), *new])), more)

    def _rows(self, request: Request) -> Response:
        if (denied := self._checked(request)) is not None:
            return denied
        numbers = request.query_params["pending"]
        pending = tuple(map(int, numbers.split(","))) if numbers else ()
        name, after = request.path_params["table"], int(request.query_params["after"])
        try:
            self.shared[name].refuse_fork(after, request.query_params["head"])
        except LedgerReplaced as error:
            return refused(409, "LedgerReplaced", str(error))
        return _json(self.rows_after(name, after, pending))

    async def _requests(self, request: Request) -> Response:
        if (denied := self._checked(request)) is not None:
            return denied
        body, fault = await request.body(), self.faults.pop(0) if self.faults else ""
        if fault.isdigit():
            return Response(status_code=int(fault))
        if fault == "before":
            return LostConnection()
        reply = await asyncio.to_thread(self._executed, request.path_params["table"], body)
        if fault == "after":
            return LostConnection()
        return _json(reply, 200 if isinstance(reply, Done) else 422)

    def _executed(self, name: str, body: bytes) -> replies.AnyReply:
        self.may_continue.wait(LIMIT)
        sent, digest = decode_envelope(body), hashlib.sha256(body).hexdigest()
        if sent.id in self._replies:
            known, reply = self._replies[sent.id]
            assert known == digest
            return reply
        self.executed.append(type(sent.request).__name__)
        shared = self.shared[name]
        try:
            shared.refuse_fork(sent.after, sent.head)
            conditions = sent.conditions or ALWAYS
            if conditions.inside:
                conditions = msgspec.structs.replace(conditions, inside=shared.node(conditions.inside))
            ids = execute(self.sessions[name]._mechanisms.at(shared.node(sent.node)), sent.request, conditions)
        except LedgerReplaced as error:
            return Refused("LedgerReplaced", str(error))
        except DpnbError as error:
            rows = self.rows_after(name, sent.after, sent.pending)
            return Refused(type(error).__name__, str(error), rows)
        reply = Done(shared.by_ids(ids), self.rows_after(name, sent.after, sent.pending))
        self._replies[sent.id] = digest, reply
        return reply

    async def _events(self, request: Request) -> Response:
        denied = self._checked(request)
        return denied or StreamingResponse(self._changes(request.path_params["table"]), media_type="text/event-stream")

    async def _changes(self, name: str) -> AsyncIterator[str]:
        last, beats = None, 0
        while not self._ended.is_set():
            shared = self.shared[name]
            answered = sum(one.status == "released" for one in self.sessions[name].ledger.charges())
            now = Changed(shared.count, answered)
            if now != last:
                yield f": a comment\nevent: changed\ndata: {msgspec.json.encode(now).decode()}\n\n"
                last = now
            elif (beats := beats + 1) % 100 == 0:
                yield ": still here\n\n"
            await asyncio.sleep(0.02)

    # --- the server ---------------------------------------------------------------------------------------------

    @contextmanager
    def served(self, socket: Path) -> Iterator[str]:
        """Serve on a Unix socket; the value is the address."""
        self._ended.clear()
        with served(self.app, socket, self._ended.set) as address:
            yield address


class LostConnection(Response):
    """A reply that breaks off."""

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"1000")]})
        await send({"type": "http.response.body", "body": b"{", "more_body": True})
        raise ConnectionError


def _json(value: Any, status: int = 200) -> Response:
    return Response(msgspec.json.encode(value), status, media_type="application/json")


def refused(status: int, error: str, message: str) -> Response:
    return _json(Refused(error, message), status)
