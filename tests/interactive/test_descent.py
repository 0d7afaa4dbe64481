"""A regression fitted by noisy gradients, step by step."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb import progress
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded, InvalidValueError, MechanismClosed, PlanError, RequestError
from dpnb.interactive.descent import is_plateau, mean_iterate, tail_means
from dpnb.session import snapshot
from pairwise import one_in

ROWS = 400
SCHEMA = {
    "x": dpnb.Bounded(-2, 6),
    "w": dpnb.Bounded(0, 10),
    "g": dpnb.Categories(["a", "b", "c"]),
    "smokes": dpnb.Categories([False, True]),
    "visits": dpnb.Bounded(0, 20),
    "cost": dpnb.Bounded(-10, 40),
}


def people(rows: int = ROWS) -> pd.DataFrame:
    chance = np.random.default_rng(4)
    x, w, g = chance.uniform(-2, 6, rows), chance.uniform(0, 10, rows), chance.choice(["a", "b", "c"], rows)
    b = g == "b"
    return pd.DataFrame(
        {
            "x": x,
            "w": w,
            "g": g,
            "smokes": chance.random(rows) < 1 / (1 + np.exp(1 - 0.5 * x - b)),
            "visits": np.minimum(chance.poisson(np.exp(0.2 + 0.2 * x - 0.1 * w)), 20).astype(float),
            "cost": np.clip(3 + 2 * x - w + 4 * b + chance.normal(0, 1, rows), -10, 40),
        }
    )


TABLE = people()


def opened(folder: Path, table: pd.DataFrame = TABLE, **arguments: Any) -> dpnb.Session:
    given = {"budget": dpnb.Budget.gdp(3), "public_size": ROWS, **arguments}
    return dpnb.Session(table, name="clinic", schema=SCHEMA, ledger=folder / "clinic.dpnb", **given)


def fit(session: dpnb.Session, **changes: Any) -> Any:
    given = {"on": ["x", "g"], "family": "linear", "mu": "0.1", "steps": 6, "chains": 3, "name": "it", **changes}
    return session.frame.fit("cost", **given)


def test_each_step_costs_mu_whatever_the_number_of_chains(tmp_path: Path) -> None:
    for chains in (1, 8):
        (tmp_path / str(chains)).mkdir()
        session = opened(tmp_path / str(chains))
        one = fit(session, chains=chains)
        for number in range(1, 4):
            one.step()
            assert session.spent == one.cost == GDP.from_mu_squared(GDP("0.1").mu_squared * number)
            assert one.n_steps == number


def test_run_takes_all_steps_and_closes(tmp_path: Path) -> None:
    session = opened(tmp_path)
    one = fit(session)
    found = one.run()
    assert (one.n_steps, one.state, one.stop_reason) == (6, "closed", "all steps were taken")
    assert one.cost == session.spent == GDP.from_mu_squared("0.06")
    assert found == one.coefficients
    assert list(found.estimate.index) == ["intercept", "x", "g == 'b'", "g == 'c'"]
    assert "after 6 of 6 steps, 3 chains, for 400 units" in repr(found)
    with pytest.raises(RequestError, match="all 6 steps were taken"):
        one.step()


def test_run_again_in_a_later_kernel_costs_nothing_and_gives_the_same(tmp_path: Path) -> None:
    session = opened(tmp_path)
    first = fit(session, check_every=2)
    found, checks = first.run(), first.model_losses
    later = opened(tmp_path)
    rows = later.ledger.count
    assert later.mechanisms["it"].cost == session.spent  # before anything is asked of it
    again = fit(later, check_every=2)
    assert again.n_steps == 0
    assert again.run() == found
    assert again.model_losses == checks
    assert (later.spent, later.ledger.count) == (session.spent, rows)


def test_a_later_kernel_goes_on_where_it_stopped(tmp_path: Path) -> None:
    fit(opened(tmp_path)).step()
    later = opened(tmp_path)
    one = later.mechanisms["it"]
    one.step()
    assert later.spent == GDP("0.1")
    one.step()
    assert later.spent == GDP.from_mu_squared("0.02")


def test_a_run_that_costs_more_than_what_is_left_is_refused_before_its_first_step(tmp_path: Path) -> None:
    """Its largest number of steps is the one that fits, as is said."""
    session = opened(tmp_path, budget=dpnb.Budget.gdp("0.2"))
    too_long = fit(session)
    with pytest.raises(
        BudgetExceeded, match=r"6 steps together cost 150.0% of the budget .* which allows 4; .*steps=4"
    ):
        too_long.run()
    assert session.ledger.count == 1  # the launch, which is free
    assert session.spent == GDP(0)
    assert "allowed" not in repr(too_long)
    said = " ".join(repr(fit(session, dry_run=True)).split())
    assert "6 steps together 150.0% of the budget" in said
    assert "covers 4 steps, so run() would be refused" in said
    with pytest.raises(BudgetExceeded, match="allows 4"):
        fit(session, steps=5, name="five").run()
    assert fit(session, steps=4, name="four").run().estimate.shape == (4,)
    assert session.headroom == 0


def test_checks_are_part_of_what_a_run_costs(tmp_path: Path) -> None:
    """Four steps fit, and three with a check after every second one."""
    session = opened(tmp_path, budget=dpnb.Budget.gdp("0.2"))
    with pytest.raises(BudgetExceeded, match=r"4 steps together cost 150.0% .* which allows 3;"):
        fit(session, steps=4, check_every=2).run()
    assert session.spent == GDP(0)
    assert fit(session, steps=3, check_every=2, name="three").run().estimate.shape == (4,)
    assert session.headroom == 0


def test_single_steps_go_on_until_the_budget_is_spent(tmp_path: Path) -> None:
    """A run is refused for the steps that were not taken; another kernel's charges may end one on the way."""
    session = opened(tmp_path, budget=dpnb.Budget.gdp("0.2"))
    one = fit(session)
    for _ in range(2):
        one.step()
    with pytest.raises(BudgetExceeded, match=r"4 further steps .* which allows 2; .*steps=4"):
        one.run()
    for _ in range(2):
        one.step()
    assert (one.n_steps, one.state) == (4, "open")
    with pytest.raises(BudgetExceeded, match="nothing was charged"):
        one.step()
    assert session.headroom == 0


