"""Vectors are clipped to what is left of a unit's norm budget: never longer, and nobody's budget is overdrawn."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.individual import NormFilter
from dpnb.errors import InvalidValueError

UNITS = 3
amounts = st.one_of(st.floats(0, 2), st.floats(0, 1e-300), st.floats(0, 1e300), st.sampled_from([0.0, 0.1, 0.3, 0.5]))
rows = st.lists(st.lists(amounts, min_size=UNITS, max_size=UNITS), max_size=8)


@given(st.floats(0.1, 3), st.floats(0.1, 9), rows)
def test_norms_stay_within_clip_and_budget(clip: float, budget: float, history: list[list[float]]) -> None:
    bound, limit = Fraction(clip), Fraction(budget)
    state = NormFilter(bound, limit, UNITS)
    paid = [Fraction(0)] * UNITS
    for norms in history:
        radii = state.radius.tolist()
        state, clipped = state.step(norms)
        for unit, (norm, radius) in enumerate(zip(norms, radii, strict=True)):
            assert clipped[unit] == min(norm, radius)
            assert Fraction(radius) <= bound
            assert Fraction(radius) ** 2 <= limit - paid[unit]
        paid = [p + Fraction(c) ** 2 for p, c in zip(paid, clipped.tolist(), strict=True)]
        assert all(p <= Fraction(s) <= limit for p, s in zip(paid, state.spent.tolist(), strict=True))


def test_clip_radius_is_the_square_root_of_what_is_left() -> None:
    norms, expected = [5, 0.5, 3, 0, 2, 2, 2, 2], [1, 0.5, 1, 0, 1, math.sqrt(0.75), 0, 0]
    state = NormFilter(1, 4, 1)
    for norm, figure in zip(norms, expected, strict=True):
        state, clipped = state.step([norm])
        assert clipped[0] == pytest.approx(figure, rel=1e-15, abs=0)
    assert NormFilter(2, 1, 1).radius.tolist() == [1]


def test_a_unit_is_active_only_while_its_radius_is_above_zero() -> None:
    state, _ = NormFilter(2, 2, 2).step([9.0, 0.0])
    assert state.active.tolist() == [False, True]


def test_a_float_clip_is_never_exceeded_by_a_radius() -> None:
    # The double 0.1 is above a tenth, the double 0.3 below three tenths.
    for clip in (0.1, 0.3):
        radius = Fraction(NormFilter(clip, 4, 1).radius.tolist()[0])
        assert radius <= min(Fraction(clip), Fraction(repr(clip)))


def test_a_filter_is_a_value() -> None:
    start = NormFilter(1, 1, 2)
    one, _ = start.step([0.5, 0.25])
    same, _ = NormFilter(1, 1, 2).step([0.5, 0.25])
    assert start.spent.tolist() == [0, 0]
    assert one == same != start == NormFilter(1, 1, 2) != NormFilter(1, 2, 2)
    assert hash(one) == hash(same)
    with pytest.raises(ValueError, match="read-only"):
        one.spent[0] = 0


@pytest.mark.parametrize(("clip", "norm_budget"), [(0, 1), (1, -1), (1, Fraction(2) ** 1000)])
def test_bad_settings_are_refused(clip: int, norm_budget: Fraction) -> None:
    with pytest.raises(InvalidValueError):
        NormFilter(clip, norm_budget, 1)
