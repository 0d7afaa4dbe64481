"""What is public under individual accounting: no less than what any unit has spent; it refuses only deltas."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpnb.accounting.filters import ApproxDPFilter, GDPFilter, ZCDPFilter
from dpnb.accounting.individual import IndividualFilter, worst_case_filter
from dpnb.accounting.losses import GDP, ZCDP
from dpnb.errors import BudgetExceeded, InvalidValueError
from rationals import fractions

questions = st.lists(st.tuples(fractions(0, 2), st.lists(fractions(0, 1), min_size=3, max_size=3)), max_size=9)


@given(questions, st.sampled_from(["skip", "drop"]))
def test_no_unit_spends_more_than_the_worst_case_and_while_it_fits_nobody_is_left_out(history, mode) -> None:  # type: ignore[no-untyped-def]
    worst, units = worst_case_filter(GDPFilter(1)), IndividualFilter(1, 3, mode)
    surely = True
    for whole, shares in history:
        loss = GDP.from_mu_squared(whole)
        surely = surely and worst.admits_all_units(loss)
        worst = worst.step(loss)
        losses = [whole * share for share in shares]
        if surely:
            units = units.charge(losses)
        else:
            units, _ = units.step(losses)
        assert worst.spent.mu_squared <= 1
        for spent in units.spent.tolist():
            assert Fraction(spent) <= worst.spent.mu_squared * (1 + Fraction(1, 10**14)) + Fraction(1, 10**300)
        assert worst.is_exhausted == (worst.headroom == 0) or worst.headroom < 1e-15


def test_it_stays_full_for_cheaper_questions_than_the_one_that_filled_it() -> None:
    worst = worst_case_filter(ZCDPFilter(1)).step(ZCDP(0.9))
    assert worst.max_repetitions(ZCDP(0.05)) == 2
    assert not worst.admits_all_units(ZCDP(0.2))
    after = worst.step(ZCDP(0.2))
    assert (
        after.is_exhausted,
        after.headroom,
        after.max_repetitions(ZCDP(0.05)),
        after.admits_all_units(ZCDP(0.05)),
    ) == (True, 0.0, 0, False)
    assert after.unit_budget == 2, "rho 1 is mu squared 2"


def test_deltas_are_everybodys_and_refused_as_everywhere() -> None:
    worst = worst_case_filter(GDPFilter(1, delta=0.01))
    assert worst.admits(GDP(5, delta=0.01))
    worst = worst.step(GDP(5, delta=0.008))
    assert not worst.admits(GDP(0.1, delta=0.003))
    with pytest.raises(BudgetExceeded, match="delta"):
        worst.step(GDP(0.1, delta=0.003))


def test_other_filters_have_no_theorem_for_it() -> None:
    with pytest.raises(
        InvalidValueError, match="accounting: 'individual' is proved for filter='gdp' and filter='zcdp'"
    ):
        worst_case_filter(ApproxDPFilter(1, conversion_delta=1e-6, slack_delta=0))
