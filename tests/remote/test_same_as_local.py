"""A remote session shows what a local session on the same table shows, with the same noise."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dpnb
from contracts.session_contract import ACTIONS, SessionContract, outcome, refine, release
from dpnb.remote import RemoteSession
from remote.people import connected, people

pytestmark = pytest.mark.slow

KINDS: dict[str, dict[str, Any]] = {
    "worst-case": {},
    "individual": {"accounting": "individual"},
    "no-budget": {"budget": None},
    "pure": {"budget": dpnb.Budget(epsilon=2, delta=1e-5, pure_epsilon=1)},
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> dict[str, Any]:
    return KINDS[request.param]


@pytest.fixture
def session(kind: dict[str, Any], tmp_path: Path) -> Iterator[RemoteSession]:
    with connected(people(**kind), tmp_path) as (remote, _):
        yield remote


@pytest.fixture
def other(kind: dict[str, Any]) -> dpnb.Session:
    return people(**kind)


class TestRemoteSession(SessionContract):
    """The suite on a remote session, beside a local one."""

    def test_only_it_says_where_its_table_is(self, session: RemoteSession, other: dpnb.Session) -> None:
        for shown, without in ((str(session), str(other)), (session._repr_html_(), other._repr_html_())):
            assert "table in the curator" in str(shown)
            assert "table in the curator" not in str(without)

    def test_odometers_and_truncated_views_are_read_as_from_a_local_session(self, session: RemoteSession) -> None:
        if session.budget is None:
            return
        session.frame.count().release(mu="0.001")
        session.frame.count_units().release(mu="0.002")
        readings = session.odometers
        assert {"spent", "mixture", "gdp-accumulator"} <= readings.keys()
        view = session.truncated_view(readings["mixture"].bound, odometer="mixture")
        assert view.odometer == readings["mixture"]
        assert session.truncated_view(0).messages == ()


def test_most_actions_succeed() -> None:
    """Otherwise the suite would compare errors only."""
    failed = [act.__name__ for act in ACTIONS if "Error: " in outcome(act, people())[0]]
    assert failed == []


def test_sessions_with_other_noise_differ() -> None:
    """The control."""
    for act in (release, refine):
        assert outcome(act, people()) != outcome(act, people(not_private_test_seed=8))
