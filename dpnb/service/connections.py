"""Which connections a port of the service accepts, and for how long each may keep it waiting.

A connection that has sent no request with a valid token is the first to be closed when there are too many, so that
silent ones keep nobody out.  No limit counts what other analysts do, apart from that of all connections, which is far
above what they may have.
"""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import os
import re
import resource
import socket
import struct
from collections import Counter, OrderedDict
from collections.abc import MutableMapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import h11
import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from dpnb.copying import NotCopyable
from dpnb.errors import InvalidValueError
from dpnb.service.log import log
from dpnb.service.metrics import Metrics
from dpnb.service.ports import Certificate

HEAD_SECONDS = 10.0
"""From the connection, or from the first byte of a later request, to the end of a request's headers; with TLS the
handshake is part of it."""

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

MOST_CONNECTIONS, MOST_COCKPIT_CONNECTIONS = 1000, 100
RESERVED_FILES = 384
"""Open files that connections leave to ledgers, logs, tables and engines, and to connections that are being closed."""

LEAST_CONNECTIONS = 64
MOST_FILES = 2**16
"""Open files above which the limit of the process is not raised."""

QUEUE, ACCEPTED_AT_ONCE = 1024, 32
"""Connections that wait to be accepted, and those that are accepted before earlier ones are dealt with."""

LOG_SECONDS = 60.0
HSTS = ("Strict-Transport-Security", "max-age=31536000")
NO_FILES = (errno.EMFILE, errno.ENFILE)
END_OF_HEAD = re.compile(rb"\n\r?\n")
BARE_LINE_END = re.compile(rb"(?<!\r)\n|\r(?!\n|\Z)")
KEEP = "dpnb.keep"
"""In the scope of a request: what keeps its connection."""

LENGTH, CODING = b"content-length", b"transfer-encoding"


@dataclass(frozen=True)
class Bounds:
    """How many connections a port accepts."""

    most: int  # in all
    per_peer: int | None = None  # from one address, or of one account of this machine; None if all come through a proxy

    @property
    def behind_proxy(self) -> bool:
        """Whether a proxy says who the peers are."""
        return self.per_peer is None


