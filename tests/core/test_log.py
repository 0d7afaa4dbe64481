"""The log: every request in words, with its cost, its error and the cell that asked; and what was refused."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import dpnb
from dpnb._compile import sensitivity as compiling
from dpnb._core import open_sessions
from dpnb._plan.expressions import dtypes, rules
from dpnb._request import Release
from dpnb.curator.audit import audit
from dpnb.errors import BudgetExceeded
from dpnb.ledger.origin import RequestOrigin, requested_by
from dpnb.render.numbers import describe_error
from dpnb.session import snapshot

TABLE = pd.DataFrame({"x": [1.0, 2.0, 3.0] * 200, "g": ["a", "b", "c"] * 200})
SCHEMA = {"x": dpnb.Bounded(0, 5), "g": dpnb.Categories(["a", "b", "c"])}

Made = Callable[[], dpnb.Session]


@pytest.fixture
def made(tmp_path: Path) -> Made:
    return lambda: dpnb.Session(
        TABLE, name="small", budget=dpnb.Budget.gdp(1), schema=SCHEMA, ledger=tmp_path / "small.dpnb"
    )


@pytest.fixture
def cell(monkeypatch: pytest.MonkeyPatch) -> Callable[[str | None], None]:
    """Says from which notebook cell the following requests come."""
    asking: list[str | None] = [None]
    monkeypatch.setattr(open_sessions, "_front_end", [lambda: asking[0]])
    return lambda name: asking.__setitem__(0, name)


def cells(session: dpnb.Session) -> dict[str, str]:
    return {one.cell_id: one.text for one in snapshot.snapshot(session).cell_costs}


def test_log_has_a_row_for_each_request_with_what_was_charged(made: Made) -> None:
    session = made()
    session.frame["x"].sum().release(mu=0.3)
    session.frame["x"].sum().release(mu=0.5)
    session.frame["x"].sum().release(mu=0.4)
    log = session.log
    assert list(log["query"]) == ["sum of x"] * 3
    assert list(log["mu"]) == pytest.approx([0.3, 0.4, 0.0])
    assert log["cost_fraction"].sum() == pytest.approx(1 - session.headroom)
    assert list(log["status"]) == ["released"] * 3


def test_error_in_the_log_is_the_answers_own(made: Made) -> None:
    session = made()
    answer = session.frame["x"].sum().release(mu=0.3)
    low, high = answer.interval
    assert session.log["error"][1] == f"± {math.ceil((high - low) / 2)} at 95% (noise)"
    session.frame["x"].mean().release(mu=0.01)
    assert made().log["error"].tolist() == session.log["error"].tolist(), "another kernel reads the same"


def test_log_says_nothing_of_an_error_where_there_is_no_answer(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    session = made()
    monkeypatch.setattr(session._core.executor.kinds[Release], "measured", lambda *_: 1 / 0)
    with pytest.raises(dpnb.errors.ExecutionError):
        session.frame.count().release(mu=0.3)
    monkeypatch.undo()
    row = session.log.loc[1]
    assert (row["status"], row["error"], row["mu"]) == ("failed", None, 0.3)
    session.frame.count().release(mu=0.3)
    assert session.log.loc[1, "error"].startswith("± ")


def test_cell_that_asked_is_remembered_by_the_ledger(made: Made, cell: Callable) -> None:
    session = made()
    cell("first")
    session.frame.count().release(mu=0.3)
    session.ledger.close()
    cell(None)
    again = made()
    assert list(again.log["cell_id"]) == ["first"]
    assert cells(again) == {"first": "9.0% of the budget"}


def test_cell_that_asks_again_takes_a_request_over(made: Made, cell: Callable) -> None:
    session = made()
    cell("first")
    session.frame.count().release(mu=0.3)
    session.frame["x"].sum().release(mu=0.4)
    cell("second")
    session.frame.count().release(mu=0.3)
    assert list(session.log["cell_id"]) == ["second", "first"]
    assert cells(session) == {"second": "9.0% of the budget", "first": "16.0% of the budget"}
    session.frame["x"].sum().release(mu=0.4)
    assert cells(session) == {"second": "25.0% of the budget"}, "nothing is left of the first cell"


def test_costs_of_cells_make_up_what_was_spent(made: Made, cell: Callable) -> None:
    session = made()
    for number in range(6):
        cell(f"cell {number % 3}")
        session.frame[session.frame["x"] > number / 2].count().release(mu=0.1)
    costs = session._core.log.cells().values()
    assert sum(cost.loss.mu_squared for cost in costs) == session.spent.mu_squared
    assert sum(cost.cost_fraction for cost in costs) == pytest.approx(1 - session.headroom)


def test_description_of_a_cell_names_its_questions_and_its_share(made: Made, cell: Callable) -> None:
    session = made()
    cell("one")
    session.frame["x"].sum().release(mu=0.3)
    (told,) = snapshot.snapshot(session).cell_costs
    assert told.description == "The queries of this cell cost 9.0% of the budget of small (mu 0.3): sum of x."


def test_refusal_is_remembered_with_its_reason_and_its_cell_and_costs_nothing(made: Made, cell: Callable) -> None:
    session = made()
    cell("greedy")
    with pytest.raises(BudgetExceeded) as refused:
        session.frame["x"].sum().release(mu=3)
    with pytest.raises(dpnb.errors.RequestError):
        session.frame["x"].sum().release()
    second, first = snapshot.snapshot(session).refusals
    assert (first.query, first.cell_id) == ("sum of x", "greedy")
    assert str(refused.value) == f"sum of x: {first.message}"
    assert (first.explanation, second.explanation) == ("budget-exceeded", "request")
    assert session.headroom == 1
    assert len(session.log) == 0


def test_failure_after_the_charge_is_no_refusal(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    session = made()
    monkeypatch.setattr(session._core.executor.kinds[Release], "measured", lambda *_: 1 / 0)
    with pytest.raises(dpnb.errors.ExecutionError):
        session.frame.count().release(mu=0.3)
    assert snapshot.snapshot(session).refusals == []


def test_log_of_a_session_without_requests_is_empty_and_has_its_columns(made: Made) -> None:
    log = made().log
    assert len(log) == 0
    assert list(log.columns) == [
        *("query", "estimate", "error", "cost_fraction", "status", "time", "mu", "delta", "cell_id")
    ]


def test_whole_log_is_read_in_parts(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpnb._core.history.log.ROWS_PER_QUERY", 2)
    session = made()
    for number in range(5):
        session.frame[session.frame["x"] > number / 2].count().release(mu=0.01)
    assert list(made().log.index) == [1, 2, 3, 4, 5]


def test_every_error_in_the_log_is_that_of_the_answer(tmp_path: Path) -> None:
    session = dpnb.Session(
        TABLE,
        name="small",
        budget=dpnb.Budget(epsilon=50, delta=1e-6),
        schema=SCHEMA,
        ledger=tmp_path / "small.dpnb",
    )
    frame = session.frame
    for number in range(4):
        some = frame[frame["x"] > number / 2]
        for query in (
            some.count(),
            some["x"].sum(),
            some["x"].mean(),
            some["x"].quantile([0.25, 0.75]),
            some.groupby("g")["x"].mean(),
            some.groupby("g").count(),
        ):
            answer = query.release(mu="0.1", simultaneous=number == 1, confidence=0.9 if number == 2 else 0.95)
            if number == 3:
                answer.refine(mu="0.3")
    frame["x"].sum().release(mu="0.2", final=True)
    by_group = frame.groupby("g")["x"].sum().release(mu="0.1")
    by_group.refine(mu="0.2", groups=["a"])
    by_group.proportions()
    releases = session._core.releases
    expected = []
    for charge in session.ledger.charges():
        answer = releases.answer_of(charge)
        expected.append(describe_error(answer.arrays.half_width, answer.outputs, answer.confidence))
    assert len(expected) > 30
    assert session.log["error"].tolist() == expected


def test_a_question_that_is_refused_by_now_stays_in_the_log(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one that an earlier version answered, before the sizes of numbers were limited."""
    with monkeypatch.context() as earlier:
        for module in (dtypes, rules):
            earlier.setattr(module, "has_allowed_magnitude", lambda number: True)
        earlier.setattr(compiling, "refuse_unsound", lambda *_: None)
        (made().frame["x"] * 1e150).sum().release(mu=0.3)
    session = made()
    assert list(session.log["query"]) == ["sum of x * 1e+150"]
    assert session.log["error"][1].startswith("± "), "its words are stored"
    assert audit(session.ledger.path).is_fine
    assert snapshot.snapshot(session)


