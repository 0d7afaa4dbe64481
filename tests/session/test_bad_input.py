"""Bad input is refused before any charge, and no message shows the table.

Every text and number of the table below is a marker; a message that contains one has shown a row.
"""

from __future__ import annotations

import decimal
import math
import re
import sqlite3
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded, DpnbError, ExecutionError
from dpnb.query.plan import Plan

MARKERS = ("87131", "87132", "87133", "sekret", "harbor", "u-5501", "u-5502")

SCHEMA = {
    "visits": dpnb.Bounded(0, 10),
    "income": dpnb.Bounded(-1000, 90000.5),
    "town": dpnb.Categories(["north", "south"]),
    "grade": dpnb.Categories([1, 2, 3]),
}


def make_table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "person": ["u-5501", "u-5501", "u-5502", None],
            "visits": [87131, "sekret", None, math.inf],
            "income": [87132, 87133, 1, 2],
            "town": ["harbor", "north", "south", None],
            "grade": [1, 2, 3, 87131],
            "sekret": [1, 2, 3, 4],  # not in the schema; in a pivoted table a column's name is data
        }
    )


def make(folder: Path, **changes: Any) -> dpnb.Session:
    arguments: dict[str, Any] = {
        "name": "clinic",
        "budget": dpnb.Budget(epsilon=1, delta=1e-6),
        "schema": SCHEMA,
        "privacy_unit": "person",
        "max_rows_per_unit": 2,
        "ledger": folder / "clinic.dpnb",
    }
    table = changes.pop("table", make_table())
    return dpnb.Session(table, **{**arguments, **changes})


def check(refused: pytest.ExceptionInfo[DpnbError]) -> None:
    text = str(refused.value)
    assert not [marker for marker in MARKERS if marker in text]
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None or refused.value.__suppress_context__
    assert re.search(r"[;:,]", text), "a message gives rule and remedy"


TWICE = pd.concat([make_table(), make_table()], axis=1)

SESSION_CASES: dict[str, dict[str, Any]] = {
    "no table": {"table": None},
    "a path for a table": {"table": "people.csv"},
    "a dict for a table": {"table": {"visits": [1]}},
    "a column of the schema is missing": {"schema": {**SCHEMA, "hight": dpnb.Bounded(0, 1)}},
    "a column is there twice": {"table": TWICE},
    "privacy unit is missing": {"privacy_unit": "persn"},
    "privacy unit is not a name": {"privacy_unit": 7},
    "privacy unit is empty": {"privacy_unit": ""},
    "privacy unit is in the schema": {"privacy_unit": "town"},
    "privacy unit without max_rows_per_unit": {"max_rows_per_unit": None},
    "max_rows_per_unit without privacy unit": {"privacy_unit": None},
    "max_rows_per_unit zero": {"max_rows_per_unit": 0},
    "max_rows_per_unit negative": {"max_rows_per_unit": -3},
    "max_rows_per_unit a fraction": {"max_rows_per_unit": 2.5},
    "max_rows_per_unit a truth value": {"max_rows_per_unit": True},
    "max_rows_per_unit a text": {"max_rows_per_unit": "2"},
    "max_rows_per_unit beyond reason": {"max_rows_per_unit": 2**40},
    "schema missing": {"schema": None},
    "schema empty": {"schema": {}},
    "schema a list": {"schema": ["visits"]},
    "schema with a bare tuple": {"schema": {"visits": (0, 10)}},
    "schema with a type": {"schema": {"visits": float}},
    "schema with a number for a name": {"schema": {3: dpnb.Bounded(0, 1)}},
    "schema with an empty name": {"schema": {"": dpnb.Bounded(0, 1)}},
    "no budget": {"budget": None},
    "a number for a budget": {"budget": 1.0},
    "two budgets": {"budget": [dpnb.Budget.gdp(1), dpnb.Budget.gdp(2)]},
    "a name with a slash": {"name": "a/b"},
    "an empty name": {"name": ""},
    "a name that is no text": {"name": 3},
    "a name that is too long": {"name": "a" * 101},
    "public size zero": {"public_size": 0},
    "public size negative": {"public_size": -1},
    "public size a fraction": {"public_size": 10.5},
    "public size a truth value": {"public_size": True},
    "an empty version": {"version": ""},
    "a version that is no text": {"version": 1982},
    "an unknown filter": {"filter": "strict"},
    "no filter": {"filter": None},
    "a ledger that is no path": {"ledger": 7},
    "an empty ledger path": {"ledger": ""},
}


