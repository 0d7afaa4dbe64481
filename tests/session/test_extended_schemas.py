"""A schema can be extended at any time, and before its first request a ledger takes whatever a session declares."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpnb
from dpnb._backends.memory.prepare.prepared_table import PreparedTable
from dpnb._core.accountant import later_sessions as declaring
from dpnb._core.ledger_metadata import LedgerMetadata
from dpnb._core.tables import PrivateTables
from dpnb._core.unit_budgets import IndividualAccounting
from dpnb.curator.audit import audit
from dpnb.curator.verification import verify
from dpnb.errors import DpnbError, InvalidValueError, LedgerError, SchemaError
from dpnb.ledger import Ledger
from dpnb.ledger.charge import COLUMNS, VERSION, chained_hash, result_hash
from dpnb.ledger.declared import added_to, before_added
from dpnb.schema import Schema
from dpnb.session.disclosure.building import report_of
from dpnb.session.snapshot import snapshot
from texts import characters

RNG = np.random.default_rng(48)
ROWS = 300
TABLE = pd.DataFrame(
    {
        "person": RNG.integers(0, 60, ROWS),
        "age": RNG.choice([20.0, 40.0, 60.0], ROWS),
        "ward": RNG.choice(["north", "south"], ROWS),
        "cost": RNG.uniform(0, 500, ROWS).round(2),
        "note": RNG.choice(["a", "b", "c"], ROWS),
        "born": pd.to_datetime("1950-01-01") + pd.to_timedelta(RNG.integers(0, 20000, ROWS), unit="D"),
    }
)
AGE, WARD = {"age": dpnb.Bounded(0, 100)}, {"ward": dpnb.Categories(["north", "south"])}
COST, NOTE = {"cost": dpnb.Bounded(0, 500)}, {"note": dpnb.Text()}
BORN = {"born": dpnb.Dates("1950-01-01", "2010-12-31")}
FIRST = {**AGE, **WARD}
BUDGET = dpnb.Budget(epsilon=1, delta=1e-6)

Open = Callable[..., dpnb.Session]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    def opened(schema: Any = FIRST, **changes: Any) -> dpnb.Session:
        arguments: dict[str, Any] = {
            "table": TABLE,
            "name": "clinic",
            "budget": BUDGET,
            "privacy_unit": "person",
            "max_rows_per_unit": 2,
            "ledger": tmp_path / "clinic.dpnb",
            "not_private_test_seed": 5,
        }
        return dpnb.Session(schema=schema, **{**arguments, **changes})

    return opened


def kinds(session: dpnb.Session) -> list[str]:
    return [row.kind for row in session.ledger.charges()]


def exact(session: dpnb.Session, query: Any) -> list[int]:
    """The sums of a query, without noise."""
    tables = session._core.tables
    return [int(number) for number in tables.opened.sums(tables.compile(query.plan))]


# --- columns can be added ---------------------------------------------------------------------------------------------


def test_a_forgotten_column_does_not_end_the_session(opened: Open, tmp_path: Path) -> None:
    first = opened()
    answer = first.frame["age"].mean().release(mu=0.1)
    again = opened({**FIRST, **COST, **NOTE})
    assert kinds(again) == ["release", "version"]
    assert list(again.schema) == ["age", "ward", "cost", "note"]
    again.frame["cost"].mean().release(mu=0.05)
    assert str(again.frame["age"].mean().release(mu=0.1)) == str(answer)  # recorded, so free
    later = opened({**FIRST, **COST, **NOTE})
    assert kinds(later) == ["release", "version", "release"]
    assert later.spent == again.spent == first.spent
    assert audit(tmp_path / "clinic.dpnb").problems == ()


def test_a_row_holds_the_whole_schema(opened: Open) -> None:
    opened().frame.count().release(mu=0.1)
    (row,) = [row for row in opened({**COST, **FIRST}, version="2").ledger.charges() if row.kind == VERSION]
    metadata = (row.launch or {})["metadata"]
    assert json.loads(metadata["schema"]).keys() == {"age", "ward", "cost"}
    assert json.loads(metadata["added"]) == [["", "cost"]]
    assert (row.table_version, row.node, row.loss) == ("2", " files", dpnb.accounting.losses.GDP(0))
    assert metadata.keys() == {*opened({**FIRST, **COST}).ledger.created.metadata, "added"}


def test_answers_and_refinements_are_about_the_same_rows(opened: Open) -> None:
    before, later = opened(), None
    queries: dict[str, Callable[[Any], Any]] = {
        "mean": lambda f: f["age"].mean(),
        "groups": lambda f: f.groupby("ward")["age"].sum(),
        "one row": lambda f: f.bound_contributions(max_rows_per_unit=1)["age"].sum(),
        "within": lambda f: f["age"].sum(),
    }
    found = {name: exact(before, query(before.frame)) for name, query in queries.items()}
    answer = before.frame["age"].mean().release(mu=0.1)
    for mu, more in ((0.01, NOTE), (0.02, COST), (0.03, BORN)):
        later = opened({**(FIRST if later is None else later._core.tables.schemas[""]), **more})
        later.frame.count().release(mu=mu)  # which fixes the schema
        assert {name: exact(later, query(later.frame)) for name, query in queries.items()} == found
    assert later is not None
    assert later._core.tables.added == (("", "note"), ("", "cost"), ("", "born"))
    again = later.frame["age"].mean().release(mu=0.1)
    assert float(again) == float(answer)
    again.refine(mu=0.2)
    assert later.ledger.charges()[-1].observations == (1, later.ledger.count)


def test_control_a_hash_of_all_columns_is_about_other_rows(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: with the added column in the hash, the same query sums other rows."""
    before = opened()
    found = exact(before, before.frame["age"].sum())
    before.frame.count().release(mu=0.1)
    monkeypatch.setattr(PrivateTables, "follow", lambda self, declared: None)
    later = opened({**FIRST, **COST})
    assert exact(later, later.frame["age"].sum()) != found


