"""The tutorial of a curator's year as a script: its commands and programs in order, and what a curator relies on.

The commands run in this process, against a real service.  Only the person outside, who verifies the statement, has a
process of their own, and two files.
"""

from __future__ import annotations

import math
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from fractions import Fraction
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import dpnb
from curator.test_redaction import chained_again
from dpnb.__main__ import main
from dpnb.curator.audit import audit
from dpnb.curator.verification import verify
from dpnb.errors import AccessDenied, ChargesStopped, LedgerError
from dpnb.ledger import Ledger
from dpnb.remote import RemoteSession
from dpnb.session.disclosure.building import report_of
from forked import Forked
from ledger.rows import tamper
from service.hasty import serve_hastily
from test_pages import A_YEAR, CHANGING, ROOT, blocks, commands, source
from waiting import LIMIT

pytestmark = [pytest.mark.slow, pytest.mark.waits]

LEDGER, SETTINGS, SOCKET = "office/stays.dpnb", Path("office/curator.toml"), Path("office/run/dpnb.sock")


class Office:
    """What the page's blocks act on: the working folder, and the service that runs there."""

    def __init__(self, capsys: pytest.CaptureFixture[str], variables: pytest.MonkeyPatch) -> None:
        self._capsys, self._variables = capsys, variables
        self._service: Forked | None = None

    def do(self, chapter: str) -> str:
        """Do the blocks of a chapter in order, and return what the last command printed."""
        printed = ""
        for name, code in blocks(chapter):
            if name == "python":
                exec(compile(code, A_YEAR, "exec"), {})
                self._without_time_grid()
            elif name == "console":
                for command, shown in commands(code):
                    printed = self._run(command, fails=shown.startswith("dpnb: "))
                    assert not shown or words(shown) == words(printed), printed
            elif code.startswith("export DPNB_TOKEN="):
                self._variables.setenv("DPNB_TOKEN", Path("carl.token").read_text("utf-8").strip())
            elif code.startswith("umask "):
                os.umask(int(code.split()[1], 8))
            elif code.startswith("^C"):
                self.stop()
            else:
                assert " ".join(code.split()) in " ".join(printed.split()), printed
        return printed

    def _run(self, command: str, *, fails: bool) -> str:
        """Run a command, and return what it prints, or what its refusal says."""
        command, _, file = command.replace("$PWD", str(Path.cwd())).partition(" > ")
        python, option, module, *given = shlex.split(command)
        assert (python, option, module) == ("python", "-m", "dpnb")
        if given[0] == "serve" and "--check" not in given and not fails:
            self._start(*given[1:])
            return ""
        self._capsys.readouterr()
        code = main(given)
        printed, refused = self._capsys.readouterr()
        assert code == 2 if fails else code in ((0, 1) if given[0] == "check" else (0,)), (command, printed, refused)
        if file:
            Path(file).write_text(printed, "utf-8")
        return refused if fails else printed

    def _start(self, *given: str) -> None:
        assert self._service is None, "the page starts a service while another one runs"
        self._service = Forked(serve_hastily, given[-1], *given[:-1])
        assert "serving at unix://" in self._service.stdout.readline()

    def stop(self) -> None:
        if self._service is not None:
            self._service.terminate()
            assert self._service.wait(LIMIT) == 0
            self._service.close()
            self._service = None

    def _without_time_grid(self) -> None:
        text = SETTINGS.read_text("utf-8")
        if "time_grid" not in text:
            SETTINGS.write_text(f"time_grid = false\n{text}", "utf-8")


def connected(person: str) -> RemoteSession:
    token = Path(f"{person}.token").read_text("utf-8").strip()
    return dpnb.connect(f"unix://{SOCKET.resolve()}", "stays", token=token)


def spent(ledger: str = LEDGER) -> dict[str, tuple[Fraction, Fraction]]:
    """By the audit, which finds nothing wrong: what was charged of the table and of each part, and its limit."""
    found = audit(ledger)
    assert found.problems == ()
    return {one.name.split()[-1]: (one.spent.mu_squared, one.limit.mu_squared) for one in found.sums}  # type: ignore[union-attr]


def words(text: str) -> str:
    """A text without what changes, on one line."""
    return " ".join(CHANGING.sub("", text).split())


@pytest.fixture
def chapters() -> dict[str, str]:
    """The text below each heading of the page."""
    titles_and_texts = re.split(r"^## (.*)\n", source(A_YEAR), flags=re.MULTILINE)[1:]
    return dict(zip(titles_and_texts[::2], titles_and_texts[1::2], strict=True))


@pytest.fixture
def office(
    tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Office]:
    monkeypatch.chdir(tmp_path_factory.mktemp("y"))  # a short path: it is that of a socket
    monkeypatch.setenv("DPNB_SERVICE", f"unix://{SOCKET.resolve()}")  # this process may have used a token elsewhere
    usual, one = os.umask(0o022), Office(capsys, monkeypatch)
    yield one
    one.stop()
    os.umask(usual)


