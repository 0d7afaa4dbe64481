"""A session without a budget refuses nothing for its cost, reports the loss, and is declared by the curator only."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.ledger_metadata import NO_BUDGET
from dpnb._target import target_from
from dpnb.accounting import GDP, GDPFilter, MixtureOdometer, UnboundedFilter
from dpnb.accounting.conversions import mu_from_pure
from dpnb.accounting.convert import convert
from dpnb.errors import InvalidValueError, LedgerError, RequestError
from dpnb.ledger import MEMORY
from dpnb.notebook.picker_state import make_state
from dpnb.notebook.picker_steps import large_release

TABLE = pd.DataFrame({"age": [20.0, 30.0, 40.0, 50.0], "sex": ["f", "m", "f", "m"]})
BUDGET = dpnb.Budget(epsilon=1, delta=1e-6)


def made(ledger: Path | str = MEMORY, **how: Any) -> dpnb.Session:
    arguments: dict[str, Any] = {
        "name": "clinic",
        "budget": None,
        "schema": {"age": dpnb.Bounded(0, 100), "sex": dpnb.Categories(["f", "m"])},
        "ledger": ledger,
        **how,
    }
    return dpnb.Session(TABLE, **arguments)


def test_nothing_is_refused_for_its_cost() -> None:
    session = made()
    for mu in (0.1, 5, 1e3):
        session.frame.count().release(mu=mu)
        session.frame["age"].mean().release(mu=mu)
    assert session.spent == GDP.from_mu_squared(2 * 10**6)
    assert session.budget is None
    assert math.isnan(session.headroom)
    assert session.filter == UnboundedFilter().step(session.spent)


def test_control_a_budget_refuses_the_same_request() -> None:
    with pytest.raises(dpnb.errors.BudgetExceeded):
        made(budget=BUDGET).frame.count().release(mu=5)


@pytest.mark.parametrize("target", [{"mu": 0.2}, {"rho": 0.02}, {"epsilon": 0.5}, {"within": 10}])
def test_every_other_target_is_offered(target: dict[str, Any]) -> None:
    query = made().frame.count()
    answer = query.release(**target)
    assert answer.cost == query.preview(**target).total_loss
    assert math.isnan(answer.cost_fraction)


def test_epsilon_is_at_the_delta_of_the_odometers() -> None:
    preview = made(odometer_delta=1e-9).frame.count().preview(epsilon=0.5)
    of_budget = dpnb.Budget(epsilon=0.5, delta="9e-10").loss
    assert preview.cost == of_budget
    assert preview.cost.mu < made().frame.count().preview(epsilon=0.5).cost.mu


@pytest.mark.parametrize(
    "ask",
    [
        lambda session: session.frame.count().release(share=0.5),
        lambda session: session.frame.count().preview(share=0.5),
        lambda session: session.delegate(share=0.5, name="colleague"),
        lambda session: session.noise_reduction(session.frame.count()),
    ],
)
def test_share_of_nothing_is_refused_with_a_remedy(ask: Callable[[dpnb.Session], Any]) -> None:
    session = made()
    with pytest.raises(RequestError, match=r"without a budget|has no budget"):
        ask(session)
    assert not session.spent
    assert not len(session.log)


# --- an attack: more than a ledger's budget, by opening the ledger without it --------------------------------------


def test_ledger_with_a_budget_is_never_opened_without_one(tmp_path: Path) -> None:
    path = tmp_path / "clinic.dpnb"
    before = made(path, budget=BUDGET)
    before.frame.count().release(share=1)
    for how in ({}, {"odometer_delta": 1e-6}, {"filter": "gdp"}):
        with pytest.raises(LedgerError, match=r"was created for another budget"):
            made(path, **how)
    with pytest.raises(dpnb.errors.BudgetExceeded):
        made(path, budget=BUDGET).frame["age"].mean().release(mu=0.01)


def test_ledger_without_a_budget_is_never_opened_with_one(tmp_path: Path) -> None:
    """A budget that begins after answers would promise what they have already exceeded."""
    path = tmp_path / "clinic.dpnb"
    made(path).frame.count().release(mu=5)
    for budget in (BUDGET, dpnb.Budget.gdp(100), dpnb.Budget(epsilon=1, delta=1e-6, discovery_delta=1e-7)):
        with pytest.raises(LedgerError, match=r"was created for another budget"):
            made(path, budget=budget)


def test_control_metadata_that_omits_the_budget_would_open_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the attack: with equal texts for every budget, a spent ledger answers again."""
    monkeypatch.setattr(dpnb.Budget, "to_json", lambda self: {})
    monkeypatch.setattr("dpnb.accounting.budget.NoBudget.to_json", lambda self: {})
    monkeypatch.setattr("dpnb._core.options.NO_FILTER", "gdp")
    monkeypatch.setattr("dpnb.accounting.guarantee.NO_FILTER", "gdp")
    path = tmp_path / "clinic.dpnb"
    made(path, budget=BUDGET).frame.count().release(share=1)
    made(path).frame["age"].mean().release(mu=5)


