"""What is charged has a bounded denominator, so that a sum of charges stays short, and covers the noise exactly."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpnb
from dpnb._core.execution import releases
from dpnb._core.pricing.pricer import QueryPricer, cell_subset
from dpnb._core.pricing.query_state import plan_of, request_of
from dpnb._plan.measurements import PlainView
from dpnb._request import Release
from dpnb._target import target_from
from dpnb.accounting import GDP, GDPFilter, PureDP
from dpnb.accounting.grid import STEP, capped_up, grid_down, grid_up, is_on_grid, loss_up
from dpnb.accounting.losses import ApproxDP, PureGDP
from dpnb.errors import BudgetExceeded, InvalidValueError
from dpnb.interactive import AbsoluteError
from dpnb.mechanisms.gaussian import sigma_for
from rationals import fractions

FINEST = 10**60 * 2**100
BITS = FINEST.bit_length()
SCHEMA = {"x": dpnb.Bounded(0, 10), "g": dpnb.Categories(["a", "b", "c"]), "t": dpnb.Text()}
TABLE = pd.DataFrame({"x": [1.0, 2.0, 3.0] * 40, "g": ["a", "b", "c"] * 40, "t": ["u", "v", "w"] * 40})
FRACTIONS = fractions(0, 10**6)
COUNT = dpnb.Session.rehearse(name="rehearsed", budget=dpnb.Budget.gdp(1), schema=SCHEMA).frame.count().plan
POSITIVE = st.builds(Fraction, st.integers(1, 2**190), st.integers(1, 2**190))


def opened(budget: dpnb.Budget | None = None, **changes: Any) -> dpnb.Session:
    arguments: dict[str, Any] = {"name": "bounded", "schema": SCHEMA, "ledger": ":memory:", "public_size": 120}
    return dpnb.Session(TABLE, **{**arguments, "budget": budget or dpnb.Budget.gdp(1000), **changes})


def longest(session: dpnb.Session) -> int:
    return max(part.denominator.bit_length() for part in session.filter.spent.parts)


# --- the grid -------------------------------------------------------------------------------------------------------


@given(number=FRACTIONS | POSITIVE)
def test_a_number_is_rounded_by_less_than_a_step_in_the_named_direction(number: Fraction) -> None:
    below, above = grid_down(number), grid_up(number)
    assert number - STEP < below <= number <= above < number + STEP
    assert is_on_grid(below)
    assert is_on_grid(above)
    assert (below == number == above) == is_on_grid(number)


@given(number=st.decimals(0, 10**6, places=17) | st.floats(1e-12, 1e6))
def test_what_is_written_as_a_double_or_a_decimal_is_charged_as_it_is(number: Any) -> None:
    loss = GDP(number)
    assert grid_down(loss.mu_squared) == loss.mu_squared
    assert loss_up(loss) is loss


@given(losses=st.lists(FRACTIONS, max_size=20), budget=fractions(0, 30, max_denominator=999))
def test_mechanisms_never_make_the_sum_longer_even_at_the_end_of_a_budget_that_is_not_on_the_grid(
    losses: list[Fraction], budget: Fraction
) -> None:
    state = GDPFilter.from_loss(GDP.from_mu_squared(budget))
    limit = math.lcm(FINEST, budget.denominator)
    for squared in [*losses, budget / 3, budget / 7, *(budget - sum(losses, Fraction(0)) for _ in "1" if losses)]:
        if squared < 0:
            continue
        charged = capped_up(GDP.from_mu_squared(squared), state)
        assert charged.mu_squared >= squared
        if GDP.from_mu_squared(squared).within(state.affordable()):
            state = state.step(charged)  # rounding alone never makes it too large
        assert not limit % state.spent.mu_squared.denominator


@given(epsilon=POSITIVE, delta=fractions(0, 1))
def test_losses_of_mechanisms_are_never_rounded_down(epsilon: Fraction, delta: Fraction) -> None:
    for loss in (PureDP(epsilon), ApproxDP(epsilon, delta), PureGDP.of(epsilon, delta, epsilon)):
        assert all(new >= old for new, old in zip(loss_up(loss).parts, loss.parts, strict=True))


# --- charges of a session -------------------------------------------------------------------------------------------


def of_every_kind(session: dpnb.Session, prime: int) -> None:
    """Charges whose losses would have always new denominators."""
    f, name = session.frame, str(prime)
    rows = f[f["x"] < prime / 100]
    part = Fraction(1, prime)
    rows.count().release(mu=part)
    rows.count().release(mu=part + Fraction(1, 7 * prime))
    rows["x"].sum().release(rho=part / 3)
    rows["x"].sum().release(within=prime / 7)
    rows.groupby("g").size().release(share=part / 10**6)
    rows.groupby("g").size().release(mu=1 + part, groups=["a"])
    session.plan([rows.groupby("g")["x"].mean(), rows["x"].var()]).release(mu=part)
    rows.groupby("g").size().top(1).release(epsilon=part)
    session.above_threshold(prime, name=f"scan {name}", epsilon=part)
    session.above_threshold(prime, name=f"gaussian {name}", mu=part, max_queries=3)
    session.delegate(name=f"mu {name}", mu=part)
    session.delegate(name=f"budget {name}", budget=dpnb.Budget.from_mu_squared(part))
    session.noise_reduction(rows["x"].mean(), name=f"reduced {name}", initial_mu=part, max_mu=3 * part).until(
        AbsoluteError(1e-9)
    )


def uncovered(session: dpnb.Session) -> list[str]:
    """Rows of the ledger whose noise loses more than was charged, exactly."""
    pricer, found = session._core.pricer, []
    for row in session.ledger.charges():
        if row.sigma is None:
            continue
        plan = plan_of(row)
        query, request = pricer.tables.compile(plan), request_of(row)
        groups = request.target.groups if isinstance(request, Release) else ()  # a table of a batch has all
        measured = pricer.tables.compile(plan, cell_subset(query, groups))
        if Fraction(measured.l2_sensitivity_squared) / Fraction(row.sigma) ** 2 > row.gdp.mu_squared:
            found.append(row.request)
    return found


def test_charges_of_every_kind_are_bounded_and_cover_their_noise() -> None:
    session = opened()
    for prime in (101, 103):
        of_every_kind(session, prime)
    assert len(session.ledger.charges()) > 30
    assert longest(session) <= BITS
    assert uncovered(session) == []


def test_the_audit_finds_noise_that_loses_more_than_was_charged(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: noise for the cost before it is rounded down."""
    session = opened()
    monkeypatch.setattr(releases, "sigma_for", lambda squared, loss: sigma_for(squared, GDP(loss.mu * (1 + 1e-9))))
    session.frame.count().release(mu="1/3")
    assert uncovered(session)