def most_connections(has_cockpit: bool) -> tuple[int, int]:
    """The most connections of the service and of the cockpit, from how many files the process may open.

    The limit is raised as far as the process may raise it; `InvalidValueError` if it is then too small for a service.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    files = MOST_FILES if soft == resource.RLIM_INFINITY else soft
    free = files - RESERVED_FILES
    if free < LEAST_CONNECTIONS:
        raise InvalidValueError(
            f"open files: must be at least {RESERVED_FILES + LEAST_CONNECTIONS} for this process; got a limit of "
            f"{files}; write LimitNOFILE=8192 into the unit of systemd, or raise it with ulimit -n"
        )
    cockpit = min(MOST_COCKPIT_CONNECTIONS, free // 4) if has_cockpit else 0
    most = min(MOST_CONNECTIONS, free - cockpit)
    if most < MOST_CONNECTIONS:
        log("few_open_files", logging.WARNING, limit=files, connections=most, cockpit_connections=cockpit)
    return most, cockpit


def server_config(app: Any, gate: Gate, tls: Certificate | None, *, lifespan: bool) -> uvicorn.Config:
    """How uvicorn serves an application behind a gate."""
    return _GatedConfig(
        app,
        gate,
        loop="asyncio",  # whose accepting `_Listening` limits
        http=_GatedProtocol,
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


def keep_connection(scope: MutableMapping[str, Any]) -> None:
    """Do not close the connection of a request with a valid token in favour of others."""
    if KEEP in scope:
        scope[KEEP]()


class _GatedConfig(uvicorn.Config):
    def __init__(self, app: Any, gate: Gate, **options: Any) -> None:
        super().__init__(app, **options)
        self.gate = gate


class Gate(NotCopyable):
    """The connections of one port: ``"service"`` or ``"cockpit"``, in the log and the metrics."""

    def __init__(self, port: str, bounds: Bounds, metrics: Metrics) -> None:
        self.bounds = bounds
        self.stopping: float | None = None
        """When the service began to stop."""
        self._port, self._metrics = port, metrics
        self._open: dict[int, _Accepted] = {}  # by the number of the file
        self._of_peer: Counter[str] = Counter()
        self._unknown: dict[str, OrderedDict[_Accepted, None]] = {}  # without a valid token, by peer, the oldest first
        self._order: OrderedDict[_Accepted, None] = OrderedDict()  # the same of all peers
        self._closed: Counter[str] = Counter()  # since the last line of the log
        self._logged, self._sweeping = float("-inf"), False
        self._spare = _spare_file()
        logging.getLogger("uvicorn.error").addFilter(_is_no_refusal)
        metrics.follow_connections(port, lambda: len(self._open))

    def listening(self, opened: socket.socket) -> socket.socket:
        """The same socket, which accepts only what the gate lets in."""
        return _ListeningSocket(self, opened)

    def stop(self) -> None:
        """Give what is unfinished a limited time."""
        self.stopping = asyncio.get_running_loop().time()

    def close(self) -> None:
        """Accept nothing more."""
        if self._spare is not None:
            os.close(self._spare)
            self._spare = None

    # --- accepting ----------------------------------------------------------------------------------------------

    def admit(self, connection: _Accepted) -> bool:
        """Whether a new connection stays open; the oldest without a valid token is closed to make room for it."""
        self._sweep_later()
        per_peer, peer = self.bounds.per_peer, connection.peer
        if per_peer is not None and self._of_peer[peer] >= per_peer:
            return self._replace("peer", connection, self._unknown.get(peer))
        if len(self._open) >= self.bounds.most:
            return self._replace("all", connection, self._order)
        self._add(connection)
        return True

    def _replace(self, why: str, connection: _Accepted, others: OrderedDict[_Accepted, None] | None) -> bool:
        self.note(why)
        if not others:
            return False
        self._end(next(iter(others)))
        self._add(connection)
        return True

    def _add(self, connection: _Accepted) -> None:
        self._open[connection.number] = connection
        self._of_peer[connection.peer] += 1
        self.set_unknown(connection)

    def exhausted(self, listening: socket.socket) -> None:
        """Close a waiting connection although no file can be opened, so that accepting does not fail in a loop."""
        if self._spare is None:
            raise OSError(errno.EMFILE, "too many open files")
        os.close(self._spare)
        with suppress(OSError):
            socket.socket.accept(listening)[0].close()
        self._spare = _spare_file()
        self._sweep_later()
        self.note("files")

    def _end(self, connection: _Accepted) -> None:
        """Close a connection; it is counted no longer."""
        self.forget(connection)
        connection.end()

    def forget(self, connection: _Accepted) -> None:
        """Count a connection no longer."""
        if self._open.get(connection.number) is connection:
            self.set_known(connection)
            del self._open[connection.number]
            self._of_peer[connection.peer] -= 1
            if not self._of_peer[connection.peer]:
                del self._of_peer[connection.peer]

    def note(self, why: str) -> None:
        """Count a connection that was closed for a limit."""
        self._closed[why] += 1
        self._metrics.connection_closed(self._port, why)

    # --- who has a valid token ----------------------------------------------------------------------------------

    def attach(self, number: int, protocol: _GatedProtocol) -> _Accepted | None:
        """The connection with the number of a file, and note what handles it; None if it was closed meanwhile."""
        connection = self._open.get(number)
        if connection is not None:
            connection.protocol = protocol
        return connection

    def set_known(self, connection: _Accepted) -> None:
        """Keep a connection, whose request has a valid token."""
        if connection in self._order:
            del self._order[connection]
            of_peer = self._unknown[connection.peer]
            del of_peer[connection]
            if not of_peer:
                del self._unknown[connection.peer]

    def set_unknown(self, connection: _Accepted) -> None:
        """Expect another request of a connection."""
        if self._open.get(connection.number) is connection:
            self._order[connection] = None
            self._unknown.setdefault(connection.peer, OrderedDict())[connection] = None

    # --- time limits --------------------------------------------------------------------------------------------

    def _sweep_later(self) -> None:
        if not self._sweeping:
            self._sweeping = True
            asyncio.get_running_loop().call_later(1, self._sweep)

    def _sweep(self) -> None:
        """Close what is overdue, every second while there are connections."""
        self._sweeping = False
        now = asyncio.get_running_loop().time()
        for connection in list(self._open.values()):
            if why := connection.overdue(now):
                self.note(why)
                self._end(connection)
        if self._closed and now - self._logged >= LOG_SECONDS:
            log("connections_closed", logging.WARNING, port=self._port, open=len(self._open), limits=dict(self._closed))
            self._closed, self._logged = Counter(), now
        if self._open or self._closed:
            self._sweep_later()


class _ListeningSocket(socket.socket):
    """A socket that accepts what its gate lets in, and closes the others at once."""

    def __init__(self, gate: Gate, opened: socket.socket) -> None:
        super().__init__(opened.family, opened.type, opened.proto, fileno=opened.detach())
        self._gate = gate

    def listen(self, backlog: int = QUEUE) -> None:
        """Listen; asyncio passes how many connections it accepts at once, and more may wait."""
        super().listen(QUEUE)

    def close(self) -> None:
        """Stop listening."""
        self._gate.close()
        super().close()

    def accept(self) -> tuple[socket.socket, Any]:
        """Accept a connection that the gate lets in."""
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                accepted, address = super().accept()
            except OSError as error:
                if error.errno not in NO_FILES:
                    raise
                self._gate.exhausted(self)
                continue
            connection = _Accepted(self._gate, accepted, address)
            if self._gate.admit(connection):
                return connection, address
            connection.close()
        raise BlockingIOError  # the others are accepted after what else there is to do


class _Accepted(socket.socket):
    """An accepted connection, which its gate counts until it is closed."""

    def __init__(self, gate: Gate, accepted: socket.socket, address: Any) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self._gate, self.number = gate, self.fileno()
        self.peer = _peer(self, address)
        self.protocol: _GatedProtocol | None = None
        self._since = asyncio.get_running_loop().time()

    def overdue(self, now: float) -> str:
        """Which time limit has passed; empty if none."""
        if self.protocol is not None:
            return self.protocol.overdue(now)
        return "head" if now - self._since > HEAD_SECONDS else ""  # the handshake of TLS

    def end(self) -> None:
        """Close the connection without waiting for anything."""
        if self.protocol is not None:
            self.protocol.transport.abort()
        else:
            with suppress(OSError):
                self.shutdown(socket.SHUT_RDWR)  # asyncio closes it, and would not learn that it is closed

    def close(self) -> None:
        """Close the connection, and let another one be accepted."""
        self._gate.forget(self)
        super().close()


def _peer(connection: socket.socket, address: Any) -> str:
    """Who is at the other end, as far as limits distinguish it: an account of this machine, an address or a network."""
    if connection.family == socket.AF_UNIX:
        if not hasattr(socket, "SO_PEERCRED"):
            return "local"
        size = struct.calcsize("3i")
        return f"uid {struct.unpack('3i', connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, size))[1]}"
    return _network(str(address[0]))


def _network(host: str) -> str:
    """An address of IPv4, or the network of one of IPv6, of which a machine may have all."""
    address = ipaddress.ip_address(host.partition("%")[0])
    if isinstance(address, ipaddress.IPv4Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(address) if address.is_loopback else str(ipaddress.IPv6Network((address, 64), strict=False))


def _spare_file() -> int | None:
    with suppress(OSError):
        return os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    return None


# --- HTTP -----------------------------------------------------------------------------------------------------------


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

    def __init__(self, config: Any, server_state: Any, app_state: dict[str, Any], _loop: Any = None) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.conn = _StrictConnection(h11.SERVER, MOST_HEAD)
        self._gate: Gate = config.gate
        self._accepted: _Accepted | None = None
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
            if self._gate.bounds.behind_proxy and (client := _forwarded(self.headers)):
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
        return _network(stated[-1].rpartition(b",")[2].strip().decode("ascii", "replace")) if stated else ""
    return ""
