"""Many threads of many processes on one ledger, doing everything at once, killed at any moment: nobody overspends."""

from __future__ import annotations

import random
import sys
from collections import Counter
from contextlib import suppress
from fractions import Fraction
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb.errors import BudgetExceeded, MechanismClosed
from threads import at_once

if sys.platform == "win32":
    pytest.skip("needs SIGKILL and fork", allow_module_level=True)

from kernels import Kernel, figures, kernels
from load import (
    audited,
    clinic,
    count,
    killed_in_turn,
    opened_again,
    rows_of,
    spends_the_rest_exactly,
    spent,
    told,
    work,
)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clinic.dpnb"


def ask_first(pipe: Connection, path: Path) -> None:
    """Ask in several threads of a process that has never asked anything."""
    session = clinic(path)
    sys.setswitchinterval(1e-6)
    pipe.send(at_once(*(partial(count(session, number).release, mu="0.1") for number in range(4))))


def launch(pipe: Connection, path: Path) -> None:
    """On a word, launch what all launch, and say what it says."""
    session = clinic(path)
    pipe.send("ready")
    pipe.recv()
    half = session.delegate(share="0.5", name="half")
    team = session.delegate(mu="0.3", name="team")
    town = session.partition("town")["a"]
    looks = session.noise_reduction(count(session, 0), initial_mu="0.1")
    session.above_threshold(10, name="line", epsilon="0.1")
    answers = (count(half, 0).release(share=1), count(team, 0).release(mu="0.2"), count(town, 0).release(mu="0.2"))
    pipe.send([figures(answer) for answer in (*answers, looks.step())])


@pytest.mark.waits
def test_threads_of_several_processes_that_do_everything_at_once_never_overspend(path: Path) -> None:
    with kernels(*(Kernel(work, path, seed, 40, 1) for seed in range(3))) as started:
        told(started)
        assert [kernel.hear() for kernel in started] == [[]] * 3
        assert [kernel.end() for kernel in started] == [0] * 3
    rows = audited(path)
    kinds = Counter(row.launch.get("mechanism") for row in rows)
    assert min(kinds[kind] for kind in ("sub_session", "partition", "above_threshold", "noise_reduction")) > 3
    assert {row.state for row in rows} == {"released"}
    assert spent(rows) > Fraction("0.9")  # of 1: there was something to fight for
    opened_again(path, rows).ledger.close()


@pytest.mark.slow
@pytest.mark.waits
def test_kills_at_random_moments_overspend_nothing_and_the_next_kernel_spends_the_rest_exactly(path: Path) -> None:
    """`make soak` kills for longer."""
    chance, mu0 = random.Random(9), 2
    kills = sum(killed_in_turn(path, seed, chance, mu0) for seed in range(8))
    assert len(rows_of(path)) > 60
    spends_the_rest_exactly(path, mu0, kills)
    session = clinic(path, mu0)
    with pytest.raises(BudgetExceeded, match="nothing is left"):
        count(session, 51).release(mu="1e-6")


@pytest.mark.waits
def test_kernels_that_launch_the_same_at_once_pay_once_and_hear_the_same(path: Path) -> None:
    with kernels(*(Kernel(launch, path) for _ in range(4))) as started:
        told(started)
        heard = [kernel.hear() for kernel in started]
        assert [kernel.end() for kernel in started] == [0] * 4
    assert heard == heard[:1] * 4
    rows = audited(path)
    assert len(rows) == 5 + 4
    (line,) = [row.cost for row in rows if row.pure == Fraction("0.1")]
    assert spent(rows) == rows[0].cost + Fraction("0.3") ** 2 + Fraction("0.2") ** 2 + Fraction("0.1") ** 2 + line
    opened_again(path, rows).ledger.close()


@pytest.mark.waits
def test_threads_of_a_new_process_that_ask_at_once_do_not_crash(path: Path) -> None:
    with kernels(*(Kernel(ask_first, path) for _ in range(6))) as started:
        assert [kernel.hear() for kernel in started] == [[]] * 6
        assert [kernel.end() for kernel in started] == [0] * 6


@pytest.mark.waits
@pytest.mark.slow
def test_threads_that_launch_one_scan_at_once_can_all_ask_it(path: Path) -> None:
    for name in "abcdefgh":
        session = clinic(path)

        def asking(number: int, session: dpnb.Session = session, name: str = name) -> None:
            session.above_threshold(0, name=name, epsilon="0.05", max_positives=9).ask(count(session, number))

        assert at_once(*(partial(asking, number) for number in range(4))) == []


@pytest.mark.parametrize(
    "noise", [{"epsilon": 8, "max_positives": 5}, {"mu": 3, "max_queries": 5}], ids=["hits", "questions"]
)
@pytest.mark.waits
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

    assert at_once(*(partial(asking, seed) for seed in range(8))) == []
    assert len(heard) > 5
    assert len(set(heard)) == len({number for number, *_ in heard}) == 5
    assert all(above for _, above, _ in heard)
    assert {scan.state for scan in scans} == {"exhausted"}
    rows = audited(path, 50)
    assert sum("above" in row.said for row in rows) == 5
