"""The log reads most releases many at once, and shows of each what reading it alone shows."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

import dpnb
from dpnb._core.history.release_reader import ReleaseReader
from dpnb._plan.plan import Plan, split_filter
from dpnb.render.number_columns import describe_errors, format_numbers, numbers_with_intervals
from dpnb.render.numbers import describe_error, format_number, number_with_interval

N = 600
TABLE = pd.DataFrame(
    {
        "who": np.arange(N) // 2,
        "x": np.arange(N) % 50 / 10,
        "g": np.array(["a", "b", "c"])[np.arange(N) % 3],
        "t": np.array(["où", "là"])[np.arange(N) % 2],
        "d": pd.to_datetime("2024-01-01") + pd.to_timedelta(np.arange(N) % 300, unit="D"),
        "n": np.arange(N) % 7,
    }
)
SCHEMA = {
    "x": dpnb.Bounded(0, 5),
    "g": dpnb.Categories(["a", "b", "c"]),
    "t": dpnb.Text(),
    "d": dpnb.Dates("2024-01-01", "2025-01-01"),
    "n": dpnb.Bounded(-1, 10, integer=True),
}


def opened(path: Path) -> dpnb.Session:
    return dpnb.Session(
        TABLE,
        name="many",
        privacy_unit="who",
        max_rows_per_unit=2,
        public_size=300,
        budget=dpnb.Budget.gdp(30, discovery_delta=1e-6),
        schema=SCHEMA,
        ledger=path,
    )


def ask_everything(session: dpnb.Session) -> None:
    frame = session.frame
    x, by = frame["x"], frame.groupby("g")
    few, odd = frame[frame["x"] > 4.98], frame[(frame["n"] % 2 == 1) & (frame["t"] == 'a ",where":{"')]
    for query in (
        *(
            frame.count(),
            few.count(),
            odd.count(),
            frame.count_units(),
            few.count_units(),
            frame["n"].sum(),
            few["x"].mean(),
        ),
        *(
            x.mean(),
            (-x).sum(),
            x.var(),
            x.median(),
            x.quantile([0.1, 0.5, 0.9]),
            few["x"].median(),
            frame["d"].median(),
        ),
        *(by["x"].mean(), by["x"].median(), by["x"].quantile([0.25, 0.75]), by.size(), by["x"].std()),
        *(frame[["x", "n"]].corr(), few[["x", "n"]].cov(), frame["x"].corr(frame["n"])),
        *(frame["g"].value_counts(normalize=True), frame.describe(), frame.groupby(["g", frame["n"] > 3])["n"].sum()),
    ):
        for mu in (0.01, 0.4):
            query.release(mu=mu)
    for mu in (0.1, 0.2, 0.3):
        frame[frame["n"] > 1]["x"].mean().release(mu=mu)
        frame[frame["n"] > 2]["x"].mean().release(mu=mu, confidence=0.9)
        by["n"].mean().release(mu=mu, simultaneous=True)
    frame[frame["n"] > 3].count().release(mu=0.2, final=True)
    by["n"].sum().release(mu=0.1)
    by["n"].sum().release(mu=0.2, groups=["a"])
    session.plan([by.size(), frame.groupby("n", keys=[1, 2]).size()]).release(mu=0.3)
    session.delegate(name="half", share="0.1").frame.count().release(mu=0.1)
    session.partition("g", name="parts")["a"].frame["x"].mean().release(mu=0.1)


@pytest.fixture
def asked(tmp_path: Path) -> Path:
    ask_everything(opened(tmp_path / "many.dpnb"))
    return tmp_path / "many.dpnb"


def test_a_row_that_is_read_with_others_is_the_same_as_alone(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    together, entries = opened(asked).log(), opened(asked)._core.releases.log
    at_once = entries.by_id(entries.ids)
    read = ReleaseReader.read
    found: list[int] = []
    monkeypatch.setattr(ReleaseReader, "read", lambda self, rows, by_id: found.extend(read(self, rows, by_id)) or {})
    alone, entries = opened(asked).log(), opened(asked)._core.releases.log
    pd.testing.assert_frame_equal(together, alone, check_exact=True)
    assert list(map(repr, at_once)) == list(map(repr, entries.by_id(entries.ids)))  # there are NaNs
    assert len(set(found)) > len(alone) * 0.7, "most are read together"
    assert {type(column.dtype) for _, column in together.items()} == {type(column.dtype) for _, column in alone.items()}


def test_an_empty_log_has_the_same_columns(tmp_path: Path) -> None:
    session = opened(tmp_path / "empty.dpnb")
    empty = session.log()
    session.frame.count().release(mu=0.1)
    assert list(empty.columns) == list(session.log().columns)
    assert len(empty) == 0


def test_a_row_that_cannot_be_read_is_named(asked: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(asked)
    decode = Plan.from_json
    bad = session.ledger.charges()[2].plan

    def from_json(text: str) -> Plan:
        if text == bad or "count_units" in text:
            raise ValueError
        return decode(text)

    monkeypatch.setattr(Plan, "from_json", from_json)
    with pytest.raises(dpnb.errors.LedgerError, match=r"row \d+ must be as dpnb wrote it"):
        session.log()


def test_the_condition_of_a_plan_is_split_off(asked: Path) -> None:
    plans = [charge.plan for charge in opened(asked).ledger.charges() if charge.plan]
    for text in plans:
        rest, where = split_filter(text)
        plan = Plan.from_json(text)
        assert where == plan.where
        assert Plan.from_json(rest) == structs.replace(plan, where=None)
    assert any(split_filter(text)[1] is not None for text in plans)


NUMBERS = st.one_of(
    st.floats(),
    st.integers(-(10**6), 10**6).map(float),
    st.builds(lambda n, d: n / 10**d, st.integers(-(10**8), 10**8), st.integers(0, 6)),
    st.sampled_from([0.125, 2.5, 2.675, 1.005, -0.0, 0.5, 1e16, 1e-9, math.inf, math.nan]),
)


@given(st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), min_size=1, max_size=20))
def test_numbers_are_written_as_one_by_one(rows: list[tuple[float, float, float]]) -> None:
    values, lows, highs = (np.array(column) for column in zip(*rows, strict=True))
    for rounding in (ROUND_HALF_EVEN, ROUND_FLOOR, ROUND_CEILING):
        expected = [format_number(value, error, rounding) for value, error, _ in rows]
        assert format_numbers(values, lows, rounding) == expected
    assert numbers_with_intervals(values, lows, highs) == [number_with_interval(*row) for row in rows]


@given(st.integers(1, 4), st.integers(1, 3), st.data())
def test_errors_are_described_as_one_by_one(groups: int, outputs: int, data: st.DataObject) -> None:
    answers = data.draw(st.integers(1, 5))
    number = st.one_of(st.floats(0, 1e6), st.sampled_from([math.inf, math.nan, 0.0]))
    size = answers * groups * outputs
    errors = np.array(data.draw(st.lists(number, min_size=size, max_size=size))).reshape(answers, groups, outputs)
    labels = tuple("abc"[:outputs])
    for named in (None, ("quantile", labels), ("statistic", labels)):
        assert describe_errors(errors, named, 0.95) == [describe_error(one, named, 0.95) for one in errors]
