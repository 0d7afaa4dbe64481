"""A session without a budget is marked in everything that is shown of it; the browser's tests read the same example."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pandas as pd
import pytest

import dpnb
from dpnb._browser.snapshot import SessionSnapshot
from dpnb._core import open_sessions
from dpnb._core.ledger_metadata import MOCK_DATA, NO_BUDGET
from dpnb.accounting.exact import display_up
from dpnb.accounting.odometers import MixtureOdometer
from dpnb.ledger import MEMORY
from dpnb.render.refusals import EXPLANATIONS
from dpnb.session import snapshot

FIXTURE = Path(__file__).parents[1] / "fixtures" / "no-budget.json"
PRIVATE = ("id", "log", "next_steps")
"""Fields of the example that differ from session to session."""


def made(**how: object) -> dpnb.Session:
    return dpnb.Session(
        pd.DataFrame({"x": [1.0, 2.0]}),
        name="small",
        schema={"x": dpnb.Bounded(0, 5)},
        ledger=MEMORY,
        **{"budget": None, **how},  # type: ignore[arg-type]
    )


@pytest.fixture
def session() -> dpnb.Session:
    session = made()
    session.frame.count().release(mu=0.5)
    session.frame.count().release(mu=3)
    return session


def test_example_of_the_browser_is_what_a_session_sends(session: dpnb.Session) -> None:
    example = msgspec.json.decode(FIXTURE.read_bytes(), type=SessionSnapshot)
    sent = msgspec.convert(
        json.loads(json.dumps(msgspec.to_builtins(snapshot.snapshot(session, compared=True)), allow_nan=False)),
        SessionSnapshot,
    )
    for field in SessionSnapshot.__struct_fields__:
        if field not in PRIVATE:
            assert getattr(example, field) == getattr(sent, field), field
    assert [one.cost for one in example.log] == [one.cost for one in sent.log]


def test_snapshot_is_marked_and_has_no_share_of_anything(session: dpnb.Session) -> None:
    shown = snapshot.snapshot(session)
    assert shown.notice == NO_BUDGET
    assert shown.notice_explanation in {one.id for one in EXPLANATIONS}
    assert [(gauge.kind, gauge.value) for gauge in shown.gauges] == [("no-budget", None), ("loss", None)]
    assert shown.filters == []
    assert {point.spent for point in shown.timeline.points} == {None}
    assert {entry.cost_fraction for entry in shown.log} == {None}
    assert "%" not in "".join([shown.spent, shown.spent_loss, *(line.text for line in shown.headlines)])


def test_loss_so_far_is_shown_rounded_up(session: dpnb.Session) -> None:
    odometer = session.odometer
    assert isinstance(odometer, MixtureOdometer)
    bound = display_up(odometer.bound)
    assert float(bound) >= odometer.bound > 3
    shown = snapshot.snapshot(session)
    assert [line.text for line in shown.headlines] == [f"loss so far at most {bound}", "mu 3 spent"]
    assert shown.gauges[1].text == f"loss so far at most {bound}"


@pytest.mark.parametrize(
    "show",
    [
        repr,
        str,
        lambda session: session._repr_html_(),
        lambda session: str(session.explain()),
        lambda session: str(session.frame.count().preview(mu=0.1)),
        lambda session: session.frame.count().preview(mu=0.1)._repr_html_(),
        lambda session: str(session.frame.count().preview()),
        lambda session: session.frame.count()._repr_html_(),
        lambda session: str(session.frame.count().release(mu=0.1)),
        lambda session: session.frame.count().release(mu=0.1)._repr_html_(),
        lambda session: str(session.schema),
        lambda session: str(session.delegate(mu=0.1, name="colleague")),
        lambda session: str(session.delegate(mu=0.1, name="colleague", dry_run=True)),
        lambda session: str(session.partition(session.frame["x"] > 1)[True]),
    ],
)
def test_everything_that_is_shown_says_that_there_is_no_budget(session: dpnb.Session, show: object) -> None:
    assert NO_BUDGET in show(session)  # type: ignore[operator]


def test_control_a_session_with_a_budget_says_nothing_of_it() -> None:
    assert "NO BUDGET" not in str(made(budget=dpnb.Budget(epsilon=1, delta=1e-6)))


def test_notice_of_a_rehearsal_stays_before_that_of_no_budget() -> None:
    mock = dpnb.Session.rehearse(name="small", budget=None, schema={"x": dpnb.Bounded(0, 5)})
    assert mock.notice == f"{MOCK_DATA}. {NO_BUDGET}"
    assert snapshot.snapshot(mock).notice_explanation == "rehearsal"
    assert made(not_private_test_seed=1).notice == f"NOT PRIVATE: seeded test noise. {NO_BUDGET}"


def test_no_odometer_is_compared_with_the_guarantee_of_a_filter(session: dpnb.Session) -> None:
    for shown in (str(session), session._repr_html_() or ""):
        assert "Odometers, time-uniform: valid at every moment; choose one in advance" in shown
        assert "under each filter" not in shown
        assert "guarantee; choose one" not in shown


def test_cost_of_a_cell_is_a_loss(monkeypatch: pytest.MonkeyPatch) -> None:

    monkeypatch.setattr(open_sessions, "_front_end", [lambda: "a-cell"])
    session = made()
    session.frame.count().release(mu=0.3)
    (cost,) = snapshot.snapshot(session).cell_costs
    assert cost.text == "mu 0.3, no budget"