def test_later_columns_order_only_what_earlier_ones_leave_equal(opened: Open) -> None:
    opened().frame.count().release(mu=0.01)
    one = opened({**FIRST, **NOTE})
    one.frame.count().release(mu=0.02)
    found = exact(one, one.frame.groupby("note", keys=["a", "b"])["age"].sum())
    both = opened({**FIRST, **NOTE, **COST})
    assert exact(both, both.frame.groupby("note", keys=["a", "b"])["age"].sum()) == found
    ordered = PreparedTable.contents

    def by_name(table: PreparedTable, rows: Any) -> Any:
        if table.added:
            object.__setattr__(table, "added", {name: number for number, name in enumerate(sorted(table.added))})
        return ordered(table, rows)

    with pytest.MonkeyPatch.context() as patch:  # the control: cost before note
        patch.setattr(PreparedTable, "contents", by_name)
        other = opened({**FIRST, **NOTE, **COST})
        assert exact(other, other.frame.groupby("note", keys=["a", "b"])["age"].sum()) != found


# --- a session that lacks an added column -----------------------------------------------------------------------------


def test_a_session_may_lack_added_columns_and_cannot_use_them(opened: Open) -> None:
    opened().frame.count().release(mu=0.01)
    whole = opened({**FIRST, **NOTE})
    whole.frame.count().release(mu=0.02)
    whole = opened({**FIRST, **NOTE, **COST})
    whole.frame["cost"].mean().release(mu=0.02)
    lacks = opened({**FIRST, **COST})
    assert list(lacks.schema) == ["age", "ward", "cost"]
    with pytest.raises(DpnbError, match="note"):
        lacks.frame["note"].count()
    for query in (lambda f: f["cost"].sum(), lambda f: f.groupby("ward")["cost"].sum()):
        assert exact(lacks, query(lacks.frame)) == exact(whole, query(whole.frame))
    older = opened()  # the notebook of last year
    assert older._core.tables.hidden == {}
    older.frame["age"].mean().release(mu=0.03)
    assert len(older.log) == len(whole.log)
    assert [row.kind for row in older.ledger.charges()].count(VERSION) == 2
    assert snapshot(older)
    assert len(older.report().releases) == 4


def test_what_it_lacks_must_be_in_the_table_where_that_orders_rows(opened: Open) -> None:
    opened().frame.count().release(mu=0.01)
    opened({**FIRST, **NOTE}).frame.count().release(mu=0.02)
    opened({**FIRST, **NOTE, **COST}).frame.count().release(mu=0.02)
    opened(table=TABLE[["person", "age", "ward"]])
    with pytest.raises(SchemaError, match="column 'note': is not in the table"):
        opened({**FIRST, **COST}, table=TABLE.drop(columns="note"))


