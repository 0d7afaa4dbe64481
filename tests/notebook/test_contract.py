"""A real session tells the browser what the shared example tells it, field by field."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import dpnb
from dpnb.session import live, state
from dpnb.session.explanations import EXPLANATIONS

FIXTURE = Path(__file__).parents[1] / "fixtures" / "snapshot.json"
LISTS = ("gauges", "filters", "odometers", "releases", "headlines", "cells", "refusals", "mechanisms")


@pytest.fixture
def example() -> dict:
    return json.loads(FIXTURE.read_text(encoding="utf-8"))["sessions"][0]


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict:
    """What a session tells after a release, a refusal and launches, as JSON, which knows no infinity."""
    monkeypatch.setattr(live, "_front_end", [lambda: "a-cell"])
    session = made(tmp_path)
    session.frame.count().release(mu=0.05)
    with pytest.raises(dpnb.errors.BudgetExceeded):
        session.frame.count().release(mu=50)
    session.delegate(mu=0.01, name="colleague")
    session.partition(session.frame["x"] > 1)[True].frame.count().release(mu=0.01)
    return json.loads(json.dumps(state.snapshot(session), allow_nan=False))


def made(folder: Path, **how: str) -> dpnb.Session:
    return dpnb.Session(
        pd.DataFrame({"x": [1.0, 2.0]}),
        name="small",
        budget=dpnb.Budget(epsilon=1, delta=1e-6),
        schema={"x": dpnb.Bounded(0, 5)},
        ledger=folder / "small.dpnb",
        **how,
    )


def shape(item: dict) -> dict[str, str]:
    """The fields and what kind of value each holds; to the browser all numbers are one kind."""
    return {name: "number" if type(value) in (int, float) else type(value).__name__ for name, value in item.items()}


def test_session_has_the_fields_of_the_example(told: dict, example: dict) -> None:
    assert shape(told) == {**shape(example), "individual": "NoneType"}  # of a session that has it: below


def test_session_says_who_takes_part_where_each_unit_has_a_budget_of_its_own(tmp_path: Path, example: dict) -> None:
    session = made(tmp_path, accounting="individual")
    session.frame.count().release(mu=0.05)
    told = state.snapshot(session)
    assert shape(told) == {**shape(example), "paused": "NoneType"}
    assert told["individual"].startswith("Everybody surely took part so far, and takes part in 21 more questions like")
    session.frame.count().release(mu=1)
    assert "Everybody surely took part up to request 1. " in state.snapshot(session)["individual"]


@pytest.mark.parametrize("part", LISTS)
def test_every_line_has_the_fields_of_the_example(told: dict, example: dict, part: str) -> None:
    assert told[part]
    expected = shape(example[part][0])
    for line in told[part]:
        assert {name: expected[name] if line[name] is None else kind for name, kind in shape(line).items()} == expected
    assert any(None not in line.values() for line in told[part])


def test_every_part_has_the_fields_of_the_example(told: dict, example: dict) -> None:
    ours, theirs = ([part for one in of["mechanisms"] for part in one["parts"]] for of in (told, example))
    assert {tuple(sorted(shape(part).items())) for part in ours} == {tuple(sorted(shape(theirs[0]).items()))}


def test_timeline_has_the_fields_of_the_example(told: dict, example: dict) -> None:
    ours, theirs = told["timeline"], example["timeline"]
    assert shape(ours) == shape(theirs)
    assert shape(ours["budget"]) == shape(theirs["budget"])
    assert shape(ours["loss"]) == shape(theirs["loss"])
    assert {tuple(shape(curve)) for curve in ours["curves"]} == {tuple(shape(theirs["curves"][0]))}
    assert {tuple(shape(point).items()) for point in ours["points"]} == {tuple(shape(theirs["points"][0]).items())}
    assert {len(point["bounds"]) for point in ours["points"]} == {len(ours["curves"])}


def test_next_steps_are_told_until_something_was_asked(told: dict, tmp_path: Path) -> None:
    (tmp_path / "fresh").mkdir()
    example = json.loads(FIXTURE.read_text(encoding="utf-8"))["sessions"][1]
    fresh = state.snapshot(made(tmp_path / "fresh"))
    assert told["next"] == []
    assert {tuple(shape(step)) for step in fresh["next"]} == {tuple(shape(example["next"][0]))}


def test_every_explanation_that_is_named_is_there(told: dict) -> None:
    known = {explanation.id for explanation in EXPLANATIONS}
    assert {refusal["explanation"] for refusal in told["refusals"]} <= known
    assert {"rehearsal", "not-private", "unknown", "outside"} <= known
    example = json.loads(FIXTURE.read_text(encoding="utf-8"))["explanations"]
    assert {tuple(shape(one)) for one in example} == {tuple(EXPLANATIONS[0]._asdict())}


@pytest.mark.parametrize("part", ["gauges", "filters"])
def test_shares_lie_between_none_and_all(told: dict, part: str) -> None:
    assert all(0 <= line["value"] <= 1 for line in told[part])


@pytest.mark.parametrize(("part", "word"), [("gauges", "kind"), ("odometers", "reading")])
def test_words_that_the_browser_knows_are_the_ones_that_are_told(
    told: dict, example: dict, part: str, word: str
) -> None:
    assert {line[word] for line in told[part]} == {line[word] for line in example[part]}


@pytest.mark.parametrize("part", [part for part in LISTS if part != "cells"])
def test_names_are_unique_within_a_list(told: dict, part: str) -> None:
    names = [line["id"] for line in told[part]]
    assert len(set(names)) == len(names)


def test_one_filter_is_enforced_and_comes_first(told: dict) -> None:
    assert [line["enforced"] for line in told["filters"]] == [True] + [False] * (len(told["filters"]) - 1)
    assert told["filters"][0]["id"] == told["filter"]
