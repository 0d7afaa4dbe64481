"""The history that an auditor reads, as lines of text."""

from __future__ import annotations

from typing import Any

import pytest

from dpnb.__main__ import main
from dpnb._browser.curation import AuditRow, PlanPage, TableState
from dpnb.remote import deciding
from dpnb.remote.deciding import _line, budget_text

TIME = "2026-11-25T20:56:56.829Z"


def test_request_has_its_cost_and_status() -> None:
    row = AuditRow(1, TIME, "release", "", "released", "count of rows", "mu 0.1", "", "ana", has_plan=True)
    assert _line(row) == "     1  2026-11-25T20:56:56Z  ana: count of rows; mu 0.1; released"


def test_change_of_the_division_has_no_cost() -> None:
    row = AuditRow(2, TIME, "act", "", "released", "table frozen: an audit", "free", "", "cora", has_plan=False)
    assert _line(row) == "     2  2026-11-25T20:56:56Z  cora: table frozen: an audit"


@pytest.mark.parametrize(
    ("headroom", "left"),
    [(0.7884, "78.8% of the budget is left"), (0.0, "0.0% of the budget is left"), (None, "mu 3 spent")],
)
def test_what_is_left_of_the_budget(headroom: float | None, left: str) -> None:
    state = TableState(
        "visits", "one row", "", None, "1", headroom=headroom, spent="mu 3 spent", frozen="an audit\x1b[2J"
    )
    assert budget_text(state) == f"{left}\nfrozen: an audit\\x1b[2J"


def test_the_whole_plan_of_a_row_is_printed_without_control_characters(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Channel:
        def get(self, path: str, reply: type[Any], **query: int) -> PlanPage:
            assert (path, query) == ("tables/visits/plan", {"row": 7})
            return PlanPage(7, ('{\n "reads": ["note"]\n}', "\x1b[2J"))

        def close(self) -> None:
            pass

    monkeypatch.setattr(deciding, "channel_to", lambda address: Channel())
    assert main(["history", "unix:///run/dpnb.sock", "visits", "--plan", "7"]) == 0
    assert capsys.readouterr().out == '{\n "reads": ["note"]\n}\n\n\\x1b[2J\n'
