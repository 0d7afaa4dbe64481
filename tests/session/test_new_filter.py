"""A filter that is defined in this file alone: a session enforces, explains, stores, reports and audits it.

Nothing but one entry in the registry makes it known to dpnb.
"""

from __future__ import annotations

from pathlib import Path
from typing import Self

import pandas as pd
import pytest

import dpnb
from dpnb.accounting import GDP, ZCDP, GDPFilter, Loss, ZCDPFilter
from dpnb.accounting.conversions import rho_from_epsilon
from dpnb.accounting.exact import decimal_up, display_up
from dpnb.accounting.filters import FILTERS, Filter
from dpnb.curator.audit import audit
from dpnb.curator.audit_result import audit_text
from dpnb.errors import BudgetExceeded, InvalidValueError, RequestError
from dpnb.session.snapshot import snapshot

TABLE = pd.DataFrame({"person": range(8), "town": ["n", "s"] * 4, "x": [1.0, 2, 3, 4, 5, 6, 7, 8]})
BUDGET = dpnb.Budget(epsilon=1, delta=1e-6)


class HalfGDPFilter(GDPFilter):
    """Enforces half of the mu squared that the budget allows."""

    name = "half-gdp"
    label = "half of GDP"
    theorem = "Smith and Thakurta 2022, Theorem 1: the sum of mu^2 against half of mu0^2"

    @classmethod
    def from_budget(cls, budget: dpnb.Budget) -> Self:
        if budget.pure_epsilon:
            raise InvalidValueError(f"filter: {cls.name!r} has no reserve; got {budget!r}; leave pure_epsilon out")
        return cls.from_loss(GDP.of(budget.loss.mu_squared / 2, budget.loss.delta))


class SimpleZCDPFilter(ZCDPFilter):
    """Enforces a budget by the simple conversion of zCDP."""

    name = "simple-zcdp"
    label = "simple zCDP"
    theorem = "Bun and Steinke 2016, Proposition 1.3: the sum of rho"
    counted_filters = ("simple-zcdp", "zcdp", "gdp")

    @classmethod
    def from_budget(cls, budget: dpnb.Budget) -> Self:
        epsilon, delta = cls._epsilon_delta(budget)
        return cls(rho_from_epsilon(epsilon, delta=delta, method="simple"))

    @property
    def guarantee(self) -> str:
        return f"{display_up(decimal_up(self.budget.rho))}-zCDP by the simple conversion"


class CautiousFilter(SimpleZCDPFilter):
    """Says as little of itself as it can, and so is treated with caution."""

    name = "cautious"
    label, theorem, guarantee = Filter.label, Filter.theorem, Filter.guarantee
    interleaving_obstacle = Filter.interleaving_obstacle
    partition_obstacle = Filter.partition_obstacle
    counted_filters = ()


NEW: list[type[Filter]] = [HalfGDPFilter, SimpleZCDPFilter, CautiousFilter]


