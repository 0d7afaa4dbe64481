"""Who is exhausted shows nowhere: in no face, error, warning, length, row of the ledger, draw of noise or transaction.

Tables that differ only in who has been exhausted are asked the same, with the same numbers released by force and the
clock stopped.  Then everything that can be watched must be the same byte for byte.  Nothing here is drawn.
"""

from __future__ import annotations

import gc
import pickle
import re
import sqlite3
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpnb
from dpnb._backends.memory import execute as execution
from dpnb._backends.memory import memory_backend
from dpnb._backends.memory import unit_contributions as unit_norms
from dpnb._backends.memory.prepare.prepared_table import PreparedTable
from dpnb._backends.memory.unit_contributions import per_unit_vectors
from dpnb._backends.unit_vectors import UnitVectors
from dpnb._core import unit_budgets
from dpnb._core.execution import releases
from dpnb._core.execution.executor import FAILED, INTERRUPTED
from dpnb._core.history import log as log_module
from dpnb._core.releases import ReleasePipeline
from dpnb._core.unit_budgets import IndividualAccounting, UnitChargeRecord, _UnitBudgetState
from dpnb.accounting.individual import IndividualFilter, UnitAdmission
from dpnb.accounting.individual import filter as filter_module
from dpnb.accounting.individual import filter as till_module
from dpnb.errors import DpnbError, ExecutionError
from dpnb.ledger import charge as charges
from dpnb.ledger import row_times
from dpnb.mechanisms.randomness import NotPrivateSeededSource
from dpnb.render import page
from dpnb.session import snapshot
from statistical.watching import watched

pytestmark = pytest.mark.statistical

MODES = ["skip", "drop", "clip"]
SCHEMA = {"site": dpnb.Categories(["a", "b", "c"]), "x": dpnb.Bounded(0, 8), "t": dpnb.Text()}
BUDGET = dpnb.Budget(epsilon=2, delta="1e-6", discovery_delta="5e-7")
ADDRESS = re.compile(r"0x[0-9a-f]+")


def opened(table: pd.DataFrame, ledger: Any = ":memory:", mode: str = "skip", **more: Any) -> dpnb.Session:
    given: dict[str, Any] = {
        "name": "people",
        "schema": SCHEMA,
        "budget": BUDGET,
        "privacy_unit": "who",
        "max_rows_per_unit": 3,
        "accounting": "individual",
        "on_exhausted": mode,
        "not_private_test_seed": 5,
    }
    return dpnb.Session(table, ledger=ledger, **{**given, **more})


def people(*sites: str) -> pd.DataFrame:
    """Twelve people, each with a row at each of the sites."""
    rows = [(who, site, float(who % 9), "pq"[who % 2]) for who in range(12) for site in sites]
    return pd.DataFrame(rows, columns=["who", "site", "x", "t"])


def first(session: dpnb.Session) -> None:
    """Takes most of what the unit at a can pay, and nothing from anybody else; it goes on to what nobody can pay."""
    session.frame[session.frame["site"] == "a"].count().release(mu="1.1")
    session.frame[session.frame["site"] == "a"]["x"].sum().release(mu="30")


TABLES = {
    "nobody is exhausted": people("b", "c"),
    "everybody is": people("a", "b"),
    "some are": pd.concat([people("a", "b")[:8], people("b", "c")[8:]], ignore_index=True),
    "there is nobody": people("a", "b")[:0],
    "one is": pd.concat([people("a", "b")[:2], people("b", "c")[2:]], ignore_index=True),
}

# --- the same numbers, whichever units take part ----------------------------------------------------------------------


