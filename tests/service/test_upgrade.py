"""The files of a version before, with this one: its ledger is refused by every command, unchanged; the others are read.

`TOKENS`, `HEAD` and `CLOCK` were written by the last version of ledgers of format 9, and are not to be written again.
"""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from dpnb.__main__ import main
from dpnb.ledger.chain import ChainHead
from dpnb.ledger.file_format import FORMAT
from dpnb.service.access.clock import Clock
from dpnb.service.access.tokens import Identity, TokenStore
from dpnb.service.heads import HeadFile
from ledger.rows import tamper
from service.test_file_contents import ROWS, as_csv, served

TOKEN = "dpnb_0-a-token-of-the-version-before-0"
TOKENS = """\
{
 "tokens": [
  {
   "name": "ana",
   "hash": "HASH",
   "created": "2026-11-29T11:12:24+00:00",
   "expires": null,
   "revoked": null,
   "role": "analyst"
  }
 ]
}
"""
HEAD = '{"ledger":"/of-no-machine/people.dpnb","number":3,"hash":"HASH"}'
CLOCK = "2126-11-29T11:12:27.123+00:00"  # ahead of every clock
HASH = "8287460da21b63a88322fc6e0f5437600c22917f76bb2f7a96ad258a8fdf0c6b"

COMMANDS = {
    "audit": ["audit", "LEDGER"],
    "statement": ["statement", "LEDGER", "--table", "people.csv", "--unit", "1"],
    "report": ["report", "LEDGER"],
    "verify": ["verify", "statement.json", "LEDGER"],
    "backup": ["backup", "LEDGER", "copies"],
    "serve": ["serve", "curator.toml"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A served table with its ledger and settings; the statement was written before the upgrade."""
    as_csv(ROWS, tmp_path / "people.csv")
    served(tmp_path)
    (tmp_path / "curator.toml").write_text(
        'socket = "s"\nheads = "state"\n[tables.people]\ndeclaration = "people.toml"\ndata = "people.csv"\n', "utf-8"
    )
    monkeypatch.chdir(tmp_path)
    assert main(["report", "people.dpnb", "--output", "statement.json"]) == 0
    return tmp_path


def contents(folder: Path) -> dict[str, str]:
    """The digests of the files, but for the lock of a service."""
    files = [one for one in folder.rglob("*") if one.is_file() and not one.name.endswith("-service")]
    return {str(one.relative_to(folder)): hashlib.sha256(one.read_bytes()).hexdigest() for one in files}


@pytest.mark.parametrize("command", COMMANDS)
def test_a_ledger_of_the_format_before_is_refused_and_left_as_it_is(
    folder: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    ledger = folder / "people.dpnb"
    tamper(ledger, f"PRAGMA user_version = {FORMAT - 1}")
    before = contents(folder)
    given = [str(ledger) if one == "LEDGER" else one for one in COMMANDS[command]]
    assert main(given) == (1 if command == "statement" else 2)
    said = capsys.readouterr().err
    assert f"it is one of format {FORMAT - 1}" in said
    assert "start a new ledger; its budget is then spent in addition" in said
    assert "only the version that wrote it can audit" in said
    assert contents(folder) == before
    tamper(ledger, f"PRAGMA user_version = {FORMAT}")  # the control: nothing else is wrong with it
    if command not in ("serve", "statement"):
        assert main(given) == 0


def test_the_other_files_of_a_service_are_read(tmp_path: Path) -> None:
    (tmp_path / "tokens.json").write_text(
        TOKENS.replace("HASH", hashlib.sha256(TOKEN.encode()).hexdigest()), encoding="utf-8"
    )
    (tmp_path / "tokens.json").chmod(0o600)
    (tmp_path / "clock").write_text(CLOCK, encoding="utf-8")
    clock = Clock(lambda: datetime.now(UTC), tmp_path / "clock")
    assert clock.now() >= datetime.fromisoformat(CLOCK)
    assert TokenStore(tmp_path / "tokens.json").identity(TOKEN) == Identity("ana", "analyst")
    head = HeadFile(tmp_path, "people", "/of-no-machine/people.dpnb")
    for path in (head.path, head.path.with_suffix(".start")):
        path.write_text(HEAD.replace("HASH", HASH), encoding="utf-8")
    assert head.path.name == "people-0d6eb7e9330e.head"
    assert head.read() == ChainHead(3, HASH)
    file = json.loads(head.path.read_text("utf-8"))
    head.begin(ChainHead(3, HASH))
    assert json.loads(head.path.read_text("utf-8")) == file
