"""What a release costs beside reading rows: accounting, the ledger on disk, noise; and whether that grows."""

from __future__ import annotations

import os
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from bench.measures.children import tell
from bench.measures.questions import released, session, warm
from bench.measures.tables import in_pandas, made
from dpnb._core.accountant.admission import admit
from dpnb.accounting.losses import GDP
from dpnb.ledger import MEMORY
from dpnb.mechanisms.gaussian import measure, sigma_for
from dpnb.mechanisms.randomness import SystemNoiseSource

TIMES = 300
CELLS = 1_000_000


def each(work: Callable[[int], object], times: int = TIMES) -> list[float]:
    """Seconds of each of several calls, which are told their number."""
    found = []
    for number in range(times):
        start = time.perf_counter()
        work(number)
        found.append(time.perf_counter() - start)
    return found


def costs(folder: str | None = None) -> dict[str, Any]:
    """Median seconds of the parts of a release, on a table of 1,000 rows."""
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(dir=folder) as made_here:
        place = Path(made_here)
        warm(place, person=False)
        small = in_pandas(made(1000))
        on_disk = session(small, place / "disk", person=False)
        in_memory = session(small, MEMORY, person=False)
        for name, asker in (("ledger on disk", on_disk), ("ledger in memory", in_memory)):
            found[f"release, {name}"] = statistics.median(
                each(lambda i, asker=asker: released("mean", asker.frame, i / 10))  # type: ignore[misc]
            )
        for name, asker in (("disk", on_disk), ("memory", in_memory)):
            found[f"charge, {name}"], found[f"answer, {name}"] = _written(asker)
        found["accounting"] = statistics.median(each(_accounted(on_disk)))
        with (place / "bare").open("wb") as file:
            found["bare fsync"] = statistics.median(each(lambda _: _synced(file)))
        sums = np.random.default_rng(0).integers(0, 10**9, CELLS)
        noise = each(lambda _: measure(sums, sigma=12345.678, source=SystemNoiseSource()), 7)
        found["noise"] = statistics.median(noise)
        tell(found)
        found |= _late(place)
    return found


def _loss(number: int) -> GDP:
    return GDP(Fraction(1, 10) + Fraction(number, 10**9))  # none like another: nothing is remembered


def _written(asker: Any) -> tuple[float, float]:
    """Seconds of a charge with its row, and of its answer's."""
    charges: list[Any] = []
    answer = measure([1, 2], sigma=10.0, source=SystemNoiseSource())
    charged = statistics.median(each(lambda i: charges.append(_charged(asker, i))))
    return charged, statistics.median(
        each(lambda i: asker.ledger.answer(replace(charges[i], status="released", measurement=answer)))
    )


def _charged(asker: Any, number: int) -> Any:
    """What a session does between the question and the rows: find, admit, write, count."""
    account, loss = asker._core.account, _loss(number)
    with account.ledger.transaction():
        account.ledger.by_key(account.root_node, "other", f"key {number}")
        admit(account, "a question", loss, GDP(0))
        row = {"request_key": f"charge {number}", "table_version": "other", "query_key": f"query {number}"}
        charge = account.ledger.reserve(**row, request="x" * 300, loss=loss, total_loss=loss, sigma=10.0, tau=1.0)
    account.sync()
    return charge


def _accounted(asker: Any) -> Callable[[int], object]:
    """A step of filter and odometer, and the noise scale, without any ledger."""
    state = [asker._core.account.filter, asker._core.account.odometer]

    def step(number: int) -> None:
        loss = _loss(number)
        state[0].admits(loss)
        state[:] = [state[0].step(loss), state[1].step(loss)]
        sigma_for(Fraction(10**6), loss)
        _ = state[0].headroom

    return step


def _synced(file: Any) -> None:
    file.write(b"x" * 1000)
    file.flush()
    os.fsync(file.fileno())


def _late(place: Path, questions: int = 10_000, around: int = 100) -> dict[str, float]:
    """The last of many releases beside the first, and what replaying them takes."""
    asker = session(in_pandas(made(1000)), place / "late", person=False)
    frame = asker.frame
    found = each(lambda i: released("mean", frame, 100 * i / questions), questions)
    return {
        "first releases": statistics.median(found[:around]),
        "late releases": statistics.median(found[-around:]),
        "late number": questions,
    }
