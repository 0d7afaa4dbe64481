"""A service, or someone between it and the analyst, that attacks the analyst's process."""

from __future__ import annotations

import gzip
import json
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import msgspec
import pandas as pd
import pytest

import dpnb
from dpnb.errors import ServiceError, ServiceUnavailable
from dpnb.ledger.shared_rows import SharedRows
from dpnb.remote import channel as channels
from dpnb.remote import events
from dpnb.remote.channel import Channel, refusal
from dpnb.remote.events import ServiceConnection
from dpnb.remote.session import RemoteSession
from dpnb.remote.tokens import Token, origin_of
from dpnb.wire.messages import LedgerRow, Refused, Rows, Table
from waiting import wait_until

SECRET = "the-token-of-ana"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@contextmanager
def hostile(reply: Callable[[socket.socket], None]) -> Iterator[tuple[Channel, list[bytes]]]:
    """A channel to a server that sends what a function writes, and the requests that it has received."""
    seen: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            with suppress(OSError):
                while True:
                    connection, _ = server.accept()
                    with connection, suppress(OSError):
                        seen.append(connection.recv(65536))
                        reply(connection)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        origin = origin_of(f"http://127.0.0.1:{server.getsockname()[1]}")
        channel = Channel(origin, Token(SECRET, "test"), retry_seconds=0)
        try:
            yield channel, seen
        finally:
            channel.close()
            server.shutdown(socket.SHUT_RDWR)
            thread.join()


def endless(connection: socket.socket) -> None:
    connection.sendall(HEAD + b"\r\n")
    while True:
        connection.sendall(b"[" * 4096)


@pytest.mark.parametrize("limit", [2**16, 2**20])
def test_an_endless_reply_is_cut_off(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "MAX_REPLY", limit)
    with hostile(endless) as (channel, _), pytest.raises(ServiceError, match="cannot read"):
        channel.get("tables", tuple[str, ...])


def test_a_reply_that_drips_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(channels, "REPLY_SECONDS", 0.2)

    def drip(connection: socket.socket) -> None:
        connection.sendall(HEAD + b"\r\n")
        while True:
            connection.sendall(b" ")

    with hostile(drip) as (channel, _), pytest.raises(ServiceUnavailable, match="took too long"):
        channel.get("tables", tuple[str, ...])


