"""The disclosure statement of a session on a service: the same rows, and so the same statement."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import dpnb
from dpnb.curator.verification import verify
from dpnb.session.disclosure.building import report_of
from remote.people import connected, people

KINDS: dict[str, dict[str, Any]] = {
    "worst-case": {},
    "individual": {"accounting": "individual"},
    "no-budget": {"budget": None},
    "reserve": {"budget": dpnb.Budget(epsilon=2, delta=1e-5, pure_epsilon=1)},
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_remote_session_states_what_the_ledger_says(kind: str, tmp_path: Path) -> None:
    session = people(ledger=tmp_path / "people.dpnb", **KINDS[kind])
    with connected(session, tmp_path) as (remote, _):
        remote.frame["age"].mean().release(mu=0.05)
        remote.frame.groupby("ward").size().release(mu=0.05)
        report = remote.report(answers=True)
        report.save(tmp_path / "statement.html")
        whole = report_of(session.ledger.path, answers=True)
    result = verify(str(tmp_path / "statement.html"), session.ledger.path)
    assert result.is_fine, result.differences
    assert (report.source.rows_of, whole.source.rows_of) == ("copy", "ledger")
    assert report.releases == whole.releases
    assert len(report.releases) == 2
    other = ("written", "sections", "source")  # which say whose rows they are
    assert replace(report, **{name: getattr(whole, name) for name in other}) == whole
    assert report.sections[:5] == whole.sections[:5]


def test_a_session_that_lost_its_service_still_gives_a_statement(tmp_path: Path) -> None:
    session = people(ledger=tmp_path / "people.dpnb")
    with connected(session, tmp_path) as (remote, _):
        remote.frame["age"].mean().release(mu=0.05)
    assert [one.loss for one in remote.report().releases] == ["mu 0.05"]
