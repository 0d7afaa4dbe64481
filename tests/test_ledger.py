"""The ledger remembers every charge, notices what was changed behind its back, and serves one promise."""

from __future__ import annotations

import gc
import os
import sqlite3
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dpnb.accounting.losses import GDP
from dpnb.errors import LedgerError
from dpnb.ledger import Charge, Ledger, durable, local_disk
from dpnb.mechanisms.measurement import Measurement

PROMISE = {"name": "clinic", "budget": "mu 1"}
NOISY = Measurement((12, -7, 2**80), -3, 1.25)
LINUX_AS_ROOT = hasattr(os, "geteuid") and os.geteuid() == 0


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "clinic.dpnb"


def opened(path: Path | str, promise: dict[str, str] = PROMISE, **settings: str) -> closing[Ledger]:
    return closing(Ledger(path, promise, settings))


def reserve(ledger: Ledger, key: str, **changes: Any) -> Charge:
    columns: dict[str, Any] = {
        "key": key,
        "version": "1",
        "plan": '{"question": 1}',
        "request": '{"mu": "1/10"}',
        "target": GDP(0.1),
        "loss": GDP(0.1),
        "sigma": 1.25,
        "tau": 0.5,
        "looks": (),
    }
    with ledger.transaction():
        return ledger.reserve(**{**columns, **changes})


def filled(path: Path) -> list[Charge]:
    """A closed ledger with a row of each state."""
    with opened(path, gamma="0x1p-3") as ledger:
        ledger.release(reserve(ledger, "a"), NOISY)
        ledger.release(reserve(ledger, "b", plan='{"question": 2}'), NOISY)
        reserve(ledger, "c")
        ledger.fail(reserve(ledger, "d"))
        reserve(ledger, "e", loss=GDP(0), sigma=None, tau=None, looks=(1, 2))
        return ledger.charges()


def tamper(path: Path, statement: str, *arguments: object) -> None:
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        assert connection.execute(statement, arguments).rowcount != 0


def contents(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir() if file.is_file()}


@contextmanager
def refused_unchanged(folder: Path, match: str) -> Iterator[None]:
    """Refused with a full message; no byte of any file changes and none appears."""
    before = contents(folder)
    with pytest.raises(LedgerError, match=match) as refused:
        yield
    assert str(refused.value).startswith("ledger '")
    assert refused.value.__cause__ is None
    gc.collect()
    assert contents(folder) == before


# --- what it remembers ---------------------------------------------------------------------------------------------


def test_a_reopened_ledger_has_every_row_as_it_was(path: Path) -> None:
    written = filled(path)
    with opened(path) as ledger:
        assert ledger.charges() == written
        assert [charge.state for charge in written] == ["released", "released", "reserved", "failed", "released"]
        assert [charge.looks for charge in written] == [(1,), (2,), (3,), (4,), (1, 2)]
        assert [charge.measurement for charge in written] == [NOISY, NOISY, None, None, None]
        assert ledger.settings == {"gamma": "0x1p-3"}


positive_floats = st.floats(min_value=5e-324, allow_nan=False, allow_infinity=False)
losses = st.fractions(min_value=0, max_value=10**30).map(GDP.from_squared)


@settings(max_examples=40)
@given(
    texts=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\0")), min_size=3, max_size=3),
    target=losses,
    loss=losses,
    sigma=positive_floats,
    tau=st.none() | positive_floats,
    looks=st.lists(st.integers(1, 10**6)).map(tuple),
    values=st.lists(st.integers(-(2**200), 2**200)).map(tuple),
)
def test_nothing_is_rounded_on_its_way_through_the_file(
    texts: list[str],
    target: GDP,
    loss: GDP,
    sigma: float,
    tau: float | None,
    looks: tuple[int, ...],
    values: tuple[int, ...],
) -> None:
    version, plan, request = texts
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.dpnb"
        with opened(path) as ledger:
            charge = reserve(
                ledger,
                "a",
                version=version,
                plan=plan,
                request=request,
                target=target,
                loss=loss,
                sigma=sigma,
                tau=tau,
                looks=looks,
            )
            ledger.release(charge, Measurement(values, -20, sigma))
        with opened(path) as ledger:
            (read,) = ledger.charges()
    assert (read.version, read.plan, read.request) == (version, plan, request)
    assert (read.target, read.loss, read.sigma, read.tau) == (target, loss, sigma, tau)
    assert read.looks == (*looks, 1)
    assert read.measurement == Measurement(values, -20, sigma)