def test_closed_by_hand_run_ends_where_it_was_closed(tmp_path: Path) -> None:
    session = opened(tmp_path)
    one = fit(session)
    one.step()
    one.close()
    again = fit(opened(tmp_path))
    again.run()
    assert (again.n_steps, again.stop_reason) == (1, "ended: the mechanism was closed")
    other = fit(session, name="other", mu="0.2")
    other.close()
    with pytest.raises(MechanismClosed):
        other.run()
    with pytest.raises(BudgetExceeded):
        fit(session, name="expensive", mu=50).run()


def test_two_fits_of_the_same_first_step_pay_for_it_once(tmp_path: Path) -> None:
    session = opened(tmp_path)
    one, other = fit(session, name="one"), fit(session, name="other", learning_rate=0.7)
    one.step()
    other.step()
    assert session.spent == one.cost == GDP("0.1")
    assert other.cost == GDP("0.1")  # launched before it was paid, it includes that cost too
    other.step()
    assert session.spent == GDP.from_mu_squared("0.02")
    third = fit(session, name="third", learning_rate="0.6")
    third.step()
    assert third.cost == GDP(0)


def test_a_step_that_leads_nowhere_is_paid_once(tmp_path: Path) -> None:
    session = opened(tmp_path)
    one = fit(session, learning_rate="1e-12")
    one.run()
    assert (one.n_steps, session.spent, one.cost) == (6, GDP("0.1"), GDP("0.1"))


def test_checks_come_when_asked_and_stop_what_gets_no_better(tmp_path: Path) -> None:
    session = opened(tmp_path, budget=dpnb.Budget.gdp(20))
    one = fit(session, learning_rate="1e-6", steps=50, check_every=3, check_mu="0.5", patience=2, mu="0.05")
    one.run()  # it stands still
    assert one.stop_reason == "stopped: the checks no longer improve"
    assert list(one.model_losses) == list(range(3, one.n_steps + 1, 3))
    assert one.n_steps < 50
    assert one.state == "closed"
    paid = GDP("0.05").mu_squared * one.n_steps + GDP("0.5").mu_squared * len(one.model_losses)
    assert session.spent == one.cost == GDP.from_mu_squared(paid)
    assert "mean error (of the outcome's range) of a linear regression of cost on x, g" in repr(one.model_losses[3])


