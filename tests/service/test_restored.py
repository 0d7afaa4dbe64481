"""A ledger that was restored from an older copy: open sessions, and the start of the service."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

import dpnb
from dpnb._core.accountant.grant import Mode
from dpnb.curator.audit import audit
from dpnb.errors import InvalidValueError, LedgerError, LedgerReplaced
from dpnb.ledger import Ledger
from dpnb.ledger.chain import ChainHead
from dpnb.ledger.origin import RequestOrigin, requested_by
from dpnb.remote import RemoteSession
from dpnb.service import heads
from dpnb.service.access.tokens import new_token
from dpnb.service.configuration.parts import AmountSettings, DivisionSettings, PartSettings
from dpnb.service.configuration.settings import TableSettings, read_settings
from dpnb.service.curation.rows import audit_page
from dpnb.service.heads import HeadFile
from dpnb.service.opening import OpenTable
from dpnb.session.backup import back_up
from dpnb.session.disclosure.building import report_of
from service.running import running
from service.served import Served, content, open_people, run_served
from waiting import LIMIT, wait_until

HALF = AmountSettings(Fraction(1, 2))
BUDGET = dpnb.Budget.gdp(1)
MODES: tuple[Mode, ...] = ("reserved", "pooled")


def division(mode: Mode) -> DivisionSettings:
    limit: dict[str, Any] = {"ceiling" if mode == "reserved" else "cap": HALF}
    return DivisionSettings(mode, tuple(PartSettings("analyst", name, **limit) for name in ("ana", "bob")))


def opened(folder: Path) -> dpnb.Session:
    return open_people(folder / "people.dpnb", budget=BUDGET)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="dpnb-") as short:  # paths of sockets must be short
        yield Path(short)


# --- open sessions --------------------------------------------------------------------------------------------------


def above(session: Any, least: int) -> Any:
    frame = session.frame
    return frame[frame["age"] >= least].count()


def ages(session: Any) -> Any:
    return session.frame["age"].mean()


@contextmanager
def restored(folder: Path, mode: Mode, after: Callable[[RemoteSession], object]) -> Iterator[tuple[RemoteSession, str]]:
    """Ana's session, which has rows that the restored ledger lacks; another one of hers has charged others instead."""
    tokens = {name: new_token(folder / "tokens.json", name) for name in ("ana", "bob")}
    with running(folder, opened(folder), division(mode)) as (address, _):
        remote = dpnb.connect(address, "people", token=tokens["ana"])
        above(remote, 20).release(mu=0.01)
        shutil.copy(folder / "people.dpnb", folder / "copy")
        after(remote)
        remote._core.connection.close()  # else its thread, which follows, may notice first  # type: ignore[union-attr]
    (folder / "people.dpnb").unlink()
    shutil.move(folder / "copy", folder / "people.dpnb")
    with closing(remote), running(folder, opened(folder), division(mode)) as (address, _):
        yield remote, tokens["ana"]


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_an_open_session_is_refused_before_the_charge_and_shows_no_other_answer(folder: Path, mode: Mode) -> None:
    """It showed the answer of the query that was the first one after the restore."""

    def lost(remote: RemoteSession) -> None:
        above(remote, 30).release(mu=0.02)

    with restored(folder, mode, lost) as (remote, token):
        with closing(dpnb.connect(remote.address, "people", token=token)) as other:
            above(other, 50).release(mu=0.03)  # takes the number of the row that was lost
            rows = len(other.log)
        for query in (ages(remote), above(remote, 40), above(remote, 50), above(remote, 20)):
            with pytest.raises(LedgerReplaced, match=r"does not contain row .* nothing was charged.* connect again"):
                query.release(mu=0.03)
        with closing(dpnb.connect(remote.address, "people", token=token)) as other:
            assert len(other.log) == rows
            assert ages(other).release(mu=0.03).description == "mean of age"


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_session_without_lost_rows_goes_on(folder: Path, mode: Mode) -> None:
    """The control: nothing was charged after the copy was made."""
    with restored(folder, mode, lambda remote: None) as (remote, _):
        assert ages(remote).release(mu=0.03).description == "mean of age"
        assert len(remote.log) >= 2


