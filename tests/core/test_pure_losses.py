"""Mechanisms in pure DP in a session under the GDP filter: what they are charged, and what the ledger keeps."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from dpnb._core import open_sessions
from dpnb.accounting import GDPFilter, PureGDP
from dpnb.accounting.conversions import mu_from_pure, residue_charge
from dpnb.accounting.convert import convert
from dpnb.accounting.exact import exact
from dpnb.accounting.filters import gdp
from dpnb.accounting.losses import GDP, PureDP
from dpnb.errors import BudgetExceeded, InvalidValueError, LedgerError, RequestError
from dpnb.ledger.charge import COLUMNS, chained_hash, result_hash
from dpnb.session.snapshot import snapshot

TABLE = pd.DataFrame({"person": range(6), "town": ["n", "s"] * 3, "x": [1.0, 2, 3, 4, 5, 6]})
ONE = dpnb.Budget(epsilon=1, delta=1e-6)
RESERVED = dpnb.Budget(epsilon=1, delta=1e-6, pure_epsilon="0.15")


def opened(ledger: Path | str, **changes: Any) -> dpnb.Session:
    declared: dict[str, Any] = {
        "name": "clinic",
        "privacy_unit": "person",
        "max_rows_per_unit": 1,
        "budget": ONE,
        "schema": {"x": dpnb.Bounded(0, 10), "town": dpnb.Categories(["n", "s"])},
        "ledger": ledger,
    }
    return dpnb.Session(TABLE, **{**declared, **changes})


@pytest.mark.parametrize(("epsilon", "left"), [("0.05", 0.955), ("0.1", 0.815), ("0.15", 0.557)])
def test_a_launch_leaves_more_of_the_budget_than_its_conversion_alone(epsilon: str, left: float) -> None:
    session = opened(":memory:")
    session.above_threshold(3, name="scan", epsilon=epsilon)
    assert session.headroom == pytest.approx(left, abs=6e-4)
    assert session.headroom > 1 - mu_from_pure(epsilon) ** 2 / float(ONE.loss.mu_squared) + 0.01


@pytest.mark.parametrize("budget", [dpnb.Budget.gdp(50), dpnb.Budget(1000, "1e-6", pure_epsilon="0.1")], ids=str)
def test_launches_are_not_free_under_a_large_budget(budget: dpnb.Budget) -> None:
    session = opened(":memory:", budget=budget)
    for number in range(3):
        before = session.spent.mu_squared
        session.above_threshold(3, name=f"scan {number}", epsilon=5)
        assert 14 < session.spent.mu_squared - before < 15


def test_a_preview_names_the_charge_and_a_launch_that_does_not_fit_is_refused() -> None:
    session = opened(":memory:")
    preview = " ".join(str(session.above_threshold(3, name="scan", epsilon="0.1", dry_run=True)).split())
    cost = "18.5% of the budget (mu 0.1018 for epsilon 0.1)"
    assert f"{cost}, in full at launch; 81.5% of the budget would remain" in preview
    with pytest.raises(BudgetExceeded, match=r"above-threshold big: .* epsilon=0.188\d is the largest that fits"):
        session.above_threshold(3, name="big", epsilon="0.2")
    assert not session.spent


def test_the_charge_is_recorded_and_never_computed_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(tmp_path / "clinic.dpnb")
    session.frame.count().release(mu="0.1")
    session.above_threshold(3, name="scan", epsilon="0.05")
    session.above_threshold(3, name="second", epsilon="0.05")
    spent, text = session.spent, str(session)
    first = residue_charge("0.05", mu_squared=ONE.loss.mu_squared - Fraction(1, 100))
    assert session.ledger.charges()[1].charged == PureGDP.of(first or Fraction(0), Fraction(0), Fraction(0))

    def refuse(*arguments: Any, **named: Any) -> None:
        raise AssertionError("the charge was computed again")

    monkeypatch.setattr(gdp, "residue_charge", refuse)
    again = opened(tmp_path / "clinic.dpnb")
    assert again.spent == spent
    assert again.above_threshold(3, name="scan", epsilon="0.05").cost == PureDP("0.05")
    monkeypatch.undo()
    assert str(again) == text


def rewritten(path: Path, number: int, **values: str | None) -> None:
    """A ledger whose last row, `number`, was written with other values: all hashes are as they should be."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        for column, value in values.items():
            file.execute(f"UPDATE events SET {column} = ? WHERE id = ?", (value, number))
        previous = next((row[0] for row in file.execute("SELECT hash FROM events WHERE id = ?", (number - 1,))), "")
        if not previous:
            ((previous,),) = file.execute("SELECT value FROM metadata WHERE key = 'first_hash'")
        ((*stored,),) = file.execute(f"SELECT {', '.join(COLUMNS)} FROM events WHERE id = ?", (number,))
        row = dict(zip(COLUMNS, stored, strict=True))
        chained = chained_hash(previous, row)
        result = result_hash(chained, row["status"], row["answer_digest"])
        file.execute("UPDATE events SET hash = ?, result_hash = ? WHERE id = ?", (chained, result, number))
        file.execute("UPDATE head SET hash = ?", (chained,))


