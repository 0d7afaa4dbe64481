"""Parts of a budget and caps, in the accountant: what is admitted, and what is left."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from pathlib import Path

import pandas as pd
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dpnb
from dpnb._core.accountant import granting
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.cap import Limit
from dpnb._core.accountant.grant import Mode
from dpnb._core.accountant.granting import grant, move_cap, restore, revoke, share_of, whole_of
from dpnb._core.accountant.tree import BudgetTree
from dpnb.accounting.filters import GDPFilter
from dpnb.accounting.guarantee import make_guarantee
from dpnb.accounting.losses import PureGDP
from dpnb.accounting.losses.gaussian import as_amount
from dpnb.curator.audit import audit
from dpnb.errors import BudgetExceeded, ChargesStopped, InvalidValueError, LedgerError
from dpnb.ledger import RequestOrigin, requested_by
from dpnb.session.base import BaseSession

BUDGET = dpnb.Budget(epsilon=2, delta=1e-5, discovery_delta=1e-6, pure_epsilon=0.2)


def opened(**changes: object) -> dpnb.Session:
    options: dict[str, object] = {"budget": BUDGET, "ledger": ":memory:", **changes}
    return dpnb.Session(  # type: ignore[call-overload,no-any-return]
        pd.DataFrame({"x": range(50), "g": ["a", "b"] * 25}),
        name="clinic",
        schema={"x": dpnb.Bounded(0, 50), "g": dpnb.Text(max_length=3)},
        not_private_test_seed=25,
        **options,
    )


def analyst(session: dpnb.Session, name: str, mode: Mode, share: object = "1/2") -> BaseSession:
    core = session._core
    part = share_of(whole_of(core.account), Fraction(str(share)))
    return BaseSession(core.for_analyst(grant(core.account, "analyst", name, mode, part, version="1")))


@pytest.mark.parametrize(
    "budget",
    [
        dpnb.Budget.gdp(0.5),
        dpnb.Budget.gdp(0.5, discovery_delta=1e-8),
        dpnb.Budget.gdp(0.5, pure_epsilon=0.1),
        dpnb.Budget.gdp(0.5, 1e-8, 0.1),
        dpnb.Budget.pure(0.1),
    ],
)
def test_a_budget_in_gdp_has_three_components(budget: dpnb.Budget) -> None:
    assert dpnb.Budget.from_json(budget.to_json()) == budget
    assert eval(repr(budget), {"Budget": dpnb.Budget}) == budget
    limit = make_guarantee("gdp", budget).initial_filter.budget
    assert limit is not None
    assert (limit.delta, budget.loss.mu_squared) == (budget.discovery_delta, limit.parts[0])
    with pytest.raises(InvalidValueError, match="discovery_delta must be below 1"):
        dpnb.Budget.gdp(0.5, discovery_delta=1)


@pytest.mark.parametrize("mode", ["reserved", "pooled"])
def test_each_component_is_limited(mode: Mode) -> None:
    session = opened()
    ana, bob = (analyst(session, name, mode) for name in ("ana", "bob"))
    with requested_by(RequestOrigin("ana")):
        ana.frame["x"].mean().release(share=1)
        with pytest.raises(BudgetExceeded):
            ana.frame["x"].sum().release(mu=1e-3)
        ana.above_threshold(20, epsilon=0.1, name="scan")  # from the reserve
        with pytest.raises(BudgetExceeded):
            ana.above_threshold(20, epsilon=0.001, name="another")
    with requested_by(RequestOrigin("bob")):
        bob.frame.discover("g", discovery_delta=3e-7).release(mu=0.01)
        with pytest.raises(BudgetExceeded, match="its mu fits, its delta does not"):
            bob.frame.discover("g", discovery_delta=2.5e-7).release(mu=0.02)
    whole = whole_of(session._core.account)
    assert session._core.account.filter.spent.parts[0] < whole.mu_squared


def test_a_part_cannot_take_what_another_one_has() -> None:
    session = opened()
    ana, bob = (analyst(session, name, "reserved") for name in ("ana", "bob"))
    before = bob._core.account.filter
    ana.frame["x"].mean().release(share=1)
    assert bob._core.account.filter == before
    assert (ana.headroom, bob.headroom) == (0, 1)


def free_part(session: dpnb.Session, mode: Mode, *, is_bob_busy: bool = False) -> str:
    """What happens to a request in a second part of a partition, which costs nothing more."""
    ana, bob = (analyst(session, name, mode) for name in ("ana", "bob"))
    if is_bob_busy:
        bob.frame["x"].mean().release(share=1)
    with requested_by(RequestOrigin("ana")):
        low, high = ana.partition(dpnb.cut(ana.frame["x"], [0, 20, 50]), name="halves").values()
        low.frame["x"].sum().release(share=1)
        try:
            high.frame["x"].sum().release(mu="1/2")
        except (BudgetExceeded, LedgerError) as error:
            return type(error).__name__
    return "answered"


def test_a_free_part_is_answered_whatever_the_others_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    """The filter of the table, and a cap, count what a partition grows by, as the filter of the part does."""

    def happened() -> list[str]:
        reserved = [
            free_part(opened(budget=dpnb.Budget.gdp(1)), "reserved", is_bob_busy=busy) for busy in (False, True)
        ]
        return [*reserved, free_part(opened(budget=dpnb.Budget.gdp(1)), "pooled")]

    assert happened() == ["answered"] * 3
    monkeypatch.setattr(Accountant, "growth", lambda self, node, counted: counted)  # the control: the loss itself
    monkeypatch.setattr(Limit, "growth", lambda self, node, counted: as_amount(counted))
    assert happened() == ["answered", "LedgerError", "BudgetExceeded"]  # what ana receives depends on bob


def test_the_filter_of_the_table_refuses_what_the_parts_would_exceed(monkeypatch: pytest.MonkeyPatch) -> None:
    """It has the last word, although ceilings that add up to at most the budget never need it."""
    session = opened(budget=dpnb.Budget.gdp(1))
    monkeypatch.setattr(granting, "_refuse_excess", lambda *_: None)
    people = [analyst(session, name, "reserved") for name in ("ana", "bob", "eve")]
    for one in people[:2]:
        one.frame["x"].mean().release(share=1)
    with pytest.raises(LedgerError, match="the parts of the budget exceed it"):
        people[2].frame["x"].mean().release(mu="1/100")
    with pytest.raises(LedgerError, match="the parts of the budget exceed it"):
        people[2].delegate(name="sub", mu="1/100")


def test_a_cap_under_individual_accounting_limits_the_worst_cases() -> None:
    session = opened(accounting="individual", budget=dpnb.Budget.gdp(1))
    ana = analyst(session, "ana", "pooled", "1/10")
    with requested_by(RequestOrigin("ana")):
        ana.frame["x"].sum().release(mu=0.3)
        with pytest.raises(BudgetExceeded, match="left of your cap"):
            ana.frame["x"].mean().release(mu=0.3)
    session.frame["x"].mean().release(mu=0.3)  # the table itself refuses nothing


def test_what_cannot_be_granted_is_refused() -> None:
    for options in ({"filter": "zcdp", "budget": dpnb.Budget(epsilon=1, delta=1e-6)}, {"budget": None}):
        with pytest.raises(InvalidValueError, match="only with the filter 'gdp'"):
            analyst(opened(**options), "ana", "reserved")
    session = opened()
    core = session._core
    ana = grant(
        core.account, "analyst", "ana", "reserved", share_of(whole_of(core.account), Fraction(1, 2)), version="1"
    )
    for cap in (whole_of(core.account), PureGDP.of(Fraction(0), Fraction(0), Fraction(0))):
        with pytest.raises(InvalidValueError):
            move_cap(core.account, ana, cap, version="1")
    project = grant(
        core.account, "project", "p", "reserved", share_of(whole_of(core.account), Fraction(1, 4)), version="1"
    )
    with pytest.raises(InvalidValueError, match="has no cap in reserved mode"):
        move_cap(core.account, project, project.ceiling, version="1")
    each = opened(accounting="individual", budget=dpnb.Budget.gdp(1))
    each.frame["x"].sum().release(mu=0.3)
    with pytest.raises(InvalidValueError, match="individual accounting"):
        analyst(each, "ana", "reserved")


def test_a_share_is_of_what_the_filter_enforces() -> None:
    """The ledger stores its budget: another version of a library may compute another mu from epsilon and delta."""
    account = opened(budget=dpnb.Budget(epsilon=1, delta=1e-6))._core.account
    account.guarantee = replace(account.guarantee, initial_filter=GDPFilter(mu="1/10"))
    assert whole_of(account) == PureGDP.of(Fraction(1, 100), Fraction(0), Fraction(0))


def test_what_was_charged_before_is_not_granted_again() -> None:
    session = opened(budget=dpnb.Budget.gdp(1))
    session.frame["x"].sum().release(share="1/2")
    analyst(session, "ana", "reserved", "1/2")
    with pytest.raises(InvalidValueError, match="add up to at most"):
        analyst(session, "bob", "reserved", "1/1000")


@pytest.mark.parametrize("is_broken", [False, True])
def test_a_revocation_between_check_and_charge_stops_the_charge(
    is_broken: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The service looks at the part when it begins a request; the curator may revoke it before the charge."""
    session = opened(ledger=tmp_path / "clinic.dpnb")
    core = session._core
    project = grant(core.account, "project", "p", "pooled", None, version="1")
    part = grant(core.account, "analyst", "ana", "pooled", None, version="1", project=project)
    ana = BaseSession(core.for_analyst(part))
    for revoked in (part, project):
        with requested_by(RequestOrigin("kim")):
            revoke(core.account, revoked, version="1")
        with monkeypatch.context() as patch, requested_by(RequestOrigin("ana")):
            if is_broken:  # control: only the nodes around the request are looked at, and none of them is a part
                patch.setattr(BudgetTree, "_refuse_revoked", staticmethod(lambda part: None))
                ana.frame["x"].mean().release(mu="1/10" if revoked is part else "1/8")
            else:
                with pytest.raises(ChargesStopped, match=f"{revoked.level} {revoked.name}: the curator has revoked"):
                    ana.frame["x"].mean().release(mu="1/10")
        with requested_by(RequestOrigin("kim")):
            restore(core.account, revoked, version="1")
    found = audit(session.ledger.path).problems
    assert len(found) == (2 if is_broken else 0), found
    assert all("was revoked" in one for one in found)


