"""The analyst's process runs as another user, who can open neither table nor ledger."""

from __future__ import annotations

import grp
import json
import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from service.test_process import HERE, Curator
from waiting import LIMIT

pytestmark = [
    pytest.mark.slow,
    pytest.mark.waits,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root can start a process as another user"),
]

USER = "nobody"


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o711)  # everybody may pass through it, as through /srv
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def reports(place: Path) -> dict[str, Any]:
    """What an analyst's process reports that runs as another user, and one that runs as the curator: an empty name."""
    home = place / "curator"
    home.mkdir(mode=0o700)
    curator = Curator(home)
    curator.socket = place / "run" / "dpnb.sock"
    group = grp.getgrgid(pwd.getpwnam(USER).pw_gid).gr_name
    curator.settings.write_text(
        f'socket = "../run/dpnb.sock"\ngroup = "{group}"\n{curator.settings.read_text("utf-8")}', "utf-8"
    )
    with curator.served():
        return {user: report_of(curator, user) for user in (USER, "")}


def report_of(curator: Curator, user: str) -> Any:
    paths = [curator.folder / name for name in ("people.csv", "people.dpnb", "tokens.json", "service.log")]
    tests = HERE.parent
    done = subprocess.run(
        [sys.executable, str(HERE / "analyst.py"), user, str(curator.socket), curator.token, *map(str, paths)],
        env={**os.environ, "PYTHONPATH": f"{tests.parent}{os.pathsep}{tests}"},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_the_analyst_gets_answers_and_can_open_nothing_of_the_curators(reports: dict[str, Any]) -> None:
    report = reports[USER]
    assert report["user"] == pwd.getpwnam(USER).pw_uid
    assert report["opened"] == []
    assert 20 <= report["value"] <= 80


def test_the_curators_own_user_can_open_all_of_it(reports: dict[str, Any]) -> None:
    """Control: an analyst under the curator's account reads everything, whatever the service does."""
    assert len(reports[""]["opened"]) == 4


def test_no_row_enters_the_analysts_process(reports: dict[str, Any]) -> None:
    assert not reports[""]["has_rows"]
    assert reports[""]["holds_rows"]  # control: a process that reads the table's file
