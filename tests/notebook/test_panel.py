"""Facts about the kernel end of the panel, without a kernel."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from dpnb.notebook import panel as module
from dpnb.notebook.panel import LOG_ROWS, VERSION, Panel
from waiting import LIMIT, wait_until

pytestmark = pytest.mark.waits

INTERVAL = 0.05
FIXTURE = Path(__file__).parents[1] / "fixtures" / "snapshot.json"


class FakeChannel:
    """The way to a browser that writes down what it is told."""

    def __init__(self) -> None:
        self.messages: list[dict] = []
        self.logs: list[dict] = []
        self.ask: Callable[[dict], None] = lambda request: None
        self.opened = 0

    def open(self, answer: Callable[[dict], None]) -> Callable[[dict], None]:
        self.ask = answer
        self.opened += 1
        return self.send

    def send(self, message: dict) -> None:
        if "dpnb" in message:
            self.messages.append(message["dpnb"])
        else:
            self.logs.append(message["dpnb_log"])

    def wait_for(self, told: object) -> None:
        """Wait until the last message holds these sessions."""
        wait_until(
            lambda: self.messages and self.messages[-1]["sessions"] == told,
            f"told {told!r}",
            lambda: f"Last told: {self.messages[-1:]!r}.",
        )


class Clock:
    """Stands in for the module `time`: nothing passes unless a test says so."""

    def __init__(self) -> None:
        self._now = 0.0
        self._passes = threading.Condition()

    def monotonic(self) -> float:
        return self._now

    def sleep(self, seconds: float) -> None:
        with self._passes:
            end = self._now + seconds
            self._passes.wait_for(lambda: self._now >= end, timeout=LIMIT)

    def advance(self, seconds: float) -> None:
        with self._passes:
            self._now += seconds
            self._passes.notify_all()


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of a panel that is made after it."""
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
def channel() -> FakeChannel:
    return FakeChannel()


@pytest.fixture
def state() -> list[dict]:
    return [{"id": "a", "step": 0}]


@pytest.fixture
def panel(channel: FakeChannel, state: list[dict]) -> Panel:
    panel = Panel(channel.open, interval=INTERVAL)
    panel.install(lambda: [dict(session) for session in state])
    return panel


def test_first_state_is_sent_at_once(panel: Panel, channel: FakeChannel) -> None:
    assert [message["sessions"] for message in channel.messages] == [[{"id": "a", "step": 0}]]


def test_message_has_the_fields_of_the_shared_snapshot(panel: Panel, channel: FakeChannel) -> None:
    assert set(channel.messages[0]) == set(json.loads(FIXTURE.read_text(encoding="utf-8")))
    assert channel.messages[0]["version"] == VERSION == json.loads(FIXTURE.read_text(encoding="utf-8"))["version"]
    assert time.strptime(channel.messages[0]["time"], "%Y-%m-%dT%H:%M:%SZ")


def test_thousand_quick_changes_are_one_message_after_the_interval(
    clock: Clock, panel: Panel, channel: FakeChannel, state: list[dict]
) -> None:
    for step in range(1, 1001):
        state[0]["step"] = step
        panel.publish()
    assert len(channel.messages) == 1, "the first state"
    clock.advance(INTERVAL)
    channel.wait_for([{"id": "a", "step": 1000}])
    assert len(channel.messages) == 2


def test_steady_changes_are_told_steadily_but_not_faster_than_the_interval(
    clock: Clock, panel: Panel, channel: FakeChannel, state: list[dict]
) -> None:
    for number in range(1, 8):
        for _ in range(4):
            state[0]["step"] += 1
            panel.publish()
            clock.advance(INTERVAL / 5)
        assert len(channel.messages) == number, "the interval is not over"
        clock.advance(INTERVAL / 4)
        channel.wait_for([dict(state[0])])
        assert len(channel.messages) == number + 1


def test_numbers_grow_and_the_process_keeps_its_name(panel: Panel, channel: FakeChannel) -> None:
    for _ in range(3):
        panel.flush()
    assert [message["seq"] for message in channel.messages] == [1, 2, 3, 4]
    assert len({message["process_id"] for message in channel.messages}) == 1


def test_every_process_has_a_name_of_its_own(panel: Panel, channel: FakeChannel) -> None:
    other = FakeChannel()
    Panel(other.open).install(list)
    assert other.messages[0]["process_id"] != channel.messages[0]["process_id"]


def test_browser_that_asks_is_answered(panel: Panel, channel: FakeChannel, state: list[dict]) -> None:
    state[0]["step"] = 5
    channel.ask({"method": "request_snapshot"})
    channel.wait_for([{"id": "a", "step": 5}])


