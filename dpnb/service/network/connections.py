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
import resource
import socket
import struct
from collections import Counter, OrderedDict
from contextlib import suppress
from typing import Any, Protocol

from dpnb.copying import NotCopyable
from dpnb.errors import InvalidValueError
from dpnb.service.monitoring import Metrics, log

HEAD_SECONDS = 10.0
"""From the connection, or from the first byte of a later request, to the end of a request's headers; with TLS the
handshake is part of it."""

MOST_CONNECTIONS, MOST_COCKPIT_CONNECTIONS = 1000, 100
RESERVED_FILES = 384
"""Open files that connections leave to ledgers, logs, tables and engines, and to connections that are being closed."""

LEAST_CONNECTIONS = 64
MOST_FILES = 2**16
"""Open files above which the limit of the process is not raised."""

QUEUE, ACCEPTED_AT_ONCE = 1024, 32
"""Connections that wait to be accepted, and those that are accepted before earlier ones are dealt with."""

LOG_SECONDS = 60.0
NO_FILES = (errno.EMFILE, errno.ENFILE)


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


class ConnectionHandler(Protocol):
    """What speaks HTTP on a connection; see `dpnb.service.network.http`."""

    transport: asyncio.Transport

    def overdue(self, now: float) -> str:
        """Which time limit has passed; empty if none."""
        ...


class Gate(NotCopyable):
    """The connections of one port: ``"service"`` or ``"cockpit"``, in the log and the metrics.

    It accepts `most` in all, and `per_peer` from one address, or of one account of this machine; None if all come
    through a proxy, which says who the peers are.
    """

    def __init__(self, port: str, most: int, per_peer: int | None, metrics: Metrics) -> None:
        self._most, self.per_peer = most, per_peer
        self.stopping: float | None = None
        """When the service began to stop."""
        self._port, self._metrics = port, metrics
        self._open: dict[int, AcceptedConnection] = {}  # by the number of the file
        self._of_peer: Counter[str] = Counter()
        # without a valid token, the oldest first: of each peer, and of all peers
        self._unknown: dict[str, OrderedDict[AcceptedConnection, None]] = {}
        self._order: OrderedDict[AcceptedConnection, None] = OrderedDict()
        self._closed: Counter[str] = Counter()  # since the last line of the log
        self._logged, self._sweeping = float("-inf"), False
        self._spare = _spare_file()
        metrics.connections.labels(port).set_function(lambda: len(self._open))

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

    def admit(self, connection: AcceptedConnection) -> bool:
        """Whether a new connection stays open; the oldest without a valid token is closed to make room for it."""
        self._sweep_later()
        peer = connection.peer
        if self.per_peer is not None and self._of_peer[peer] >= self.per_peer:
            return self._replace("peer", connection, self._unknown.get(peer))
        if len(self._open) >= self._most:
            return self._replace("all", connection, self._order)
        self._add(connection)
        return True

    def _replace(
        self, why: str, connection: AcceptedConnection, others: OrderedDict[AcceptedConnection, None] | None
    ) -> bool:
        self.note(why)
        if not others:
            return False
        self._end(next(iter(others)))
        self._add(connection)
        return True

    def _add(self, connection: AcceptedConnection) -> None:
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

    def _end(self, connection: AcceptedConnection) -> None:
        """Close a connection; it is counted no longer."""
        self.forget(connection)
        connection.end()

    def forget(self, connection: AcceptedConnection) -> None:
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
        self._metrics.closed_connections.labels(self._port, why).inc()

    # --- who has a valid token ----------------------------------------------------------------------------------

    def attach(self, number: int, protocol: ConnectionHandler) -> AcceptedConnection | None:
        """The connection with the number of a file, and note what handles it; None if it was closed meanwhile."""
        connection = self._open.get(number)
        if connection is not None:
            connection.protocol = protocol
        return connection

    def set_known(self, connection: AcceptedConnection) -> None:
        """Keep a connection, whose request has a valid token."""
        if connection in self._order:
            del self._order[connection]
            of_peer = self._unknown[connection.peer]
            del of_peer[connection]
            if not of_peer:
                del self._unknown[connection.peer]

    def set_unknown(self, connection: AcceptedConnection) -> None:
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
            connection = AcceptedConnection(self._gate, accepted, address)
            if self._gate.admit(connection):
                return connection, address
            connection.close()
        raise BlockingIOError  # the others are accepted after what else there is to do


class AcceptedConnection(socket.socket):
    """An accepted connection, which its gate counts until it is closed."""

    def __init__(self, gate: Gate, accepted: socket.socket, address: Any) -> None:
        super().__init__(accepted.family, accepted.type, accepted.proto, fileno=accepted.detach())
        self._gate, self.number = gate, self.fileno()
        self.peer = _peer(self, address)
        self.protocol: ConnectionHandler | None = None
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
    return network(str(address[0]))


def network(host: str) -> str:
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