def test_odometer_of_a_ledger_is_chosen_once(tmp_path: Path) -> None:
    path = tmp_path / "clinic.dpnb"
    made(path).frame.count().release(mu=0.1)
    with pytest.raises(LedgerError, match=r"was created for another budget"):
        made(path, odometer_delta=0.1)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ({"filter": "zcdp"}, r"^filter: enforces a budget"),
        ({"filter": "none"}, r"^filter: enforces a budget"),
        ({"filter": "none", "budget": BUDGET}, r"^filter: must be one of"),
        ({"accounting": "individual"}, r"^accounting: 'individual' gives each unit a budget"),
        ({"budget": BUDGET, "odometer_delta": 1e-6}, r"^odometer_delta: is for a session without a budget"),
        ({"odometer_delta": 1}, r"^odometer_delta must be"),
        ({"budget": "none"}, r"^budget: must be one dpnb.Budget"),
        ({"budget": False}, r"^budget: must be one dpnb.Budget"),
    ],
)
def test_absence_of_a_budget_is_stated_plainly_or_refused(how: dict[str, Any], says: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=says):
        made(tmp_path / "clinic.dpnb", **how)
    assert not (tmp_path / "clinic.dpnb").exists()


def test_budget_must_be_written() -> None:
    with pytest.raises(TypeError, match="budget"):
        dpnb.Session(TABLE, name="clinic", schema={"age": dpnb.Bounded(0, 100)}, ledger=MEMORY)  # type: ignore[call-arg]


@pytest.mark.parametrize("filter_", [None, "gdp", "none", "zcdp", "rogers"])
@pytest.mark.parametrize("parent", [None, BUDGET])
def test_sub_session_always_has_a_budget(parent: dpnb.Budget | None, filter_: Any) -> None:
    """An analyst cannot turn a budget off by delegating."""
    session = made(budget=parent)
    with pytest.raises(RequestError, match=r"give one of a dpnb\.Budget"):
        session.delegate(None, name="colleague", filter=filter_)
    if filter_ in (None, "gdp"):
        colleague = session.delegate(mu=0.1, name="colleague", filter=filter_)
        assert isinstance(colleague.filter, GDPFilter)
        with pytest.raises(dpnb.errors.BudgetExceeded):
            colleague.frame.count().release(mu=0.2)
        colleague.frame.count().release(share=1)
        assert session.spent == GDP("0.1")
    else:
        with pytest.raises(RequestError, match="cannot count"):
            session.delegate(mu=0.1, name="colleague", filter=filter_)


