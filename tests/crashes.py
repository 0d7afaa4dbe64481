"""A kernel that asks without end and is killed at some moment, and what must hold of its ledger then."""

from __future__ import annotations

import random
import signal
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import dpnb
from kernels import Kernel, ask, ask_without_end, figures, kernels, open_session

MU = "0.1"
BUDGET = dpnb.Budget.gdp(100)

Shown = dict[int, tuple[Any, ...]]
"""Answers that were seen, by the number of the question."""


def killed_at_some_moment(path: Path, shown: Shown, chance: random.Random) -> int:
    """Kill a kernel after some answers and some milliseconds; the charges that there are now.

    The milliseconds are nothing that is waited for: whatever the kernel is doing then, the ledger must be right.
    """
    with kernels(Kernel(ask_without_end, path, max(0, len(shown) - 3), MU)) as (kernel,):
        assert kernel.hear() == "ready"
        for _ in range(chance.randrange(6)):  # of which the first three were asked before
            is_the_same(shown, *kernel.hear())
        time.sleep(chance.uniform(0, 0.02))
        kernel.kill()
        for number, answer in kernel.said():
            is_the_same(shown, number, answer)
        assert kernel.end() == -signal.SIGKILL
    session = open_session(path, budget=BUDGET)
    charges = session.ledger.charges()
    assert session.spent.mu_squared == len(charges) * Fraction(MU) ** 2
    # The last charge may stand without an answer that anybody saw; no other may.
    assert len(shown) <= len(charges) <= len(shown) + 1
    session.ledger.close()
    return len(charges)


def is_the_same(shown: Shown, number: int, answer: tuple[Any, ...]) -> None:
    """What was answered before is answered in the very same way."""
    assert shown.setdefault(number, answer) == answer


def all_shown_answers_stand(path: Path, shown: Shown) -> None:
    """Asking again everything that was answered gives the same and costs nothing."""
    session = open_session(path, budget=BUDGET)
    before = session.spent
    assert {number: figures(ask(session, number, MU)) for number in shown} == shown
    assert session.spent == before
    session.ledger.close()
