"""A service that is killed again and again while clients use it, and what the ledger alone says afterwards.

What ran at a kill is not executed again before a curator allows it, which this one does after each start.
"""

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
from dpnb._core.accountant.grant import Mode
from dpnb.curator.audit import Audit, audit
from dpnb.errors import ExecutionStopped, MechanismClosed, ServiceUnavailable
from dpnb.service.access.tokens import new_token
from dpnb.service.configuration.parts import SETTINGS_ACTOR
from dpnb.service.server import serve
from kernels import Kernel
from load import audited, count, opened_again, rows_of
from service.curating import resume_held
from threads import at_once
from waiting import LIMIT, wait_until

SETTINGS = """\
socket = "s"
heads = "heads"
time_grid = false
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
CURATOR = "carl"
EACH = 10**6
"""How many numbers of queries there are for each client."""

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
    """The same call until the service is back, and the curator has resumed what ran."""
    deadline = time.monotonic() + LIMIT
    while True:
        try:
            return call()
        except (ServiceUnavailable, ExecutionStopped):
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


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


def divided(mode: Mode, names: list[str]) -> str:
    """The settings of a division in which everybody has the same part."""
    amount = f"ceiling = {{ share = {1 / len(names)} }}" if mode == "reserved" else "cap = { share = 0.5 }"
    return f'mode = "{mode}"\n' + "".join(f"[tables.clinic.analysts.{name}]\n{amount}\n" for name in names)


def killed_while_clients_ask(
    folder: Path,
    chance: random.Random,
    *,
    clients: int,
    queries: int,
    kills: int,
    mode: Mode | None = None,
) -> Shown:
    """Kill the service that many times at random moments; then everything must have been charged and answered once.

    With a mode each client is an analyst of its own; otherwise all of them have the token of one.
    """
    settings, ledger, shown = folder / "curator.toml", folder / "clinic.dpnb", Shown()
    names = ["ana"] if mode is None else [f"ana{number}" for number in range(clients)]
    parts = "" if mode is None else divided(mode, names)
    settings.write_text(SETTINGS + parts, "utf-8")
    (folder / "clinic.py").write_text(OPENING, "utf-8")
    tokens = [new_token(folder / "tokens.json", name) for name in names]
    address, total = f"unix://{folder / 's'}", clients * queries
    curator = new_token(folder / "tokens.json", CURATOR, role="curator")
    kernels, faults = [started(settings)], []

    def asking(one: int) -> None:
        try:
            client(address, tokens[one % len(tokens)], EACH * one, queries, shown)
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
            if mode is None:
                audited(ledger)
            kernels[0] = started(settings)
            resume_held(address, curator, "clinic")
            if mode is not None:  # only now: a copy alone does not repair a charge that the kill interrupted
                is_fine(ledger)

    try:
        limit = LIMIT * (1 + kills / 5)  # the service starts again after each
        found = at_once(kill, *(partial(asking, one) for one in range(clients)), within=limit)
        assert not found, "\n".join(found)
        assert len(shown) == total
        if mode is not None:
            check_divided(ledger, shown, address, tokens)
    finally:
        kernels[0].kill()
        kernels[0].end()
    if mode is None:
        check(ledger, shown)
    return shown


def is_fine(ledger: Path) -> Audit:
    """The audit of a ledger without a problem."""
    result = audit(str(ledger))
    assert result.is_fine, result.problems
    return result


def check_divided(
    ledger: Path, shown: Shown, address: str, tokens: list[str], names: frozenset[str] = frozenset()
) -> None:
    """As `check`, while the service runs: each analyst gets the same answers again, and nothing is charged.

    The ledger may have rows of others, whose names are given; nobody else charges meanwhile.
    """
    refuse_repeated(ledger, {f"ana{number}" for number in range(len(tokens))}, names)
    before = {one.name: one.requests for one in is_fine(ledger).sums}
    for one, token in enumerate(tokens):
        with closing(dpnb.connect(address, "clinic", token=token)) as session:
            own = [number for number in shown if number // EACH == one]
            assert own
            for number in own:
                assert figures(session, number) == shown[number]
        assert before[f"analyst ana{one}"] >= len(own)
    assert {one.name: one.requests for one in is_fine(ledger).sums} == before


def refuse_repeated(ledger: Path, names: set[str], others: frozenset[str] = frozenset()) -> None:
    """Refuse rows that are nobody's, and requests that wrote two rows in a node; `others` may send batches."""
    with closing(sqlite3.connect(ledger)) as file:
        origins = file.execute("SELECT actor, request_id, kind, node FROM events").fetchall()
    own = [row for row in origins if row[0] is None]  # a service closes, when it starts, the scans that a crash ended
    assert {kind for _, _, kind, _ in own} <= {"close"}, own
    assert {kind for actor, _, kind, _ in origins if actor == CURATOR} <= {"act"}
    asked = [row for row in origins if row[0] not in (None, SETTINGS_ACTOR, CURATOR)]
    repeated = [row for row in asked if row[0] not in names | others or (row[1] is None and row[0] in names)]
    assert not repeated, repeated


def check(ledger: Path, shown: Shown) -> None:
    """Nothing is over-spent, no charge is lost, and each request was charged and answered once."""
    rows = audited(ledger)
    releases = [row for row in rows if not row.branch and not row.launch and row.cost]
    assert len(releases) == len(shown), (len(releases), len(shown))
    assert {row.state for row in rows} == {"released"}
    refuse_repeated(ledger, {"ana"})
    session = opened_again(ledger, rows)
    with closing(session.ledger):
        for number, seen in shown.items():
            assert figures(session, number) == seen
        assert len(rows_of(ledger)) == len(rows)  # all of that was free
