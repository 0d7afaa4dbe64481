"""A real session tells the browser what the shared example tells it, field by field."""

from __future__ import annotations

import json
from pathlib import Path

import pandas as pd
import pytest

import dpnb
from dpnb.session import state

FIXTURE = Path(__file__).parents[1] / "fixtures" / "snapshot.json"
LISTS = ("gauges", "filters", "odometers", "releases")


@pytest.fixture
def example() -> dict:
    return json.loads(FIXTURE.read_text(encoding="utf-8"))["sessions"][0]


@pytest.fixture
def told(tmp_path: Path) -> dict:
    """What a session tells after a release, as JSON without the numbers that JSON does not know."""
    session = dpnb.Session(
        pd.DataFrame({"x": [1.0, 2.0]}),
        name="small",
        budget=dpnb.Budget(epsilon=1, delta=1e-6),
        schema={"x": dpnb.Bounded(0, 5)},
        ledger=tmp_path / "small.dpnb",
    )
    session.frame.count().release(mu=0.05)
    return json.loads(json.dumps(state.snapshot(session), allow_nan=False))


def shape(item: dict) -> dict[str, str]:
    """The fields and what kind of value each holds; to the browser all numbers are one kind."""
    return {name: "number" if type(value) in (int, float) else type(value).__name__ for name, value in item.items()}


def test_session_has_the_fields_of_the_example(told: dict, example: dict) -> None:
    assert shape(told) == shape(example)


@pytest.mark.parametrize("part", LISTS)
def test_every_line_has_the_fields_of_the_example(told: dict, example: dict, part: str) -> None:
    assert told[part]
    assert {tuple(sorted(shape(line).items())) for line in told[part]} == {
        tuple(sorted(shape(example[part][0]).items()))
    }


@pytest.mark.parametrize("part", ["gauges", "filters"])
def test_shares_lie_between_none_and_all(told: dict, part: str) -> None:
    assert all(0 <= line["value"] <= 1 for line in told[part])


@pytest.mark.parametrize(("part", "word"), [("gauges", "kind"), ("odometers", "reading")])
def test_words_that_the_browser_knows_are_the_ones_that_are_told(
    told: dict, example: dict, part: str, word: str
) -> None:
    assert {line[word] for line in told[part]} == {line[word] for line in example[part]}


@pytest.mark.parametrize("part", LISTS)
def test_names_are_unique_within_a_list(told: dict, part: str) -> None:
    names = [line["id"] for line in told[part]]
    assert len(set(names)) == len(names)


def test_one_filter_is_enforced_and_comes_first(told: dict) -> None:
    assert [line["enforced"] for line in told["filters"]] == [True] + [False] * (len(told["filters"]) - 1)
    assert told["filters"][0]["id"] == told["filter"]
