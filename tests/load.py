"""Sessions for load: threads of many kernels that do everything at once, and what the ledger's file says of it.

What was spent is added up here from the file alone, by SQLite, `Fraction` and forty digits, not by dpnb.
"""

from __future__ import annotations

import json
import random
import signal
import sqlite3
import sys
import time
from collections import Counter
from contextlib import closing, suppress
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import mpmath
import pandas as pd

import dpnb
from dpnb.errors import BudgetExceeded, MechanismClosed, RequestError
from kernels import Kernel, kernels
from threads import at_once
from waiting import LIMIT, wait_until

TOWNS = ("a", "b", "c")
MOST = 2
"""Rows of a person, hence towns."""
ROWS = pd.DataFrame(
    {
        "person": [f"p{i // 2}" for i in range(300)],
        "visits": [i % 11 for i in range(300)],
        "town": [TOWNS[i % 3] for i in range(300)],
    }
)


def clinic(path: Path, mu0: object = 1) -> dpnb.Session:
    return dpnb.Session(
        ROWS,
        name="clinic",
        privacy_unit="person",
        max_rows_per_unit=MOST,
        budget=dpnb.Budget.gdp(mu0),  # type: ignore[arg-type]
        schema={"visits": dpnb.Bounded(0, 100), "town": dpnb.Categories(list(TOWNS))},
        ledger=path,
    )


# --- what the file says -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Row:
    """One row of the ledger: what it launched, if anything, and what it was charged in mu squared.

    `pure` is the epsilon of a launch in pure DP, otherwise 0.
    """

    id: int
    branch: str
    state: str
    launch: dict[str, Any]
    said: dict[str, Any]
    cost: Fraction
    pure: Fraction


def is_enough(epsilon: Fraction, charge: Fraction, left: Fraction) -> bool:
    """Whether a charge pays for randomised response out of a GDP budget: by the total variation of both sides."""
    with mpmath.workdps(50):
        e, r, s = (mpmath.mpf(x.numerator) / x.denominator for x in (epsilon, left, left - charge))
        r, s = mpmath.sqrt(r), mpmath.sqrt(s)
        delta = mpmath.ncdf(s / 2 - e / s) - mpmath.exp(e) * mpmath.ncdf(-s / 2 - e / s) if s else 0
        together = mpmath.tanh(e / 2) + 2 * delta / (1 + mpmath.exp(e))
        return bool(together <= 2 * mpmath.ncdf(r / 2) - 1)


def rows_of(path: Path) -> list[Row]:
    # Not read-only: what a killed kernel left half written has to be taken back first, as any next kernel does.
    with closing(sqlite3.connect(f"file:{path}?mode=rw", uri=True, timeout=LIMIT)) as file:
        names = "id, node, status, kind, request, details, result, loss, charged_mu_squared"
        found = file.execute(f"SELECT {names} FROM events ORDER BY id").fetchall()
    rows = []
    for number, branch, state, kind, request, details, said, loss, charged in found:
        launched = launch_of(json.loads(request), json.loads(details)) if kind == "launch" else {}
        lost = json.loads(loss)
        cost = Fraction(lost["mu_squared"] if lost["kind"] == "gdp" else charged)
        pure = Fraction(0 if lost["kind"] == "gdp" else lost["epsilon"])
        rows.append(Row(number, branch, state, launched, json.loads(said or "{}"), cost, pure))
    return rows


def launch_of(request: dict[str, Any], resolved: dict[str, Any]) -> dict[str, Any]:
    """What was launched, with its name and the values that were fixed at the launch."""
    return {**request["mechanism"], "name": request["name"], "resolved": resolved}


def spent(rows: list[Row], branch: str = "") -> Fraction:
    """What a session, sub-session or part has spent: its own rows, and of each partition the two largest parts."""
    own = sum((row.cost for row in rows if row.branch == branch), Fraction(0))
    for row in rows:
        if row.branch == branch and row.launch.get("mechanism") == "partition":
            inside = {other.branch for other in rows if other.branch.startswith(f"{row.id} ")}
            parts = sorted((spent(rows, part) for part in inside), reverse=True)
            own += sum(parts[:MOST], Fraction(0))
    return own


def left_for(rows: list[Row], branch: str, budget: Fraction) -> Fraction:
    """What is left in a branch for the person who has paid most; a person has rows in two parts of a partition."""
    launch = next((row for row in rows if branch and str(row.id) == branch.split()[0]), None)
    if launch is None:
        return budget - spent(rows)
    if launch.launch["mechanism"] != "partition":
        return launch.cost - spent(rows, branch)
    others = {row.branch for row in rows if row.branch.startswith(f"{launch.id} ")} - {branch}
    rivals = sorted((spent(rows, part) for part in others), reverse=True)
    own = spent(rows, branch)
    counted = sum(sorted([own, *rivals], reverse=True)[:MOST], Fraction(0))
    return left_for(rows, launch.branch, budget) + counted - own - sum(rivals[: MOST - 1], Fraction(0))


def audited(path: Path, mu0: object = 1) -> list[Row]:
    """The rows of a ledger in which nothing is overspent."""
    rows = rows_of(path)
    budget = Fraction(mu0) ** 2  # type: ignore[arg-type]
    assert spent(rows) <= budget
    for row in rows:
        if row.pure:
            assert is_enough(row.pure, row.cost, left_for([one for one in rows if one.id < row.id], row.branch, budget))
    launches = [row for row in rows if row.launch]
    assert max(Counter((row.branch, row.launch["name"]) for row in launches).values(), default=1) == 1
    for row in launches:
        if row.launch["mechanism"] == "sub_session":
            assert spent(rows, str(row.id)) <= row.cost == Fraction(row.launch["resolved"]["budget"]["mu_squared"])
        if row.launch["mechanism"] == "above_threshold":
            asked, answers = row.launch, [one.said for one in rows if one.branch == str(row.id)]
            if "epsilon" in asked:
                assert sum(said["above"] for said in answers) <= asked.get("max_positives", 1)
            else:
                assert len(answers) <= asked["max_queries"]
    return rows


