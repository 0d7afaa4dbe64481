"""A file that is no ledger, or one of another promise, is refused and left alone."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb.accounting.losses import GDP
from dpnb.errors import LedgerError
from session.bad_input import SCHEMA, assert_refused, make, make_table

LEDGERS: dict[str, dict[str, Any]] = {
    "another epsilon": {"budget": dpnb.Budget(epsilon=2, delta=1e-6, discovery_delta=1e-7)},
    "another delta": {"budget": dpnb.Budget(epsilon=1, delta=2e-6, discovery_delta=1e-7)},
    "another discovery_delta": {"budget": dpnb.Budget(epsilon=1, delta=1e-6, discovery_delta=2e-7)},
    "no discovery_delta": {"budget": dpnb.Budget(epsilon=1, delta=1e-6)},
    "another kind of budget": {"budget": dpnb.Budget.gdp(0.2)},
    "another bound": {"schema": {**SCHEMA, "visits": dpnb.Bounded(0, 11)}},
    "another category": {"schema": {**SCHEMA, "grade": dpnb.Categories([1, 2])}},
    "other dates": {"schema": {**SCHEMA, "born": dpnb.Dates("1950-01-01", "2001-12-31")}},
    "texts for categories": {"schema": {**SCHEMA, "town": dpnb.Text()}},
    "a column less": {"schema": {"visits": dpnb.Bounded(0, 10)}},
    "more rows of a unit": {"max_rows_per_unit": 3},
    "a limit of groups": {"max_groups_per_unit": 1},
    "a limit of rows in a group": {"max_rows_per_group": 1},
    "a limit of the norm": {"max_norm_per_unit": 1.5},
    "another unit": {"privacy_unit": None, "max_rows_per_unit": None},
    "another name": {"name": "hospital"},
    "another filter": {"filter": "zcdp"},
    "several tables": {"schema": {"clinic": SCHEMA}},
    "test noise": {"not_private_test_seed": 1},
}


@pytest.mark.parametrize("changes", LEDGERS.values(), ids=LEDGERS)
def test_a_ledger_made_for_another_promise_is_refused(changes: dict[str, Any], tmp_path: Path) -> None:
    ledger = tmp_path / "clinic.dpnb"
    first = make(ledger=ledger)
    first.frame.count().release(mu=0.1)
    if "clinic" in changes.get("schema", {}):
        changes = {**changes, "table": {"clinic": make_table()}}
    assert_refused(lambda: make(ledger=ledger, **changes))
    with pytest.raises(LedgerError):
        make(ledger=ledger, **changes)
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
    assert_refused(lambda: make(ledger=path))
    with pytest.raises(LedgerError):
        make(ledger=path)
    assert (path.read_bytes() if path.is_file() else None) == before


def test_a_ledger_in_a_folder_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    ledger = tmp_path / "no" / "such" / "folder.dpnb"
    assert_refused(lambda: make(ledger=ledger))
    assert not ledger.parent.exists()
