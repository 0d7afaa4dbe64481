"""A sub-session is paid for at launch, keeps its own promise, and gives nothing back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dpnb
from contracts.interactive import opened
from dpnb._core import open_sessions
from dpnb.accounting.losses import GDP, ZCDP
from dpnb.errors import BudgetExceeded, InvalidValueError, RequestError
from dpnb.session import snapshot


def count(session: dpnb.Session, mu: Any, number: float = -1) -> None:
    session.frame[session.frame["x"] > number].count().release(mu=mu)


def test_all_of_it_is_charged_at_once_and_none_of_it_flows_back(tmp_path: Path) -> None:
    session = opened(tmp_path)
    sub = session.delegate(dpnb.Budget.gdp("0.6"), name="colleague")
    assert session.spent == GDP("0.6")
    count(sub, "0.1")
    assert (session.spent, sub.spent) == (GDP("0.6"), GDP("0.1"))
    sub.close()
    assert session.spent == GDP("0.6")
    with pytest.raises(BudgetExceeded):
        count(session, "0.81")
    count(session, "0.8")


def test_it_says_so_before_it_is_spent(tmp_path: Path) -> None:
    session = opened(tmp_path)
    said = repr(session.delegate(mu="0.6", name="colleague", dry_run=True))
    assert "36.0% of the budget (mu 0.6), in full at launch; 64.0% of the budget would remain" in said
    assert "not refunded" in said
    assert session.ledger.count == 0
    with pytest.raises(BudgetExceeded):
        session.delegate(mu=2, name="colleague", dry_run=True)
    session.delegate(mu="0.6", name="colleague")
    assert "not refunded" in snapshot.snapshot(session).mechanisms[0].description


def test_its_own_filter_refuses_what_its_budget_does_not_cover(tmp_path: Path) -> None:
    session = opened(tmp_path)
    sub = session.delegate(mu="0.5", name="colleague")
    with pytest.raises(BudgetExceeded, match=r"largest that fits is mu=0\.5[, ]"):
        count(sub, "0.50001")
    count(sub, "0.3")
    sub.frame["x"].sum().release(share=1)
    assert sub.headroom == 0
    assert session.headroom == 0.75


def test_it_is_a_session_like_any_other(tmp_path: Path) -> None:
    session = opened(tmp_path)
    sub = session.delegate(mu="0.5", name="colleague")
    answer = sub.frame.count().release(mu="0.2")
    assert answer.refine(mu="0.4").cost == GDP.from_mu_squared("0.12")
    assert sub.frame.count().best is not None
    assert session.frame.count().best is None  # what one was told, the other was not
    assert list(sub.log["query"]) == ["count of rows"] * 2
    assert list(session.log["query"]) == ["launch of the sub-session 'colleague'"]
    assert "0.5-GDP" in str(sub)
    assert "paid for by clinic" in str(sub)
    assert "clinic: colleague" in repr(sub.explain())
    assert sub in open_sessions.sessions()
    assert sub.id != session.id
    assert sub.odometer.kind == session.odometer.kind == "time-uniform"
    assert sub.odometer.v < session.odometer.v  # which counts the whole of it from its launch


def test_sub_sessions_of_sub_sessions_divide_what_they_have(tmp_path: Path) -> None:
    session = opened(tmp_path)
    outer = session.delegate(mu="0.5", name="outer")
    inner = outer.delegate(mu="0.3", name="inner")
    assert (session.spent, outer.spent, inner.spent) == (GDP("0.5"), GDP("0.3"), GDP(0))
    count(inner, "0.3")
    with pytest.raises(BudgetExceeded):
        count(inner, "0.01", 1)
    outer.partition("site")["a"].frame.count().release(mu="0.4")
    assert (session.spent, outer.spent) == (GDP("0.5"), GDP("0.5"))


def test_a_share_is_of_what_is_left_when_it_is_first_asked_for(tmp_path: Path) -> None:
    session = opened(tmp_path)
    sub = session.delegate(share="0.5", name="half")
    assert session.headroom >= 0.5
    for again in (session, opened(tmp_path)):
        assert again.delegate(share="0.5", name="half").spent == sub.spent
        assert again.ledger.count == 1
    with pytest.raises(RequestError, match="identified by its name"):
        session.delegate(share="0.4", name="half")
    session.delegate(share=1, name="rest")
    assert session.headroom == 0
    with pytest.raises(BudgetExceeded, match="no budget remains"):
        session.delegate(share="0.5", name="more")


def test_a_new_version_of_the_table_goes_on_with_its_sub_sessions(tmp_path: Path) -> None:
    sub = opened(tmp_path).delegate(mu="0.5", name="colleague")
    count(sub, "0.4")
    later = opened(tmp_path, version="2")
    again = later.delegate(mu="0.5", name="colleague")
    assert (later.spent, again.spent) == (GDP("0.5"), GDP("0.4"))
    with pytest.raises(BudgetExceeded):
        count(again, "0.31")  # of the new table; nothing of the old one is reused
    count(again, "0.3")


@pytest.mark.parametrize(
    ("own", "other", "charged"),
    [
        ("gdp", "gdp", None),
        ("zcdp", "zcdp", None),
        ("zcdp", "gdp", None),
        ("rdp", "rdp", None),
        ("rdp", "zcdp", None),
        ("approx-dp", "approx-dp", None),
        ("approx-dp", "gdp", None),
        ("basic", "gdp", 1),
        ("basic", "rogers", 1),
        ("basic", "zcdp", 1),
        ("rogers", "basic", 1),
        ("rogers", "gdp", 1),
    ],
)
def test_kinds_that_a_theorem_converts(tmp_path: Path, own: str, other: str, charged: int | None) -> None:
    session = opened(tmp_path, budget=dpnb.Budget(80, 1e-6), filter=own)
    sub = session.delegate(dpnb.Budget(1, 1e-7), name="it", filter=other)
    assert session.spent
    if charged is not None:
        assert (sub.cost.parts[0], sub.cost.delta) == (charged, sub.budget.delta)
    assert sub._core.account.guarantee.filter_name == other
    count(sub, "0.02")
    assert 0 < sub.headroom < 1
    assert sub.log["cost_fraction"].iloc[0] > 0
    assert session.log["mu"].iloc[0] > 0
    json.dumps(msgspec.to_builtins(snapshot.snapshot(session)), allow_nan=False)


@pytest.mark.parametrize(
    ("own", "other"),
    [("gdp", "zcdp"), ("gdp", "rdp"), ("gdp", "approx-dp"), ("gdp", "basic"), ("zcdp", "rogers"), ("zcdp", "rdp")],
)
def test_kinds_that_none_converts_are_refused(tmp_path: Path, own: str, other: str) -> None:
    session = opened(tmp_path, budget=dpnb.Budget(8, 1e-6), filter=own)
    with pytest.raises(RequestError, match="no theorem"):
        session.delegate(dpnb.Budget(1, 1e-7), name="it", filter=other)
    assert session.ledger.count == 0


def test_zcdp_costs_its_rho_and_gdp_half_its_mu_squared(tmp_path: Path) -> None:
    session = opened(tmp_path, budget=dpnb.Budget(8, 1e-6), filter="zcdp")
    session.delegate(rho="0.02", name="one")
    assert session.spent == ZCDP("0.02")
    sub = session.delegate(dpnb.Budget(1, 1e-7), name="two")
    assert session.spent.parts[0] - ZCDP("0.02").parts[0] == sub._core.account.guarantee.initial_filter.budget.parts[0]


def test_a_discovery_delta_is_handed_over_too(tmp_path: Path) -> None:
    session = opened(tmp_path, budget=dpnb.Budget(1, 1e-6, discovery_delta=1e-7))
    session.delegate(dpnb.Budget("0.5", 1e-6, discovery_delta=6e-8), name="one")
    assert session.spent.delta == GDP(0, 6e-8).delta
    with pytest.raises(BudgetExceeded):
        session.delegate(dpnb.Budget("0.1", 1e-6, discovery_delta=6e-8), name="two")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({}, RequestError),
        ({"mu": 0.1, "share": 0.1}, RequestError),
        ({"budget": 0.1}, InvalidValueError),
        ({"mu": -1}, InvalidValueError),
        ({"share": 2}, InvalidValueError),
        ({"mu": 0.1, "name": ""}, InvalidValueError),
        ({"mu": 0.1, "name": 7}, InvalidValueError),
        ({"mu": 0.1, "filter": "none"}, RequestError),
    ],
)
def test_bad_arguments_are_refused_before_anything_is_charged(
    tmp_path: Path, arguments: dict[str, Any], error: type[Exception]
) -> None:
    session = opened(tmp_path)
    with pytest.raises(error):
        session.delegate(**{"name": "it", **arguments})
    assert session.ledger.count == 0
