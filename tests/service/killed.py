"""A service that is killed again and again while clients use it, and what the ledger alone says afterwards."""

from __future__ import annotations

import random
import signal
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import TypeVar

import dpnb
from dpnb.errors import MechanismClosed, ServiceUnavailable
from dpnb.service.server import serve
from dpnb.service.tokens import new_token
from kernels import Kernel
from load import audited, count, opened_again, rows_of
from threads import at_once
from waiting import LIMIT, wait_until

SETTINGS = """\
socket = "s"
[tables.clinic]
session = "clinic.py:opened"
"""
OPENING = """\
from pathlib import Path
from load import clinic

def opened():
    return clinic(Path(__file__).parent / "clinic.dpnb")
"""
LEVEL = 60

Value = TypeVar("Value")
Shown = dict[int, tuple[object, ...]]
"""What clients were shown, by the number of the query."""


def serving(pipe: Connection, settings: Path) -> None:
    serve(settings, pipe.send)


def started(settings: Path) -> Kernel:
    kernel = Kernel(serving, settings)
    assert str(kernel.hear()).startswith("unix://")
    return kernel


def persistently(call: Callable[[], Value]) -> Value:
    """The same call until the service is back."""
    deadline = time.monotonic() + LIMIT
    while True:
        try:
            return call()
        except ServiceUnavailable:
            if time.monotonic() > deadline:
                raise


def figures(session: dpnb.Session, number: int) -> tuple[object, ...]:
    answer = count(session, number).release(mu="0.001")
    return float(answer), answer.noise_scale, answer.time


def client(address: str, token: str, first: int, queries: int, shown: Shown) -> None:
    """Release different queries, and every fifth time compare one in a scan, which a restart of the service ends."""
    session = persistently(lambda: dpnb.connect(address, "clinic", token=token))
    with closing(session):
        ask(session, first, queries, shown)


def ask(session: dpnb.Session, first: int, queries: int, shown: Shown) -> None:
    for number in range(first, first + queries):
        shown[number] = persistently(lambda number=number: figures(session, number))  # type: ignore[misc]
        if number % 5 == 0:
            name = f"line {first} {number // 25}"
            with suppress(MechanismClosed):  # and nothing else
                scan = persistently(lambda name=name: session.above_threshold(LEVEL, name=name, epsilon="0.001"))  # type: ignore[misc]
                persistently(lambda scan=scan, number=number: scan.ask(count(session, number)))  # type: ignore[misc]


def killed_while_clients_ask(folder: Path, chance: random.Random, *, clients: int, queries: int, kills: int) -> Shown:
    """Kill the service that many times at random moments; then everything must have been charged and answered once."""
    settings, ledger, shown = folder / "curator.toml", folder / "clinic.dpnb", Shown()
    settings.write_text(SETTINGS, "utf-8")
    (folder / "clinic.py").write_text(OPENING, "utf-8")
    token = new_token(folder / "tokens.json", "ana")
    address, total = f"unix://{folder / 's'}", clients * queries
    kernels, faults = [started(settings)], []

    def asking(one: int) -> None:
        try:
            client(address, token, 1000 * one, queries, shown)
        except BaseException:
            faults.append(one)
            raise

    def kill() -> None:
        for done in range(kills):
            least = total * (done + chance.random()) / (kills + 1)
            wait_until(lambda least=least: faults or len(shown) >= least, f"{least} answers", lambda: len(shown))  # type: ignore[misc]
            time.sleep(chance.uniform(0, 0.02))  # whatever it does then
            kernels[0].kill()
            assert kernels[0].end() == -signal.SIGKILL
            audited(ledger)
            kernels[0] = started(settings)

    try:
        found = at_once(kill, *(partial(asking, one) for one in range(clients)))
        assert not found, "\n".join(found)
    finally:
        kernels[0].kill()
        kernels[0].end()
    assert len(shown) == total
    check(ledger, shown)
    return shown


def check(ledger: Path, shown: Shown) -> None:
    """Nothing is over-spent, no charge is lost, and each request was charged and answered once."""
    rows = audited(ledger)
    releases = [row for row in rows if not row.branch and not row.launch and row.cost]
    assert len(releases) == len(shown), (len(releases), len(shown))
    assert {row.state for row in rows} == {"released"}
    with closing(sqlite3.connect(ledger)) as file:
        origins = file.execute("SELECT actor, request_id, kind, node FROM events").fetchall()
    own = [row for row in origins if row[0] is None]  # a service closes, when it starts, the scans that a crash ended
    assert {kind for _, _, kind, _ in own} <= {"close"}, own
    repeated = [row for row in origins if row[0] is not None and (row[0] != "ana" or row[1] is None)]
    assert not repeated, repeated  # no request wrote two rows in a node
    session = opened_again(ledger, rows)
    with closing(session.ledger):
        for number, seen in shown.items():
            assert figures(session, number) == seen
        assert len(rows_of(ledger)) == len(rows)  # all of that was free
