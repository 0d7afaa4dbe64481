"""The kinds of hostile clients, by name: each does one burst of it, and finds what must not be answered."""

from __future__ import annotations

import json
import random
import re
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from service.bodies import mutated
from soak import bombs
from soak.plain_http import LostError, Plain, raw

REQUESTS = "/v3/tables/clinic/requests"
ROWS = "/v3/tables/clinic/rows"
SECONDS = 100.0
"""An attacker waits for a reply no longer."""

REFUSED = {400, 401, 403, 404, 408, 409, 413, 415, 422, 429, 431}
NO_REPLY = 0
SHOWN = 300
"""Characters of a reply in a fault."""
NUMBERS = re.compile(r"[0-9]+")

Told = dict[str, list[list[int]]]
"""The ids of rows that each request was answered with, once for each time that it was sent."""


@dataclass
class Attacker:
    """A hostile client.

    Parameters
    ----------
    name, token : str
        An analyst of the service; both empty for somebody without a token.
    port, cockpit : int
        Where service and cockpit listen.
    peer : str
        The attacker's own address.
    chance : Random
    bodies : list
        Valid bodies, from which others are made.
    size : float
        Which part of each burst is sent, at most 1.
    """

    name: str
    token: str
    port: int
    cockpit: int
    peer: str
    chance: random.Random
    bodies: list[Any]
    size: float = 1.0
    found: Counter[str] = field(default_factory=Counter)
    faults: dict[str, bytes] = field(default_factory=dict)
    told: Told = field(default_factory=dict)
    slowest: float = 0.0
    lost: int = 0
    """Requests without a reply since the last one that had one."""

    def some(self, number: int) -> int:
        return max(1, round(number * self.size))

    def id(self) -> str:
        return f"{self.name}-{self.chance.getrandbits(60):x}"

    def body(self, call: Any, **fields: Any) -> bytes:
        return json.dumps({"id": self.id(), "request": call, **fields}, separators=(",", ":")).encode()

    def post(self, kind: str, body: bytes, plain: Plain | None = None) -> tuple[int, Any]:
        """Send a body and judge the reply; status and content, `NO_REPLY` without one."""
        began = time.monotonic()
        with self._connection(plain) as connection:
            try:
                status, content = connection.send("POST", REQUESTS, body)
            except LostError as error:
                self.found[f"{kind}: no reply"] += 1
                self.lost += 1
                time.sleep(min(0.1 * 2**self.lost, 2.0))  # it may be gone for a moment
                return NO_REPLY, str(error)
        self.lost = 0
        self.slowest = max(self.slowest, time.monotonic() - began)
        return status, self.judge(kind, body, status, content)

    @contextmanager
    def _connection(self, plain: Plain | None) -> Iterator[Plain]:
        if plain is not None:
            yield plain
            return
        with Plain(self.port, self.peer, SECONDS, self.token) as own:
            yield own

    def judge(self, kind: str, sent: bytes, status: int, content: bytes) -> Any:
        """Count a reply, and keep what must not be: one without a type, or a failure."""
        self.found[f"{kind}: {status}"] += 1
        try:
            said = json.loads(content or b"null")
        except ValueError:
            said = None
        is_typed = status == 503 and isinstance(said, dict) and said.get("error") == "ServiceUnavailable"
        if not (status == 200 or status in REFUSED or is_typed):
            words = said.get("message", "") if isinstance(said, dict) else content.decode(errors="replace")
            self.fault(f"{kind}: status {status}, {NUMBERS.sub('#', words[:SHOWN])}", sent)
        return said

    def fault(self, words: str, sent: bytes = b"") -> None:
        """Keep what must not be, with one example of what was sent."""
        self.found[f"FAULT {words}"] += 1
        self.faults.setdefault(words, sent)

    def each(self, *work: Callable[[], object]) -> None:
        """Do all of it at once, however long it takes."""
        threads = [threading.Thread(target=one, daemon=True) for one in work]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def rows_of_node(self, kind: str, call: Any, **fields: Any) -> int | None:
        """The number of the row that a launch wrote."""
        status, said = self.post(kind, self.body(call, **fields))
        return said["ids"][0] if status == 200 and said["ids"] else None


