"""What a regression costs with its sampling error: one target divided among two charges, both known beforehand."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpnb
from dpnb.accounting import GDP
from dpnb.errors import BudgetExceeded, PlanError, RequestError
from dpnb.ledger import MEMORY

CHANCE = np.random.default_rng(48)
X = CHANCE.normal(0, 1, 2000).clip(-3, 3)
TABLE = pd.DataFrame({"u": np.arange(2000) // 4, "x": X, "y": (X + CHANCE.normal(0, 1, 2000)).clip(-5, 5)})
SCHEMA = {"x": dpnb.Bounded(-3, 3), "y": dpnb.Bounded(-5, 5)}
PERSONS = {"privacy_unit": "u", "max_rows_per_unit": 4}


def opened(persons: bool = False, **options: Any) -> dpnb.Session:
    usual = {"name": "t", "budget": dpnb.Budget.gdp(10), "schema": SCHEMA, "ledger": MEMORY, "not_private_test_seed": 3}
    rows = TABLE if persons else TABLE.drop(columns="u")
    return dpnb.Session(rows, **{**usual, **(PERSONS if persons else {}), **options})


def asked(session: dpnb.Session) -> Any:
    return session.frame.regress("y ~ x", population=True)


TARGETS: list[dict[str, Any]] = [{"mu": 4}, {"rho": "4.5"}, {"share": 0.3}, {"share": 1}]


@pytest.mark.parametrize("persons", [False, True], ids=["rows", "persons"])
@pytest.mark.parametrize("target", TARGETS, ids=str)
def test_both_charges_are_those_of_the_preview_and_a_repetition_is_free(target: dict[str, Any], persons: bool) -> None:
    session = opened(persons)
    preview = asked(session).preview(**target)
    answer = asked(session).release(**target)
    assert session.spent.mu_squared == preview.cost.mu_squared == answer.cost.mu_squared == answer.total_loss.mu_squared
    first, second = session.ledger.charges()[:2]
    assert float(second.gdp.mu_squared / first.gdp.mu_squared) == pytest.approx(0.25, rel=1e-9)
    assert [name for name, _ in preview.parts] == ["coefficients", "sampling error"]
    assert "divided among:   coefficients: " in str(preview)
    rows, spent = session.ledger.count, session.spent
    again = asked(session).release(**target)
    assert (session.ledger.count, session.spent) == (rows, spent)
    assert again.conf_int().equals(answer.conf_int())
    assert answer.cost_fraction == pytest.approx(preview.cost_fraction, abs=1e-12)


@pytest.mark.parametrize("name", ["zcdp", "rdp", "basic", "rogers", "approx-dp"])
def test_the_cost_of_both_is_that_of_any_filter(name: str) -> None:
    """By some, two charges cost more than one of the same loss."""
    session = opened(filter=name, budget=dpnb.Budget(epsilon=1, delta=1e-6))
    preview = asked(session).preview(share=0.8)
    answer = asked(session).release(share=0.8)
    assert preview.cost_fraction == pytest.approx(answer.cost_fraction, rel=2e-3)  # the charges are rounded down
    assert preview.headroom_after == pytest.approx(session.headroom, rel=1e-2)


def test_a_batch_has_no_second_charge() -> None:
    session = opened()
    with pytest.raises(PlanError, match=r"measure the sampling error of the answer by \.population"):
        session.plan([asked(session)])


def test_epsilon_is_that_of_both() -> None:
    session = opened(budget=dpnb.Budget(epsilon=1, delta=1e-6))
    whole = session.frame.count().preview(epsilon=0.8).cost
    answer = asked(session).release(epsilon=0.8)
    assert answer.cost.mu == pytest.approx(whole.mu, rel=1e-6)
    assert answer.cost.mu_squared <= whole.mu_squared


def test_a_table_of_targets_has_the_cost_of_both() -> None:
    session = opened()
    costs = asked(session).preview(share=[0.1, 0.5]).to_pandas()["cost_fraction"]
    assert costs.tolist() == pytest.approx([0.1, 0.5])
    assert len(asked(session).preview()) == 6


def test_what_does_not_fit_together_is_refused_before_the_first_charge() -> None:
    session = opened()
    session.frame.count().release(mu=9)  # leaves a mu of 4.36
    assert asked(session).preview(mu=4.3).fits
    preview = asked(session).preview(mu=4.5)
    assert not preview.fits
    assert preview.max_mu == pytest.approx(19**0.5)
    with pytest.raises(BudgetExceeded, match=r"with its sampling error, more than what is left.*nothing was charged"):
        asked(session).release(mu=4.5)
    assert session.ledger.count == 1
    assert asked(session).release(mu=4.3).has_population_intervals


@pytest.mark.parametrize("persons", [False, True], ids=["rows", "persons"])
def test_under_individual_accounting_both_are_refused_where_units_may_be_excluded(persons: bool) -> None:
    """Otherwise the coefficients would be charged, and the sampling error refused afterwards."""
    session = opened(persons, accounting="individual")
    session.frame.count().release(mu=9)
    assert not asked(session).preview(mu=4.5).fits
    with pytest.raises(BudgetExceeded, match=r"with its sampling error, more than what is left.*nothing was charged"):
        asked(session).release(mu=4.5)
    assert session.ledger.count == 1
    assert asked(session).preview(mu=4.3).fits
    assert asked(session).release(mu=4.3).numbers.errors.startswith("clustered" if persons else "robust")
    assert session.frame.regress("y ~ x").preview(mu=4.5).fits


def test_a_stopped_run_keeps_its_coefficients_and_says_so() -> None:
    session = opened()
    session.frame.regress("y ~ x").release(rho=Fraction(4, 5) * 8)  # the first charge of mu = 4
    session.frame.count().release(share=1)  # another kernel, between the charges
    answer = asked(session).release(mu=4)
    assert session.ledger.count == 2
    assert answer.numbers.errors.startswith("homoskedastic")
    assert "stopped before the sampling error was measured, which was not charged" in str(answer.summary())
    persons = opened(persons=True)
    persons.frame.regress("y ~ x").release(rho=Fraction(4, 5) * 8)
    persons.frame.count().release(share=1)
    assert not asked(persons).release(mu=4).has_population_intervals


def test_an_interrupted_run_is_continued_at_its_price() -> None:
    session = opened()
    session.frame.regress("y ~ x").release(rho=Fraction(4, 5) * 8)
    preview = asked(session).preview(mu=4)
    assert preview.parts[0][1] == "free: was released before"
    before = session.spent.mu_squared
    answer = asked(session).release(mu=4)
    assert session.spent.mu_squared - before == preview.cost.mu_squared
    assert session.spent.mu_squared == pytest.approx(16)
    assert answer.numbers.errors.startswith("robust")


@pytest.mark.parametrize("seed", range(5, 10))
def test_where_the_coefficients_are_unknown_the_rest_is_not_charged(seed: int) -> None:
    """Also where the matrix happens to be definite, but not clearly."""
    session = opened(persons=True, not_private_test_seed=seed)
    answer = asked(session).release(mu=0.03)
    assert session.ledger.count == 1
    assert answer.params.isna().all()
    assert "the coefficients are not known" in str(answer.summary())
    assert asked(session).preview(mu=0.03).cost == GDP(0)


REFUSED: dict[str, tuple[dict[str, Any], Any, str]] = {
    "a width": ({}, lambda df: df.regress("y ~ x", population=True).release(within=0.1), "within= is the width"),
    "no flag": ({}, lambda df: df.regress("y ~ x", population=1), "must be True or False"),
    "a census": ({"sampled": "census"}, lambda df: df.regress("y ~ x", population=True), "census has no sampling"),
    "limits": (
        PERSONS,
        lambda df: df.bound_contributions(max_rows_per_unit=2).regress("y ~ x", population=True),
        r"leave out \.bound_contributions",
    ),
    "norms": (
        {"privacy_unit": "u", "max_norm_per_unit": 1, "max_rows_per_unit": None},
        lambda df: df.regress("y ~ x", population=True),
        "needs a session with max_rows_per_unit=",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_measured_is_refused_before_any_charge(name: str) -> None:
    options, ask, words = REFUSED[name]
    session = opened("privacy_unit" in options, **options)
    with pytest.raises((PlanError, RequestError), match=words):
        ask(session.frame)
    assert session.ledger.count == 0


def test_the_plan_of_the_second_charge_follows_from_released_values() -> None:
    """Tables with other rows, but the same first answer, are asked the same question."""
    plans = []
    for persons in (False, True):
        session = opened(persons, budget=dpnb.Budget.gdp(1e9))
        asked(session).release(mu=1e6)
        plans.append(session.ledger.charges()[1].request)
    assert plans[0] != plans[1]  # the bound of a unit
    one = opened(budget=dpnb.Budget.gdp(1e9))
    asked(one).release(mu=1e6)
    assert one.ledger.charges()[1].request == plans[0]


@given(share=st.floats(0.001, 1), known=st.floats(0.5, 9))
def test_any_share_is_met_from_below(share: float, known: float) -> None:
    session = opened()
    session.frame.count().release(mu=known)
    before = session.spent.mu_squared
    wanted = Fraction(repr(share)) * (100 - before)
    preview = asked(session).preview(share=share)
    assert preview.cost.mu_squared <= wanted
    assert float(preview.cost.mu_squared / wanted) == pytest.approx(1, rel=1e-6)
