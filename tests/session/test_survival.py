"""Survival curves: what they are without noise, what is charged, what is refused, and that no release can fail."""

from __future__ import annotations

import pickle
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import DpnbError, NotReleasedError, PlanError, RequestError
from dpnb.results.survival import SurvivalAnswer, SurvivalLayout
from dpnb.results.survival_curves import SampledRows

RNG = np.random.default_rng(1)
N = 3000
TIME = np.minimum(RNG.geometric(0.12, N), 14)  # whole periods, with many ties; beyond the last end at 12
TABLE = pd.DataFrame(
    {
        "who": np.arange(N) // 2,
        "time": np.where(RNG.random(N) < 0.02, np.nan, TIME),
        "dead": (RNG.random(N) < 0.7).astype(int),
        "arm": np.array(["a", "b"])[RNG.integers(0, 2, N)],
    }
)
SCHEMA = {
    "time": dpnb.Bounded(0, 20, integer=True),
    "dead": dpnb.Bounded(0, 1, integer=True),
    "arm": dpnb.Categories(["a", "b"]),
}
ENDS = [0, 2, 4, 6, 8, 10, 12]


def opened(table: pd.DataFrame = TABLE, **changes: Any) -> dpnb.Session:
    arguments = {"name": "trial", "budget": dpnb.Budget.gdp(1e6), "schema": SCHEMA, "ledger": ":memory:"}
    return dpnb.Session(table, **{**arguments, "not_private_test_seed": 3, **changes})


def kaplan_meier(table: pd.DataFrame) -> list[float]:
    """The curve at the ends, row by row."""
    table, curve, left = table.dropna(), [], 1.0
    for end in range(1, 13):
        at_risk = (table["time"] >= end).sum()
        left *= 1 - ((table["time"] == end) & (table["dead"] == 1)).sum() / at_risk
        curve.append(left)
    return curve


def test_without_noise_it_is_the_curve_of_kaplan_and_meier() -> None:
    """Of times in whole periods: with ties, rows beyond the last end, and rows without a time."""
    answer = opened().frame.survival("time", "dead", by="arm", edges=range(13)).release(mu=1e5)
    for arm, rows in TABLE.groupby("arm"):
        assert answer.estimate.loc[arm].tolist() == pytest.approx(kaplan_meier(rows), abs=1e-4)
        counted = rows.dropna()
        assert answer.at_risk.loc[arm].tolist() == pytest.approx(
            [(counted["time"] >= t).sum() for t in range(1, 13)], abs=0.01
        )
        dead = counted[counted["dead"] == 1]["time"]
        assert answer.events.loc[arm].tolist() == pytest.approx([(dead == t).sum() for t in range(1, 13)], abs=0.01)


def test_within_periods_rates_are_taken_as_constant() -> None:
    """Where they are constant, the curve is right however many rows are censored inside of a period."""
    rng = np.random.default_rng(0)
    time, until = rng.exponential(1, 200_000), rng.exponential(0.7, 200_000)
    table = pd.DataFrame({"time": np.minimum(time, until), "dead": (time <= until).astype(int), "arm": "a"})
    curve = (
        opened(table, schema={**SCHEMA, "time": dpnb.Bounded(0, 20)})
        .frame.survival("time", "dead", edges=[0, 1, 2, 3])
        .release(mu=1e5)
        .estimate
    )
    assert curve.tolist() == pytest.approx(np.exp([-1, -2, -3]), abs=0.01)
    actuarial = 1 - (table["dead"] * (table["time"] <= 1)).sum() / (
        len(table) - ((1 - table["dead"]) * (table["time"] <= 1)).sum() / 2
    )
    assert abs(actuarial - np.exp(-1)) > 0.02