@pytest.mark.slow
@pytest.mark.parametrize("mode", MODES)
def test_a_session_that_only_follows_notices_as_many_other_rows(folder: Path, mode: Mode) -> None:
    token = new_token(folder / "tokens.json", "ana")
    with running(folder, opened(folder), division(mode)) as (address, _):
        remote = dpnb.connect(address, "people", token=token)
        shutil.copy(folder / "people.dpnb", folder / "copy")
        above(remote, 30).release(mu=0.02)
    shutil.move(folder / "copy", folder / "people.dpnb")
    session = opened(folder)
    table = OpenTable(TableSettings("people", "here", division=division(mode)), session)
    above(table.for_analyst("ana").session, 50).release(mu=0.03)
    table.close()
    with closing(remote), running(folder, opened(folder), division(mode)):
        connection = remote._core.connection
        assert connection is not None
        connection.refresh()
        wait_until(lambda: "does not contain row" in connection.text, "the rows to be compared")
        with pytest.raises(LedgerReplaced):
            ages(remote).release(mu=0.03)


@pytest.mark.parametrize("mode", MODES)
def test_a_fork_is_refused_over_http_and_told_no_rows(tmp_path: Path, mode: Mode) -> None:
    async def scenario(ana: Served) -> None:
        bob = ana.of("bob")
        for one, number in ((ana, "a"), (bob, "b"), (ana, "c")):
            assert (await one.post(one.count(number, "1/50"))).status_code == 200
        session = ana.service.tables["people"].table.for_analyst("ana")
        count, charges = session.rows.count, ana.charges
        heads_of = {number: session.rows.head(number) for number in range(count + 1)}
        for number, head in ((count + 1, ""), (count, heads_of[count - 1]), (1, "0" * 64), (10**18, heads_of[1])):
            replies = [
                await ana.post(ana.count("new", "1/40", after=number, head=head)),
                await ana.post(ana.count("a", "1/50", after=number, head=head)),  # its own charge, taken up again
                await ana.get(f"/v3/tables/people/rows?after={number}&pending=&head={head}"),
            ]
            for reply in replies:
                assert (reply.status_code, content(reply)["error"]) == (409, "LedgerReplaced")
                assert "rows" not in content(reply) or content(reply)["rows"] == {}
            assert ana.charges == charges
        for number, head in heads_of.items():
            assert (await ana.get(f"/v3/tables/people/rows?after={number}&head={head}")).status_code == 200
        assert (await ana.post(ana.count("new", "1/40", after=count, head=heads_of[count]))).status_code == 200
        for head in ("1", "g" * 64, "A" * 64, "0" * 65):
            assert (await ana.get(f"/v3/tables/people/rows?after=1&head={head}")).status_code == 400
            assert (await ana.post(ana.count("bad", after=1, head=head))).status_code == 400

    run_served(tmp_path, scenario, opened(tmp_path), division(mode))


# --- the start of the service ---------------------------------------------------------------------------------------


class Curator:
    """A curator with a table, whose service keeps the last row of the ledger in another folder."""

    def __init__(self, folder: Path, mode: Mode | None = None) -> None:
        self.folder, self.ledger, self.heads = folder / "private", folder / "private" / "people.dpnb", folder / "state"
        self.folder.mkdir()
        self.division = DivisionSettings() if mode is None else division(mode)

    @contextmanager
    def started(self, *, restored: bool = False) -> Iterator[OpenTable]:
        session = opened(self.folder)
        try:
            settings = TableSettings("people", "here", division=self.division)
            table = OpenTable(settings, session, self.heads, restored=restored)
        except BaseException:
            session.ledger.close()
            raise
        try:
            yield table
        finally:
            table.close()

    def charge(self, table: OpenTable, *least: int) -> None:
        session = table.for_analyst("ana").session
        with requested_by(RequestOrigin("ana")):
            for one in least:
                above(session, one).release(mu=0.01)

    def copy(self) -> None:
        shutil.copy(self.ledger, self.folder / "copy")

    def put_back(self) -> None:
        self.ledger.unlink()
        shutil.move(self.folder / "copy", self.ledger)

    @property
    def file(self) -> HeadFile:
        return HeadFile(self.heads, "people", str(self.ledger))

    def restored(self) -> Curator:
        """With a ledger that lacks two charges."""
        with self.started() as table:
            self.charge(table, 20, 30)
            self.copy()
            self.charge(table, 40, 50)
        self.put_back()
        return self

    def rows(self) -> int:
        with closing(Ledger.read_only_copy(self.ledger)) as ledger:
            return ledger.count


