"""HTTP on a port of the service: which requests are read, how replies are written, and how long both may take."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable, MutableMapping
from contextlib import AsyncExitStack, suppress
from functools import partial
from typing import Any

import h11
import uvicorn
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from dpnb.service.configuration.ports import Certificate
from dpnb.service.network.connections import ACCEPTED_AT_ONCE, HEAD_SECONDS, AcceptedConnection, Gate, network

IDLE_SECONDS = 5
"""Between two requests of a connection."""

LINGER_SECONDS = 5.0
"""For the rest of a body that the service does not read, after the reply."""

WRITE_SECONDS = 30.0
"""For each piece of a reply that the client does not read."""

STOPPING_SECONDS = 10.0
"""For replies and bodies that are unfinished when the service stops."""

MOST_HEAD = 2**16
"""Bytes of a request's headers."""

PIECE = 2**16
"""Bytes of a reply that are written at once."""

HSTS = ("Strict-Transport-Security", "max-age=31536000")
END_OF_HEAD = re.compile(rb"\n\r?\n")
BARE_LINE_END = re.compile(rb"(?<!\r)\n|\r(?!\n|\Z)")
KEEP = "dpnb.keep"
"""In the scope of a request: what keeps its connection."""

LENGTH, CODING = b"content-length", b"transfer-encoding"


def server_config(app: Any, gate: Gate, tls: Certificate | None, *, lifespan: bool) -> uvicorn.Config:
    """How uvicorn serves an application behind a gate."""
    logging.getLogger("uvicorn.error").addFilter(_is_no_refusal)
    return uvicorn.Config(
        app,
        loop="asyncio",  # whose accepting the gate limits
        http=partial(_GatedProtocol, gate),  # type: ignore[arg-type]  # it is only called
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        lifespan="on" if lifespan else "off",
        ws="none",
        backlog=ACCEPTED_AT_ONCE,
        timeout_keep_alive=IDLE_SECONDS,
        headers=[] if tls is None else [HSTS],
        ssl_certfile=None if tls is None else str(tls.certificate),
        ssl_keyfile=None if tls is None else str(tls.key),
    )


def _is_no_refusal(record: logging.LogRecord) -> bool:
    """Whether a line of uvicorn's is not about a request that cannot be read: they are counted instead."""
    return record.msg != "Invalid HTTP request received."


class _StrictConnection(h11.Connection):
    """Refuses what two programs could read as different requests, before anything of it is executed."""

    _looked_at = 0  # bytes of an unfinished head

    def next_event(self) -> Any:
        """The next event; see `h11.Connection.next_event`."""
        if self.their_state is h11.IDLE:
            received = self.trailing_data[0]
            if fault := fault_of(received, self._looked_at):
                raise h11.RemoteProtocolError(fault)
            self._looked_at = 0 if END_OF_HEAD.search(received, max(self._looked_at - 3, 0)) else len(received)
        return super().next_event()


def fault_of(received: bytes, looked_at: int = 0) -> str:
    """Why the head of a request is refused, as far as it was received; empty if it may be read.

    RFC 9112 lets a server accept line ends without a carriage return, folded lines and repeated lengths.  A proxy in
    front of it may read them in another way and take a part of a body for a request.  A body in chunks is refused (it
    lets a server demand a length): chunks of one byte would keep the event loop busy without any limit of bytes.

    In the first `looked_at` bytes, an earlier call has found neither a fault nor the end.
    """
    end = END_OF_HEAD.search(received, max(looked_at - 3, 0))
    stop = len(received) if end is None else end.end()
    if BARE_LINE_END.search(received, max(looked_at - 1, 0), stop):
        return "a line must end with CR LF"
    if end is None:
        return ""
    _, *lines = received[:stop].split(b"\r\n")
    lengths = 0
    for line in lines:
        name, _, value = line.partition(b":")
        if name != name.strip():
            return "a header must be on one line, without a blank before the colon"
        if name.lower() == CODING:
            return "a body must have a length, and no coding"
        if name.lower() == LENGTH:
            lengths += 1
            if not value.strip(b" \t").isdigit():
                return "the length must be one number"
    return "a body must have one length" if lengths > 1 else ""


