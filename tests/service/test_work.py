"""A service refuses a query that is too large from its plan alone: nothing is compiled, charged or read."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb._compile import sensitivity
from dpnb._compile.work import OBSERVED_BYTES, WorkLimits, work_of
from dpnb._core.pricing.query_state import plan_of
from dpnb._core.tables import PrivateTables
from dpnb._plan.expressions.nodes import Arithmetic, Column, Expression, Literal
from dpnb._plan.measurements import Count, Moments, MomentsView, PlainView, QuantilesView, QuantileTree
from dpnb._plan.plan import GroupLevel, Plan
from dpnb._request import AnyRequest, Release, ReleaseBatch, RequestBudget, SelectGroups
from dpnb._target import Target
from dpnb.errors import PlanError
from dpnb.ledger import Ledger
from dpnb.service.configuration.settings import Limits
from dpnb.service.served import Rules
from service.served import Served, content, open_people, people, run_served

TARGET = Target("mu", Fraction(1, 1000000))
AGE = Column("age")
VIEW = PlainView()


def plus(number: int) -> Expression:
    return Arithmetic("+", AGE, Literal(number))


def groups(levels: int) -> tuple[GroupLevel, ...]:
    return tuple(GroupLevel(f"g{number}", plus(number)) for number in range(levels))


def moments(columns: int) -> Plan:
    return Plan(Moments(tuple(map(plus, range(columns)))))


WIDE, CELLS = moments(400), Plan(QuantileTree(AGE), group_by=groups(3))
CALLS: dict[str, tuple[AnyRequest, str]] = {
    "features": (Release(WIDE, VIEW, TARGET), "at most 10,000 features of a row; it has 80,601"),
    "numbers": (Release(CELLS, VIEW, TARGET), "needs 350,302,340 noisy numbers at once"),
    "memory": (Release(Plan(Count(), group_by=groups(3)), VIEW, TARGET), "at most 300 MB of memory"),
    "batch": (
        ReleaseBatch(tuple(Release(moments(columns), VIEW, TARGET) for columns in range(40, 60))),
        "at most 10,000 features of a row; it has 26,340",
    ),
    "request for budget": (
        RequestBudget(tuple(Release(moments(columns), VIEW, TARGET) for columns in range(40, 60)), "why"),
        "at most 10,000 features of a row; it has 26,340",
    ),
    "selection": (
        SelectGroups(Plan(Count(), group_by=groups(3)), 1, Fraction(1)),
        "at most 300 MB of memory",
    ),
}
RULES = Rules(Limits(query_memory_mb=300))


def compiled(*_: Any, **__: Any) -> Any:
    raise AssertionError("was compiled before it was refused")


def replies(folder: Path, call: AnyRequest, session: dpnb.Session, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, int]:
    """The status and content of the reply, and the number of rows of the ledger."""
    found: list[Any] = []

    async def scenario(served: Served) -> None:
        with monkeypatch.context() as patch:
            patch.setattr(sensitivity, "features_of", compiled)
            patch.setattr(sensitivity, "group_keys", compiled)
            patch.setattr(PrivateTables, "opened", property(compiled))
            response = await served.post(served.body("large", call))
        found.append((response.status_code, content(response), served.charges))

    run_served(folder, scenario, session, rules=RULES)
    return found[0][:2], found[0][2]


@pytest.mark.parametrize("kind", CALLS)
def test_a_query_that_is_too_large_is_refused_before_it_is_compiled(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, words = CALLS[kind]
    refusals = []
    for rows in (3, 300):
        folder = tmp_path / str(rows)
        folder.mkdir()
        session = dpnb.Session(
            people()[:rows],
            name="people",
            budget=dpnb.Budget.gdp(1),
            schema={"age": dpnb.Bounded(0, 100, integer=True)},
            ledger=folder / "people.dpnb",
        )
        reply, charges = replies(folder, call, session, monkeypatch)
        assert charges == 0
        assert words in str(reply), reply
        assert "nothing was charged" in str(reply)
        refusals.append(reply)
    assert refusals[0] == refusals[1]  # whatever the number of rows


def test_a_compiled_query_is_noticed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control of the test above."""
    session = open_people(tmp_path / "people.dpnb")
    reply, _ = replies(tmp_path, Release(moments(2), VIEW, TARGET), session, monkeypatch)
    assert reply[0] == 500


def test_an_answer_that_would_fill_the_ledger_is_refused_uncharged(tmp_path: Path) -> None:
    plan, view = Plan(QuantileTree(AGE), group_by=groups(1)), QuantilesView((0.5,), single=True)

    async def scenario(served: Served) -> None:
        response = await served.post(served.body("large", Release(plan, view, TARGET)))
        assert "must have an answer of at most 1 MB" in str(content(response))
        assert "nothing was charged" in str(content(response))
        assert served.charges == 0
        response = await served.post(served.body("small", Release(Plan(Count(), group_by=groups(1)), VIEW, TARGET)))
        assert response.status_code == 200
        assert served.charges == 1

    session = open_people(tmp_path / "people.dpnb", schema={"age": dpnb.Bounded(0, 255, integer=True)})
    run_served(tmp_path, scenario, session, rules=Rules(Limits(answer_mb=1)))


def test_an_honest_matrix_of_correlations_of_sixty_columns_is_answered(tmp_path: Path) -> None:
    async def scenario(served: Served) -> None:
        response = await served.post(served.body("corr", Release(moments(60), MomentsView("mean"), TARGET)))
        assert response.status_code == 200
        assert served.charges == 1

    run_served(tmp_path, scenario)


def test_earlier_observations_of_a_query_count_before_they_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_people(tmp_path / "people.dpnb")
    ages = session.frame.groupby(dpnb.cut(session.frame["age"], range(0, 101))).size()
    for mu in ("0.001", "0.002"):
        ages.release(mu=mu)
    (plan,) = {plan_of(charge).to_json() for charge in session.ledger.charges()}
    once = work_of(Plan.from_json(plan), session._core.tables.schema(""))
    enough = once.memory + 2 * once.numbers * OBSERVED_BYTES
    monkeypatch.setattr(PrivateTables, "work_limits", WorkLimits(memory=enough))
    ages.release(mu="0.003")  # the control

    def read(*_: Any) -> Any:
        raise AssertionError("was read before it was refused")

    monkeypatch.setattr(Ledger, "observations", read)
    with pytest.raises(PlanError, match="with its 3 observations so far, of 100 numbers each"):
        ages.release(mu="0.004")
    assert session.ledger.count == 3
    session.ledger.close()
