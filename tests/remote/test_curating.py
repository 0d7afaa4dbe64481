"""The history that an auditor reads, as lines of text."""

from __future__ import annotations

from dpnb.remote.curating import _line
from dpnb.wire.acts import AuditRow

TIME = "2026-11-25T20:56:56.829Z"


def test_request_has_its_cost_and_status() -> None:
    row = AuditRow(1, TIME, "release", "", "released", "count of rows", "mu 0.1", "", "ana")
    assert _line(row) == "     1  2026-11-25T20:56:56Z  ana: count of rows; mu 0.1; released"


def test_change_of_the_division_has_no_cost() -> None:
    row = AuditRow(2, TIME, "act", "", "released", "table frozen: an audit", "free", "", "cora")
    assert _line(row) == "     2  2026-11-25T20:56:56Z  cora: table frozen: an audit"
