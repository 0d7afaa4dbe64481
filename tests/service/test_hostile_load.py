"""A service under hostile load for some seconds; `make soak` does it for long, and says what it has measured."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from soak import hostile
from soak.hostile import HostileRun, Load

pytestmark = [pytest.mark.slow, pytest.mark.waits]

SMALL = Load(seconds=0, modes=("reserved",), rows=300, size=0.05)


def test_a_service_that_is_attacked_and_killed_charges_and_answers_each_request_once(tmp_path: Path) -> None:
    assert HostileRun(tmp_path, random.Random(40), "reserved", SMALL).run() == []


def test_the_checks_find_what_is_beyond_a_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A control: with bounds that no service keeps, each check says what is beyond."""
    for bound in ("MOST_MEMORY", "MOST_HEALTH", "MOST_LOG", "MOST_LEDGER"):
        monkeypatch.setattr(hostile, bound, 0.0)
    run = HostileRun(tmp_path, random.Random(40), "reserved", SMALL)
    run.service.figures.memory, run.service.figures.health = 1.0, 1.0
    (tmp_path / "service.log").write_text("line", "utf-8")
    (tmp_path / "clinic.dpnb").write_text("row", "utf-8")
    run.check_growth(0.0)
    assert len(run.faults) == 5  # and nobody was answered
