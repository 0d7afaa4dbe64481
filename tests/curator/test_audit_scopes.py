"""What the audit adds up: sub-sessions, parts of partitions, launches, projects, and who may grant a part."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from msgspec.structs import replace

import dpnb
from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.granting import grant, move_cap, revoke, share_of, whole_of
from dpnb._request import LaunchMechanism, request_from
from dpnb.accounting.losses import GDP, Loss, PureDP, PureGDP
from dpnb.curator.audit import audit
from dpnb.curator.audit_result import Audit, audit_text
from dpnb.ledger import Ledger, RequestOrigin, node_of, requested_by
from dpnb.ledger.charge import GRANT, LAUNCH, RELEASE
from dpnb.session.base import BaseSession
from ledger.rows import REQUEST

BUDGET = dpnb.Budget.gdp(1, pure_epsilon="1/10")
NOTHING = PureGDP.of(Fraction(0), Fraction(0), Fraction(0))


def opened(path: Path, **changes: Any) -> dpnb.Session:
    options: dict[str, Any] = {"budget": BUDGET, **changes}
    schema = {"x": dpnb.Bounded(0, 9), "g": dpnb.Categories(["a", "b"])}
    return dpnb.Session(
        pd.DataFrame({"x": [1, 2, 3], "g": ["a", "b", "a"]}), name="c", schema=schema, ledger=path, **options
    )


def amount(mu_squared: str, epsilon: str = "0") -> PureGDP:
    return PureGDP.of(Fraction(mu_squared), Fraction(0), Fraction(epsilon))


def forge(ledger: Ledger, node: str, loss: Loss, actor: str | None = None, **changes: Any) -> int:
    """Write a row past the filters."""
    row: dict[str, Any] = {"kind": RELEASE, "request_key": f"forged {ledger.count}", "query_key": "q", **changes}
    if row["kind"] == RELEASE:
        row |= {"request": REQUEST, "sigma": 1e40}
    with ledger.transaction():
        if actor is None:
            return ledger.reserve(node=node, loss=loss, table_version="1", **row).id
        with requested_by(RequestOrigin(actor)):
            return ledger.reserve(node=node, loss=loss, table_version="1", **row).id


def forge_grant(ledger: Ledger, name: str, part: PureGDP, node: str = "", actor: str = "(settings)", **is_: Any) -> int:
    """Write a part of the budget that `grant` may refuse."""
    options = {"level": "analyst", "mode": "reserved", **is_}
    ceiling, cap = (part, None) if options["mode"] == "reserved" else (None, part)
    made = Grant(0, name=name, node=node, ceiling=ceiling, cap=cap, parameters={}, **options)
    return forge(ledger, node, GDP(0), actor, kind=GRANT, launch=made.to_details())


def squared(text: str) -> GDP:
    return GDP.from_mu_squared(Fraction(text))


def launched(session: dpnb.Session, name: str) -> int:
    """The id of a launch."""
    (number,) = [one.id for one in session._core.account.tree.sync().values() if one.name == name]
    return number


def forge_launch(session: dpnb.Session, like: str, name: str, loss: Loss, node: str = "", **changes: Any) -> None:
    """Write the launch of what was launched before, under another name, past the filters."""
    (row,) = session.ledger.by_id((launched(session, like),))
    request = request_from(row.request)
    assert isinstance(request, LaunchMechanism)
    text = replace(request, name=name).text
    forge(session.ledger, node, loss, kind=LAUNCH, request=text, launch=row.launch, query_key=name, **changes)


def in_a_sub_session(session: dpnb.Session) -> None:
    session.delegate(name="sub", mu="1/10").frame["x"].sum().release(share=1)
    forge(session.ledger, str(launched(session, "sub")), squared("1/1000"))


def in_a_part_of_a_sub_session(session: dpnb.Session) -> None:
    sub = session.delegate(name="sub", mu="1/10")
    sub.partition("g", name="parts")
    number = max(one.id for one in session._core.account.tree.sync().values())
    for key in ("a", "b"):
        forge(session.ledger, node_of(number, (key,)), squared("1/100"))  # together the whole sub-session
    forge(session.ledger, node_of(number, ("a",)), squared("1/1000"))


def by_the_launch_of_a_sub_session(session: dpnb.Session) -> None:
    session.delegate(name="sub", mu="1/10")
    forge_launch(session, "sub", "cheap", squared("1/1000"))


def by_the_launch_of_a_scan(session: dpnb.Session) -> None:
    session.above_threshold(1, epsilon="1/20", name="scan")
    charged = amount("0", "1/20")  # what is left of the reserve
    forge_launch(session, "scan", "cheap", PureDP("1/5"), charged=charged)


def by_the_launch_of_a_scan_in_a_part(session: dpnb.Session) -> None:
    session.partition("g", name="parts")["a"].above_threshold(1, epsilon="1/20", name="scan")
    node = node_of(launched(session, "parts"), ("a",))
    forge_launch(session, "scan", "cheap", PureDP("1/5"), node=node, charged=amount("0", "0"))


def in_parts_of_a_partition(session: dpnb.Session) -> None:
    session.partition("g", name="parts")
    number = launched(session, "parts")
    for key in ("a", "b"):
        forge(session.ledger, node_of(number, (key,)), squared("1"))  # the whole budget, in different rows
    forge(session.ledger, node_of(number, ("b",)), squared("1/1000"))


def in_a_part_that_does_not_exist(session: dpnb.Session) -> None:
    session.partition("g", name="parts")
    number = launched(session, "parts")
    forge(session.ledger, node_of(number, ("a",)), squared("1"))
    forge(session.ledger, f'{number} [ "a"]', squared("1"))  # of the same rows, and seemingly free


def in_a_node_that_is_made_later(session: dpnb.Session) -> None:
    session.delegate(name="sub", mu="1/10")
    number = launched(session, "sub")
    forge(session.ledger, str(number + 2), squared("1/1000"))
    forge_launch(session, "sub", "later", squared("1/100"))


def to_a_node_of_nobody(session: dpnb.Session) -> None:
    session.frame["x"].sum().release(mu="1/10")
    forge(session.ledger, "1", squared("1/1000"), "ana")


def to_a_project(session: dpnb.Session) -> None:
    project = forge_grant(session.ledger, "flu", amount("1/2"), level="project")
    forge_grant(session.ledger, "ana", amount("1/2"), str(project))
    forge(session.ledger, str(project), squared("1/1000"), "flu")


def in_a_project_that_was_revoked(session: dpnb.Session) -> None:
    project = forge_grant(session.ledger, "flu", amount("1/2"), level="project")
    number = forge_grant(session.ledger, "ana", amount("1/2"), str(project))
    account = session._core.account
    revoke(account, account.tree.grants()[project], version="1")
    forge(session.ledger, str(number), squared("1/1000"), "ana")


def by_a_grant_of_an_analyst(session: dpnb.Session) -> None:
    forge_grant(session.ledger, "ana", amount("1/4"))
    forge_grant(session.ledger, "bob", amount("1/4"), actor="ana")


def by_an_act_of_an_analyst(session: dpnb.Session) -> None:
    number = forge_grant(session.ledger, "ana", amount("1/4"))
    with requested_by(RequestOrigin("ana")):
        move_cap(session._core.account, session._core.account.tree.grants()[number], amount("1/8"), version="1")


def by_a_second_part(session: dpnb.Session) -> None:
    for _ in range(2):
        forge_grant(session.ledger, "ana", amount("1/4"))


def by_a_part_in_another_mode(session: dpnb.Session) -> None:
    forge_grant(session.ledger, "ana", amount("1/4"))
    forge_grant(session.ledger, "bob", amount("1"), mode="pooled")


def by_a_part_of_an_analyst_s_part(session: dpnb.Session) -> None:
    number = forge_grant(session.ledger, "ana", amount("1/4"))
    forge_grant(session.ledger, "bob", amount("1/8"), str(number))


def by_ceilings_beside_what_was_spent(session: dpnb.Session) -> None:
    session.frame["x"].sum().release(mu="1/2")
    forge_grant(session.ledger, "ana", amount("1"))


WRONG: dict[Callable[[dpnb.Session], None], str] = {
    in_a_sub_session: "takes sub-session 'sub' beyond its budget in mu squared",
    in_a_part_of_a_sub_session: "takes sub-session 'sub' beyond its budget in mu squared",
    by_the_launch_of_a_sub_session: "launched a sub-session with a larger budget than its loss",
    by_the_launch_of_a_scan_in_a_part: "was charged less than its launch costs table",
    by_the_launch_of_a_scan: "was charged less than its launch costs table",
    in_parts_of_a_partition: "takes table beyond its budget in mu squared",
    in_a_part_that_does_not_exist: "was charged to a part that its partition does not have",
    in_a_node_that_is_made_later: "Row 2 cannot be read",
    to_a_node_of_nobody: "Row 2 cannot be read",
    to_a_project: "was charged to the project flu, and to no analyst",
    in_a_project_that_was_revoked: "was charged after the part of flu was revoked",
    by_a_grant_of_an_analyst: "was made by ana, who is an analyst",
    by_an_act_of_an_analyst: "was made by ana, who is an analyst",
    by_a_second_part: "grants analyst ana a second part",
    by_a_part_in_another_mode: "grants a part in another mode",
    by_a_part_of_an_analyst_s_part: "grants a part of the part of an analyst",
    by_ceilings_beside_what_was_spent: "The ceilings in table add up to more than its own",
}


@pytest.mark.parametrize("wrong", WRONG, ids=lambda one: one.__name__)
def test_what_is_wrong_is_found(wrong: Callable[[dpnb.Session], None], tmp_path: Path) -> None:
    session = opened(tmp_path / "c.dpnb")
    with closing(session.ledger):
        wrong(session)
    (problem,) = audit(session.ledger.path).problems
    assert WRONG[wrong] in problem


def honest(session: dpnb.Session, *, is_gdp: bool = True) -> Audit:
    """The audit after one of each kind of charge."""
    sub = session.delegate(name="sub", **({"mu": "1/10"} if is_gdp else {"budget": dpnb.Budget.pure("1/20")}))
    if is_gdp:
        sub.partition("g", name="parts")["a"].frame["x"].sum().release(mu="1/20")
        sub.frame["x"].sum().release(share=1)
    for number in range(3):
        session.above_threshold(1, epsilon=f"1/{15 + number}", name=f"scan {number}")  # two of them beyond the reserve
    parts = session.partition("g", name="parts")
    for key in ("a", "b"):
        parts[key].delegate(name="inner", mu="1/10").frame["x"].sum().release(share=1)
        parts[key].above_threshold(1, epsilon="1/30", name="scan")
    session.frame["x"].mean().release(share="1/2")
    session.ledger.close()
    return audit(session.ledger.path)


def test_an_honest_ledger_is_fine(tmp_path: Path) -> None:
    for name, budget in {"reserve": BUDGET, "none": dpnb.Budget.gdp(1), "dp": dpnb.Budget(1, 1e-6, 0, 0.1)}.items():
        assert honest(opened(tmp_path / f"{name}.dpnb", budget=budget)).problems == ()
    inner = opened(tmp_path / "inner.dpnb", budget=dpnb.Budget.gdp(1))  # the sub-session has a reserve, its owner none
    reserve = inner.delegate(dpnb.Budget.gdp("1/10", pure_epsilon="1/20"), name="reserve")
    reserve.above_threshold(1, epsilon="1/20", name="scan")
    inner.ledger.close()
    assert audit(inner.ledger.path).problems == ()


def test_so_is_that_of_an_analyst(tmp_path: Path) -> None:
    session = opened(tmp_path / "c.dpnb")
    core = session._core
    part = grant(
        core.account, "analyst", "ana", "reserved", share_of(whole_of(core.account), Fraction(1, 2)), version="1"
    )
    ana = BaseSession(core.for_analyst(part))
    with requested_by(RequestOrigin("ana")):
        ana.above_threshold(1, epsilon="1/25", name="scan")
        move_cap(core.account, part, amount("1/4", "1/100"), version="1")  # below what the reserve was charged
        ana.frame["x"].sum().release(mu="1/10")
        ana.delegate(name="sub", mu="1/10").frame["x"].sum().release(share=1)
    session.ledger.close()
    problems = audit(session.ledger.path).problems
    assert problems == ("Row 3 was made by ana, who is an analyst.",)  # the act of this test


def test_a_sub_session_from_before_the_division_goes_on(tmp_path: Path) -> None:
    session = opened(tmp_path / "c.dpnb")
    sub = session.delegate(name="sub", mu="1/10")
    half = share_of(whole_of(session._core.account), Fraction(1, 2))
    grant(session._core.account, "analyst", "ana", "reserved", half, version="1")
    sub.frame["x"].sum().release(share=1)  # its launch paid for it
    session.partition("g", name="free")
    session.ledger.close()
    assert audit(session.ledger.path).problems == ()


@pytest.mark.parametrize("filter_", ["zcdp", "rdp", "approx-dp", "basic", "rogers"])
def test_a_ledger_of_another_filter_is_replayed(filter_: str, tmp_path: Path) -> None:
    session = opened(tmp_path / "c.dpnb", budget=dpnb.Budget(1, 1e-6), filter=filter_)
    session.frame["x"].mean().release(mu="1/100")
    sub = session.delegate(name="sub", **({"rho": "1/10000"} if filter_ == "zcdp" else {"mu": "1/100"}))
    sub.frame["x"].sum().release(mu="1/1000")
    session.above_threshold(1, epsilon="1/100", name="scan")
    result = audit(session.ledger.path)
    assert result.problems == ()
    assert "table: 3 requests" in audit_text(result)
    forge(session.ledger, str(launched(session, "sub")), squared("1/100"))
    session.ledger.close()
    (problem,) = audit(session.ledger.path).problems
    assert "The filter of sub-session 'sub' does not admit" in problem
