"""Plans that no frame makes: what they would reveal or avoid, and that they are refused before anything is charged."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb._compile import scores
from dpnb._core import core, tables
from dpnb._core.pricing import pricer
from dpnb._plan import checks
from dpnb._plan.expressions.nodes import AsNumber, Column, Compare, Cut, IsIn, Literal, Lookup, Not, Seconds
from dpnb._plan.measurements import (
    AnyView,
    CoefficientsView,
    ColumnsView,
    Count,
    CountUnits,
    CumulativeCount,
    Discovery,
    JointAggregation,
    LevelCounts,
    LevelShareView,
    Mean,
    MeanCountView,
    Moments,
    MomentsView,
    NamedColumn,
    PlainView,
    Proportions,
    QuantilesView,
    QuantileTree,
    RegressionModel,
    ScoreSums,
    StepView,
    Sum,
    TableOneView,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, Join, PartSource, Plan, TableSource
from dpnb._plan.privacy_unit import ContributionBounds
from dpnb._request import Conditions, LaunchMechanism, PartitionTable, Release, ReleaseBatch
from dpnb._target import Target
from dpnb.errors import DpnbError, ExecutionError, PlanError
from dpnb.interactive.calls import execute
from dpnb.ledger import node_of
from tests.service.bodies import ROWS, neighbours, session_of

TARGET = Target("mu", Fraction(1, 100))
PLAIN = PlainView()
X, G, K = Column("x"), Column("g"), Column("k")
BY_G = GroupLevel("g", G)
SHORT = Lookup("zone", (Column("t"),), (("a",), ("bb",), ("only",)), ("u",))
"""A lookup with one value for three keys: fails in a row that has the last key, which only the last unit has."""


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> dpnb.Session:
    """A session for requests that are refused before anything is charged."""
    return session_of(ROWS, tmp_path_factory.mktemp("untouched"), "with")


def send(session: dpnb.Session, plan: Plan, view: AnyView = PLAIN, node: str = "") -> tuple[int, ...]:
    registry = session._mechanisms
    return execute(registry.at(node) if node else registry, Release(plan, view, TARGET))


def test_a_lookup_without_a_value_for_each_key_would_reveal_a_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = Plan(Count(), Compare("==", SHORT, Literal("u")))
    one, other = neighbours(tmp_path)
    for session in (one, other):
        with pytest.raises(PlanError, match="one value for each key"):
            send(session, plan)
        assert session.ledger.count == 0
    for module in (checks, tables):  # the control: the failure depends on a row of one unit
        monkeypatch.setattr(module, "check_structure", lambda plan: None)
    with pytest.raises(ExecutionError):
        send(one, plan)
    assert send(other, plan)


@pytest.mark.parametrize("is_checked", [True, False])
def test_a_part_pays_for_its_own_rows_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_checked: bool) -> None:
    session = session_of(ROWS, tmp_path, "with")
    session.partition("g", max_parts_per_unit=1)
    (launch,) = session._core.account.tree.sync()
    if not is_checked:
        monkeypatch.setattr(tables, "is_within", lambda source, part: True)
    refused = 0
    for key in ("a", "b", "c"):
        try:
            send(session, Plan(Count()), node=node_of(launch, (key,)))  # the whole table
        except PlanError:
            refused += 1
    assert refused == (3 if is_checked else 0)
    if not is_checked:  # three observations of all rows for the price of one
        assert session.spent == session._core.account.filter.spent
        assert float(session._core.account.filter.spent.parts[0]) < 1.5 * 0.01**2


def test_a_part_partitions_its_own_rows_only(tmp_path: Path) -> None:
    session = session_of(ROWS, tmp_path, "with")
    session.partition("g", max_parts_per_unit=1)
    (launch,) = session._core.account.tree.sync()
    registry = session._mechanisms.at(node_of(launch, ("a",)))
    part = registry.core.part
    level = GroupLevel("n", Column("n"))
    sources: tuple[TableSource, ...] = ("", PartSource("", level, 1))
    for source in sources:
        with pytest.raises(DpnbError):
            execute(registry, LaunchMechanism("whole", PartitionTable(source, level)))
    assert part is not None
    assert send(session, Plan(Count(), source=part), node=node_of(launch, ("a",)))


@pytest.mark.parametrize(
    "source",
    [
        PartSource("", BY_G, "nothing"),
        PartSource("", GroupLevel("t", Column("t")), "a"),
        PartSource("", BY_G, "a", 99),
        PartSource("", BY_G, "a", -1),
        PartSource(Join("", ""), BY_G, "a"),
        Join("", ""),
        Join(PartSource("", BY_G, "a"), PartSource("", BY_G, "b")),
        "other",
    ],
)
def test_a_source_that_no_session_has(source: Any, untouched: dpnb.Session) -> None:
    with pytest.raises(PlanError):
        send(untouched, Plan(Count(), source=source))
    assert untouched.ledger.count == 0


def nested(levels: int) -> Any:
    node: Any = Literal(True)
    for _ in range(levels):
        node = Not(node)
    return node


def source_of(levels: int) -> Any:
    source: Any = ""
    for _ in range(levels):
        source = PartSource(source, BY_G, "a")
    return source


LOGISTIC = RegressionModel("logistic", Compare(">", X, Literal(0)), (K,), (G,))
STEP = JointAggregation(
    tuple(WeightedAggregation(ScoreSums(LOGISTIC, (5e-324, 0.0, 0.0, 0.0), part)) for part in ("score", "information"))
)
"""A step at a coefficient that is not allowed as a number of a query: it is part of an expression."""

PLANS = {
    "too deep": Plan(Count(), nested(140)),
    "far too deep": Plan(Count(), nested(500)),
    "deep source": Plan(Count(), source=source_of(100)),
    "too many nodes": Plan(JointAggregation(tuple(WeightedAggregation(Sum(X)) for _ in range(1001)))),
    "no parts": Plan(JointAggregation(())),
    "no numbers": Plan(Moments((), (G,))),
    "too many moments": Plan(Moments((X,) * 501)),
    "infinite constant": Plan(Sum(Literal(float("inf")))),
    "huge constant": Plan(Count(), Compare("==", K, Literal(10**400))),
    "huge listed": Plan(Count(), IsIn(K, (10**400,))),
    "keys without levels": Plan(Count(), group_keys=(("a",),)),
    "no keys": Plan(Count(), group_by=(BY_G,), group_keys=()),
    "short key": Plan(Count(), group_by=(BY_G, GroupLevel("k", K)), group_keys=(("a",),)),
    "long key": Plan(Count(), group_by=(BY_G,), group_keys=(("a", "b"),)),
    "equal keys": Plan(Count(), group_by=(BY_G,), group_keys=(("a",), ("a",))),
    "other key": Plan(Count(), group_by=(BY_G,), group_keys=(("q",),)),
    "boolean key": Plan(Count(), group_by=(GroupLevel("k", K),), group_keys=((True,),)),
    "number for text": Plan(Count(), group_by=(GroupLevel("t", Column("t")),), group_keys=((1,),)),
    "huge key": Plan(Count(), group_by=(GroupLevel("k", K),), group_keys=((10**400,),)),
    "many levels": Plan(Count(), group_by=tuple(GroupLevel(str(n), G) for n in range(101))),
    "text for number": Plan(Mean(Lookup("l", (K,), (("a",),), (1.0,), 1.0, 1.0))),
    "reversed bounds": Plan(Sum(Lookup("l", (K,), ((1,),), (None,), 5.0, 1.0))),
    "no lookup key": Plan(Count(), Compare("==", Lookup("l", (), ((),), ("a",)), Literal("a"))),
    "edges that are dates": Plan(Count(), group_by=(GroupLevel("c", Cut(X, (0.0, 1e300), ("a",), dates=True)),)),
    "edges of no year": Plan(Count(), group_by=(GroupLevel("c", Cut(Column("d"), (0.0, 1e14), ("a",), dates=True)),)),
    "descending edges": Plan(Count(), group_by=(GroupLevel("c", Cut(X, (1.0, 0.0), ("a",))),)),
    "discovery without levels": Plan(Discovery("1/1000000000")),
    "discovery with keys": Plan(Discovery("1/1000000000"), group_by=(BY_G,), group_keys=(("a",),)),
    "discovery of any group": Plan(Discovery("1"), group_by=(BY_G,)),
    "discovery with a huge delta": Plan(Discovery("1e999999999"), group_by=(BY_G,)),
    "discovery of a long delta": Plan(Discovery("1/1" + "0" * 5000), group_by=(BY_G,)),
    "tiny coefficient": Plan(STEP),
    "no coefficient": Plan(ScoreSums(LOGISTIC, (), "score")),
    "the unit": Plan(Count(), Compare("==", Column("who"), Literal(5))),
}


@pytest.mark.parametrize("name", PLANS)
def test_plans_that_no_frame_makes_are_refused(name: str, untouched: dpnb.Session) -> None:
    with pytest.raises(PlanError) as error:
        send(untouched, PLANS[name])
    assert untouched.ledger.count == 0
    assert len(str(error.value)) < 20_000


def test_a_tiny_coefficient_would_fail_after_the_charge(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = session_of(ROWS, tmp_path, "with")
    view = StepView(("Intercept", "k", "b", "c"))
    with pytest.raises(PlanError, match="between 1e-100"):
        send(session, Plan(STEP), view)
    assert session.ledger.count == 0
    monkeypatch.setattr(scores, "dtype_of", lambda *_: None)  # the control
    with pytest.raises(ExecutionError):
        send(session, Plan(STEP), view)
    assert session.ledger.count == 1


def test_limits_tighten_only(tmp_path: Path) -> None:
    session = session_of(ROWS, tmp_path, "with")
    compiled = session._core.tables.compile
    loose = ContributionBounds(max_rows=1000, max_groups=1000, max_rows_per_group=1000, max_norm=1000.0)
    plans = [Plan(Sum(X), group_by=(BY_G,)), Plan(Sum(X), group_by=(BY_G,), contribution_bounds=loose)]
    one, other = map(compiled, plans)
    assert other.contribution_bounds.max_rows == 2
    assert other.l2_sensitivity_squared / other.features[0].weight ** 2 == one.l2_sensitivity_squared


VIEWS: list[tuple[Plan, AnyView]] = [
    (Plan(Count()), MomentsView("mean")),
    (Plan(Sum(X)), CoefficientsView(("a",))),
    (Plan(Count()), Proportions()),
    (Plan(Count(), group_by=(BY_G,)), Proportions(size=2)),
    (Plan(Count(), group_by=(BY_G,)), Proportions(size=-1)),
    (Plan(Mean(X), group_by=(BY_G,)), Proportions()),
    (Plan(CumulativeCount(), group_by=(BY_G,)), Proportions()),
    (Plan(CumulativeCount(), group_by=(BY_G,)), MeanCountView()),
    (Plan(Moments((X,))), PlainView()),
    (Plan(Moments((X,))), MomentsView("secret")),
    (Plan(Moments((X,))), MomentsView("mean", (1,))),
    (Plan(Moments((X,))), MomentsView("mean", (-1,))),
    (Plan(Moments((X,))), MomentsView("var", ddof=7)),
    (Plan(Moments((X, K))), MomentsView("cov", (0,))),
    (Plan(Moments((X, K))), MomentsView("corr matrix", (0, 1), ("a",))),
    (Plan(Moments((X, K), (G,))), MomentsView("regression", (0, 2), ("x", "b"))),
    (Plan(Moments((X, K), (G,))), MomentsView("regression", (2, 0), ("g", "x"))),
    (Plan(QuantileTree(X)), QuantilesView((2.0,))),
    (Plan(QuantileTree(X)), QuantilesView((float("nan"),))),
    (Plan(QuantileTree(X)), QuantilesView(())),
    (Plan(QuantileTree(X)), QuantilesView((0.1, 0.2), single=True)),
    (Plan(QuantileTree(X)), QuantilesView((0.5,) * 1001)),
    (Plan(JointAggregation((WeightedAggregation(Count()),))), PlainView()),
    (Plan(LevelCounts(G)), PlainView()),
    (Plan(LevelCounts(G)), LevelShareView(9)),
    (Plan(LevelCounts(G)), LevelShareView(-1)),
    (Plan(Moments((X,), weights=AsNumber(Compare(">", X, Literal(0))))), MomentsView("mean")),
    (Plan(JointAggregation((WeightedAggregation(Count()),))), TableOneView((NamedColumn("n", 0),))),
    (
        Plan(JointAggregation((WeightedAggregation(QuantileTree(Seconds(Column("d")))),))),
        TableOneView((NamedColumn("d: 50%", 0, QuantilesView((0.5,), single=True)),), variables=("d",)),
    ),
    (Plan(JointAggregation((WeightedAggregation(Count()),))), TableOneView((NamedColumn("n", 0),), variables=("", ""))),
    (
        Plan(JointAggregation((WeightedAggregation(Count()),)), group_by=(BY_G,)),
        TableOneView((NamedColumn("n", 0),), variables=("",), reference=("other",)),
    ),
    (Plan(JointAggregation((WeightedAggregation(Count()),))), ColumnsView(())),
    (Plan(JointAggregation((WeightedAggregation(Count()),))), ColumnsView((NamedColumn("a", 1),))),
    (Plan(JointAggregation((WeightedAggregation(Count()),))), ColumnsView((NamedColumn("a", -1),))),
    (
        Plan(JointAggregation((WeightedAggregation(Moments((X,))),))),
        ColumnsView((NamedColumn("a", 0, MomentsView("regression", (0, 1), ("a", "b"))),)),
    ),
    (Plan(Count()), ColumnsView((NamedColumn("a", 0),))),
    (Plan(Discovery("1/1000000000"), group_by=(BY_G,)), Proportions()),
    (Plan(ScoreSums(LOGISTIC, (0.0,) * 4, "score")), StepView(("Intercept", "k", "b", "c"))),
    (Plan(ScoreSums(LOGISTIC, (0.0,) * 4, "score")), PlainView()),
]


@pytest.mark.parametrize(("plan", "view"), VIEWS)
def test_a_view_of_another_measurement_is_refused_before_the_charge(
    plan: Plan, view: AnyView, untouched: dpnb.Session
) -> None:
    with pytest.raises(PlanError, match="view: "):
        send(untouched, plan, view)
    assert untouched.ledger.count == 0


def test_without_the_check_of_views_a_charge_would_have_no_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = session_of(ROWS, tmp_path, "with")
    for module in (core, pricer):
        monkeypatch.setattr(module, "check_view", lambda *_: None)
    (row,) = send(session, Plan(Moments((X, K))), MomentsView("corr matrix", (0, 5), ("a", "b")))
    (charge,) = session._core.account.ledger.by_id([row])
    with pytest.raises(LookupError):  # the row can be read by nobody
        session._core.releases.answer_of(charge)


def test_a_batch_with_many_levels_is_refused_at_once(tmp_path: Path) -> None:
    session = session_of(ROWS, tmp_path, "with")
    one = tuple(GroupLevel(str(n), Cut(X, (float(-9 - n), 9.0), ("all",))) for n in range(60))
    call = ReleaseBatch(
        tuple(Release(plan, PLAIN, TARGET) for plan in (Plan(Count(), group_by=one), Plan(CountUnits())))
    )
    with pytest.raises(PlanError):
        execute(session._mechanisms, call)
    call = ReleaseBatch(tuple(Release(plan, PLAIN, TARGET) for plan in (Plan(Count(), group_by=one), Plan(Count()))))
    with pytest.raises(PlanError, match="tables to choose from"):
        execute(session._mechanisms, call)


@pytest.mark.parametrize("inside", ["x", "5", '1 "a"', "-1", "1e9", "\x00", "9" * 400, "1 {", "--"])
def test_a_mechanism_that_does_not_exist(inside: str, untouched: dpnb.Session) -> None:
    with pytest.raises(DpnbError):
        execute(untouched._mechanisms, Release(Plan(Count()), PlainView(), TARGET), Conditions(inside))
    with pytest.raises(DpnbError):
        untouched._mechanisms.at(inside)
