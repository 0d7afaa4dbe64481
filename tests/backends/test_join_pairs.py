"""Joins by blocks: the same integers as from all pairs at once, and memory that does not follow one unit's pairs."""

from __future__ import annotations

import gc
import os
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._backends.memory import memory_backend as join_pairs
from dpnb._backends.memory.memory_backend import JoinedRows, MemoryBackend
from dpnb._compile import LinearQuery, linear_query
from dpnb._plan import join
from dpnb._plan.expressions.nodes import Column
from dpnb._plan.join import refuse_repeats, schema_of, unit_of
from dpnb._plan.plan import GroupLevel, Join, PartSource, Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.accounting.individual import OnExhausted, UnitChargeTerms
from dpnb.errors import ExecutionError, PlanError
from dpnb.frame import Frame, view
from dpnb.frame.view import TableView
from dpnb.schema import Bounded, Categories, Schema, Text
from pairwise import product
from waiting import LIMIT

SCHEMAS: dict[str, Schema] = {
    "visits": {"x": Bounded(-3, 5), "t": Text(), "g": Categories(["b", "a"])},
    "bills": {"y": Bounded(0, 4), "h": Categories([2, 1])},
    "homes": {"z": Bounded(0, 1)},
}
UNITS = dict(zip(SCHEMAS, [PrivacyUnit("u", 4), PrivacyUnit("u", 3), PrivacyUnit("u", 2)], strict=True))


def at_once(self: JoinedRows, query: LinearQuery, work: Callable[[Any], Any]) -> Iterator[Any]:
    """All pairs in one block, as it was before."""
    yield work(self.of_units(slice(0, len(self.names))))


# --- the same integers -----------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tables() -> MemoryBackend:
    rng = np.random.default_rng(3)
    drawn = {
        "x": rng.integers(-5, 7, 300) / 2,
        "t": rng.choice(["one", "two", "three"], 300),
        "g": rng.choice(["a", "b"], 300),
        "y": rng.integers(0, 6, 300),
        "h": rng.integers(0, 3, 300),
        "z": rng.random(300),
    }
    frames = {}
    for name, schema in SCHEMAS.items():
        rows = {"visits": 150, "bills": 120, "homes": 60}[name]
        columns: dict[str, Any] = {column: drawn[column][:rows] for column in schema}
        frames[name] = pd.DataFrame({"u": rng.integers(0, 40, rows), **columns})
        frames[name].loc[:5, "u"] = 17
    return MemoryBackend.read(frames, SCHEMAS, UNITS)


def asked(ask: Callable[[Any], Any], source: tuple[str, ...]) -> LinearQuery:
    def compiled(plan: Plan, _: Any) -> LinearQuery:
        return linear_query(plan, schema_of(plan.source, SCHEMAS), unit_of(plan.source, UNITS, SCHEMAS))

    of = {name: Frame(TableView(name, SCHEMAS, UNITS, compiled, lambda _: "1e-9")) for name in source}
    first, *others = of.values()
    for other in others:
        first = first.merge(other, on="u")
    found: LinearQuery = ask(first)
    return found


SUMS: dict[str, Callable[[Any], Any]] = {
    "rows": lambda f: f.count(),
    "units": lambda f: f.count_units(),
    "mean": lambda f: f[f["x"] > 0]["y"].mean(),
    "by two": lambda f: f.groupby(["g", "h"])["y"].sum(),
    "median": lambda f: f.groupby("h")["x"].median(),
    "two rows a unit": lambda f: f.bound_contributions(max_rows_per_unit=2)["x"].sum(),
    "one group a unit": lambda f: (
        f.bound_contributions(max_groups_per_unit=1).groupby("t", keys=["one", "two"])["y"].sum()
    ),
    "scaled down": lambda f: f.bound_contributions(max_norm_per_unit=1.5)["y"].sum(),
}
GROUPS: dict[str, Callable[[Any], Any]] = {
    "texts": lambda f: f.discover("t"),
    "a category": lambda f: f.discover("g"),
    "two, one a unit": lambda f: f.bound_contributions(max_groups_per_unit=1).discover(["h", "t"]),
}
SOURCES = {"two": ("visits", "bills"), "three": ("visits", "bills", "homes")}