# --- estimates --------------------------------------------------------------------------------------------------------


def test_estimate_in_the_log_is_the_released_answer(made: Made) -> None:
    session = made()
    frame = session.frame
    for query in (
        frame.count(),
        frame["x"].sum(),
        frame["x"].mean(),
        frame[frame["x"] > 1]["x"].sum(),
        frame[frame["g"] == "a"]["x"].mean(),
        (frame["x"] * 2).sum(),
        frame["x"].var(),
    ):
        answer = query.release(mu=0.05)
        [entry] = session._core.log.latest(1)
        assert entry.answer is not None
        assert (entry.answer.value, entry.answer.low, entry.answer.high) == (answer.estimate, *answer.interval)
        assert session.log["estimate"].iloc[-1] == entry.answer.text
    assert made().log["estimate"].tolist() == session.log["estimate"].tolist(), "another kernel reads the same"


def test_estimate_of_a_request_is_not_that_of_its_refinement(made: Made) -> None:
    session = made()
    first = session.frame["x"].sum().release(mu=0.1)
    second = first.refine(mu=0.5)
    log = session._core.log
    assert [one.answer.value for one in reversed(log.latest(2)) if one.answer] == [first.estimate, second.estimate]


def test_estimates_of_groups_are_counted(made: Made) -> None:
    session = made()
    session.frame.groupby("g")["x"].sum().release(mu=0.1)
    session.frame.groupby("g")["x"].quantile([0.25, 0.5]).release(mu=0.1)
    session.frame["x"].quantile([0.25, 0.5]).release(mu=0.1)
    assert session.log["estimate"].tolist() == ["3 groups", "3 groups, 2 values each", "2 values"]


