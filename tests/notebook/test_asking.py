"""Asking the curator from the picker: what is offered, what is sent, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from dpnb.notebook.picker import Picker
from dpnb.notebook.picker_steps import make_ask
from dpnb.service.app import Service
from dpnb.service.configuration.parts import DivisionSettings, PartSettings
from dpnb.wire.messages import Approve
from remote.asking import HALF, POOLED, RESERVED, asking, decide
from service.served import open_people
from waiting import wait_until

pytestmark = pytest.mark.waits


@pytest.fixture(params=[RESERVED, POOLED], ids=["reserved", "pooled"])
def analyst(request: pytest.FixtureRequest) -> Iterator[tuple[Any, Service]]:
    with asking(request.param) as opened:
        yield opened


def send(picker: Picker, **message: Any) -> dict[str, Any]:
    picker._on_message(picker, {"method": "ask_curator", "id": "1", **message}, None)
    state: dict[str, Any] = picker.state
    return state


def test_what_the_cap_does_not_allow_is_offered_and_granted(analyst: tuple[Any, Service]) -> None:
    session, service = analyst
    query = session.frame.count()
    picker = Picker(query)
    ask = picker.state["ask"]
    assert all(not query.preview(mu=float(one["target"]["mu"])).fits for one in ask["options"])
    assert ask["options"][0]["label"].startswith("± ")
    assert "of the budget (mu " in ask["options"][0]["label"]
    target = ask["options"][-1]["target"]
    state = send(picker, target=target, why="for the report")
    assert (state["completed_request"], state["refusal"]) == ("1", None)
    assert "was sent to the curator" in state["asked"]
    assert session.budget_requests["why"].tolist() == ["for the report"]
    decide(service, Approve)
    wait_until(lambda: session.budget_requests["status"].tolist() == ["approved"], "the decision")
    picker.follow()
    assert picker.is_stale  # the page then asks for the new state
    picker._on_message(picker, {"method": "refresh"}, None)
    assert float(picker.state["options"][-2]["target"]["mu"]) > 0.5 * float(target["mu"])
    assert repr(query.release(mu=float(target["mu"])).cost.mu) == target["mu"]


@pytest.mark.parametrize(
    "message",
    [
        {"target": {"share": "1"}, "why": "w"},
        {"target": {"mu": "many"}, "why": "w"},
        {"target": {}, "why": "w"},
        {"target": {"mu": "0.2"}, "why": ""},
        {"target": {"mu": "0.2"}, "why": "x" * 501},
        {"target": {"mu": "0.2"}, "why": "a\nb"},
    ],
)
def test_what_a_page_may_not_send_is_refused_in_the_picker(message: dict[str, Any]) -> None:
    with asking(RESERVED) as (session, _):
        state = send(Picker(session.frame.count()), **message)
        assert state["refusal"] is not None
        assert state["asked"] is None
        assert session.budget_requests.empty


def test_nothing_is_offered_that_no_curator_could_grant() -> None:
    local = open_people(":memory:")
    assert make_ask(local.frame.count()) is None
    with asking(DivisionSettings("reserved", (PartSettings("analyst", "ana", ceiling=HALF),))) as (session, _):
        assert make_ask(session.frame.count()) is None
