"""Compiled sums and comparisons have the same integers and truth values as numpy; a broken numba changes nothing."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import dpnb
from dpnb._backends.memory import blocks as blocks_module
from dpnb._backends.memory import kernels as compiled
from dpnb._backends.memory import memory_backend
from dpnb._backends.memory.codes import Threshold, coarse_codes, ordered_columns
from dpnb._backends.memory.execute import execute
from dpnb._backends.memory.group_discovery import present_groups
from dpnb._backends.memory.kernels import Kernels, cell_sums, sums_and_counts
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._compile import linear_query
from dpnb._plan.expressions.nodes import And, Column, Compare, IsIn, Literal, Not, Or
from dpnb._plan.measurements import Count, CountUnits, Discovery, Mean, Moments, QuantileTree, Ratio, Sum
from dpnb._plan.plan import GroupLevel, Plan
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit
from dpnb.schema import Bounded, Categories, Schema, Text
from dpnb.threads import Helpers, ThreadTask
from pairwise import product

with pytest.MonkeyPatch.context() as _patch:  # all other tests switch numba off
    _patch.delenv("NUMBA_DISABLE_JIT", raising=False)
    pytest.importorskip("numba")

X, Y, G, H, T = Column("x"), Column("y"), Column("g"), Column("h"), Column("t")
SCHEMA: Schema = {
    "x": Bounded(-3, 5),
    "y": Bounded(0, 20, integer=True),
    "g": Categories(["a", "b", "c"]),
    "h": Categories(range(200)),
    "t": Text(),
}
OPERATORS = ["<", "<=", ">", ">=", "==", "!="]


@pytest.fixture(scope="module", autouse=True)
def _is_switched_on() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("NUMBA_DISABLE_JIT", raising=False)
        yield


@pytest.fixture(scope="module")
def compilation() -> compiled._Compilation:
    """One that has ended, for all tests, after it was started twice."""
    made = compiled._Compilation()
    made.start()
    thread = made.thread
    assert thread is not None
    made.start()
    assert made.thread is thread
    thread.join()
    return made


@pytest.fixture(scope="module")
def kernels(compilation: compiled._Compilation) -> Kernels:
    assert compilation.kernels is not None
    return compilation.kernels


@pytest.fixture
def with_kernels(kernels: Kernels, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Tables are computed by the kernels if called with True, by numpy with False."""

    def chosen(which: bool) -> None:
        monkeypatch.setattr(compiled._compilation, "kernels", kernels if which else None)

    return chosen


@st.composite
def blocks(draw: st.DrawFn) -> tuple[Any, Any, Any, int]:
    rows, count = draw(st.integers(0, 40)), draw(st.integers(1, 100))
    kind = draw(st.sampled_from(compiled.CELLS))
    cells = draw(arrays.arrays(kind, rows, elements=st.integers(-1, count - 1)))
    values = draw(arrays.arrays(np.int32, rows, elements=st.integers(-(2**31) + 1, 2**31 - 1)))
    counts = draw(arrays.arrays(np.bool_, rows)) & (cells >= 0)
    return values, cells, counts, count


@given(blocks())
def test_sums_by_cell(kernels: Kernels, block: tuple[Any, Any, Any, int]) -> None:
    values, cells, counts, count = block
    found = []
    for chosen in (None, kernels):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(compiled._compilation, "kernels", chosen)
            sums, ones = sums_and_counts(values, cells, counts, count)
            assert (ones is None) == (chosen is None)
            if ones is None:
                ones = cell_sums(None, cells, counts, count)
            found.append(
                [
                    sums.tolist(),
                    ones.tolist(),
                    cell_sums(None, cells, counts, count).tolist(),
                    cell_sums(values, cells, counts, count).tolist(),
                    cell_sums(values, None, counts, 1).tolist(),
                    cell_sums(values[::-1], cells[::-1], counts[::-1], count).tolist(),  # not contiguous
                ]
            )
    assert found[0] == found[1]


@pytest.mark.parametrize("value", [2**31 - 1, -(2**31) + 1])
def test_sums_beyond_the_integers_that_doubles_hold(kernels: Kernels, value: int) -> None:
    rows = 2**23 + 3
    values, counts = np.full(rows, value, np.int32), np.ones(rows, np.bool_)
    assert kernels.total(counts, values) == rows * value
    sums = np.zeros((2, 2), np.int64)
    kernels.add(counts, np.ones(rows, np.int8), values, sums)
    assert sums.tolist() == [[0, 0], [rows * value, rows]]


def test_a_row_that_does_not_count_may_have_any_cell(kernels: Kernels) -> None:
    cells, counts = np.array([-(2**40), 2**40, 1]), np.array([False, False, True])
    ones = np.zeros(2, np.int64)
    kernels.count(counts, cells, ones)
    sums = np.zeros((2, 2), np.int64)
    kernels.add(counts, cells, np.array([5, 5, 7], np.int32), sums)
    assert ones.tolist() == [0, 1]
    assert sums.tolist() == [[0, 0], [7, 1]]