def test_a_request_is_found_by_its_key_and_a_question_by_its_released_looks(path: Path) -> None:
    filled(path)
    with opened(path) as ledger:
        found = ledger.find("b")
        assert found is not None
        assert found.id == 2
        assert ledger.find("z") is None
        assert [look.id for look in ledger.looks("1", '{"question": 1}')] == [1]  # 3 and 4 have no values
        assert ledger.looks("2", '{"question": 1}') == []
        assert [charge.id for charge in ledger.latest(2)] == [5, 4]
        assert [charge.id for charge in ledger.charges(after=3)] == [4, 5]
        assert [charge.id for charge in ledger.by_id((4, 1))] == [1, 4]


def test_one_request_cannot_be_charged_twice(path: Path) -> None:
    with opened(path) as ledger:
        reserve(ledger, "a")
        with pytest.raises(LedgerError):
            reserve(ledger, "a")
        assert len(ledger.charges()) == 1
        reserve(ledger, "b")
    with opened(path) as ledger:
        assert [charge.id for charge in ledger.charges()] == [1, 2]


def test_of_two_answers_to_one_charge_the_first_stands(path: Path) -> None:
    with opened(path) as one, opened(path) as other:
        charge = reserve(one, "a")
        taken_up = other.find("a")
        assert taken_up is not None
        first = other.release(taken_up, NOISY)
        assert one.release(charge, Measurement((0, 0, 0), -3, 1.25)) == first
        one.fail(charge)
        assert other.find("a") == first


def test_a_failed_charge_can_be_answered_later(path: Path) -> None:
    with opened(path) as ledger:
        charge = reserve(ledger, "a")
        ledger.fail(charge)
        assert ledger.release(charge, NOISY).state == "released"
    with opened(path) as ledger:
        assert ledger.charges()[0].measurement == NOISY


@pytest.mark.parametrize("trouble", [RuntimeError, KeyboardInterrupt])
def test_a_transaction_that_is_left_by_an_exception_never_was(path: Path, trouble: type[BaseException]) -> None:
    def interrupted(ledger: Ledger) -> None:
        with ledger.transaction():
            last = ledger.charges()[-1]
            ledger.reserve(
                key="lost",
                version="1",
                plan="",
                request="",
                target=last.target,
                loss=last.loss,
                sigma=1.0,
                tau=None,
                looks=(),
            )
            raise trouble

    with opened(path) as ledger:
        reserve(ledger, "a")
        with pytest.raises(trouble):
            interrupted(ledger)
        assert [charge.key for charge in ledger.charges()] == ["a"]
        reserve(ledger, "b")
    with opened(path) as ledger:
        assert [(charge.id, charge.key) for charge in ledger.charges()] == [(1, "a"), (2, "b")]


@pytest.mark.parametrize("after", ["BEGIN IMMEDIATE", "INSERT INTO charges", "COMMIT"])
def test_an_interrupt_at_any_statement_leaves_the_file_free_for_others(
    path: Path, monkeypatch: pytest.MonkeyPatch, after: str
) -> None:
    class Interrupted(sqlite3.Connection):
        armed = False

        def execute(self, statement: str, *arguments: Any) -> sqlite3.Cursor:
            result = super().execute(statement, *arguments)
            if Interrupted.armed and statement.startswith(after):
                raise KeyboardInterrupt
            return result

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *a, **k: connect(*a, **k, factory=Interrupted))
    monkeypatch.setattr(durable, "BUSY_SECONDS", 0.1)
    with opened(path) as ledger, opened(path) as other:
        Interrupted.armed = True
        with pytest.raises(KeyboardInterrupt):
            reserve(ledger, "a")
        Interrupted.armed = False
        durable_rows = 1 if after == "COMMIT" else 0
        reserve(other, "b")
        reserve(ledger, "c")
        assert len(other.charges()) == durable_rows + 2


# --- shared --------------------------------------------------------------------------------------------------------


