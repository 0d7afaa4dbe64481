"""Requests to a service and its replies, over HTTP, and what failed replies mean."""

from __future__ import annotations

import inspect
import os
import ssl
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import httpx
import msgspec

from dpnb import errors
from dpnb.copying import NotCopyable
from dpnb.errors import AccessDenied, DpnbError, ServiceError, ServiceUnavailable
from dpnb.remote.tokens import Credential, Origin
from dpnb.threads import ThreadTask
from dpnb.wire.messages import VERSION, AnyReply, Done, Refused

RETRIED = (502, 503, 504)
"""Replies of a proxy or a service that is starting; the request is sent again."""

TOO_MANY_REQUESTS = 429
"""A limit of the service; the request was not executed, and is sent again."""

_KINDS: dict[str, type[DpnbError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if inspect.isclass(kind) and issubclass(kind, DpnbError) and not issubclass(kind, Warning)
}
_REPLIES: msgspec.json.Decoder[AnyReply] = msgspec.json.Decoder(AnyReply)

MAX_SHOWN = 4000
"""Characters of a message that are shown."""


def refusal(reply: Refused) -> DpnbError:
    """The refusal of the service, as a local session would raise it."""
    return _KINDS.get(reply.error, ServiceError)(refusal_text(reply))


def refusal_text(reply: Refused) -> str:
    """The message of a refusal, as it may be shown."""
    return printable(reply.message[:MAX_SHOWN])


def printable(text: str) -> str:
    r"""A text of the service without characters that control a terminal.

    >>> printable("cost\x1b[2J")
    'cost?[2J'
    """
    return "".join(one if one.isprintable() or one == "\n" else "?" for one in text)


def refused_in(body: bytes) -> Refused | None:
    """The refusal in a body; None if it is something else."""
    try:
        reply = _REPLIES.decode(body)
    except (msgspec.MsgspecError, RecursionError):
        return None
    return reply if isinstance(reply, Refused) else None


def failure(where: str, status: int, body: bytes) -> DpnbError:
    """The error of a reply that is neither an answer nor worth a retry; `where` is the service, for its message.

    The content of the reply is shown only if it is a refusal.
    """
    if status == 401:
        return AccessDenied(
            f"{where}: refused the access token; nothing was charged; ask the curator for a new token, and give it as "
            "token= or in DPNB_TOKEN"
        )
    refused = refused_in(body)
    if refused is not None:
        return refusal(refused)
    if status == 403:
        return AccessDenied(f"{where}: the access token does not allow this; nothing was charged; ask the curator")
    if 300 <= status < 400:
        return ServiceError(
            f"{where}: replied with a redirection, which is not followed, since the token is sent to one address only; "
            "connect to the address of the service itself"
        )
    if status == 404:
        return ServiceError(
            f"{where}: is no dpnb service, or one with another version of the messages; this dpnb uses version "
            f"{VERSION}; check the address, and install the version of dpnb that the service has"
        )
    return ServiceError(
        f"{where}: failed with status {status}; if the request was charged, repeating it with the same arguments uses "
        "the same charge; ask the curator to look at the log of the service"
    )


def unreadable(where: str) -> ServiceError:
    """The error of a reply that does not have the form of this version."""
    return ServiceError(
        f"{where}: sent a reply that this version of dpnb cannot read; if the request was charged, repeating it with "
        "the same arguments uses the same charge; install the version of dpnb that the service has"
    )


# --- requests to a service and its replies ----------------------------------------------------------------------------


RETRY_SECONDS = 60.0
"""Time for which a request is repeated after the connection was lost."""

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0
"""Seconds between two attempts: doubled from the first to the longest."""

REPLY_SECONDS = 900.0
"""Time that the service has for a reply."""

MAX_REPLY = 2**29
"""Bytes of a reply; a service sends at most 500 rows at once, or one batch."""

MAX_LINE = 2**16
"""Bytes of a line of a stream of events; an event has two numbers."""

EVENT_SECONDS = 45.0
"""Time without an event after which the connection counts as lost; the service sends something every 15 seconds."""

T = TypeVar("T")


class Channel(NotCopyable):
    """A service, as one session uses it; the token is sent with each request, to this origin only.

    A request runs in a thread, so that an interrupt of the waiting thread leaves no lock of the HTTP library acquired.
    No two threads use a connection at once, nor does one close a connection that another one reads: the number of the
    socket would be free for another socket, of which the reader could then take bytes.  A fork uses new connections.

    A request is repeated for `retry_seconds` after the connection was lost.
    """

    def __init__(self, origin: Origin, token: Credential, retry_seconds: float = RETRY_SECONDS) -> None:
        self.origin, self.where, self._retry_seconds = origin, f"service {origin.text}", retry_seconds
        self._token = token
        # The methods of a deque need no lock, which a fork could inherit while it is acquired.
        self._idle: deque[httpx.Client] = deque()
        self._process, self._is_closed = os.getpid(), False

    def __repr__(self) -> str:
        return f"<Channel to {self.origin.text!r}>"

    def get(self, path: str, reply: type[T], *, retry_seconds: float | None = None, **query: str | int) -> T:
        """The reply to a request that changes nothing; `path` is below ``/v3``.

        Raises `ServiceUnavailable` if the service cannot be reached, and another `DpnbError` if it refused or failed.
        """
        status, body = self._request("GET", path, None, retry_seconds, query)
        return self._decoded(status, body, reply)

    def post(self, path: str, body: bytes) -> AnyReply:
        """The reply to a request that may charge; it is sent again, unchanged, after a lost connection.

        A refusal is returned; otherwise it raises what `get` raises.
        """
        status, content = self._request("POST", path, body, None, {})
        refused = None if status in (200, 401) else refused_in(content)
        return self._decoded(status, content, Done) if refused is None else refused

    def send(self, path: str, body: bytes, reply: type[T]) -> T:
        """The reply to an act, which may be sent twice; raises what `get` raises."""
        return self._decoded(*self._request("POST", path, body, None, {}), reply)

    def _decoded(self, status: int, body: bytes, reply: type[T]) -> T:
        if status != 200:
            raise failure(self.where, status, body)
        try:
            return msgspec.json.decode(body, type=reply)
        except (msgspec.MsgspecError, RecursionError):
            raise unreadable(self.where) from None

    # --- attempts -----------------------------------------------------------------------------------------------

    def _request(
        self, method: str, path: str, body: bytes | None, retry_seconds: float | None, query: dict[str, Any]
    ) -> tuple[int, bytes]:
        deadline = time.monotonic() + (self._retry_seconds if retry_seconds is None else retry_seconds)
        pause, was_sent, was_renewed = FIRST_PAUSE, False, False
        while True:
            task = ThreadTask(lambda: self._attempt(method, path, body, query))
            task.start_or_run()
            outcome = task.result()  # after an interrupt the attempt goes on, with a connection of its own
            if not isinstance(outcome, _Lost):
                if outcome[0] != 401 or was_renewed or not self._token.renew():
                    return outcome
                was_renewed = True
                continue
            was_sent |= outcome.may_have_arrived and body is not None
            if time.monotonic() + pause > deadline:
                raise self._unavailable(outcome.reason, was_sent)
            time.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)

    def _attempt(self, method: str, path: str, body: bytes | None, query: dict[str, Any]) -> tuple[int, bytes] | _Lost:
        """One attempt: the status and content of the reply, or why there is none."""
        client = self._take_client()
        outcome: tuple[int, bytes] | _Lost
        try:
            with client.stream(
                method,
                f"/v{VERSION}/{path}",
                content=body,
                params=query or None,
                headers={} if body is None else {"Content-Type": "application/json"},
            ) as response:
                content = self._content(response)
            outcome = response.status_code, content
            if response.status_code in RETRIED:
                refused = refused_in(content)  # of the service itself, which says that nothing was charged
                outcome = _Lost(refusal_text(refused) if refused else f"status {response.status_code}", not refused)
            elif response.status_code == TOO_MANY_REQUESTS:
                outcome = _Lost("it has too many requests of yours", False)
        except (httpx.HTTPError, OSError, ssl.SSLError) as error:
            never = isinstance(error, httpx.ConnectError | httpx.ConnectTimeout | httpx.PoolTimeout)
            outcome = _Lost(_reason(error), not never)
        except ServiceUnavailable as error:  # JupyterHub, which makes the tokens
            outcome = _Lost(str(error), False)
        except DpnbError:
            client.close()
            raise
        self._idle.append(client)  # not after an interrupt, which may leave its locks acquired
        if self._is_closed:
            self._close_idle()
        return outcome

    def _content(self, response: httpx.Response) -> bytes:
        """The content of a reply as it was sent, up to a limit of bytes and time.

        It is never decompressed, since a few bytes could become more than the memory holds.
        """
        content, deadline = bytearray(), time.monotonic() + REPLY_SECONDS
        for part in response.iter_raw():
            content += part
            if len(content) > MAX_REPLY:
                raise unreadable(self.where)
            if time.monotonic() > deadline:
                raise httpx.ReadTimeout("the reply took too long")
        return bytes(content)

    def _unavailable(self, reason: str, was_sent: bool) -> ServiceUnavailable:
        if was_sent:
            return ServiceUnavailable(
                f"{self.where}: the connection was lost before the reply arrived ({reason}); the request may have been "
                "charged; repeating the same release takes up the same charge"
            )
        return ServiceUnavailable(
            f"{self.where}: cannot be reached ({reason}); nothing was charged; check the address and whether the "
            "service is running"
        )

    # --- events -------------------------------------------------------------------------------------------------

    @contextmanager
    def stream(self, path: str) -> Iterator[Stream]:
        """The lines of a reply that does not end, over a separate connection.

        Raises `ServiceUnavailable`, also while the lines are read; `AccessDenied`; and `RequestError` if there is no
        such table.
        """
        try:
            with (
                self._new_client(EVENT_SECONDS) as client,
                client.stream("GET", f"/v{VERSION}/{path}", headers={"Accept": "text/event-stream"}) as response,
            ):
                if response.status_code in (401, 403):
                    self._token.renew()  # for the next attempt
                    raise AccessDenied(str(failure(self.where, response.status_code, b"")))
                if response.status_code == 404:
                    raise failure(self.where, response.status_code, response.read())
                if response.status_code != 200:
                    raise ServiceUnavailable(f"{self.where}: status {response.status_code}")
                yield Stream(response, self.where)
        except (httpx.HTTPError, httpx.StreamError, OSError) as error:
            raise ServiceUnavailable(f"{self.where}: {_reason(error)}") from None

    # --- connections --------------------------------------------------------------------------------------------

    def _take_client(self) -> httpx.Client:
        """A client that no other thread uses."""
        if self._process != os.getpid():  # those of the process that was forked are its own
            self._idle, self._process = deque(), os.getpid()
        with suppress(IndexError):
            return self._idle.pop()
        return self._new_client(REPLY_SECONDS)

    def _with_token(self, request: httpx.Request) -> httpx.Request:
        request.headers["Authorization"] = self._token.header()
        return request

    def _new_client(self, reply_seconds: float) -> httpx.Client:
        timeout = httpx.Timeout(10.0, read=reply_seconds)
        is_local = self.origin.is_local
        # The machine's certificates; to read them takes 25 milliseconds, and a local connection is without TLS.
        verify = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_local else ssl.create_default_context()
        # A transport of one's own uses no proxy of the environment, which would see a token that is sent without TLS.
        local = httpx.HTTPTransport(uds=self.origin.socket, verify=verify) if is_local else None
        return httpx.Client(
            base_url=self.origin.url,
            auth=self._with_token,
            transport=local,
            verify=verify,
            timeout=timeout,
            follow_redirects=False,
            headers={"User-Agent": "dpnb", "Accept-Encoding": "identity"},
        )

    def close(self) -> None:
        """Close the connections, those in use when their requests have ended.

        A later request uses a connection of its own, and closes it.
        """
        self._is_closed = True
        if self._process == os.getpid():
            self._close_idle()

    def _close_idle(self) -> None:
        with suppress(IndexError):
            while True:
                client = self._idle.pop()
                with suppress(httpx.HTTPError, OSError):
                    client.close()


