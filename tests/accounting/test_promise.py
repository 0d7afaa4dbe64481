"""One budget kept by each filter, when every release is Gaussian."""

from __future__ import annotations

import itertools
import json
import math
from fractions import Fraction
from typing import get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpnb.accounting.budget import Budget
from dpnb.accounting.conversions import epsilon_from_mu
from dpnb.accounting.exact import display_down, exact
from dpnb.accounting.filters import RDPFilter
from dpnb.accounting.guarantee import FILTERS, FilterName, make_guarantee
from dpnb.accounting.losses import GDP, ApproxDP
from dpnb.errors import BudgetExceeded, InvalidValueError, LedgerError

BUDGET = Budget(epsilon=1, delta=1e-6)
every_filter = pytest.mark.parametrize("name", FILTERS)


def test_type_checkers_know_the_names_of_all_filters() -> None:
    assert get_args(FilterName) == tuple(FILTERS)


@every_filter
@pytest.mark.parametrize(("epsilon", "delta"), [(1, 1e-6), (0.1, 1e-9), (8, 1e-3)])
def test_each_filter_keeps_the_promise(name: str, epsilon: float, delta: float) -> None:
    made = make_guarantee(name, Budget(epsilon=epsilon, delta=delta))
    assert made.initial_filter.guaranteed_epsilon(delta) <= epsilon


@every_filter
def test_largest_release_that_fits_is_admitted_and_a_larger_one_is_not(name: str) -> None:
    made = make_guarantee(name, BUDGET)
    state = made.initial_filter.step(made.to_filter_loss(GDP(0.005)))
    largest = made.remaining(state)
    full = state.step(made.to_filter_loss(largest))
    assert not full.admits(made.to_filter_loss(GDP(0.001)))
    with pytest.raises(BudgetExceeded):
        state.step(made.to_filter_loss(GDP(largest.mu * (1 + 1e-6))))


@every_filter
def test_share_takes_that_much_of_what_is_left(name: str) -> None:
    made = make_guarantee(name, BUDGET)
    state = made.initial_filter.step(made.to_filter_loss(GDP(0.005)))
    part = made.remaining(state, Fraction(1, 4))
    after = state.step(made.to_filter_loss(part)).headroom
    assert 0 <= after - 0.75 * state.headroom < 1e-6 * state.headroom
    taken = state.budget_fraction(made.to_filter_loss(part))
    if name == "rogers":  # K may be nearer to its bound than the deltas are, and the release take more of the deltas
        assert state.headroom - after <= taken < 1.1 * (state.headroom - after)
    else:
        assert taken == pytest.approx(state.headroom - after, abs=1e-9)


@every_filter
def test_share_of_what_does_not_fit_is_above_what_there_is(name: str) -> None:
    made = make_guarantee(name, BUDGET)
    assert made.initial_filter.budget_fraction(made.to_filter_loss(GDP(0))) == 0
    assert made.initial_filter.budget_fraction(made.to_filter_loss(GDP(0.3))) > made.initial_filter.headroom
    assert made.initial_filter.budget_fraction(made.to_filter_loss(GDP(100))) > 100


@every_filter
def test_crumbs_of_rounding_are_nothing(name: str) -> None:
    made = make_guarantee(name, BUDGET)
    largest = made.remaining(made.initial_filter).mu
    full = made.initial_filter.step(made.to_filter_loss(GDP(largest * (1 - 1e-14))))
    assert made.remaining(full) == made.remaining(full, Fraction(1, 2)) == GDP(0)


@every_filter
def test_figures_are_read_back_as_first_written(name: str) -> None:
    made = make_guarantee(name, BUDGET)
    stored = json.loads(json.dumps(made.to_json()))
    assert made.with_parameters(stored) == made
    stored["mu0_squared"] = "1/25"
    assert made.with_parameters(stored).mu0_squared == Fraction(1, 25)


def test_figures_without_the_filters_budget_are_refused() -> None:
    with pytest.raises(KeyError):
        make_guarantee("gdp", BUDGET).with_parameters({"mu0_squared": "1/25"})


@given(st.floats(1e-3, 0.2))
@settings(max_examples=15)
def test_filter_of_epsilons_is_given_a_point_of_the_releases_curve(mu: float) -> None:
    for name in ("basic", "rogers"):
        made = make_guarantee(name, BUDGET)
        loss = made.to_filter_loss(GDP(mu))
        assert isinstance(loss, ApproxDP)
        assert exact(epsilon_from_mu(mu, delta=loss.delta)) <= loss.epsilon
        assert made.refining


@pytest.mark.parametrize(("name", "slack"), [("basic", Fraction(1, 10**6)), ("rogers", Fraction(1, 2 * 10**6))])
@pytest.mark.parametrize("mu", ["0.003", "0.01", "0.0149", "0.05"])
def test_no_other_split_of_delta_fits_more_equal_releases(name: str, slack: Fraction, mu: str) -> None:
    made = make_guarantee(name, BUDGET)

    def fit(times: int) -> bool:
        loss = ApproxDP(epsilon_from_mu(mu, delta=slack / times), slack / times)
        return times <= (made.initial_filter.max_repetitions(loss) or 0)

    best = next(times for times in itertools.count() if not fit(times + 1))
    assert made.initial_filter.max_repetitions(made.to_filter_loss(GDP(mu))) == best
    delta = slack * exact(mu) ** 2 / BUDGET.loss.mu_squared
    proportional = ApproxDP(epsilon_from_mu(mu, delta=delta), delta)
    fewer = made.initial_filter.max_repetitions(proportional) or 0
    assert fewer < best if mu == "0.0149" else fewer <= best, "the control: a delta in proportion to mu squared"


