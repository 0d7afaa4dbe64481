"""Selections and scans in the parts of a divided budget: none exceeds its part, and none takes from another."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path

import pytest

import dpnb
from dpnb._core.accountant.grant import Mode
from dpnb._plan.plan import Plan
from dpnb._request import LaunchMechanism, Release, ScanThreshold, SelectGroups
from dpnb._target import Target
from dpnb.curator.audit import Audit, audit
from pairwise import product
from service.served import Served, content, open_people, run_served
from service.test_division import division

ROUNDS = 10
BUDGETS = {
    "gdp": dpnb.Budget(epsilon=2, delta=1e-5),
    "with a reserve": dpnb.Budget(epsilon=2, delta=1e-5, pure_epsilon=0.2),
}


def counts_by_age() -> Plan:
    plan: Plan = open_people(":memory:").frame.groupby("age", keys=[20, 30, 40]).size().plan
    return plan


async def spends(one: Served, plan: Plan) -> list[str]:
    """The replies to selections of two groups and scans with three positives, smaller after every refusal."""
    replies, epsilon = [], Fraction(1)
    for number in range(ROUNDS):
        scan = LaunchMechanism(f"scan {number}", ScanThreshold(Fraction(50), epsilon, 3))
        request = scan if number % 2 else SelectGroups(plan, 2, epsilon + Fraction(number, 10**6))
        replies.append(content(await one.post(one.body(f"{number}", request)))["reply"])
        if replies[-1] != "done":
            epsilon = epsilon / 2
    return replies


def run(folder: Path, kind: str, mode: Mode | None) -> tuple[list[str], Audit]:
    """The replies to ana, after whom bob spends all of his part, and the audit of the ledger."""
    plan, told = counts_by_age(), []

    async def scenario(served: Served) -> None:
        told.extend(await spends(served, plan))
        if mode is not None:
            mean = served.session.frame["age"].mean()
            everything = Release(mean.plan, mean.view, Target("share", Fraction(1)))
            reply = await served.of("bob").post(served.body("all", everything))
            assert reply.status_code == 200, content(reply)

    session = open_people(folder / "people.dpnb", budget=BUDGETS[kind], not_private_test_seed=3)
    run_served(folder, scenario, session, None if mode is None else division(mode))
    return told, audit(str(folder / "people.dpnb"))


@pytest.mark.parametrize(("mode", "kind"), product(["reserved", "pooled"], BUDGETS, together=1))
def test_they_stay_within_the_part_and_leave_the_others_whole(mode: Mode, kind: str, tmp_path: Path) -> None:
    told, result = run(tmp_path, kind, mode)
    assert set(told) == {"done", "refused"}, told
    assert result.is_fine, result.problems
    sums = {one.name: one for one in result.sums}
    assert sums.keys() == {"table", "analyst ana", "analyst bob"}
    assert all(one.limit is not None and one.spent.within(one.limit) for one in sums.values())
    ana, limit = sums["analyst ana"].spent, sums["analyst ana"].limit
    assert limit is not None
    assert ana.mu_squared > limit.mu_squared * Fraction(95, 100), "all but the rest of the part is spent"
    assert ana.epsilon == limit.epsilon


def test_control_without_parts_the_same_requests_take_more_than_the_part(tmp_path: Path) -> None:
    _, whole = run(tmp_path, "gdp", None)
    (table,) = whole.sums
    assert table.limit is not None
    assert table.spent.mu_squared > table.limit.mu_squared * Fraction(2, 3)
