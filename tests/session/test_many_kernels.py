"""Many threads of many processes on one ledger, doing everything at once, killed at any moment: nobody overspends.

What was spent is added up here from the file alone, by SQLite, `Fraction` and forty digits, not by dpnb.
"""

from __future__ import annotations

import json
import math
import random
import signal
import sqlite3
import sys
import threading
import time
import traceback
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from fractions import Fraction
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import mpmath
import pandas as pd
import pytest

import dpnb
from dpnb.errors import BudgetExceeded, MechanismClosed, RequestError

if sys.platform == "win32":
    pytest.skip("needs SIGKILL and fork", allow_module_level=True)

from kernels import Kernel, figures, kernels

PATIENCE = 50.0
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


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clinic.dpnb"


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
    """One row of the ledger: what it launched, if anything, and its mu squared.

    That is exact, or rounded down where an epsilon was charged.
    """

    id: int
    branch: str
    state: str
    launch: dict[str, Any]
    said: dict[str, Any]
    cost: Fraction


def mu_squared(loss: dict[str, str]) -> Fraction:
    if loss["kind"] == "gdp":
        return Fraction(loss["mu_squared"])
    with mpmath.workdps(50):  # epsilon-DP is mu-GDP for the mu at which randomised response just fits
        top, bottom = Fraction(loss["epsilon"]).as_integer_ratio()
        likelier = mpmath.exp(mpmath.mpf(top) / bottom)
        mu = 2 * mpmath.sqrt(2) * mpmath.erfinv(2 * likelier / (1 + likelier) - 1)
        return Fraction(int(mu**2 * 10**40), 10**40)


def rows_of(path: Path) -> list[Row]:
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=PATIENCE)) as file:
        found = file.execute("SELECT id, branch, state, launch, measurement, loss FROM charges ORDER BY id").fetchall()
    rows = []
    for number, branch, state, launch, said, loss in found:
        launched = json.loads(launch or "{}")
        launched = launched if "asked" in launched else {}  # and not the end of something
        rows.append(Row(number, branch, state, launched, json.loads(said or "{}"), mu_squared(json.loads(loss))))
    return rows


def spent(rows: list[Row], branch: str = "") -> Fraction:
    """What a session, sub-session or part has spent: its own rows, and of each partition the two largest parts."""
    own = sum((row.cost for row in rows if row.branch == branch), Fraction(0))
    for row in rows:
        if row.branch == branch and row.launch.get("kind") == "partition":
            inside = {other.branch for other in rows if other.branch.startswith(f"{row.id} ")}
            parts = sorted((spent(rows, part) for part in inside), reverse=True)
            own += sum(parts[:MOST], Fraction(0))
    return own


def audited(path: Path, mu0: object = 1) -> list[Row]:
    """The rows of a ledger in which nothing is overspent."""
    rows = rows_of(path)
    assert spent(rows) <= Fraction(mu0) ** 2  # type: ignore[arg-type]
    launches = [row for row in rows if row.launch]
    assert max(Counter((row.branch, row.launch["name"]) for row in launches).values(), default=1) == 1
    for row in launches:
        if row.launch["kind"] == "sub-session":
            assert spent(rows, str(row.id)) <= row.cost == Fraction(row.launch["budget"]["mu_squared"])
        if row.launch["kind"] == "above-threshold":
            asked, answers = row.launch["asked"], [one.said for one in rows if one.branch == str(row.id)]
            assert sum(said["above"] for said in answers) <= asked.get("hits", math.inf)
            assert len(answers) <= asked.get("questions", math.inf)
    return rows


def opened_again(path: Path, rows: list[Row], mu0: object = 1) -> dpnb.Session:
    """A session that has followed the chain of hashes, and counts as we do but for rounding up epsilons."""
    session = clinic(path, mu0)
    assert 0 <= session.spent.mu_squared - spent(rows) <= 1e-15 * len(rows)
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
    noise = ({"epsilon": "0.06", "hits": 2}, {"mu": "0.06", "questions": 3})[kind]
    scan = place.above_threshold(90, name=f"{name} {kind}", **noise)
    scan.ask(count(place, chance.randrange(8)), threshold=chance.randrange(150))


def look(place: dpnb.Session, chance: random.Random) -> None:
    seen = place.noise_reduction(count(place, chance.randrange(3)), first="0.04", most="0.1")
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


def at_once(*work: Callable[[], None]) -> list[str]:
    """Run in threads of their own, begun together; what went wrong in them."""
    start, faults = threading.Barrier(len(work)), []

    def begun(one: Callable[[], None]) -> None:
        start.wait()
        try:
            one()
        except Exception:  # noqa: BLE001  (the test says which)
            faults.append(traceback.format_exc())

    threads = [threading.Thread(target=begun, args=(one,), daemon=True) for one in work]
    for thread in threads:
        thread.start()
    deadline = time.monotonic() + PATIENCE
    for thread in threads:
        thread.join(max(0, deadline - time.monotonic()))
    assert not any(thread.is_alive() for thread in threads), "a thread waits for ever"
    return faults


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


def ask_first(pipe: Connection, path: Path) -> None:
    """Ask in several threads of a process that has never asked anything."""
    session = clinic(path)
    sys.setswitchinterval(1e-6)
    pipe.send(at_once(*(lambda number=number: count(session, number).release(mu="0.1") for number in range(4))))  # type: ignore[misc]


def finish(pipe: Connection, path: Path, mu0: object) -> None:
    """Go on where killed kernels left off, then spend what is left."""
    session = clinic(path, mu0)
    busy(session, 99, 30)
    count(session, 50).release(share=1)
    pipe.send(session.headroom)