def test_when_checks_get_no_better() -> None:
    assert not is_plateau([], 1)
    assert not is_plateau([(0.5, 0.01)], 1)
    assert is_plateau([(0.5, 0.01), (0.495, 0.01)], 1)
    assert not is_plateau([(0.5, 0.01), (0.4, 0.01)], 1)
    assert not is_plateau([(0.5, 0.01), (0.6, 0.01), (0.4, 0.01), (0.395, 0.01)], 2)
    assert is_plateau([(0.5, 0.01), (math.nan, math.nan), (0.6, 0.01)], 2)


def test_a_tail_is_the_second_half_of_the_steps() -> None:
    iterates = [np.full((2, 1), float(number)) for number in range(6)]
    assert [tail_means(iterates[: steps + 1])[0, 0] for steps in range(6)] == [0, 1, 2, 2.5, 3.5, 4]
    assert mean_iterate([np.array([[1.0, 0.0], [2.0, -1e-12]])]).tolist() == [1.5, 0.0]


@pytest.mark.parametrize("chains", [1, 3])
def test_coefficients_have_no_intervals_and_say_so(tmp_path: Path, chains: int) -> None:
    found = fit(opened(tmp_path), chains=chains).run()
    assert not np.isnan(found.arrays.value).any()
    assert not found.has_intervals
    for said in (repr(found), found._repr_html_(), found.to_markdown()):
        assert "95%" not in said
        assert "nan" not in said
        assert "intercept" in said
    assert "no intervals" in repr(found)
    assert (found["x"] > 0).outcome is None  # type: ignore[union-attr]
    classes = opened(tmp_path).frame.fit("g", on="x", family="multinomial", mu="0.1", steps=2, name="classes").run()
    assert "95%" not in repr(classes)


def test_a_descent_that_still_moves_says_that_it_has_not_converged(tmp_path: Path) -> None:
    """With little noise two slow steps have not converged; sixty fast ones have, up to the noise."""
    session = opened(tmp_path, budget=dpnb.Budget.gdp(1000))
    slow = fit(session, steps=2, mu=5, clip_norm=10, learning_rate="0.01").run()
    assert slow.is_moving
    assert "not converged: the last step moved" in repr(slow)
    fast = fit(session, steps=60, mu=1, clip_norm=10, learning_rate=1, name="fast").run()
    assert not fast.is_moving
    assert "not converged" not in repr(fast)


def test_a_rehearsal_says_that_it_is_one() -> None:
    session = dpnb.Session.rehearse(name="mock", budget=dpnb.Budget.gdp(1), schema=SCHEMA, public_size=50)
    assert repr(fit(session).run()).startswith("REHEARSAL")


def test_it_needs_a_public_number_of_units(tmp_path: Path) -> None:
    session = opened(tmp_path, public_size=None)
    with pytest.raises(RequestError, match="give public_size= here or to the session"):
        fit(session)
    assert fit(session, public_size=10).step() is not None


def test_filters_parts_and_sub_sessions_are_fitted_too(tmp_path: Path) -> None:
    session = opened(tmp_path)
    few = session.frame[session.frame["w"] > 5].fit(
        "visits", on="x", family="poisson", mu="0.1", steps=2, public_size=200, name="few"
    )
    few.run()
    assert "where w > 5" in repr(few.coefficients)
    parts = session.partition("g")
    for key in ("a", "b"):
        parts[key].frame.fit("cost", on="x", family="linear", mu="0.1", steps=3, public_size=130).run()
    assert parts.cost == GDP.from_mu_squared("0.03")
    with pytest.raises(RequestError, match="public number"):
        parts["c"].frame.fit("cost", on="x", family="linear", mu="0.1", steps=3)
    inside = session.delegate(mu="0.5", name="colleague")
    inside.frame.fit("smokes", on=["x", "g"], family="logistic", mu="0.1", steps=3).run()
    assert inside.spent == GDP.from_mu_squared("0.03")