def test_a_row_of_an_earlier_version_is_still_converted_alone(tmp_path: Path) -> None:
    path = tmp_path / "clinic.dpnb"
    session = opened(path)
    session.frame.count().release(mu="0.01")
    session.above_threshold(3, name="scan", epsilon="0.1")
    session.ledger.close()
    rewritten(path, 2, charged_mu_squared=None, charged_epsilon=None)
    alone = exact(mu_from_pure("0.1")) ** 2
    assert opened(path).spent == GDP.from_mu_squared(alone + Fraction(1, 10**4))


@pytest.mark.parametrize("values", [{"charged_epsilon": "1/10"}, {"charged_mu_squared": "-1"}])
def test_a_charge_that_no_session_writes_is_refused(tmp_path: Path, values: dict[str, str]) -> None:
    path = tmp_path / "clinic.dpnb"
    session = opened(path)
    session.frame.count().release(mu="0.01")
    session.above_threshold(3, name="scan", epsilon="0.1")
    session.ledger.close()
    rewritten(path, 2, **values)
    with pytest.raises(LedgerError, match=r"row 2|was the ledger edited"):
        opened(path)


def test_a_launch_in_a_part_is_charged_at_what_is_left_for_the_part() -> None:
    session = opened(":memory:")
    parts = session.partition("town", name="towns", max_parts_per_unit=1)
    parts["n"].frame.count().release(mu="0.2")
    # Of part s nothing is spent, and its units have the whole budget.
    parts["s"].above_threshold(1, name="scan", epsilon="0.1")
    charge = residue_charge("0.1", mu_squared=ONE.loss.mu_squared)
    assert session.ledger.charges()[-1].charged == PureGDP.of(charge or Fraction(0), Fraction(0), Fraction(0))
    assert session.spent == GDP("0.2"), "the session pays for the largest part"
    # In part n less is left, so that the same launch is charged more; there it does not fit.
    with pytest.raises(BudgetExceeded):
        parts["n"].above_threshold(1, name="scan", epsilon="0.15")
    parts["n"].above_threshold(1, name="small", epsilon="0.05")
    left = residue_charge("0.05", mu_squared=ONE.loss.mu_squared - Fraction(4, 100))
    assert session.spent == GDP.from_mu_squared(Fraction(4, 100) + (left or 0))


def test_the_reading_while_a_scan_is_open_holds_for_every_budget() -> None:
    """Attack: the charge of a launch at a large budget is too little for a smaller one, so no bound may contain it."""
    session = opened(":memory:", budget=dpnb.Budget.gdp(3))
    session.above_threshold(3, name="scan", epsilon=1)
    reading = session._core.account.accumulator.bound
    assert GDPFilter(Fraction(reading)).admits(PureDP(1))
    control = session.spent.mu
    assert not GDPFilter(Fraction(control)).admits(PureDP(1))
    assert "reflection" not in session._core.account.compared().odometers