def launch(pipe: Connection, path: Path) -> None:
    """On a word, launch what all launch, and say what it says."""
    session = clinic(path)
    pipe.send("ready")
    pipe.recv()
    half = session.delegate(share="0.5", name="half")
    team = session.delegate(mu="0.3", name="team")
    town = session.partition("town")["a"]
    looks = session.noise_reduction(count(session, 0), first="0.1")
    session.above_threshold(10, name="line", epsilon="0.1")
    answers = (count(half, 0).release(share=1), count(team, 0).release(mu="0.2"), count(town, 0).release(mu="0.2"))
    pipe.send([figures(answer) for answer in (*answers, looks.step())])


# --- all at once ------------------------------------------------------------------------------------------------------


def test_threads_of_several_processes_that_do_everything_at_once_never_overspend(path: Path) -> None:
    with kernels(*(Kernel(work, path, seed, 40, 1) for seed in range(3))) as started:
        for kernel in started:
            assert kernel.hear() == "ready"
        for kernel in started:
            kernel.pipe.send("go")
        assert [kernel.hear() for kernel in started] == [[]] * 3
        assert [kernel.end() for kernel in started] == [0] * 3
    rows = audited(path)
    kinds = Counter(row.launch.get("kind") for row in rows)
    assert min(kinds[kind] for kind in ("sub-session", "partition", "above-threshold", "noise reduction")) > 3
    assert {row.state for row in rows} == {"released"}
    assert spent(rows) > Fraction("0.9")  # of 1: there was something to fight for
    opened_again(path, rows).ledger.close()


def test_kills_at_random_moments_overspend_nothing_and_the_next_kernel_spends_the_rest_exactly(path: Path) -> None:
    chance, mu0, kills = random.Random(9), 2, 0
    for seed in range(8):
        with kernels(*(Kernel(work, path, 10 * seed + number, 10**9, mu0) for number in (1, 2))) as started:
            for kernel in started:
                assert kernel.hear() == "ready"
            for kernel in started:
                kernel.pipe.send("go")
            for kernel in started:
                time.sleep(chance.uniform(0.02, 1.2))
                kernel.kill()
                audited(path, mu0)  # while the other one goes on
                assert kernel.end() == -signal.SIGKILL
                kills += 1
        opened_again(path, audited(path, mu0), mu0).ledger.close()
    before = len(rows_of(path))
    assert before > 100
    with kernels(Kernel(finish, path, mu0)) as (kernel,):
        assert kernel.hear() == 0
        assert kernel.end() == 0
    rows = audited(path, mu0)
    assert len(rows) > before
    assert sum(row.state != "released" for row in rows) <= 3 * kills
    assert 0 <= mu0**2 - spent(rows) <= 1e-15 * len(rows)
    session = opened_again(path, rows, mu0)
    assert session.headroom == 0
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        count(session, 51).release(mu="1e-6")


def test_kernels_that_launch_the_same_at_once_pay_once_and_hear_the_same(path: Path) -> None:
    with kernels(*(Kernel(launch, path) for _ in range(4))) as started:
        for kernel in started:
            assert kernel.hear() == "ready"
        for kernel in started:
            kernel.pipe.send("go")
        heard = [kernel.hear() for kernel in started]
        assert [kernel.end() for kernel in started] == [0] * 4
    assert heard == heard[:1] * 4
    rows = audited(path)
    assert len(rows) == 5 + 4
    line = mu_squared({"kind": "pure-dp", "epsilon": "1/10"})
    assert spent(rows) == rows[0].cost + Fraction("0.3") ** 2 + Fraction("0.2") ** 2 + Fraction("0.1") ** 2 + line
    opened_again(path, rows).ledger.close()


def test_threads_of_a_new_process_that_ask_at_once_do_not_crash(path: Path) -> None:
    with kernels(*(Kernel(ask_first, path) for _ in range(6))) as started:
        assert [kernel.hear() for kernel in started] == [[]] * 6
        assert [kernel.end() for kernel in started] == [0] * 6


def test_threads_that_launch_one_scan_at_once_can_all_ask_it(path: Path) -> None:
    for name in "abcdefgh":
        session = clinic(path)

        def asking(number: int, session: dpnb.Session = session, name: str = name) -> None:
            session.above_threshold(0, name=name, epsilon="0.05", hits=9).ask(count(session, number))

        assert at_once(*(lambda number=number: asking(number) for number in range(4))) == []  # type: ignore[misc]


@pytest.mark.parametrize("noise", [{"epsilon": 8, "hits": 5}, {"mu": 3, "questions": 5}], ids=["hits", "questions"])
def test_threads_that_ask_one_scan_never_get_more_answers_than_it_has(path: Path, noise: dict[str, Any]) -> None:
    """All sums are far above the threshold, so that every answer counts; two sessions of a process share the noise."""
    sessions = [clinic(path, 50) for _ in range(2)]
    scans = [session.above_threshold(-1000, name="line", **noise) for session in sessions]
    heard: list[tuple[int, bool, float | None]] = []

    def asking(seed: int) -> None:
        for number in random.Random(seed).sample(range(9), 9):
            with suppress(MechanismClosed):
                answer = scans[seed % 2].ask(count(sessions[seed % 2], number))
                heard.append((number, answer.above, answer.value))

    assert at_once(*(lambda seed=seed: asking(seed) for seed in range(8))) == []  # type: ignore[misc]
    assert len(heard) > 5
    assert len(set(heard)) == len({number for number, *_ in heard}) == 5
    assert all(above for _, above, _ in heard)
    assert {scan.state for scan in scans} == {"used up"}
    rows = audited(path, 50)
    assert sum("above" in row.said for row in rows) == 5
