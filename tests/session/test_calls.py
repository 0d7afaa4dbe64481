"""The number of calls of dpnb's functions where an analyst waits: for the gauges after each cell, and for a preview.

Calls are counted, not seconds, which would measure the machine.  Comprehensions are not counted, since newer versions
of Python run them within their function.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.query.query import Query
from dpnb.session import snapshot

LIMITS = {
    "gauges": 313,
    "gauges after a release": 450,
    "preview": 1_541,
    "preview of another query": 1_767,
}
"""The largest numbers of calls.  They only fall: where a change needs fewer calls, the limit follows."""

SLACK = 0.9
"""Below this fraction of its limit a number of calls shows that the limit was not lowered."""

PACKAGE = str(Path(dpnb.__file__).parent)
COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>")
N_ROWS = 2_000


def calls(work: Callable[[], object]) -> int:
    """The number of calls of functions of dpnb."""
    count = 0

    def profile(frame: FrameType, event: str, argument: object) -> None:
        nonlocal count
        code = frame.f_code
        count += (
            event == "call" and code.co_filename.startswith(PACKAGE) and not code.co_name.startswith(COMPREHENSIONS)
        )

    gc.collect()
    gc.disable()  # the finalizers of what earlier tests have left
    before = sys.getprofile()
    sys.setprofile(profile)
    try:
        work()
    finally:
        sys.setprofile(before)
        gc.enable()
    return count


@pytest.fixture
def session(tmp_path: Path) -> dpnb.Session:
    """A session in which two queries were released."""
    rows = np.arange(N_ROWS)
    session = dpnb.Session(
        pd.DataFrame({"x": rows % 100 / 10, "g": np.array(["a", "b", "c"])[rows % 3]}),
        name="calls",
        budget=dpnb.Budget(epsilon=1, delta=1e-6),
        schema={"x": dpnb.Bounded(0, 10), "g": dpnb.Categories(["a", "b", "c"])},
        ledger=tmp_path / "calls.dpnb",
    )
    session.frame["x"].mean().release(mu=0.05)
    session.frame.groupby("g")["x"].sum().release(mu=0.05)
    return session


def means(session: dpnb.Session, above: float = 3) -> Query:
    frame = session.frame
    return frame[frame["x"] > above].groupby("g")["x"].mean()


def test_gauges_and_previews_need_few_calls(session: dpnb.Session) -> None:
    snapshot.snapshot(session)
    means(session).preview()
    found = {
        "gauges": calls(lambda: snapshot.snapshot(session)),
        "preview": calls(lambda: means(session).preview()),
        "preview of another query": calls(lambda: means(session, above=4).preview()),
    }
    session.frame["x"].sum().release(mu=0.05)
    found["gauges after a release"] = calls(lambda: snapshot.snapshot(session))
    needed = {name: f"{count} calls, of at most {LIMITS[name]}" for name, count in found.items()}
    assert all(SLACK * LIMITS[name] <= count <= LIMITS[name] for name, count in found.items()), needed


def test_calls_are_counted_in_dpnb_alone(session: dpnb.Session) -> None:
    query = means(session)
    assert calls(lambda: session.frame) > 0
    assert calls(lambda: query.description) > 0
    assert calls(lambda: pd.DataFrame({"x": [1]}).sum()) == 0
