"""An unknown expected error becomes a step: the release of the count on which it depends."""

from __future__ import annotations

from html import escape
from pathlib import Path

import msgspec
import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._request import Release
from dpnb.notebook.picker import Picker
from dpnb.query.query import Query
from dpnb.render.numbers import format_percent_up
from dpnb.results.preview import Preview

N = 4000
TABLE = pd.DataFrame({"x": np.tile([1.0, 2.0, 3.0, 4.0], N), "g": ["a", "b", "c", "d"] * N, "y": 1})
SCHEMA = {"x": dpnb.Bounded(0, 5), "g": dpnb.Categories(["a", "b", "c", "d"]), "y": dpnb.Bounded(0, 2)}


@pytest.fixture
def session(tmp_path: Path) -> dpnb.Session:
    return opened(tmp_path)


def opened(folder: Path, table: pd.DataFrame = TABLE, **arguments: object) -> dpnb.Session:
    return dpnb.Session(
        table,
        name="s",
        schema=SCHEMA,
        ledger=folder / "s.dpnb",
        budget=dpnb.Budget(epsilon=2, delta=1e-6),
        **arguments,
    )


def queries(session: dpnb.Session) -> dict[str, Query]:
    frame = session.frame
    return {
        "mean": frame["x"].mean(),
        "group means": frame.groupby("g")["x"].mean(),
        "filtered group means": frame[frame["y"] > 0].groupby("g")["x"].mean(),
        "share": (frame["x"] > 2).mean() if hasattr(frame["x"] > 2, "mean") else frame["x"].mean(),
        "variance": frame["x"].var(),
        "shares": frame["g"].value_counts(normalize=True),
    }


NAMES = ("mean", "group means", "filtered group means", "share", "variance", "shares")


def ask(picker: Picker, method: str = "release_count", *, done: str = "1", confirmed: bool = False) -> dict:
    target = picker.state["count_step"]["target"]
    picker._on_message(picker, {"method": method, "target": target, "id": done, "confirmed": confirmed}, None)
    return picker.state


def preview(query: Query) -> Preview:
    made = query.preview(mu=0.05)
    assert isinstance(made, Preview)
    return made


@pytest.mark.parametrize("name", NAMES)
def test_step_charges_its_preview_and_makes_the_errors_known(session: dpnb.Session, name: str) -> None:
    query = queries(session)[name]
    assert preview(query).half_widths is None
    picker = Picker(query)
    assert picker.state["options"] == [], "nothing is sold blindly"
    step = picker.state["count_step"]
    count = query.count_needed
    assert count is not None
    previewed = count.preview(mu=float(step["target"]["mu"]))
    assert isinstance(previewed, Preview)
    assert format_percent_up(previewed.cost_fraction) in step["label"]
    assert 0.008 < previewed.cost_fraction <= 0.01
    told = ask(picker)
    assert session.headroom == previewed.headroom_after
    assert list(session.log["query"]) == [count.description]
    assert (told["completed_request"], told["count_step"]) == ("1", None)
    assert escape(count.description) in told["count_answer"]["html"]
    assert "unknown" not in {option["error"] for option in told["options"]}
    assert preview(query).half_widths is not None


@pytest.mark.parametrize("name", NAMES)
def test_code_of_a_preview_makes_the_same_count_and_the_error_known(session: dpnb.Session, name: str) -> None:
    query = queries(session)[name]
    needed = preview(query).count_needed
    assert needed is not None
    assert needed.code is not None
    for text in (repr(preview(query)), repr(query.preview())):
        assert f"release first: {needed.description}" in " ".join(text.split()).replace("first: the", "first:")
        assert f"{needed.code}.release(share=0.01)" in text
    code = f"{needed.code}.release(share=0.01)"
    assert eval(code, {"session": session}).description == needed.description
    assert preview(query).half_widths is not None
    assert preview(query).count_needed is None
    assert "release first" not in repr(query.preview())


def test_count_of_the_filtered_groups_is_the_users_own_code(session: dpnb.Session) -> None:
    needed = preview(queries(session)["filtered group means"]).count_needed
    assert needed is not None
    assert needed.code == "session.frame[session.frame['y'] > 0].groupby('g')['x'].count()"


def test_same_request_twice_is_one_charge(session: dpnb.Session) -> None:
    picker = Picker(queries(session)["group means"])
    message = {"method": "release_count", "target": picker.state["count_step"]["target"], "id": "1"}
    for request in ("1", "2"):
        picker._on_message(picker, {**message, "id": request}, None)
        assert picker.state["completed_request"] == request
    assert len(session.log) == 1
    assert picker.state["refusal"] is None