# --- requests ---------------------------------------------------------------------------------------------------------


def mutate(attacker: Attacker) -> None:
    """Random and mutated bodies."""
    with Plain(attacker.port, attacker.peer, SECONDS, attacker.token) as plain:
        for _ in range(attacker.some(10)):
            attacker.post("mutated", json.dumps(mutated(attacker.bodies, attacker.chance)).encode(), plain)


def take_memory(attacker: Attacker) -> None:
    """Plans with very many numbers, which cost little of the budget."""
    call = attacker.chance.choice(bombs.MEMORY[: attacker.some(len(bombs.MEMORY))])()
    call["plan"]["where"] = bombs.above(attacker.chance.randrange(10**6))  # no recorded answer
    attacker.post("memory", attacker.body(call))


def take_work(attacker: Attacker) -> None:
    """Plans that are expensive before they are charged, three at once."""
    kinds = bombs.WORK[: attacker.some(len(bombs.WORK))]
    calls = [attacker.chance.choice(kinds)() for _ in range(attacker.some(3))]
    attacker.each(*(lambda call=call: attacker.post("work", attacker.body(call)) for call in calls))  # type: ignore[misc]


def repeat(attacker: Attacker) -> None:
    """A large recorded answer, again and again for nothing."""
    call = bombs.count(group_by=bombs.levels("many", "k", "g"))
    attacker.each(
        *(lambda: attacker.post("repeated", attacker.body(call)) for _ in range(attacker.some(4))),
    )


