"""HTTP as an attacker speaks it: plain sockets from an address of one's own, and no attempt is repeated."""

from __future__ import annotations

import http.client
import socket
from types import TracebackType


class LostError(Exception):
    """There is no reply: the connection was refused or lost, or took too long."""


class Plain:
    """A connection, which is made when it is first used."""

    def __init__(self, port: int, peer: str, seconds: float, token: str = "") -> None:
        self._connection = http.client.HTTPConnection("127.0.0.1", port, seconds, source_address=(peer, 0))
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}

    def __enter__(self) -> Plain:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def send(self, method: str, path: str, body: bytes | None = None, **headers: str) -> tuple[int, bytes]:
        """Status and content of the reply.

        Raises
        ------
        LostError
            There is none.
        """
        kind = {} if body is None else {"Content-Type": "application/json"}
        try:
            self._connection.request(method, path, body, {**self._headers, **kind, **headers})
            reply = self._connection.getresponse()
            return reply.status, reply.read()
        except (OSError, http.client.HTTPException) as error:
            self.close()
            raise LostError(f"{type(error).__name__}: {error}") from None

    def close(self) -> None:
        self._connection.close()


def raw(port: int, peer: str, seconds: float) -> socket.socket:
    """A connection without HTTP.

    Raises
    ------
    LostError
        It cannot be made.
    """
    try:
        return socket.create_connection(("127.0.0.1", port), seconds, (peer, 0))
    except OSError as error:
        raise LostError(str(error)) from None
