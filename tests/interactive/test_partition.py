"""A partition costs the session its largest part."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpnb
from contracts.interactive import TABLE, opened
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded, MechanismClosed, PlanError, RequestError
from dpnb.session import snapshot

PEOPLE = pd.DataFrame(
    {
        "who": [1, 1, 2, 3, 3, 3, 4],
        "site": ["a", "b", "a", "b", "b", "c", "c"],
        "x": [1.0, 2.0, 3.0, 4.0, 5.0, 0.0, 1.0],
    }
)


def of_people(**arguments: Any) -> dpnb.Session:
    given = {"budget": dpnb.Budget.gdp(1), "max_rows_per_unit": 3, "ledger": ":memory:", **arguments}
    schema = {"site": dpnb.Categories(["a", "b", "c"]), "x": dpnb.Bounded(0, 5)}
    return dpnb.Session(PEOPLE, name="people", schema=schema, privacy_unit="who", **given)


def count(session: dpnb.Session, mu: Any, number: float = -1) -> dpnb.Session:
    session.frame[session.frame["x"] > number].count().release(mu=mu)
    return session


# --- what is paid -----------------------------------------------------------------------------------------------------


def test_asking_every_part_costs_what_asking_one_costs(tmp_path: Path) -> None:
    session = opened(tmp_path)
    for part in session.partition("site").values():
        count(part, "0.3")
        assert session.spent == GDP("0.3")
        assert part.spent == GDP("0.3")
    assert list(session.log["cost_fraction"]) == [0.0, 0.09, 0.0, 0.0]


def test_parts_choose_their_own_budgets_and_interleave_with_the_session(tmp_path: Path) -> None:
    session = opened(tmp_path)
    sites = session.partition("site")
    count(sites["a"], "0.3")
    count(session, "0.4")
    assert session.spent == GDP("0.5")
    count(sites["b"], "0.5")  # grows the largest part from 0.09 to 0.25
    assert session.spent == GDP.from_mu_squared("0.41")
    count(sites["a"], "0.4", 1)  # 0.09 + 0.16 is as large
    assert session.spent == GDP.from_mu_squared("0.41")
    assert sites.cost == GDP("0.5")


@given(st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 9)), max_size=8), st.integers(1, 3))
def test_session_pays_for_as_many_of_the_largest_parts_as_a_unit_can_be_in(
    asked: list[tuple[str, int]], most: int
) -> None:
    session = of_people(budget=dpnb.Budget.gdp(3))
    parts = session.partition("site", max_parts_per_unit=most)
    sums = dict.fromkeys("abc", Fraction(0))
    for number, (key, tenth) in enumerate(asked):
        part = parts[key]
        part.frame[part.frame["x"] > number / 10].count().release(mu=Fraction(tenth, 10))
        sums[key] += Fraction(tenth, 10) ** 2
        assert session.spent.mu_squared == sum(sorted(sums.values(), reverse=True)[:most])
        assert {key: part.spent.mu_squared for key, part in parts.items()} == sums
    session.ledger.close()


def test_a_unit_with_several_rows_pays_for_several_parts_unless_limited() -> None:
    session = of_people()
    assert session.partition("site").max_parts_per_unit == 3
    assert session.partition("site", name="at one site", max_parts_per_unit=1).max_parts_per_unit == 1


def test_all_that_is_left_in_a_part_is_what_the_session_can_still_pay_for(tmp_path: Path) -> None:
    session = opened(tmp_path)
    sites = session.partition("site")
    count(sites["a"], "0.6")
    count(session, "0.6")
    # of 1, 0.72 is spent; part b can grow to 0.36 free, and by the 0.28 that is left
    with pytest.raises(BudgetExceeded, match=r"largest that fits is mu=0\.8[, ]"):
        count(sites["b"], "0.80001")
    assert sites["b"].headroom == 1.0
    count(sites["b"], "0.8")
    assert session.headroom == 0
    assert sites["b"].headroom == 0
    with pytest.raises(BudgetExceeded):
        count(session, "1e-6", 2)
    count(sites["c"], "0.8")  # still free
    with pytest.raises(BudgetExceeded):
        count(sites["c"], "1e-6", 2)


def test_a_share_in_a_part_is_of_what_it_can_still_be_charged(tmp_path: Path) -> None:
    session = opened(tmp_path)
    sites = session.partition("site")
    sites["a"].frame.count().release(share=1)
    assert session.headroom == 0
    sites["b"].frame.count().release(share=1)
    assert sites["b"].spent == session.spent == GDP(1)
    with pytest.raises(BudgetExceeded):
        sites["b"].frame["x"].sum().release(share=1)


def test_preview_in_a_part_says_what_it_costs_and_leaves(tmp_path: Path) -> None:
    session = opened(tmp_path)
    part = session.partition("site")["a"]
    assert "mu 0.6" in repr(part.frame.count().preview(mu="0.6"))
    before = part.frame.count().preview(mu="0.6")
    assert (before.cost_fraction, before.headroom_after) == (0.36, 0.64)
    answer = part.frame.count().release(mu="0.6")
    assert "36.0% of the budget" in repr(answer)
    other = session.partition("site")["b"].frame.count()
    before = other.preview(mu="0.6")
    assert (before.cost_fraction, before.headroom_after, before.fits) == (0, 0.64, True)
    assert "0.00% of the budget (mu 0.6)" in repr(other.release(mu="0.6"))
    before = other.preview(mu=1)
    assert (before.cost_fraction, before.headroom_after) == (0.64, 0)


@pytest.mark.parametrize("filter_", ["gdp", "zcdp", "rdp", "approx-dp", "basic"])
def test_every_filter_of_a_sum_pays_in_its_own_scale(tmp_path: Path, filter_: str) -> None:
    budget = dpnb.Budget(8, 1e-6)
    session = opened(tmp_path, budget=budget, filter=filter_)
    sites = session.partition("site")
    spent = count(sites["a"], "0.3") and session.spent
    assert spent
    count(sites["b"], "0.3")
    assert session.spent == spent
    (tmp_path / "plain").mkdir()
    plain = opened(tmp_path / "plain", budget=budget, filter=filter_)
    assert count(plain, "0.3").spent == spent


def test_deltas_of_discoveries_grow_like_the_rest() -> None:
    schema = {"site": dpnb.Categories(["a", "b", "c"]), "town": dpnb.Text()}
    table = pd.DataFrame({"site": ["a", "b"], "town": ["x", "y"]})
    budget = dpnb.Budget(1, 1e-6, discovery_delta=1e-7)
    session = dpnb.Session(table, name="towns", schema=schema, budget=budget, ledger=":memory:")
    for part in session.partition("site").values():
        part.frame.discover("town", discovery_delta=1e-7).release(mu="0.05")
        assert session.spent == GDP("0.05", "1e-7")
    with pytest.raises(BudgetExceeded):
        session.frame.discover("town", discovery_delta=1e-9).release(mu="0.05")


def test_rogers_filter_has_no_rule_and_refuses(tmp_path: Path) -> None:
    session = opened(tmp_path, budget=dpnb.Budget(8, 1e-6), filter="rogers")
    with pytest.raises(RequestError, match="no rule"):
        session.partition("site")
    assert session.ledger.count == 0


def test_comparison_says_what_other_filters_make_of_parts(tmp_path: Path) -> None:
    session = opened(tmp_path, budget=dpnb.Budget(8, 1e-6))
    sites = session.partition("site")
    for part in sites.values():
        count(part, "0.3")
    standings = session._core.account.compared().states
    assert standings["zcdp"].filter.spent.parts[0] == Fraction("0.045")
    assert standings["rogers"].refused_at == 2
    assert session._core.account.compared().odometers["mixture"].v == Fraction("0.09")


# --- what is asked ----------------------------------------------------------------------------------------------------


def test_a_part_answers_about_its_own_rows(tmp_path: Path) -> None:
    session = opened(tmp_path, budget=dpnb.Budget.gdp(100))
    counts = {key: part.frame.count().release(mu=50).estimate for key, part in session.partition("site").items()}
    assert {key: round(value) for key, value in counts.items()} == {"a": 50, "b": 50, "c": 100}
    means = session.partition("site")["c"].frame.groupby("site")["x"].mean().release(mu=50).estimate
    assert means["c"] == pytest.approx(3.5, abs=0.1)


def test_a_question_in_a_part_is_another_question_than_in_the_whole(tmp_path: Path) -> None:
    session = opened(tmp_path)
    part = session.partition("site")["a"]
    answer = part.frame.count().release(mu="0.1")
    assert answer.description == "count of rows in site a"
    assert part.frame.count().best.estimate == answer.estimate
    assert session.frame.count().best is None
    assert session.partition("site")["b"].frame.count().best is None


def test_a_partition_by_a_condition_and_one_inside_a_part(tmp_path: Path) -> None:
    session = opened(tmp_path, budget=dpnb.Budget.gdp(100))
    high = session.partition(session.frame["x"] > 2.5, name="high")
    assert list(high) == [False, True]
    inner = high[True].partition("site")
    for part in inner.values():
        part.frame.count().release(mu=40)
    assert session.spent == GDP(40)
    assert round(inner["c"].frame.count().best.estimate) == 100
    assert inner["c"].frame.count().description == "count of rows in x > 2.5 True, site c"
    high[False].frame.count().release(mu=40)
    assert session.spent == GDP(40)


def test_other_mechanisms_run_inside_a_part(tmp_path: Path) -> None:
    session = opened(tmp_path)
    sites = session.partition("site")
    sub = sites["a"].delegate(mu="0.5", name="colleague")
    assert session.spent == GDP("0.5")
    count(sub, "0.3")
    assert sub.spent == GDP("0.3")
    count(sites["b"], "0.5")
    assert session.spent == GDP("0.5")
    scan = sites["c"].above_threshold(10, name="scan", epsilon="0.1")
    scan.ask(sites["c"].frame.count())
    assert session.spent == GDP("0.5")
    with pytest.raises(RequestError, match="another session"):
        scan.ask(session.frame.count())
    told = [one.name for one in snapshot.snapshot(session).mechanisms]
    assert told == ["by site", "site a: colleague", "site c: scan"]
    assert "site a: colleague" in str(session)


def test_part_of_several_tables_is_of_one() -> None:
    tables = {"people": PEOPLE[["who", "site"]], "visits": PEOPLE[["who", "x"]]}
    schema = {"people": {"site": dpnb.Categories(["a", "b", "c"])}, "visits": {"x": dpnb.Bounded(0, 5)}}
    session = dpnb.Session(
        tables,
        name="several",
        schema=schema,
        privacy_unit="who",
        max_rows_per_unit=3,
        budget=dpnb.Budget.gdp(100),
        ledger=":memory:",
    )
    part = session.partition("site", table="people", max_parts_per_unit=1)["c"]
    assert 0.5 < part.frame.count_units().release(mu=50).estimate < 2.5  # 4, and 3 if the hash has put them there
    joined = part.frame.merge(session.table("visits"), on="who")
    assert joined.count().description.startswith("count of rows in")
    with pytest.raises(PlanError, match="a part of 'people'"):
        part.table("visits")


def test_a_new_version_of_the_table_has_parts_of_its_own(tmp_path: Path) -> None:
    old = opened(tmp_path)
    count(old.partition("site")["a"], "0.3")
    new = opened(tmp_path, version="2")
    assert new.spent == GDP("0.3")
    count(new.partition("site")["b"], "0.3")  # a unit may have moved from one part to the other
    assert new.spent == GDP.from_mu_squared("0.18")


def test_an_unknown_key_is_refused_with_the_keys(tmp_path: Path) -> None:
    sites = opened(tmp_path).partition("site")
    assert list(sites) == ["a", "b", "c"]
    with pytest.raises(PlanError, match="its keys are 'a', 'b', 'c'"):
        sites["d"]


@pytest.mark.parametrize("by", ["x", "nothing", 3, None])
def test_what_has_no_public_keys_is_refused(tmp_path: Path, by: Any) -> None:
    session = opened(tmp_path)
    with pytest.raises(PlanError):
        session.partition(by)
    assert session.ledger.count == 0


def test_closing_it_ends_its_parts_and_what_was_launched_in_them(tmp_path: Path) -> None:
    session = opened(tmp_path)
    sites = session.partition("site")
    inner = sites["a"].partition(session.frame["x"] > 1, name="inner")
    sites.close()
    assert inner.state == "closed"
    for ended in (sites["a"], inner[True]):
        with pytest.raises(dpnb.errors.MechanismClosed, match="by site: this partition is closed"):
            count(ended, "0.1")
    assert len(TABLE) == 200
    assert session.odometer.kind == "time-uniform"


def test_a_part_ends_with_its_partition(tmp_path: Path) -> None:
    session = opened(tmp_path)
    sites = session.partition("site")
    one, other = list(sites.values())[:2]
    count(one, "0.3")
    assert (one.kind, one.charged, one.state) == (sites.kind, sites.charged, "open")
    assert one.cost == sites.cost == GDP("0.3")
    one.close()
    assert sites.state == other.state == "closed"
    with pytest.raises(MechanismClosed, match="is closed"):
        count(other, "0.3")


@pytest.mark.parametrize("by", ["dt", "frame", "number", "query"])
def test_only_a_column_splits_a_table(by: str) -> None:
    session = dpnb.Session.rehearse(
        name="visits",
        budget=dpnb.Budget.gdp(1),
        schema={"day": dpnb.Dates("2024-01-01", "2024-12-31"), "site": dpnb.Categories(["a", "b"])},
    )
    frame = session.frame
    others = {"dt": frame["day"].dt, "frame": frame[["site"]], "number": 3, "query": frame.count()}
    with pytest.raises(PlanError, match="by must be a column's name or an expression of columns; got"):
        session.partition(others[by])
    assert list(session.partition(frame["day"].dt.month)) == list(range(1, 13))