def test_a_year_of_an_office(office: Office, chapters: dict[str, str]) -> None:
    month = iter(chapters.values())
    hundredth = Fraction("0.01")  # what a request at mu 0.1 costs

    office.do(next(month))  # January
    assert {name: charged for name, (charged, _) in spent().items()} == dict.fromkeys(("table", "ana", "bob", "eve"), 0)

    office.do(next(month))  # February: the first answers
    february = spent()
    limits = {name: limit for name, (_, limit) in february.items()}
    assert [charged for charged, _ in february.values()] == [3 * hundredth, 2 * hundredth, hundredth, 0]
    assert sum(limits[name] for name in ("ana", "bob", "eve")) <= limits["table"]
    main(["report", LEDGER, "--answers", "--output", "february.json"])

    office.do(next(month))  # March: a wrong bound
    march = spent()
    assert {name: march[name][0] - february[name][0] for name in march} == {
        "table": hundredth,
        "ana": hundredth,
        "bob": 0,
        "eve": 0,
    }
    (key,) = Path("office").glob("*-secret")
    key_before = key.read_bytes()

    office.do(next(month))  # July: a person is erased
    assert spent() == march
    assert all(17 not in set(pd.read_parquet(one)["patient_id"]) for one in Path("office").glob("*.parquet"))
    assert key.read_bytes() != key_before
    assert not Path("backup-february/stays.dpnb-secret").exists()

    office.do(next(month))  # September: people come and go
    assert spent()["dora"] == (0, limits["eve"])
    refuse_who_left()
    assert any("handed over to another analyst" in one for one in report_of(LEDGER, "dora").division.assumptions)  # type: ignore[union-attr]

    office.do(next(month))  # October: a budget ends
    october = spent()
    charged, ceiling = october["fay"]
    assert 0.999999 * ceiling < charged <= ceiling
    assert all(october[name] == march[name] for name in ("ana", "bob"))
    with closing(Ledger.read_only_copy(LEDGER)) as ledger:
        newest = ledger.last

    restored_elsewhere()
    office.do(next(month))  # November: the disk fails
    with closing(Ledger.read_only_copy(LEDGER)) as ledger:
        assert ledger.last == newest
    assert spent() == october

    office.do(next(month))  # December: another machine
    december = spent()
    assert december["dora"][0] == december["table"][0] - october["table"][0] == hundredth
    assert spent("old-office/stays.dpnb") == october
    left_behind = dpnb.Session.from_toml("old-office/stays.toml", pd.read_parquet("old-office/stays-2025.parquet"))
    with pytest.raises(ChargesStopped, match="moves to another machine"):
        left_behind.frame.count().release(mu=0.01)
    left_behind.ledger.close()

    office.do(next(month))  # a new year
    refuse_who_left()  # although the settings still have them
    year = spent()
    assert {name for name in year if year[name] != december[name]} == {"table", "ana"}
    report = report_of(LEDGER)
    assert [one.version for one in report.versions] == ["2025", "2025-03", "2025-07-01", "2026"]
    assert [one.loss for one in report.releases if one.analyst == "ana"] == ["mu 0.1"] * 4
    assert report.stated is not None
    assert report.stated.text.controller == "City of Example, department of health"
    assert "one patient (at most 12 rows)" in str(report.sections)
    assert verify("february.json", LEDGER).is_fine  # with the answers that were given in February

    both = office.do(next(month))  # a second ledger
    together = math.sqrt(limits["table"] + spent("costs.dpnb")["table"][1])
    assert 0 <= float(re.search(r"(\S+)-GDP, which implies", both)[1]) - together < 1e-3  # type: ignore[index]

    office.do(next(month))  # what is handed over
    assert next(month, None) is None
    assert spent() == year
    verified_outside()
    altered_ledgers_are_found()


def refuse_who_left() -> None:
    for person in ("eve", "bob"):
        with pytest.raises(AccessDenied):
            connected(person)


def restored_elsewhere() -> None:
    """Where the newest ledger is lost, the older one is taken only when told, which every statement then names."""
    for name in ("office", "heads"):
        shutil.copytree(name, f"lost/{name}", ignore=shutil.ignore_patterns("run", "*-service"))
    shutil.copy("backup-february/stays.dpnb", "lost/office/stays.dpnb")
    with closing(Forked(serve_hastily, "lost/office/curator.toml", "--restored")) as service:
        assert "serving at unix://" in service.stdout.readline()
        service.terminate()
        assert service.wait(LIMIT) == 0
    assert any("older copy" in one.words for one in report_of("lost/office/stays.dpnb").acts)


def verified_outside() -> None:
    """By a process that has the two files alone, in which nobody is named."""
    outside, names = Path("outside"), re.compile(rb"bob|dora|fay|carl|\bana\b|\beve\b")
    outside.mkdir()
    assert len({*names.findall(Path(LEDGER).read_bytes())}) == 6  # the control
    for name in ("given.html", "given.dpnb"):
        content = Path(name).read_bytes()
        assert not names.search(content), name
        (outside / name).write_bytes(content)
    done = subprocess.run(
        [sys.executable, "-m", "dpnb", "verify", "given.html", "given.dpnb"],
        cwd=outside,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "The statement is what" in done.stdout
    statement = outside / "given.html"
    statement.write_text(statement.read_text("utf-8").replace("mu 0.1", "mu 0.05", 1), "utf-8")
    assert not verify(str(statement), str(outside / "given.dpnb")).is_fine


def altered_ledgers_are_found() -> None:
    """The controls of every audit above: one altered charge, without and with the chain of hashes computed again."""
    row, altered = report_of(LEDGER).releases[-1].row, Path("altered.dpnb")
    shutil.copy(LEDGER, altered)
    tamper(altered, "UPDATE events SET loss = replace(loss, '1/100', '1/10000') WHERE id = ?", row)
    with pytest.raises(LedgerError, match=f"row {row} is not what was written"):
        audit(str(altered))

    def make_cheaper(stored: dict[str, Any]) -> None:
        if stored["id"] == row:
            stored["loss"] = stored["loss"].replace("1/100", "1/10000")

    shutil.copy(LEDGER, altered)
    chained_again(str(altered), make_cheaper)
    assert audit(str(altered)).problems == (f"Row {row} costs more than it was charged.",)