BOUNDS = [Bounded(-3, 5), Bounded(0, 1e-100), Bounded(-1e100, 1e100), Bounded(1e15, 1.0001e15), Bounded(0, 7)]


@given(st.data(), st.sampled_from(BOUNDS), st.sampled_from(OPERATORS[:4]))
def test_a_comparison(kernels: Kernels, data: st.DataObject, column: Bounded, operator: Any) -> None:
    some = data.draw(st.lists(st.floats(column.low, column.high), min_size=1, max_size=4))
    near = [other for value in some for other in (value, np.nextafter(value, np.inf), np.nextafter(value, -np.inf))]
    near += [column.low, column.high, 0.0, -0.0]
    values = np.clip(np.array(near * data.draw(st.integers(1, 200))), column.low, column.high)
    anything = st.floats(allow_nan=False, allow_infinity=False)
    constant = data.draw(st.one_of(st.sampled_from(near), st.just(2 * column.high), anything))
    with np.errstate(over="ignore"):  # as where blocks are computed: the number after the largest double
        found = Threshold.of(operator, constant, column).compared(values, coarse_codes(values, column), kernels)
    assert found.tolist() == expected(operator, values, constant)


def expected(operator: str, values: Any, constant: float) -> list[bool]:
    compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[operator]
    return list(compare(values, constant).tolist())


def test_which_columns_have_codes() -> None:
    above, equal = Compare(">", X, Literal(1)), Compare("==", Y, Literal(2))
    assert ordered_columns(None) == set()
    assert ordered_columns(Or(And(above, equal), Not(Compare("<", X, Y)))) == {"x"}


def frame(rows: int = 3000) -> pd.DataFrame:
    chance = np.random.default_rng(5)
    number = chance.choice([*np.linspace(-4, 6, 41), np.nan], rows)
    return pd.DataFrame(
        {
            "unit": chance.integers(0, rows // 3, rows),
            "x": number,
            "y": chance.choice([*range(-2, 24), np.nan], rows),
            "g": chance.choice(["a", "b", "c", "undeclared", None], rows),
            "h": chance.integers(-5, 210, rows),
            "t": chance.choice(["one", "two", "three", None], rows),
        }
    )


CONDITIONS = [
    None,
    Compare(">", X, Literal(1)),
    Compare("<=", X, Literal(0.25)),
    And(Compare(">=", Y, Literal(3)), Compare("<", X, Literal(-3))),
    Or(Not(Compare("<", Y, Literal(7))), Compare("!=", X, Literal(5))),
    Compare(">", X, Literal(99)),
    Or(Compare("<", H, Literal(50)), Compare(">=", Y, Literal(18))),
    And(IsIn(G, ("a", "c")), Compare(">", X, Y)),
]
AGGREGATIONS = [Count(), Count(X), CountUnits(), Sum(X), Mean(Y), Ratio(X, Y), Moments((X, Y)), QuantileTree(Y)]
LIMITS = [ContributionBounds(), ContributionBounds(max_rows=2), ContributionBounds(max_groups=2)]
BY: list[dict[str, Any]] = [
    {},
    {"group_by": (GroupLevel("g", G),)},
    {"group_by": (GroupLevel("g", G), GroupLevel("h", H)), "group_keys": (("a", 3), ("c", 199), ("b", 0))},
    {"group_by": (GroupLevel("t", T),), "group_keys": (("two",), ("absent",))},
]


@pytest.mark.parametrize(("aggregation", "where", "limits", "by"), product(AGGREGATIONS, CONDITIONS, LIMITS, BY))
def test_a_query(with_kernels: Any, aggregation: Any, where: Any, limits: Any, by: dict[str, Any]) -> None:
    unit = PrivacyUnit("unit", max_rows=4)
    query = linear_query(Plan(aggregation, where=where, contribution_bounds=limits, **by), SCHEMA, unit)
    found = []
    for which in (False, True):
        with_kernels(which)
        table = prepare(frame(), SCHEMA, unit)
        found.append(execute(query, table, SCHEMA).tolist())
        assert bool(table.coarse_codes) == (which and bool(ordered_columns(where)))
    assert found[0] == found[1]


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("unit", max_rows=4)])
@pytest.mark.parametrize("by", [(T,), (G, T), (H,)])
def test_the_groups_that_exist(with_kernels: Any, unit: PrivacyUnit, by: tuple[Any, ...]) -> None:
    levels = tuple(GroupLevel(str(index), node) for index, node in enumerate(by))
    query = linear_query(Plan(Discovery("1/50"), where=CONDITIONS[1], group_by=levels), SCHEMA, unit)
    found = []
    for which in (False, True):
        with_kernels(which)
        keys, sizes = present_groups(query, prepare(frame(), SCHEMA, unit), SCHEMA)
        found.append((keys, sizes.tolist()))
    assert found[0] == found[1]


