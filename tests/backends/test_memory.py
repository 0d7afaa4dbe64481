"""The memory of a query over a table in memory is bounded, whatever its plan and however many rows a unit has."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpnb._backends import opened
from dpnb._backends.lazy import execute as lazy_execute
from dpnb._backends.memory import blocks
from dpnb._backends.memory import blocks as block_cache
from dpnb._backends.memory.execute import affected_units, execute, scaled_sums
from dpnb._backends.memory.group_discovery import present_groups
from dpnb._backends.memory.prepare import prepared_table
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._compile import linear_query
from dpnb._plan.expressions.nodes import (
    And,
    Arithmetic,
    Clip,
    Column,
    Compare,
    Expression,
    Literal,
    MatchText,
    Or,
    Round,
)
from dpnb._plan.measurements import (
    Count,
    CountUnits,
    Discovery,
    JointAggregation,
    Mean,
    Moments,
    QuantileTree,
    Ratio,
    WeightedAggregation,
)
from dpnb._plan.plan import GroupLevel, Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.schema import Bounded, Categories, Schema, Text
from waiting import LIMIT

X, Y, G = Column("x"), Column("y"), Column("g")
SCHEMA: Schema = {"x": Bounded(-3, 5), "y": Bounded(0.1, 2), "g": Categories(["a", "b", "c"])}
PARTS = Count(X), CountUnits(), Mean(Arithmetic("*", X, Y)), Moments((X, Y), (G,)), QuantileTree(X), Ratio(X, Y)
JOINT = JointAggregation(tuple(map(WeightedAggregation, PARTS)))
WHERE = And(And(Compare("<", X, Literal(4)), Compare(">", Y, Literal(0.3))), Compare("!=", G, Literal("c")))
PLANS = [
    Plan(JOINT, where=WHERE),
    Plan(JOINT, where=WHERE, group_by=(GroupLevel("g", G),)),
    Plan(Moments((X, Y)), group_by=(GroupLevel("g", G),)),
    Plan(JOINT, contribution_bounds=ContributionBounds(max_norm=1.5)),
    Plan(Moments((X, Y)), where=WHERE, contribution_bounds=ContributionBounds(max_norm=1.5)),
    Plan(Moments((X, Y)), group_by=(GroupLevel("g", G),), contribution_bounds=ContributionBounds(max_norm=1.5)),
    Plan(JOINT, contribution_bounds=ContributionBounds(max_groups=1), group_by=(GroupLevel("g", G),)),
]
ROWS = 60
UNITS = {"one": 1, "few": 4, "many": 40}


@pytest.mark.parametrize("units", UNITS)
@pytest.mark.parametrize("plan", PLANS, ids=range(len(PLANS)))
def test_the_answer_does_not_depend_on_how_many_rows_are_computed_at_a_time(
    plan: Plan, units: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    random = np.random.default_rng(7)
    frame = pd.DataFrame(
        {
            "x": random.uniform(-4, 6, ROWS),
            "y": random.uniform(0, 2, ROWS),
            "g": random.choice(["a", "b", "c", "d"], ROWS),
            "p": random.integers(0, UNITS[units], ROWS),
        }
    )
    frame.loc[::7, "x"] = np.nan
    unit = PrivacyUnit("p", ROWS, ContributionBounds(max_rows=ROWS))
    query, table = linear_query(plan, SCHEMA, unit, divisible=True), prepare(frame, SCHEMA, unit)

    def answers() -> list[Any]:
        owners, squares = affected_units(query, table, SCHEMA)
        norms = np.full(len(table.names), -1.0)
        norms[owners[::2]] = np.sqrt(squares[::2]) / 2

        def every_second(owners: Any, squares: Any) -> Any:
            return (owners % 2 == 0) & (squares > 0)

        sums = execute(query, table, SCHEMA), execute(query, table, SCHEMA, every_second)
        return [owners, squares, *sums, scaled_sums(query, table, SCHEMA, norms)]

    expected = answers()
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 2**12)
    monkeypatch.setattr(blocks, "KEPT_BYTES", 0)
    monkeypatch.setattr(blocks, "ANSWER_BYTES", 0)
    monkeypatch.setattr(blocks, "LEAST_ROWS", 5)
    for module in (blocks, prepared_table):
        monkeypatch.setattr(module, "ROWS_AT_ONCE", 5)
    assert blocks.rows_at_once(query) < 20
    for found, whole in zip(answers(), expected, strict=True):
        assert found.tolist() == whole.tolist()


MEASURED = """
import os
import resource
import numpy as np
import pandas as pd
from dpnb._backends.memory.execute import affected_units, execute
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._compile import linear_query
from dpnb._plan.expressions.nodes import Column
from dpnb._plan.measurements import Moments
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.schema import Bounded

def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024

def measure(columns, rows_of_unit, bounds=ContributionBounds(), active=None, limit=400):
    names, rows = [f"c{index}" for index in range(columns)], 20_000
    random = np.random.default_rng(3)
    frame = pd.DataFrame({name: random.uniform(0, 1, rows) for name in names})
    frame["p"] = np.arange(rows) // rows_of_unit
    schema = {name: Bounded(0, 1) for name in names}
    unit = PrivacyUnit("p", rows_of_unit, ContributionBounds(max_rows=rows_of_unit))
    query = linear_query(Plan(Moments(tuple(map(Column, names))), contribution_bounds=bounds), schema, unit)
    table = prepare(frame, schema, unit)
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[5]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_DATA, (size + limit * 2**20,) * 2)
    before = peak()
    execute(query, table, schema, active)
    return peak() - before

