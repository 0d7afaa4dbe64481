"""Many rows of the ledger counted at once: the same as one after the other."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpnb._core.accountant.comparison import ChargeBatch, FilterComparison
from dpnb.accounting.budget import Budget
from dpnb.accounting.guarantee import FILTERS, make_guarantee
from dpnb.accounting.losses import GDP, ZCDP
from dpnb.accounting.odometers import MixtureOdometer

MUS = st.sampled_from(["0", "0.01", "0.05", "0.1", "1/3", "0.7", "3"])


def fresh(name: str, *, individual: bool = False) -> FilterComparison:
    own = make_guarantee(name, Budget(epsilon=8, delta=1e-6), individual=individual)
    return FilterComparison.initial(own, MixtureOdometer(Fraction(1, 10), Fraction(1, 10**6)), 1000)


def one_by_one(comparison: FilterComparison, losses: list[GDP], first: int = 1) -> FilterComparison:
    for number, loss in enumerate(losses, start=first):
        comparison = comparison.after(number, loss)
    return comparison


@pytest.mark.parametrize("individual", [False, True], ids=["worst-case", "individual"])
@pytest.mark.parametrize("name", FILTERS)
@settings(max_examples=15, deadline=None)
@given(before=st.lists(MUS, max_size=3), mus=st.lists(MUS, min_size=1, max_size=30))
def test_a_run_is_counted_as_its_rows_one_after_the_other(
    name: str, individual: bool, before: list[str], mus: list[str]
) -> None:
    if individual and name not in ("gdp", "zcdp"):
        return
    start = one_by_one(fresh(name, individual=individual), [GDP(mu) for mu in before])
    losses = [GDP(mu) for mu in mus]
    rows = list(enumerate(losses, start=len(before) + 1))
    assert start.after_batch(ChargeBatch(rows)) == one_by_one(start, losses, len(before) + 1)


def test_filter_that_refuses_within_a_run_stays_at_the_row_that_it_refused() -> None:
    start = fresh("gdp")
    losses = [GDP("0.1")] * 20_000
    told = start.after_batch(ChargeBatch(list(enumerate(losses, start=1)))).states
    assert {name for name, standing in told.items() if standing.refused_at} == set(FILTERS)
    for standing in told.values():
        fits = standing.guarantee.initial_filter.max_repetitions(standing.guarantee.to_filter_loss(losses[0]))
        assert standing.refused_at == fits + 1


def test_odometer_that_could_not_count_an_earlier_row_stays_away() -> None:
    start = one_by_one(fresh("gdp"), [ZCDP("0.01")])  # type: ignore[list-item]  # of a sub-session
    after = start.after_batch(ChargeBatch([(2, GDP("0.1"))]))
    assert "gdp-accumulator" not in after.odometers
    assert after == start.after(2, GDP("0.1"))