@pytest.mark.parametrize("how", [{}, {"budget": BUDGET, "filter": "zcdp"}])
def test_sub_session_with_a_reserve_is_counted_as_its_loss(how: dict[str, Any], tmp_path: Path) -> None:
    inner = dpnb.Budget(epsilon=0.5, delta=1e-7, pure_epsilon=0.05)
    session = made(tmp_path / "clinic.dpnb", **how)
    colleague = session.delegate(inner, name="colleague", filter="gdp")
    colleague.above_threshold(threshold=2, epsilon=0.05, name="scan")
    again = made(tmp_path / "clinic.dpnb", **how)
    assert again.spent == session.spent == convert(colleague.filter.budget, type(session.spent))


# --- what is recorded and restored ---------------------------------------------------------------------------------


def test_restart_restores_the_loss_and_the_odometers(tmp_path: Path) -> None:
    path = tmp_path / "clinic.dpnb"
    first = made(path, odometer_delta=1e-8)
    answer = first.frame.count().release(mu=2)
    first.frame["age"].mean().release(epsilon=1)
    first.partition("sex")["f"].frame.count().release(mu=0.3)
    first.partition("sex").close()
    again = made(path, odometer_delta=1e-8)
    assert again.spent == first.spent
    assert isinstance(again.odometer, MixtureOdometer)
    assert again.odometer == first.odometer
    assert float(again.odometer.failure) == 1e-8
    repeated = again.frame.count().release(mu=2)
    assert repeated.estimate == answer.estimate
    assert again.spent == first.spent
    opened = Accountant.from_ledger(again.ledger)
    assert opened.filter == again.filter
    assert not opened.guarantee.has_budget


def test_partition_costs_its_largest_part() -> None:
    session = made()
    parts = session.partition("sex")
    parts["f"].frame.count().release(mu=3)
    parts["m"].frame.count().release(mu=4)
    assert session.spent == GDP(4)
    assert parts["f"].spent == GDP(3)
    assert parts["f"].budget is None
    assert math.isnan(parts["f"].headroom)
    with pytest.raises(RequestError, match="has no budget"):
        parts["f"].frame.count().release(share=0.5)


def test_scan_is_counted_at_launch() -> None:
    session = made()
    session.above_threshold(threshold=2, epsilon=0.5, name="scan")
    assert session.spent.mu == pytest.approx(mu_from_pure(0.5), rel=1e-12)
    assert float(session.odometer.v) == pytest.approx(math.tanh(0.25), rel=1e-12)  # not 0.25, epsilon squared


def test_noise_reduction_starts_where_it_is_told() -> None:
    session = made()
    reduction = session.noise_reduction(session.frame.count(), initial_mu=0.1)
    reduction.step()
    assert session.spent == GDP("0.1")


def test_discoveries_use_a_tenth_of_the_delta_of_the_odometers(recwarn: pytest.WarningsRecorder) -> None:
    session = dpnb.Session(
        pd.DataFrame({"note": ["a"] * 500}), name="texts", budget=None, schema={"note": dpnb.Text()}, ledger=MEMORY
    )
    assert not recwarn.list
    session.frame.discover("note").release(mu=1)
    assert float(session.spent.delta) == 1e-8
    assert math.isfinite(session.odometer.bound)
    for mu in range(2, 14):  # more than was set aside: the odometer says so, and nothing is refused
        session.frame.discover("note", discovery_delta=1e-7).release(mu=mu)
    assert session.odometer.bound == math.inf
    assert "no number bounds the privacy loss" in session.odometer.statement()
    assert "unbounded" in str(session)


# --- what is shown -------------------------------------------------------------------------------------------------


def test_log_and_history_have_losses_without_shares() -> None:
    session = made()
    answer = session.frame.count().release(mu=0.5).refine(mu=1)
    assert session.log["cost_fraction"].isna().all()
    assert session.log["mu"].sum() == pytest.approx(0.5 + 0.75**0.5)
    table = answer.history.to_pandas()
    assert table["cost_fraction"].isna().all()
    assert "mu 0.5" in str(answer.history)
    assert "%" not in str(answer.history).replace("95%", "")
    assert session.frame.count().preview(mu=[0.1, 0.2]).to_pandas()["headroom_after"].isna().all()