class Stream:
    """The lines of a reply that does not end."""

    def __init__(self, response: httpx.Response, where: str) -> None:
        self._response, self._where = response, where

    def lines(self) -> Iterator[str]:
        """The lines, as they arrive; `ServiceError` if one is longer than any event."""
        rest = b""
        for part in self._response.iter_raw():
            *lines, rest = (rest + part).split(b"\n")
            if any(len(line) > MAX_LINE for line in (*lines, rest)):
                raise unreadable(self._where)
            yield from (line.removesuffix(b"\r").decode(errors="replace") for line in lines)

    def cut(self) -> None:
        """End the reply, from another thread: reading it then fails."""
        network = self._response.extensions.get("network_stream")
        socket = None if network is None else network.get_extra_info("socket")
        if socket is not None:
            with suppress(OSError):
                socket.shutdown(2)  # SHUT_RDWR; closing it would free its number while the other thread reads


class _Lost:
    """An attempt without a reply, and whether the service may have received it."""

    def __init__(self, reason: str, may_have_arrived: bool) -> None:
        self.reason, self.may_have_arrived = reason, may_have_arrived


def _reason(error: BaseException) -> str:
    """Why an attempt failed: the system's words for it, without addresses or numbers."""
    text = str(error).partition("] ")[2] or str(error)
    return text.split(" (_ssl")[0] or type(error).__name__