def test_ledgers_on_one_file_see_each_others_rows_at_once(path: Path) -> None:
    with opened(path) as one, opened(path) as other:
        reserve(one, "a")
        assert [charge.key for charge in other.charges()] == ["a"]
        reserve(other, "b")
        assert [charge.key for charge in one.charges()] == ["a", "b"]


def test_a_ledger_that_another_kernel_makes_during_any_step_of_ours_is_one_ledger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(durable, "BUSY_SECONDS", 0.01)
    connect = sqlite3.connect
    made: list[int] = []
    refusals: list[str] = []
    for step in range(1, 100):
        path = tmp_path / f"{step}.dpnb"
        statements: list[str] = []

        def other_kernel(statement: str, path: Path = path, step: int = step, seen: list[str] = statements) -> None:
            seen.append(statement)
            if len(seen) == step:
                monkeypatch.setattr(sqlite3, "connect", connect)
                try:
                    with opened(path) as other:
                        reserve(other, "other")
                    made.append(step)
                except LedgerError as error:
                    refusals.append(str(error))

        def watched(*arguments: Any, tell: Any = other_kernel, **options: Any) -> sqlite3.Connection:
            connection = connect(*arguments, **options)
            connection.set_trace_callback(tell)
            return connection

        monkeypatch.setattr(sqlite3, "connect", watched)
        with opened(path) as ours:
            reserve(ours, "ours")
            keys = [charge.key for charge in ours.charges()]
        if len(statements) < step:
            break
        assert keys in (["other", "ours"], ["ours", "other"], ["ours"]), statements[step - 1]
        assert ("other" in keys) == (made[-1:] == [step]), statements[step - 1]
        with opened(path) as later:
            assert [charge.key for charge in later.charges()] == keys
    assert len(made) > 5
    assert all("another kernel has held it" in refusal for refusal in refusals)  # while we wrote
    assert step == len(made) + len(refusals) + 1 > 20