CASES = {
    "sums": (60, 10),
    "one unit has all rows": (60, 20_000),
    "individual accounting": (60, 10, ContributionBounds(), lambda owners, squares: squares > 0),
    "one unit, individual accounting": (60, 20_000, ContributionBounds(), lambda owners, squares: squares > 0),
    "clipped": (40, 10, ContributionBounds(max_norm=1.5)),
    "one unit, clipped": (40, 20_000, ContributionBounds(max_norm=1.5)),
}
print(*CASES, sep=":", flush=True)
for name, arguments in CASES.items():
    if not os.fork():  # a process for each, without the memory and the limits of the others
        print(name, measure(*arguments), sep=":", flush=True)
        os._exit(0)
    os.wait()
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="measures the memory of a process as Linux reports it")
def test_a_query_with_many_features_has_bounded_memory() -> None:
    # An integer for each feature and row would be 138 or 302 MB, and several of them are needed without blocks.
    ended = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True, check=False, timeout=LIMIT)
    cases, *lines = ended.stdout.splitlines()
    grew = dict(line.split(":") for line in lines)
    assert list(grew) == cases.split(":"), ended.stderr[-1000:]
    assert {name: megabytes for name, megabytes in grew.items() if int(megabytes) >= 200} == {}


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["polars", "duckdb"])
def test_an_engine_sums_a_few_features_at_a_time(engine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(4)
    frame = pd.DataFrame({"x": random.uniform(-4, 6, 60), "y": random.uniform(0, 2, 60), "p": np.arange(60) // 3})
    frame.loc[::3, "x"] = np.nan
    frame["g"] = random.choice(["a", "b", "c"], 60)
    # A pass of the mean of x alone must count the same rows of a unit as one of all features, which need no column.
    parts = Mean(X), Mean(Y), Moments((X, Y), (G,)), CountUnits(), QuantileTree(Y)
    plan = Plan(
        JointAggregation(tuple(map(WeightedAggregation, parts))),
        group_by=(GroupLevel("g", G),),
        contribution_bounds=ContributionBounds(max_rows=2, max_groups=1),
    )
    unit = PrivacyUnit("p", 3, ContributionBounds(max_rows=3))
    query = linear_query(plan, SCHEMA, unit)
    expected = execute(query, prepare(frame, SCHEMA, unit), SCHEMA)
    pl = pytest.importorskip("polars")
    native = pl.from_pandas(frame).lazy()
    if engine == "duckdb":
        native = pytest.importorskip("duckdb").connect().from_arrow(pl.from_pandas(frame).to_arrow())
    backend = opened({"": native}, {"": SCHEMA}, {"": unit})
    for at_once in (1, 3, 100):
        monkeypatch.setattr(lazy_execute, "FEATURES_AT_ONCE", at_once)
        assert backend.sums(query).tolist() == expected.tolist()


def long_sum(terms: int) -> Expression:
    """An expression with many different parts, each of which is an array of the rows of a block."""
    total: Expression = X
    for number in range(terms):
        total = Arithmetic("+", total, Round(Arithmetic("*", X, Literal(number / 100)), 1))
    return total


LONG = {
    "filter": Plan(Count(), where=Compare(">", long_sum(50), Literal(1))),
    "groups": Plan(Count(), group_by=(GroupLevel("g", Round(Clip(long_sum(50), 0, 9))),)),
    "feature": Plan(Mean(long_sum(50))),
    "norm": Plan(Mean(long_sum(50)), contribution_bounds=ContributionBounds(max_norm=1.5)),
    "discovery": Plan(Discovery("1e-9"), group_by=(GroupLevel("g", Round(Clip(long_sum(50), 0, 9))),)),
}


@pytest.mark.parametrize("rows_of_unit", [4, 5_000])
@pytest.mark.parametrize("where", LONG)
def test_a_long_expression_has_bounded_memory(where: str, rows_of_unit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 5_000
    frame = pd.DataFrame({"x": np.arange(rows) % 8 - 3.0, "p": np.arange(rows) // rows_of_unit})
    unit = PrivacyUnit("p", rows_of_unit, ContributionBounds(max_rows=rows_of_unit))
    schema: Schema = {"x": SCHEMA["x"]}
    table, query = prepare(frame, schema, unit), linear_query(LONG[where], schema, unit)
    monkeypatch.setattr(blocks, "BLOCK_BYTES", 2**22)
    monkeypatch.setattr(blocks, "KEPT_BYTES", 2**21)
    compute = present_groups if where == "discovery" else execute
    tracemalloc.start()
    compute(query, table, schema)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # One array for each part of the expression is 8 MB; the entries of a unit that has all rows are some arrays.
    assert peak < 2.5e6


def test_many_conditions_on_texts_have_bounded_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each keeps a value for each text of the column, until these are large together."""
    texts = [f"text {number}" for number in range(4_000)]
    schema: Schema = {"t": Text()}
    frame, unit = pd.DataFrame({"t": texts, "p": range(4_000)}), PrivacyUnit("p", 1, ContributionBounds(max_rows=1))
    conditions: list[Expression] = [MatchText("contains", Column("t"), str(number)) for number in range(128)]
    while len(conditions) > 1:
        conditions = [Or(left, right) for left, right in zip(conditions[::2], conditions[1::2], strict=True)]
    (where,) = conditions
    table, query = prepare(frame, schema, unit), linear_query(Plan(Count(), where=where), schema, unit)
    peaks, sums = [], []
    for most in (2**16, 2**26):
        monkeypatch.setattr(block_cache, "MOST_BYTES", most)
        tracemalloc.start()
        sums.append(execute(query, table, schema).tolist())
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert sums[0] == sums[1]
    assert peaks[0] < peaks[1] - 3e5  # the control keeps all of them