def test_explanation_reports_and_promises_nothing() -> None:
    session = made()
    session.frame.count().release(mu=0.5)
    words = " ".join(str(session.explain()).split())
    assert "the curator declared no budget" in words
    assert "no query is refused for its cost" in words
    assert "mu 0.5 in total" in words
    assert "With confidence 99.9999%, the privacy loss so far is at most" in words


def test_picker_offers_losses_and_marks_itself() -> None:
    session = made(public_rows=4)
    state = make_state(session.frame["age"].mean())
    assert state.notice == NO_BUDGET
    assert {name for option in state.options for name in option.target} == {"mu", "at_most"}
    assert {option.remaining for option in state.options} == {None}
    assert state.options[-1].target == {"mu": "0.5", "at_most": "1/4"}
    assert not any("%" in text for option in state.options for text in (option.cost, option.loss, option.after))
    assert [preset.meaning for preset in state.presets] == ["mu at most 0.02", "mu at most 0.05", "mu at most 0.1"]
    assert all(option.confirm for option in state.options if float(option.target["mu"]) > 0.11)
    assert state.options[-1].confirm == "Release for mu 0.5, which no budget limits?"
    session.frame["age"].mean().release(mu=3)
    state = make_state(session.frame["age"].mean())
    mus = [float(option.target["mu"]) for option in state.options]
    assert mus == sorted(mus)
    assert 3 < mus[0] < mus[-1] <= math.hypot(3, 15)
    assert state.options[-1].after == "no budget: mu 15 in total with it"


def test_picker_proposes_a_count_for_a_loss() -> None:
    session = made(not_private_test_seed=1)  # whether a second count would help depends on the noise of the first
    step = make_state(session.frame["age"].mean()).count_step
    assert step is not None
    assert step.target == {"mu": "0.02", "at_most": "1/2500"}
    assert "mu 0.02" in step.label
    session.frame["age"].count().release(mu=0.02)
    step = make_state(session.frame["age"].mean()).count_step
    assert step is not None
    assert 0.02 < float(step.target["mu"]) <= 0.02 * 2**0.5


@pytest.mark.parametrize(("mu", "is_large"), [(0.1, False), (0.11, True), (50, True)])
def test_large_release_by_mouse_is_confirmed(mu: float, is_large: bool) -> None:
    assert bool(large_release(made().frame.count(), target_from(mu), 0.2)) == is_large
    assert large_release(made().frame.count(), target_from(mu), 1) is None


def test_declaration_file_states_it_in_words(tmp_path: Path) -> None:
    file = tmp_path / "clinic.toml"
    columns = '[schema]\nage = { type = "bounded", low = 0, high = 100 }\n'
    file.write_text(f'name = "clinic"\nbudget = "none"\nodometer_delta = 1e-9\n{columns}', encoding="utf-8")
    session = dpnb.Session.from_toml(file, TABLE)
    assert session.budget is None
    assert session.notice == NO_BUDGET
    assert float(session.odometer.failure) == 1e-9  # type: ignore[attr-defined]
    for line in ("", 'budget = "None"\n', "budget = false\n", 'budget = ""\n', "[budget]\n"):
        file.write_text(f'name = "clinic"\n{line}{columns}', encoding="utf-8")
        with pytest.raises(InvalidValueError, match="budget"):
            dpnb.Session.from_toml(file, TABLE)


def test_batches_and_selections_are_released_and_say_that_nothing_limits_them() -> None:
    session = made()
    df = session.frame
    batch = session.plan([df.count(), df.groupby("sex").count()])
    assert "headroom after:  no budget" in str(batch.preview(mu=0.5))
    assert math.isnan(batch.release(mu=0.5).cost_fraction)
    largest = df.groupby("sex").size().idxmax()
    assert "remaining:  no budget" in str(largest.preview(epsilon=0.5))
    largest.release(epsilon=0.5)
    assert "NaN" not in str(session) + str(largest.preview(epsilon=[0.5, 1])) + str(batch.release(mu=0.5))