def test_other_filters_count_the_loss_and_record_no_charge() -> None:
    session = opened(":memory:", filter="zcdp")
    session.above_threshold(3, name="scan", epsilon="0.1")
    assert session.ledger.charges()[-1].charged is None


EVERY_FILTER: dict[str, dict[str, Any]] = {
    "gdp": {"budget": dpnb.Budget(3, "1e-6")},
    "zcdp": {"budget": dpnb.Budget(3, "1e-6"), "filter": "zcdp"},
    "rdp": {"budget": dpnb.Budget(3, "1e-6"), "filter": "rdp"},
    "approx-dp": {"budget": dpnb.Budget(3, "1e-6"), "filter": "approx-dp"},
    "reserve": {"budget": dpnb.Budget(3, "1e-6", pure_epsilon="0.15")},
    "no budget": {"budget": None},
}


@pytest.mark.parametrize("changes", EVERY_FILTER.values(), ids=EVERY_FILTER)
def test_the_log_says_what_was_charged(changes: dict[str, Any]) -> None:
    """The squares of its mu add up to what is spent, whatever was requested."""
    session = opened(":memory:", **changes)
    count = session.frame.count()
    count.release(mu="0.05").refine(mu="0.08")
    session.plan([session.frame.groupby("town").size(), session.frame["x"].sum()]).release(mu="0.07")
    session.above_threshold(3, name="scan", epsilon="0.15").ask(count)
    session.frame.groupby("town").size().top(1).release(epsilon="0.1")
    session.noise_reduction(session.frame["x"].sum(), name="sum", initial_mu="0.05", max_mu="0.1").step()
    session.delegate(mu="0.06", name="colleague").frame.count().release(mu="0.06")
    parts = session.partition("town", max_parts_per_unit=1)
    parts["n"].frame.count().release(mu="0.1")  # the only part that is charged
    spent = session.spent
    mu_squared = getattr(spent, "mu_squared", None) or 2 * spent.parts[0] / getattr(spent, "orders", (1,))[0]
    log = session.log
    total = sum((Fraction(str(mu)) ** 2 for mu in log["mu"]), Fraction(0))  # every mu is rounded up
    assert 0 <= total - mu_squared < Fraction(1, 10**14)
    if isinstance(spent, PureGDP):
        assert Fraction(str(log["pure_epsilon"].sum())) == spent.epsilon
    else:
        assert "pure_epsilon" not in log


@pytest.mark.parametrize(("epsilon", "says"), [("0.1", True), (None, False)])
def test_the_explanation_says_why_two_amounts_stand_beside_each_other(epsilon: str | None, says: bool) -> None:
    session = opened(":memory:")
    session.frame.count().release(mu="0.05")
    if epsilon is not None:
        session.above_threshold(3, name="scan", epsilon=epsilon)
    assert ("is counted as under any budget" in " ".join(repr(session.explain()).split())) is says


def test_log_statement_panel_and_preview_name_one_figure() -> None:
    session = opened(":memory:")
    preview = repr(session.above_threshold(3, name="scan", epsilon="0.15", dry_run=True))
    scan = session.above_threshold(3, name="scan", epsilon="0.15")
    charged = session.spent
    assert isinstance(charged, GDP)
    assert charged.mu < convert(PureDP("0.15"), GDP).mu - 0.03  # the mu that its epsilon implies
    words = f"{charged.words} for epsilon 0.15"
    assert words in preview
    assert words in scan.summary
    (entry,) = snapshot(session).log
    assert (entry.cost, entry.mu) == (words, charged.mu)
    (one,) = session.report().releases
    assert (one.loss, one.charged, one.mu) == ("epsilon 0.15", charged.words, charged.mu)
    assert session.log["mu"].tolist() == [charged.mu]