@pytest.mark.parametrize("changes", SESSION_CASES.values(), ids=SESSION_CASES)
def test_a_session_that_breaks_a_rule_is_refused_and_leaves_no_ledger(changes: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(DpnbError) as refused:
        make(tmp_path, **changes)
    check(refused)
    assert list(tmp_path.iterdir()) == []


DECLARATIONS: dict[str, Callable[[], Any]] = {
    "bounds reversed": lambda: dpnb.Bounded(10, 0),
    "bounds equal": lambda: dpnb.Bounded(3, 3),
    "lower bound not a number": lambda: dpnb.Bounded(math.nan, 1),
    "upper bound not a number": lambda: dpnb.Bounded(0, math.nan),
    "upper bound infinite": lambda: dpnb.Bounded(0, math.inf),
    "lower bound infinite": lambda: dpnb.Bounded(-math.inf, 0),
    "bound a text": lambda: dpnb.Bounded("0", 1),  # type: ignore[arg-type]
    "bound nothing": lambda: dpnb.Bounded(0, None),  # type: ignore[arg-type]
    "bound a truth value": lambda: dpnb.Bounded(False, 1),
    "bound beyond doubles": lambda: dpnb.Bounded(0, 10**400),
    "bounds too close": lambda: dpnb.Bounded(1e9, 1e9 + 1),
    "categories empty": lambda: dpnb.Categories([]),  # type: ignore[arg-type]
    "categories with a duplicate": lambda: dpnb.Categories(["a", "b", "a"]),  # type: ignore[arg-type]
    "categories equal across types": lambda: dpnb.Categories([1, 1.0]),  # type: ignore[arg-type]
    "categories with true and one": lambda: dpnb.Categories([1, True]),  # type: ignore[arg-type]
    "categories a text": lambda: dpnb.Categories("ab"),  # type: ignore[arg-type]
    "categories a set": lambda: dpnb.Categories({"a"}),  # type: ignore[arg-type]
    "categories a number": lambda: dpnb.Categories(3),  # type: ignore[arg-type]
    "categories with nothing": lambda: dpnb.Categories(["a", None]),  # type: ignore[list-item, arg-type]
    "categories with nan": lambda: dpnb.Categories([1.0, math.nan]),  # type: ignore[arg-type]
    "categories with a list": lambda: dpnb.Categories([["a"]]),  # type: ignore[list-item, arg-type]
    "categories with a date": lambda: dpnb.Categories([pd.Timestamp(0)]),  # type: ignore[list-item, arg-type]
    "a category beyond 64 bits": lambda: dpnb.Categories([2**70]),  # type: ignore[arg-type]
    "epsilon zero": lambda: dpnb.Budget(0, 1e-6),
    "epsilon negative": lambda: dpnb.Budget(-1, 1e-6),
    "epsilon not a number": lambda: dpnb.Budget(math.nan, 1e-6),
    "epsilon infinite": lambda: dpnb.Budget(math.inf, 1e-6),
    "epsilon a text that is no number": lambda: dpnb.Budget("one", 1e-6),
    "delta zero": lambda: dpnb.Budget(1, 0),
    "delta one": lambda: dpnb.Budget(1, 1),
    "delta negative": lambda: dpnb.Budget(1, -1e-6),
    "delta not a number": lambda: dpnb.Budget(1, math.nan),
    "delta nothing": lambda: dpnb.Budget(1, None),  # type: ignore[arg-type]
    "mu zero": lambda: dpnb.Budget.gdp(0),
    "mu negative": lambda: dpnb.Budget.gdp(-0.5),
    "mu not a number": lambda: dpnb.Budget.gdp(math.nan),
    "mu infinite": lambda: dpnb.Budget.gdp(math.inf),
    "mu a truth value": lambda: dpnb.Budget.gdp(True),
    "a plan from a text that is none": lambda: Plan.from_json("{}"),
    "a plan from broken JSON": lambda: Plan.from_json("{"),
}


@pytest.mark.parametrize("declare", DECLARATIONS.values(), ids=DECLARATIONS)
def test_a_declaration_that_breaks_a_rule_is_refused(declare: Callable[[], Any]) -> None:
    with pytest.raises(DpnbError) as refused:
        declare()
    check(refused)


Ask = Callable[[dpnb.Session], Any]

QUESTIONS: dict[str, Ask] = {
    "unknown column": lambda s: s.frame["hight"],
    "a column of the table that is not declared": lambda s: s.frame["person"],
    "a number for a column": lambda s: s.frame[0],
    "a list of columns": lambda s: s.frame[["visits", "income"]],
    "a slice of rows": lambda s: s.frame[:5],
    "sum of categories": lambda s: s.frame["town"].sum(),
    "sum of categories that are numbers": lambda s: s.frame["grade"].sum(),
    "mean of categories": lambda s: s.frame["grade"].mean(),
    "groups of an unknown column": lambda s: s.frame.groupby("hight"),
    "groups of a bounded column": lambda s: s.frame.groupby("visits"),
    "groups of the privacy unit": lambda s: s.frame.groupby("person"),
    "groups of a list": lambda s: s.frame.groupby(["town"]),
    "unknown column of groups": lambda s: s.frame.groupby("town")["hight"],
    "grouped sum of categories": lambda s: s.frame.groupby("town")["grade"].sum(),
    "a number compared with a text": lambda s: s.frame["visits"] == "three",
    "a number compared with a truth value": lambda s: s.frame["visits"] == True,  # noqa: E712
    "a number compared with nothing": lambda s: s.frame["visits"] == None,  # noqa: E711
    "a number compared with nan": lambda s: s.frame["visits"] > math.nan,
    "a number compared with infinity": lambda s: s.frame["visits"] < math.inf,
    "a number compared beyond 64 bits": lambda s: s.frame["visits"] < 10**30,
    "a number compared with a list": lambda s: s.frame["visits"] == [1, 2],
    "an undeclared category": lambda s: s.frame["town"] == "west",
    "an undeclared number": lambda s: s.frame["grade"] != 4,
    "an order of texts": lambda s: s.frame["town"] < "south",
    "an order with a text": lambda s: s.frame["grade"] < "2",
    "two columns of categories": lambda s: s.frame["town"] == s.frame["grade"],
    "a number and categories": lambda s: s.frame["visits"] > s.frame["grade"],
    "and": lambda s: (s.frame["visits"] > 1) and (s.frame["income"] > 1),
    "or": lambda s: (s.frame["visits"] > 1) or (s.frame["income"] > 1),
    "not": lambda s: not (s.frame["visits"] > 1),
    "a chain of comparisons": lambda s: 1 < s.frame["visits"] < 3,
    "& without brackets": lambda s: (s.frame["visits"] > 1) & True,
    "| with a column": lambda s: (s.frame["visits"] > 1) | s.frame["income"],
    "len": lambda s: len(s.frame),
    "len of a column": lambda s: len(s.frame["visits"]),
    "rows one by one": lambda s: list(s.frame),
    "values one by one": lambda s: list(s.frame["visits"]),
    "groups one by one": lambda s: list(s.frame.groupby("town")),
    "truth of a table": lambda s: bool(s.frame),
    "truth of a column": lambda s: bool(s.frame["visits"]),
}

TARGETS: dict[str, dict[str, Any]] = {
    "no target": {},
    "two targets": {"mu": 0.1, "rho": 0.1},
    "all targets": {"mu": 0.1, "rho": 0.1, "epsilon": 1, "share": 1, "within": 1},
    "mu zero": {"mu": 0},
    "mu negative": {"mu": -0.1},
    "mu nan": {"mu": math.nan},
    "mu infinite": {"mu": math.inf},
    "mu numpy nan": {"mu": np.float64("nan")},
    "mu a text": {"mu": "some"},
    "mu a truth value": {"mu": True},
    "mu a list": {"mu": [0.1]},
    "mu a Decimal nan": {"mu": decimal.Decimal("nan")},
    "mu beyond the noise": {"mu": "1e-320"},
    "rho zero": {"rho": 0},
    "rho negative": {"rho": -1},
    "rho nan": {"rho": math.nan},
    "epsilon zero": {"epsilon": 0},
    "epsilon negative": {"epsilon": -1},
    "epsilon nan": {"epsilon": math.nan},
    "share zero": {"share": 0},
    "share negative": {"share": -0.1},
    "share above one": {"share": 1.01},
    "share nan": {"share": math.nan},
    "share in percent": {"share": 50},
    "within zero": {"within": 0},
    "within negative": {"within": -2},
    "within nan": {"within": math.nan},
    "within infinite": {"within": math.inf},
    "within far too fine": {"within": "1e-400"},
    "confidence zero": {"mu": 0.1, "confidence": 0},
    "confidence one": {"mu": 0.1, "confidence": 1},
    "confidence in percent": {"mu": 0.1, "confidence": 95},
    "confidence negative": {"mu": 0.1, "confidence": -0.5},
    "confidence nan": {"mu": 0.1, "confidence": math.nan},
    "confidence a text": {"mu": 0.1, "confidence": "high"},
}


@pytest.fixture
def session(tmp_path: Path) -> dpnb.Session:
    return make(tmp_path)


@pytest.mark.parametrize("ask", QUESTIONS.values(), ids=QUESTIONS)
def test_a_question_without_a_meaning_is_refused(ask: Ask, session: dpnb.Session) -> None:
    with pytest.raises(DpnbError) as refused:
        ask(session)
    check(refused)
    assert session.spent == GDP(0)
    assert session.ledger.charges() == []


@pytest.mark.parametrize("verb", ["preview", "release"])
@pytest.mark.parametrize("target", TARGETS.values(), ids=TARGETS)
def test_a_target_without_a_meaning_is_refused(target: dict[str, Any], verb: str, session: dpnb.Session) -> None:
    with pytest.raises(DpnbError) as refused:
        getattr(session.frame.count(), verb)(**target)
    check(refused)
    assert session.spent == GDP(0)
    assert session.ledger.charges() == []


@pytest.mark.parametrize("target", [{"mu": 2}, {"rho": Fraction(3)}, {"epsilon": 1.01}, {"within": 1e-3}], ids=str)
def test_too_much_is_refused_and_costs_nothing(target: dict[str, Any], session: dpnb.Session) -> None:
    with pytest.raises(BudgetExceeded) as refused:
        session.frame.count().release(**target)
    check(refused)
    assert session.spent == GDP(0)


LEDGERS: dict[str, dict[str, Any]] = {
    "another epsilon": {"budget": dpnb.Budget(epsilon=2, delta=1e-6)},
    "another delta": {"budget": dpnb.Budget(epsilon=1, delta=1e-7)},
    "another kind of budget": {"budget": dpnb.Budget.gdp(0.2)},
    "another bound": {"schema": {**SCHEMA, "visits": dpnb.Bounded(0, 11)}},
    "another category": {"schema": {**SCHEMA, "grade": dpnb.Categories([1, 2])}},
    "a column less": {"schema": {"visits": dpnb.Bounded(0, 10)}},
    "more rows of a unit": {"max_rows_per_unit": 3},
    "another unit": {"privacy_unit": None, "max_rows_per_unit": None},
    "another name": {"name": "hospital"},
    "test noise": {"not_private_test_seed": 1},
}


@pytest.mark.parametrize("changes", LEDGERS.values(), ids=LEDGERS)
def test_a_ledger_made_for_another_promise_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    first = make(tmp_path)
    first.frame.count().release(mu=0.1)
    with pytest.raises(dpnb.errors.LedgerError) as refused:
        make(tmp_path, **changes)
    check(refused)
    assert first.spent == GDP(0.1)


def write_text(path: Path) -> None:
    path.write_text("visits,town\n87131,harbor\n" * 100)


def write_database(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE people (name TEXT)")
    connection.execute("INSERT INTO people VALUES ('sekret')")
    connection.commit()
    connection.close()


@pytest.mark.parametrize("write", [write_text, write_database, Path.mkdir])
def test_a_ledger_file_that_is_none_is_refused_and_left_alone(write: Callable[[Path], None], tmp_path: Path) -> None:
    path = tmp_path / "clinic.dpnb"
    write(path)
    before = path.read_bytes() if path.is_file() else None
    with pytest.raises(dpnb.errors.LedgerError) as refused:
        make(tmp_path)
    check(refused)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_ledger_in_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    with pytest.raises(dpnb.errors.LedgerError) as refused:
        make(tmp_path, ledger=tmp_path / "no" / "such" / "folder.dpnb")
    check(refused)


@pytest.mark.parametrize(
    "table",
    [make_table(), make_table().iloc[:0], make_table().astype(object), make_table().map(lambda _: None)],
    ids=["as it is", "no rows", "objects", "nothing but nulls"],
)
def test_what_the_table_holds_is_never_an_error(
    table: pd.DataFrame, tmp_path: Path, capfd: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    session = make(tmp_path, table=table, budget=dpnb.Budget.gdp(100))
    frame = session.frame
    questions = [frame.count(), frame.units(), frame["visits"].sum(), frame["income"].mean()]
    questions += [frame.groupby("town").count(), frame.groupby("grade")["visits"].mean(), frame["town"].count()]
    for question in questions:
        answer = question.release(mu=1)
        assert len(answer.to_pandas()) == (len(SCHEMA[answer.plan.by[0]].values) if answer.plan.by else 1)  # type: ignore[union-attr]
        assert answer.to_pandas().dtypes.eq("float64").all()
    assert capfd.readouterr() == ("", "")
    assert caplog.records == []


class Trap:
    """An object whose every use raises, with a row's content in the message."""

    def __float__(self) -> float:
        raise ValueError("sekret")

    def __hash__(self) -> int:
        raise ValueError("sekret")

    def __eq__(self, other: object) -> bool:
        raise ValueError("sekret")

    def __str__(self) -> str:
        raise ValueError("sekret")


@pytest.mark.parametrize("column", ["person", "visits", "town", "grade"])
def test_an_object_that_raises_does_not_count(column: str, tmp_path: Path) -> None:
    table = make_table().astype(object)
    table.at[0, column] = Trap()
    try:
        make(tmp_path, table=table).frame.count().release(mu=0.1)
    except ExecutionError as error:  # allowed only as the one constant text
        assert "sekret" not in str(error)  # noqa: PT017
        raise


def test_there_are_at_least_eighty_cases() -> None:
    assert len(SESSION_CASES) + len(DECLARATIONS) + len(QUESTIONS) + 2 * len(TARGETS) + len(LEDGERS) >= 80
