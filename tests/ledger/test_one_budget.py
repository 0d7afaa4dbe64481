"""However its files are linked, copied, removed or cut off, a ledger's budget is spent once."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable
from contextlib import closing, suppress
from multiprocessing.connection import Connection
from pathlib import Path

import pytest

if sys.platform == "win32":
    pytest.skip("an open file cannot be moved there", allow_module_level=True)

from dpnb.accounting.losses import GDP
from dpnb.errors import LedgerError
from dpnb.ledger import Ledger, chain, sqlite_file
from kernels import Kernel, kernels
from ledger.rows import METADATA, filled, opened, reserve, tamper

BUDGET = 5
"""Charges that are allowed."""


def with_a_log() -> None:
    """The control: ledgers are written with a write-ahead log, as they were, and nobody looks at what becomes of it."""
    sqlite_file.JOURNAL = "wal"
    sqlite_file.SqliteFile.is_new = lambda self: not self.run("SELECT 1 FROM sqlite_master LIMIT 1")  # type: ignore[method-assign]


@pytest.fixture
def log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sqlite_file, "JOURNAL", sqlite_file.JOURNAL)
    monkeypatch.setattr(sqlite_file.SqliteFile, "is_new", sqlite_file.SqliteFile.is_new)
    with_a_log()


def spender(pipe: Connection, path: Path, name: str, prepare: Callable[[], None]) -> None:
    """Open a ledger; on a word, charge as long as the budget lasts; say how often."""
    prepare()
    try:
        ledger = Ledger(path, METADATA)
    except LedgerError:
        pipe.send("refused")
        return
    pipe.send("open")
    while pipe.recv():
        pipe.send(spend(ledger, name))


def as_it_is() -> None:
    """Nothing is changed."""


def spend(ledger: Ledger, name: str) -> int:
    """Charge whatever a session would, up to the budget; how often it was charged here."""
    charged = 0
    with suppress(LedgerError):
        while True:
            with ledger.transaction():
                if ledger.count >= BUDGET:
                    break
                ledger.reserve(request_key=f"{name} {ledger.count}", table_version="1", query_key="q", loss=GDP(1))
            charged += 1
    return charged


def spent_by(kernel: Kernel) -> int:
    kernel.pipe.send(True)
    return int(kernel.hear())


def spend_in_turn(path: Path, between: Callable[[Path], Path], prepare: Callable[[], None] = as_it_is) -> int:
    """How often two processes charge together, of which the second opens the ledger after something was done."""
    with kernels(Kernel(spender, path, "a", prepare)) as (first,):
        assert first.hear() == "open"
        with opened(path) as ours:
            reserve(ours, "so that there is something")
        with kernels(Kernel(spender, between(path), "b", prepare)) as (second,):
            return 1 + (spent_by(second) if second.hear() == "open" else 0) + spent_by(first)


def nothing(path: Path) -> Path:
    return path


def linked(path: Path) -> Path:
    other = path.with_name("other.dpnb")
    os.link(path, other)
    return other


def without_what_lies_beside_it(path: Path) -> Path:
    for suffix in ("-wal", "-shm", "-journal"):
        path.with_name(path.name + suffix).unlink(missing_ok=True)
    return path


@pytest.mark.parametrize("between", [nothing, linked, without_what_lies_beside_it])
@pytest.mark.waits
def test_two_processes_spend_one_budget(path: Path, between: Callable[[Path], Path]) -> None:
    assert spend_in_turn(path, between) <= BUDGET


@pytest.mark.usefixtures("log")
@pytest.mark.parametrize("between", [linked, without_what_lies_beside_it])
@pytest.mark.waits
def test_with_a_write_ahead_log_two_processes_would_spend_two_budgets(
    path: Path, between: Callable[[Path], Path]
) -> None:
    assert spend_in_turn(path, between, with_a_log_and_links) > BUDGET


def with_a_log_and_links() -> None:
    with_a_log()
    stat = os.stat
    sqlite_file.os.stat = lambda path: one_name(stat(path))  # type: ignore[assignment]


def one_name(found: os.stat_result) -> os.stat_result:
    return os.stat_result((*found[:3], 1, *found[4:]))


@pytest.mark.waits
def test_all_that_is_allowed_can_be_spent_beside_others_who_come_and_go(path: Path) -> None:
    with kernels(Kernel(spender, path, "a", as_it_is)) as (first,):
        assert first.hear() == "open"
        for number in range(3):
            with opened(path) as ours:
                reserve(ours, str(number))
        assert spent_by(first) == BUDGET - 3


# --- names ----------------------------------------------------------------------------------------------------------


def test_a_file_with_two_names_is_refused_at_opening_and_at_each_charge(path: Path) -> None:
    with opened(path) as ledger:
        reserve(ledger, "a")
        other = linked(path)
        for act in (lambda: reserve(ledger, "b"), lambda: Ledger(path, METADATA), lambda: Ledger(other, METADATA)):
            with pytest.raises(LedgerError, match="must have one name; it has 2"):
                act()
        other.unlink()
        reserve(ledger, "c")
        assert [charge.request_key for charge in ledger.charges()] == ["a", "c"]


def test_a_file_that_is_replaced_during_a_charge_is_not_answered_from(path: Path) -> None:
    with opened(path) as ledger:
        reserve(ledger, "a")

        def charge() -> None:
            with ledger.transaction():
                ledger.reserve(request_key="b", table_version="1", query_key="q", loss=GDP(1))
                path.rename(path.with_name("away"))

        with pytest.raises(LedgerError, match="moved, deleted or replaced"):
            charge()


# --- what the file alone holds --------------------------------------------------------------------------------------


def left_alone(path: Path, place: Path) -> list[str]:
    """The charges in a copy of the main file alone, while it is in use."""
    with opened(path) as ledger:
        for key in "abc":
            reserve(ledger, key)
        shutil.copyfile(path, place)
        with opened(place) as copied:
            return [charge.request_key for charge in copied.charges()]


def test_the_file_alone_holds_every_charge_that_has_returned(path: Path) -> None:
    assert left_alone(path, path.with_name("copy.dpnb")) == ["a", "b", "c"]


@pytest.mark.usefixtures("log")
def test_with_a_write_ahead_log_the_file_alone_would_hold_less(path: Path) -> None:
    with suppress(LedgerError):  # its tables may not be there at all
        assert left_alone(path, path.with_name("copy.dpnb")) != ["a", "b", "c"]


@pytest.mark.waits
def test_what_a_killed_process_has_charged_needs_no_other_file(path: Path) -> None:
    with kernels(Kernel(spender, path, "a", as_it_is)) as (first,):
        assert first.hear() == "open"
        assert spent_by(first) == BUDGET
        first.kill()
        first.end()
    without_what_lies_beside_it(path)
    with opened(path) as ledger:
        assert spend(ledger, "b") == 0


def make_header_alone(path: Path) -> None:
    """What an earlier version left in the main file until the first checkpoint."""
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA journal_mode = WAL")
    assert path.stat().st_size == 4096


def test_a_file_without_tables_is_not_a_new_ledger(path: Path) -> None:
    make_header_alone(path)
    before = path.read_bytes()
    with pytest.raises(LedgerError, match="a file without tables"):
        Ledger(path, METADATA)
    assert path.read_bytes() == before


def test_ledger_of_an_earlier_version_gets_rid_of_its_write_ahead_log(path: Path) -> None:
    filled(path)
    with closing(sqlite3.connect(path)) as earlier:
        earlier.execute("PRAGMA journal_mode = WAL")
    assert path.read_bytes()[18:20] == bytes([2, 2])
    with opened(path) as ledger:
        assert len(ledger.charges()) == 5
        reserve(ledger, "f")
    assert path.read_bytes()[18:20] == bytes([1, 1])  # the header says: no log
    with closing(Ledger.read_only_copy(path)) as copied:
        assert len(copied.charges()) == 6


def test_a_write_ahead_log_that_another_program_gives_a_ledger_is_refused(path: Path) -> None:
    with opened(path) as ledger:
        reserve(ledger, "a")
        with closing(sqlite3.connect(path)) as other:
            other.execute("PRAGMA journal_mode = WAL")
        with pytest.raises(LedgerError, match="another program has changed that"):
            reserve(ledger, "b")
    with opened(path) as ledger:
        reserve(ledger, "c")
        assert [charge.request_key for charge in ledger.charges()] == ["a", "c"]


# --- what changes in place ------------------------------------------------------------------------------------------


def cut_to_nothing(path: Path) -> None:
    os.truncate(path, 0)


def cut_in_half(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def put_back(path: Path) -> None:
    path.write_bytes(path.with_name("old").read_bytes())


def filled_by_another(path: Path) -> None:
    """Another ledger for the same promise, with more rows, in the same file."""
    other = path.with_name("other.dpnb")
    with opened(other) as ledger:
        for key in "vwxyz":
            reserve(ledger, key)
    path.write_bytes(other.read_bytes())


@pytest.mark.parametrize("change", [cut_to_nothing, cut_in_half, put_back, filled_by_another])
def test_a_ledger_that_lost_rows_while_it_was_open_takes_no_charge(path: Path, change: Callable[[Path], None]) -> None:
    with opened(path) as ledger:
        reserve(ledger, "a")
        shutil.copyfile(path, path.with_name("old"))
        reserve(ledger, "b")
        change(path)
        for _ in range(2):
            with pytest.raises(LedgerError):
                reserve(ledger, "c")


def test_a_ledger_that_is_not_followed_would_take_charges_on_an_older_state(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(path) as ledger:
        reserve(ledger, "a")
        shutil.copyfile(path, path.with_name("old"))
        reserve(ledger, "b")
        put_back(path)
        monkeypatch.setattr(chain, "verify_chain", lambda file, since, summaries, **options: since)
        reserve(ledger, "c")


def test_rows_that_others_forge_are_refused_before_the_next_charge(path: Path) -> None:
    with opened(path) as ledger:
        reserve(ledger, "a")
        with opened(path) as other:
            reserve(other, "b")
        tamper(path, "UPDATE events SET loss = '{}' WHERE id = 2")
        with pytest.raises(LedgerError, match="row 2 is not what was written"):
            reserve(ledger, "c")


# --- a charge that a crash cut short --------------------------------------------------------------------------------


def die_in_the_middle(pipe: Connection, path: Path) -> None:
    """End without a word while some pages of a transaction are in the file."""
    ledger = Ledger(path, METADATA)
    ledger._file.run("PRAGMA cache_size = 2")
    with ledger.transaction():
        for number in range(300):
            ledger.reserve(request_key=f"lost {number}", table_version="1", query_key="q", loss=GDP(1))
        os._exit(1)


def cut_short(path: Path) -> None:
    filled(path)
    with kernels(Kernel(die_in_the_middle, path)) as (kernel,):
        assert kernel.end() == 1
    assert path.with_name(f"{path.name}-journal").stat().st_size > 4096


def test_a_charge_that_was_cut_short_is_undone_at_the_next_opening(path: Path) -> None:
    cut_short(path)
    with pytest.raises(LedgerError, match="open its session once, which repairs it"):
        Ledger.read_only_copy(path)
    with opened(path) as ledger:
        assert len(ledger.charges()) == 5
    with closing(Ledger.read_only_copy(path)) as copied:
        assert len(copied.charges()) == 5


def test_without_its_journal_a_charge_that_was_cut_short_is_noticed(path: Path) -> None:
    cut_short(path)
    without_what_lies_beside_it(path)
    with pytest.raises(LedgerError):
        Ledger(path, METADATA)