@pytest.mark.parametrize("name", ["basic", "rogers"])
def test_a_release_of_next_to_nothing_costs_a_billionth(name: str) -> None:
    made = make_guarantee(name, BUDGET)
    losses = [made.to_filter_loss(GDP(mu)) for mu in ("1e-12", "1e-30", "1e-100")]
    assert {loss.parts[1] for loss in losses} == {(made.shared_delta or Fraction(0)) / 10**9}
    for mu, loss in zip(("1e-12", "1e-30", "1e-100"), losses, strict=True):
        assert exact(epsilon_from_mu(mu, delta=loss.parts[1])) <= loss.parts[0]


@pytest.mark.parametrize("name", ["basic", "rogers"])
def test_figures_written_under_another_split_of_delta_are_refused(name: str) -> None:
    made = make_guarantee(name, BUDGET)
    stored = made.to_json()
    del stored["delta_split"]
    with pytest.raises(LedgerError, match="chooses the delta of each answer differently"):
        made.with_parameters(stored)


def test_release_beyond_the_whole_gdp_budget_is_refused_by_filters_of_epsilons() -> None:
    for name in ("basic", "rogers"):
        made = make_guarantee(name, BUDGET)
        assert not made.initial_filter.admits(made.to_filter_loss(GDP(1)))
        assert not made.initial_filter.admits(made.to_filter_loss(GDP(10**6)))


def test_other_filters_are_given_the_release_as_it_is() -> None:
    for name in ("gdp", "zcdp", "rdp", "approx-dp"):
        assert make_guarantee(name, BUDGET).to_filter_loss(GDP(0.1)) == GDP(0.1)
        assert make_guarantee(name, BUDGET).refining is None


def test_one_well_chosen_order_admits_as_much_as_the_whole_zcdp_curve() -> None:
    renyi, zcdp = make_guarantee("rdp", BUDGET), make_guarantee("zcdp", BUDGET)
    assert isinstance(renyi.initial_filter, RDPFilter)
    assert len(renyi.initial_filter.budget.orders) == 1
    assert renyi.remaining(renyi.initial_filter).mu == pytest.approx(zcdp.remaining(zcdp.initial_filter).mu, rel=1e-6)


@pytest.mark.parametrize(("epsilon", "delta", "least", "most"), [(1, 1e-6, 1.10, 1.19), (0.1, 1e-9, 1.10, 1.20)])
def test_gdp_keeps_the_same_promise_with_more_budget_than_zcdp(
    epsilon: float, delta: float, least: float, most: float
) -> None:
    budget = Budget(epsilon=epsilon, delta=delta)
    zcdp = make_guarantee("zcdp", budget)
    assert least <= math.sqrt(budget.loss.mu_squared / zcdp.remaining(zcdp.initial_filter).mu_squared) ** 2 <= most


@every_filter
def test_words_name_a_guarantee_that_is_kept(name: str) -> None:
    made = make_guarantee(name, BUDGET)
    assert made.words.startswith("(1, 1e-06)-DP, enforced as ")
    kept = made.words.removeprefix("(1, 1e-06)-DP, enforced as ")
    budget = made.initial_filter.budget
    if name == "basic":
        assert kept == "sums of epsilon and delta"
        return
    truth, before, after = {
        "gdp": (BUDGET.loss.mu_squared, "", "-GDP"),
        "zcdp": (budget.parts[0], "", "-zCDP"),
        "rdp": (budget.parts[0], "", f"-RDP of order {display_down(float(getattr(budget, 'orders', [0])[0]), 6)}"),
        "approx-dp": (2 * budget.parts[0], "V within ", ""),
        "rogers": (budget.parts[0], "K within ", ""),
    }[name]
    assert kept.startswith(before)
    assert kept.endswith(after)
    shown = exact(float(kept.removeprefix(before).removesuffix(after))) ** (2 if name == "gdp" else 1)
    assert truth <= shown < truth * Fraction(1002, 1000)


def test_gdp_budget_is_kept_by_the_gdp_filter_alone() -> None:
    assert make_guarantee("gdp", Budget.gdp(0.5)).words == "0.5-GDP"
    for name in set(FILTERS) - {"gdp"}:
        with pytest.raises(InvalidValueError, match=r"filter: .* needs a budget in epsilon and delta"):
            make_guarantee(name, Budget.gdp(0.5))


@pytest.mark.parametrize("name", ["GDP", "", None, 3, ["gdp"]])
def test_unknown_filter_is_refused_with_the_names_of_all(name: object) -> None:
    with pytest.raises(InvalidValueError, match=r"filter: must be one of 'gdp', 'zcdp', .* got"):
        make_guarantee(name, BUDGET)  # type: ignore[arg-type]


def test_rogers_needs_a_small_delta() -> None:
    with pytest.raises(InvalidValueError, match=r"between 1e-300 and 1/e"):
        make_guarantee("rogers", Budget(epsilon=1, delta=0.5))


@pytest.mark.parametrize(
    "budget",
    [Budget(1, 1e-6), Budget("0.1", "1e-9", "1e-10"), Budget.gdp("0.3"), Budget.from_mu_squared(Fraction(2, 7))],
)
def test_a_budget_is_read_back_from_what_it_writes(budget: Budget) -> None:
    assert Budget.from_json(budget.to_json()) == budget
    assert repr(Budget.from_json(budget.to_json())) == repr(budget)