@pytest.fixture
def forced(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is released does not depend on the rows, no time passes, and the salts of answers are no longer random."""
    measure = releases.measure

    class Stopped(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> datetime:
            return datetime(2020, 1, 1, tzinfo=UTC)

    monkeypatch.setattr(releases, "measure", lambda sums, **more: measure([100] * len(sums), **more))
    monkeypatch.setattr(
        releases,
        "named",
        lambda counts, sigma, source, **_: ([], measure([], sigma=sigma, source=source)),
    )
    for module in (row_times, log_module, page):
        monkeypatch.setattr(module, "datetime", Stopped)
    monkeypatch.setattr(charges.secrets, "token_hex", lambda size: "00" * size)


def everything(session: dpnb.Session) -> Iterator[tuple[str, Any]]:
    """All that can be watched of a session and of what it gives, call by call."""
    frame, parts = session.frame, session.partition("site")
    questions = {
        "count": frame.count(),
        "of a": frame[frame["site"] == "a"].count(),
        "of b": frame[frame["site"] == "b"].count(),
        "by site": frame.groupby("site").count(),
        "means": frame.groupby("site")["x"].mean(),
        "median": frame["x"].median(),
        "units": frame.count_units(),
        "several": frame.groupby("site").agg(n="count", s=("x", "sum"), u="units"),
        "regression": frame.regress("x", on=["site"]),
        "texts": frame.discover("t", discovery_delta="1e-8"),
        "active": session.count_active_units("now"),
        "in a part": parts["b"].frame.count(),
        "active in a part": parts["a"].count_active_units("now"),
    }
    for name, query in questions.items():
        for target in ({"mu": "0.4"}, {"mu": "1.7"}, {"share": "0.5"}, {"within": 20, "final": True}):
            yield f"preview of {name} {target}", lambda query=query, target=target: repr(query.preview(**target))
            yield f"{name} {target}", lambda query=query, target=target: _shown(query.release(**target))
        yield f"best of {name}", lambda query=query: None if query.best is None else _shown(query.best)
        yield f"{name} explained", query.explain
    yield "one group", lambda: questions["by site"].release(mu="2.5", groups=["a"])
    yield "delegate", lambda: session.delegate(name="it", mu="0.1")
    yield "scan", lambda: session.above_threshold(3, name="it", epsilon="0.1")
    yield "reduction", lambda: session.noise_reduction(questions["count"], name="looks", initial_mu="0.1").step()
    yield "reduction of nothing", lambda: session.noise_reduction(questions["units"], name="more").step()
    for name in ("spent", "headroom", "filter", "odometer", "promise", "mechanisms", "budget", "notice"):
        yield name, lambda name=name: repr(getattr(session, name))
    for name in ("filter", "odometer", "spent"):
        yield f"pickled {name}", lambda name=name: pickle.dumps(getattr(session, name))
    yield "text", lambda: str(session)
    yield "html", session._repr_html_
    yield "snapshot", lambda: repr(snapshot.snapshot(session))
    yield "log", lambda: session.log.to_csv()
    yield "log's size", lambda: (session.log.memory_usage(deep=True).tolist(), session.log.dtypes.tolist())
    yield "explained", session.explain
    yield "partition", lambda: (repr(parts), repr(parts.cost), parts.parts, repr(parts["a"]), parts["a"].headroom)
    yield "charges", lambda: repr(session.ledger.charges())
    yield "sizes", lambda: [sys.getsizeof(one) for one in (session, frame, session.filter, session.ledger, parts)]
    yield "pickled", lambda: pickle.dumps(session)


def _shown(answer: Any) -> Any:
    """An answer, its numbers too: they are the same."""
    faces = [repr(answer), answer._repr_html_(), repr(answer.estimate), repr(answer.interval), repr(answer.history)]
    return [answer, faces, type(answer.estimate).__name__, sys.getsizeof(answer), repr(answer.arrays)]


def _watched(table: pd.DataFrame, path: Path, mode: str) -> dict[str, Any]:
    path.unlink(missing_ok=True)
    session = opened(table, path, mode)
    first(session)
    seen: dict[str, Any] = {}
    for name, call in everything(session):
        seen[name] = _plain(watched(call))
    with closing(sqlite3.connect(path)) as file:
        seen["file"] = [row for name in ("metadata", "parameters", "head", "events") for row in _rows(file, name)]
    session.ledger.close()
    again = opened(table, path, mode)  # another kernel
    first(again)
    seen["again"] = _plain(watched(lambda: [repr(again), snapshot.snapshot(again)]))
    again.ledger.close()
    return seen


def _plain(seen: Any) -> str:
    return ADDRESS.sub("somewhere", repr(seen))


def _rows(file: sqlite3.Connection, name: str) -> list[Any]:
    return list(file.execute(f"SELECT * FROM {name}"))


@pytest.mark.usefixtures("forced")
@pytest.mark.parametrize(
    ("mode", "names"),
    [("skip", list(TABLES)[:4]), ("drop", list(TABLES)[:2]), ("clip", list(TABLES)[:2])],
)
def test_who_is_exhausted_shows_in_nothing_that_can_be_watched(tmp_path: Path, mode: str, names: list[str]) -> None:
    path = tmp_path / "people.dpnb"
    found = {name: _watched(TABLES[name], path, mode) for name in names}
    plain = found["nobody is exhausted"]
    assert len(plain) > 130
    for name, seen in found.items():
        assert seen == plain, name
    assert sum("'raised'" in one for one in plain.values() if isinstance(one, str)) > 10
    assert sum("the units that could still pay" in one for one in plain.values() if isinstance(one, str)) > 10


def test_the_tables_differ_in_who_is_exhausted() -> None:
    active = []
    for table in TABLES.values():
        session = opened(table)
        first(session)
        with _summed() as sums:
            session.frame[session.frame["site"] == "b"].count().release(mu="0.9")
        active.append(sums[0][0])
    assert active == [12, 0, 8, 0, 11]


# A control for each of these would be a face that tells; one is enough to see that the comparison sees it.
@pytest.mark.usefixtures("forced")
def test_control_an_answer_that_tells_whether_anybody_took_part_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    last: list[bool] = []
    active = UnitAdmission.active

    def noted(till: UnitAdmission, *arguments: Any) -> Any:
        found = active(till, *arguments)
        last[:] = [bool(found.any())]
        return found

    monkeypatch.setattr(UnitAdmission, "active", noted)
    monkeypatch.setattr(ReleasePipeline, "_excluded", lambda *_: None if all(last) else "nobody is left")
    seen = [_watched(TABLES[name], tmp_path / "it.dpnb", "skip") for name in ("nobody is exhausted", "everybody is")]
    assert seen[0] != seen[1]


# --- what is done, and how often --------------------------------------------------------------------------------------


def work(table: pd.DataFrame, mode: str, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Draws of noise with their sizes, and statements of the ledger, in order."""
    done: list[str] = []
    connect, words = sqlite3.connect, NotPrivateSeededSource.words

    def connecting(*arguments: Any, **options: Any) -> sqlite3.Connection:
        connection = connect(*arguments, **options)
        connection.set_trace_callback(lambda text: done.append(" ".join(text.split()[:4])))
        return connection

    def drawing(source: NotPrivateSeededSource, number: int) -> Any:
        done.append(f"{number} words")
        return words(source, number)

    with monkeypatch.context() as patch:
        gc.collect()  # what closes its ledger meanwhile does so with statements of its own
        patch.setattr(sqlite3, "connect", connecting)
        patch.setattr(NotPrivateSeededSource, "words", drawing)
        session = opened(table, mode=mode)
        first(session)
        frame = session.frame
        for query in (
            frame.count(),
            frame.groupby("site")["x"].mean(),
            frame["x"].median(),
            session.count_active_units("now"),
            session.partition("site")["a"].frame.count(),
            frame.groupby("site").agg(n="count", u="units"),
        ):
            query.preview(mu="2")
            for _ in range(2):
                query.release(mu="2")
        _ = str(session), session.log
        said = [*done]
        session.ledger.close()
    return said


@pytest.mark.parametrize("mode", MODES)
def test_draws_rows_and_transactions_do_not_depend_on_who_is_exhausted(
    mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the number of groups that a discovery draws noise for, which has always been that of the table's own."""
    done = {name: work(table, mode, monkeypatch) for name, table in TABLES.items()}
    plain = done["nobody is exhausted"]
    assert sum("words" in one for one in plain) == 8
    assert sum(one.startswith("INSERT INTO events") for one in plain) == 9  # with the launch of the partition
    for name, one in done.items():
        assert one == plain, name


# --- failures ---------------------------------------------------------------------------------------------------------

SECRETS = (
    PreparedTable,
    pd.DataFrame,
    np.ndarray,
    UnitVectors,
    IndividualFilter,
    _UnitBudgetState,
    UnitAdmission,
    UnitChargeRecord,
)
SECRET = "87131-secret"


def _fail(*_: Any, **__: Any) -> Any:
    raise ValueError(SECRET)


POINTS: dict[str, tuple[Any, str]] = {
    "reading the rows": (memory_backend, "execute"),
    "squares of norms": (execution, "unit_norms_squared"),
    "their rounding": (unit_norms, "rounded_up"),
    "losses": (till_module, "losses_of_squares"),
    "the filter's sums": (filter_module, "plus_up_within"),
    "the step": (IndividualFilter, "step"),
    "a state": (unit_budgets, "_UnitBudgetState"),
    "exact sums": (execution, "cell_sums"),
    "a start": (IndividualAccounting, "_fresh"),
    "noise": (releases, "measure"),
}


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError, DpnbError])
@pytest.mark.parametrize("point", POINTS)
def test_a_failure_in_the_middle_tells_nothing_and_changes_nobodys_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, point: str, error: type[BaseException]
) -> None:
    def failing(*_: Any, **__: Any) -> Any:
        raise error(SECRET)

    ledgers = [tmp_path / "it.dpnb", tmp_path / "other.dpnb"]
    raised = None
    told = []
    for number, ledger in enumerate(ledgers):
        before = opened(TABLES["some are"], ledger)
        first(before)
        if number == 0:
            before.ledger.close()
            before = opened(TABLES["some are"], ledger)  # a kernel that has to replay
            with monkeypatch.context() as patch:
                patch.setattr(*POINTS[point], failing)
                try:
                    before.frame.count().release(mu="2")
                except BaseException as caught:  # noqa: BLE001  (an interrupt too)
                    raised = caught
            before.frame.count_units().release(mu="0.5")
        with _summed() as sums:
            before.frame.count().release(mu="2")
            if number:
                before.frame.count_units().release(mu="0.5")
        told.append((sums[0], before._core.individuals._fresh(), [charge.loss for charge in before.ledger.charges()]))  # type: ignore[union-attr]
        before.ledger.close()
    assert told[0][0] == told[1][0]
    assert told[0][2] == told[1][2]
    expected = KeyboardInterrupt if error is KeyboardInterrupt else ExecutionError
    assert type(raised) is expected
    assert raised.args == ((INTERRUPTED,) if error is KeyboardInterrupt else (FAILED,))
    assert (raised.__cause__, raised.__context__, getattr(raised, "__notes__", [])) == (None, None, [])
    frame = raised.__traceback__.tb_next
    while frame is not None:
        assert not any(isinstance(value, SECRETS) for value in frame.tb_frame.f_locals.values()), frame.tb_frame
        frame = frame.tb_next