def test_threads_write_one_after_the_other(path: Path) -> None:
    def write(thread: int) -> None:
        for number in range(20):
            ledger.release(reserve(ledger, f"{thread}.{number}"), NOISY)

    with opened(path) as ledger:
        threads = [threading.Thread(target=write, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    with opened(path) as ledger:  # verifies the chain
        charges = ledger.charges()
    assert [charge.id for charge in charges] == list(range(1, 81))
    assert {charge.key for charge in charges} == {f"{thread}.{number}" for thread in range(4) for number in range(20)}
    assert {charge.state for charge in charges} == {"released"}


def test_a_file_that_another_kernel_holds_is_refused_after_a_while(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with opened(path) as holder:
        monkeypatch.setattr(durable, "BUSY_SECONDS", 0.05)
        with opened(path) as ledger:
            with holder.transaction(), pytest.raises(LedgerError, match="another kernel has held it"):
                reserve(ledger, "a")
            assert ledger.charges() == []
            reserve(ledger, "a")


# --- opening and closing -------------------------------------------------------------------------------------------


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
    ledger = Ledger(path, PROMISE)
    reserve(ledger, "a")
    ledger.close()
    ledger.close()
    assert [file.name for file in path.parent.iterdir()] == [path.name]
    with pytest.raises(LedgerError, match="cannot be used"):
        ledger.charges()


def test_a_ledger_that_nobody_uses_closes_itself(path: Path) -> None:
    ledger = Ledger(path, PROMISE)
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
        Ledger(path, PROMISE)


@pytest.mark.parametrize("place", ["missing/clinic.dpnb", "file/clinic.dpnb"])
def test_a_place_that_holds_no_files_is_refused(tmp_path: Path, place: str) -> None:
    (tmp_path / "file").touch()
    with refused_unchanged(tmp_path, "folder you can write to"):
        Ledger(tmp_path / place, PROMISE)


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
        Ledger(path, PROMISE)
    assert path.read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="modes mean something else here")
def test_a_new_ledger_in_a_folder_that_cannot_be_written_is_refused(folder: Path) -> None:
    folder.chmod(0o555)
    with without_rights(), pytest.raises(LedgerError, match="folder you can write to"):
        Ledger(folder / "clinic.dpnb", PROMISE)


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
            ledger.release(charge, NOISY)
        path.with_name("away").rename(path)
        ledger.release(charge, NOISY)
        assert [row.key for row in ledger.charges()] == ["a"]


# --- one promise ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("promise", "what"),
    [
        ({"name": "ward", "budget": "mu 1"}, "another name; it says clinic, the session says ward"),
        ({"name": "clinic", "budget": "mu 2"}, "another budget; it says mu 1, the session says mu 2"),
        ({"name": "clinic"}, "another budget; it says mu 1, the session says None"),
        ({**PROMISE, "unit": "person"}, "another unit; it says None, the session says person"),
        ({}, "another budget"),
    ],
)
def test_a_ledger_serves_no_other_promise(path: Path, promise: dict[str, str], what: str) -> None:
    filled(path)
    with refused_unchanged(path.parent, what):
        Ledger(path, promise)


def test_settings_are_those_of_the_first_kernel(path: Path) -> None:
    with opened(path, gamma="1"):
        pass
    with opened(path, gamma="2", delta="3") as ledger:
        assert ledger.settings == {"gamma": "1"}


# --- altered behind its back ---------------------------------------------------------------------------------------

COLUMNS = (
    "id time key version plan request target loss sigma tau looks hash state measurement result_hash".split()  # noqa: SIM905
)
ALTERED = [
    *(f"UPDATE charges SET {column} = {value} WHERE id = 2" for column in COLUMNS for value in ("7", "'7'")),
    *(f"UPDATE charges SET {column} = x'37' WHERE id = 2" for column in COLUMNS if column != "id"),
    *(f"UPDATE charges SET {column} = NULL WHERE id = 2" for column in ("sigma", "tau", "measurement")),
    *(
        f"UPDATE charges SET {column} = (SELECT {column} FROM charges WHERE id = 3) WHERE id = 2"
        for column in ("plan", "hash", "state", "measurement", "result_hash")
    ),
    "UPDATE charges SET measurement = (SELECT measurement FROM charges WHERE id = 1), state = 'released' WHERE id = 3",
    *(f"DELETE FROM charges WHERE id = {number}" for number in range(1, 6)),
    "DELETE FROM charges WHERE id > 3",
    "DELETE FROM charges",
    "UPDATE charges SET id = id + 1 WHERE id = 5",
    "INSERT INTO charges SELECT 6, time, 'f', version, plan, request, target, loss, sigma, tau, looks, hash, state, "
    "measurement, result_hash FROM charges WHERE id = 5",
    "UPDATE promise SET value = 'mu 100' WHERE name = 'budget'",
    "DELETE FROM promise WHERE name = 'budget'",
    "INSERT INTO promise VALUES ('filter', 'none')",
    "UPDATE settings SET value = '0x1p-4'",
    "DELETE FROM settings",
    "INSERT INTO settings VALUES ('odometer_delta', '1/2')",
    "UPDATE last SET id = 4",
    "UPDATE last SET hash = 'x'",
    "DELETE FROM last",
    "INSERT INTO last SELECT * FROM last",
    "DROP TABLE last",
    "DROP TABLE charges",
    "DROP TABLE settings",
    "ALTER TABLE charges RENAME COLUMN sigma TO scale",
]


@pytest.mark.parametrize("statement", ALTERED)
def test_an_altered_ledger_is_refused(path: Path, statement: str) -> None:
    filled(path)
    tamper(path, statement)
    with refused_unchanged(path.parent, "ledger"):
        Ledger(path, PROMISE)


@pytest.mark.parametrize(
    ("statement", "promise"),
    [
        ("UPDATE promise SET value = 'mu 100' WHERE name = 'budget'", {"name": "clinic", "budget": "mu 100"}),
        ("UPDATE settings SET value = '0x1p-4'", PROMISE),
        ("DELETE FROM last", PROMISE),
    ],
)
@pytest.mark.parametrize("rows", [0, 5])
def test_a_promise_that_was_widened_in_the_file_is_noticed(
    path: Path, statement: str, promise: dict[str, str], rows: int
) -> None:
    if rows:
        filled(path)
    else:
        opened(path, gamma="0x1p-3").__exit__()
    tamper(path, statement)
    with refused_unchanged(path.parent, "must be as dpnb left it"):
        Ledger(path, promise)


def test_an_unaltered_ledger_is_not_refused(path: Path) -> None:
    filled(path)
    tamper(path, "UPDATE charges SET id = id")
    with opened(path) as ledger:
        assert len(ledger.charges()) == 5


# --- local disks and networks --------------------------------------------------------------------------------------


def mount(point: str, kind: str) -> str:
    return f"36 35 98:0 /inside {point} rw,noatime master:1 - {kind} /dev/x rw,errors=continue\n"


def journal_mode(path: Path) -> str:
    with closing(sqlite3.connect(path)) as connection:
        return str(connection.execute("PRAGMA journal_mode").fetchone()[0])


def pretend(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, mounts: str) -> None:
    listing = tmp_path / "mountinfo"
    listing.write_text(mounts)
    monkeypatch.setattr(local_disk, "MOUNTS", listing)


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *((local, "wal") for local in ("ext4", "xfs", "btrfs", "zfs", "tmpfs", "overlay", "apfs")),
        *((network, "delete") for network in ("nfs", "nfs4", "cifs", "smb3", "9p", "ceph", "lustre", "virtiofs")),
        *((fuse, "delete") for fuse in ("fuse.sshfs", "fuse.rclone", "fuse", "vboxsf", "a-network-of-tomorrow")),
    ],
)
def test_the_write_ahead_log_is_for_local_disks_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, mode: str
) -> None:
    place = (tmp_path / "a place").resolve()
    place.mkdir()
    escaped = str(place).replace(" ", "\\040")
    pretend(monkeypatch, tmp_path, mount("/", "xfs" if mode == "delete" else "nfs4") + mount(escaped, kind))
    filled(place / "clinic.dpnb")
    assert journal_mode(place / "clinic.dpnb") == mode
    with opened(place / "clinic.dpnb") as ledger:
        assert len(ledger.charges()) == 5


