"""The GDP filter with an empty reserve for pure-DP losses is the GDP filter without one, whatever happened before."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from dpnb.accounting import GDP, ApproxDP, GDPFilter, Loss, PureDP, PureGDP
from dpnb.accounting.exact import exact
from dpnb.errors import BudgetExceeded
from rationals import fractions

amounts = st.one_of(st.just(Fraction(0)), fractions(Fraction(1, 1000), Fraction(1, 2), max_denominator=1000))
deltas = st.sampled_from([Fraction(0), Fraction(1, 10**9), Fraction(1, 10**7)])
losses = st.one_of(
    st.builds(lambda mu, delta: GDP(mu, delta), amounts, deltas),
    st.builds(PureDP, amounts),
    st.builds(lambda epsilon, delta: ApproxDP(epsilon, delta), amounts, deltas),
    st.builds(lambda epsilon, mu: PureGDP(epsilon, mu=mu), amounts, amounts),
)


def parts(loss: Any) -> tuple[Fraction, Fraction]:
    """Mu squared and delta of a loss that has no epsilon."""
    assert getattr(loss, "epsilon", 0) == 0
    return loss.mu_squared, loss.delta


def repeated(filter_: Any, loss: Loss) -> tuple[int, Any]:
    """How often a loss is admitted, up to 20 times, and the filter after that."""
    for count in range(20):
        if not filter_.admits(filter_.launch_charge(loss)):
            return count, filter_
        filter_ = filter_.step(filter_.launch_charge(loss))
    return 20, filter_


def refusal(filter_: Any, loss: Loss) -> str:
    try:
        filter_.step(filter_.launch_charge(loss))
    except BudgetExceeded as error:
        return str(error)
    return ""


def assert_equal(without: Any, empty: Any, loss: Loss) -> None:
    """Everything that the two filters say about a loss and about themselves."""
    charge, other = without.launch_charge(loss), empty.launch_charge(loss)
    assert parts(charge) == parts(other)
    assert without.admits(charge) == empty.admits(other)
    assert without.budget_fraction(charge) == empty.budget_fraction(other)
    assert without.max_repetitions(loss) == empty.max_repetitions(loss)
    assert refusal(without, loss) == refusal(empty, loss)
    assert parts(without.spent) == parts(empty.spent)
    assert parts(without.budget) == parts(empty.budget)
    assert parts(without.affordable()) == parts(empty.affordable())
    assert without.headroom == empty.headroom
    for words in ("rule", "label", "theorem", "guarantee", "spent_words", "reserve", "mu_squared_left"):
        assert getattr(without, words) == getattr(empty, words)
    assert without.recorded_charge(loss, charge) == empty.recorded_charge(loss, other)
    recorded = without.recorded_charge(loss, charge)
    assert parts(without.recorded_loss(loss, recorded)) == parts(empty.recorded_loss(loss, recorded)) == parts(charge)
    assert {"kind": "pure-gdp", "epsilon": "0"} | {
        **without.spent.to_json(),
        "kind": "pure-gdp",
    } == empty.spent.to_json()
    for delta in (0, "1e-7", "1e-6", "0.5"):
        assert without.guaranteed_epsilon(exact(delta)) == empty.guaranteed_epsilon(exact(delta))


@example(Fraction(1), Fraction(0), [PureDP("1/1000")] * 3)
@example(Fraction(1, 10), Fraction(1, 10**7), [GDP("1/10", "1/10000000"), GDP("1/10")])
@example(Fraction(1), Fraction(0), [PureGDP("1/5", mu="1/2")])
@given(amounts, deltas, st.lists(losses, min_size=1, max_size=6))
def test_empty_reserve_changes_nothing(mu: Fraction, delta: Fraction, history: list[Loss]) -> None:
    without: Any = GDPFilter(mu, delta)
    empty: Any = GDPFilter.from_loss(PureGDP(0, mu, delta))
    for loss in history:
        assert_equal(without, empty, loss)
        if without.admits(without.launch_charge(loss)):
            charge = without.launch_charge(loss)
            without, empty = without.step(charge), empty.step(PureGDP.of(*parts(charge), Fraction(0)))
            assert_equal(without, empty, loss)


@given(fractions(Fraction(1, 5), 1, max_denominator=20), losses)
def test_repetitions_are_counted_alike(mu: Fraction, loss: Loss) -> None:
    (count, without), (other, empty) = (
        repeated(each, loss) for each in (GDPFilter(mu), GDPFilter.from_loss(PureGDP(0, mu)))
    )
    assert count == other
    assert parts(without.spent) == parts(empty.spent)
