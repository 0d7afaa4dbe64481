"""What text, gauges, panel and picker show of the connection of a session."""

from __future__ import annotations

import html
import re
import threading
from collections.abc import Iterator

import msgspec
import pandas as pd
import pytest

import dpnb
from dpnb._browser.snapshot import OUT_OF_DATE, ConnectionSnapshot
from dpnb._core import open_sessions
from dpnb.notebook import extension, panel, picker, widgets
from dpnb.notebook import panel as snapshots
from dpnb.render import sessions
from dpnb.render.refusals import EXPLANATIONS
from dpnb.session import snapshot
from dpnb.threads import ThreadTask
from fake_connection import CURRENT, LOST, FakeConnection
from waiting import wait_until

TABLE = pd.DataFrame({"x": [1.0, 2.0, 3.0] * 20, "plan": ["a", "b", "c"] * 20})


@pytest.fixture
def session(request: pytest.FixtureRequest) -> dpnb.Session:
    """A session that believes its table to be elsewhere."""
    session = dpnb.Session(
        TABLE,
        name=re.sub(r"\W", "-", request.node.name).rstrip("-"),
        schema={"x": dpnb.Bounded(0, 5), "plan": dpnb.Categories(["a", "b", "c"])},
        budget=dpnb.Budget.gdp(1),
        public_size=60,
        ledger=":memory:",
    )
    session._core.connection = FakeConnection(session._core.changed)
    return session


@pytest.fixture
def connection(session: dpnb.Session) -> FakeConnection:
    connection = session._core.connection
    assert isinstance(connection, FakeConnection)
    return connection


def shown(session: dpnb.Session) -> ConnectionSnapshot | None:
    return snapshot.snapshot(session).connection


def words(text: str) -> str:
    """A text without the breaks between its lines, and without HTML's escapes."""
    return " ".join(html.unescape(text).split())


def test_local_session_has_no_connection() -> None:
    session = dpnb.Session(
        TABLE, name="local", schema={"x": dpnb.Bounded(0, 5)}, budget=dpnb.Budget.gdp(1), ledger=":memory:"
    )
    assert shown(session) is None
    assert session._core.connection is None
    for output in (str(session), repr(session), session._repr_html_() or ""):
        assert "table on" not in output
        assert "out of date" not in output.lower()


def test_sub_sessions_and_parts_share_the_connection(session: dpnb.Session, connection: FakeConnection) -> None:
    plans = session.partition("plan", max_parts_per_unit=1)
    colleague = session.delegate(share=0.1, name="colleague")
    connection.is_current = False
    for child in (plans["a"], colleague, colleague.partition("plan", max_parts_per_unit=1)["b"]):
        assert child._core.connection is connection
        assert LOST[1:] in words(str(child))


@pytest.mark.parametrize("is_current", [True, False])
def test_every_output_shows_the_state_of_the_connection(
    session: dpnb.Session, connection: FakeConnection, is_current: bool
) -> None:
    connection.is_current = is_current
    assert shown(session) == ConnectionSnapshot(connection.where, is_current, CURRENT if is_current else LOST)
    for output in (str(session), repr(session), session._repr_html_() or ""):
        assert f"table {connection.where}" in words(output)
        assert (f"O{LOST[1:]}. All figures here are the last known." in words(output)) is not is_current
        assert (CURRENT in output) is is_current


def test_figures_that_are_out_of_date_are_dimmed_in_static_html(
    session: dpnb.Session, connection: FakeConnection
) -> None:
    assert "grayscale" not in str(session._repr_html_())
    connection.is_current = False
    before, dimmed, figures = str(session._repr_html_()).partition("filter:grayscale(1)")
    assert dimmed
    assert LOST[1:] in before, "the explanation is not dimmed"
    assert 'role="meter"' in figures


def test_texts_of_a_connection_are_escaped(session: dpnb.Session, connection: FakeConnection) -> None:
    connection.where = "on <b>a server</b>\x1b[2J"
    assert "<b>a server" not in str(session._repr_html_())
    assert "\x1b" not in str(session) + repr(session)


def test_session_whose_ledger_cannot_be_read_shows_its_connection(
    session: dpnb.Session, connection: FakeConnection
) -> None:
    connection.is_current = False
    state = snapshot.unreadable_snapshot(session, dpnb.errors.LedgerError("the copy of the ledger is incomplete"))
    assert state.connection == ConnectionSnapshot(connection.where, False, LOST)
    assert LOST[1:] in words(sessions.render_text(state))


