"""A process may be killed at any moment: budget can be wasted, never exceeded, and no charge is lost."""

from __future__ import annotations

import random
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb.accounting.losses import GDP

if sys.platform == "win32":
    pytest.skip("needs SIGKILL and fork", allow_module_level=True)

from crashes import Shown, all_shown_answers_stand, killed_at_some_moment
from kernels import (
    FIRST,
    TIGHTER,
    Kernel,
    ask,
    figures,
    fill_the_disk,
    fork_and_ask,
    kernels,
    look_twice,
    open_session,
)

AT_ONCE = 4


def steps_of_a_whole_life(folder: Path) -> list[str]:
    with kernels(Kernel(look_twice, folder / "whole.dpnb", None)) as (kernel,):
        *_, (_, names) = kernel.said()
        assert kernel.end() == 0
    return names


def durable_charges(steps: list[str]) -> int:
    """How many charges were committed by these steps."""
    charged = [place for place, name in enumerate(steps) if name.startswith("INSERT INTO events")]
    return sum("COMMIT" in steps[place:] for place in charged)


def place(steps: list[str], start: str, after: int = -1) -> int:
    return next(number for number, name in enumerate(steps) if number > after and name.startswith(start))


@pytest.mark.waits
def test_a_charge_is_committed_before_rows_are_read_and_an_answer_before_it_is_shown(tmp_path: Path) -> None:
    steps = steps_of_a_whole_life(tmp_path)
    charged = place(steps, "INSERT INTO events")
    committed = place(steps, "COMMIT", charged)
    read = place(steps, "rows are read")
    answered = place(steps, "UPDATE events SET", read)
    assert (
        charged < committed < read < place(steps, "noise is drawn", read) < answered < place(steps, "COMMIT", answered)
    )


@pytest.mark.waits
def test_a_kill_between_any_two_steps_loses_no_charge_and_costs_no_second_one(tmp_path: Path) -> None:
    steps = steps_of_a_whole_life(tmp_path)
    assert len(steps) > 40
    for begin in range(1, len(steps) + 1, AT_ONCE):
        numbers = range(begin, min(begin + AT_ONCE, len(steps) + 1))
        paths = {number: tmp_path / f"{number}.dpnb" for number in numbers}
        with kernels(*(Kernel(look_twice, paths[number], number) for number in numbers)) as started:
            for number, kernel in zip(numbers, started, strict=True):
                shown = dict(kernel.said())
                assert kernel.end() == -signal.SIGKILL
                what = f"killed before step {number}: {steps[number - 1]}"
                check_after_a_kill(paths[number], shown, durable_charges(steps[: number - 1]), what)


def check_after_a_kill(path: Path, shown: dict[str, tuple[Any, ...]], charged: int, what: str) -> None:
    session = open_session(path)  # verifies the chain
    assert session.spent == [GDP(0), GDP(FIRST), GDP(TIGHTER)][charged], what
    assert len(session.ledger.charges()) == charged, what
    again = {mu: figures(ask(session, 0, mu)) for mu in (FIRST, TIGHTER)}
    assert {mu: again[mu] for mu in shown} == shown, what
    check_run_all_is_free(path, again, what)
    session.ledger.close()


def check_run_all_is_free(path: Path, answers: dict[str, tuple[Any, ...]], what: str) -> None:
    session = open_session(path)
    assert {mu: figures(ask(session, 0, mu)) for mu in answers} == answers, what
    charges = session.ledger.charges()
    assert session.spent == GDP(TIGHTER), what
    assert [charge.status for charge in charges] == ["released", "released"], what
    session.ledger.close()


@pytest.mark.slow
@pytest.mark.waits
def test_kills_at_random_moments_lose_no_charge(tmp_path: Path) -> None:
    """`make soak` kills for longer."""
    chance = random.Random(20)
    path, shown = tmp_path / "clinic.dpnb", Shown()
    for _ in range(20):
        killed_at_some_moment(path, shown, chance)
    assert len(shown) > 10
    all_shown_answers_stand(path, shown)


@pytest.mark.waits
def test_a_full_disk_refuses_the_charge_and_spoils_nothing(tmp_path: Path) -> None:
    path = tmp_path / "clinic.dpnb"
    with kernels(Kernel(fill_the_disk, path, 250_000)) as (kernel,):
        *answered, (_, message) = kernel.said()
        assert kernel.end() == 0
    shown = dict(answered)
    assert len(shown) > 5
    assert "cannot be written" in message
    session = open_session(path, budget=dpnb.Budget.gdp(100))
    assert len(shown) <= len(session.ledger.charges()) <= len(shown) + 1
    session.ledger.close()
    all_shown_answers_stand(path, shown)


@pytest.mark.parametrize("ledger", ["clinic.dpnb", ":memory:"])
@pytest.mark.waits
def test_a_fork_of_the_process_is_refused_and_spends_nothing(tmp_path: Path, ledger: str) -> None:
    path: Any = ledger if ledger == ":memory:" else tmp_path / ledger
    with kernels(Kernel(fork_and_ask, path)) as (kernel,):
        assert "a fork of that process; create the session again" in kernel.hear()
        assert kernel.hear()[3] == GDP(FIRST)  # what it cost in the process that opened it
        assert kernel.end() == 0
