"""Very many requests of one session, on a table of 20,000 rows like a medical study."""

from __future__ import annotations

import gc
import random
import statistics
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpnb
from bench.measures.children import tell
from bench.measures.peak import Peak, let_go
from dpnb.notebook import panel as kernel_panel

ROWS, PEOPLE = 20_000, 6_000
PLANS = [0, 25, 50, 95, 100]
AROUND = 1000
KINDS = ("count", "units", "mean", "mean by plan", "mean by plan and sex", "quantiles", "again", "finer")
WEIGHTS = (20, 10, 25, 15, 5, 5, 15, 5)


def study() -> pd.DataFrame:
    """Years of persons: visits, a share that they pay, their age and sex."""
    chance = np.random.default_rng(1982)
    who = np.sort(chance.integers(0, PEOPLE, ROWS))
    columns = {
        "who": who,
        "visits": chance.negative_binomial(1, 0.25, ROWS),
        "age": chance.integers(0, 63, PEOPLE)[who] + chance.random(ROWS).round(2),
        "coins": np.array(PLANS)[chance.integers(0, 5, PEOPLE)[who]],
        "sex": np.array(["f", "m"])[chance.integers(0, 2, PEOPLE)[who]],
    }
    return pd.DataFrame(columns)


def _opened(ledger: Path) -> dpnb.Session:
    return dpnb.Session(
        study(),
        name="study",
        privacy_unit="who",
        max_rows_per_unit=5,
        budget=dpnb.Budget(epsilon=100_000, delta=1e-6),
        public_size=PEOPLE,
        schema={
            "visits": dpnb.Bounded(0, 77, integer=True),
            "age": dpnb.Bounded(0, 65),
            "coins": dpnb.Categories(PLANS),
            "sex": dpnb.Categories(["f", "m"]),
        },
        ledger=ledger,
    )


class Analyst:
    """Asks one question after the other; sometimes an earlier one again, or better.

    Parameters
    ----------
    asker : dpnb.Session
    """

    def __init__(self, asker: dpnb.Session) -> None:
        self._frame, self._chance = asker.frame, random.Random(20261122)
        self._asked: list[tuple[Any, float]] = []

    def ask(self, number: int) -> str:
        """Ask, and say what kind of request it was."""
        kind = self._chance.choices(KINDS, WEIGHTS)[0]
        if kind in ("again", "finer") and self._asked:
            query, mu = self._chance.choice(self._asked)
            query.release(mu=mu if kind == "again" else mu * 1.25)
            return kind
        kind = "count" if kind in ("again", "finer") else kind
        view = self._frame[self._frame["age"] > 60 * (number % 99_991) / 99_991]
        if kind in ("count", "units"):
            query = view.count() if kind == "count" else view.count_units()
        elif kind == "mean":
            query = view["visits"].mean()
        elif kind == "quantiles":
            query = view["visits"].quantile([0.25, 0.5, 0.75])
        else:
            query = view.groupby(["coins"] if kind == "mean by plan" else ["coins", "sex"])["visits"].mean()
        query.release(mu=0.1)
        if len(self._asked) < AROUND:
            self._asked.append((query, 0.1))
        else:
            self._asked[self._chance.randrange(AROUND)] = (query, 0.1)
        return kind


def many(requests: int, folder: str | None = None) -> dict[str, Any]:
    """Seconds and bytes of very many requests, and of opening their ledger again."""
    with tempfile.TemporaryDirectory(dir=folder) as place:
        ledger = Path(place) / "study"
        let_go()
        peak = Peak()
        asker = _opened(ledger)
        analyst, found, kinds = Analyst(asker), [], []
        begun = time.perf_counter()
        for number in range(requests):
            start = time.perf_counter()
            kinds.append(analyst.ask(number))
            found.append(time.perf_counter() - start)
        total = time.perf_counter() - begun
        around = min(AROUND, requests // 2)
        by_kind = {kind: _ends(kind, kinds, found) for kind in KINDS}
        said: dict[str, Any] = {
            "requests": requests,
            "charges": asker.ledger.count,
            "total": total,
            "first": statistics.median(found[:around]),
            "last": statistics.median(found[-around:]),
            "by kind": by_kind,
            "memory": peak.bytes(),
        }
        tell(said)
        said["gauges"] = _timed(asker.__repr__)
        said["gauges again"] = _timed(asker.__repr__)
        said["log"] = _timed(asker.log)
        said["snapshot"] = _snapshot(asker)
        said["memory with faces"] = peak.bytes()
        del asker, analyst
        gc.collect()
        said["ledger"] = sum(path.stat().st_size for path in Path(place).iterdir())
        said["restart"] = _timed(lambda: _opened(ledger))
        again = _opened(ledger)
        said["first after restart"] = _timed(lambda: again.frame["age"].mean().release(mu=0.1))
    return said


def _snapshot(asker: dpnb.Session, times: int = 20) -> float:
    """Median seconds of the panel's message after a release."""
    sent: list[dict[str, object]] = []
    panel = kernel_panel.Panel(lambda answer: sent.append)
    panel.install(kernel_panel.sessions, kernel_panel.log)
    found = []
    for number in range(times):
        asker.frame[asker.frame["age"] > 30 + number / 99].count().release(mu=0.1)
        found.append(_timed(panel.flush))
    if len(sent) <= times or asker.id not in str(sent[-1]):
        raise AssertionError("the panel sent no snapshot of the session")
    return statistics.median(found)


def _ends(kind: str, kinds: list[str], found: list[float]) -> tuple[float, float] | None:
    """Medians of the first and the last hundred of a kind."""
    of_kind = [seconds for seconds, one in zip(found, kinds, strict=True) if one == kind]
    if len(of_kind) < 2:
        return None
    half = min(100, len(of_kind) // 2)
    return statistics.median(of_kind[:half]), statistics.median(of_kind[-half:])


def _timed(work: Any) -> float:
    start = time.perf_counter()
    work()
    return time.perf_counter() - start