# --- a reserve for pure losses --------------------------------------------------------------------------------------


def test_scans_within_the_reserve_leave_the_other_budget_as_it_is(tmp_path: Path) -> None:
    session = opened(tmp_path / "clinic.dpnb", budget=RESERVED)
    assert "(1, 1e-06)-DP, enforced as 0.2101-GDP and a reserve of epsilon 0.15 in pure DP" in session.guarantee
    preview = str(session.above_threshold(3, name="scan", epsilon="0.1", dry_run=True))
    assert "66.7% of the reserve (epsilon 0.1), in full at launch; 100.0% of the budget would remain" in preview
    session.above_threshold(3, name="scan", epsilon="0.1")
    assert session.headroom == 1
    assert session.spent == PureGDP("0.1", mu=0)
    assert session.filter.max_repetitions(GDP(Fraction(1, 70))) == 216
    again = opened(tmp_path / "clinic.dpnb", budget=RESERVED)
    assert again.spent == session.spent
    again.frame.count().release(share=1)
    assert again.headroom == 0
    again.above_threshold(3, name="another", epsilon="0.05")
    assert again.filter.affordable() == PureGDP(0, mu=0)
    with pytest.raises(BudgetExceeded):
        again.above_threshold(3, name="one more", epsilon="0.001")


def test_a_scan_beyond_the_reserve_takes_one_joint_charge_and_is_never_split() -> None:
    session = opened(":memory:", budget=RESERVED)
    with pytest.raises(BudgetExceeded):
        opened(":memory:").above_threshold(3, name="scan", epsilon="0.2")  # without a reserve it does not fit
    session.above_threshold(3, name="scan", epsilon="0.2")
    joint = residue_charge("0.2", mu_squared=RESERVED.loss.mu_squared, pure_epsilon="0.15")
    assert session.spent == PureGDP.of(joint or Fraction(0), Fraction(0), Fraction("0.15"))
    split = residue_charge("0.05", mu_squared=RESERVED.loss.mu_squared)
    assert joint is not None
    assert split is not None
    assert joint > 5 * split
    words = f"{GDP.from_mu_squared(joint).words} and epsilon 0.15 of the reserve for epsilon 0.2"
    assert f"of the budget and 100.0% of the reserve ({words})" in session.mechanisms["scan"].summary


def test_the_gauges_show_both_parts_of_the_budget() -> None:
    session = opened(":memory:", budget=RESERVED)
    session.frame.count().release(mu="0.1")
    session.above_threshold(3, name="scan", epsilon="0.1")
    state = snapshot(session)
    assert [gauge.id for gauge in state.gauges] == ["headroom", "reserve", "mixture"]
    assert (state.gauges[1].text, state.gauges[1].label) == ("33.3% left", "Reserve (pure DP)")
    assert "mu 0.1 of 0.21, and epsilon 0.1 of 0.15 of the reserve" in state.spent_loss
    assert "Reserve (pure DP)" in str(session)
    assert "Reserve (pure DP)" in (session._repr_html_() or "")
    assert state.log[0].cost == "epsilon 0.1 of the reserve"


def test_a_cell_that_only_took_from_the_reserve_says_so() -> None:
    session = opened(":memory:", budget=RESERVED)
    open_sessions.set_cell_provider(lambda: "scanning")
    try:
        session.above_threshold(3, name="scan", epsilon="0.1")
        assert [cell.text for cell in snapshot(session).cell_costs] == ["66.7% of the reserve"]
        session.above_threshold(3, name="larger", epsilon="0.06")
    finally:
        open_sessions.set_cell_provider(None)
    (cell,) = snapshot(session).cell_costs
    assert re.fullmatch(r"[\d.]+% of the budget and 100.0% of the reserve", cell.text)
    assert "cost " + cell.text + " of clinic: " in cell.description