def test_whole_log_is_told_in_parts_to_whom_asks(channel: FakeChannel) -> None:
    rows = [{"id": number} for number in range(1, 2 * LOG_ROWS + 8)]
    panel = Panel(channel.open, interval=INTERVAL)
    panel.install(list, lambda session, start, most: (len(rows), rows[start : start + most] if session == "a" else []))
    channel.ask({"method": "request_log", "session": "a"})
    assert [row for part in channel.logs for row in part["rows"]] == rows
    assert [part["start"] for part in channel.logs] == [0, LOG_ROWS, 2 * LOG_ROWS]
    assert {(part["version"], part["session"], part["total"], part["process_id"]) for part in channel.logs} == {
        (VERSION, "a", len(rows), channel.messages[0]["process_id"])
    }


@pytest.mark.parametrize(
    "request_", [{}, {"method": "request_log"}, {"method": "request_log", "session": 3}, {"method": "spend", "mu": 1}]
)
def test_what_nobody_understands_is_not_answered(panel: Panel, channel: FakeChannel, request_: dict) -> None:
    told = len(channel.messages)
    channel.ask(request_)
    assert (len(channel.messages), channel.logs) == (told, [])


def test_flush_does_not_wait(panel: Panel, channel: FakeChannel, state: list[dict]) -> None:
    state[0]["step"] = 7
    panel.flush()
    assert channel.messages[-1]["sessions"] == [{"id": "a", "step": 7}]


def test_changes_from_many_threads_end_at_the_last_state(panel: Panel, channel: FakeChannel, state: list[dict]) -> None:
    lock = threading.Lock()

    def work() -> None:
        for _ in range(200):
            with lock:
                state[0]["step"] += 1
            panel.publish()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    channel.wait_for([{"id": "a", "step": 800}])
    assert [message["seq"] for message in channel.messages] == list(range(1, len(channel.messages) + 1))


def test_caller_may_hold_a_lock_that_the_snapshot_needs(clock: Clock, channel: FakeChannel) -> None:
    lock = threading.RLock()
    panel = Panel(channel.open, interval=INTERVAL)
    is_asked = threading.Event()
    told = 0

    def snapshot() -> list[dict]:
        is_asked.set()
        with lock:
            return [{"id": "a", "step": told}]

    panel.install(snapshot)
    is_asked.clear()
    with lock:
        panel.publish()  # too early: another thread sends it after the interval
        clock.advance(INTERVAL)
        wait_until(is_asked.is_set, "the other thread takes a snapshot, for which it needs the lock")
        told = 1
        panel.publish()
        panel.flush()
    channel.wait_for([{"id": "a", "step": 1}])


def test_widgets_follow_every_flush_once(panel: Panel, channel: FakeChannel) -> None:
    heard: list[list[dict]] = []
    panel.on_flush(heard.append)
    panel.on_flush(heard.append)
    panel.flush()
    assert heard == [channel.messages[-1]["sessions"]]


def test_installing_again_uses_the_same_channel(panel: Panel, channel: FakeChannel) -> None:
    panel.install(lambda: [{"id": "b"}])
    channel.wait_for([{"id": "b"}])
    assert channel.opened == 1
    assert len({message["process_id"] for message in channel.messages}) == 1


def test_snapshot_that_fails_hurts_no_caller_and_quotes_nothing(
    channel: FakeChannel, caplog: pytest.LogCaptureFixture
) -> None:
    is_broken = True

    def snapshot() -> list[dict]:
        if is_broken:
            raise ValueError("secret row 17")
        return []

    panel = Panel(channel.open, interval=INTERVAL)
    with caplog.at_level(logging.ERROR, "dpnb"):
        panel.install(snapshot)
    assert "ValueError" in caplog.text
    assert "secret" not in caplog.text
    is_broken = False
    panel.flush()
    assert channel.messages[-1]["sessions"] == []


def test_interrupt_during_a_flush_does_not_silence_the_panel(channel: FakeChannel) -> None:
    is_interrupted = True

    def snapshot() -> list[dict]:
        if is_interrupted:
            raise KeyboardInterrupt
        return []

    panel = Panel(channel.open, interval=INTERVAL)
    with pytest.raises(KeyboardInterrupt):
        panel.install(snapshot)
    is_interrupted = False
    panel.flush()
    assert channel.messages[-1]["sessions"] == []


def test_panel_without_a_browser_takes_no_snapshot() -> None:
    taken: list[int] = []
    panel = Panel(lambda answer: None)
    panel.install(lambda: taken.append(1) or [])
    panel.publish()
    panel.flush()
    assert taken == []


def test_forked_child_does_not_write_to_its_parents_sockets(
    panel: Panel, channel: FakeChannel, monkeypatch: pytest.MonkeyPatch
) -> None:
    sent = len(channel.messages)
    monkeypatch.setattr(os, "getpid", lambda: -2)
    panel.flush()
    assert len(channel.messages) == sent


def test_plain_python_publishes_nothing_and_imports_no_front_end() -> None:
    code = """
import sys
import dpnb.notebook.panel as panel
panel.install(list)
panel.publish()
panel.flush()
heavy = {"IPython", "comm", "ipywidgets", "anywidget", "traitlets"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else 0)
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=LIMIT)
