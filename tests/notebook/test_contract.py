"""A real session and the shared example both follow the protocol, and the browser's half of it is up to date."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args, get_type_hints

import msgspec
import pandas as pd
import pytest

import dpnb
from dpnb._browser.messages import VERSION as PICKER_VERSION
from dpnb._browser.messages import LogChunk, PickerState
from dpnb._browser.snapshot import VERSION, ExplanationText, SessionSnapshot, Snapshot
from dpnb._core import open_sessions
from dpnb.notebook.panel import EXPLAINED
from dpnb.render.refusals import EXPLANATIONS
from dpnb.session import snapshot

FIXTURE = Path(__file__).parents[1] / "fixtures" / "snapshot.json"
LISTS = ("gauges", "filters", "odometers", "log", "headlines", "cell_costs", "refusals", "mechanisms")


@pytest.fixture(scope="module")
def example() -> Snapshot:
    """The snapshot that the tests of both halves read; unknown and missing fields are errors."""
    return msgspec.json.decode(FIXTURE.read_bytes(), type=Snapshot)


@pytest.fixture
def shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SessionSnapshot:
    """The state of a session after a release, a refusal and launches."""
    monkeypatch.setattr(open_sessions, "_front_end", [lambda: "a-cell"])
    session = made(tmp_path)
    session.frame.count().release(mu=0.05)
    with pytest.raises(dpnb.errors.BudgetExceeded):
        session.frame.count().release(mu=50)
    session.delegate(mu=0.01, name="colleague")
    session.partition(session.frame["x"] > 1)[True].frame.count().release(mu=0.01)
    return snapshot.snapshot(session, compared=True)


def made(folder: Path, **how: str) -> dpnb.Session:
    return dpnb.Session(
        pd.DataFrame({"x": [1.0, 2.0]}),
        name="small",
        budget=dpnb.Budget(epsilon=1, delta=1e-6),
        schema={"x": dpnb.Bounded(0, 5)},
        ledger=folder / "small.dpnb",
        **how,
    )


def sent(session: SessionSnapshot) -> SessionSnapshot:
    """After the way to the browser and back: as JSON, which knows no infinity, with every type and range checked."""
    built = json.loads(json.dumps(msgspec.to_builtins(session), allow_nan=False))
    return msgspec.convert(built, SessionSnapshot)


def test_session_follows_the_protocol(shown: SessionSnapshot) -> None:
    assert sent(shown) == shown
    assert all(getattr(shown, part) for part in LISTS)
    assert shown.participation is None
    assert any(part for one in shown.mechanisms for part in one.parts)


def test_session_says_who_takes_part_where_each_unit_has_a_budget_of_its_own(tmp_path: Path) -> None:
    session = made(tmp_path, accounting="individual")
    session.frame.count().release(mu=0.05)
    shown = snapshot.snapshot(session)
    assert sent(shown) == shown
    assert shown.participation is not None
    assert shown.participation.startswith(
        "Every unit certainly took part so far, and takes part in 21 more queries like"
    )
    session.frame.count().release(mu=1)
    assert "Every unit certainly took part up to request 1. " in (snapshot.snapshot(session).participation or "")


def test_example_has_something_of_everything(example: Snapshot) -> None:
    session = example.sessions[0]
    assert all(getattr(session, part) for part in LISTS)
    assert any(part for one in session.mechanisms for part in one.parts)
    assert session.odometers_paused
    assert session.participation
    assert example.sessions[1].next_steps


def test_every_point_of_the_timeline_has_a_bound_for_each_curve(shown: SessionSnapshot, example: Snapshot) -> None:
    for session in (shown, *example.sessions):
        assert {len(point.bounds) for point in session.timeline.points} == {len(session.timeline.curves)}


def test_next_steps_are_shown_until_something_was_asked(shown: SessionSnapshot, tmp_path: Path) -> None:
    (tmp_path / "fresh").mkdir()
    assert snapshot.snapshot(made(tmp_path / "fresh")).next_steps
    assert shown.next_steps == []


def test_every_explanation_that_is_named_is_there(shown: SessionSnapshot) -> None:
    known = {explanation.id for explanation in EXPLANATIONS}
    assert {refusal.explanation for refusal in shown.refusals} <= known
    assert {"rehearsal", "not-private", "unknown", "outside"} <= known
    assert {explained.id for explained in EXPLAINED} == known
    assert all(isinstance(explained, ExplanationText) for explained in EXPLAINED)


@pytest.mark.parametrize("part", ["gauges", "odometers"])
def test_kinds_that_the_browser_knows_are_the_ones_that_are_used(
    shown: SessionSnapshot, example: Snapshot, part: str
) -> None:
    assert {one.kind for one in getattr(shown, part)} == {one.kind for one in getattr(example.sessions[0], part)}


@pytest.mark.parametrize("part", [part for part in LISTS if part != "cell_costs"])
def test_names_are_unique_within_a_list(shown: SessionSnapshot, part: str) -> None:
    names = [one.id for one in getattr(shown, part)]
    assert len(set(names)) == len(names)


def test_one_filter_is_enforced_and_comes_first(shown: SessionSnapshot) -> None:
    assert [one.enforced for one in shown.filters] == [True] + [False] * (len(shown.filters) - 1)
    assert shown.filters[0].id == shown.filter


@pytest.mark.parametrize(
    ("struct", "version"), [(Snapshot, VERSION), (LogChunk, VERSION), (PickerState, PICKER_VERSION)]
)
def test_version_has_one_number(struct: type, version: int) -> None:
    assert get_args(get_type_hints(struct)["version"]) == (version,)