def test_request_without_an_answer_has_no_estimate(made: Made, monkeypatch: pytest.MonkeyPatch) -> None:
    session = made()
    monkeypatch.setattr(session._core.executor.kinds[Release], "measured", lambda *_: 1 / 0)
    with pytest.raises(dpnb.errors.ExecutionError):
        session.frame.count().release(mu=0.3)
    monkeypatch.undo()
    [row] = snapshot.snapshot(session).log
    assert (row.estimate, row.value, row.low, row.high) == (None, None, None, None)
    answer = session.frame.count().release(mu=0.3)
    [row] = snapshot.snapshot(session).log
    assert row.value == answer.estimate


def test_launch_has_no_estimate(made: Made) -> None:
    session = made()
    session.delegate(mu=0.1, name="colleague")
    assert session.log["estimate"].tolist() == [None]
    assert session.log["cost_fraction"].iloc[0] > 0


def test_log_names_the_analysts_of_a_service_and_is_otherwise_without_them(made: Made) -> None:
    session = made()
    assert "analyst" not in session.log
    for name in ("ana", "bob"):
        with requested_by(RequestOrigin(name)):
            session.frame[session.frame["g"] == name[0]].count().release(mu=0.1)
    session.frame.count().release(mu=0.1)
    assert session.log["analyst"].fillna("").tolist() == ["ana", "bob", ""]
