"""A kernel that asks without end and is killed at some moment, and what must hold of its ledger then."""

from __future__ import annotations

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


def killed_at_some_moment(path: Path, shown: Shown, moment: float) -> int:
    """Kill a kernel so many seconds after it was ready; the charges that there are now.

    The moment is not waited for: however far the kernel has come by then, the ledger must be right.
    """
    with kernels(Kernel(ask_without_end, path, max(0, len(shown) - 3), MU)) as (kernel,):
        assert kernel.hear() == "ready"
        time.sleep(moment)
        kernel.kill()
        for number, answer in kernel.said():
            assert shown.setdefault(number, answer) == answer  # asked before: the very same answer
        assert kernel.end() == -signal.SIGKILL
    session = open_session(path, budget=BUDGET)
    charges = session.ledger.charges()
    assert session.spent.mu_squared == len(charges) * Fraction(MU) ** 2
    # The last charge may stand without an answer that anybody saw; no other may.
    assert len(shown) <= len(charges) <= len(shown) + 1
    session.ledger.close()
    return len(charges)


def all_shown_answers_stand(path: Path, shown: Shown) -> None:
    """Asking again everything that was answered gives the same and costs nothing."""
    session = open_session(path, budget=BUDGET)
    before = session.spent
    assert {number: figures(ask(session, number, MU)) for number in shown} == shown
    assert session.spent == before
    session.ledger.close()
