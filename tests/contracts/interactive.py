"""What every interactive mechanism must do; a mechanism's tests inherit this."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._backends import MemoryBackend
from dpnb._backends.memory.prepare.prepared_table import PreparedTable
from dpnb.errors import BudgetExceeded, MechanismClosed, RequestError
from dpnb.interactive import InteractiveMechanism
from dpnb.interactive import scan as threshold_scan
from dpnb.interactive.above_threshold import LaplaceAboveThreshold
from dpnb.interactive.gaussian_scan import GaussianAboveThreshold
from dpnb.ledger import Ledger
from dpnb.session import snapshot

SECRETS = (PreparedTable, pd.DataFrame, np.ndarray, LaplaceAboveThreshold, GaussianAboveThreshold)
"""What must not be reachable without an underscore: rows, and hidden noise."""


class InteractiveContract(ABC):
    """Subclass it, and say how one is launched, how the same name is misused, and how it is asked."""

    kind: str
    at_launch: bool

    @abstractmethod
    def launch(self, session: dpnb.Session) -> Any:
        """A mechanism called ``"it"``; the same every time."""

    @abstractmethod
    def launch_otherwise(self, session: dpnb.Session) -> Any:
        """Another one of the same name."""

    @abstractmethod
    def launch_too_much(self, session: dpnb.Session) -> Any:
        """One that costs, at launch or when asked, more than there is."""

    @abstractmethod
    def ask(self, session: dpnb.Session, it: Any, number: int = 0) -> Any:
        """A question of it, other ones for other numbers; the answer as a value that can be compared."""

    @pytest.fixture
    def session(self, tmp_path: Path) -> dpnb.Session:
        return opened(tmp_path)

    def test_has_a_name_a_kind_a_way_of_being_charged_and_a_state(self, session: dpnb.Session) -> None:
        it = self.launch(session)
        assert isinstance(it, InteractiveMechanism)
        assert (it.name.endswith("it"), it.kind, it.state) == (True, self.kind, "open")
        assert it.charged == ("at launch" if self.at_launch else "step by step")

    def test_is_charged_when_it_says(self, session: dpnb.Session) -> None:
        it = self.launch(session)
        launched = session.spent
        assert bool(launched) is self.at_launch
        assert bool(it.cost) is self.at_launch
        self.ask(session, it)
        assert (session.spent == launched) is self.at_launch
        assert it.cost

    def test_is_in_the_ledger_before_a_row_is_read(
        self, session: dpnb.Session, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        seen = []
        read = MemoryBackend.rows

        def watched(tables: MemoryBackend, source: Any) -> PreparedTable:
            other = Ledger(session.ledger.path, session.ledger.metadata)
            seen.append(any(charge.loss for charge in other.charges()))
            other.close()
            return read(tables, source)

        monkeypatch.setattr(MemoryBackend, "rows", watched)
        self.ask(session, self.launch(session))
        assert seen
        assert all(seen)

    def test_shows_in_the_gauges_and_in_the_log(self, session: dpnb.Session) -> None:
        it = self.launch(session)
        (told,) = snapshot.snapshot(session).mechanisms
        assert (told.name, told.kind, told.state) == ("it", self.kind, "open")
        assert told.description.strip()
        assert session.log["query"].iloc[0].partition(":")[0] == f"launch of the {self.kind} 'it'"
        assert f"{self.kind} it" in repr(session.explain())
        before = told.text
        self.ask(session, it)
        (told,) = snapshot.snapshot(session).mechanisms
        assert told.text != before
        json.dumps(msgspec.to_builtins(told), allow_nan=False)

    def test_is_found_again_under_its_name(self, session: dpnb.Session, tmp_path: Path) -> None:
        it = self.launch(session)
        answer, spent, rows = self.ask(session, it), session.spent, session.ledger.count
        for again in (session, opened(tmp_path)):
            other = self.launch(again)
            assert again.mechanisms["it"] is other
            assert self.ask(again, other) == answer
            assert (again.spent, again.ledger.count) == (spent, rows)

    def test_gives_its_answers_free_in_a_later_kernel(
        self, session: dpnb.Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        it = self.launch(session)
        answer, spent, rows = self.ask(session, it), session.spent, session.ledger.count
        monkeypatch.setattr(threshold_scan, "_hidden", {})  # as in a process that never drew any
        later = opened(tmp_path)
        assert self.ask(later, self.launch(later)) == answer
        assert (later.spent, later.ledger.count) == (spent, rows)

    def test_name_is_good_for_one_launch(self, session: dpnb.Session) -> None:
        self.launch(session)
        rows = session.ledger.count
        with pytest.raises(RequestError, match="identified by its name"):
            self.launch_otherwise(session)
        assert session.ledger.count == rows

    def test_what_does_not_fit_is_refused_and_costs_nothing(self, session: dpnb.Session) -> None:
        with pytest.raises(BudgetExceeded, match="nothing was charged"):
            self.ask(session, self.launch_too_much(session))
        assert not session.spent
        assert not any(charge.loss for charge in session.ledger.charges())
        assert self.ask(session, self.launch(session)) is not None  # the session goes on

    def test_closed_it_answers_nothing_new_in_any_kernel(self, session: dpnb.Session, tmp_path: Path) -> None:
        other = opened(tmp_path)
        it, twin = self.launch(session), self.launch(other)
        answer = self.ask(session, it)
        it.close()
        it.close()  # once more changes nothing
        spent = session.spent
        for where, closed in ((session, it), (other, twin)):
            assert closed.state == "closed"
            assert self.ask(where, closed) == answer
            with pytest.raises(MechanismClosed, match="closed; nothing was charged; recorded answers stay free"):
                self.ask(where, closed, 1)
            assert where.spent == spent

    def test_time_uniform_odometers_can_be_read_while_it_is_open(self, session: dpnb.Session) -> None:
        session.frame.count().release(mu=0.01)
        before = session.odometer.bound
        it = self.launch(session)
        for _ in range(2):
            told = snapshot.snapshot(session)
            assert session.odometer.kind == "time-uniform"
            assert told.odometers_paused is None
            assert [gauge.id for gauge in told.gauges] == ["headroom", "mixture"]
            assert told.timeline.points[-1].bounds[0] == session.odometer.bound
            self.ask(session, it)
        reading = session.odometer.bound
        assert reading > before
        it.close()
        assert session.odometer.bound == reading

    @pytest.mark.parametrize("filter_", ["zcdp", "rdp", "approx-dp"])
    def test_runs_with_a_delta_set_aside_for_discoveries(self, tmp_path: Path, filter_: str) -> None:
        session = opened(tmp_path, budget=dpnb.Budget(8, 1e-6, 1e-8), filter=filter_)
        it = self.launch(session)
        self.ask(session, it)
        assert 0 < session.headroom < 1

    @pytest.mark.parametrize("filter_", ["gdp", "zcdp", "rdp", "approx-dp", "basic"])
    def test_runs_under_every_filter_for_which_it_is_proved(self, tmp_path: Path, filter_: str) -> None:
        session = opened(tmp_path, budget=dpnb.Budget(8, 1e-6), filter=filter_)
        it = self.launch(session)
        assert self.ask(session, it) == self.ask(session, it)
        assert 0 < session.headroom < 1
        it.close()

    def test_hides_its_state(self, session: dpnb.Session) -> None:
        it = self.launch(session)
        self.ask(session, it)
        assert not list(secrets_in(it, depth=3))

    def test_says_the_same_whatever_is_in_the_table(self, tmp_path: Path) -> None:
        words = []
        for number, table in enumerate((TABLE, TABLE.iloc[:0])):
            (tmp_path / str(number)).mkdir()
            session = opened(tmp_path / str(number), table)
            it = self.launch(session)
            words.append((repr(it), snapshot.snapshot(session).mechanisms, len(session.log)))
        assert words[0] == words[1]


TABLE = pd.DataFrame({"site": ["a", "b", "c", "c"] * 50, "x": [1.0, 2.0, 3.0, 4.0] * 50})


def opened(folder: Path, table: pd.DataFrame = TABLE, **arguments: Any) -> dpnb.Session:
    """A session on a ledger in that folder."""
    given = {"budget": dpnb.Budget.gdp(1), **arguments}
    schema = {"site": dpnb.Categories(["a", "b", "c"]), "x": dpnb.Bounded(0, 5)}
    return dpnb.Session(table, name="clinic", schema=schema, ledger=folder / "clinic.dpnb", **given)


def secrets_in(thing: object, depth: int) -> list[str]:
    """Public attributes, and theirs, that hold what nobody may see."""
    found = []
    for name in dir(thing):
        if name.startswith("_") or name in ("frame", "plot", "history", "estimate", "interval", "noise_scale"):
            continue  # `frame` is the way to ask; the others are of released answers
        if name in ("log", "budget_requests"):
            continue  # tables of the ledger
        try:
            value = getattr(thing, name)
        except Exception:  # noqa: BLE001  (a property that refuses shows nothing)
            continue
        if isinstance(value, SECRETS):
            found.append(name)
        elif depth and not callable(value) and type(value).__module__.startswith("dpnb.session"):
            found += [f"{name}.{inner}" for inner in secrets_in(value, depth - 1)]
    return found
