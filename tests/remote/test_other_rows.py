"""A service whose reply names the rows of another request: they are never shown as the answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

import dpnb
from dpnb.errors import ServiceError
from dpnb.ledger.replica import ReplicaLedger
from dpnb.remote import RemoteSession
from dpnb.remote.channel import Channel
from dpnb.wire.messages import Done
from remote.asking import POOLED, RESERVED, asking
from remote.people import connected, people

pytestmark = pytest.mark.slow

Ask = Callable[[Any], Any]
"""Makes a request in a session."""


def scan(session: Any) -> Any:
    return session.above_threshold(100, name="line", mu=0.01, max_queries=9)


PAIRS: dict[str, tuple[Ask, Ask]] = {
    "another column": (
        lambda session: session.frame["cost"].mean().release(share=0.01),
        lambda session: session.frame["age"].mean().release(share=0.01),
    ),
    "another target": (
        lambda session: session.frame["age"].mean().release(mu=0.01),
        lambda session: session.frame["age"].mean().release(mu=0.02),
    ),
    "another view": (
        lambda session: session.frame["age"].var().release(mu=0.01),
        lambda session: session.frame["age"].std().release(mu=0.01),
    ),
    "another node": (
        lambda session: session.frame["age"].mean().release(mu=0.01),
        lambda session: session.delegate(share=0.01, name="colleague").frame["age"].mean().release(mu=0.01),
    ),
    "a launch for a release": (
        scan,
        lambda session: session.frame["age"].mean().release(mu=0.01),
    ),
    "a release for a launch": (
        lambda session: session.frame["age"].mean().release(mu=0.01),
        scan,
    ),
    "another launch": (
        lambda session: session.delegate(share=0.01, name="first"),
        lambda session: session.delegate(share=0.01, name="second"),
    ),
    "another comparison": (
        lambda session: scan(session).ask(session.frame.count()),
        lambda session: scan(session).ask(session.frame[session.frame["age"] > 30].count()),
    ),
    "another selection": (
        lambda session: session.frame.groupby("plan").size().top(1).release(epsilon=0.01),
        lambda session: session.frame.groupby("plan").size().top(2).release(epsilon=0.01),
    ),
    "another batch": (
        lambda session: session.plan([session.frame.groupby(["plan", "ward"]).size()]).release(mu=0.01),
        lambda session: session.plan([session.frame.groupby("plan").size(), session.frame.count()]).release(mu=0.01),
    ),
    "a release for a batch": (
        lambda session: session.frame.count().release(mu=0.01),
        lambda session: session.plan([session.frame.count()]).release(mu=0.01),
    ),
}


@pytest.fixture
def remote(tmp_path: Path) -> Iterator[RemoteSession]:
    session = people(budget=dpnb.Budget.gdp(1, pure_epsilon=0.5))
    with connected(session, tmp_path) as (remote, _):
        yield remote


def swapped(monkeypatch: pytest.MonkeyPatch, ids: tuple[int, ...]) -> None:
    """Let replies name these rows."""
    post = Channel.post
    monkeypatch.setattr(
        Channel, "post", lambda self, path, body: msgspec.structs.replace(post(self, path, body), ids=ids)
    )


def recorded(monkeypatch: pytest.MonkeyPatch) -> list[Done]:
    """The replies of a service."""
    post, replies = Channel.post, list[Done]()

    def kept(self: Channel, path: str, body: bytes) -> Any:
        replies.append(post(self, path, body))
        return replies[-1]

    monkeypatch.setattr(Channel, "post", kept)
    return replies


@pytest.mark.parametrize("name", PAIRS)
def test_the_rows_of_another_request_are_refused(
    name: str, remote: RemoteSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = PAIRS[name]
    with monkeypatch.context() as patch:
        replies = recorded(patch)
        first(remote)
        ids = replies[-1].ids
    with monkeypatch.context() as patch:
        swapped(patch, ids)
        with pytest.raises(ServiceError, match="answered with other rows than those of the request"):
            second(remote)
    assert second(remote) is not None  # the control: the same request, answered as it is


def test_the_same_request_is_answered_again(remote: RemoteSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Free, with the row that is recorded, also one that another kernel has charged."""
    for ask in {one for pair in PAIRS.values() for one in pair}:
        ask(remote)
        rows = remote._core.account.ledger.count
        ask(remote)
        assert remote._core.account.ledger.count == rows


def test_rows_that_combine_another_query_are_refused(remote: RemoteSession, monkeypatch: pytest.MonkeyPatch) -> None:
    remote.frame["cost"].mean().release(mu=0.01)
    append = ReplicaLedger.append

    def combined(self: ReplicaLedger, rows: Any) -> None:
        append(self, [{**one, "observations": "[1, 2]"} if one["id"] == 2 else one for one in rows])

    with monkeypatch.context() as patch:
        patch.setattr(ReplicaLedger, "append", combined)
        with pytest.raises(ServiceError, match="answered with other rows"):
            remote.frame["age"].mean().release(mu=0.01)


@pytest.mark.parametrize("ids", [(), (1, 2), (2, 1), (2, 2), (99,), (0,), (-1,)])
def test_other_numbers_of_rows_are_refused(
    ids: tuple[int, ...], remote: RemoteSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    remote.frame["cost"].mean().release(mu=0.01)
    swapped(monkeypatch, ids)
    with pytest.raises(ServiceError, match="answered with other rows"):
        remote.frame["age"].mean().release(mu=0.01)


@pytest.mark.parametrize("parts", [RESERVED, POOLED])
def test_the_row_of_another_request_for_budget_is_refused(parts: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    with asking(parts) as (remote, _):
        replies = recorded(monkeypatch)
        remote.request_budget(remote.frame.count(), mu=0.2, why="a survey")
        with monkeypatch.context() as patch:
            swapped(patch, replies[0].ids)
            for query, why in ((remote.frame["age"].mean(), "a survey"), (remote.frame.count(), "another")):
                with pytest.raises(ServiceError, match="answered with other rows"):
                    remote.request_budget(query, mu=0.2, why=why)
        remote.request_budget(remote.frame["age"].mean(), mu=0.2, why="a survey")