@pytest.fixture(params=NEW, ids=lambda each: each.name)
def filter_(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> type[Filter]:
    monkeypatch.setitem(FILTERS, request.param.name, request.param)
    return request.param  # type: ignore[no-any-return]


def opened(filter_: type[Filter], ledger: Path, **changes: object) -> dpnb.Session:
    return dpnb.Session(
        TABLE,
        **{  # type: ignore[arg-type]
            "name": "clinic",
            "privacy_unit": "person",
            "max_rows_per_unit": 1,
            "budget": BUDGET,
            "filter": filter_.name,
            "schema": {"town": dpnb.Categories(["n", "s"]), "x": dpnb.Bounded(0, 10)},
            "public_size": 8,
            "ledger": ledger,
            **changes,
        },
    )


def test_session_enforces_a_filter_that_it_never_heard_of(filter_: type[Filter], tmp_path: Path) -> None:
    session = opened(filter_, tmp_path / "clinic.dpnb")
    query = session.frame["x"].sum()
    preview = query.preview(share="0.25")
    answer = query.release(share="0.25")
    assert answer.cost == preview.cost
    assert answer.cost_fraction == pytest.approx(0.25)
    assert type(session.filter) is filter_
    assert session.headroom == pytest.approx(0.75, rel=1e-6)
    with pytest.raises(BudgetExceeded, match="the largest that fits"):
        session.frame.count_units().release(mu=1)
    session.frame.count_units().release(share=1)
    assert session.headroom < 1e-9
    with pytest.raises(BudgetExceeded):
        session.frame["x"].mean().release(mu="0.001")


def test_it_is_shown_by_its_own_words(filter_: type[Filter], tmp_path: Path) -> None:
    session = opened(filter_, tmp_path / "clinic.dpnb")
    answer = session.frame["x"].sum().release(share="0.5")
    own = session._core.account.guarantee.initial_filter
    assert own.guarantee in session.guarantee
    shown = snapshot(session)
    assert shown.filter == filter_.name
    (headroom,) = [one for one in shown.gauges if one.id == "headroom"]
    assert f"The {own.label} filter" in headroom.description
    assert f"{own.theorem}." in headroom.description
    assert own.guarantee in session._repr_html_()
    assert "50.0% left" in str(session)
    explained = " ".join(str(session.explain()).split())
    assert f"{own.label} enforces the guarantee ({own.theorem})" in explained
    report = session.report(answers=True)
    assert (report.filter.name, report.filter.label, report.filter.theorem) == (filter_.name, own.label, own.theorem)
    assert report.filter.enforces == own.guarantee
    assert own.theorem in report.to_html()
    (cost,) = session.log["cost_fraction"]
    (mu,) = session.log["mu"]
    assert cost == pytest.approx(0.5)
    assert mu == answer.cost.mu


def test_ledger_is_opened_again_and_audited(filter_: type[Filter], tmp_path: Path) -> None:
    path = tmp_path / "clinic.dpnb"
    answer = opened(filter_, path).frame["x"].sum().release(share="0.5")
    again = opened(filter_, path)
    assert type(again.filter) is filter_
    assert again.headroom == pytest.approx(0.5)
    assert again.frame["x"].sum().release(share="0.5").estimate == answer.estimate
    assert again.headroom == pytest.approx(0.5)
    text = audit_text(audit(str(path)))
    assert "No problem found" in text
    assert repr(filter_.name) in text


def test_other_filters_are_compared_with_it(filter_: type[Filter], tmp_path: Path) -> None:
    session = opened(filter_, tmp_path / "clinic.dpnb")
    session.frame["x"].sum().release(share="0.5")
    states = session._core.account.compared().states
    assert set(states) == set(FILTERS)
    assert next(iter(states)) == filter_.name
    assert states["gdp"].filter.headroom > 0.5


def test_parts_of_a_partition_pay_for_the_largest(filter_: type[Filter], tmp_path: Path) -> None:
    session = opened(filter_, tmp_path / "clinic.dpnb")
    if filter_ is CautiousFilter:
        with pytest.raises(RequestError, match="'cautious' has no rule"):
            session.partition("town")
        return
    parts = session.partition("town")
    parts["n"].frame.count_units().release(mu="0.05")
    spent = session.spent
    parts["s"].frame.count_units().release(mu="0.05")
    assert session.spent == spent
    assert parts["s"].headroom < 1


def test_sub_session_is_charged_at_launch(filter_: type[Filter], tmp_path: Path) -> None:
    session = opened(filter_, tmp_path / "clinic.dpnb")
    if filter_ is CautiousFilter:
        with pytest.raises(RequestError, match=r"filter 'cautious' of this session cannot count"):
            session.delegate(name="ana", mu="0.05")
        return
    inner = session.delegate(name="ana", mu="0.05")
    assert session.spent == session.filter.to_filter_loss(GDP("0.05"))
    inner.frame.count_units().release(mu="0.03")
    assert inner.headroom == pytest.approx(0.64)
    own = session.delegate(name="eve", budget=dpnb.Budget(epsilon="0.1", delta=1e-8))
    assert own.guarantee.startswith("(0.1, 1e-08)-DP")


def test_scan_is_charged_at_launch(filter_: type[Filter], tmp_path: Path) -> None:
    session = opened(filter_, tmp_path / "clinic.dpnb")
    if filter_ is CautiousFilter:
        with pytest.raises(RequestError, match="names no theorem"):
            session.above_threshold(3, name="scan", epsilon="0.05")
        return
    scan = session.above_threshold(3, name="scan", epsilon="0.05")
    scan.ask(session.frame.count_units())
    spent = session.spent
    assert spent == type(session.filter).from_budget(BUDGET).to_filter_loss(dpnb.accounting.PureDP("0.05"))
    assert opened(filter_, tmp_path / "clinic.dpnb").spent == spent
    assert isinstance(spent, GDP | ZCDP)


def test_budget_that_it_cannot_enforce_is_refused(filter_: type[Filter], tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"^filter"):
        opened(filter_, tmp_path / "clinic.dpnb", budget=dpnb.Budget(1, 1e-6, pure_epsilon="0.1"))


def test_it_is_unknown_outside_the_registry(tmp_path: Path) -> None:
    with pytest.raises(InvalidValueError, match=r"^filter: must be one of"):
        opened(HalfGDPFilter, tmp_path / "clinic.dpnb")


class RaisingFilter(CautiousFilter):
    """Cannot count anything, and says so in a way of its own."""

    name = "raising"

    def step(self, loss: Loss) -> Self:
        raise ValueError(loss)


def test_a_filter_that_is_only_compared_disturbs_no_session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(FILTERS, RaisingFilter.name, RaisingFilter)
    session = opened(GDPFilter, tmp_path / "clinic.dpnb")
    session.frame["x"].sum().release(mu="0.05")
    for _ in range(2):
        assert "zCDP" in str(session)
        session.frame.count_units().release(mu="0.05")
