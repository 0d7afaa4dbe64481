"""What opens, what is refused untouched, and what closing leaves behind."""

from __future__ import annotations

import gc
import os
import sqlite3
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from dpnb.errors import LedgerError
from dpnb.ledger import Ledger, connection, sqlite_file
from ledger.rows import METADATA, answered, filled, opened, refused_unchanged, reserve, tamper
from threads import joined
from waiting import LIMIT

LINUX_AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


def test_an_empty_file_becomes_a_ledger(path: Path) -> None:
    path.touch()
    filled(path)
    with opened(path) as ledger:
        assert len(ledger.charges()) == 5


def test_a_ledger_in_memory_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with opened(":memory:") as ledger, opened(":memory:") as other:
        reserve(ledger, "a")
        assert other.charges() == []
    assert list(tmp_path.iterdir()) == []


def test_a_relative_path_is_kept_when_the_working_directory_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with opened("clinic.dpnb") as ledger:
        monkeypatch.chdir(tmp_path.parent)
        reserve(ledger, "a")
        assert Path(ledger.path) == tmp_path / "clinic.dpnb"


def test_a_closed_ledger_is_one_file_and_serves_no_more(path: Path) -> None:
    ledger = Ledger(path, METADATA)
    reserve(ledger, "a")
    ledger.close()
    ledger.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with pytest.raises(LedgerError, match="cannot be used"):
        ledger.charges()


def test_a_ledger_that_nobody_uses_closes_itself(path: Path) -> None:
    ledger = Ledger(path, METADATA)
    reserve(ledger, "a")
    del ledger
    gc.collect()
    assert [file.name for file in path.parent.iterdir()] == [path.name]


def make_text(path: Path) -> None:
    path.write_text("name,budget\nclinic,1\n" * 100)


def make_short_text(path: Path) -> None:
    path.write_text("notes")


def make_other_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE charges (id INTEGER)")