@pytest.mark.parametrize("packed", [True, False])
def test_a_compressed_reply_is_not_expanded(packed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kilobyte would become a megabyte, and a megabyte a gigabyte; the control is the same reply as it is."""
    monkeypatch.setattr(channels, "MAX_REPLY", 2**21)
    content = json.dumps(["a" * 2**20]).encode()
    sent = gzip.compress(content) if packed else content
    head = HEAD + (b"Content-Encoding: gzip\r\n" if packed else b"") + b"Content-Length: %d\r\n\r\n" % len(sent)
    with hostile(lambda connection: connection.sendall(head + sent)) as (channel, seen):
        if packed:
            with pytest.raises(ServiceError, match="cannot read"):
                channel.get("tables", tuple[str, ...])
            assert b"accept-encoding: identity" in seen[0].lower()
        else:
            assert channel.get("tables", tuple[str, ...]) == ("a" * 2**20,)


def test_a_stream_without_an_end_of_line_is_cut_off() -> None:
    with (
        hostile(endless) as (channel, _),
        pytest.raises(ServiceError, match="cannot read"),
        channel.stream("tables/people/events") as stream,
    ):
        list(stream.lines())


def test_an_event_with_endless_data_uses_no_memory() -> None:
    class Lines:
        kept: object = None

        def lines(self) -> Iterator[str]:
            yield from ["data: 1"] * 10_000
            yield ""
            yield 'data: {"rows":1,"answered":1}'
            yield ""

    (event,) = events._events(Lines())  # type: ignore[arg-type]
    assert event.rows == 1


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_the_token_follows_no_redirection(status: int) -> None:
    with hostile(lambda connection: connection.sendall(HEAD + b"Content-Length: 2\r\n\r\n[]")) as (other, elsewhere):
        place = f"{other.origin.url}/v3/tables".encode()
        reply = b"HTTP/1.1 %d Moved\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n" % (status, place)
        with hostile(lambda connection: connection.sendall(reply)) as (channel, seen):
            with pytest.raises(ServiceError, match="redirection") as error:
                channel.get("tables", tuple[str, ...])
            with pytest.raises(ServiceUnavailable), channel.stream("tables/people/events"):
                pass
        assert SECRET.encode() in seen[0]
        assert SECRET not in str(error.value) + repr(channel) + repr(channel._with_token)
        assert elsewhere == []


@pytest.mark.parametrize("kind", ["BudgetExceeded", "KeyboardInterrupt", "SystemExit", "__loader__", "Unknown"])
def test_a_refusal_neither_controls_the_terminal_nor_raises_another_kind(kind: str) -> None:
    error = refusal(Refused(kind, "\x1b]0;title\x07\x1b[2Jcost\r" + "\u202e" + "x" * 10**6))
    text = str(error)
    assert error.__class__.__module__ == "dpnb.errors"
    assert "cost" in text
    assert len(text) < 10_000
    assert all(one.isprintable() or one == "\n" for one in text)


class _Copy:
    """A copy of the ledger that a service makes fail in a way that nothing foresees."""

    problem: str | None = None
    path = "tables/people"

    def __init__(self, channel: Channel) -> None:
        self.channel = channel

    def check_table(self) -> None:
        raise RecursionError


def test_a_session_does_not_seem_up_to_date_when_its_thread_failed() -> None:
    event = b'data: {"rows":1,"answered":1}\n\n'
    with hostile(lambda connection: connection.sendall(HEAD + b"\r\n" + event)) as (channel, _):

        class Core:
            def changed(self) -> None:
                pass

        core = Core()
        connection = ServiceConnection(_Copy(channel))  # type: ignore[arg-type]
        connection.follow(core)
        try:
            wait_until(lambda: not connection.is_current, "the state to be noted")
            assert "cannot be read" in connection.text
        finally:
            connection.close()


@pytest.mark.parametrize(
    "body", [b"[" * 10**6, b'{"rows":' + b"[" * 10**6, b'{"rows":[{"values":{"id":' + b"9" * 10**5 + b"}}]}", b"\xff"]
)
def test_replies_that_no_parser_may_crash_on(body: bytes) -> None:
    head = HEAD + b"Content-Length: %d\r\n\r\n" % len(body)
    with (
        hostile(lambda connection: connection.sendall(head + body)) as (channel, _),
        pytest.raises(ServiceError, match="cannot read"),
    ):
        channel.get("tables/people/rows", Rows)


SCRIPT = "<img src=x onerror=alert(1)>"


class Scripted(Channel):
    """A channel to a service that puts HTML into every text that it chooses."""

    def __init__(self) -> None:
        super().__init__(origin_of("http://127.0.0.1:9"), Token(SECRET, "test"), retry_seconds=0)
        rows = pd.DataFrame({"a<b>": ["<i>"] * 9, SCRIPT: [1] * 9})
        schema: Any = {"a<b>": dpnb.Categories(["<i>", SCRIPT]), SCRIPT: dpnb.Bounded(0, 9, integer=True)}
        session = dpnb.Session(rows, name="people", budget=dpnb.Budget.gdp(1), schema=schema, ledger=":memory:")
        session.frame.groupby("a<b>").size().release(mu=0.1)
        session.frame[SCRIPT].sum().release(mu=0.1)
        session.above_threshold(threshold=3, epsilon=0.01, name=SCRIPT)
        self.rows, ledger = SharedRows(session.ledger), session.ledger
        metadata = {**ledger.metadata, "session_name": SCRIPT}
        self.table = Table(
            "people", "1", metadata, ledger.parameters, session._core.tables.columns, notice=f"{SCRIPT}\x1b[2J"
        )

    def get(self, path: str, reply: Any, *, retry_seconds: float | None = None, **query: str | int) -> Any:
        return self.table if reply is Table else Rows(tuple(map(LedgerRow, self.rows.after(int(query["after"]), 100))))


def test_texts_of_a_service_are_no_html() -> None:
    channel = Scripted()
    session = RemoteSession(channel, "tables/people", channel.table)
    try:
        query = session.frame.groupby("a<b>").size()
        pages = [session, query, query.explain(), query.preview(mu=0.1), session._mechanisms.all()[SCRIPT]]
        for page in pages:
            html = page._repr_html_()
            assert "<img" not in html
            assert "\x1b" not in html + repr(page) + str(page)
        assert "&lt;img" in session._repr_html_()  # control: the texts are shown
    finally:
        session.close()


@pytest.mark.parametrize("field", ["name", "version", "session_name"])
def test_names_that_cannot_be_printed_are_refused(field: str) -> None:
    channel = Scripted()
    table = channel.table
    changes: dict[str, Any] = {field: "a\x1b[2J"}
    if field == "session_name":
        changes = {"metadata": {**table.metadata, **changes}}
    with pytest.raises(ServiceError, match="cannot read"):
        RemoteSession(channel, "tables/people", msgspec.structs.replace(table, **changes))
