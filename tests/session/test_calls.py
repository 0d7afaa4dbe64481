"""The number of calls of dpnb's functions where an analyst waits: for gauges after each cell, a preview, a release.

Of a release also the number of modules that it passes, here and, through a service, on both sides together.

Calls are counted, not seconds, which would measure the machine.  Comprehensions are not counted, since newer versions
of Python run them within their function.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import FrameType

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._backends.memory import blocks
from dpnb.query.query import Query
from dpnb.service.access.tokens import new_token
from dpnb.service.configuration.parts import DivisionSettings
from dpnb.session import snapshot
from dpnb.session.base import BaseSession
from service.running import running

MODULES, MODULES_WITH_A_SERVICE = 68, 103
"""The largest numbers of modules that a release passes; they only fall, too."""

LIMITS = {
    "release": 500,
    "gauges": 300,
    "gauges after a release": 445,
    "preview": 1_510,
    "preview of another query": 1_680,
}
"""The largest numbers of calls.  They only fall: where a change needs fewer calls, the limit follows."""

SLACK = 0.9
"""Below this fraction of its limit a number of calls shows that the limit was not lowered."""

PACKAGE = str(Path(dpnb.__file__).parent)
COMPREHENSIONS = ("<listcomp>", "<dictcomp>", "<setcomp>")
N_ROWS = 2_000


@contextmanager
def passed() -> Iterator[Counter[str]]:
    """The calls of functions of dpnb in the block, by module, in this thread and in those that it starts."""
    modules = Counter[str]()

    def profile(frame: FrameType, event: str, argument: object) -> None:
        code = frame.f_code
        if (
            event == "call"
            and code.co_filename.startswith(PACKAGE)
            and not code.co_name.startswith(COMPREHENSIONS)
            and is_counting
        ):
            modules[code.co_filename] += 1

    gc.collect()
    gc.disable()  # the finalizers of what earlier tests have left
    before, is_counting = sys.getprofile(), True
    threading.setprofile(profile)
    sys.setprofile(profile)
    try:
        yield modules
    finally:
        is_counting = False
        sys.setprofile(before)
        threading.setprofile(None)  # type: ignore[arg-type]
        gc.enable()


def calls(work: Callable[[], object]) -> int:
    """The number of calls of functions of dpnb."""
    with passed() as modules:
        work()
    return modules.total()


@pytest.fixture
def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dpnb.Session:
    """A session in which two queries were released; rows are read by two threads, as on two cores."""
    monkeypatch.setattr(blocks, "cores", lambda: 2)
    rows = np.arange(N_ROWS)
    session = dpnb.Session(
        pd.DataFrame({"x": rows % 100 / 10, "g": np.array(["a", "b", "c"])[rows % 3]}),
        name="people",
        budget=dpnb.Budget(epsilon=1, delta=1e-6),
        schema={"x": dpnb.Bounded(0, 10), "g": dpnb.Categories(["a", "b", "c"])},
        ledger=tmp_path / "calls.dpnb",
    )
    session.frame["x"].mean().release(mu=0.05)
    session.frame.groupby("g")["x"].sum().release(mu=0.05)
    return session


def means(session: BaseSession, above: float = 3) -> Query:
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
    query = means(session)
    with passed() as modules:
        query.release(mu=0.05)
    found["release"] = modules.total()
    needed = {name: f"{count} calls, of at most {LIMITS[name]}" for name, count in found.items()}
    assert all(SLACK * LIMITS[name] <= count <= LIMITS[name] for name, count in found.items()), needed


def test_a_release_passes_few_modules(session: dpnb.Session) -> None:
    query = means(session)
    query.preview()
    with passed() as modules:
        query.release(mu=0.05)
    assert len(modules) <= MODULES, sorted(modules)


def test_a_release_through_a_service_passes_few_modules(session: dpnb.Session, tmp_path: Path) -> None:
    with passed() as modules, running(tmp_path, session, DivisionSettings()) as (address, _):
        token = new_token(tmp_path / "tokens.json", "ana", role="analyst")
        with closing(dpnb.connect(address, "people", token=token)) as analyst:
            means(analyst, above=4).release(mu=0.05)
            query = means(analyst)
            modules.clear()
            query.release(mu=0.05)
            found = sorted(modules)
    assert len(found) <= MODULES_WITH_A_SERVICE, found


def test_calls_are_counted_in_dpnb_alone(session: dpnb.Session) -> None:
    query = means(session)
    assert calls(lambda: session.frame) > 0
    assert calls(lambda: query.description) > 0
    assert calls(lambda: pd.DataFrame({"x": [1]}).sum()) == 0
