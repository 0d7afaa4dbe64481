"""The log of a service: short lines, limited in number, in files of limited size."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from dpnb._request import CloseMechanism
from dpnb.service import monitoring as service_log
from dpnb.service.monitoring import (
    LINES_PER_MINUTE,
    LOGINS_PER_MINUTE,
    LineLimit,
    LogFile,
    log,
    log_login,
    set_up_log,
)
from service.served import Served, run_served


@pytest.fixture
def file(tmp_path: Path) -> Iterator[Path]:
    set_up_log(tmp_path / "service.log")
    yield tmp_path / "service.log"
    set_up_log(None)


def handler_of(name: str) -> LogFile:
    return next(one for one in logging.getLogger(name).handlers if isinstance(one, LogFile))


def test_a_refused_request_writes_a_short_line(tmp_path: Path, file: Path) -> None:
    async def scenario(served: Served) -> None:
        for letter in ("n", "\U0001f600", '"'):
            await served.post(served.body(letter * 100, CloseMechanism("scan"), node=letter * 10_000))

    run_served(tmp_path, scenario)
    lines = file.read_bytes().splitlines()
    assert lines
    assert all(len(line) < 5000 for line in lines)
    assert json.loads(lines[0])["node"].endswith("... (10000 characters)")


def test_the_lines_of_one_person_are_limited_and_the_others_are_counted(file: Path) -> None:
    now = [0.0]
    handler = handler_of("dpnb.service")
    handler.filters[:] = [LineLimit(handler, LINES_PER_MINUTE, lambda: now[0])]
    for _ in range(LINES_PER_MINUTE + 1000):
        log("refused", actor="ana")
    log("done", actor="bob")
    log("failed", logging.ERROR, actor="ana", number=1)  # a line with the number that the analyst sees
    now[0] = 61.0
    log("done", actor="bob")
    lines = [json.loads(line) for line in file.read_bytes().splitlines()]
    assert [line["event"] for line in lines] == (
        ["refused"] * LINES_PER_MINUTE + ["done", "failed", "lines_suppressed", "done"]
    )
    assert (lines[-2]["by"], lines[-2]["lines"]) == ("ana", 1000)


def test_refused_logins_push_out_no_accepted_one(tmp_path: Path, file: Path) -> None:
    log_login("login", actor="eve", client="192.0.2.1")
    for number in range(3000):
        log_login("login_refused", client=f"192.0.2.{number % 3}", fault="x" * 1000)
        log_login("login", actor="ana", client="192.0.2.9")
    accepted = (tmp_path / "service-logins.log").read_text("utf-8").splitlines()
    refused = (tmp_path / "service-refused.log").read_text("utf-8").splitlines()
    assert json.loads(accepted[0])["actor"] == "eve"
    assert len(accepted) <= 1 + LOGINS_PER_MINUTE
    assert len(refused) <= 3 * LOGINS_PER_MINUTE
    assert file.read_text("utf-8") == ""


def test_the_number_of_peers_that_are_counted_is_bounded(file: Path) -> None:
    handler = handler_of("dpnb.service.refused")
    for number in range(3000):
        log_login("login_refused", client=f"peer {number}")
    (limit,) = handler.filters
    assert isinstance(limit, LineLimit)
    assert len(limit._lines) <= service_log.MOST_KEYS


def test_the_log_has_a_largest_size_and_may_be_moved_away(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service_log, "MOST_LOG_BYTES", 10_000)
    set_up_log(tmp_path / "service.log")
    try:
        for number in range(LINES_PER_MINUTE * 3):
            log("done", actor=f"ana{number % 3}", number=number)
        (tmp_path / "service.log").rename(tmp_path / "moved.log")  # as logrotate does
        log("done", actor="bob")
    finally:
        set_up_log(None)
    sizes = {path.name: path.stat().st_size for path in tmp_path.glob("service.log*")}
    assert max(sizes.values()) <= 10_000
    assert len(sizes) == 1 + service_log.OLD_FILES
    assert json.loads((tmp_path / "service.log").read_text("utf-8"))["actor"] == "bob"
