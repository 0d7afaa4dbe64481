"""A comparison with a number is true or false where the whole interval says so, and raises where it does not."""

from __future__ import annotations

import math
import operator
import pickle
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.errors import RequestError
from dpnb.results.estimates import IntervalArrays
from dpnb.results.tables.intervals import Comparison
from dpnb.results.tables.table import Estimates

OPERATORS: dict[str, Any] = {
    **{">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le},
    **{"==": operator.eq, "!=": operator.ne},
}


def made(*numbers: tuple[float, float, float], source: int = 1) -> Estimates:
    """Value, low and high of one number, or of groups a, b, ..."""
    value, low, high = (np.array(column, float) for column in zip(*numbers, strict=True))
    names, keys = ((), ((),)) if len(numbers) == 1 else (("g",), tuple((chr(97 + i),) for i in range(len(numbers))))
    arrays = IntervalArrays.of(value, low, high, np.ones(len(numbers)))
    ids = tuple(frozenset({(source, cell)}) for cell in range(len(numbers)))
    return Estimates(
        description="mean of x", names=names, keys=keys, outputs=None, arrays=arrays, confidence=0.95,
        measurement_ids=ids,
    )  # fmt: skip


@given(st.sampled_from(list(OPERATORS)), st.integers(-4, 4), st.integers(0, 3), st.integers(-5, 8))
def test_an_outcome_is_what_every_number_of_the_interval_gives(sign: str, low: int, width: int, number: int) -> None:
    compare = OPERATORS[sign]
    points = {bool(compare(low + width * share / 60, number)) for share in range(61)}
    comparison = compare(made((low, low, low + width)), number)
    assert isinstance(comparison, Comparison)
    assert comparison.outcome == (points.pop() if len(points) == 1 else None)
    assert (~comparison).outcome == (None if comparison.outcome is None else not comparison.outcome)
    assert compare(made((low, low, low + width)), np.float64(number)).outcome == comparison.outcome
    assert pickle.loads(pickle.dumps(comparison)).outcome == comparison.outcome


def test_a_decided_comparison_is_a_truth_value_and_an_undecided_one_says_why_not() -> None:
    answer = made((3, 2, 4))
    assert answer > 1
    assert not answer > 5
    assert answer != 9
    assert not bool(answer == 9)
    with pytest.raises(
        RequestError,
        match=r"mean of x > 3: too close to say in this table at 95% confidence: the noise interval is 2 to 4; ",
    ):
        bool(answer > 3)
    with pytest.raises(RequestError, match="too close to say"):
        bool(answer == 3)
    with pytest.raises(RequestError, match="there is no interval"):
        bool(made((3, math.nan, math.nan)) > 3)
    assert made((math.nan, 2, math.inf)) > 1  # an unknown estimate with an interval
    assert 1 < answer  # noqa: SIM300
    assert answer < 10**400  # beyond the range of doubles
    assert answer > -(10**400)
    with pytest.raises(RequestError, match="must be an answer or a finite number"):
        _ = answer + 10**400
    assert max(made((1, 0, 2)), made((9, 8, 10), source=2)).estimate == 9


def test_answers_are_compared_by_their_difference() -> None:
    large, small = made((9, 8, 10)), made((1, 0, 2), source=2)
    assert large > small
    assert not large < small
    assert (made((1.5, 0.5, 2.5), source=3) > small).outcome is None
    with pytest.raises(RequestError, match="same noise"):
        _ = large > large


def test_groups_are_compared_one_by_one() -> None:
    answer = made((3, 2, 4), (9, 8, 10), (1, 0, 2))
    comparison = answer > 3
    outcome: Any = comparison.outcome
    expected = pd.Series({"a": None, "b": True, "c": False}, dtype="boolean").rename_axis("g")
    pd.testing.assert_series_equal(outcome, expected, check_names=False)
    with pytest.raises(RequestError, match=r"several numbers.*\.to_pandas"):
        bool(comparison)
    lines = repr(comparison).splitlines()
    assert [line.split()[:2] for line in lines[2:5]] == [["a", "too"], ["b", "yes"], ["c", "no"]]
    assert "at 95% confidence each" in lines[-1]
    assert "too close to say" in comparison._repr_html_()


def test_an_interval_that_clipping_reduced_to_one_value_decides_nothing_about_that_value() -> None:
    """The whole interval of a count was below 0: one of the few that missed, so 0 is near, but not certain."""
    raw = tuple(np.full((1, 1), x) for x in (-50.0, -90.0, -10.0))
    zero = np.zeros((1, 1))
    arrays = IntervalArrays(raw[0], zero, zero, zero + 20, raw)  # type: ignore[arg-type]
    count = Estimates(description="count", names=(), keys=((),), outputs=None, arrays=arrays, confidence=0.95)
    assert (count > 0).outcome is None
    assert (count == 0).outcome is None
    assert (count < 100).outcome is True
    certain = made((0, 0, 0))
    assert ((certain > 0).outcome, (certain == 0).outcome) == (False, True)


def test_equality_of_two_answers_is_decided_by_the_interval_of_their_difference() -> None:
    answer, near, far = made((3, 2, 4)), made((4, 3, 5), source=2), made((9, 8, 10), source=3)
    assert (answer == near).outcome is (answer != near).outcome is None
    assert ((answer == far).outcome, (answer != far).outcome) == (False, True)
    assert str(answer == far).startswith("[mean of x] - [mean of x] == 0")
    with pytest.raises(RequestError, match=r"== 0: too close to say"):
        assert answer == near
    with pytest.raises(RequestError, match=r"^==: mean of x and mean of x use the same noise"):
        assert answer == made((3, 2, 5))
    with pytest.raises(RequestError, match=r"^==: both answers must have the same groups"):
        assert answer != made((1, 0, 2), (2, 1, 3))
    with pytest.raises(RequestError, match=r"^==: an answer is compared with a number or another answer; got a Series"):
        assert answer == pd.Series([3.0])


def test_equality_with_the_same_answer_and_with_other_objects_is_a_plain_truth_value() -> None:
    answer = made((3, 2, 4))
    assert (answer == made((3, 2, 4)), answer != made((3, 2, 4))) == (True, False)
    assert (answer == "3", answer == None, answer != None, answer == True) == (False, False, True, False)  # noqa: E711, E712
    assert answer in [made((3, 2, 4))]
    assert len({answer, made((3, 2, 4))}) == 1
