"""Columns and row limits change with a new version of the table; nothing combines what two versions have answered."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._core.accountant.tree import BudgetTree
from dpnb._core.history.words import AnswerReader
from dpnb._core.unit_budgets import IndividualAccounting
from dpnb.accounting.losses import GDP
from dpnb.curator.audit import audit
from dpnb.curator.verification import verify
from dpnb.errors import BudgetExceeded, DpnbError, LedgerError, MechanismClosed
from dpnb.ledger import Ledger
from dpnb.ledger.charge import COLUMNS, VERSION, chained_hash, result_hash
from dpnb.ledger.declaring_ledger import DeclaringLedger
from dpnb.ledger.queries import LedgerQueries
from dpnb.session.disclosure.building import report_of
from dpnb.session.snapshot import snapshot

RNG = np.random.default_rng(51)
ROWS = 120
TABLE = pd.DataFrame({
    "person": np.arange(ROWS) // 3,
    "age": RNG.choice([20.0, 40.0, 60.0], ROWS),
    "ward": RNG.choice(["north", "south"], ROWS),
    "seen": pd.to_datetime("2025-01-01") + pd.to_timedelta(RNG.integers(0, 365, ROWS), unit="D"),
})  # fmt: skip
OLD = {
    "age": dpnb.Bounded(0, 100),
    "ward": dpnb.Categories(["north", "south"]),
    "seen": dpnb.Dates("2025-01-01", "2025-12-31"),
}
NEW = {
    "age": dpnb.Bounded(0, 120),
    "ward": dpnb.Categories(["north", "south", "west"]),
    "seen": dpnb.Dates("2025-01-01", "2026-12-31"),
}

Open = Callable[..., dpnb.Session]


@pytest.fixture
def opened(tmp_path: Path) -> Open:
    def opened(schema: Any = OLD, **changes: Any) -> dpnb.Session:
        arguments: dict[str, Any] = {
            "table": TABLE,
            "name": "clinic",
            "budget": dpnb.Budget.gdp(4),
            "privacy_unit": "person",
            "max_rows_per_unit": 2,
            "ledger": tmp_path / "clinic.dpnb",
            "version": "2025",
            "not_private_test_seed": 5,
        }
        return dpnb.Session(schema=schema, **{**arguments, **changes})

    return opened


def kinds(session: dpnb.Session) -> list[str]:
    return [row.kind for row in session.ledger.charges()]


# --- what may change, and what stays ----------------------------------------------------------------------------------


CHANGES: dict[str, dict[str, Any]] = {
    "bounds, categories and dates": {"schema": NEW},
    "a removed column": {"schema": {"age": OLD["age"]}},
    "a type": {"schema": {**OLD, "ward": dpnb.Text()}},
    "a whole number": {"schema": {**OLD, "age": dpnb.Bounded(0, 100, integer=True)}},
    "what is outside": {"schema": {**OLD, "age": dpnb.Bounded(0, 100, outside="drop")}},
    "rows": {"max_rows_per_unit": 3},
    "other limits": {"max_rows_per_unit": None, "max_norm_per_unit": 1.5},
    "tables": {"schema": {"visits": OLD}, "table": {"visits": TABLE}, "max_rows_per_unit": {"visits": 2}},
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_change_comes_with_a_new_version_and_is_refused_under_the_old_one(
    what: str, opened: Open, tmp_path: Path
) -> None:
    first = opened()
    first.frame.count().release(mu="0.1")
    before = (tmp_path / "clinic.dpnb").read_bytes()
    with pytest.raises(LedgerError, match=r"version '2025' of its table was used.*give a new version=") as refused:
        opened(**CHANGES[what])
    assert len(str(refused.value)) < 500
    assert (tmp_path / "clinic.dpnb").read_bytes() == before
    later = opened(**CHANGES[what], version="2026")
    assert kinds(later) == ["release", VERSION]
    assert later.spent == GDP("0.1")
    (later.table("visits") if what == "tables" else later.frame).count().release(mu="0.1")
    assert later.spent == GDP.from_mu_squared("0.02")
    assert later.ledger.charges()[-1].observations == (3,)
    assert kinds(opened(**CHANGES[what], version="2026")) == ["release", VERSION, "release"]
    if what != "a removed column":  # which can be added
        with pytest.raises(LedgerError, match=r"version '2026' of its table was used with another declaration"):
            opened(version="2026")
    assert audit(tmp_path / "clinic.dpnb").problems == ()


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"privacy_unit": None, "max_rows_per_unit": None}, "privacy_unit"),
        ({"unit_type": "integer"}, "privacy_unit"),
        ({"table": {"a": TABLE.assign(p=1)}, "schema": {"a": OLD}, "privacy_unit": "p"}, "privacy_unit"),
        ({"budget": dpnb.Budget(epsilon=5, delta=1e-6)}, "budget"),
        ({"filter": "zcdp", "budget": dpnb.Budget(epsilon=4, delta=1e-6)}, "budget"),
        ({"accounting": "individual"}, "on_exhausted"),
        ({"not_private_test_seed": None}, "noise"),
        ({"name": "another"}, "session_name"),
    ],
)
def test_unit_filter_and_budget_stay_with_every_version(
    changes: dict[str, Any], name: str, opened: Open, tmp_path: Path
) -> None:
    opened().frame.count().release(mu="0.1")
    before = (tmp_path / "clinic.dpnb").read_bytes()
    with pytest.raises(LedgerError, match=f"was created for another {name}.*this stays"):
        opened(**{"schema": NEW, "version": "2026", **changes})
    assert (tmp_path / "clinic.dpnb").read_bytes() == before


def test_limits_of_linked_tables_change_and_a_table_can_be_added(opened: Open, tmp_path: Path) -> None:
    def linked(version: str, *tables: str, **limits: int) -> dpnb.Session:
        given: dict[str, Any] = {"table": dict.fromkeys(tables, TABLE), "schema": dict.fromkeys(tables, OLD)}
        return opened(**given, max_rows_per_unit=limits, version=version)

    first = linked("1", "a", "b", a=1, b=1)
    pairs = first.table("a").merge(first.table("b"), on="person")
    pairs["age_x"].sum().release(mu="0.1")
    with pytest.raises(LedgerError, match=r"max_rows_per_unit of 'b': the ledger has 1, the session has 2"):
        linked("1", "a", "b", a=1, b=2)
    later = linked("2", "a", "b", a=1, b=2)
    more = later.table("a").merge(later.table("b"), on="person")["age_x"].sum().release(mu="0.1")
    sigmas = [charge.sigma for charge in later.ledger.charges() if charge.sigma is not None]
    assert sigmas[1] > sigmas[0]  # two pairs of rows of a person instead of one
    assert more.n_observations == 1
    linked("3", "a", "b", "c", a=1, b=1, c=2).table("c").count().release(mu="0.1")
    assert audit(tmp_path / "clinic.dpnb").problems == ()


def test_the_unused_declaration_of_a_new_version_may_still_change(opened: Open, tmp_path: Path) -> None:
    """Also after a crash between its row and the first charge."""
    opened().frame.count().release(mu="0.1")
    opened(NEW, version="2026")
    opened({**NEW, "age": dpnb.Bounded(0, 110)}, version="2026")
    opened().frame["age"].mean().release(mu="0.1")  # the old version goes on
    session = opened(NEW, version="2026")
    assert kinds(session) == ["release", VERSION, VERSION, VERSION, "release", VERSION]
    session.frame.count().release(mu="0.1")
    with pytest.raises(LedgerError, match=r"high=110\.0"):
        opened({**NEW, "age": dpnb.Bounded(0, 110)}, version="2026")
    assert audit(tmp_path / "clinic.dpnb").problems == ()


def test_a_session_that_is_refused_declares_nothing(opened: Open) -> None:
    session = opened()
    session.frame.count().release(mu="0.1")
    with pytest.raises(LedgerError, match="sampled: the ledger was created with sampled='population'"):
        opened(NEW, version="2026", sampled=0.5)
    assert kinds(session) == ["release"]
    session.frame["age"].mean().release(mu="0.1")  # is not ended by it


def test_a_crash_while_a_version_is_declared_leaves_the_ledger_as_it_was(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened().frame.count().release(mu="0.1")
    before = (tmp_path / "clinic.dpnb").read_bytes()
    with monkeypatch.context() as patch:
        note = Ledger.note

        def crashes(*arguments: Any, **options: Any) -> None:
            note(*arguments, **options)
            raise KeyboardInterrupt

        patch.setattr(Ledger, "note", crashes)
        with pytest.raises(KeyboardInterrupt):
            opened(NEW, version="2026")
    assert (tmp_path / "clinic.dpnb").read_bytes() == before
    opened().frame["age"].mean().release(mu="0.1")


def test_columns_of_the_same_version_are_added_beside_other_versions(opened: Open) -> None:
    """They order only rows that are equal otherwise, as before; in a version that declares them first, they order."""
    first = opened({"age": OLD["age"]})
    first.frame.count().release(mu="0.1")

    def exact(session: dpnb.Session) -> list[int]:
        tables = session._core.tables
        return [int(one) for one in tables.opened.sums(tables.compile(session.frame["age"].sum().plan))]

    found = exact(first)
    opened(NEW, version="2026").frame.count().release(mu="0.1")
    again = opened({"age": OLD["age"], "ward": OLD["ward"]})
    assert again._core.tables.added == (("", "ward"),)
    assert exact(again) == found
    assert opened(NEW, version="2026")._core.tables.added == ()


# --- nothing combines answers of two versions -------------------------------------------------------------------------


def asked(session: dpnb.Session) -> dict[str, Any]:
    """What reads earlier answers: the identical request, a refinement, a count for `within`, a batch, all of these."""
    frame = session.frame
    frame.count().release(mu="1")
    mean = frame["age"].mean().release(mu="0.5")
    return {
        "recorded": float(mean),
        "refined": mean.refine(mu="0.6").n_observations,
        "within": frame["age"].mean().release(within=10).n_observations,
        "batch": session.plan([frame.groupby("ward").size(), frame.count()]).release(mu="0.2")[1].n_observations,
        "best": frame["age"].mean().best.n_observations,
    }


def combined_with_earlier(session: dpnb.Session, version: str) -> list[int]:
    """The rows of a version that combine rows of another one."""
    rows = session.ledger.charges()
    of = {row.id: row.table_version for row in rows}
    return [row.id for row in rows if any(of[one] != version for one in row.observations) and of[row.id] == version]


def test_no_answer_of_a_new_version_uses_one_of_the_old(opened: Open, tmp_path: Path) -> None:
    first = asked(opened())
    later = opened(NEW, version="2026")
    assert later.frame["age"].mean().best is None
    assert later.frame.groupby("ward").size().best is None
    with pytest.raises(DpnbError, match="release the count"):  # the count is of the old version
        later.frame["age"].mean().release(within=5)
    spent = later.spent
    second = asked(later)
    assert combined_with_earlier(later, "2026") == []
    assert second["recorded"] != first["recorded"]
    assert {**second, "recorded": 0} == {**first, "recorded": 0}  # as many observations: it starts again
    assert later.spent.mu_squared == 2 * spent.mu_squared
    assert audit(tmp_path / "clinic.dpnb").problems == ()


def test_control_observations_of_all_versions_would_be_combined(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The control: with a ledger that looks at no version, the answers of two schemas are combined, which is found."""
    asked(opened())
    for name in ("observations", "count_observations"):
        real = getattr(LedgerQueries, name)
        monkeypatch.setattr(LedgerQueries, name, lambda self, version, *rest, real=real: real(self, "2025", *rest))
    later = opened(NEW, version="2026")
    later.frame["age"].mean().release(mu="1.5")
    monkeypatch.undo()
    assert combined_with_earlier(later, "2026") == [later.ledger.count]
    assert (
        f"Row {later.ledger.count} combines answers of several versions of the table."
        in audit(tmp_path / "clinic.dpnb").problems
    )


