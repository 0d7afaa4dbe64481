"""The page about the move to another machine as a script: its commands in order, below another root."""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

import dpnb
from dpnb.__main__ import main
from dpnb.errors import ChargesStopped, LedgerError
from dpnb.ledger import Ledger
from dpnb.service.access.tokens import new_token
from dpnb.service.heads import HeadFile
from forked import Forked
from service.hasty import serve_hastily
from service.served import people
from waiting import LIMIT

pytestmark = [pytest.mark.slow, pytest.mark.waits]

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "how-to" / "move.md"
DECLARATION = (
    'name = "rand-hie"\nledger = "{0}/srv/dpnb/rand-hie.dpnb"\nbudget = {{ mu = 1 }}\n'
    '[schema]\nage = {{ type = "bounded", low = 0, high = 100, integer = true }}\n'
)
SETTINGS = """\
socket = "{0}/run/dpnb/dpnb.sock"
heads = "{0}/var/lib/dpnb"
log = "service.log"
time_grid = false
[tables.rand-hie]
declaration = "rand-hie.toml"
data = "randhie.csv"
"""


class Machine:
    """What the page's commands act on: the folders below a root, which is that of the machine in use."""

    def __init__(self, root: Path) -> None:
        self.root, self._service = root, ExitStack()
        for name in ("srv/dpnb", "var/lib/dpnb", "run/dpnb"):
            (root / name).mkdir(parents=True, mode=0o700)
        (root / "run/dpnb").chmod(0o711)

    @property
    def ledger(self) -> Path:
        return self.root / "srv/dpnb/rand-hie.dpnb"

    @property
    def address(self) -> str:
        return f"unix://{self.root}/run/dpnb/dpnb.sock"

    def start(self) -> None:
        process = self._service.enter_context(
            closing(Forked(serve_hastily, str(self.root / "srv/dpnb/curator.toml"), "BODY_SECONDS=10"))
        )
        self._service.callback(process.wait, LIMIT)
        self._service.callback(process.terminate)
        assert "serving at unix://" in process.stdout.readline()

    def stop(self) -> None:
        self._service.close()

    def run(self, block: str) -> None:
        """Run the commands of a block, each of which must succeed."""
        here = re.sub(r"(?<= )/(?=srv|var|run)|(?<=unix://)/", f"{self.root}/", block)
        for line in here.replace("--directory /", f"--directory {self.root}").splitlines():
            match shlex.split(line):
                case ["sudo", "-u", "dpnb", "/opt/dpnb/bin/python", "-m", "dpnb", *arguments]:
                    assert main(arguments) == 0, line
                case ["systemctl", "enable", "--now", "dpnb"]:
                    self.start()
                case ["systemctl", "disable", "--now", "dpnb"]:
                    self.stop()
                case ["umask", mask]:
                    os.umask(int(mask, 8))
                case ["tar", *_] as command:
                    subprocess.run(command, check=True, timeout=LIMIT)
                case _:
                    pytest.fail(f"no command that this test knows: {line}")


@pytest.fixture
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("v")  # a short path: it is that of a socket
    usual = os.umask(0o022)
    yield folder / "m"
    os.umask(usual)


def ask(machine: Machine, token: str, mu: float) -> float:
    with closing(dpnb.connect(machine.address, "rand-hie", token=token)) as session:
        return float(session.frame.count().release(mu=mu).estimate)


def test_the_steps_of_the_page_move_a_service_and_leave_the_old_machine_closed(
    root: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    freeze, pack, unpack, start = re.findall(r"^```text\n(.*?)^```", GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    old = Machine(root)
    folder = root / "srv/dpnb"
    people().to_csv(folder / "randhie.csv", index=False)
    (folder / "rand-hie.toml").write_text(DECLARATION.format(root), "utf-8")
    (folder / "curator.toml").write_text(SETTINGS.format(root), "utf-8")
    ana = new_token(folder / "tokens.json", "ana")
    monkeypatch.setenv("DPNB_TOKEN", new_token(folder / "tokens.json", "carl", role="curator"))
    with ExitStack() as services:
        services.callback(old.stop)
        old.start()
        first = ask(old, ana, 0.1)
        old.run(freeze)
        old.run(pack)
        with closing(Ledger.read_only_copy(old.ledger)) as ledger:
            moved = ledger.last

        os.rename(root, root.with_name("old"))
        new = Machine(root)
        os.rename(root.with_name("old") / "srv/moved.tar", root / "srv/moved.tar")
        assert stat.S_IMODE((root / "srv/moved.tar").stat().st_mode) == 0o600
        new.run(unpack)
        for name in ("rand-hie.dpnb", "rand-hie.dpnb-secret", "tokens.json"):
            assert stat.S_IMODE((folder / name).stat().st_mode) == 0o600, name
        said = capsys.readouterr().out
        assert "The statement is what" in said
        services.callback(new.stop)
        new.run(start)
        assert ask(new, ana, 0.1) == first  # the recorded answer, with the same token
        ask(new, ana, 0.2)
        new.stop()
        with closing(Ledger.read_only_copy(new.ledger)) as ledger:
            assert ledger.has(moved)
            assert [one.kind for one in ledger.charges(after=moved.number)] == ["act", "release"]

        os.rename(root, root.with_name("new"))
        os.rename(root.with_name("old"), root)
        services.callback(old.stop)
        old.start()  # by mistake: all of its files are still there
        assert ask(old, ana, 0.1) == first
        with pytest.raises(ChargesStopped, match="moves to another machine"):
            ask(old, ana, 0.3)
        old.stop()
        with closing(Ledger.read_only_copy(old.ledger)) as ledger:
            assert ledger.last == moved


def test_at_another_path_the_file_with_the_last_row_has_another_name(tmp_path: Path) -> None:
    """What the page says of other paths: the refusal names the file, and it is enough to rename it."""
    from service.test_restored import Curator

    (tmp_path / "a").mkdir()
    curator = Curator(tmp_path / "a")
    with curator.started() as table:
        curator.charge(table, 20)
    os.rename(tmp_path / "a", tmp_path / "b")
    moved = Curator.__new__(Curator)
    moved.__dict__.update(curator.__dict__)
    moved.folder, moved.heads = tmp_path / "b/private", tmp_path / "b/state"
    moved.ledger = moved.folder / "people.dpnb"
    with pytest.raises(LedgerError, match=r"if the service was moved, move that file too") as refused, moved.started():
        pass
    wanted = HeadFile(moved.heads, "people", str(moved.ledger)).path
    assert str(wanted) in str(refused.value)
    (kept,) = moved.heads.glob("*.head")
    kept.rename(wanted)
    with moved.started() as table:
        moved.charge(table, 30)