def test_a_start_is_in_the_columns_own_units(tmp_path: Path) -> None:
    session = opened(tmp_path)
    given = {"intercept": 3.0, "x": 2.0, "g == 'b'": 4.0}
    one = fit(session, start=given, learning_rate="1e-12", mu=1, steps=1)
    assert one.coefficients.estimate.to_dict() == pytest.approx({**given, "g == 'c'": 0.0})
    other = fit(session, start=one.run(), name="other")
    assert other.coefficients.estimate.to_dict() == pytest.approx({**given, "g == 'c'": 0.0}, abs=1e-6)
    kinds = session.frame.fit("g", on=["x", "w"], family="multinomial", mu=1, steps=1, name="kinds")
    more = session.frame.fit("g", on=["x", "w"], family="multinomial", mu=1, steps=1, name="more", start=kinds.run())
    assert np.allclose(more.coefficients.arrays.value, kinds.coefficients.arrays.value, atol=1e-6)
    assert list(kinds.coefficients.estimate.index) == ["a", "b", "c"]
    assert kinds.coefficients.estimate.sum().tolist() == pytest.approx([0, 0, 0], abs=1e-12)
    for start in ({"z": 1}, {"x": "1"}, {"x": math.inf}, kinds.coefficients, 3):
        with pytest.raises(RequestError, match="start"):
            fit(session, start=start, name="bad")


def test_a_dry_run_says_what_it_costs_and_launches_nothing(tmp_path: Path) -> None:
    session = opened(tmp_path)
    said = repr(fit(session, dry_run=True, check_every=2, check_mu="0.2"))
    assert "0.12% of the budget (mu 0.1) for each step" in said
    assert "covers 300 steps" in said
    assert "0.025" in said  # clip / mu / size
    assert "3 more, one after every 2 steps, at 0.45% of the budget (mu 0.2) each" in said
    assert session.ledger.count == 0
    fit(session).step()
    assert "is reused" in repr(fit(session, dry_run=True))
    with pytest.raises(RequestError, match="identified by its name"):
        fit(session, dry_run=True, clip_norm=2)


BAD: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"mu": 0}, InvalidValueError, "mu"),
    ({"mu": "x"}, InvalidValueError, "mu"),
    ({"steps": 0}, InvalidValueError, "steps"),
    ({"steps": 2.5}, InvalidValueError, "steps"),
    ({"chains": True}, InvalidValueError, "chains"),
    ({"public_size": -1}, InvalidValueError, "public_size"),
    ({"clip_norm": -1}, InvalidValueError, "clip_norm"),
    ({"clip_norm": 1e300}, PlanError, "clip_norm"),
    ({"learning_rate": math.nan}, InvalidValueError, "learning_rate"),
    ({"patience": 0}, InvalidValueError, "patience"),
    ({"check_every": 0}, InvalidValueError, "check_every"),
    ({"check_every": 2, "check_mu": 0}, InvalidValueError, "check_mu"),
    ({"check_mu": 1}, RequestError, "check_mu"),
    ({"name": ""}, InvalidValueError, "name"),
    ({"family": "cubic"}, PlanError, "family must be one of"),
    ({"family": "poisson"}, PlanError, "at least 0"),
    ({"on": []}, PlanError, "at least one column"),
    ({"on": ["x", "x"]}, PlanError, "only once"),
    ({"on": "cost"}, PlanError, "only once"),
    ({"on": "nothing"}, PlanError, "not in this view"),
    ({"start": {"z": 1}}, RequestError, "not a term"),
]


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> dpnb.Session:
    """A session for launches that are refused before anything is charged."""
    return opened(tmp_path_factory.mktemp("untouched"))


@pytest.mark.parametrize(("given", "error", "said"), BAD)
def test_bad_arguments_are_refused_before_anything_is_charged(
    untouched: dpnb.Session, given: dict[str, Any], error: type[Exception], said: str
) -> None:
    with pytest.raises(error, match=said):
        fit(untouched, **given)
    assert untouched.ledger.count == 0


def test_faces_tell_how_it_stands(tmp_path: Path) -> None:
    session = opened(tmp_path)
    one = fit(session, check_every=1)
    one.step()
    assert "step 1 of 6" in str(one)
    assert "last check" in str(one)
    html = one._repr_html_()
    assert "intercept" in html
    assert "as of" in html
    (told,) = snapshot.snapshot(session).mechanisms
    assert "step 1 of 6, 0.23% of the budget (mu 0.1415)" in told.text
    log = session.log["query"].tolist()
    assert "gradient of the linear regression of cost on x, g" in log
    assert "mean error (of the outcome's range) of a linear regression of cost on x, g" in log


