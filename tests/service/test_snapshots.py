"""A database of a service is read once for each version, into a snapshot that only the curator's account can read."""

from __future__ import annotations

import errno
import os
import shutil
import sqlite3
import stat
import tomllib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from dpnb.__main__ import main
from dpnb._sources import database_snapshots
from dpnb._sources.database_snapshots import connected
from dpnb.errors import InvalidValueError, LedgerError, SchemaError
from dpnb.service.configuration.settings import TableSettings, read_settings
from dpnb.service.curation.rows import words_of
from dpnb.service.opening import OpenTable, open_table
from dpnb.session.session import Session
from service.served import Served, run_served

DECLARATION = """\
name = "visits"
version = "2026"  # the first
privacy_unit = "who"
max_rows_per_unit = 1
budget = { epsilon = 1.0, delta = 1e-6 }

[schema]
age = { type = "bounded", low = 0, high = 100 }
"""


QUERY = '{ source = "sqlite:///hospital.db", query = "select * from visits where age > 20" }'


def fill(file: Path, ages: list[object]) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("drop table if exists visits")
        database.execute("create table visits (who text, age integer, secret text)")
        database.executemany("insert into visits values (?, ?, 'never read')", [*enumerate(ages)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The curator's folder, with a database."""
    fill(tmp_path / "hospital.db", [20, 30, 40] * 100)
    (tmp_path / "visits.toml").write_text(DECLARATION)
    (tmp_path / "curator.toml").write_text(
        'socket = "s"\n[tables.visits]\ndeclaration = "visits.toml"\ndata = "sqlite:///hospital.db#visits"\n'
    )
    return tmp_path


@contextmanager
def started(folder: Path) -> Iterator[OpenTable]:
    """The table as a service opens it."""
    with closing(open_table(read_settings(folder / "curator.toml").tables["visits"])) as table:
        yield table


def count(folder: Path) -> float:
    """A recorded answer, or a new one."""
    with started(folder) as table:
        return float(table.session.frame.count_units().release(mu=0.1).estimate)


def declare(folder: Path, old: str, new: str) -> None:
    text = (folder / "visits.toml").read_text()
    assert old in text
    (folder / "visits.toml").write_text(text.replace(old, new))


def test_a_database_is_read_at_the_first_start_and_never_again(folder: Path) -> None:
    first = count(folder)
    assert first == pytest.approx(300, abs=60)
    fill(folder / "hospital.db", [50] * 900)
    assert count(folder) == first
    (folder / "hospital.db").unlink()
    assert count(folder) == first


def test_check_says_that_a_served_version_is_not_read_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    command = ["check", "visits.toml", "sqlite:///hospital.db#visits"]
    said = []
    for before in (lambda: None, lambda: count(folder), lambda: declare(folder, '"2026"', '"2027"')):
        before()
        assert main(command) == 0
        said.append("line 2: version: '2026' was served before" in capsys.readouterr().out)
    assert said == [False, True, False]


def test_the_ledger_says_when_a_database_was_read(folder: Path) -> None:
    with started(folder) as table:
        words = [words_of(table.session._core.account, row) for row in table.session.ledger.charges()]
    (said,) = [text for text in words if "read from databases at 20" in text]
    assert said.startswith("files of the table for version '2026'")


def test_a_snapshot_has_the_declared_columns_alone_for_the_curator_alone(folder: Path) -> None:
    mask = os.umask(0)
    try:
        count(folder)
    finally:
        os.umask(mask)
    top = folder / "visits.dpnb-snapshots"
    modes = {str(one.relative_to(folder)): stat.S_IMODE(one.stat().st_mode) for one in [top, *top.rglob("*")]}
    assert modes == {
        "visits.dpnb-snapshots": 0o700,
        "visits.dpnb-snapshots/2026": 0o700,
        "visits.dpnb-snapshots/2026/table.parquet": 0o600,
    }
    assert b"never read" in (folder / "hospital.db").read_bytes()
    assert not any(b"never read" in one.read_bytes() for one in top.rglob("*.parquet"))
    top.chmod(0o755)
    declare(folder, '"2026"', '"2027"')
    with pytest.raises(SchemaError, match="chmod 700"):
        count(folder)


def test_a_lost_or_changed_snapshot_is_refused_until_there_is_a_new_version(folder: Path) -> None:
    count(folder)
    snapshot = folder / "visits.dpnb-snapshots" / "2026"
    kept = snapshot.rename(folder / "kept")
    with pytest.raises(InvalidValueError, match=r"visits.toml, line 2: version: must be changed.*put the folder back"):
        count(folder)
    assert not snapshot.exists()  # the database was not read
    shutil.copytree(kept, snapshot)
    assert count(folder) == pytest.approx(300, abs=60)
    file = snapshot / "table.parquet"
    file.write_bytes(file.read_bytes()[::-1])
    with pytest.raises(SchemaError, match="or it is damaged"):
        count(folder)
    declare(folder, '"2026"', '"2027"')
    assert count(folder) == pytest.approx(300, abs=60)


@pytest.mark.parametrize("data", ['"sqlite:///hospital.db#others"', '"sqlite:///clinic.db#visits"', QUERY])
@pytest.mark.parametrize("used", [True, False])
def test_a_version_with_a_snapshot_has_no_other_table(folder: Path, data: str, used: bool) -> None:
    first = count(folder)
    if not used:  # as after a crash between the snapshot and the ledger
        (folder / "visits.dpnb").unlink()
    settings = folder / "curator.toml"
    named = settings.read_text()
    settings.write_text(named.replace('"sqlite:///hospital.db#visits"', data))
    with pytest.raises(SchemaError, match="is of another database, table or query"):
        count(folder)
    (folder / "moved").mkdir()
    settings.write_text(named.replace("hospital.db", "moved/hospital.db"))
    assert (count(folder) == first) == used


def test_a_file_without_its_origin_is_no_snapshot(folder: Path) -> None:
    count(folder)
    (file,) = (folder / "visits.dpnb-snapshots").rglob("*.parquet")
    pq.write_table(pq.read_table(file).replace_schema_metadata(None), file)
    with pytest.raises(SchemaError, match="or it is damaged"):
        count(folder)


def test_a_column_is_added_to_a_version_with_a_snapshot_by_a_new_version_alone(folder: Path) -> None:
    count(folder)
    declare(folder, "[schema]", '[schema]\nsecret = { type = "text" }')
    with pytest.raises(SchemaError, match=r"line 2: version: must be changed.*without the column 'secret'"):
        count(folder)
    declare(folder, '"2026"', '"2027"')
    count(folder)


@pytest.mark.parametrize("at", ["mkdtemp", "_write", "synchronize"])
def test_a_crash_leaves_nothing_that_counts(folder: Path, monkeypatch: pytest.MonkeyPatch, at: str) -> None:
    def crashes(*_: object, **__: object) -> None:
        raise SystemExit

    top = folder / "visits.dpnb-snapshots"
    with monkeypatch.context() as patched:
        patched.setattr(database_snapshots.shutil, "rmtree", lambda *_, **__: None)  # as if the process were gone
        patched.setattr(database_snapshots, at, crashes)
        with pytest.raises(SystemExit):
            count(folder)
    assert not (top / "2026").exists()
    fill(folder / "hospital.db", [50] * 900)
    assert count(folder) == pytest.approx(900, abs=60)
    assert [one.name for one in top.iterdir()] == ["2026"]


def test_a_full_disk_and_a_file_in_the_way_are_named(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, "a text that is not repeated")

    with monkeypatch.context() as patched:
        patched.setattr(database_snapshots.os, "fsync", full)
        with pytest.raises(SchemaError, match=r"snapshots: .*No space left on device\); make room"):
            count(folder)
    top = folder / "visits.dpnb-snapshots"
    assert not [*top.iterdir()]
    top.rmdir()
    top.write_text("")
    with pytest.raises(SchemaError, match=r"must be a folder in which"):
        count(folder)


def test_of_two_that_start_at_once_one_reads_the_database(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[str] = []

    def counted(location: str) -> object:
        reads.append(location)
        return connected(location)

    monkeypatch.setattr(database_snapshots, "connected", counted)
    settings = read_settings(folder / "curator.toml").tables["visits"]
    (folder / "copy").mkdir()
    with ThreadPoolExecutor(4) as pool:
        tables = [*pool.map(lambda _: opened_or_refused(settings), range(4))]
    assert len(reads) == 1
    assert sum(table is not None for table in tables) == 1  # the others find that the ledger is in use
    for table in filter(None, tables):
        table.close()


def opened_or_refused(settings: TableSettings) -> OpenTable | None:
    try:
        return open_table(settings)
    except LedgerError:
        return None


def test_a_backup_of_the_ledger_has_no_rows_of_the_table(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    count(folder)
    assert main(["backup", str(folder / "visits.dpnb"), str(folder / "copies")]) == 0
    assert "visits.dpnb-snapshots has rows of the table, and is not copied" in capsys.readouterr().out
    assert {one.name for one in (folder / "copies").iterdir()} == {"visits.dpnb", "visits.dpnb-secret"}


# --- the next version -------------------------------------------------------------------------------------------------


def refreshed(folder: Path, capsys: pytest.CaptureFixture[str], version: str = "2027") -> tuple[int, str]:
    code = main(["refresh", str(folder / "curator.toml"), "visits", "--version", version])
    output = capsys.readouterr()
    return code, output.out + output.err


def test_refresh_takes_the_next_version_while_the_old_one_is_served(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with started(folder) as table:
        before = table.session.frame.count_units().release(mu=0.1).estimate
        fill(folder / "hospital.db", [50] * 900)
        code, text = refreshed(folder, capsys)
        assert code == 0, text
        assert "taken at" in text
        assert "Version '2027' is new" in text  # what check says of the ledger
        assert table.session.frame.count_units().release(mu=0.1).estimate == before
        spent = table.session.spent
    assert (folder / "visits.toml").read_text() == DECLARATION.replace('"2026"', '"2027"')
    fill(folder / "hospital.db", [])
    with started(folder) as table:
        assert table.session.spent == spent  # nothing was charged for it
        assert table.session.frame.count_units().release(mu=0.1).estimate == pytest.approx(900, abs=60)


def test_refresh_says_what_is_to_be_fixed_before_anything_is_charged(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count(folder)
    fill(folder / "hospital.db", [500] * 900)
    code, text = refreshed(folder, capsys)
    assert code == 1
    assert "outside" in text


@pytest.mark.parametrize("version", ["2026", "2027"])
def test_refresh_never_replaces_a_snapshot(folder: Path, capsys: pytest.CaptureFixture[str], version: str) -> None:
    count(folder)
    refreshed(folder, capsys)
    before = (folder / "visits.toml").read_text()
    fill(folder / "hospital.db", [1] * 30)
    code, text = refreshed(folder, capsys, version)
    assert code == 2
    assert "must be a new one" in text
    assert (folder / "visits.toml").read_text() == before


def test_refresh_changes_nothing_where_the_database_cannot_be_read(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "hospital.db").unlink()
    code, text = refreshed(folder, capsys)
    assert code == 2
    assert "SQLITE_CANTOPEN" in text
    assert (folder / "visits.toml").read_text() == DECLARATION
    assert not [*(folder / "visits.dpnb-snapshots").iterdir()]


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another account")
def test_a_snapshot_is_taken_by_the_account_of_the_ledger_alone(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count(folder)
    os.chown(folder / "visits.dpnb", 65534, 65534)
    code, text = refreshed(folder, capsys)
    assert code == 2
    assert "run the command as that account" in text
    assert (folder / "visits.toml").read_text() == DECLARATION
    assert {one.name for one in folder.iterdir()}.isdisjoint({".visits.toml.new"})


def test_a_version_is_written_where_the_declaration_has_it(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in (
        DECLARATION.replace('version = "2026"  # the first\n', ""),
        DECLARATION.replace('"2026"', "'20 \\ 26'"),
    ):
        (folder / "visits.toml").write_text(text)
        (folder / "visits.toml").chmod(0o640)
        version = f'new "{len(text)}" é'
        assert refreshed(folder, capsys, version)[0] == 0
        assert tomllib.loads((folder / "visits.toml").read_text())["version"] == version
        assert (folder / "visits.toml").stat().st_mode & 0o777 == 0o640
    before = DECLARATION.replace('"2026"', '"""2026"""')
    (folder / "visits.toml").write_text(before)
    code, text = refreshed(folder, capsys, "2028")
    assert code == 2
    assert 'write version = "2028" on a line of its own' in text
    assert (folder / "visits.toml").read_text() == before


# --- passwords --------------------------------------------------------------------------------------------------------


def test_a_password_in_the_settings_is_refused_and_not_repeated(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = folder / "curator.toml"
    settings.write_text(settings.read_text().replace("sqlite:///", "mysql://reader:hunter2@db/"))
    for arguments in (
        ["serve", "--check", str(settings)],
        ["refresh", str(settings), "--version", "2027"],
        ["check", str(folder / "visits.toml"), "mysql://reader:hunter2@db/hospital#visits"],
        ["check", str(folder / "visits.toml"), "wrong=mysql://reader:hunter2@db/hospital#visits"],
        ["draft", "mysql://reader:hunter2@db/hospital#visits"],
    ):
        assert main(arguments) != 0
        output = capsys.readouterr()
        assert "password" in output.err
        assert "hunter2" not in output.out + output.err


def test_nobody_is_told_over_the_service_where_a_table_is(folder: Path) -> None:
    count(folder)
    (file,) = (folder / "visits.dpnb-snapshots").rglob("*.parquet")
    session = Session.from_toml(folder / "visits.toml", file)
    told: dict[str, str] = {}

    async def scenario(served: Served) -> None:
        assert (await served.post(served.count("1"))).status_code == 200
        for person in (served, served.of("kim", "auditor"), served.of("carl", "curator")):
            for path in ("", "/rows", "/audit", "/plan", "/state"):
                reply = await person.get(f"/v3/tables/people{path}")
                if reply.status_code == 200:
                    told[f"{path} of {person.token}"] = reply.text

    run_served(folder, scenario, session)
    assert sum("2026" in text for text in told.values()) > 3
    for where, text in told.items():
        assert not any(part in text for part in ("hospital", "sqlite", "snapshots", str(folder))), where
