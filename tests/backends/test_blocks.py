"""A table is added up block by block: whatever the blocks, the sums are those of the whole table."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections import deque
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpnb._backends.memory import blocks
from dpnb._backends.memory.blocks import blocks_of, by_blocks
from dpnb._backends.memory.execute import execute, scaled_sums
from dpnb._backends.memory.prepare import prepared_table
from dpnb._backends.memory.unit_contributions import per_unit_vectors
from dpnb._backends.worker_thread import run_guarded
from dpnb._compile import linear_query
from dpnb._plan.expressions.nodes import Arithmetic, Column, Compare, IsIn, Literal
from dpnb._plan.measurements import Count, CountUnits, LevelCounts, Mean, Moments, QuantileTree, Ratio, Sum
from dpnb._plan.plan import GroupLevel, Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.errors import ExecutionError
from dpnb.schema import Bounded, Categories, Schema
from dpnb.threads import Helpers, ThreadTask
from pairwise import product
from waiting import LIMIT

X, Y, G, H = Column("x"), Column("y"), Column("g"), Column("h")
SCHEMA: Schema = {
    "x": Bounded(-3, 5),
    "y": Bounded(0.1, 2),
    "g": Categories(["a", "b", "c"]),
    "h": Categories(range(200)),
}
AGGREGATIONS = [
    Count(),
    Count(X),
    CountUnits(),
    Sum(X),
    Sum(Arithmetic("*", X, Y)),
    Mean(Y),
    Ratio(X, Y),
    Moments((X, Y)),
    Moments((X,), categories=(G,)),
    Moments((X,), categories=(G,), weights=Arithmetic("**", Y, Literal(2))),
    LevelCounts(G),
    QuantileTree(X),
]
LIMITS = [
    ContributionBounds(),
    ContributionBounds(max_rows=2),
    ContributionBounds(max_groups=1),
    ContributionBounds(max_groups=2, max_rows_per_group=1),
    ContributionBounds(max_norm=1.5),
]
BY: list[dict[str, Any]] = [
    {},
    {"group_by": (GroupLevel("g", G),)},
    {"group_by": (GroupLevel("h", H),)},
    {"group_by": (GroupLevel("g", G), GroupLevel("h", H)), "group_keys": (("b", 7), ("a", 199), ("c", 0))},
]
PERSON = PrivacyUnit("p", 6, ContributionBounds(max_rows=6))


def table(rows: int = 400) -> pd.DataFrame:
    random = np.random.default_rng(5)
    frame = pd.DataFrame(
        {
            "x": random.uniform(-4, 6, rows),
            "y": random.uniform(0, 2, rows),
            "g": random.choice(["a", "b", "c", "d"], rows),
            "h": random.integers(-5, 210, rows),
            "p": random.integers(0, 90, rows) ** 2,
        }
    )
    frame.loc[::7, "x"] = np.nan
    frame.loc[frame["p"] == 81, "p"] = 100  # one unit has more rows than most
    return frame


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared_table, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(blocks, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(blocks, "cores", lambda: 3)


@cache
def in_small_blocks(unit: PrivacyUnit) -> prepared_table.PreparedTable:
    return prepared_table.prepare(table(), SCHEMA, unit)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize(
    ("aggregation", "limited", "where"),
    product(
        AGGREGATIONS,
        [(PrivacyUnit(), ContributionBounds()), *((PERSON, limits) for limits in LIMITS)],
        [None, Compare(">", X, Literal(0)), IsIn(H, (3, 5, 100, 120))],
    ),
)
def test_sums_of_blocks_are_the_sums_of_the_units_vectors(
    aggregation: Any, limited: tuple[PrivacyUnit, ContributionBounds], where: Any
) -> None:
    unit, limits = limited
    prepared = in_small_blocks(unit)
    assert len(prepared.blocks_for(1)) > 5
    for by in BY:
        query = linear_query(Plan(aggregation, where, contribution_bounds=limits, **by), SCHEMA, unit)
        expected = per_unit_vectors(query, prepared, SCHEMA).sums()
        assert execute(query, prepared, SCHEMA).tolist() == expected.tolist()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("aggregation", [Count(), CountUnits(), Mean(Y), QuantileTree(X)])
@pytest.mark.parametrize("by", BY)
def test_whoever_is_asked_is_asked_once_in_order_and_only_those_who_take_part_count(
    aggregation: Any, by: dict[str, Any]
) -> None:
    prepared = prepared_table.prepare(table(), SCHEMA, PERSON)
    query = linear_query(Plan(aggregation, **by), SCHEMA, PERSON)
    vectors = per_unit_vectors(query, prepared, SCHEMA)
    asked: list[Any] = []

    def active(owners: Any, squares: Any) -> Any:
        asked.append(owners)
        assert len(squares) == len(owners)
        return owners % 3 != 0

    found = execute(query, prepared, SCHEMA, active)
    assert len(asked) == 1
    assert (np.diff(asked[0]) > 0).all()
    assert found.tolist() == vectors.sums(vectors.owners % 3 != 0).tolist()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("by", BY)
def test_scaled_sums_of_blocks_are_those_of_the_units_vectors(aggregation: Any, by: dict[str, Any]) -> None:
    prepared = in_small_blocks(PERSON)
    query = linear_query(Plan(aggregation, contribution_bounds=ContributionBounds(max_rows=2), **by), SCHEMA, PERSON)
    vectors = per_unit_vectors(query, prepared, SCHEMA)
    norms = np.full(len(prepared.names), -1.0)  # scaled down are two of three units, to half of their norm
    norms[vectors.owners] = np.where(vectors.owners % 3 == 0, -1, np.sqrt(vectors.squares()) / 2)
    expected = vectors.within(np.maximum(norms[vectors.owners], 0)).sums()
    found = scaled_sums(query, prepared, SCHEMA, norms)
    assert found.tolist() == expected.tolist()


@pytest.mark.usefixtures("small_blocks")
def test_which_rows_count_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = PrivacyUnit("p", 2, ContributionBounds(max_rows=2))
    found = prepared_table.prepare(table(), SCHEMA, unit)
    monkeypatch.setattr(prepared_table, "ROWS_AT_ONCE", 10**6)
    whole = prepared_table.prepare(table(), SCHEMA, unit)
    assert (found.units == whole.units).all()
    assert (found.ranks == whole.ranks).all()
    assert np.array_equal(found.numbers["x"], whole.numbers["x"], equal_nan=True)


@pytest.mark.parametrize("rows", [1, 2, 3, 100])
def test_blocks_are_of_whole_units_and_of_all_rows(rows: int) -> None:
    units = np.sort(np.random.default_rng(1).integers(0, 30, 70))
    found = blocks_of(units, rows)
    assert [place for block in found for place in range(block.start, block.stop)] == list(range(70))
    assert all(units[block.start - 1] != units[block.start] for block in found[1:])
    assert blocks_of(units[:0], rows) == [slice(0, 0)]


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.parametrize("helps", [False, True])
@pytest.mark.waits
def test_an_exception_or_interrupt_leaves_undone_what_has_not_begun(
    error: type[BaseException], helps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(blocks, "cores", lambda: 2)
    caller, begun = threading.get_ident(), []
    cleared = threading.Event()

    class Todo(deque[Any]):
        def clear(self) -> None:
            super().clear()
            cleared.set()

    monkeypatch.setattr(blocks, "deque", Todo)

    def work(block: slice) -> None:
        begun.append(block)
        if (threading.get_ident() != caller) == helps:
            raise error(f"rows {block}")
        assert cleared.wait(LIMIT)  # longer at its first block than the other thread takes to fail

    with pytest.raises(KeyboardInterrupt if error is KeyboardInterrupt else ExecutionError) as raised:
        run_guarded(lambda: by_blocks(work, [slice(place, place + 1) for place in range(1000)]), "constant")
    assert str(raised.value) in ("constant", "")
    assert raised.value.__context__ is None
    assert len(begun) <= 2
    assert by_blocks(lambda block: block.start, [slice(0, 1), slice(1, 2), slice(2, 3)]) == [0, 1, 2]


def test_blocks_are_done_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise a query over many rows would fail where one over few does not."""

    def refused(task: ThreadTask[None]) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(ThreadTask, "start", refused)
    monkeypatch.setattr(blocks, "_helpers", Helpers())
    monkeypatch.setattr(blocks, "cores", lambda: 3)
    assert blocks.by_blocks(sum, [range(3)] * 9) == [3] * 9


def test_the_same_threads_help_every_query(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "_helpers", Helpers())
    monkeypatch.setattr(blocks, "cores", lambda: 3)
    found = set[int]()
    for _ in range(50):
        together = threading.Barrier(3)

        def work(_: int, together: threading.Barrier = together) -> None:
            together.wait(LIMIT)
            found.add(threading.get_ident())

        by_blocks(work, range(3))
    assert len(found) == 3
    assert threading.get_ident() in found


def test_a_fork_has_helpers_of_its_own() -> None:
    code = (
        "import os, threading\n"
        "from dpnb._backends.memory import blocks\n"
        "blocks.cores = lambda: 2\n"
        "def both():\n"
        "    together = threading.Barrier(2)\n"
        f"    return len(set(blocks.by_blocks(lambda _: together.wait({LIMIT}), range(2)))) == 2\n"
        "assert both()\n"
        "child = os.fork()\n"
        "if not child:\n"
        "    os._exit(not both())\n"
        "assert os.waitpid(child, 0)[1] == 0\n"
        "assert both()\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
