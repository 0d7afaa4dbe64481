"""What a soak run does, round by round; each round checks what must hold, and raises where it does not.

The tests have short forms of the same in test_crash.py, core/test_many_kernels.py, ledger/test_forks.py,
test_interrupt_engines.py, service/test_killed.py and service/test_hostile_load.py.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Protocol

from crashes import BUDGET, Shown, all_shown_answers_stand, killed_at_some_moment
from dpnb.accounting.losses import GDP
from kernels import Kernel, ask, kernels, open_session
from ledger.rows import opened
from ledger.test_forks import FORKS, REFUSED, busy, outcome
from ledger.test_forks import reserve as charge
from load import killed_in_turn, rows_of, spends_the_rest_exactly, told
from service.idle import idle_analysts
from service.killed import killed_while_clients_ask
from service.test_fuzz import fuzz
from soak.hostile import Load, under_attack
from test_interrupt_engines import interrupted_now_and_then, unharmed

REQUESTS = 2_500
"""Of each of four kernels, in a round of load."""


class Part(Protocol):
    """One round in an empty folder; what it did, by name."""

    def __call__(self, folder: Path, chance: random.Random) -> Counter[str]: ...


def crashes(folder: Path, chance: random.Random) -> Counter[str]:
    """One kernel that asks without end and is killed twenty times."""
    path, shown, charges = folder / "clinic.dpnb", Shown(), 0
    for _ in range(20):
        charges = killed_at_some_moment(path, shown, chance)
    all_shown_answers_stand(path, shown)
    return Counter(kills=20, charges=charges)


def many(folder: Path, chance: random.Random) -> Counter[str]:
    """Two kernels of three threads each do everything at once and are killed, eight times; then the rest is spent."""
    path, mu0 = folder / "clinic.dpnb", 2
    kills = sum(killed_in_turn(path, chance.randrange(10**6), chance, mu0) for _ in range(8))
    spends_the_rest_exactly(path, mu0, kills)
    return Counter(kills=kills, charges=len(rows_of(path)))


def ask_many(pipe: Connection, path: Path, first: int, number: int) -> None:
    """On a word, ask this many different queries; say that all were answered."""
    session = open_session(path, budget=BUDGET)
    pipe.send("ready")
    pipe.recv()
    for one in range(first, first + number):
        ask(session, one, "0.1")
    pipe.send("answered")


def load(folder: Path, chance: random.Random) -> Counter[str]:
    """Four kernels at once with thousands of requests each, on one ledger; each is charged, exactly."""
    path, number = folder / "clinic.dpnb", REQUESTS
    with kernels(*(Kernel(ask_many, path, one * number, number) for one in range(4))) as started:
        told(started)
        assert [kernel.last_word() for kernel in started] == ["answered"] * 4
        assert [kernel.end() for kernel in started] == [0] * 4
    session = open_session(path, budget=BUDGET)
    charges = session.ledger.charges()
    assert len(charges) == 4 * number
    assert {one.status for one in charges} == {"released"}
    assert session.spent == GDP.from_mu_squared(4 * number * GDP("0.1").mu_squared)
    session.ledger.close()
    return Counter(requests=4 * number, charges=len(charges))


def forks(folder: Path, chance: random.Random) -> Counter[str]:
    """Forks of a process in which another thread charges without end."""
    with opened(folder / "ledger.dpnb") as ledger:
        with busy(ledger):
            found = {outcome(partial(charge, ledger, "fork")) for _ in range(FORKS)}
        assert found == {REFUSED}, found
        charges = ledger.count
    with opened(folder / "ledger.dpnb") as ledger:
        assert ledger.count == charges
    return Counter(forks=FORKS, charges=charges)


def interrupts(folder: Path, chance: random.Random) -> Counter[str]:
    """Requests to DuckDB and polars that are interrupted at random moments, and asked again."""
    moments = [chance.choice((0.0, chance.uniform(0, 0.05), chance.uniform(0, 0.3))) for _ in range(8)]
    for name in ("duckdb", "polars"):
        with kernels(Kernel(interrupted_now_and_then, name, folder / f"{name}.dpnb", len(moments))) as (kernel,):
            unharmed(kernel, moments)
    return Counter(interrupts=2 * len(moments), charges=2 * len(moments))


def service(folder: Path, chance: random.Random) -> Counter[str]:
    """A service with eight clients of a hundred requests each, which is killed twenty times."""
    shown = killed_while_clients_ask(folder, chance, clients=8, queries=100, kills=20)
    return Counter(kills=20, requests=len(shown), charges=len(shown))


def fuzzed(folder: Path, chance: random.Random) -> Counter[str]:
    """Ten thousand random and mutated bodies, on two neighbouring tables: the same outcome, and no failure."""
    kinds = fuzz(folder, 10_000, chance.randrange(10**9))
    return Counter(requests=10_000, charges=kinds["answer"])


def idle(folder: Path, chance: random.Random) -> Counter[str]:
    """Fifty analysts with open sessions, and an open page, while one asks: all follow, and the service stays small."""
    before, after, seconds = idle_analysts(folder, chance, analysts=50, requests=200)
    print(f"idle: {before:.0f} MB before, {after:.0f} MB after, {seconds:.1f} CPU seconds", flush=True)
    assert after < 2 * before + 200
    return Counter(requests=200, charges=200)


def hostile(folder: Path, chance: random.Random, minutes: float = 6) -> Counter[str]:
    """A service with eight analysts, of whom six attack it, in both modes; one round, as long as there is time."""
    return under_attack(folder, chance, Load(60 * minutes / 2))


PARTS: dict[str, Callable[[Path, random.Random], Counter[str]]] = {
    "crashes": crashes,
    "many": many,
    "load": load,
    "forks": forks,
    "interrupts": interrupts,
    "service": service,
    "fuzz": fuzzed,
    "idle": idle,
    "hostile": hostile,
}