@pytest.mark.parametrize("mode", [None, *MODES])
def test_an_older_ledger_is_refused_until_it_is_said_to_be_restored(tmp_path: Path, mode: Mode | None) -> None:
    curator = Curator(tmp_path, mode).restored()
    rows = curator.rows()
    for _ in range(2):
        text = f"must contain row {rows + 2} .* it has {rows} rows .*--restored"
        with pytest.raises(LedgerError, match=text), curator.started():
            pass
    assert curator.rows() == rows
    with curator.started(restored=True) as table:
        (act,) = [one for one in table.session.ledger.charges(after=rows) if one.node == ""]
        assert (act.id, act.kind, act.launch) == (rows + 1, "act", {"act": "ledger_restored", "known": rows + 2})
        assert "perhaps an older copy" in audit_page(table, rows).rows[0].words
        curator.charge(table, 60)
    with curator.started() as table:  # it is known now
        curator.charge(table, 70)
    found = audit(str(curator.ledger))
    assert found.is_fine, found.problems
    (note,) = [one for one in found.notes if "older copy" in one]
    assert note.startswith(f"Row {rows + 1}: the service was started with a ledger that ends with row {rows}")
    report = report_of(str(curator.ledger))
    words = [one.words for one in report.acts if one.row == rows + 1]
    assert words == [
        f"ledger accepted, perhaps an older copy, which ends with the row before; it had at least {rows + 2} rows"
    ]
    assert f"may be an older copy (row {rows + 1}" in report.to_html()


def test_a_backup_brings_back_no_last_row(tmp_path: Path) -> None:
    """A copy by the command is noticed; the control, in which the folder of last rows is restored too, is not."""
    curator = Curator(tmp_path)
    with curator.started() as table:
        curator.charge(table, 20)
        back_up(str(curator.ledger), str(tmp_path / "copies"))
        shutil.copytree(curator.heads, tmp_path / "heads")
        curator.charge(table, 30)
    names = {one.name for one in (tmp_path / "copies").iterdir()}
    assert names == {"people.dpnb"}
    shutil.copy(tmp_path / "copies" / "people.dpnb", curator.ledger)
    with pytest.raises(LedgerError, match="must contain row 2 "), curator.started():
        pass
    shutil.rmtree(curator.heads)
    shutil.copytree(tmp_path / "heads", curator.heads)
    with curator.started() as table:
        curator.charge(table, 40)  # in place of the row that was lost


def test_an_analyst_of_a_reserved_part_sees_the_act_and_no_numbers_of_others(tmp_path: Path) -> None:
    curator = Curator(tmp_path, "reserved").restored()
    with curator.started(restored=True) as table:
        for name in ("ana", "bob"):
            last = table.for_analyst(name).rows.after(0, 100)[-1]
            assert json.loads(str(last["details"])) == {"act": "ledger_restored"}
        assert table.for_analyst("bob").rows.count == 1 + sum(
            one["kind"] == "act" for one in table.for_analyst("bob").rows.after(0, 100)[:-1]
        )


def test_a_ledger_that_was_deleted_is_missed(tmp_path: Path) -> None:
    curator = Curator(tmp_path)
    with curator.started() as table:
        curator.charge(table, 20)
    curator.ledger.unlink()
    with pytest.raises(LedgerError, match=r"must contain row 1 .* the file is missing or empty"), curator.started():
        pass


def test_a_longer_ledger_is_fine(tmp_path: Path) -> None:
    """The curator has used it in a notebook while the service was stopped."""
    curator = Curator(tmp_path)
    with curator.started() as table:
        curator.charge(table, 20)
    session = opened(curator.folder)
    above(session, 25).release(mu=0.01)
    session.ledger.close()
    with curator.started() as table:
        assert table.session.ledger.count == 2
        assert curator.file.read() == table.session.ledger.last


@pytest.mark.parametrize("content", [None, b"", b"{", b'{"ledger": "a", "number": 1', b"[]", b"\x00" * 90])
def test_a_missing_or_damaged_file_beside_rows_is_refused(tmp_path: Path, content: bytes | None) -> None:
    curator = Curator(tmp_path)
    with curator.started():
        pass
    shutil.rmtree(curator.heads)
    with curator.started() as table:  # without rows there is nothing to miss
        curator.charge(table, 20)
    files = list(curator.heads.iterdir())
    assert len(files) == 2
    for file in files:
        file.unlink() if content is None else file.write_bytes(content)
    text = "has rows, and the file .* is missing or damaged: .*--restored"
    with pytest.raises(LedgerError, match=text), curator.started():
        pass
    with curator.started(restored=True) as table:
        assert [one.launch for one in table.session.ledger.charges(after=1)] == [
            {"act": "ledger_restored", "known": None}
        ]
    with curator.started():
        pass