def test_medians_and_restricted_means() -> None:
    answer = opened().frame.survival("time", "dead", by="arm", edges=range(13)).release(mu=1e5)
    for arm, rows in TABLE.groupby("arm"):
        curve = [1.0, *kaplan_meier(rows)]
        after = next(at for at, height in enumerate(curve) if height <= 0.5)
        assert after - 1 < answer.median().estimate[arm] <= after
        area = sum((a + b) / 2 for a, b in pairwise(curve[:7]))
        assert answer.restricted_mean(until=6).estimate[arm] == pytest.approx(area, abs=1e-3)
        half = (curve[6] + (curve[6] + curve[7]) / 2) / 4
        assert answer.restricted_mean(until=6.5).estimate[arm] == pytest.approx(area + half, abs=1e-3)
    low, high = answer.restricted_mean(until=6).population_interval.loc["a"]
    assert low < answer.restricted_mean(until=6).estimate["a"] < high
    with pytest.raises(DpnbError, match="until must be after 0 and at most 12"):
        answer.restricted_mean(until=13)


def test_a_release_is_charged_once_and_read_again_from_the_ledger(tmp_path: Path) -> None:
    session = opened(budget=dpnb.Budget(epsilon=1, delta=1e-6), ledger=str(tmp_path / "ledger"))
    query = session.frame.survival("time", "dead", by="arm", periods=5)
    preview = query.preview(mu=0.1)
    assert (preview.cost.mu, preview.fits) == (0.1, True)
    first = query.release(mu=0.1)
    left = session.headroom
    assert first.cost_fraction == pytest.approx(preview.cost_fraction)
    assert "free: was released before" in str(query.preview(mu=0.1))
    wider = query.release(mu=0.1, confidence=0.99)
    assert session.headroom == left
    assert (wider.arrays.high - wider.arrays.low >= first.arrays.high - first.arrays.low).all()
    with pytest.raises(RequestError, match="was released with another target"):
        query.release(mu=0.2)
    assert session.headroom == left
    del session
    later = opened(budget=dpnb.Budget(epsilon=1, delta=1e-6), ledger=str(tmp_path / "ledger"))
    again = later.frame.survival("time", "dead", by="arm", periods=5).release(mu=0.1)
    assert str(again) == str(first)
    assert pickle.loads(pickle.dumps(first)) == first


@pytest.mark.parametrize("seed", range(6))
def test_any_noise_gives_an_answer_that_can_be_used(seed: int) -> None:
    """Also where the noise is larger than the table by orders of magnitude."""
    session = opened(TABLE.head(50), budget=dpnb.Budget.gdp(1), not_private_test_seed=seed)
    cases: list[tuple[Any, float]] = [(["arm", "dead"], 1e-3), ("arm", 0.05), (None, 0.3)]
    for by, mu in cases:
        answer = session.frame.survival("time", "dead", by=by, edges=ENDS).release(mu=mu)
        values = answer.arrays
        assert ((values.low >= 0) & (values.low <= values.high) & (values.high <= 1)).all()
        known = ~np.isnan(values.value)
        assert ((values.low <= values.value) | ~known).all()
        assert (np.diff(np.nan_to_num(values.value), axis=1) <= 0).all()
        assert (np.diff(values.high, axis=1) <= 0).all()
        for shown in (answer, answer.median(), answer.restricted_mean(), answer.restricted_mean(7), answer.plot()):
            assert str(shown)
            assert shown._repr_html_() if not hasattr(shown, "_repr_mimebundle_") else shown._repr_mimebundle_()
        assert len(answer.to_frame()) == values.value.size
        if by:
            test = answer.test()
            assert np.isnan(test.pvalue) == (test.outcome is None)


def test_a_curve_stops_where_it_is_unknown() -> None:
    answer = opened(budget=dpnb.Budget.gdp(1)).frame.survival("time", "dead", edges=range(0, 20)).release(mu=0.03)
    known = np.isfinite(answer.arrays.value[0])
    assert 0 < known.sum() < 19
    assert known[: known.sum()].all()
    assert "unknown" in str(answer)
    assert answer.plot().data[-1].x[-1] == known.sum()


def test_rows_of_one_unit_may_depend_on_each_other() -> None:
    rows = opened().frame.survival("time", "dead", by="arm", edges=ENDS).release(mu=1e5)
    units = opened(privacy_unit="who", max_rows_per_unit=2).frame.survival("time", "dead", by="arm", edges=ENDS)
    persons = units.release(mu=1e5)
    width = [one.population_arrays.high - one.population_arrays.low for one in (rows, persons)]
    assert width[1][:, :4] / width[0][:, :4] == pytest.approx(2**0.5, rel=0.1)
    assert "any dependence of their rows is allowed for" in str(persons.test())