def test_failed_count_is_offered_again_free(session: dpnb.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    query = queries(session)["group means"]
    picker = Picker(query)
    monkeypatch.setattr(session._core.executor.kinds[Release], "measured", lambda *_: 1 / 0)
    told = ask(picker)
    assert told["refusal"]["explanation"] == "execution"
    spent = session.spent
    assert "charged already" in told["count_step"]["label"]
    assert told["count_step"]["loss"] is None
    monkeypatch.undo()
    again = Picker(query)  # as after a restart of the kernel
    for one in (picker, again):
        told = ask(one)
        assert session.spent == spent
    assert told["count_answer"] is not None


def test_interrupt_shows_what_was_charged(session: dpnb.Session, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    picker = Picker(queries(session)["mean"])
    monkeypatch.setattr(session._core.executor.kinds[Release], "measured", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ask(picker, done="8")
    assert picker.state["completed_request"] == "8"
    assert "charged already" in picker.state["count_step"]["label"]


def test_count_released_elsewhere_meanwhile_costs_the_difference_at_most(session: dpnb.Session) -> None:
    query = queries(session)["group means"]
    picker = Picker(query)
    session.frame.groupby("g")["x"].count().release(mu=0.2)  # another kernel
    before = session.spent
    told = ask(picker)
    assert session.spent == before
    assert (told["count_step"], told["refusal"]) == (None, None)


def test_small_groups_need_a_more_precise_count_which_doubles_what_was_spent(tmp_path: Path) -> None:
    small = opened(tmp_path, TABLE.head(120))
    query = small.frame.groupby("g")["x"].mean()
    picker = Picker(query)
    told = picker.state
    for number in range(12):
        if told["count_step"] is None:
            break
        if number:
            assert "more precisely" in told["count_step"]["label"]
        before = small.spent.mu_squared
        told = ask(picker, confirmed=True)
        if number:
            assert small.spent.mu_squared == pytest.approx(2 * before, rel=0.2)
    assert told["count_step"] is None
    assert "unknown" not in {option["error"] for option in told["options"]}
    assert len(small.log) > 1


def test_saved_output_has_the_count_below_the_preview_and_then_below_the_answer(session: dpnb.Session) -> None:
    picker = Picker(queries(session)["group means"])
    ask(picker)
    page = str(picker._bundle()["text/html"])
    assert page.index("not released") < page.index("count of x by g")
    option = picker.state["options"][10]
    picker._on_message(picker, {"method": "release", "target": option["target"], "id": "2"}, None)
    assert picker.state["phase"] == "answered"
    assert picker.state["count_answer"] is not None
    page = str(picker._bundle()["text/html"])
    assert "not released" not in page
    assert page.index("mean of x by g") < page.index("count of x by g")


@pytest.mark.parametrize("name", ["median", "ratio", "count"])
def test_no_count_is_proposed_where_none_is_enough(session: dpnb.Session, name: str) -> None:
    frame = session.frame
    query = {
        "median": frame["x"].median(),
        "ratio": frame["x"].ratio(frame["y"]),
        "count": frame.count(),
    }[name]
    assert query.count_needed is None
    assert Picker(query).state["count_step"] is None


def test_public_number_of_rows_makes_the_step_unnecessary(tmp_path: Path) -> None:
    session = opened(tmp_path, public_size=len(TABLE))
    assert session.frame["x"].mean().count_needed is None
    assert session.frame[session.frame["y"] > 0]["x"].mean().count_needed is not None


def test_the_count_can_be_released_again(session: dpnb.Session) -> None:
    query = session.frame["x"].mean()
    first = query.count_needed.release(share=0.01)
    assert query.preview(mu=0.1).count_needed is None
    spent = session.spent
    again = query.count_needed.release(share=0.01)
    assert (again.estimate, session.spent) == (first.estimate, spent)
    assert Picker(query).state["count_step"] is None


def test_spent_budget_leaves_no_step(session: dpnb.Session) -> None:
    session.frame.count().release(share=1)
    state = Picker(queries(session)["mean"]).state
    assert state["count_step"] is None
    assert state["refusal"]["explanation"] == "budget-exceeded"


# --- attacks ----------------------------------------------------------------------------------------------------------


def test_step_depends_on_nothing_but_the_declaration_and_the_ledger(tmp_path: Path) -> None:
    """Whether a step is offered, its cost and its code are equal for two tables, one of them empty."""
    states = []
    for number, table in enumerate((TABLE, TABLE.head(0))):
        (tmp_path / str(number)).mkdir()
        session = opened(tmp_path / str(number), table)
        states.append([msgspec.json.encode(Picker(query).state) for query in queries(session).values()])
    assert states[0] == states[1]


def test_attack_by_counting_rows_before_the_charge_is_seen(
    session: dpnb.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: a step that reads rows is noticed by the same test."""
    monkeypatch.setattr(session._core.tables.opened, "rows", lambda *_: pytest.fail("rows were read"))
    for query in queries(session).values():
        assert Picker(query).state["count_step"] is not None
        assert preview(query).count_needed is not None
    with pytest.raises(dpnb.errors.ExecutionError):  # a release reads rows
        session.frame.count().release(mu=0.01)