def opened_again(path: Path, rows: list[Row], mu0: object = 1) -> dpnb.Session:
    """A session that has followed the chain of hashes, and counts as we do."""
    session = clinic(path, mu0)
    assert session.spent.mu_squared == spent(rows)
    return session


# --- what kernels do --------------------------------------------------------------------------------------------------


def count(place: dpnb.Session, number: int) -> Any:
    """One of as many different questions as there are numbers."""
    frame = place.frame
    return frame[frame["visits"] >= number].count()


def release(place: dpnb.Session, chance: random.Random) -> None:
    amount = {"mu": chance.choice(("0.05", "1/14", "0.11"))} if chance.random() < 0.7 else {"share": "0.05"}
    count(place, chance.randrange(8)).release(**amount)


def compare(place: dpnb.Session, chance: random.Random) -> None:
    name, kind = f"line {chance.randrange(6)}", chance.randrange(2)
    noise = ({"epsilon": "0.06", "max_positives": 2}, {"mu": "0.06", "max_queries": 3})[kind]
    scan = place.above_threshold(90, name=f"{name} {kind}", **noise)
    scan.ask(count(place, chance.randrange(8)), threshold=chance.randrange(150))


def look(place: dpnb.Session, chance: random.Random) -> None:
    seen = place.noise_reduction(count(place, chance.randrange(3)), initial_mu="0.04", max_mu="0.1")
    with suppress(RequestError):  # the most has been reached
        seen.step()


def close(place: dpnb.Session, chance: random.Random) -> None:
    ending = [one for one in place.mechanisms.values() if one.kind != "partition"]
    if ending and chance.random() < 0.3:
        chance.choice(ending).close()


def anything(place: dpnb.Session, chance: random.Random) -> None:
    """One thing at random, perhaps in a part or a sub-session, perhaps in one of those."""
    for _ in range(chance.choice((0, 0, 1, 1, 2))):
        if chance.random() < 0.5:
            place = place.partition("town")[chance.choice(TOWNS)]
        else:
            place = place.delegate(mu=chance.choice(("0.2",)), name=f"team {chance.randrange(4)}")
    chance.choice((release, release, release, compare, look, close))(place, chance)


def busy(session: dpnb.Session, seed: int, turns: int) -> None:
    chance = random.Random(seed)
    for _ in range(turns):
        with suppress(BudgetExceeded, MechanismClosed):
            anything(session, chance)


def work(pipe: Connection, path: Path, seed: int, turns: int, mu0: object) -> None:
    """On a word, three threads, of which two share a session; say what went wrong, once all have ended."""
    sys.setswitchinterval(1e-4)  # threads take turns as often as they can
    session = clinic(path, mu0)
    pipe.send("ready")
    pipe.recv()
    faults = at_once(
        lambda: busy(session, 3 * seed, turns),
        lambda: busy(session, 3 * seed + 1, turns),
        lambda: busy(clinic(path, mu0), 3 * seed + 2, turns),
    )
    pipe.send(faults)


def finish(pipe: Connection, path: Path, mu0: object) -> None:
    """Go on where killed kernels left off, then spend what is left."""
    session = clinic(path, mu0)
    busy(session, 99, 30)
    count(session, 50).release(share=1)
    pipe.send(session.headroom)


# --- and are killed ---------------------------------------------------------------------------------------------------


def killed_in_turn(path: Path, seed: int, chance: random.Random, mu0: object) -> int:
    """Kill two kernels at work, each after some further rows and some milliseconds; how many were killed.

    The milliseconds are nothing that is waited for: whatever the kernels are doing then, nothing may be overspent.
    """
    with kernels(*(Kernel(work, path, 10 * seed + number, 10**9, mu0) for number in (1, 2))) as started:
        told(started)
        for kernel in started:
            at_work(path, chance.randrange(1, 12), mu0)
            time.sleep(chance.uniform(0, 0.05))
            kernel.kill()
            audited(path, mu0)  # while the other one goes on
            assert kernel.end() == -signal.SIGKILL
    opened_again(path, audited(path, mu0), mu0).ledger.close()
    return len(started)


def at_work(path: Path, rows: int, mu0: object) -> None:
    """Wait until this many rows have been added, unless there is hardly anything left to write rows for."""
    before = len(rows_of(path))

    def enough() -> bool:
        now = rows_of(path)
        return len(now) >= before + rows or spent(now) > Fraction("0.9") * Fraction(mu0) ** 2  # type: ignore[arg-type]

    wait_until(enough, f"{rows} rows after the first {before}", lambda: len(rows_of(path)))


def told(started: tuple[Kernel, ...]) -> None:
    """Have kernels begin together, once all of them are ready."""
    for kernel in started:
        assert kernel.hear() == "ready"
    for kernel in started:
        kernel.pipe.send("go")


def spends_the_rest_exactly(path: Path, mu0: int, kills: int) -> None:
    """After the kills another kernel goes on, and spends what is left to the last digit."""
    before = len(rows_of(path))
    with kernels(Kernel(finish, path, mu0)) as (kernel,):
        assert kernel.hear() == 0
        assert kernel.end() == 0
    rows = audited(path, mu0)
    assert len(rows) > before
    assert sum(row.state != "released" for row in rows) <= 3 * kills
    assert 0 <= mu0**2 - spent(rows) <= 1e-15 * len(rows)
    session = opened_again(path, rows, mu0)
    assert session.headroom == 0
    session.ledger.close()