def test_odometer_at_the_end_of_its_scale_when_budget_and_reserve_are_spent() -> None:
    session = opened(":memory:", budget=RESERVED)
    session.above_threshold(3, name="scan", epsilon="0.15").close()
    session.frame.count().release(share=1)
    gauge = snapshot(session).gauges[-1]
    assert gauge.id == "mixture"
    assert gauge.value == pytest.approx(1, abs=1e-3)
    assert gauge.value <= 1


def test_parts_share_the_reserve_like_the_rest_of_the_budget() -> None:
    session = opened(":memory:", budget=RESERVED)
    parts = session.partition("town", name="towns", max_parts_per_unit=1)
    for town in ("n", "s"):
        parts[town].above_threshold(1, name="scan", epsilon="0.15")
    assert session.spent == PureGDP("0.15", mu=0), "a unit is in one part"
    again = session.partition("town", name="again", max_parts_per_unit=2)
    with pytest.raises(BudgetExceeded):
        again["n"].above_threshold(1, name="scan", epsilon="0.3")


def test_a_sub_session_may_have_a_reserve_of_its_own() -> None:
    inner = dpnb.Budget(epsilon="0.4", delta="1e-7", pure_epsilon="0.1")
    for budget in (RESERVED, ONE):
        session = opened(":memory:", budget=budget)
        team = session.delegate(inner, name="team")
        team.above_threshold(3, name="scan", epsilon="0.1")
        assert team.headroom == 1
        team.frame.count().release(share=1)
        paid = session.spent
    assert isinstance(paid, GDP)
    pure = residue_charge("0.1", mu_squared=ONE.loss.mu_squared)
    assert paid.mu_squared == inner.loss.mu_squared + (pure or 0)


@pytest.mark.parametrize("filter_", ["zcdp", "rdp", "approx-dp", "rogers", "basic"])
def test_a_reserve_requires_the_gdp_filter(filter_: str) -> None:
    with pytest.raises(InvalidValueError, match="pure_epsilon"):
        opened(":memory:", budget=RESERVED, filter=filter_)


def test_individual_accounting_has_no_reserve_and_refuses_pure_losses() -> None:
    with pytest.raises(InvalidValueError, match="pure_epsilon"):
        opened(":memory:", budget=RESERVED, accounting="individual")
    session = opened(":memory:", accounting="individual")
    with pytest.raises(RequestError, match="individual"):
        session.above_threshold(3, name="scan", epsilon="0.1")


def test_a_ledger_with_a_reserve_is_not_opened_without_it(tmp_path: Path) -> None:
    opened(tmp_path / "clinic.dpnb", budget=RESERVED).frame.count().release(mu=0.01)
    with pytest.raises(LedgerError, match="budget"):
        opened(tmp_path / "clinic.dpnb")


# --- budgets in pure DP ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("filter_", ["gdp", "zcdp", "rdp", "approx-dp", "basic"])
def test_a_sub_session_in_pure_dp_is_charged_like_a_scan_and_takes_only_scans(filter_: str) -> None:
    session, other = (opened(":memory:", filter=filter_) for _ in range(2))
    team = session.delegate(dpnb.Budget.pure("0.1"), name="team")
    other.above_threshold(3, name="scan", epsilon="0.1")
    assert session.spent == other.spent
    team.above_threshold(3, name="scan", epsilon="0.06")
    assert team.headroom == 0.4
    assert "0.1-DP" in team.guarantee
    assert "epsilon 0.06 of 0.1" in str(team)
    assert "factor of at most 1.11 (e to the epsilon of 0.1), however" in " ".join(str(team.explain()).split())
    for refused in (lambda: team.frame.count().release(mu="0.001"), lambda: team.frame.count().release(share=1)):
        with pytest.raises(BudgetExceeded):
            refused()
    assert str(team.frame.count())
    with pytest.raises(BudgetExceeded, match=r"epsilon=0.04 is the largest that fits|nothing is left"):
        team.above_threshold(3, name="more", epsilon="0.05")
    assert session.spent == other.spent