def test_run_tells_a_front_end_how_far_it_is(tmp_path: Path) -> None:
    told: list[tuple[str, bool]] = []
    progress.show_by(lambda: lambda text, done: told.append((text, done)))
    try:
        fit(opened(tmp_path), check_every=3).run()
    finally:
        progress.show_by(None)
    assert told[-1][0].startswith("it: step 6 of 6, 0.89% of the budget (mu ")
    assert "last check" in told[-1][0]
    assert [done for _, done in told] == [False] * (len(told) - 1) + [True]


def test_under_individual_accounting_a_step_costs_each_unit_its_own_gradient(tmp_path: Path) -> None:
    for exhausted in ("skip", "drop", "clip"):
        (tmp_path / exhausted).mkdir()
        session = opened(
            tmp_path / exhausted, budget=dpnb.Budget.gdp("0.2"), accounting="individual", on_exhausted=exhausted
        )
        one = fit(session, steps=12)
        found = one.run()
        assert (one.n_steps, one.stop_reason) == (12, "all steps were taken")  # more than the worst case could pay
        again = fit(
            opened(
                tmp_path / exhausted, budget=dpnb.Budget.gdp("0.2"), accounting="individual", on_exhausted=exhausted
            ),
            steps=12,
        )
        assert again.run() == found


@pytest.mark.parametrize("family", one_in(2, ["linear", "poisson", "logistic", "multinomial"]))
def test_without_noise_and_clipping_it_comes_to_the_maximum_likelihood(
    tmp_path: Path, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = opened(tmp_path, budget=dpnb.Budget.gdp(10**9))
    outcome = {"linear": "cost", "logistic": "smokes", "poisson": "visits", "multinomial": "g"}[family]
    on = ["x", "w"] if family == "multinomial" else ["x", "w", "g"]
    rate = {"linear": 1.2, "logistic": 5.0, "poisson": 0.5, "multinomial": 2.0}[family]
    one = session.frame.fit(
        outcome, on=on, family=family, mu=10**6, steps=160, clip_norm=100, chains=1, learning_rate=rate, name="it"
    )
    found = np.asarray(one.run().estimate)
    assert found == pytest.approx(solved(family, outcome, on), abs=2e-3)


def solved(family: str, outcome: str, on: list[str]) -> Any:
    """The coefficients by Newton's method, in the columns' own units."""
    columns = [np.ones(ROWS), TABLE["x"], TABLE["w"], *([TABLE["g"] == "b", TABLE["g"] == "c"] if "g" in on else [])]
    x = np.stack([np.asarray(column, np.float64) for column in columns], axis=1)
    if family == "multinomial":
        return newton_multinomial(x, TABLE["g"].map({"a": 0, "b": 1, "c": 2}).to_numpy())
    y, beta = TABLE[outcome].to_numpy(np.float64), np.zeros(x.shape[1])
    for _ in range(60):
        e = np.clip(x @ beta, -30, 30)
        mean, bend = {
            "linear": (e, np.ones_like(e)),
            "logistic": (1 / (1 + np.exp(-e)), np.exp(-e) / (1 + np.exp(-e)) ** 2),
            "poisson": (np.exp(e), np.exp(e)),
        }[family]
        beta = beta - np.linalg.solve((x * bend[:, None]).T @ x, x.T @ (mean - y))
    return beta


def newton_multinomial(x: Any, y: Any) -> Any:
    """Coefficients of each class, the first one's 0, brought to a mean of 0 over classes."""
    terms, beta = x.shape[1], np.zeros((3, x.shape[1]))
    for _ in range(60):
        p = np.exp(x @ beta.T)
        p /= p.sum(axis=1, keepdims=True)
        slope = ((p - np.eye(3)[y]).T @ x)[1:].ravel()
        weights = np.einsum("ni,ij->nij", p, np.eye(3)) - np.einsum("ni,nj->nij", p, p)
        bend = np.einsum("nij,na,nb->iajb", weights, x, x)[1:, :, 1:].reshape(2 * terms, 2 * terms)
        beta[1:] -= np.linalg.solve(bend, slope).reshape(2, terms)
    return beta - beta.mean(axis=0)
