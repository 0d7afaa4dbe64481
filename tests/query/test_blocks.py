"""A table is added up block by block: whatever the blocks, the sums are those of the whole table."""

from __future__ import annotations

import threading
from collections import deque
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dpnb.errors import ExecutionError
from dpnb.query import blocks, prepare
from dpnb.query.aggregations import Count, Mean, Moments, Ratio, Sum, Tree, Units
from dpnb.query.blocks import blocks_of, by_blocks
from dpnb.query.by_unit import unit_vectors
from dpnb.query.execute import execute
from dpnb.query.expressions.nodes import Arithmetic, Column, Compare, IsIn, Literal
from dpnb.query.guard import guarded
from dpnb.query.linear import linear_query
from dpnb.query.plan import Group, Plan
from dpnb.query.schema import Bounded, Categories, Schema
from dpnb.query.unit import Limits, PrivacyUnit
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
    Units(),
    Sum(X),
    Sum(Arithmetic("*", X, Y)),
    Mean(Y),
    Ratio(X, Y),
    Moments((X, Y)),
    Moments((X,), categories=(G,)),
    Tree(X),
]
LIMITS = [
    Limits(),
    Limits(rows=2),
    Limits(groups=1),
    Limits(groups=2, rows_per_group=1),
    Limits(norm=1.5),
]
BY: list[dict[str, Any]] = [
    {},
    {"by": (Group("g", G),)},
    {"by": (Group("h", H),)},
    {"by": (Group("g", G), Group("h", H)), "keys": (("b", 7), ("a", 199), ("c", 0))},
]
PERSON = PrivacyUnit("p", 6, Limits(rows=6))


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
    monkeypatch.setattr(prepare, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(blocks, "ROWS_AT_ONCE", 7)
    monkeypatch.setattr(blocks, "cores", lambda: 3)


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("where", [None, Compare(">", X, Literal(0)), IsIn(H, (3, 5, 100, 120))])
@pytest.mark.parametrize(("unit", "limits"), [(PrivacyUnit(), Limits()), *((PERSON, limits) for limits in LIMITS)])
@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_sums_of_blocks_are_the_sums_of_the_units_vectors(
    aggregation: Any, limits: Limits, where: Any, unit: PrivacyUnit
) -> None:
    prepared = prepare.prepare(table(), SCHEMA, unit)
    assert len(prepared.blocks_for(1)) > 5
    for by in BY:
        query = linear_query(Plan(aggregation, where, limits=limits, **by), SCHEMA, unit)
        expected = unit_vectors(query, prepared, SCHEMA).sums()
        assert execute(query, prepared, SCHEMA).tolist() == expected.tolist()


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("aggregation", [Count(), Units(), Mean(Y), Tree(X)])
@pytest.mark.parametrize("by", BY)
def test_whoever_is_asked_is_asked_once_in_order_and_only_those_who_take_part_count(
    aggregation: Any, by: dict[str, Any]
) -> None:
    prepared = prepare.prepare(table(), SCHEMA, PERSON)
    query = linear_query(Plan(aggregation, **by), SCHEMA, PERSON)
    vectors = unit_vectors(query, prepared, SCHEMA)
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
def test_which_rows_count_does_not_depend_on_the_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = PrivacyUnit("p", 2, Limits(rows=2))
    found = prepare.prepare(table(), SCHEMA, unit)
    monkeypatch.setattr(prepare, "ROWS_AT_ONCE", 10**6)
    whole = prepare.prepare(table(), SCHEMA, unit)
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
        guarded(lambda: by_blocks(work, [slice(place, place + 1) for place in range(1000)]), "constant")
    assert str(raised.value) in ("constant", "")
    assert raised.value.__context__ is None
    assert len(begun) <= 2
    assert by_blocks(lambda block: block.start, [slice(0, 1), slice(1, 2), slice(2, 3)]) == [0, 1, 2]