# --- what stays, and what is said of it -------------------------------------------------------------------------------


LASTS = "was created for another {}"
REFUSED: dict[str, tuple[dict[str, Any], str, list[str]]] = {
    "a bound": (
        {"schema": {**WARD, "age": dpnb.Bounded(0, 90)}},
        "version",
        ["'age': the ledger has high=100.0", "high=90.0"],
    ),
    "a removed column": ({"schema": AGE}, "version", ["'ward': the session lacks it; it is Categories(['north', "]),
    "a category": (
        {"schema": {**AGE, "ward": dpnb.Categories(["north", "east"])}},
        "version",
        ["'ward': the session lacks 'south', the ledger lacks 'east'"],
    ),
    "categories in another order": (
        {"schema": {**AGE, "ward": dpnb.Categories(["south", "north"])}},
        "version",
        ["'ward': the session has the categories in another order"],
    ),
    "a type": ({"schema": {**AGE, "ward": dpnb.Text()}}, "version", ["'ward': the ledger has Categories(", "Text()"]),
    "a limit": ({"max_rows_per_unit": 3}, "version", ["max_rows_per_unit: the ledger has 2, the session has 3"]),
    "rows": (
        {"privacy_unit": None, "max_rows_per_unit": None},
        LASTS.format("privacy_unit"),
        ["privacy_unit: the ledger has person, the session has None"],
    ),
    "a budget": (
        {"budget": dpnb.Budget(epsilon=2, delta=1e-6)},
        LASTS.format("budget"),
        ["the ledger has Budget(epsilon=1.0, delta=1e-06), the session has Budget(epsilon=2.0, delta=1e-06)"],
    ),
    "a filter": ({"filter": "zcdp"}, LASTS.format("filter"), ["the ledger has gdp, the session has zcdp"]),
    "accounting": (
        {"accounting": "individual"},
        LASTS.format("on_exhausted"),
        ["accounting='worst-case', the session has account"],
    ),
    "tables": (
        {"schema": {"t": FIRST}, "table": {"t": TABLE}},
        "version",
        ["the ledger has one table, the session has table 't'"],
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_request_was_charged_for_stays(what: str, opened: Open, tmp_path: Path) -> None:
    changes, name, words = REFUSED[what]
    opened().frame.count().release(mu=0.1)
    before = (tmp_path / "clinic.dpnb").read_bytes()
    said = "version '1' of its table was used with another declaration" if name == "version" else name
    with pytest.raises(LedgerError, match=said) as refused:
        opened(**changes)
    for word in words:
        assert word in str(refused.value)
    assert not re.search(r'[{]|"type"|\\"', str(refused.value))  # no JSON
    assert len(str(refused.value)) < 500
    assert (tmp_path / "clinic.dpnb").read_bytes() == before


def test_a_refusal_names_a_few_of_many_differences(opened: Open) -> None:
    codes = [f"code {number}" for number in range(15_000)]
    long = {f"column {number}": dpnb.Bounded(0, 1) for number in range(30)}
    table = TABLE.assign(**dict.fromkeys(long, 0.5))
    opened({**AGE, "ward": dpnb.Categories(codes), **long}, table=table).frame.count().release(mu=0.1)
    with pytest.raises(LedgerError, match="and 14,995 more") as refused:
        opened({**AGE, "ward": dpnb.Categories(["north"]), **long}, table=table)
    assert len(str(refused.value)) < 500
    with pytest.raises(LedgerError, match="; and 29 more; give a new version="):
        opened({**AGE, "ward": dpnb.Categories(codes)}, table=table)


# --- until the first request, and until a new column is used ----------------------------------------------------------


@pytest.mark.parametrize("what", REFUSED)
def test_before_the_first_request_anything_may_change(what: str, opened: Open, tmp_path: Path) -> None:
    opened()
    session = opened(**REFUSED[what][0])
    assert kinds(session) == ["version"]
    (session.table("t") if what == "tables" else session.frame).count().release(mu=0.05)
    if what != "a removed column":  # which can be added
        with pytest.raises(LedgerError, match=r"was created for another|was used with another declaration"):
            opened()
    again = opened(**REFUSED[what][0])
    assert again.spent == session.spent
    assert again.guarantee == session.guarantee
    assert again._core.tables.added == ()
    assert audit(tmp_path / "clinic.dpnb").problems == ()


def test_before_the_first_request_the_sample_may_change(opened: Open) -> None:
    opened(public_size=50)
    assert opened(sampled="census").sampled == "census"
    assert opened(budget=dpnb.Budget.gdp(1)).sampled == "census"
    session = opened(budget=dpnb.Budget.gdp(1), sampled="population")
    assert (session.sampled, session._core.account.public_size) == ("population", 50)
    session.frame.count().release(mu=0.1)
    with pytest.raises(LedgerError, match="sampled"):
        opened(budget=dpnb.Budget.gdp(1), sampled="census")


def test_an_added_column_may_change_until_something_is_charged(opened: Open, tmp_path: Path) -> None:
    opened().frame.count().release(mu=0.1)
    opened({**FIRST, "cost": dpnb.Bounded(0, 50), **NOTE})
    session = opened({**FIRST, **COST})
    assert session._core.tables.added == (("", "cost"),)
    session.frame["cost"].mean().release(mu=0.1)
    with pytest.raises(LedgerError, match=r"column 'cost': the ledger has high=500\.0, the session has high=50\.0"):
        opened({**FIRST, "cost": dpnb.Bounded(0, 50)})
    assert audit(tmp_path / "clinic.dpnb").problems == ()


def test_a_kernel_goes_on_if_columns_are_added_before_it_uses_its_own(opened: Open) -> None:
    opened().frame.count().release(mu=0.1)
    one = opened({**FIRST, **COST})
    both = opened({**FIRST, **BORN, **COST})
    assert both._core.tables.added == (("", "cost"), ("", "born"))
    one.frame["cost"].mean().release(mu=0.1)
    other = opened({**FIRST, **BORN, **NOTE})  # drops none of them: cost was used
    assert added_to(other.ledger.metadata) == (("", "cost"), ("", "born"), ("", "note"))
    assert added_to(opened({**FIRST, **NOTE, **COST}).ledger.metadata) == (("", "cost"), ("", "born"), ("", "note"))


def test_a_column_that_the_table_lacks_is_not_recorded(opened: Open) -> None:
    opened().frame.count().release(mu=0.1)
    with pytest.raises(SchemaError, match="'cots': is not in the table"):
        opened({**FIRST, "cots": dpnb.Bounded(0, 500)})
    assert kinds(opened({**FIRST, **COST})) == ["release", "version"]


def test_a_crash_while_a_schema_is_extended_leaves_the_ledger_as_it_was(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened().frame.count().release(mu=0.1)
    before = (tmp_path / "clinic.dpnb").read_bytes()
    with monkeypatch.context() as patch:
        note = Ledger.note

        def crashes(*arguments: Any, **options: Any) -> None:
            note(*arguments, **options)
            raise KeyboardInterrupt

        patch.setattr(Ledger, "note", crashes)
        with pytest.raises(KeyboardInterrupt):
            opened({**FIRST, **COST})
    assert (tmp_path / "clinic.dpnb").read_bytes() == before
    assert kinds(opened({**FIRST, **COST})) == ["release", "version"]


# --- several kernels --------------------------------------------------------------------------------------------------


def test_another_kernel_goes_on_with_the_schema_it_has(opened: Open) -> None:
    older = opened()
    older.frame.count().release(mu=0.1)
    scan = older.above_threshold(3, name="line", epsilon="0.01")
    newer = opened({**FIRST, **COST})
    newer.frame.groupby("ward")["cost"].sum().release(mu=0.1)
    older.frame["age"].mean().release(mu=0.1)
    scan.ask(older.frame.count(), threshold=10**9)
    older.delegate(share="0.1", name="team").frame.count().release(mu=0.01)
    part = older.partition("ward", name="wards", max_parts_per_unit=1)["north"]
    part.frame.count().release(mu=0.01)
    assert older.spent == newer.spent
    assert "cost" in str(older.log)
    newer.partition("ward", name="wards", max_parts_per_unit=1)["north"].frame["cost"].sum().release(mu=0.01)
    assert len(older.report().releases) == len(newer.report().releases)


def test_a_kernel_whose_declaration_was_replaced_is_refused_uncharged(opened: Open) -> None:
    stale = opened()
    fresh = opened({**FIRST, "age": dpnb.Bounded(0, 80)})
    with pytest.raises(LedgerError, match=r"declaration was changed by another session.*create the session again"):
        stale.frame["age"].mean().release(mu=0.1)
    fresh.frame["age"].mean().release(mu=0.1)
    assert kinds(fresh) == ["version", "release"]
    with pytest.raises(LedgerError, match="create the session again"):
        stale.frame["age"].sum().release(mu=0.1)


def test_a_change_while_a_table_is_read_is_noticed(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    opened().frame.count().release(mu=0.1)
    read = PrivateTables.read
    with monkeypatch.context() as patch:

        def overtaken(self: PrivateTables, unread: Any) -> None:
            patch.setattr(PrivateTables, "read", read)
            opened({**FIRST, **NOTE}).frame.count().release(mu=0.2)
            read(self, unread)

        patch.setattr(PrivateTables, "read", overtaken)
        with pytest.raises(LedgerError, match=r"another session has used or changed.*create the session again"):
            opened({**FIRST, **COST})


# --- individual accounting --------------------------------------------------------------------------------------------


def paid(session: dpnb.Session, person: int) -> list[tuple[str, Any]]:
    core = session._core
    individuals = IndividualAccounting(core.tables, core.account, core.version, "skip")
    return [(one.participation, one.paid) for one in individuals.paid_by(person)]


def test_every_person_has_paid_the_same_after_a_column_was_added(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    options: dict[str, Any] = {"accounting": "individual", "max_rows_per_unit": 1}
    session = opened(**options)
    for age in (30, 50):
        session.frame[session.frame["age"] > age].groupby("ward").size().release(mu=0.2)
    before = [paid(session, person) for person in range(0, 60, 5)]
    assert [paid(opened({**FIRST, **COST}, **options), person) for person in range(0, 60, 5)] == before
    with monkeypatch.context() as patch:  # the control: the added column is hashed, so others have paid
        patch.setattr(PrivateTables, "follow", lambda self, declared: None)
        hashed = opened({**FIRST, **COST}, **options)
        assert [paid(hashed, person) for person in range(0, 60, 5)] != before


def test_under_individual_accounting_all_columns_are_needed(opened: Open) -> None:
    older = opened(accounting="individual")
    older.frame.count().release(mu=0.1)
    newer = opened({**FIRST, **COST}, accounting="individual")
    with pytest.raises(LedgerError, match=r"schema was extended by another session.*nothing was charged"):
        older.frame["age"].mean().release(mu=0.1)
    newer.frame["cost"].mean().release(mu=0.1)
    with pytest.raises(LedgerError, match="column 'cost': the session lacks it"):
        opened(accounting="individual")
    opened({**FIRST, **COST}, accounting="individual").frame["age"].mean().release(mu=0.1)


# --- several tables ---------------------------------------------------------------------------------------------------


def linked(opened: Open, visits: Schema, homes: Schema) -> dpnb.Session:
    unit = TABLE["person"]
    tables = {"visits": TABLE, "homes": TABLE.iloc[::-1].assign(person=unit.to_numpy(), size=TABLE["cost"] // 9)}
    return opened(
        {"visits": visits, "homes": homes}, table=tables, max_rows_per_unit={"visits": 2, "homes": 3}, name="linked"
    )


SIZE = {"size": dpnb.Bounded(0, 60)}


def pairs(session: dpnb.Session) -> Any:
    return session.table("visits").merge(session.table("homes"), on="person")


def test_joins_are_of_the_same_rows_after_columns_were_added(opened: Open) -> None:
    first = linked(opened, FIRST, SIZE)

    def asked(f: Any) -> list[Any]:
        return [f["age"].sum(), f.bound_contributions(max_rows_per_unit=1)["size"].sum()]

    found = [exact(first, query) for query in asked(pairs(first))]
    first.table("visits").count().release(mu=0.01)
    one = linked(opened, FIRST, {**SIZE, **NOTE})

    def noted(f: Any) -> Any:
        return f.bound_contributions(max_rows_per_unit=1).groupby("note", keys=["a"])

    assert [exact(one, query) for query in asked(pairs(one))] == found
    notes = exact(one, noted(pairs(one))["age"].sum())
    one.table("homes").count().release(mu=0.01)
    both = linked(opened, {**FIRST, **COST}, {**SIZE, **NOTE})  # of the first table, but later
    assert [exact(both, query) for query in asked(pairs(both))] == found
    assert exact(both, noted(pairs(both))["age"].sum()) == notes


def test_a_name_that_another_table_has_is_refused(opened: Open) -> None:
    """Columns of their joins would be renamed, so that recorded plans would be about others."""
    linked(opened, FIRST, SIZE).table("homes").count().release(mu=0.01)
    with pytest.raises(LedgerError, match="column 'age' cannot be added to table 'homes', since table 'visits' has a"):
        linked(opened, FIRST, {**SIZE, **AGE})
    with pytest.raises(LedgerError, match="column 'note' cannot be added"):
        linked(opened, {**FIRST, **NOTE}, {**SIZE, **NOTE})
    with pytest.raises(LedgerError, match=r"column 'age' of 'visits': the session lacks it"):
        linked(opened, WARD, SIZE)


RENAMED = pd.DataFrame({"person": np.arange(100), "x": np.zeros(100), "x_y": np.ones(100)})
X, MORE = {"x": dpnb.Bounded(0, 2)}, {"x_y": dpnb.Bounded(0, 2)}


def joined(path: Path, accounting: Any, own: Any = X) -> dpnb.Session:
    """Two tables with a column `x`, which their join calls `x_x` and `x_y`; each of 100 persons has a row in both."""
    return dpnb.Session(
        {"a": RENAMED, "b": RENAMED[["person", "x"]]},
        name="joined",
        ledger=path,
        budget=dpnb.Budget(epsilon=6, delta=1e-6),
        privacy_unit="person",
        max_rows_per_unit={"a": 1, "b": 1},
        schema={"a": own, "b": X},
        accounting=accounting,
        not_private_test_seed=4,
    )


@pytest.mark.parametrize("accounting", ["worst-case", "individual"])
def test_a_name_that_a_queried_join_has_is_refused(tmp_path: Path, accounting: str) -> None:
    """The join could not be made any more, so that neither its answers nor what was paid for them could be computed."""
    first = joined(tmp_path / "j.dpnb", accounting)
    query = first.table("a").merge(first.table("b"), on="person")["x_y"].sum()
    query.release(mu=0.05)
    with pytest.raises(LedgerError, match=r"cannot be added, since a join that was queried .* two columns 'x_y'"):
        joined(tmp_path / "j.dpnb", accounting, {**X, **MORE})
    again = joined(tmp_path / "j.dpnb", accounting)
    assert again.table("a").merge(again.table("b"), on="person")["x_y"].sum().answer is not None


def test_control_such_a_name_is_never_followed_by_an_overspent_unit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every person pays 0 for the join and mu 1 for a count, and has too little left for mu 0.75.

    With a join that cannot be made any more, a replay that charged its worst case would exclude all from the count, and
    answer the last query about them.
    """
    first = joined(tmp_path / "j.dpnb", "individual")
    first.table("a").merge(first.table("b"), on="person")["x_y"].sum().release(mu=0.9)
    assert first.table("a").count().release(mu=1).item() > 80
    assert abs(first.table("b").count().release(mu=0.75).item()) < 20
    monkeypatch.setattr(declaring, "_changed_join", lambda *_: None)
    second = joined(tmp_path / "j.dpnb", "individual", {**X, **MORE})
    with pytest.raises(DpnbError):
        second.table("b").count().release(mu=0.76)


# --- audit and statement ----------------------------------------------------------------------------------------------


def test_statements_from_before_and_after_are_verified(opened: Open, tmp_path: Path) -> None:
    path = str(tmp_path / "clinic.dpnb")
    opened().frame.count().release(mu=0.1)
    report_of(path).save(tmp_path / "before.json")
    session = opened({**FIRST, **COST})
    session.frame["cost"].mean().release(mu=0.1)
    session.report(answers=True).save(tmp_path / "after.html")
    for name, columns in (("before.json", 2), ("after.html", 3)):
        assert verify(str(tmp_path / name), path).differences == ()
        if name.endswith("json"):
            assert len(json.loads((tmp_path / name).read_text())["tables"][0]["columns"]) == columns
    assert len(report_of(path).tables[0].columns) == 3


def rewrite(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change the last row of kind ``version``, and compute the chain again."""
    with closing(sqlite3.connect(path)) as file:
        names = ", ".join(COLUMNS)
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in file.execute(f"SELECT {names} FROM events ORDER BY id")]
        (previous,) = file.execute("SELECT hash FROM events WHERE id = 1").fetchone()
        for row in rows[1:]:
            if row["kind"] == VERSION:
                details = json.loads(row["details"])
                change(details)
                row["details"] = json.dumps(details)
            row["hash"] = previous = chained_hash(previous, row)
            row["result_hash"] = result_hash(row["hash"], row["status"], row["answer_digest"])
            values = row["details"], row["hash"], row["result_hash"], row["id"]
            file.execute("UPDATE events SET details = ?, hash = ?, result_hash = ? WHERE id = ?", values)
        file.execute("UPDATE head SET hash = ?", (previous,))
        file.commit()


def test_the_audit_finds_a_row_that_changes_more(opened: Open, tmp_path: Path) -> None:
    path = tmp_path / "clinic.dpnb"
    opened().frame.count().release(mu=0.1)
    opened({**FIRST, **COST}).ledger.close()
    rewrite(path, lambda details: None)
    assert audit(path).problems == ()

    def wider(details: dict[str, Any]) -> None:
        details["metadata"]["schema"] = details["metadata"]["schema"].replace("100.0", "10.0")

    rewrite(path, wider)
    assert audit(path).problems == ("Row 2 changes the declaration that earlier answers are about.",)


COLUMN = st.one_of(
    st.floats(0.001, 1e90).map(lambda high: dpnb.Bounded(-high / 3, high)),
    st.lists(st.integers(-(2**53), 2**53) | st.text(characters, max_size=3), min_size=1, unique_by=str).map(
        dpnb.Categories
    ),
    st.just(dpnb.Text(max_length=7)),
    st.just(dpnb.Dates("1950-01-01", "2010-12-31", outside="drop")),
)


@given(st.dictionaries(st.text(characters, min_size=1, max_size=4), COLUMN, min_size=2, max_size=5), st.integers(0, 3))
def test_the_metadata_without_added_columns_are_the_first_ones(schema: dict[str, Any], kept: int) -> None:
    try:
        whole, names = PrivateTables.declared(schema, several=False, privacy_unit=None), sorted(schema)[:-1]
        first = PrivateTables.declared(
            {name: schema[name] for name in schema if name not in names}, several=False, privacy_unit=None
        )
    except SchemaError:
        return
    whole.added = tuple(("", name) for name in names)
    stored, before = (LedgerMetadata("x", tables, None, None).to_dict() for tables in (whole, first))
    assert before_added(stored) == before
    assert before_added(stored, kept).get("added", "[]") == json.dumps(
        [["", name] for name in names[:kept]], separators=(",", ":"), ensure_ascii=False
    )
    assert added_to(stored) == whole.added
    assert LedgerMetadata.from_dict(stored, "x").tables.added == whole.added


# --- other readers of a ledger ----------------------------------------------------------------------------------------


def test_an_older_dpnb_refuses_the_row(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    opened().frame.count().release(mu=0.1)
    opened({**FIRST, **COST}).ledger.close()
    monkeypatch.setattr("dpnb.ledger.charge.KINDS", ("release",))
    monkeypatch.setattr("dpnb.ledger.charge._unknown", lambda kind, *_: None if kind == "release" else "another kind")
    with pytest.raises(LedgerError, match="row 2 must be one that this version of dpnb understands"):
        opened({**FIRST, **COST})


def test_a_text_file_of_a_new_version_is_not_taken_for_a_used_one(tmp_path: Path) -> None:
    """The row of an extended schema is no use of a version."""
    TABLE.to_csv(tmp_path / "clinic.csv", index=False)
    lines = ['name = "clinic"', "[budget]", "epsilon = 1.0", "delta = 1e-6", "[schema]"]
    lines = ['privacy_unit = "person"', "max_rows_per_unit = 2", *lines]
    lines += ['age = { type = "bounded", low = 0, high = 100 }']

    def run(version: str, *more: str) -> dpnb.Session:
        declared = [f'version = "{version}"', *lines, *more]
        (tmp_path / "clinic.toml").write_text("\n".join(declared), encoding="utf-8")
        from dpnb._sources.formats import read_tables
        from dpnb._sources.source import DataSource

        table = read_tables({"": DataSource(str(tmp_path / "clinic.csv"))}, "table")[""]
        return dpnb.Session.from_toml(tmp_path / "clinic.toml", table)

    run("1").frame.count().release(mu=0.1)
    run("2", 'cost = { type = "bounded", low = 0, high = 500 }').frame["cost"].mean().release(mu=0.1)
    with pytest.raises(InvalidValueError, match="version"):
        dpnb.Session.from_toml(tmp_path / "clinic.toml", TABLE)