def malform(attacker: Attacker) -> None:
    """Large bodies that cannot be decoded, on twenty connections."""
    chance, values = attacker.chance, attacker.some(200_000)
    bodies = [
        b'{"id":"m","request":' + b"[1," * 140 + b"1," * values + b"1" + b"]" * 140 + b"}",
        b'{"id":"m","request":{' + b'"a":1,' * (values // 2) + b'"request":"release"}}',
        json.dumps({"id": "m", "request": bombs.looked_up(attacker.some(40_000)), "node": 3}).encode(),
        b'{"id":"m","request":"' + b"\\u00e9" * (values // 2) + b'"}',
        bytes(chance.randrange(256) for _ in range(1000)) * (values // 1000 or 1),
    ]
    work = [lambda: attacker.post("malformed", chance.choice(bodies)) for _ in range(attacker.some(20))]
    attacker.each(*work)


def name_hugely(attacker: Attacker) -> None:
    """Names, nodes, cells and texts as long as the limits, of characters that JSON escapes."""
    long, node = "\u00e9" * 10_000, attacker.chance.choice(("1 [1]", '999999 ["a"]'))
    calls: list[tuple[Any, dict[str, Any]]] = [
        (bombs.count(), {"node": long}),
        (bombs.count(), {"cell_id": long[:1000], "node": node}),
        (bombs.count(), {"node": "\u0001" * 10_000}),
        (bombs.partition(long[:1000]), {}),
        (bombs.count(group_by=[{"name": long, "expression": bombs.column("g")}]), {}),
        (bombs.count(bombs.FAR, where=bombs.above(1)), {"pending": [*range(1, 9999)]}),
    ]
    for call, fields in calls:
        attacker.post("long names", attacker.body(call, **fields))


def flood_parts(attacker: Attacker) -> None:
    """Requests to another part of a partition each time, refused and not."""
    launch = attacker.rows_of_node("parts", bombs.partition("parts"))
    if launch is None:
        return
    with Plain(attacker.port, attacker.peer, SECONDS, attacker.token) as plain:
        for _ in range(attacker.some(30)):
            mu, key = attacker.chance.choice((bombs.FAR, bombs.FAR, bombs.CHEAP)), attacker.chance.randrange(20_000)
            body = attacker.body(bombs.count(mu, source=bombs.part(key)), node=f"{launch} [{key}]")
            status, _ = attacker.post("parts", body, plain)
            if status in (NO_REPLY, 429):
                time.sleep(0.2)


def partition_deeply(attacker: Attacker) -> None:
    """Partitions of twenty thousand parts, and partitions of their parts; a launch is free."""
    fields, source = dict[str, Any](), ""
    for depth in range(attacker.some(6)):
        name, by = f"deep {attacker.chance.randrange(40)}", "many" if depth < 3 else "k"
        launch = attacker.rows_of_node("partitions", bombs.partition(name, by, source), **fields)
        if launch is None:
            return
        key = attacker.chance.randrange(5)
        fields, source = {"node": f"{launch} [{key}]"}, bombs.part(key, by, source)
        attacker.post("partitions", attacker.body(bombs.count(source=source), **fields))


def spend(attacker: Attacker) -> None:
    """Everything there is, each request three times at once, and again until it has a reply."""
    bodies = [attacker.body(bombs.count(f"1/{attacker.chance.randrange(5, 60)}", where=bombs.above(attacker.chance.getrandbits(40)))) for _ in range(attacker.some(5))]  # fmt: skip  # noqa: E501

    def send(body: bytes) -> None:
        for _ in range(5):
            status, said = attacker.post("spending", body)
            if status == 200:
                attacker.told.setdefault(json.loads(body)["id"], []).append(said["ids"])
            if status not in (NO_REPLY, 429, 503):
                return

    attacker.each(*(lambda body=body: send(body) for body in bodies for _ in range(3)))  # type: ignore[misc]


# --- connections ------------------------------------------------------------------------------------------------------


def held(
    attacker: Attacker, kind: str, number: int, seconds: float, first: bytes, more: Callable[[int], bytes]
) -> None:
    """Open connections, send something on each, and a little more twice a second."""
    sockets: list[socket.socket] = []
    try:
        for _ in range(number):
            try:
                sockets.append(raw(attacker.port, attacker.peer, 5))
            except LostError:  # it is not there, or takes no more
                break
        for one in sockets:
            with suppress(OSError):
                one.sendall(first)
        for step in range(max(1, int(2 * seconds))):
            for one in sockets:
                with suppress(OSError):
                    one.sendall(more(step))
            time.sleep(0.5)
        attacker.found[f"{kind}: connections"] += len(sockets)
    finally:
        for one in sockets:
            one.close()


def leave_unread(attacker: Attacker) -> None:
    """Replies of all rows that nobody reads."""
    for number in range(attacker.some(8)):
        attacker.post("unread", attacker.body(bombs.count(group_by=bombs.levels("many"), where=bombs.above(number))))
    head = f"GET {ROWS}?after=0 HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {attacker.token}\r\n\r\n".encode()
    number = attacker.some(25)
    held(attacker, "unread", number, 10 * attacker.size, head, lambda step: b"")


def follow(attacker: Attacker) -> None:
    """More streams of events than are allowed, none of which is read."""
    head = f"GET /v3/tables/clinic/events HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {attacker.token}\r\n\r\n"
    number = attacker.some(40)
    held(attacker, "streams", number, 5 * attacker.size, head.encode(), lambda step: b"")


def drip_bodies(attacker: Attacker) -> None:
    """Bodies that come byte by byte, with a token."""
    head = (
        f"POST {REQUESTS} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {attacker.token}\r\n"
        "Content-Type: application/json\r\nContent-Length: 5000\r\n\r\n"
    )
    number = attacker.some(60)
    held(attacker, "slow bodies", number, 15 * attacker.size, head.encode(), lambda step: b" ")


def drip_headers(attacker: Attacker) -> None:
    """Headers that come byte by byte."""
    number, text = attacker.some(60), b"GET /v3/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: "
    held(attacker, "slow headers", number, 15 * attacker.size, b"", lambda step: text[step : step + 1] or b"x")


def be_silent(attacker: Attacker) -> None:
    """More connections than the service has files, on which nothing is ever sent."""
    number = attacker.some(1500)
    held(attacker, "silent", number, 15 * attacker.size, b"", lambda step: b"")


HEAD = f"POST {REQUESTS} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
HIDDEN = "GET /v3/health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"
SMUGGLED = {
    "both lengths": f"{HEAD}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n{HIDDEN}",
    "two lengths": f"{HEAD}Content-Length: 0\r\nContent-Length: {len(HIDDEN)}\r\n\r\n{HIDDEN}",
    "bare line feeds": f"GET /v3/health HTTP/1.1\nHost: 127.0.0.1\n\n{HIDDEN}",
    "an unknown coding": f"{HEAD}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n{HIDDEN}",
    "a space before the colon": f"{HEAD}Content-Length : 4\r\n\r\n0\r\n\r\n{HIDDEN}",
    "a length with a sign": f"{HEAD}Content-Length: +5\r\n\r\n0\r\n\r\n{HIDDEN}",
}


def smuggle(attacker: Attacker) -> None:
    """Requests that a proxy and the service could read as different ones: one refusal, and the connection ends."""
    for kind, text in SMUGGLED.items():
        with suppress(LostError), raw(attacker.port, attacker.peer, SECONDS) as one:
            said = b""
            with suppress(OSError):
                one.sendall(text.encode())
                one.settimeout(20)
                while part := one.recv(65536):
                    said += part
            attacker.found[f"smuggled: {said[9:12].decode(errors='replace') or 'no reply'}"] += 1
            if said and (said.count(b"HTTP/1.1 ") != 1 or said[9:12] not in (b"400", b"429", b"503")):
                attacker.fault(f"smuggled, {kind}: must be one refusal; got {said[9:28]!r}", text.encode())


def fail_to_log_in(attacker: Attacker) -> None:
    """Tokens that nobody has."""

    def guess() -> None:
        with Plain(attacker.port, attacker.peer, SECONDS, f"dpnb_{attacker.id()}") as plain:
            for _ in range(attacker.some(40)):
                with suppress(LostError):
                    status, content = plain.send("GET", "/v3/tables")
                    attacker.judge("logins", b"", 429 if status == 503 else status, content)
                    if status == 200:
                        attacker.fault("logins: a token that nobody has was accepted")

    attacker.each(*(guess for _ in range(attacker.some(5))))


def flood_cockpit(attacker: Attacker) -> None:
    """The page, its logins and its streams, without a token of a curator."""
    origin = f"http://127.0.0.1:{attacker.cockpit}"

    def ask() -> None:
        with Plain(attacker.cockpit, attacker.peer, SECONDS) as plain:
            for number in range(attacker.some(20)):
                with suppress(LostError):
                    body = json.dumps({"token": f"dpnb_{number}"}).encode()
                    for status, content in (
                        plain.send("POST", "/login", body, Origin=origin),
                        plain.send("GET", "/cockpit.js"),
                        plain.send("GET", "/api/state"),
                    ):
                        is_file = content.startswith(b'"use strict"') or status == 200
                        attacker.found[f"cockpit: {status}"] += 1
                        if status >= 500 and status != 503 and not is_file:
                            attacker.fault(f"cockpit: status {status}", content)

    attacker.each(*(ask for _ in range(attacker.some(5))))
    own = Attacker("", "", attacker.cockpit, 0, attacker.peer, attacker.chance, [], attacker.size)
    held(own, "cockpit", attacker.some(150), 5 * attacker.size, b"GET ", lambda step: b"")


Kind = Callable[[Attacker], None]

OF_ANALYSTS: dict[str, tuple[Kind, ...]] = {
    "ana2": (mutate,),
    "ana3": (take_memory,),
    "ana4": (take_work, repeat, malform),
    "ana5": (flood_parts, partition_deeply, name_hugely),
    "ana6": (spend, repeat),
    "ana7": (leave_unread, follow, drip_bodies),
}
"""What each hostile analyst does; `ana0` and `ana1` are honest."""

OF_NOBODY: tuple[Kind, ...] = (be_silent, drip_headers, smuggle, fail_to_log_in, flood_cockpit)
"""What is done without a token."""