def test_a_session_in_pure_dp_survives_a_restart(tmp_path: Path) -> None:
    budget = dpnb.Budget.pure("0.3")
    session = opened(tmp_path / "clinic.dpnb", budget=budget)
    session.above_threshold(3, name="scan", epsilon="0.1").close()
    again = opened(tmp_path / "clinic.dpnb", budget=budget)
    assert again.spent == session.spent == PureGDP("0.1", mu=0)
    assert [gauge.id for gauge in snapshot(again).gauges] == ["headroom", "mixture"]
    assert 0 < snapshot(again).gauges[1].value < 1
    assert dpnb.Budget.from_json(budget.to_json()) == budget


@pytest.mark.parametrize(
    "target", [{}, {"share": 0.1}, {"mu": 0.1}, {"rho": 0.1}, {"epsilon": 0.1}, {"within": 10}], ids=str
)
def test_a_session_in_pure_dp_refuses_gaussian_noise_for_what_it_is(target: dict[str, Any]) -> None:
    session = opened(":memory:", budget=dpnb.Budget.pure("0.3"))
    count, by_town = session.frame.count(), session.frame.groupby("town").size()
    for preview in (count.preview, session.plan([count, by_town]).preview):
        with pytest.raises(BudgetExceeded, match=r"has Gaussian noise, and the budget is in pure DP; use .*idxmax"):
            preview(**target)
    with pytest.raises(BudgetExceeded, match="has Gaussian noise, and the budget is in pure DP"):
        session.noise_reduction(count, name="visits")
    assert session.headroom == 1


def test_a_session_in_pure_dp_delegates_budgets_in_pure_dp_only() -> None:
    session = opened(":memory:", budget=dpnb.Budget.pure("0.3"))
    for arguments in ({"mu": 0.05}, {"share": 0.5}, {"budget": dpnb.Budget(epsilon=0.05, delta=1e-7)}):
        with pytest.raises(BudgetExceeded, match=r"in pure DP.*give for example dpnb\.Budget\.pure\(0\.03\)"):
            session.delegate(**arguments, name="team")
    assert session.delegate(dpnb.Budget.pure("0.03"), name="team").headroom == 1


def test_the_first_steps_of_a_session_in_pure_dp_run(capsys: pytest.CaptureFixture[str]) -> None:
    session = opened(":memory:", budget=dpnb.Budget.pure("0.3"))
    names: dict[str, Any] = {"session": session}
    for step in snapshot(session).next_steps:
        exec(f"shown = {step.code}" if "df =" not in step.code else step.code, names)
        assert "pure DP;" not in str(names.get("shown"))
    assert "release(epsilon=...)" in str(names["df"].groupby("town").count_units().idxmax())


def test_the_explanation_names_the_rule_of_a_reserve() -> None:
    pure, reserved, plain = (
        " ".join(str(opened(":memory:", budget=budget).explain()).split())
        for budget in (dpnb.Budget.pure("0.3"), RESERVED, ONE)
    )
    assert "mu0^2" not in pure
    assert "the sum of the epsilons of scans and selections against the reserve" in reserved
    assert "reserve" not in plain
    session = opened(":memory:", budget=RESERVED)
    session.above_threshold(3, name="scan", epsilon="0.05")
    assert "each 33.4% of the reserve (epsilon 0.05)" in " ".join(str(session.explain()).split())


def test_a_reserve_that_is_too_large_is_refused_with_the_numbers_as_written() -> None:
    with pytest.raises(InvalidValueError, match=r"below epsilon, got 2 of 1;"):
        dpnb.Budget(1, 1e-6, pure_epsilon=2)


def test_the_launch_of_a_sub_session_with_a_reserve_shows_a_rounded_mu() -> None:
    session = opened(":memory:", budget=None)
    session.delegate(dpnb.Budget(epsilon=1, delta=1e-6, pure_epsilon="0.1"), name="team")
    assert "100.0% left of mu 0.2217 and epsilon 0.1" in str(session)