KINDS = ["mean", "scan", "cap", "part", "sub"]
RELEASES = st.lists(
    st.tuples(st.sampled_from(["ana", "bob"]), st.integers(1, 8), st.sampled_from(KINDS)),
    max_size=12,
)


@given(RELEASES, st.sampled_from(["reserved", "pooled"]))
@example([("bob", 2, "mean"), ("bob", 1, "cap"), ("bob", 1, "scan")], "reserved")  # a cap below what was charged
def test_no_order_of_requests_exceeds_a_part_or_the_budget(
    tmp_path_factory: pytest.TempPathFactory, requests: list[tuple[str, int, str]], mode: Mode
) -> None:
    """The audit adds the charges up without the filters."""
    session = opened(ledger=tmp_path_factory.mktemp("l") / "clinic.dpnb")
    share = "1/2" if mode == "reserved" else "3/4"
    people = {name: analyst(session, name, mode, share) for name in ("ana", "bob")}
    account = session._core.account
    for number, (name, size, kind) in enumerate(requests):
        one, part = people[name], account.tree.grant_named("analyst", name)
        assert part is not None
        with requested_by(RequestOrigin(name)):
            try:
                match kind:
                    case "mean":
                        one.frame[one.frame["x"] > number]["x"].mean().release(share=f"{size}/8")
                    case "scan":
                        one.above_threshold(20, epsilon=f"{size}/100", name=f"{name} {number}")
                    case "sub":
                        sub = one.delegate(name=f"{name} {number}", mu=f"{size}/40")
                        sub.frame["x"].sum().release(share="1/2")
                    case "cap":
                        limit = part.ceiling or whole_of(account)
                        with requested_by(RequestOrigin("kim")):
                            move_cap(account, part, share_of(limit, Fraction(size, 8)), version="1")
                    case "part":
                        inside = one.partition(dpnb.cut(one.frame["x"], [0, 20, 50]), name=f"{name} parts")
                        keys = list(inside)
                        inside[keys[number % len(keys)]].frame["x"].sum().release(mu=f"{size}/40")
            except BudgetExceeded:
                pass
    result = audit(session.ledger.path)
    assert result.is_fine, result.problems
    session.ledger.close()