class TestCompilation:
    def test_it_is_started_once(self, compilation: compiled._Compilation) -> None:
        thread = compilation.thread
        compilation.start()
        assert compilation.thread is thread
        assert compilation.kernels is not None

    def test_numbas_own_switch(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("NUMBA_DISABLE_JIT", "1")
        compilation = compiled._Compilation()
        compilation.start()
        assert compilation.thread is None

    def test_a_numba_that_fails_is_as_good_as_none(
        self, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
    ) -> None:
        def failing() -> None:
            raise RuntimeError("no compiler")

        monkeypatch.setattr(compiled, "_compiled", failing)
        compilation = compiled._Compilation()
        compilation.start()
        assert compilation.thread is not None
        compilation.thread.join()
        assert compilation.kernels is None
        assert capfd.readouterr() == ("", "")

    def test_without_another_thread_there_are_no_kernels(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def failing(*_: Any) -> None:
            raise RuntimeError("can't start new thread")

        monkeypatch.setattr(threading.Thread, "start", failing)
        compilation = compiled._Compilation()
        compilation.start()
        assert compilation.kernels is None

    def test_the_interpreter_exits_during_a_compilation(self) -> None:
        code = (
            "from dpnb._backends.memory import kernels; kernels.start_compiling(); "
            "assert kernels.kernels_for() is None; print('end')"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        assert (done.stdout, done.stderr) == ("end\n", "")

    @pytest.mark.slow
    def test_a_fork_waits_for_the_compilation_and_no_log_tells_of_it(self) -> None:
        """In one process, which compiles once.  At its end is the control: of another compilation the log tells."""
        code = (
            "import logging, os, sys, numpy as np; logging.basicConfig(level=logging.DEBUG)\n"
            "from dpnb._backends.memory import kernels\n"
            "kernels.start_compiling()\n"
            "assert kernels.kernels_for() is None\n"
            "child = os.fork()\n"
            "if child == 0:\n"
            "    logging.disable()\n"
            "    found = kernels.kernels_for().total(np.ones(3, bool), np.full(3, 5, np.int32))\n"
            "    import numba\n"
            "    os._exit(found != 15 or numba.njit(lambda x: x + 1)(1) != 2)\n"
            "assert os.waitpid(child, 0)[1] == 0\n"
            "assert kernels.kernels_for() is not None\n"
            "logging.getLogger('numba.core.ssa').debug('of another thread')\n"
            "print('control', file=sys.stderr)\n"
            "kernels.silence_thread, kernels.CELLS = lambda *_: None, kernels.CELLS[:1]\n"
            "kernels.THREAD = 'not silenced'\n"
            "control = kernels._Compilation()\n"
            "control.start()\n"
            "control.thread.join()\n"
            "assert control.kernels is not None\n"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        silent, _, control = done.stderr.partition("control\n")
        assert silent == "DEBUG:numba.core.ssa:of another thread\n"
        assert "DEBUG:numba" in control


def threads_of(rows: int, monkeypatch: pytest.MonkeyPatch, *, depends: bool) -> list[str]:
    """The threads that a session of some rows and a query start and wake, on three cores."""
    started: list[str] = []

    class Counted(Helpers):
        def grow(self, number: int) -> None:
            super().grow(number)
            started.append(f"{self.number} helpers")

        def help_with(self, task: ThreadTask[None]) -> None:
            started.append("woken")
            super().help_with(task)

    compilation = compiled._Compilation()
    monkeypatch.setattr(compiled, "_compiled", lambda: started.append(compiled.THREAD))
    monkeypatch.setattr(blocks_module, "_helpers", Counted())
    monkeypatch.setattr(blocks_module, "cores", lambda: 3)
    begin = (lambda: rows >= 2**20 and compilation.start()) if depends else compilation.start
    monkeypatch.setattr(memory_backend, "start_compiling", begin)
    table = pd.DataFrame({"x": np.arange(rows) % 7.0, "k": ["a"] * rows, "who": np.arange(rows) // 2})
    schema = {"x": Bounded(0, 6), "k": Categories(["a", "b"])}
    limits: Any = {"privacy_unit": "who", "max_rows_per_unit": 1}
    session = dpnb.Session(table, name="t", budget=dpnb.Budget.gdp(9), schema=schema, ledger=":memory:", **limits)
    session.frame[session.frame["x"] > 2].groupby("k")["x"].mean().release(mu=1)
    if compilation.thread is not None:
        compilation.thread.join()
    return sorted(started)


@pytest.mark.parametrize("depends", [False, True])
def test_no_thread_tells_how_many_rows_a_table_has(depends: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread imports numba, so the loaded modules would tell too.  The control compiles for large tables alone."""
    found = [threads_of(rows, monkeypatch, depends=depends) for rows in (6, 2**20)]
    assert (found[0] == found[1]) is not depends
    assert {compiled.THREAD, "2 helpers", "woken"} == {*found[1]}
