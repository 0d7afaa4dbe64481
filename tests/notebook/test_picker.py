"""The kernel's half of the picker: what a page may ask of it, and what is paid stays paid once."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pandas as pd
import pytest

import dpnb
from dpnb._browser.messages import PickerState
from dpnb._request import Release
from dpnb.notebook import picker_state
from dpnb.notebook.picker import Picker
from dpnb.query.query import Query

TABLE = pd.DataFrame({"x": [1.0, 2.0, 3.0] * 200, "g": ["a", "b", "c"] * 200})
SCHEMA = {"x": dpnb.Bounded(0, 5), "g": dpnb.Categories(["a", "b", "c"])}


@pytest.fixture
def session(tmp_path: Path) -> dpnb.Session:
    return dpnb.Session(
        TABLE,
        name="s",
        schema=SCHEMA,
        public_size=600,
        ledger=tmp_path / "s.dpnb",
        budget=dpnb.Budget(epsilon=2, delta=1e-6, discovery_delta=5e-7),
    )


@pytest.fixture
def query(session: dpnb.Session) -> Query:
    return session.frame["x"].mean()


def ask(picker: Picker, target: object, done: str = "1", *, confirmed: bool = False) -> dict:
    picker._on_message(picker, {"method": "release", "target": target, "id": done, "confirmed": confirmed}, None)
    return picker.state


def shown(query: Query) -> dict:
    return msgspec.to_builtins(picker_state.make_state(query))


def target(picker: Picker, place: int = 20) -> dict[str, str]:
    return picker.state["options"][place]["target"]


def test_release_charges_what_the_rung_showed_and_is_told_by_its_id(session: dpnb.Session, query: Query) -> None:
    picker = Picker(query)
    shown = picker.state["options"][20]
    told = ask(picker, shown["target"], "17")
    assert (told["phase"], told["completed_request"]) == ("answered", "17")
    assert session.headroom == shown["remaining"]
    assert told["answer"]["hint"] == (
        f".answer is this answer, and .release(mu={shown['target']['mu']}) returns it again at no cost"
    )


def test_same_message_twice_is_one_charge(session: dpnb.Session, query: Query) -> None:
    picker = Picker(query)
    wanted = target(picker)
    ask(picker, wanted)
    ask(picker, wanted)
    assert len(session.log) == 1


@pytest.mark.parametrize("place", [10, 30, -1])
def test_failed_release_is_paid_once_and_offered_again_free(
    session: dpnb.Session, query: Query, place: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    picker = Picker(query)
    wanted = target(picker, place)
    monkeypatch.setattr(session._core.executor.kinds[Release], "measured", lambda *_: 1 / 0)
    told = ask(picker, wanted, confirmed=place == -1)
    assert told["refusal"]["explanation"] == "execution"
    paid = session.spent
    (again,) = told["unanswered"]
    monkeypatch.undo()
    told = ask(picker, again["target"])
    assert told["phase"] == "answered"
    assert told["unanswered"] == []
    assert session.spent == paid


def test_interrupt_after_the_charge_shows_what_is_paid(
    session: dpnb.Session, query: Query, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    picker = Picker(query)
    monkeypatch.setattr(session._core.executor.kinds[Release], "measured", interrupted)
    with pytest.raises(KeyboardInterrupt):
        ask(picker, target(picker), "9")
    assert picker.state["completed_request"] == "9"
    assert len(picker.state["unanswered"]) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {},
        {"mu": "abc"},
        {"mu": "nan"},
        {"mu": "-1"},
        {"mu": "1/0"},
        {"mu": 0.1},
        {"share": "2"},
        {"mu": "0.1", "final": "1"},
        {"within": "3"},
    ],
)
def test_what_no_page_of_ours_sends_costs_nothing_and_is_answered(
    session: dpnb.Session, query: Query, wrong: dict
) -> None:
    picker = Picker(query)
    told = ask(picker, wrong, "3")
    assert told["completed_request"] == "3"
    assert told["refusal"] is not None
    assert session.headroom == 1


def test_picker_says_when_the_budget_has_changed_and_stops_when_it_has_looked(
    session: dpnb.Session, query: Query
) -> None:
    picker = Picker(query)
    before = picker.state["options"][-1]["cost"]
    session.frame.count().release(mu=0.1)
    picker.follow()
    assert picker.is_stale
    picker._on_message(picker, {"method": "refresh"}, None)
    assert not picker.is_stale
    assert picker.state["options"][-1]["cost"] != before


def test_answer_stays_when_another_cell_asks_for_more(query: Query) -> None:
    picker = Picker(query)
    told = ask(picker, target(picker))
    answer = told["answer"]
    query.release(mu=0.4)
    picker._on_message(picker, {"method": "refresh"}, None)
    assert picker.state["answer"] == answer


def test_ledger_that_is_gone_is_told_and_breaks_nothing(session: dpnb.Session, query: Query) -> None:
    picker = Picker(query)
    wanted = target(picker)
    session.ledger.close()
    told = ask(picker, wanted, "5")
    assert (told["refusal"]["explanation"], told["completed_request"]) == ("ledger", "5")
    picker.follow()


def test_question_that_was_final_offers_no_refinement(query: Query) -> None:
    answer = query.release(mu=0.1, final=True)
    told = shown(query)
    assert told["options"] == []
    assert "final=True" in told["refusal"]["message"]
    assert f"{answer.estimate:.2f}" in told["answer"]["html"]
    with pytest.raises(dpnb.errors.RequestError, match="final"):
        query.preview(mu=0.2)


def test_question_that_cannot_be_asked_any_more_can_still_be_looked_at(session: dpnb.Session) -> None:
    counts = session.frame["g"].value_counts()
    counts.release(mu=0.05).refine(mu=0.08, groups=["a"])
    shares = session.frame["g"].value_counts(normalize=True)
    assert "shares" in shown(shares)["refusal"]["message"]
    assert "shares" in shares._repr_html_()


def test_discovery_says_for_each_budget_how_common_a_group_must_be(session: dpnb.Session) -> None:
    found = session.frame.discover("g", discovery_delta=5e-7)
    told = shown(found)
    thresholds = [option["error"].rpartition("at least ")[2] for option in told["options"]]
    assert len(set(thresholds)) > 5
    found.release(mu=0.1)
    told = shown(session.frame.discover("g", discovery_delta=4e-7))
    assert told["options"] == []
    assert "nothing is left" in told["refusal"]["message"]


@pytest.mark.parametrize("share", [0.0001, 0.01, 0.1, 0.9, 0.999])
def test_presets_are_true_for_a_question_that_is_known_well(session: dpnb.Session, query: Query, share: float) -> None:
    query.release(share=share)
    told = shown(query)
    for preset in told["presets"]:
        option = told["options"][preset["option"]]
        taken = (session.headroom - option["remaining"]) / session.headroom
        assert taken <= float(preset["meaning"].partition("%")[0].removeprefix("at most ")) / 100 + 1e-3
    # A budget that would narrow nothing is not offered: of what is known well there may be none.
    assert len(told["presets"]) == 3 or share > 0.001
    assert len(told["options"]) > 10 or share > 0.05


def test_budget_too_small_for_the_slider_is_still_shown(tmp_path: Path) -> None:
    tiny = dpnb.Session(
        TABLE, name="t", schema=SCHEMA, ledger=tmp_path / "t.dpnb", budget=dpnb.Budget.gdp(1e-170), public_size=600
    )
    assert isinstance(picker_state.make_state(tiny.frame.count()), PickerState)
    assert tiny.frame.count()._repr_html_()


def test_known_question_shows_its_answer_first(query: Query) -> None:
    answer = query.release(mu=0.1)
    state = Picker(query).state
    assert state["phase"] == "answered"
    assert state["answer"]["hint"].startswith(".answer is the current best answer")
    assert f"{answer.estimate:.2f}" in state["answer"]["html"]
    assert state["options"], "and can be refined"


def test_unanswered_request_for_some_groups_is_taken_up_by_its_own_arguments(
    session: dpnb.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    counts = session.frame["g"].value_counts()
    counts.release(mu=0.1)
    monkeypatch.setattr(session._core.executor.kinds[Release], "measured", lambda *_: 1 / 0)
    with pytest.raises(dpnb.errors.ExecutionError):
        counts.release(mu=0.2, groups=["a"], confidence=0.9, simultaneous=True)
    monkeypatch.undo()
    spent = session.spent
    (asked,) = counts.unanswered
    assert counts.release(**asked).confidence == 0.9
    assert (session.spent, counts.unanswered) == (spent, [])


def test_question_that_cannot_be_asked_is_shown_as_text_without_mark_up(session: dpnb.Session) -> None:
    query = session.frame[session.frame["x"] < 2].count()
    query.release(mu=0.1, final=True)
    still = picker_state.static_output(query)
    assert "x < 2" in str(still["text/plain"])
    assert "x &lt; 2" in str(still["text/html"])