@pytest.mark.slow
def test_hundreds_of_charges_of_every_kind_are_no_longer_than_a_few() -> None:
    session = opened()
    primes = [n for n in range(101, 300) if all(n % k for k in range(2, 18))]
    lengths = []
    for prime in primes[:10]:
        of_every_kind(session, prime)
        lengths.append(longest(session))
    assert max(lengths) <= BITS
    assert uncovered(session) == []
    assert sum((row.gdp.mu_squared for row in session.ledger.charges() if row.sigma), Fraction(0)) > 0


def test_deltas_of_discoveries_are_bounded() -> None:
    session = opened(dpnb.Budget(epsilon=100, delta=1e-3, discovery_delta=5e-4))
    for prime in (101, 103, 107):
        answer = session.frame.discover("t", discovery_delta=Fraction(1, 10**6 * prime)).release(mu=0.1)
        assert answer.cost.delta <= Fraction(1, 10**6 * prime)
    spent = session.filter.spent.delta
    assert Fraction(299, 10**8) > spent > Fraction(28, 10**9)
    assert not 10**40 % spent.denominator


def bits_of_sum(charge: Callable[[QueryPricer, Fraction], Fraction], number: int) -> int:
    """The length of the sum of charges for different fractions of 199 bits."""
    session, total = opened(), Fraction(0)
    for index in range(number):
        total += charge(session._core.pricer, Fraction(2**198 + index, 2**199 - 2 * index - 1))
    return total.denominator.bit_length()


