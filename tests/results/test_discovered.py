"""What an answer of `discover` shows: the same law in answer, preview, log, arithmetic and words."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.special import ndtri

import dpnb
from dpnb._compile import linear_query
from dpnb._plan.measurements import Discovery, PlainView
from dpnb._plan.plan import Plan, column
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.accounting.truncated_normal import alpha_of_each
from dpnb.errors import ErrorEstimateUnavailable, RequestError
from dpnb.mechanisms.measurement import Measurement
from dpnb.mechanisms.selection import least_named, threshold_for
from dpnb.results.estimates import estimate
from dpnb.results.estimates.estimate import named_groups, widest
from dpnb.schema import Text

SIZES = {"many": 400, "some": 90, "few": 80}
DELTA = Fraction(5, 10**5)


@pytest.fixture
def session() -> dpnb.Session:
    return dpnb.Session(
        pd.DataFrame({"t": np.repeat(list(SIZES), list(SIZES.values()))}),
        name="found",
        schema={"t": dpnb.Text()},
        budget=dpnb.Budget(epsilon=20, delta=1e-3, discovery_delta=5e-4),
        ledger=":memory:",
        not_private_test_seed=1,
    )


@pytest.fixture
def found(session: dpnb.Session) -> Any:
    return session.frame.discover("t").release(mu=0.1)


def at_excess(steps: list[int], sigma: float = 10.0, alpha: float = 0.05) -> Any:
    """Named groups a given number of steps of the output grid above the least that is named."""
    exponent = math.frexp(sigma)[1] - 21
    least = least_named(sigma, 1, DELTA, exponent)
    return named_groups(Measurement(tuple(least + step for step in steps), exponent, sigma), least, alpha)


# --- the interval ---


def test_far_above_the_threshold_the_interval_is_the_plain_one() -> None:
    cells = at_excess([2**24])
    reach = -10 * ndtri(0.025)
    middle = float(cells.value[0, 0])
    assert cells.low[0, 0] == math.floor(middle - reach)
    assert cells.high[0, 0] == math.ceil(middle + reach)


@pytest.mark.parametrize("sigma", [1e-300, 1e-9, 0.5, 3.0, 1e6, 1e280])
def test_whatever_the_noise_an_interval_is_finite_ordered_and_of_whole_numbers(sigma: float) -> None:
    cells = at_excess([0, 1, 2, 10, 1000, 10**5, 10**6, 10**7, 10**9, 10**15], sigma)
    for low, value, high in zip(cells.low[:, 0], cells.value[:, 0], cells.high[:, 0], strict=True):
        assert 1 <= low <= value <= high < math.inf
        assert low == math.floor(low)
        assert high == math.ceil(high)
    for ends in (cells.low, cells.value, cells.high):
        assert (np.diff(ends[:, 0]) >= 0).all()


def test_a_group_that_has_just_been_named_is_said_to_have_any_small_number_of_units() -> None:
    """Its noisy number says next to nothing: every small group that is named at all is named like that."""
    cells = at_excess([0])
    assert (cells.low[0, 0], cells.value[0, 0], cells.high[0, 0]) == (1, 1, 1)
    cells = at_excess([2**19])
    assert cells.low[0, 0] == 1
    assert cells.value[0, 0] < threshold_for(10.0, 1, DELTA) < cells.high[0, 0]


def test_a_hundred_thousand_groups_are_read_together() -> None:
    steps = np.random.default_rng(1).exponential(2**20, 100_000).astype(int).tolist()
    together, alone = at_excess(steps), at_excess(steps[:3])
    for name in ("value", "low", "high"):
        assert getattr(together, name)[:3].tolist() == getattr(alone, name).tolist()


def test_plain_intervals_cannot_be_had_of_a_discovery() -> None:
    query = linear_query(Plan(Discovery("1/50"), group_by=(column("t"),)), {"t": Text()}, PrivacyUnit())
    one = np.ones((1, 1))
    with pytest.raises(TypeError, match="not normal"):
        estimate(query, PlainView(), one, one[0], one[0], {"t": Text()})


@pytest.mark.parametrize("mu", [0.1, 1e-6])
def test_named_groups_are_not_tested_however_many_there_are(session: dpnb.Session, mu: float) -> None:
    named = session.frame.discover("t").release(mu=mu)
    assert len(named.keys) == (3 if mu == 0.1 else 0)
    with pytest.raises(RequestError, match=r"the sampling error of .* is not known"):
        named.test()


def test_all_at_once_is_divided_by_how_many_are_named(session: dpnb.Session, found: Any) -> None:
    """By 1 - (1 - alpha)^(1/3), which is more than a third of alpha."""
    together = session.frame.discover("t").release(mu=0.1, simultaneous=True)
    assert together.keys == found.keys == (("few",), ("many",), ("some",))
    reach = -10 * ndtri(alpha_of_each(0.05, 3) / 2)
    assert together["many"].interval[1] == math.ceil(together["many"].estimate + reach)
    assert "95% noise intervals, all at once" in repr(together)
    assert "95% noise intervals, each separately" in repr(found)


# --- only groups that somebody has ---

PRESENT = {"t": ["a"] * 30 + ["b"] * 10, "u": list(range(40)), "x": [1.0] * 40}


@pytest.mark.parametrize(
    "how", ["pandas", "polars", "lazy polars", pytest.param("duckdb", marks=pytest.mark.slow), "skip", "clip"]
)
def test_a_group_that_nobody_has_is_never_named(how: str) -> None:
    """Intervals begin at one unit.  If it got noise it would be named in a third of 18 discoveries.

    With "skip" and "clip" everybody has spent their budget at last, and then no group has anybody who takes part.
    """
    table: Any = pd.DataFrame(PRESENT)
    if how == "duckdb":
        table = duckdb.connect().from_df(table)
    elif "polars" in how:
        table = pl.from_pandas(table).lazy() if how.startswith("lazy") else pl.from_pandas(table)
    individual = {"accounting": "individual", "on_exhausted": how} if how in ("skip", "clip") else {}
    named: list[Any] = []
    for seed in range(6):
        session = dpnb.Session(
            table,
            name="present",
            schema={"t": dpnb.Categories(["a", "b", "nobody"]), "x": dpnb.Bounded(0, 1)},
            privacy_unit="u",
            max_rows_per_unit=1,
            budget=dpnb.Budget(epsilon=1, delta=0.97, discovery_delta=0.92),
            ledger=":memory:",
            not_private_test_seed=seed,
            **individual,
        )
        frame = session.frame
        views = [frame, frame[frame["x"] > -1], frame[frame["t"] == "a"]]
        named += [view.discover("t", discovery_delta=0.3).release(mu=0.01).keys for view in views]
        if individual:
            frame.count_units().release(share=0.999)
            assert frame.discover("t", discovery_delta=0.01).release(mu=1).keys == ()
    assert not any(("nobody",) in keys for keys in named)
    assert not any(("b",) in keys for keys in named[2::3])
    assert sum(("a",) in keys for keys in named) > 3


# --- what is said elsewhere ---


@pytest.mark.parametrize("mu", [0.05, 0.1, 1.0])
def test_the_preview_tells_the_widest_interval_that_can_come(session: dpnb.Session, mu: float) -> None:
    preview = session.frame.discover("t").preview(mu=mu)
    sigma = 1 / mu
    steps = np.linspace(0, 6 * 2**20 * sigma / 2 ** (math.frexp(sigma)[1] - 1), 5000).astype(int).tolist()
    widths = at_excess(steps, sigma).half_width
    assert widths.max() <= preview.expected_error <= widths.max() * 1.05 + 1  # type: ignore[operator]
    assert preview.expected_error > 1.5 * -sigma * ndtri(0.025)  # type: ignore[operator]
    assert "far above" in str(preview.assumption)
    assert widest(sigma, threshold_for(sigma, 1, DELTA), 0.05) == preview.expected_error


def test_within_holds_for_every_group_that_is_named(session: dpnb.Session) -> None:
    answer = session.frame.discover("t").release(within=25)
    assert len(answer.keys) == 3
    assert (answer.arrays.half_width <= 25).all()


def test_intervals_that_hold_at_once_have_no_error_beforehand(session: dpnb.Session) -> None:
    found = session.frame.discover("t")
    preview = found.preview(mu=0.1, simultaneous=True)
    assert preview.expected_error is None
    assert "the number of groups that are named" in str(preview.assumption)
    with pytest.raises(ErrorEstimateUnavailable, match=r"how many groups are named.*simultaneous"):
        found.release(within=30, simultaneous=True)


def test_every_face_says_what_the_intervals_hold_given(session: dpnb.Session, found: Any) -> None:
    words = "intervals conditional on the discovery of the groups"
    count = session.frame.count().release(mu=0.1)
    for one in (found, found["many"], found["many"] - found["some"], count - found["some"], 2 * found - 1, -found):
        assert words in repr(one)
        assert words in one._repr_html_()
    assert 'href="#dpnb-explain-named"' in found._repr_html_()
    assert any(one.id == "named" for one in dpnb.render.refusals.EXPLANATIONS)
    assert words in re.sub("<[^>]*>+", " ", found.plot().layout.title.text).replace("  ", " ").replace("  ", " ")
    assert words not in repr(count)
    assert "given that a group was released" in repr(session.frame.discover("t").explain())


def test_the_log_tells_the_errors_that_the_answer_has(session: dpnb.Session, found: Any) -> None:
    half = float(found.arrays.half_width.max())
    assert f"± {half:.0f} at 95% or better (noise)" in session.log["error"].tolist()


def test_a_number_that_is_added_moves_the_interval(found: Any) -> None:
    moved = found - 5
    assert moved.arrays.low.tolist() == (found.arrays.low - 5).tolist()
    assert moved.arrays.high.tolist() == (found.arrays.high - 5).tolist()
    assert (found / 2).arrays.low.tolist() == (found.arrays.low / 2).tolist()
    assert (5 - found).arrays.high.tolist() == (5 - found.arrays.low).tolist()


def test_a_discovery_is_not_refined_and_says_why(session: dpnb.Session, found: Any) -> None:
    spent = session.spent
    with pytest.raises(
        RequestError, match=r"each observation of a discovery has its own groups.*query the discovered groups"
    ):
        found.refine(mu=0.2)
    with pytest.raises(RequestError, match="each discovery is a separate query"):
        _ = found.history
    assert session.spent == spent


def test_groups_that_were_found_are_asked_about_with_noise_of_their_own(session: dpnb.Session, found: Any) -> None:
    """The truncated look has no part in what is known of them: the full price, and the plain interval."""
    keys = [key[0] for key in found.keys]
    query = session.frame.groupby("t", keys=keys).count_units()
    assert query.preview(mu=0.1).cost == query.preview(mu=0.1).total_loss
    answer = query.release(mu=0.1, final=True)
    assert answer.n_observations == 1
    assert answer.arrays.half_width[0, 0] == pytest.approx(-10 * ndtri(0.025))
    assert "given" not in repr(answer)
    assert not answer.measurement_ids[0] & found.measurement_ids[0]


def test_another_discovery_is_another_answer(session: dpnb.Session, found: Any) -> None:
    again = session.frame.discover("t").release(mu=0.1, final=True)
    assert again.n_observations == 1
    assert again.arrays.value.tolist() != found.arrays.value.tolist()
    assert session.frame.discover("t").release(mu=0.1).arrays.low.tolist() == found.arrays.low.tolist()
