"""Arithmetic between answers: what it gives, and what it refuses."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import DpnbError, RequestError
from dpnb.results.estimates import IntervalArrays
from dpnb.results.tables.table import Estimates

Sources = frozenset[tuple[int, int]]


def number(value: float, reach: float, ledger: int, *, confidence: float = 0.95) -> Estimates:
    return numbers({"": (value, reach)}, ledger, confidence=confidence)


def numbers(groups: dict[str, tuple[float, float]], ledger: int, *, confidence: float = 0.95) -> Estimates:
    """Numbers by group, each of its own noise, with symmetrical intervals; one without a name stands alone."""
    value, reach = np.array(list(groups.values())).T
    keys = tuple((key,) if key else () for key in groups)
    return Estimates(
        description=f"answer {ledger}",
        names=("g",) if keys[0] else (),
        keys=keys,
        outputs=None,
        arrays=IntervalArrays.of(value, value - reach, value + reach, reach / 2),
        confidence=confidence,
        measurement_ids=tuple(frozenset({(ledger, cell)}) for cell in range(len(groups))),
    )


@pytest.fixture
def session() -> dpnb.Session:
    table = pd.DataFrame(
        {"x": [float(i % 11) for i in range(3000)], "g": [("a", "b", "c")[i % 3] for i in range(3000)]}
    )
    return dpnb.Session(
        table,
        name="figures",
        budget=dpnb.Budget.gdp(100),
        schema={"x": dpnb.Bounded(0, 10), "g": dpnb.Categories(["a", "b", "c"])},
        ledger=":memory:",
        not_private_test_seed=5,
    )


# --- what it gives ---


def test_distances_of_independent_answers_add_in_squares() -> None:
    difference = number(10, 3, 1) - number(4, 4, 2)
    assert (difference.estimate, difference.interval) == (6, (1, 11))
    assert difference.noise_scale == pytest.approx(2.5)
    together = number(10, 3, 1) + number(4, 4, 2)
    assert (together.estimate, together.interval) == (14, (9, 19))


def test_a_ratio_is_fiellers() -> None:
    """Every phi with |a - phi b| within the reach of both is in the interval, and no other: scanned."""
    a, b, reach_a, reach_b = 30.0, 20.0, 4.0, 5.0
    ratio = number(a, reach_a, 1) / number(b, reach_b, 2)
    places = np.linspace(0, 5, 2_000_001)
    inside = places[np.abs(a - places * b) <= np.hypot(reach_a, places * reach_b)]
    assert ratio.estimate == pytest.approx(1.5)
    assert ratio.interval == pytest.approx((inside.min(), inside.max()), abs=1e-5)


@pytest.mark.parametrize("sign", [1, -1])
def test_a_ratio_by_what_may_be_nothing_may_be_anything(sign: int) -> None:
    assert (number(30, 4, 1) / number(sign * 3, 5, 2)).interval == (-math.inf, math.inf)


def test_a_ratio_by_a_negative_number_has_its_ends_in_order() -> None:
    ratio = number(30, 4, 1) / number(-20, 5, 2)
    positive = number(30, 4, 1) / number(20, 5, 2)
    assert ratio.interval == pytest.approx(tuple(-end for end in positive.interval[::-1]))  # type: ignore[union-attr]


def test_numbers_shift_and_scale_an_answer() -> None:
    answer = number(10, 3, 1)
    assert (answer + 5).interval == (12, 18)
    assert (5 - answer).interval == (-8, -2)
    assert (answer * -2).interval == (-26, -14)
    assert (answer / 4).interval == pytest.approx((1.75, 3.25))
    assert (-answer).estimate == -10
    assert (answer * -2).noise_scale == 3


def test_groups_are_combined_one_by_one_and_with_one_number() -> None:
    mine, yours = numbers({"a": (10, 3), "b": (20, 4)}, 1), numbers({"a": (4, 4), "b": (5, 3)}, 2)
    assert (mine - yours).estimate.tolist() == [6, 15]  # type: ignore[union-attr]
    assert (mine - number(1, 0, 3)).estimate.to_dict() == {"a": 9, "b": 19}  # type: ignore[union-attr]
    assert (mine - yours)["b"].interval == (10, 20)


def test_what_is_known_for_sure_adds_nothing() -> None:
    assert (number(10, 3, 1) - number(4, 0, 2)).interval == (3, 9)


@pytest.mark.parametrize("combine", [lambda a, b: a - b, lambda a, b: a + b, lambda a, b: b - a])
def test_an_operand_of_which_nothing_is_known_adds_all_that_it_can_be(
    combine: Callable[[Estimates, Estimates], Estimates],
) -> None:
    """A mean between 0 and 10 whose count drowns has no estimate; what it gives still has an interval that holds."""
    nothing = IntervalArrays.of(np.array([np.nan]), np.array([0.0]), np.array([10.0]), np.array([np.nan]))
    drowned = Estimates(
        description="mean",
        names=(),
        keys=((),),
        outputs=None,
        arrays=nothing,
        confidence=0.95,
        measurement_ids=(frozenset({(2, 0)}),),
    )
    low, high = combine(number(100, 1, 1), drowned).interval  # type: ignore[misc]
    sure = sorted(combine(100.0, end) for end in (0.0, 10.0))  # type: ignore[arg-type]
    assert low <= sure[0]
    assert high >= sure[1]


# --- what it refuses ---


def test_operands_of_the_same_noise_are_refused(session: dpnb.Session) -> None:
    frame = session.frame
    counts = frame.groupby("g").count().release(mu=1)
    again = counts.refine(mu=2)
    for other in (again, counts["a"], again["a"], counts.proportions(), counts.proportions()["a"]):
        with pytest.raises(RequestError, match="same noise"):
            _ = other - counts["a"]
    moments = frame["x"].var().release(mu=1)
    with pytest.raises(RequestError, match="same noise"):
        _ = frame["x"].std().release(mu=1) / moments


def test_a_group_and_its_answer_are_compared(session: dpnb.Session) -> None:
    """The group itself is known exactly relative to itself; the others have noise of their own."""
    counts = session.frame.groupby("g").count().release(mu=1)
    relative, less = counts / counts["a"], counts - counts["a"]
    assert relative["a"].interval == (1.0, 1.0)
    assert less["a"].interval == (0.0, 0.0)
    for group in ("b", "c"):
        assert relative[group].interval == (counts[group] / counts["a"]).interval
        assert less[group].interval == (counts[group] - counts["a"]).interval
        assert less[group].population_interval == (counts[group] - counts["a"]).population_interval
    with pytest.raises(RequestError, match="same noise"):
        _ = counts + counts["a"]


def test_groups_of_one_answer_have_noise_of_their_own(session: dpnb.Session) -> None:
    counts = session.frame.groupby("g").count().release(mu=1)
    refined = counts.refine(mu=2, groups=["a"])
    low, high = (refined["a"] - counts["b"]).interval  # type: ignore[misc]
    assert low < 0 < high
    other = session.frame["x"].mean().release(mu=1)
    assert (other - counts["a"]).estimate == pytest.approx(float(other) - float(counts["a"]))


def test_a_combination_remembers_what_it_rests_on(session: dpnb.Session) -> None:
    counts = session.frame.groupby("g").count().release(mu=1)
    difference = counts["a"] - counts["b"]
    with pytest.raises(RequestError, match="same noise"):
        _ = difference - counts["b"]
    assert (difference - counts["c"]).estimate == pytest.approx(float(difference) - float(counts["c"]))
    assert (difference * 2).notice == counts.notice is not None


@pytest.mark.parametrize(
    ("combine", "word"),
    [
        (lambda a: a / 0, "divisor must not be 0"),
        (lambda a: a + "1", "number"),
        (lambda a: a + True, "number"),
        (lambda a: a * math.inf, "number"),
        (lambda a: a * number(1, 1, 9), "multiplied by a number"),
        (lambda a: a - number(1, 1, 9, confidence=0.9), "confidence"),
        (lambda a: a - numbers({"a": (1, 1)}, 9), "same groups"),
        (lambda a: numbers({"a": (1, 1)}, 8) - numbers({"b": (1, 1)}, 9), "same groups"),
    ],
)
def test_what_has_no_honest_interval_is_refused(combine: Callable[[Any], Any], word: str) -> None:
    with pytest.raises(DpnbError, match=word):
        combine(number(10, 3, 1))


def test_shares_need_counts_or_sums_by_group(session: dpnb.Session) -> None:
    frame = session.frame
    for query in (frame.count(), frame.groupby("g")["x"].mean()):
        with pytest.raises(DpnbError, match="proportions: "):
            query.release(mu=1).proportions()
    counts = frame.groupby("g").count().release(mu=1)
    spent = session.spent
    shares = counts.proportions()
    assert shares.estimate.sum() == pytest.approx(1)  # type: ignore[union-attr]
    assert session.spent == spent
