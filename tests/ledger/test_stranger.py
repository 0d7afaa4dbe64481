"""A ledger that somebody else made, with care: nothing in it runs, and nothing in it moves a cursor."""

from __future__ import annotations

import signal
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from dpnb import __main__ as command_line
from dpnb.accounting.losses import GDP
from dpnb.errors import DpnbError, LedgerError, UnsupportedError
from dpnb.ledger import Ledger, connection, sqlite_file
from dpnb.ledger.connection import StepLimit, harden
from ledger.rows import METADATA, filled, opened, refused_unchanged

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT x AS name, x AS value FROM n"
ESCAPE = "\x1b[2J\x1b[1;1H"


def change(path: Path, *statements: str) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        for statement in statements:
            file.execute(statement)


CHANGES: dict[str, tuple[str, ...]] = {
    "a view in a table's place": ("DROP TABLE metadata", f"CREATE VIEW metadata AS {ENDLESS}"),
    "a view": ("CREATE VIEW more AS SELECT 1",),
    "a trigger": ("CREATE TRIGGER more AFTER INSERT ON events BEGIN DELETE FROM events WHERE id = new.id; END",),
    "a table": ("CREATE TABLE more (id INTEGER)",),
    "an index": ("CREATE INDEX more ON events (time)",),
    "an index less": ("DROP INDEX events_by_query",),
    "an index of some rows": (
        "DROP INDEX events_by_query",
        "CREATE INDEX events_by_query ON events (table_version, node, query_key) WHERE id > 9",
    ),
    "a column": ("ALTER TABLE head ADD COLUMN more TEXT",),
    "a computed column": ("ALTER TABLE head ADD COLUMN more AS (upper(hash))",),
    "a virtual table": ("CREATE VIRTUAL TABLE more USING fts5(text)",),
    "statistics": ("ANALYZE",),
}


@pytest.mark.parametrize("statements", CHANGES.values(), ids=CHANGES)
def test_a_ledger_with_anything_but_our_tables_is_refused_before_it_is_read(
    path: Path, statements: tuple[str, ...]
) -> None:
    filled(path)
    change(path, *statements)
    for act in (lambda: Ledger(path, METADATA), lambda: Ledger.read_only_copy(path)):
        with refused_unchanged(path.parent, "exactly the tables and indices that dpnb creates"):
            act()


def test_a_trigger_would_undo_charges_if_it_were_not_looked_for(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(path).__exit__()
    change(path, *CHANGES["a trigger"])
    monkeypatch.setattr(sqlite_file.SqliteFile, "_check_format", lambda self: None)
    with opened(path) as ledger, ledger.transaction():
        ledger.reserve(request_key="a", table_version="1", query_key="q", loss=GDP(1))
        assert ledger.by_key("", "1", "a") is None


# --- an end ---------------------------------------------------------------------------------------------------------


def endless(path: Path) -> DurableConnection:
    filled(path)
    return DurableConnection(path)


class DurableConnection(sqlite_file.SqliteFile):
    """A file that is looked at without looking at its tables first."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "", 0)

    def _check_format(self) -> None:
        """Nothing is looked for."""


def test_a_statement_without_end_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LEAST_STEPS", 10**6)
    with pytest.raises(LedgerError, match="more work than any ledger of its size needs"):
        endless(path).run(f"SELECT count(*) FROM ({ENDLESS})")


def test_a_ledger_in_memory_has_no_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LEAST_STEPS", 10**5)
    numbers = ENDLESS.replace("x + 1 FROM n", "x + 1 FROM n WHERE x < 100000")
    with opened(":memory:") as ledger:
        assert ledger._file.run(f"SELECT count(*) FROM ({numbers})") == [(100_000,)]


def test_an_interrupt_ends_a_statement(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LEAST_STEPS", 10**15)
    file, count = endless(path), StepLimit.__call__

    def interrupted(effort: StepLimit) -> bool:
        """Wherever SQLite is when the signal comes, Python handles it here, in the main thread."""
        signal.raise_signal(signal.SIGINT)
        return count(effort)

    monkeypatch.setattr(StepLimit, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        file.run(f"SELECT count(*) FROM ({ENDLESS})")
    monkeypatch.undo()
    assert file.run("SELECT 1") == [(1,)]


def test_without_a_limit_it_would_not_end(path: Path) -> None:
    """The control counts how often it is asked whether to go on, and then stops."""
    asked: list[bool] = []

    class Patient(StepLimit):
        def __call__(self) -> bool:
            asked.append(super().__call__())
            return len(asked) > 500

    with closing(sqlite3.connect(path)) as file:
        harden(file, Patient(str(path)))
        with pytest.raises(sqlite3.OperationalError, match="interrupted"):
            file.execute(f"SELECT count(*) FROM ({ENDLESS})").fetchall()
    assert asked.index(True) < 150


def test_reading_a_whole_ledger_takes_a_small_part_of_the_limit(path: Path) -> None:
    with opened(path) as ledger, ledger.transaction():
        for number in range(5000):
            ledger.reserve(request_key=str(number), table_version="1", query_key="q", loss=GDP(0))
    steps = 0

    def count() -> bool:
        nonlocal steps
        steps += 100
        return False

    with closing(sqlite3.connect(path)) as file:
        file.set_progress_handler(count, 100)
        assert len(file.execute("SELECT * FROM events ORDER BY id").fetchall()) == 5000
    assert 0 < steps < connection.STEPS_PER_BYTE * path.stat().st_size / 5


def test_a_damaged_ledger_is_kept_and_not_replaced_by_a_new_one(path: Path) -> None:
    filled(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) * 2 // 3])
    with pytest.raises(LedgerError, match=r"keep the file, .* a new ledger would be a second budget") as refused:
        Ledger(path, METADATA)
    assert "does not exist yet" not in str(refused.value)


# --- what is shown --------------------------------------------------------------------------------------------------


def with_malformed_schema(path: Path) -> None:
    filled(path)
    change(path, "PRAGMA writable_schema = ON", f"UPDATE sqlite_master SET name = '{ESCAPE}', sql = 'CREATE x'")


def with_foreign_promise(path: Path) -> None:
    opened(path, {**METADATA, "budget": ESCAPE, ESCAPE: "x"}).__exit__()


@pytest.mark.parametrize("make", [with_malformed_schema, with_foreign_promise])
def test_text_of_a_ledger_is_escaped_in_errors(
    path: Path, make: Callable[[Path], None], capsys: pytest.CaptureFixture[str]
) -> None:
    make(path)
    with pytest.raises(LedgerError) as refused:
        Ledger(path, METADATA)
    assert "\\x1b" in str(refused.value)
    assert str(refused.value).isprintable()
    assert ESCAPE in refused.value.args[0]  # the control: without the escapes it would be there
    command_line.main(["statement", str(path), "--table", "x.csv", "--unit", "p"])
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("kind", [DpnbError, LedgerError, UnsupportedError])
def test_every_error_is_printable(kind: type[DpnbError]) -> None:
    assert str(kind(f"a{ESCAPE}\n\u202eb")) == "a\\x1b[2J\\x1b[1;1H\\n\\u202eb"