def test_a_census_has_no_population_band_and_no_test() -> None:
    answer = opened(sampled="census").frame.survival("time", "dead", by="arm", edges=ENDS).release(mu=1)
    assert not answer.has_population_intervals
    assert str(answer)
    assert answer.plot()
    with pytest.raises(RequestError, match="there is no sampling error"):
        answer.test()
    tenth = opened(sampled=0.99).frame.survival("time", "dead", by="arm", edges=ENDS).release(mu=1e5)
    assert (tenth.population_arrays.high - tenth.population_arrays.low).max() < 0.02


def test_groups_share_their_noise() -> None:
    answer = opened().frame.survival("time", "dead", by="arm", edges=ENDS).release(mu=1)
    with pytest.raises(DpnbError):
        answer["a"] - answer["b"]
    with pytest.raises(RequestError, match="name them, as in"):
        opened().frame.survival("time", "dead", edges=ENDS).release(mu=1).test()


@pytest.mark.parametrize(
    ("arguments", "options", "text"),
    [
        (("arm", "dead"), {}, "needs a number"),
        (("time", "time"), {}, "must be a condition, or a number that is 0 or 1"),
        (("time", "arm"), {}, "must be a condition"),
        (("tme", "dead"), {}, "did you mean 'time'"),
        (("time", "dead"), {"periods": 0}, "from 1 to 100"),
        (("time", "dead"), {"periods": 101}, "from 1 to 100"),
        (("time", "dead"), {"periods": 2.5}, "whole number"),
        (("time", "dead"), {"edges": [0]}, "ascending"),
        (("time", "dead"), {"edges": [0, 3, 3]}, "ascending"),
        (("time", "dead"), {"edges": [0, float("inf")]}, "edges"),
        (("time", "dead"), {"edges": [0, float("nan")]}, "edges"),
        (("time", "dead"), {"edges": 5}, "list of ascending numbers"),
        (("time", "dead"), {"edges": [0, 30, 40]}, "ends in the first period"),
        (("time", "dead"), {"by": "time", "periods": 100}, "groups"),
    ],
)
def test_what_cannot_be_released_is_refused_before_any_charge(arguments: Any, options: Any, text: str) -> None:
    session = opened(schema={**SCHEMA, "time": dpnb.Bounded(0, 20, integer=True)})
    with pytest.raises(PlanError, match=text):
        session.frame.survival(*arguments, **options)
    assert session.headroom == 1


def test_a_query_is_no_curve() -> None:
    query = opened().frame.survival("time", "dead")
    with pytest.raises(NotReleasedError, match=r"release\(share=0.01\).plot\(\)"):
        query.plot()
    with pytest.raises(RequestError, match="exactly one of"):
        query.release()


def test_the_same_rows_in_an_engine_give_the_same_curve() -> None:
    duckdb = pytest.importorskip("duckdb")
    relation = duckdb.from_df(TABLE)
    answers = [
        opened(table).frame.survival("time", "dead", by="arm", edges=ENDS).release(mu=0.5)
        for table in (TABLE, relation)
    ]
    assert answers[0].arrays.value.tolist() == answers[1].arrays.value.tolist()


def test_an_event_is_a_condition_a_number_or_two_categories() -> None:
    table = TABLE.assign(died=TABLE["dead"] == 1)
    session = opened(table, schema={**SCHEMA, "died": dpnb.Categories([False, True])})
    frame, curves = session.frame, []
    for event in ("dead", "died", frame["dead"] == 1, frame["died"]):
        curves.append(frame.survival("time", event, edges=ENDS).release(mu=1e5).estimate.tolist())
    assert np.ptp(curves, axis=0).max() < 1e-4


def test_many_curves_are_drawn_without_their_shade() -> None:
    layout = SurvivalLayout("t", "e", ("g",), tuple((f"g{i}",) for i in range(5)), (0.0, 1.0, 2.0))
    assert len(layout.cells) == len(set(layout.cells)) == 5
    assert SampledRows(2, 0.5).factor == 1
    assert SurvivalAnswer.__mro__[1].__name__ == "Estimates"
