"""One answer refined until it is good enough, at the price of asking once at that level."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpnb
from contracts.interactive import opened
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded, InvalidValueError, MechanismClosed, RequestError
from dpnb.interactive import AbsoluteError, RelativeError
from dpnb.interactive.mechanism import MAX_NAME_LENGTH, title_of


class After:
    """Met at the look of that number."""

    def __init__(self, looks: int) -> None:
        self.left = looks
        self.seen: list[tuple[Any, Any]] = []

    def is_satisfied(self, low: Any, high: Any) -> bool:
        self.seen.append((low, high))
        self.left -= 1
        return self.left < 0


def test_each_look_doubles_the_information_and_pays_the_difference(tmp_path: Path) -> None:
    session = opened(tmp_path)
    reduction = session.noise_reduction(session.frame["x"].sum(), initial_mu="0.1")
    for number in range(4):
        answer = reduction.step()
        assert session.spent == answer.total_loss == GDP.from_mu_squared(GDP("0.1").mu_squared * 2**number)
        assert answer.n_observations == number + 1


@pytest.mark.parametrize("rule", [lambda answer: True, 0.05, None, "5%", AbsoluteError])
def test_until_something_that_is_no_rule_is_refused_before_any_charge(rule: Any, tmp_path: Path) -> None:
    session = opened(tmp_path)
    reduction = session.noise_reduction(session.frame["x"].sum(), initial_mu="0.1")
    with pytest.raises(RequestError, match=r"until: needs a stopping rule.* RelativeError\(0.05\)"):
        reduction.until(rule)
    assert not session.spent
    assert reduction.state == "open"


def test_stops_at_the_first_look_that_meets_the_rule_and_closes(tmp_path: Path) -> None:
    session = opened(tmp_path, budget=dpnb.Budget.gdp(50))
    reduction = session.noise_reduction(session.frame["x"].sum(), initial_mu="0.1")
    answer = reduction.until(RelativeError("0.05"))
    low, high = answer.interval
    assert (high - low) / 2 <= 0.05 * (low + high) / 2
    assert (reduction.met, reduction.state) == (True, "closed")
    before = answer.history.answers[-2] if answer.n_observations > 1 else None
    if before is not None:
        low, high = before.interval
        assert (high - low) / 2 > 0.05 * ((low + high) / 2 - (high - low) / 2)
    assert session.spent == GDP.from_mu_squared(GDP("0.1").mu_squared * 2 ** (answer.n_observations - 1))


def test_a_rule_sees_released_limits_and_nothing_else(tmp_path: Path) -> None:
    session = opened(tmp_path)
    rule = After(2)
    answer = session.noise_reduction(session.frame.groupby("site").count(), initial_mu="0.1").until(rule)
    assert answer.n_observations == 3
    for low, high in rule.seen:
        assert isinstance(low, np.ndarray)
        assert low.shape == high.shape == (3, 1)
    assert (rule.seen[-1][0] == answer.arrays.low).all()


def test_without_budget_it_gives_the_best_there_is_and_says_so(tmp_path: Path) -> None:
    session = opened(tmp_path)
    reduction = session.noise_reduction(session.frame["x"].sum(), initial_mu="0.4", name="it")
    answer = reduction.until(AbsoluteError("1e-9"))
    assert (reduction.met, reduction.state) == (False, "open")
    assert answer.total_loss == GDP.from_mu_squared("0.64")  # twice as much is beyond 1
    assert "criterion not met" in str(reduction)


def test_the_most_that_was_allowed_is_the_last_look(tmp_path: Path) -> None:
    session = opened(tmp_path)
    reduction = session.noise_reduction(session.frame["x"].sum(), initial_mu="0.1", max_mu="0.25")
    assert reduction.until(AbsoluteError("1e-9")).total_loss == GDP("0.25")
    assert session.spent == GDP("0.25")
    with pytest.raises(RequestError, match=r"mu=0\.25 has been reached"):
        reduction.step()
    one = session.noise_reduction(session.frame.count(), initial_mu="0.5", max_mu="0.2", name="one")
    assert one.until(AbsoluteError("1e-9")).total_loss == GDP("0.2")


def test_run_again_it_takes_the_same_looks_and_stops_at_the_same_one(tmp_path: Path) -> None:
    answers, spent = [], []
    for _ in range(3):
        session = opened(tmp_path)
        reduction = session.noise_reduction(session.frame["x"].sum())  # a share of what is left, chosen once
        answers.append(reduction.until(RelativeError("0.2")))
        spent.append(session.spent)
    assert answers[0] == answers[1] == answers[2]
    assert spent[0] == spent[1] == spent[2]


def test_a_later_kernel_goes_on_where_it_stopped(tmp_path: Path) -> None:
    session = opened(tmp_path)
    session.noise_reduction(session.frame["x"].sum(), initial_mu="0.1", name="it").step()
    later = opened(tmp_path)
    reduction = later.mechanisms["it"]
    assert reduction.step().n_observations == 1
    assert later.spent == GDP("0.1")
    assert reduction.step().n_observations == 2


def test_earlier_looks_at_the_question_count(tmp_path: Path) -> None:
    session = opened(tmp_path)
    query = session.frame["x"].sum()
    query.release(mu="0.2")
    reduction = session.noise_reduction(query, initial_mu="0.1")
    for _ in range(4):
        reduction.step()
    assert session.spent == GDP.from_mu_squared("0.08")


def test_first_look_must_fit(tmp_path: Path) -> None:
    session = opened(tmp_path)
    reduction = session.noise_reduction(session.frame["x"].sum(), initial_mu=2)
    with pytest.raises(BudgetExceeded):
        reduction.until(RelativeError("0.1"))
    assert not session.spent


def test_closed_it_gives_what_it_gave(tmp_path: Path) -> None:
    session = opened(tmp_path)
    reduction = session.noise_reduction(session.frame["x"].sum(), initial_mu="0.1")
    first = reduction.step()
    reduction.close()
    assert reduction.observe(0) == first
    with pytest.raises(MechanismClosed):
        reduction.step()
    session.frame["x"].sum().release(mu="0.5")  # the question itself can still be asked


@pytest.mark.parametrize(
    "given", [{"initial_mu": 0}, {"initial_mu": -1}, {"max_mu": "x"}, {"name": ""}, {"name": "n" * 101}]
)
def test_bad_arguments_are_refused(tmp_path: Path, given: dict[str, Any]) -> None:
    session = opened(tmp_path)
    with pytest.raises(InvalidValueError):
        session.noise_reduction(session.frame.count(), **given)
    assert session.ledger.count == 0


def test_long_queries_have_names_of_their_own() -> None:
    names = {title_of("count of rows where " + "x" * 200 + end) for end in "ab"}
    assert len(names) == 2
    assert {len(name) for name in names} == {MAX_NAME_LENGTH}
    assert title_of("count of rows") == "count of rows"