def make_view_alone(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE VIEW sums AS SELECT 1")


def make_directory(path: Path) -> None:
    path.mkdir()


def make_later_format(path: Path) -> None:
    filled(path)
    tamper(path, "PRAGMA user_version = 99")


def make_half(path: Path) -> None:
    filled(path)
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def make_overwritten(path: Path) -> None:
    filled(path)
    content = path.read_bytes()
    path.write_bytes(content[:4096] + b"\x55" * (len(content) - 4096))


NO_LEDGERS = {
    "a text": (make_text, "not a database"),
    "a short text": (make_short_text, "not a database"),
    "another program's database": (make_other_database, "another program's"),
    "another program's view": (make_view_alone, "another program's"),
    "a folder": (make_directory, "cannot be used"),
    "a later format": (make_later_format, "format 99"),
    "the first half of a ledger": (make_half, "cannot be used"),
    "a ledger with foreign bytes in it": (make_overwritten, "cannot be used"),
}


@pytest.mark.parametrize(("make", "match"), NO_LEDGERS.values(), ids=NO_LEDGERS)
def test_a_file_that_is_no_ledger_is_refused_and_not_touched(path: Path, make: Any, match: str) -> None:
    make(path)
    with refused_unchanged(path.parent, match):
        Ledger(path, METADATA)


@pytest.mark.parametrize("place", ["missing/clinic.dpnb", "file/clinic.dpnb"])
def test_a_place_that_holds_no_files_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with refused_unchanged(tmp_path, "folder you can write to"):
        Ledger(tmp_path / place, METADATA)


@contextmanager
def without_rights() -> Iterator[None]:
    """As root every mode is ignored; as nobody none is."""
    if not LINUX_AS_ROOT:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that another user can enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        yield folder
        folder.chmod(0o755)


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes mean something else here")
@pytest.mark.parametrize("frozen", ["the file", "the folder", "both"])
def test_a_ledger_that_cannot_be_written_is_refused_before_any_question(folder: Path, frozen: str) -> None:
    path = folder / "clinic.dpnb"
    filled(path)
    path.chmod(0o444 if frozen != "the folder" else 0o666)
    folder.chmod(0o555 if frozen != "the file" else 0o777)
    before = path.read_bytes()
    with without_rights(), pytest.raises(LedgerError, match="folder you can write to"):
        Ledger(path, METADATA)
    assert path.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes mean something else here")
def test_a_new_ledger_in_a_folder_that_cannot_be_written_is_refused(folder: Path) -> None:
    folder.chmod(0o555)
    with without_rights(), pytest.raises(LedgerError, match="folder you can write to"):
        Ledger(folder / "clinic.dpnb", METADATA)


def moved(path: Path) -> None:
    path.rename(path.with_name("away"))


def replaced(path: Path) -> None:
    moved(path)
    path.write_bytes(path.with_name("away").read_bytes())


@pytest.mark.skipif(os.name == "nt", reason="an open file cannot be moved there")
@pytest.mark.parametrize("change", [moved, replaced])
def test_a_file_that_is_moved_under_an_open_ledger_is_not_charged(path: Path, change: Any) -> None:
    with opened(path) as ledger:
        charge = reserve(ledger, "a")
        change(path)
        with pytest.raises(LedgerError, match="moved, deleted or replaced"):
            reserve(ledger, "b")
        with pytest.raises(LedgerError, match="moved, deleted or replaced"):
            answered(ledger, charge)
        path.with_name("away").rename(path)
        answered(ledger, charge)
        assert [row.request_key for row in ledger.charges()] == ["a"]


def test_a_copy_holds_what_is_there_now_and_cannot_be_written(path: Path) -> None:
    with opened(path) as ledger:
        reserve(ledger, "a")
        with closing(Ledger.read_only_copy(path)) as copy:
            reserve(ledger, "b")
            assert [charge.request_key for charge in copy.charges()] == ["a"]
            assert copy.metadata == METADATA
            with pytest.raises(LedgerError, match="readonly"):
                reserve(copy, "c")
        assert [charge.request_key for charge in ledger.charges()] == ["a", "b"]


def test_a_copy_is_made_only_of_a_ledger_that_is_there_and_as_it_was_left(path: Path) -> None:
    with pytest.raises(LedgerError, match="there is none; nothing was created"):
        Ledger.read_only_copy(path)
    assert not path.exists()
    filled(path)
    tamper(path, "UPDATE events SET cell_id = 'x' WHERE id = 2")
    with refused_unchanged(path.parent, "row 2"):
        Ledger.read_only_copy(path)


@pytest.mark.waits
def test_a_copy_of_a_ledger_that_is_charged_without_end_ends(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PAGES_AT_ONCE", 1)
    done = threading.Event()

    def charge() -> None:
        number = 0
        while not done.is_set():
            reserve(ledger, str(number := number + 1))

    with opened(path) as ledger:
        reserve(ledger, "first")
        thread = threading.Thread(target=charge)
        thread.start()
        try:
            for _ in range(5):
                with closing(Ledger.read_only_copy(path)) as copy:
                    assert copy.count == len(copy.charges())
        finally:
            done.set()
            joined(thread)


def test_a_charge_is_on_disk_before_it_returns(path: Path) -> None:
    """As far as SQLite can see to it; these tests alone do without, for speed."""
    ask = "from dpnb.ledger import Ledger; import sys; print(Ledger(sys.argv[1], {})._file.run('PRAGMA synchronous'))"
    place = str(Path(sqlite_file.__file__).parents[2])
    told = subprocess.run(
        [sys.executable, "-c", ask, str(path)], capture_output=True, text=True, check=True, cwd=place, timeout=LIMIT
    ).stdout
    assert told.strip() == "[(2,)]"  # FULL
    with opened(path, {}) as ledger:
        assert ledger._file.run("PRAGMA synchronous") == [(0,)]