def test_a_file_damaged_by_a_power_failure_needs_nobody(tmp_path: Path) -> None:
    """The one that was written at the start was on disk; the row in it is an earlier one, which is safe."""
    curator = Curator(tmp_path)
    with curator.started() as table:
        curator.charge(table, 20)
    with curator.started() as table:
        curator.charge(table, 30)
    curator.file.path.write_bytes(b"")
    assert curator.file.read() is not None
    with curator.started():
        pass


def test_the_file_is_replaced_after_each_commit_without_a_flush(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    curator = Curator(tmp_path)
    flushed: list[int] = []
    monkeypatch.setattr(heads.os, "fsync", flushed.append)
    with curator.started() as table:
        at_start = len(flushed)
        assert at_start == 2
        inodes = {curator.file.path.stat().st_ino}
        for least in range(20, 25):
            curator.charge(table, least)
            assert curator.file.read() == table.session.ledger.last
            assert (curator.file.path.stat().st_mode & 0o777) == 0o600
            inodes.add(curator.file.path.stat().st_ino)
        assert len(flushed) == at_start
        assert len(inodes) > 1
        assert {one.suffix for one in curator.heads.iterdir()} == {".head", ".start"}


def test_a_charge_stands_if_the_file_cannot_be_written(tmp_path: Path) -> None:
    curator = Curator(tmp_path)
    with curator.started() as table:
        curator.charge(table, 20)
        shutil.rmtree(curator.heads)
        curator.charge(table, 30)
        assert [one.status for one in table.session.ledger.charges()] == ["released"] * 2


def test_a_folder_that_cannot_be_used_is_refused(tmp_path: Path) -> None:
    curator = Curator(tmp_path)
    curator.heads.write_text("a file", "utf-8")
    text = "heads: must be a folder in which the service can write"
    with pytest.raises(InvalidValueError, match=text), curator.started():
        pass


def test_tables_and_ledgers_have_files_of_their_own(tmp_path: Path) -> None:
    names = {HeadFile(tmp_path, table, ledger).path for table in "ab" for ledger in ("/a/x.dpnb", "/b/x.dpnb")}
    assert len(names) == 4
    file = HeadFile(tmp_path, "a", "/a/x.dpnb")
    file.begin(ChainHead(3, "a"))
    file.keep(ChainHead(4, "b"))
    assert file.read() == ChainHead(4, "b")
    assert HeadFile(tmp_path, "a", "/b/x.dpnb").read() is None


def test_the_folder_is_named_by_the_settings_or_is_the_state_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "curator.toml"
    (tmp_path / "x.py").touch()
    table = '[tables.a]\nsession = "x.py:f"\n'
    settings.write_text(f'heads = "kept"\n{table}', "utf-8")
    assert read_settings(settings).heads == tmp_path / "kept"
    settings.write_text(table, "utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", "/var/x")
    assert read_settings(settings).heads == Path("/var/x/dpnb/heads")
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    monkeypatch.setenv("HOME", "/var/curator")
    assert read_settings(settings).heads == Path("/var/curator/.local/state/dpnb/heads")
    monkeypatch.setenv("STATE_DIRECTORY", "/var/lib/dpnb:/var/lib/other")
    assert read_settings(settings).heads == Path("/var/lib/dpnb/heads")


@pytest.mark.slow
@pytest.mark.waits
def test_the_command_refuses_a_restored_ledger_and_takes_it_when_told(folder: Path) -> None:
    curator = Curator(folder)
    opened(curator.folder).ledger.close()
    settings = folder / "curator.toml"
    settings.write_text('heads = "state"\n[tables.people]\nsession = "people.py:opened"\n', "utf-8")
    (folder / "people.py").write_text(
        "from pathlib import Path\nfrom service.served import open_people\nimport dpnb\n\n"
        "def opened():\n    path = Path(__file__).parent / 'private' / 'people.dpnb'\n"
        "    return open_people(path, budget=dpnb.Budget.gdp(1))\n",
        "utf-8",
    )
    curator.restored()
    tests = Path(__file__).parents[1]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(tests.parent), str(tests)])}
    command = [sys.executable, "-m", "dpnb", "serve", str(settings)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, check=False, env=environment)
    assert done.returncode == 2
    assert "must contain row 4" in done.stderr
    with subprocess.Popen([*command, "--restored"], stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            assert "serving at" in process.stdout.readline()
        finally:
            process.terminate()
            assert process.wait(LIMIT) == 0
    assert curator.rows() == 3
