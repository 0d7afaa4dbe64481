"""Attacks: what a restart of the service does with scans that are open somewhere else than in the root."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpnb.interactive import scan as hidden_noise
from dpnb.service.configuration.settings import TableSettings
from dpnb.service.opening import OpenTable
from service.served import Served, content, open_people, run_served
from service.test_division import LAUNCHES, division


def lose_noise(monkeypatch: pytest.MonkeyPatch) -> None:
    """As a new process has none."""
    monkeypatch.setattr(hidden_noise, "_hidden", {})


def test_the_service_starts_again_after_a_scan_in_a_reserved_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def launches(served: Served) -> None:
        reply = await served.post(served.body("s", LAUNCHES["scan"]))
        assert reply.status_code == 200, content(reply)

    async def counts(served: Served) -> None:
        assert (await served.post(served.count("c"))).status_code == 200

    from service.test_division import seeded

    run_served(tmp_path, launches, seeded(tmp_path / "people.dpnb"), division("reserved"))
    lose_noise(monkeypatch)
    (tmp_path / "tokens.json").unlink()
    run_served(tmp_path, counts, seeded(tmp_path / "people.dpnb"), division("reserved"))


@pytest.mark.parametrize("place", ["sub-session", "part"])
def test_the_service_starts_again_after_a_scan_inside(
    place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = open_people(tmp_path / "people.dpnb")
    inside = session.delegate(name="sub", mu=0.3) if place == "sub-session" else session.partition("age")[30]
    inside.above_threshold(50, name="scan", epsilon=0.05)
    session.ledger.close()
    lose_noise(monkeypatch)
    table = OpenTable(TableSettings("people", "here"), open_people(tmp_path / "people.dpnb"))
    launches = table.session._core.account.tree.sync().values()
    assert [one.is_closed for one in launches if one.name == "scan"] == [True]
    table.close()


def test_a_restart_closes_the_lost_scan_and_nothing_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session = open_people(tmp_path / "people.dpnb")
    session.noise_reduction(session.frame["age"].sum(), name="scan", initial_mu=0.01)
    session.delegate(name="sub", mu=0.3).above_threshold(50, name="scan", epsilon=0.05)
    session.ledger.close()
    lose_noise(monkeypatch)
    table = OpenTable(TableSettings("people", "here"), open_people(tmp_path / "people.dpnb"))
    closed = {one.kind for one in table.session._core.account.tree.sync().values() if one.is_closed}
    assert closed == {"above-threshold"}
    table.close()