def both_ways(work: Callable[[], Any], monkeypatch: pytest.MonkeyPatch, size: int) -> tuple[Any, Any, list[int]]:
    """What blocks give and all pairs at once, and how many pairs the blocks had."""
    seen: list[int] = []
    make = JoinedRows.of_units

    def watched(self: JoinedRows, units: slice) -> Any:
        made = make(self, units)
        seen.append(made.rows)
        return made

    with monkeypatch.context() as patch:
        patch.setattr(join_pairs, "PAIRS_AT_ONCE", size)
        patch.setattr(JoinedRows, "of_units", watched)
        blocks = work()
    with monkeypatch.context() as patch:
        patch.setattr(JoinedRows, "each", at_once)
        return blocks, work(), seen


@pytest.mark.parametrize("size", [1, 50])
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
@pytest.mark.parametrize("ask", SUMS.values(), ids=SUMS)
def test_blocks_of_pairs_add_up_to_the_same_integers(
    tables: MemoryBackend, ask: Any, source: tuple[str, ...], size: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = asked(ask, source)
    blocks, whole, seen = both_ways(partial(tables.sums, query), monkeypatch, size)
    assert blocks.tolist() == whole.tolist()
    assert any(whole)
    assert len(seen) > 4  # of several blocks
    if source == SOURCES["two"]:
        assert max(seen) < size + 4 * 3


@pytest.mark.parametrize("ask", GROUPS.values(), ids=GROUPS)
def test_blocks_of_pairs_have_the_same_groups_in_the_same_order(
    tables: MemoryBackend, ask: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = asked(ask, SOURCES["three"])
    (keys, sizes), (wanted, counts), _ = both_ways(partial(tables.groups, query), monkeypatch, 30)
    joined = tables.rows(query.plan.source)
    assert isinstance(joined, JoinedRows)
    one_table = join_pairs.group_discovery.present_groups(
        query, joined.of_units(slice(0, 40)), tables.schema(query.plan.source)
    )
    assert keys == wanted == one_table[0]
    assert sizes.tolist() == counts.tolist() == one_table[1].tolist()
    assert len(keys) > 1


@pytest.mark.parametrize("mode", ["skip", "clip"])
@pytest.mark.parametrize("ask", [*SUMS.values(), *GROUPS.values()], ids=[*SUMS, *GROUPS])
def test_units_pay_for_their_pairs_in_blocks_as_for_all_at_once(
    tables: MemoryBackend, ask: Any, mode: OnExhausted, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = asked(ask, SOURCES["two"])
    whole = query.plan.aggregation.__class__.__name__ == "Discovery"
    # Not all of the units can pay in full, as far as what they add differs.
    terms = UnitChargeTerms(1.0, query.l2_sensitivity_squared, False, mode == "clip" and not whole)
    budget = max(Fraction(query.l2_sensitivity_squared, 3), Fraction(1))

    def work() -> Any:
        found, after = tables.unit_budgets(budget, mode).after_query(query, terms)
        return (found if whole else found.tolist()), after.units.spent.tolist()  # type: ignore[union-attr]

    (found, spent), (wanted, paid), _ = both_ways(work, monkeypatch, 20)
    assert spent == paid
    assert any(spent)
    if whole:
        assert found[0] == wanted[0]
        assert found[1].tolist() == wanted[1].tolist()
    else:
        assert found == wanted


def test_a_join_keeps_no_pairs(tables: MemoryBackend) -> None:
    query = asked(SUMS["mean"], SOURCES["three"])
    tables.sums(query)
    joined = tables.rows(query.plan.source)
    assert isinstance(joined, JoinedRows)
    arrays = [value for value in vars(joined).values() if isinstance(value, np.ndarray)]
    assert not arrays


# --- what is refused -------------------------------------------------------------------------------------------------

PART = PartSource("visits", GroupLevel("g", Column("g")), "a")
OTHER_PART = PartSource("visits", GroupLevel("g", Column("g")), "b")
REPEATED = {
    "itself": Join("visits", "visits"),
    "a part of itself": Join("visits", PART),
    "another part": Join(PART, OTHER_PART),
    "a part of a part": Join("visits", PartSource(PART, GroupLevel("big", Column("g")), "a")),
    "a join with it": Join(Join("visits", "bills"), "visits"),
    "a join with a part of it": Join("bills", Join("homes", PartSource("bills", GroupLevel("h", Column("h")), 1))),
}


@pytest.mark.parametrize("source", REPEATED.values(), ids=REPEATED)
def test_a_table_is_in_a_join_once(source: Join) -> None:
    with pytest.raises(PlanError, match="more than once"):
        refuse_repeats(source)
    with pytest.raises(PlanError, match="more than once"):  # also of a plan that was written elsewhere
        unit_of(source, UNITS, SCHEMAS)


def test_a_view_is_not_merged_with_a_view_of_its_table() -> None:
    session = dpnb.Session(
        pd.DataFrame({"u": [1, 2], "x": [3, 4]}),
        name="one",
        privacy_unit="u",
        max_rows_per_unit=2,
        budget=dpnb.Budget.gdp(1),
        schema={"x": dpnb.Bounded(0, 10)},
        ledger=":memory:",
    )
    frame = session.frame
    part = session.partition(frame["x"] > 3, name="large")[True].frame
    for one, other in ((frame, frame), (frame, frame[frame["x"] > 3]), (part, part), (part, frame)):
        with pytest.raises(PlanError, match=r"the table would be .*assign"):
            one.merge(other, on="u", suffixes=("", "_again"))


def test_a_unit_has_few_pairs() -> None:
    units = {"visits": PrivacyUnit("u", 101), "bills": PrivacyUnit("u", 100), "homes": PrivacyUnit("u", 99)}
    assert unit_of(Join("bills", "homes"), units, {}).max_rows == 9900
    with pytest.raises(PlanError, match="10,100 pairs of rows; at most 10,000 are possible"):
        unit_of(Join("visits", "bills"), units, {})


# --- memory ----------------------------------------------------------------------------------------------------------

ROWS = 100
"""Of a person, in each of two tables: 10,000 pairs."""

SMALL = 2**17
"""Bytes by which the peak may differ between neighbours. A part is kept, with its person's rows; all pairs at once are
some millions."""


def opened(has: bool, **given: Any) -> dpnb.Session:
    """A session on tables in which one person has the value, or not."""
    who = np.repeat(np.arange(20), ROWS)
    visits = pd.DataFrame({"u": who, "x": np.where(who == 7, 9.0 * has, 1.0), "t": "text", "k": who % 3})
    bills = pd.DataFrame({"u": who, "y": 2.0, "h": who % 2})
    return dpnb.Session(
        {"visits": visits, "bills": bills},
        name="two",
        privacy_unit="u",
        max_rows_per_unit=ROWS,
        budget=dpnb.Budget(epsilon=2, delta=1e-6, discovery_delta=1e-7),
        schema={
            "visits": {"x": dpnb.Bounded(0, 10), "t": dpnb.Text(), "k": dpnb.Categories([0, 1, 2])},
            "bills": {"y": dpnb.Bounded(0, 10), "h": dpnb.Categories([0, 1])},
        },
        ledger=":memory:",
        **given,
    )


def singled_out(session: dpnb.Session) -> Any:
    part = session.partition(session.table("visits")["x"] > 8, table="visits")[True].frame
    return part.merge(session.table("bills"), on="u")


QUESTIONS: dict[str, Callable[[Any], Any]] = {
    "units": lambda f: f.count_units(),
    "mean": lambda f: (f["x"] * f["y"] + f["x"]).clip(0, 10).mean(),
    "var": lambda f: f.groupby("h")["y"].var(),
    "few rows": lambda f: f.bound_contributions(max_rows_per_unit=5).groupby("k")["y"].sum(),
    "scaled down": lambda f: f.bound_contributions(max_norm_per_unit=2)["y"].sum(),
    "groups": lambda f: f.discover(["t", "h"]),
}


def peak(has: bool, ask: Callable[[Any], Any], **given: Any) -> int:
    """Bytes that a question needs at most beyond what there is before."""
    query = ask(singled_out(opened(has, **given)))
    gc.collect()
    tracemalloc.start()
    try:
        query.release(mu=1e-3)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("name", "accounting"), product(QUESTIONS, ["worst-case", "individual"], together=1))
def test_memory_does_not_follow_the_pairs_of_one_unit(
    name: str, accounting: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, given = QUESTIONS[name], {"accounting": accounting}
    peak(True, ask, **given)  # what is made once
    without, with_value = peak(False, ask, **given), peak(True, ask, **given)
    assert abs(with_value - without) < SMALL
    monkeypatch.setattr(JoinedRows, "each", at_once)
    assert peak(True, ask, **given) - peak(False, ask, **given) > 2 * SMALL  # the same test finds all pairs at once


# --- the attack as it was made ---------------------------------------------------------------------------------------


def tower(has: bool) -> Any:
    """A part that singles out one person, joined with itself again and again: a million pairs, or none."""
    who = np.repeat(np.arange(200), 10)
    session = dpnb.Session(
        pd.DataFrame({"u": who, "x": np.where(who == 7, 9.0 * has, 1.0), "k": np.arange(2000) % 10}),
        name="one",
        privacy_unit="u",
        max_rows_per_unit=10,
        budget=dpnb.Budget.gdp(1),
        schema={"x": dpnb.Bounded(0, 10), "k": dpnb.Bounded(0, 10)},
        ledger=":memory:",
    )
    one = session.partition(session.frame["x"] > 8)[True].frame
    joined = one
    for turn in range(5):
        joined = joined.merge(one, on="u", suffixes=("", f"_{turn}"))
    session.frame.count_units().release(mu=1e-3)
    return joined.count_units()


def two_tables(has: bool) -> Any:
    """All that is left of it: two tables, and 10,000 pairs."""
    session = opened(has)
    session.table("visits").count_units().release(mu=1e-3)
    return singled_out(session).count_units()


def allow_towers() -> None:
    """Take the refusals away, not the blocks."""
    view.refuse_repeats = join.refuse_repeats = lambda source: None  # type: ignore[attr-defined]
    join.MAX_PAIRS = 10**6


def allow_all() -> None:
    """Take everything away that was done against it."""
    allow_towers()
    JoinedRows.each = at_once  # type: ignore[assignment]


def ended(question: Callable[[bool], Any], has: bool, room: int) -> str:
    """How a question ends in a process of its own with a limit on its additional bytes of address space."""
    if child := os.fork():
        return {0: "answered", 1: "failed"}[os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])]
    code = 2
    try:
        query = question(has)
        taken = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (taken + room, -1))
        try:
            query.release(mu=1e-6)
            code = 0
        except ExecutionError:
            code = 1
    finally:
        os._exit(code)