class _GatedProtocol(H11Protocol):
    """One connection, with limits of time; see `Gate`."""

    def __init__(self, gate: Gate, **options: Any) -> None:
        super().__init__(**options)
        self.conn, self._gate = _StrictConnection(h11.SERVER, MOST_HEAD), gate
        self._accepted: AcceptedConnection | None = None
        self._head: float | None = self.loop.time()  # since when the head of a request is expected
        self._replied: float | None = None  # since when no request is open
        self._paused: float | None = None  # since when the client reads nothing
        self._closing: float | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin; a peer on a Unix socket is named by its account."""
        self._accepted = self._gate.attach(transport.get_extra_info("socket").fileno(), self)
        super().connection_made(transport)
        if self._accepted is None:
            transport.abort()
        elif self.client is None:
            self.client = (self._accepted.peer, 0)

    def data_received(self, data: bytes) -> None:
        """Receive bytes."""
        if self._head is None and self._is_free:
            self._head = self.loop.time()
        super().data_received(data)

    def handle_events(self) -> None:
        """Begin the requests that were received."""
        before = self.scope
        super().handle_events()
        if self.scope is not before:
            self._head = self._replied = None
            self.scope[KEEP] = self._keep  # type: ignore[literal-required]
            if self._gate.per_peer is None and (client := _forwarded(self.headers)):
                self.scope["client"] = (client, 0)

    @property
    def _is_free(self) -> bool:
        """Whether no request is open."""
        cycle: Any = self.cycle  # None before the first request
        return cycle is None or bool(cycle.response_complete)

    def _keep(self) -> None:
        if self._accepted is not None and not self._is_free:
            self._gate.set_known(self._accepted)

    def on_response_complete(self) -> None:
        """End a request."""
        self._replied = self.loop.time()
        if self._accepted is not None:
            self._gate.set_unknown(self._accepted)
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait until the client reads."""
        self._paused = self.loop.time()
        super().pause_writing()

    def resume_writing(self) -> None:
        """Go on when the client has read."""
        self._paused = None
        super().resume_writing()

    def overdue(self, now: float) -> str:
        """Which time limit has passed; empty if none."""
        transport = self.transport
        if transport.is_closing() and self._closing is None:
            self._closing = now
        if self._head is not None and self._is_free and now - self._head > HEAD_SECONDS:
            return "head"
        if self._paused is not None and now - self._paused > WRITE_SECONDS:
            return "write"
        if self._closing is not None and now - self._closing > WRITE_SECONDS:
            return "write"
        if self._replied is not None:
            if transport.get_write_buffer_size() and now - self._replied > WRITE_SECONDS:
                return "write"
            if self.conn.their_state is h11.SEND_BODY and now - self._replied > LINGER_SECONDS:
                return "body"
        stopping = self._gate.stopping
        if stopping is not None and now - stopping > STOPPING_SECONDS:
            executes = not self._is_free and not self.cycle.response_started and not self.cycle.more_body
            return "" if executes else "stop"
        return ""

    def _should_upgrade(self) -> bool:
        return False  # without uvicorn's two lines of the log

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that cannot be read, and close; not logged, since anybody can send any number."""
        self._gate.note("invalid")
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            headers = [*self.server_state.default_headers, (b"content-length", b"0"), (b"connection", b"close")]
            self.transport.write(self.conn.send(h11.Response(status_code=400, headers=headers, reason=b"Bad Request")))
            self.transport.write(self.conn.send(h11.EndOfMessage()))
            self.transport.close()
        else:
            self.transport.abort()


def _forwarded(headers: list[tuple[bytes, bytes]]) -> str:
    """Whose request a proxy forwards: the last address, which the proxy added itself; empty if it says nothing."""
    stated = [value for name, value in headers if name == b"x-forwarded-for"]
    with suppress(ValueError):
        return network(stated[-1].rpartition(b",")[2].strip().decode("ascii", "replace")) if stated else ""
    return ""


def keep_connection(scope: MutableMapping[str, Any]) -> None:
    """Do not close the connection of a request with a valid token in favour of others."""
    if KEEP in scope:
        scope[KEEP]()


async def read_body(request: Request, most: int, seconds: float, advice: str = "") -> bytes:
    """The JSON in the body of a request, read up to a limit; what a longer one is refused with ends with the advice."""
    if request.headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
        raise HTTPException(415, "body: must be of the type application/json")
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in request.stream():
                body += part
                if len(body) > most:
                    raise HTTPException(413, f"body: must have at most {most:,} bytes{advice}")
    except TimeoutError:
        raise HTTPException(408, f"body: must be sent within {seconds:.0f} seconds") from None
    except ClientDisconnect:
        raise HTTPException(400, "body: must be complete; got the end of the connection") from None
    return bytes(body)


def client_of(request: Request) -> str | None:
    """Who sends a request, as far as the connection says it."""
    return request.client.host if request.client is not None else None


class PiecewiseResponse(Response):
    """A reply that is written in pieces, each when the client has read most of the one before."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Write the reply."""
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        for start in range(0, max(len(self.body), 1), PIECE):
            end = start + PIECE
            await send({"type": "http.response.body", "body": self.body[start:end], "more_body": end < len(self.body)})


class Held:
    """A route that may hold something until its reply was written."""

    def __init__(self, route: Callable[[Request, AsyncExitStack], Awaitable[Response]]) -> None:
        self._route = route

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        async with AsyncExitStack() as held:
            response = await self._route(Request(scope, receive, send), held)
            await response(scope, receive, send)