def test_control_a_recorded_answer_of_the_old_version_would_be_replayed(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened().frame["age"].mean().release(mu="0.5")
    real = LedgerQueries.by_key
    monkeypatch.setattr(LedgerQueries, "by_key", lambda self, node, _, key: real(self, node, "2025", key))
    later = opened(NEW, version="2026").frame["age"].mean().release(mu="0.5")  # and read with other bounds
    assert float(later) == pytest.approx(1.2 * float(first))


def test_the_old_version_is_read_and_goes_on_with_its_own_columns(opened: Open) -> None:
    first = opened()
    answer = first.frame["age"].mean().release(mu="0.1")
    opened(NEW, version="2026").frame["age"].mean().release(mu="0.1")
    spent = first.spent
    assert float(first.frame["age"].mean().release(mu="0.1")) == float(answer)  # also in the old kernel, and free
    with pytest.raises(LedgerError, match=r"declaration was changed by another session.*nothing was charged"):
        answer.refine(mu="0.2")
    again = opened()
    assert float(again.frame["age"].mean().release(mu="0.1")) == float(answer)
    assert again.spent == spent
    again.frame["age"].mean().release(mu="0.2")
    assert again.ledger.charges()[-1].observations == (1, again.ledger.count)
    with pytest.raises(LedgerError, match="version '2025' of its table was used with another declaration"):
        opened(NEW)


def test_a_row_is_read_with_the_columns_of_its_version(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch stores no words: with other columns its values would be read as those of other groups, or not at all."""
    first = opened()
    batch = first.plan([first.frame.groupby("ward")["age"].sum(), first.frame["age"].sum()])
    batch.release(mu="0.1")
    said = first.log["estimate"].tolist()
    later = opened(NEW, version="2026")
    later.frame["age"].mean().release(mu="0.1")
    assert later.log["estimate"].tolist()[: len(said)] == said
    assert first.log["estimate"].tolist()[: len(said)] == said  # of the old kernel, which sees the row of the new one
    assert len(first.log) == len(later.log) == len(said) + 1
    assert snapshot(later)
    monkeypatch.setattr(AnswerReader, "tables_of", lambda self, charge: self._tables)  # the control
    third = opened(NEW, version="2026")
    with pytest.raises(Exception, match=r"reshape|differ|estimate"):
        assert third.log["estimate"].tolist()[: len(said)] == said, "other estimates"


# --- interactive mechanisms -------------------------------------------------------------------------------------------


def launched(session: dpnb.Session) -> dict[str, Callable[[], Any]]:
    """A question to an open mechanism of each kind."""
    scan = session.above_threshold(1e6, name="scan", epsilon="0.01", max_positives=2)
    part = session.partition("ward", name="wards", max_parts_per_unit=2)["north"]
    sub = session.delegate(mu="0.2", name="team")
    steps = session.noise_reduction(session.frame["age"].sum(), name="steps", initial_mu="0.02", max_mu="0.1")
    fit = session.frame.fit(
        "age", on=["ward"], family="linear", mu="0.02", steps=3, clip_norm=1.0, name="fit", public_size=40
    )
    numbers = iter(range(100))
    return {
        "scan": lambda: scan.ask(session.frame[session.frame["age"] > next(numbers)].count()),
        "partition": lambda: part.frame[part.frame["age"] > next(numbers)].count().release(mu="0.01"),
        "sub-session": lambda: sub.frame[sub.frame["age"] > next(numbers)].count().release(mu="0.01"),
        "noise reduction": steps.step,
        "descent": fit.step,
    }


def test_open_mechanisms_of_the_old_version_end_and_go_on_with_it(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = opened()
    questions = launched(first)
    for ask in questions.values():
        ask()
    later = opened(NEW, version="2026")
    spent = later.spent
    for kind, ask in questions.items():  # in the old kernel
        with pytest.raises(MechanismClosed, match="was launched for version '2025' of the table"):
            ask()
        assert later.spent == spent, kind
    assert {one.state for one in later.mechanisms.values()} == {"unavailable"}
    with pytest.raises(MechanismClosed, match="and this is version '2026'"):
        later.mechanisms["team"].frame.count().release(mu="0.01")
    count = later.ledger.count
    with monkeypatch.context() as patch:  # the control: nobody notes what is declared
        patch.setattr(BudgetTree, "_note_declared", lambda self, ids: None)
        control = opened(NEW, version="2026")
        control.mechanisms["team"].frame.count().release(mu="0.01")
    assert later.ledger.count == count + 1
    again = later.delegate(mu="0.2", name="team")  # a new one under the same name is paid for
    assert later.spent.mu_squared == spent.mu_squared + Fraction("0.04")
    again.frame.count().release(mu="0.02")


def test_the_old_version_finds_its_mechanisms_again(opened: Open) -> None:
    questions = launched(opened())
    opened(NEW, version="2026").frame.count().release(mu="0.1")
    back = opened()
    assert {name: one.state for name, one in back.mechanisms.items()} == dict.fromkeys(back.mechanisms, "open")
    back.mechanisms["team"].frame.count().release(mu="0.01")
    assert not questions["scan"]().above  # its hidden noise is in this process


def test_reading_an_old_version_changes_nothing_and_its_first_charge_declares_it(
    opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = opened().frame["age"].mean().release(mu="0.1")
    later = opened(NEW, version="2026")
    later.frame.count().release(mu="0.1")
    back = opened()
    assert float(back.frame["age"].mean().release(mu="0.1")) == float(answer)
    assert len(back.log) == 2
    assert snapshot(back)
    assert kinds(back) == ["release", VERSION, "release"]
    later.frame["age"].mean().release(mu="0.1")  # nobody was ended by that
    with monkeypatch.context() as patch:
        note = Ledger.note

        def crashes(*arguments: Any, **options: Any) -> None:
            note(*arguments, **options)
            raise KeyboardInterrupt

        patch.setattr(Ledger, "note", crashes)
        with pytest.raises(KeyboardInterrupt):
            back.frame.count().release(mu="0.1")
    assert kinds(back) == ["release", VERSION, "release", "release"]
    back.plan([back.frame.groupby("ward").size(), back.frame.count()]).release(mu="0.1")
    assert kinds(back) == ["release", VERSION, "release", "release", VERSION, "release", "release"]
    back.frame["age"].sum().release(mu="0.1")
    assert kinds(back)[-2:] == ["release", "release"]
    with pytest.raises(LedgerError, match="declaration was changed by another session"):
        later.frame["age"].sum().release(mu="0.1")
    again = opened(NEW, version="2026")
    again.frame["age"].sum().release(mu="0.1")
    with pytest.raises(LedgerError, match="declaration was changed by another session"):
        back.frame.count().release(mu="0.2")
    assert audit(tmp_path / "clinic.dpnb").problems == ()


def _returns_alone(ledger: DeclaringLedger) -> None:
    """The control: declares what the session was opened with, whatever others have added since."""
    ledger._has_returned = True
    ledger._note_declared(ledger.opened)


@pytest.mark.parametrize("is_broken", [False, True])
def test_two_sessions_that_return_to_a_version_keep_the_columns_that_one_adds(
    is_broken: bool, opened: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"age": OLD["age"]}
    opened(small).frame.count().release(mu="0.1")
    opened(NEW, version="2026").frame.count().release(mu="0.1")
    first, second = opened(small), opened(OLD)
    if is_broken:
        monkeypatch.setattr(DeclaringLedger, "_return", _returns_alone)
    second.frame.groupby("ward").size().release(mu="0.1")
    first.frame["age"].sum().release(mu="0.1")  # was opened before that
    assert bool(audit(tmp_path / "clinic.dpnb").problems) == is_broken
    if not is_broken:
        second.frame.groupby("ward")["age"].mean().release(mu="0.1")  # is not ended by it


def test_under_individual_accounting_a_session_does_not_return_without_added_columns(opened: Open) -> None:
    """What each unit has paid is computed from all requests, also those that use these columns."""
    small, each = {"age": OLD["age"]}, {"accounting": "individual", "on_exhausted": "skip"}
    opened(small, **each).frame.count().release(mu="0.1")
    opened(NEW, version="2026", **each).frame.count().release(mu="0.1")
    first, second = opened(small, **each), opened(OLD, **each)
    second.frame.groupby("ward").size().release(mu="0.1")
    with pytest.raises(LedgerError, match=r"schema was extended by another session.*nothing was charged"):
        first.frame["age"].sum().release(mu="0.1")
    assert kinds(first)[-1] == "release"
    assert len(first.ledger.charges()) == 5


def test_a_version_with_the_same_columns_goes_on_with_its_sub_sessions(opened: Open) -> None:
    opened().delegate(mu="0.2", name="team").frame.count().release(mu="0.1")
    later = opened({**OLD}, version="2026")
    assert later.delegate(mu="0.2", name="team").spent == GDP("0.1")
    assert kinds(later) == ["launch", "release"]


def test_a_share_of_a_new_sub_session_is_of_what_is_left_now(opened: Open) -> None:
    old = opened().delegate(share="0.5", name="team")
    new = opened(NEW, version="2026").delegate(share="0.5", name="team")
    assert new.budget.loss.mu_squared < old.budget.loss.mu_squared


# --- attacks ----------------------------------------------------------------------------------------------------------


def test_two_versions_do_not_add_up_to_an_exact_answer(opened: Open) -> None:
    """The same request has new noise in each version, and each is charged; so there is no difference without noise."""
    charged, answers = Fraction(0), []
    for number in range(4):
        schema = {**OLD, "age": dpnb.Bounded(0, 100 + number)}
        session = opened(schema, version=str(number), not_private_test_seed=None)
        answers.append(float(session.frame["age"].sum().release(mu="0.2")))
        charged += Fraction("0.04")
        assert session.spent.mu_squared == charged
    assert len(set(answers)) == 4


def test_no_version_resets_a_budget(opened: Open) -> None:
    first = opened()
    first.frame.count().release(share=1)
    later = opened(NEW, version="2026")
    assert later.headroom == 0
    for schema, version in ((NEW, "2026"), (OLD, "2027"), (NEW, "2025 ")):
        with pytest.raises(BudgetExceeded):
            opened(schema, version=version).frame.count().release(mu="0.001")


def test_a_narrower_column_is_no_way_to_a_cheaper_answer_of_the_old_one(opened: Open) -> None:
    """The noise follows from the columns of the version in which it is drawn."""
    first = opened()
    first.frame["age"].sum().release(mu="0.1")
    later = opened({**OLD, "age": dpnb.Bounded(0, 1)}, version="2026")
    narrow = later.frame["age"].sum().release(mu="0.1")
    assert abs(float(narrow)) < 200  # of the values within 0 and 1, whose sum is at most 80
    rows = [row for row in later.ledger.charges() if row.sigma is not None]
    assert rows[0].loss == rows[1].loss
    assert opened().frame["age"].sum().best.n_observations == 1


def forge(path: Path, change: Callable[[dict[str, Any]], None]) -> None:
    """Change rows, and compute the chain again."""
    with closing(sqlite3.connect(path)) as file:
        names = ", ".join(COLUMNS)
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in file.execute(f"SELECT {names} FROM events ORDER BY id")]
        previous = Ledger.read_only_copy(path)._followed
        with closing(Ledger.read_only_copy(path)) as ledger:
            from dpnb.ledger.chain import chain_start

            previous = chain_start(str(path), *ledger.created).hash
        for row in rows:
            change(row)
            row["hash"] = previous = chained_hash(previous, row)
            row["result_hash"] = result_hash(row["hash"], row["status"], row["answer_digest"])
            file.execute("DELETE FROM events WHERE id = ?", (row["id"],))
            marks = ", ".join("?" * len(COLUMNS))
            file.execute(f"INSERT INTO events ({names}) VALUES ({marks})", [row[name] for name in COLUMNS])
        file.execute("UPDATE head SET hash = ?", (previous,))
        file.commit()


@pytest.mark.parametrize("what", ["budget", "used version", "request", "unit"])
def test_the_audit_finds_a_version_that_changes_more(what: str, opened: Open, tmp_path: Path) -> None:
    opened().frame.count().release(mu="0.1")
    later = opened(NEW, version="2026")
    later.frame.count().release(mu="0.1")
    later.ledger.close()
    path = tmp_path / "clinic.dpnb"

    def change(row: dict[str, Any]) -> None:
        if row["kind"] != VERSION and not (what == "request" and row["id"] == 3):
            return
        if what in ("used version", "request"):
            row["table_version"] = "2025"
            row["request_key"] += "0"
            return
        details = json.loads(row["details"])
        if what == "budget":
            details["metadata"]["budget"] = json.dumps(dpnb.Budget.gdp(9).to_json())
        else:
            details["metadata"]["privacy_unit"] = details["metadata"]["privacy_unit"].replace("person", "ward")
        row["details"] = json.dumps(details)

    forge(path, lambda row: None)
    assert audit(path).problems == ()
    forge(path, change)
    assert any("changes the declaration that earlier answers are about" in one for one in audit(path).problems)


# --- individual accounting --------------------------------------------------------------------------------------------


def test_every_unit_is_charged_the_worst_case_of_earlier_versions(opened: Open) -> None:
    options: dict[str, Any] = {"accounting": "individual"}
    first = opened(**options)
    first.frame[first.frame["age"] > 50].count().release(mu="0.3")
    later = opened(NEW, version="2026", **options)
    later.frame[later.frame["age"] > 50].count().release(mu="0.1")

    def paid(session: dpnb.Session) -> list[tuple[set[str], set[Fraction]]]:
        core = session._core
        own = IndividualAccounting(core.tables, core.account, core.version, "skip")
        by_unit = [own.paid_by(unit) for unit in range(0, 40, 4)]
        rows = [*zip(*by_unit, strict=True)]
        return [({one.participation for one in row}, {one.paid for one in row}) for row in rows]

    (_, old), (ways, new) = paid(later)[0], paid(later)[-1]
    assert paid(later)[0][0] == {"worst case"}
    assert min(old) >= Fraction("0.09")
    assert ways == {"in full", "not affected"}
    assert max(new) <= Fraction("0.0101")
    back = opened(**options)
    assert paid(back)[0][0] == {"in full", "not affected"}
    assert paid(back)[-1][0] == {"worst case"}


# --- the statement ----------------------------------------------------------------------------------------------------


def test_the_statement_lists_every_version_with_its_columns_and_dates(opened: Open, tmp_path: Path) -> None:
    path = str(tmp_path / "clinic.dpnb")
    opened().frame["age"].mean().release(mu="0.1")
    report_of(path).save(tmp_path / "before.json")
    later = opened(NEW, version="2026", max_rows_per_unit=3)
    later.frame["age"].mean().release(mu="0.1")
    report = later.report(answers=True)
    old, new = report.versions
    assert (old.version, old.requests, new.version, new.requests) == ("2025", 1, "2026", 1)
    assert old.first == report.releases[0].time
    assert new.tables is None
    assert old.tables is not None
    assert [one.values for one in old.tables[0].columns] == ["0 to 100", "2025-01-01 to 2025-12-31", "'north', 'south'"]
    assert (old.tables[0].max_rows, report.tables[0].max_rows) == (2, 3)
    text = " ".join(paragraph for section in report.sections for paragraph in section.paragraphs)
    assert "Version 2025 had other columns or row limits" in text
    page = report.to_html()
    assert "Columns of the table, version 2025" in page
    report.save(tmp_path / "after.html")
    opened().frame.count().release(mu="0.1")
    for name in ("before.json", "after.html"):
        assert verify(str(tmp_path / name), path).differences == ()
    text = (tmp_path / "before.json").read_text().replace('"0 to 100"', '"0 to 10"')
    (tmp_path / "altered.json").write_text(text)
    assert verify(str(tmp_path / "altered.json"), path).differences


def test_categories_that_python_compares_as_equal_are_other_columns(opened: Open) -> None:
    flags: dict[str, Any] = {"table": TABLE.assign(flag=RNG.integers(0, 2, ROWS))}
    opened({"flag": dpnb.Categories([1, 0])}, **flags).frame.count().release(mu="0.1")
    with pytest.raises(LedgerError, match=r"used with another declaration.*lacks 1, 0, the ledger lacks True, False"):
        opened({"flag": dpnb.Categories([True, False])}, **flags)