def _with_a_row_that_cannot_be_measured_any_more(path: Path, patch: pytest.MonkeyPatch, *, answered: bool) -> Any:
    """A session after a row that touches one person, whose query fails now, and failed then unless it was answered."""
    before = opened(TABLES["one is"], path)
    query = before.frame[before.frame["site"] == "a"].count_units()
    if answered:
        query.release(mu="0.2")
    else:
        with pytest.MonkeyPatch.context() as then:
            then.setattr(IndividualAccounting, "sums", lambda *_: 1 / 0)
            with pytest.raises(dpnb.errors.ExecutionError):
                query.release(mu="0.2")
    before.ledger.close()
    after = opened(TABLES["one is"], path)
    patch.setattr(IndividualAccounting, "_compiled", lambda *_: 1 / 0)
    return after


def test_an_unanswered_row_that_cannot_be_measured_any_more_is_charged_to_everybody_and_stops_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    after = _with_a_row_that_cannot_be_measured_any_more(tmp_path / "it.dpnb", monkeypatch, answered=False)
    with _summed() as sums:
        after.frame.count().release(mu="0.1")
    assert sums == [[24]], "and nobody is left out of what follows"
    spent = after._core.individuals._state.unit_budgets.units.spent
    assert spent == pytest.approx(0.04 + 0.01 * (2 / 3) ** 2), "two rows of three that might have been"


