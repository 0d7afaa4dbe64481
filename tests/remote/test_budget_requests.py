"""Asking for budget from a session, and the answer, which arrives without a further call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import dpnb
from dpnb.errors import BudgetExceeded, RequestError
from dpnb.service.app import Service
from dpnb.session.snapshot import snapshot
from dpnb.wire.messages import Approve, Components, Decline
from remote.asking import POOLED, RESERVED, asking, decide
from service.served import open_people
from waiting import wait_until


@pytest.fixture(params=[RESERVED, POOLED], ids=["reserved", "pooled"])
def analyst(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Service]]:
    with asking(request.param) as opened:
        yield opened


@pytest.mark.waits
def test_an_answer_arrives_without_a_further_call(analyst: tuple[Any, Service]) -> None:
    session, service = analyst
    query = session.frame.count()
    with pytest.raises(BudgetExceeded):
        query.release(mu=0.25)
    asked = session.request_budget(query, mu=0.25, why="for the <b>report</b>")
    assert (asked.status, asked.reason, asked.until) == ("pending", None, None)
    assert session.request_budget(query, mu=0.25, why="for the <b>report</b>").number == asked.number
    seen: list[str] = []
    session._core.on_change(lambda: seen.append(asked.status))
    decide(service, Approve, until="2999-01-01T00:00:00Z", why="fine")
    wait_until(lambda: "approved" in seen, "the decision in the session")
    assert (asked.reason, asked.until) == ("fine", "2999-01-01T00:00:00.000Z")
    assert query.release(mu=0.25).cost.mu == 0.25
    assert f"request {asked.number} for budget: approved" in repr(asked)
    assert "&lt;b&gt;report" in asked._repr_html_()
    assert "<b>report" not in asked._repr_html_()


@pytest.mark.waits
def test_all_requests_as_a_table(analyst: tuple[Any, Service]) -> None:
    session, service = analyst
    df = session.frame
    session.request_budget(df.count(), df["age"].mean(), mu=[0.25, 0.125], why="one")
    session.request_budget(df.count(), within=5, why="two")
    session.request_budget(df["age"].sum(), mu=0.3, why="three")
    decide(service, Approve, amount=Components(mu="0.1"), until="2999-01-01T00:00:00Z", why="half of it")
    decide(service, Decline, why="no")
    wait_until(lambda: (session.budget_requests["status"] == "pending").sum() == 1, "the decisions")
    table = session.budget_requests
    assert table["status"].tolist() == ["approved in part", "declined", "pending"]
    assert table["reason"].fillna("").tolist() == ["half of it", "no", ""]
    assert table["granted"].fillna("").tolist() == ["mu=0.1", "", ""]
    assert table["until"].fillna("").tolist() == ["2999-01-01T00:00:00.000Z", "", ""]
    assert table["queries"].iloc[0] == "count of rows at mu=0.25; mean of age at mu=0.125"
    assert len(session.log) == 0  # they are no requests for answers
    shown = snapshot(session).budget_requests
    assert [one.status for one in shown] == ["pending", "declined", "approved-in-part"]


@pytest.mark.waits
def test_what_is_not_a_request_is_refused_before_it_is_sent(analyst: tuple[Any, Service]) -> None:
    session, _ = analyst
    query = session.frame.count()
    other = open_people(":memory:")
    cases: list[tuple[tuple[Any, ...], dict[str, Any], str]] = [
        ((), {"mu": 0.2, "why": "w"}, "queries: must be 1 to 20"),
        ((query,), {"why": "w"}, "exactly one of"),
        ((query,), {"mu": 0.2, "within": 3, "why": "w"}, "exactly one of"),
        ((query,), {"mu": [0.2, 0.3], "why": "w"}, "a list must have the target of each query"),
        ((query,), {"mu": 0.2, "why": "x" * 501}, "why: must be"),
        ((query,), {"mu": 0.2, "why": "a\x1b[2J"}, "why: must be"),
        ((other.frame.count(),), {"mu": 0.2, "why": "w"}, "queries of this session"),
        ((3,), {"mu": 0.2, "why": "w"}, "got int"),
    ]
    for queries, options, words in cases:
        with pytest.raises(RequestError, match=words):
            session.request_budget(*queries, **options)
    with pytest.raises(TypeError, match="share"):
        session.request_budget(query, share=0.5, why="w")
    part = session.partition(dpnb.cut(session.frame["age"], [0, 50, 100]), name="parts")
    inside = part[next(iter(part))]
    with pytest.raises(RequestError, match="inside it"):
        inside.request_budget(inside.frame.count(), mu=0.2, why="w")
    assert session.budget_requests.empty
    assert inside.budget_requests.empty


def test_a_local_session_names_the_remedy() -> None:
    session = open_people(":memory:")
    with pytest.raises(RequestError, match=r"dpnb\.connect"):
        session.request_budget(session.frame.count(), mu=0.2, why="w")
    assert session.budget_requests.empty