def test_state_is_explained() -> None:
    assert OUT_OF_DATE in [one.id for one in EXPLANATIONS]


# --- live ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[dict]]:
    """The snapshots that a page received; they come from this process's sessions."""
    received: list[dict] = []
    local = panel.Panel(lambda answer: lambda message: received.append(message["dpnb"]), interval=0.01)
    monkeypatch.setattr(panel, "on_flush", local.on_flush)
    local.install(snapshots.sessions)
    open_sessions.subscribe(local.publish)
    yield received
    open_sessions.unsubscribe(local.publish)


def newest(page: list[dict], session: dpnb.Session) -> dict | None:
    """The connection in the last snapshot of a session."""
    found = [one["connection"] for one in page[-1]["sessions"] if one["id"] == session.id]
    return found[0] if found else None


def test_change_in_another_thread_reaches_panel_gauges_and_picker(
    session: dpnb.Session, connection: FakeConnection, page: list[dict]
) -> None:
    gauges = widgets.gauges(snapshot.snapshot(session))
    choice = picker.Picker(session.frame["x"].mean())
    choice.show()
    state = choice.state
    for is_current in (False, True):
        task = ThreadTask(lambda now=is_current: connection.set(is_current=now))
        task.start()
        task.result()
        wait_until(lambda now=is_current: (newest(page, session) or {}).get("is_current") is now, "the panel")
        wait_until(lambda now=is_current: gauges.state["connection"]["is_current"] is now, "the gauges")
        wait_until(lambda now=is_current: (choice.connection or {}).get("is_current") is now, "the picker")
    assert choice.state is state, "the figures of the slider are not computed again"


def test_page_shows_a_lost_connection_while_a_release_waits_for_the_service(
    session: dpnb.Session, connection: FakeConnection, page: list[dict], monkeypatch: pytest.MonkeyPatch
) -> None:
    choice = picker.Picker(session.frame["x"].mean())
    choice.show()
    waits, may_go_on = threading.Event(), threading.Event()

    def release(*_: object, **__: object) -> None:
        waits.set()
        wait_until(may_go_on.is_set, "the test")
        raise dpnb.errors.RequestError("the service cannot be reached")

    monkeypatch.setattr(session._core.releases, "release", release)
    content = {"method": "release", "target": choice.state["options"][0]["target"], "id": "1"}
    task = ThreadTask(lambda: choice._on_message(choice, content, None))
    task.start()
    try:
        wait_until(waits.is_set, "the release")
        connection.set(is_current=False)
        wait_until(lambda: (choice.connection or {}).get("is_current") is False, "the picker")
        assert (newest(page, session) or {})["is_current"] is False
    finally:
        may_go_on.set()
        task.result()
    assert choice.state["refusal"]["message"] == "the service cannot be reached"


@pytest.mark.parametrize("sender", ["panel", "gauges", "picker"])
def test_pages_can_reconnect(session: dpnb.Session, connection: FakeConnection, sender: str) -> None:
    connection.comes_back = True
    message = {"method": "reconnect"}

    def send() -> None:
        if sender == "panel":
            request = msgspec.convert(message, panel.PanelRequest)
            extension._on_request(request)
        elif sender == "gauges":
            widgets._on_message(widgets.gauges(snapshot.snapshot(session)), message, None)
        else:
            choice = picker.Picker(session.frame["x"].mean())
            choice._on_message(choice, message, None)

    send()
    assert connection.n_refreshed == 0, "it is up to date"
    connection.is_current = False
    send()
    assert (connection.n_refreshed, connection.is_current) == (1, True)


def test_sessions_on_one_connection_reconnect_once(session: dpnb.Session, connection: FakeConnection) -> None:
    colleague = session.delegate(share=0.1, name="colleague")
    connection.is_current = False
    snapshots.reconnect()
    assert connection.n_refreshed == 1
    assert colleague._core.connection is connection


def test_other_messages_to_gauges_are_ignored(session: dpnb.Session, connection: FakeConnection) -> None:
    connection.is_current = False
    gauges = widgets.gauges(snapshot.snapshot(session))
    for content in ({"method": "release", "target": {"mu": "1"}, "id": "1"}, {}, None, "reconnect", [1]):
        widgets._on_message(gauges, content, None)
    assert connection.n_refreshed == 0
    assert not re.search("mean|count", str(session.log["query"].tolist()))