def test_an_answered_row_that_cannot_be_measured_any_more_stops_what_follows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others may have answered later rows by what each person really paid, which is not known any more."""
    after = _with_a_row_that_cannot_be_measured_any_more(tmp_path / "it.dpnb", monkeypatch, answered=True)
    with _summed() as sums, pytest.raises(dpnb.errors.ExecutionError):
        after.frame.count().release(mu="0.1")
    assert sums == []


@contextmanager
def _summed() -> Iterator[list[list[int]]]:
    found: list[list[int]] = []
    sums = IndividualAccounting.sums

    def noted(self: IndividualAccounting, *arguments: Any) -> Any:
        exact = sums(self, *arguments)
        found.append([int(one) for one in exact])
        return exact

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IndividualAccounting, "sums", noted)
        yield found


# --- each by their own rows -------------------------------------------------------------------------------------------

WIDE = {
    "g": dpnb.Categories(["a", "b", "c"]),
    "small": dpnb.Bounded(-1, 3),
    "large": dpnb.Bounded(-1e100, 1e100),
    "d": dpnb.Dates("2020-01-01", "2020-12-31"),
    "t": dpnb.Text(),
}
LIMITS: list[dict[str, Any]] = [
    {"max_rows_per_unit": 2},
    {"max_rows_per_unit": 9},
    {"max_norm_per_unit": 1.3},
    {"max_groups_per_unit": 2, "max_rows_per_group": 2},
    {"max_rows_per_unit": 4, "max_norm_per_unit": 2.7},
]
VALUE = st.floats(-4, 4) | st.sampled_from([np.nan, np.inf, 1e-300])
LARGE = st.floats(-1.2e100, 1.2e100) | st.sampled_from([np.nan, 1e300, -1e100, 1e90])
WIDE_ROW = st.tuples(
    st.integers(1, 5),
    st.sampled_from(["a", "b", "c", "none", None]),
    VALUE,
    LARGE,
    st.sampled_from(["2020-01-01", "2020-07-01T12:30", "no date"]),
    st.sampled_from(["p", "q", "r", "a longer text", None]),
)
WIDE_QUESTIONS: dict[str, Callable[[dpnb.Session], Any]] = {
    "count": lambda s: s.frame.count(),
    "units": lambda s: s.frame.groupby("g").count_units(),
    "logarithms": lambda s: (s.frame["small"] + 1).log1p().sum(),
    "exponentials": lambda s: s.frame.groupby("g").agg(n="count", s=("small", "mean"), l=("large", "sum")),
    "large": lambda s: s.frame["large"].sum(),
    "means of large": lambda s: s.frame.groupby("g")["large"].mean(),
    "regression": lambda s: s.frame.regress("small", on=["large", "g"]),
    "joint, far apart": lambda s: s.frame.agg(
        n="count", s=("small", "sum"), l=("large", "mean"), weights={"n": 2.0**20, "l": 2.0**-20}
    ),
    "median": lambda s: s.frame["small"].median(),
    "months": lambda s: s.frame.groupby(s.frame["d"].dt.month).count(),
    "part": lambda s: s.partition("g", max_parts_per_unit=1)["a"].frame["large"].sum(),
}


def wide(rows: list[tuple[Any, ...]], mode: str, limits: dict[str, Any]) -> dpnb.Session:
    table = pd.DataFrame(rows, columns=["who", "g", "small", "large", "d", "t"])
    return opened(table, schema=WIDE, mode=mode, **{"max_rows_per_unit": None, **limits})


def own_vectors(session: dpnb.Session, name: str, radius: float) -> dict[int, Any]:
    """By unit: its vector, its norm to the last bit, and what is left of it within a radius."""
    plan = WIDE_QUESTIONS[name](session).plan
    tables = session._core.pricer.tables
    rows = tables.opened.rows(plan.source)
    names = dict(enumerate(rows.names.tolist()))
    vectors = per_unit_vectors(tables.compile(plan), rows, tables.schema(plan.source))
    squares = vectors.squares()
    scaled = vectors.within(radius * np.sqrt(squares))
    found = {}
    for place, owner in enumerate(vectors.owners.tolist()):
        entries = slice(int(vectors.starts[place]), int(vectors.starts[place]) + int(vectors.sizes[place]))
        found[names[owner]] = (
            vectors.slots[entries].tolist(),
            [int(value) for value in vectors.values[entries]],
            float(squares[place]).hex(),
            [int(value) for value in scaled.values[entries]],
        )
    return found


def paid(session: dpnb.Session, moves: list[tuple[str, str]]) -> dict[int, str]:
    """What each unit has paid, to the last bit."""
    for name, mu in moves:
        WIDE_QUESTIONS[name](session).release(mu=mu)
    individuals = session._core.individuals
    assert individuals is not None
    individual_state = individuals._fresh()
    for charge in session.ledger.charges():
        individual_state, _, _ = individuals._after(individual_state, charge, None)
    spent, rows = individual_state.unit_budgets.units.spent, session._core.tables.opened.rows("")
    return {int(name): float(spent[unit]).hex() for unit, name in enumerate(rows.names)}


@settings(max_examples=40)
@given(
    rows=st.lists(WIDE_ROW, max_size=24),
    name=st.sampled_from(sorted(WIDE_QUESTIONS)),
    limits=st.sampled_from(LIMITS),
    mode=st.sampled_from(MODES),
    radius=st.floats(0, 1.2),
)
def test_what_a_unit_adds_hangs_on_its_own_rows_alone_to_the_last_bit(
    rows: list[Any], name: str, limits: dict[str, Any], mode: str, radius: float
) -> None:
    together = own_vectors(wide(rows, mode, limits), name, radius)
    apart: dict[int, Any] = {}
    for who in {row[0] for row in rows}:
        apart |= own_vectors(wide([row for row in rows if row[0] == who], mode, limits), name, radius)
    assert together == apart


MOVE = st.tuples(st.sampled_from(sorted(WIDE_QUESTIONS)), st.sampled_from(["0.1", "0.3", "2"]))


@settings(max_examples=15)
@given(
    rows=st.lists(WIDE_ROW, max_size=16),
    moves=st.lists(MOVE, max_size=5, unique=True),
    limits=st.sampled_from(LIMITS),
    mode=st.sampled_from(MODES),
)
def test_what_a_unit_pays_hangs_on_its_own_rows_alone_to_the_last_bit(
    rows: list[Any], moves: list[tuple[str, str]], limits: dict[str, Any], mode: str
) -> None:
    together = paid(wide(rows, mode, limits), moves)
    for who in {row[0] for row in rows}:
        alone = paid(wide([row for row in rows if row[0] == who], mode, limits), moves)
        assert alone[who] == together[who]