def run(allowed: str, question: str, room: str) -> None:
    """In a process without threads of tests before it, which forks."""
    globals()[allowed]()
    for _ in range(5):
        print(*(ended(globals()[question], has, int(room)) for has in (False, True)))


def outcomes(allowed: Callable[[], None], question: Callable[[bool], Any], room: int) -> set[str]:
    words = [allowed.__name__, question.__name__, str(room)]
    command = [
        sys.executable,
        "-c",
        "import sys; from backends import test_join_pairs; test_join_pairs.run(*sys.argv[1:])",
        *words,
    ]
    tests = Path(__file__).parents[1]
    found = subprocess.run(command, cwd=tests, env={**os.environ, "PYTHONPATH": f"{tests}:{tests.parent}"}, **TEXT)
    assert found.returncode == 0, found.stderr
    lines = found.stdout.splitlines()
    assert len(lines) == 5
    return set(lines)


TEXT: dict[str, Any] = {"capture_output": True, "text": True, "check": False, "timeout": LIMIT}


def nothing() -> None:
    """Leave everything as it is."""


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc and a limit of addresses")
@pytest.mark.parametrize(
    ("allowed", "question", "room", "wanted"),
    [
        (allow_all, tower, 2**24, {"answered failed"}),  # the control: ten of ten tell
        (allow_towers, tower, 2**24, {"failed failed"}),
        (nothing, two_tables, 2**24, {"failed failed"}),
        (nothing, two_tables, 2**28, {"answered answered"}),
    ],
    ids=["control", "by blocks", "two tables", "two tables and room"],
)
@pytest.mark.slow
def test_a_limit_of_memory_does_not_tell_whether_a_person_has_the_value(
    allowed: Any, question: Any, room: int, wanted: set[str]
) -> None:
    assert outcomes(allowed, question, room) == wanted


def test_what_the_attack_joins_is_refused() -> None:
    with pytest.raises(PlanError, match="more than once"):
        tower(True)
