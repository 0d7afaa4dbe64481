"""What analysts could learn of each other from what they share: settings that change, times, streams, the queue."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from dpnb.errors import InvalidValueError
from dpnb.ledger import ChargeSummary, parent_launch
from dpnb.ledger.shared_rows import SharedRows
from dpnb.service import opening
from dpnb.service.opening import OpenTable
from dpnb.service.parts import Division
from dpnb.service.settings import TableSettings
from service.served import Served, content, run_served
from service.test_division import division, seeded


async def kinds_seen_by_eve(served: Served, kinds: list[str]) -> None:
    eve = served.of("eve")
    rows = content(await eve.get("/v1/tables/people/rows?after=0&pending="))["rows"]
    kinds += [row["values"]["kind"] for row in rows]


def test_a_ledger_in_reserved_mode_is_never_served_to_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attack: the curator takes the analysts out of the settings, and everyone sees what each was answered."""

    async def ask(served: Served) -> None:
        assert (await served.post(served.count("a"))).status_code == 200

    def seen() -> list[str]:
        kinds: list[str] = []

        async def look(served: Served) -> None:
            await kinds_seen_by_eve(served, kinds)

        run_served(tmp_path, look, seeded(tmp_path / "people.dpnb"), Division())
        return kinds

    run_served(tmp_path, ask, seeded(tmp_path / "people.dpnb"), division("reserved"))
    session = seeded(tmp_path / "people.dpnb")
    with pytest.raises(InvalidValueError, match=r"here: mode: .* divided in reserved mode"):
        OpenTable(TableSettings("people", "here"), session)
    session.ledger.close()
    monkeypatch.setattr(opening, "_refuse_undivided", lambda settings, tree: None)
    assert set(seen()) == {"grant", "act"}  # the acts revoke both parts

    def includes(self: Any, charge: ChargeSummary) -> bool:  # the control: whatever is inside a part
        parent = parent_launch(charge.node)
        return charge.node == "" or (parent is not None and parent[0] in self._grants)

    monkeypatch.setattr(SharedRows, "_includes", includes)
    assert "release" in seen()