def priced(pricer: QueryPricer, mu: Fraction) -> Fraction:
    state = pricer.state(COUNT, PlainView(), ())
    return pricer.price(state, target_from(mu=mu), None)[2].mu_squared


def unrounded(pricer: QueryPricer, mu: Fraction) -> Fraction:
    """What was charged before: the control."""
    return mu**2


def test_the_sum_of_thousands_of_charges_is_no_longer_than_that_of_one() -> None:
    assert bits_of_sum(priced, 2000) <= BITS
    assert bits_of_sum(unrounded, 60) > 60 * 300


@settings(deadline=None, max_examples=30)
@given(mu=st.builds(Fraction, st.integers(1, 2**150), st.integers(1, 2**150)))
def test_a_loss_as_written_is_never_exceeded_and_nearly_met(mu: Fraction) -> None:
    if not Fraction(1, 10**12) <= mu <= 10**6:
        mu = Fraction(1, 3)
    squared = priced(opened()._core.pricer, mu)
    assert mu**2 - STEP < squared <= mu**2


# --- the ends of budgets --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", ["1", "1/3", "1/7"])
def test_a_share_of_one_takes_exactly_what_is_left(budget: str) -> None:
    session = opened(dpnb.Budget.gdp(budget))
    session.frame.count().release(mu=Fraction(budget) / 3)
    session.frame["x"].sum().release(share=1)
    assert session.filter.spent == session.filter.budget
    assert session.headroom == 0


def test_a_mu_of_the_whole_budget_fits_and_a_second_does_not() -> None:
    session = opened(dpnb.Budget.gdp("1/3"))
    session.frame.count().release(mu="1/3")
    assert session.headroom == 0
    with pytest.raises(BudgetExceeded):
        session.frame["x"].sum().release(mu=1e-3)


def test_ten_tenths_are_one_and_an_eleventh_is_refused() -> None:
    session = opened(dpnb.Budget.from_mu_squared(1))
    f = session.frame
    for number in range(10):
        f[f["x"] < number].count().release(rho="0.05")
    assert session.filter.spent == GDP(1)
    with pytest.raises(BudgetExceeded):
        f["x"].sum().release(rho="0.05")


def test_a_budget_that_is_not_on_the_grid_can_be_delegated_in_full() -> None:
    session = opened(dpnb.Budget.gdp("1/3"))
    inner = session.delegate(name="all", mu="1/3")
    assert session.headroom == 0
    assert inner.frame.count().release(share=1).cost == GDP("1/3")


def test_numbers_of_thousands_of_digits_are_refused_and_cost_nothing() -> None:
    session, long = opened(), Fraction(10**1900, 10**1901 + 1)
    f = session.frame
    for ask in (
        lambda: f.count().release(mu=long),
        lambda: f.count().release(rho=long),
        lambda: f.count().release(epsilon=long),
        lambda: f.count().release(share=long),
        lambda: f.groupby("g").size().top(1).release(epsilon=long),
        lambda: session.above_threshold(3, name="a", epsilon=long),
        lambda: session.above_threshold(3, name="b", mu=long, max_queries=2),
        lambda: session.delegate(name="c", mu=long),
        lambda: session.delegate(name="d", budget=dpnb.Budget.from_mu_squared(long)),
        lambda: session.noise_reduction(f.count(), initial_mu=long),
    ):
        with pytest.raises(InvalidValueError, match=r"at most \d+ bits"):
            ask()
    assert session.ledger.charges() == []


def test_a_half_width_is_met_although_its_loss_is_rounded() -> None:
    for width in (Fraction(1, 3), 7, 10**9, 10**17):  # the last of which needs less than a step of the grid
        answer = opened().frame["x"].sum().release(within=width)
        assert answer.cost.mu_squared >= STEP
        low, high = answer.interval
        assert (high - low) / 2 <= float(width) * (1 + 1e-12)