def test_of_mounts_the_innermost_and_of_these_the_last_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = str(tmp_path.resolve())
    mounts = mount(place, "ext4") + mount(place, "nfs4") + mount("/", "ext4") + mount(place + "/sub", "ext4")
    pretend(monkeypatch, tmp_path, mounts + mount(place + "/clinic", "ext4"))
    assert not local_disk.is_local_disk(place + "/clinic.dpnb")
    assert local_disk.is_local_disk(place + "/sub/clinic.dpnb")
    assert local_disk.is_local_disk(place + "/clinic")


def test_a_link_counts_where_it_leads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path.resolve()
    (place / "net").mkdir()
    (place / "link").symlink_to(place / "net")
    pretend(monkeypatch, tmp_path, mount("/", "ext4") + mount(str(place / "net"), "nfs"))
    assert not local_disk.is_local_disk(str(place / "link" / "clinic.dpnb"))
    assert local_disk.is_local_disk(str(place / "clinic.dpnb"))


def test_a_machine_that_does_not_tell_counts_as_a_network(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_disk, "MOUNTS", path.with_name("missing"))
    filled(path)
    assert journal_mode(path) == "delete"


def test_a_file_with_the_rollback_journal_keeps_it_and_a_log_ends_on_a_network(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend(monkeypatch, path.parent, mount("/", "ext4"))
    filled(path)
    assert journal_mode(path) == "wal"
    pretend(monkeypatch, path.parent, mount("/", "nfs"))
    with opened(path) as ledger:
        reserve(ledger, "f")
    assert journal_mode(path) == "delete"
    pretend(monkeypatch, path.parent, mount("/", "ext4"))
    with opened(path) as ledger:
        reserve(ledger, "g")
    assert journal_mode(path) == "delete"


def test_losses_add_up_exactly_after_a_thousand_rows(path: Path) -> None:
    with opened(path) as ledger, ledger.transaction():
        for number in range(1000):
            ledger.reserve(
                key=str(number),
                version="1",
                plan="",
                request="",
                target=GDP(0.1),
                loss=GDP(0.1),
                sigma=1.0,
                tau=None,
                looks=(),
            )
    with opened(path) as ledger:
        assert sum(charge.loss.mu_squared for charge in ledger.charges()) == Fraction(10)
