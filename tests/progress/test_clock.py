"""Long work tells its stage and its time, and nothing else, to an observer; short work tells nothing."""

from __future__ import annotations

import io
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from traceback import walk_stack

import pytest

from dpnb import progress
from dpnb.progress import Line, ProgressTask, Stage, _ProgressThread, at, line
from dpnb.progress import work as begin
from threads import joined
from waiting import LIMIT, wait_until


class Onlooker:
    """Hears what is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, bool]] = []
        self.heard = threading.Condition()
        self.begun = 0

    def line(self) -> progress.ShowText:
        self.begun += 1
        return self._show_text

    def _show_text(self, text: str, done: bool) -> None:
        with self.heard:
            self.told.append((text, done))
            self.heard.notify_all()

    def wait_for(self, words: str) -> None:
        """Until something is told that has these words in it."""
        with self.heard:
            assert self.heard.wait_for(lambda: any(words in text for text, _ in self.told), LIMIT), (words, self.told)


@pytest.fixture
def onlooker() -> Iterator[Onlooker]:
    made = Onlooker()
    progress.show_by(made.line)
    yield made
    progress.show_by(None)
    assert not clocks()


@pytest.fixture
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A line that does not wait for a second of work; that it does is shown by the tests without this."""
    monkeypatch.setattr(progress, "REPORT_AFTER_SECONDS", 0.02)


def clocks() -> list[int]:
    """Threads that show the progress of a task."""
    running = sys._current_frames().items()
    return [
        one for one, frame in running if any(at.f_code is _ProgressThread._run.__code__ for at, _ in walk_stack(frame))
    ]


def test_short_work_tells_nothing(onlooker: Onlooker) -> None:
    with begin(Stage.ADDING):
        pass
    assert onlooker.told == []


def test_nothing_is_said_before_a_second_and_then_the_innermost_stage_and_the_time(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    made = ProgressTask(Stage.READING)
    now = 100.99
    assert made.text() == ""
    now = 101.0
    assert made.text() == "reading the table, 1 s"
    made.stage = Stage.PREPARING
    now = 161.5
    assert made.text() == "preparing columns, 1 min 1 s"


def test_public_words_come_first_and_the_stage_joins_them_once_they_stand_for_a_second(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    made = ProgressTask(Stage.ADDING)
    made.report("step 1 of 9")
    assert made.text() == "step 1 of 9"
    now = 5.0
    made.report("step 2 of 9")
    now = 5.9
    assert made.text() == "step 2 of 9; 5 s"
    now = 6.1
    assert made.text() == "step 2 of 9; adding up rows, 6 s"
    assert made.last == "step 2 of 9"


@pytest.mark.waits
def test_line_follows_the_stages_and_goes_when_the_work_ends(onlooker: Onlooker) -> None:
    with begin(Stage.CHARGING), begin(Stage.READING):
        with at(Stage.ADDING):
            onlooker.wait_for("adding up rows")
        onlooker.wait_for("reading the table")
    assert onlooker.begun == 1
    assert onlooker.told[-1] == ("", True)
    assert [done for _, done in onlooker.told[:-1]] == [False] * (len(onlooker.told) - 1)
    words = "|".join(stage.value for stage in Stage)
    assert all(re.fullmatch(rf"({words}), \d+ s", text) for text, _ in onlooker.told[:-1])


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
@pytest.mark.waits
@pytest.mark.usefixtures("at_once")
def test_line_goes_however_the_work_ends(onlooker: Onlooker, error: type[BaseException]) -> None:
    def fail() -> None:
        with begin(Stage.ADDING):
            onlooker.wait_for("adding up rows")
            raise error

    with pytest.raises(error):
        fail()
    assert onlooker.told[-1] == ("", True)
    assert not clocks()
    with begin(Stage.NOISE):  # not taken for a part of what has ended
        assert onlooker.begun == 2


@pytest.mark.waits
@pytest.mark.usefixtures("at_once")
def test_each_thread_has_its_own_work_and_a_stage_outside_work_is_nothing(onlooker: Onlooker) -> None:
    def other() -> None:
        with at(Stage.NOISE):
            pass
        with begin(Stage.GROUPS):
            onlooker.wait_for("discovering groups")

    with begin(Stage.ADDING):
        thread = threading.Thread(target=other)
        thread.start()
        onlooker.wait_for("adding up rows")
        joined(thread)
    assert onlooker.begun == 2
    assert not any("noise" in text for text, _ in onlooker.told)


@pytest.mark.waits
@pytest.mark.usefixtures("at_once")
def test_line_is_told_in_the_context_of_whoever_began_the_work() -> None:
    cell: ContextVar[str] = ContextVar("cell", default="another")
    seen: list[str] = []
    told = threading.Event()

    def show_text(text: str, done: bool) -> None:
        seen.append(cell.get())
        told.set()

    cell.set("this one")
    progress.show_by(lambda: show_text)
    try:
        with begin(Stage.ADDING):
            cell.set("the next")
            assert told.wait(LIMIT)
    finally:
        progress.show_by(None)
    assert set(seen) == {"this one"}


def _broken_line() -> progress.ShowText:
    raise RuntimeError("the browser is gone")


def _broken_tell() -> progress.ShowText:
    def show_text(text: str, done: bool) -> None:
        raise RuntimeError("the browser is gone")

    return show_text


@pytest.mark.parametrize("broken", [_broken_line, _broken_tell])
def test_what_cannot_be_shown_stops_nothing(
    broken: Callable[[], progress.ShowText], caplog: pytest.LogCaptureFixture
) -> None:
    progress.show_by(broken)
    try:
        with begin(Stage.ADDING) as made:
            made.report("step 1")
    finally:
        progress.show_by(None)
    assert "RuntimeError" in caplog.text
    assert "browser" not in caplog.text


@pytest.mark.waits
def test_a_line_that_hangs_does_not_hold_the_work_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpnb.progress.FINAL_MESSAGE_SECONDS", 0.01)
    hanging = threading.Event()

    def show_text(text: str, done: bool) -> None:
        hanging.wait(LIMIT)

    progress.show_by(lambda: show_text)
    try:
        with begin(Stage.ADDING) as made:
            made.report("step 1")
    finally:
        progress.show_by(None)
        wait_until(clocks, "the clock")
        hanging.set()
        wait_until(lambda: not clocks(), "the end of the clock")


# --- in a terminal ----------------------------------------------------------------------------------------------------


class Terminal:
    """A screen of one line."""

    def __init__(self) -> None:
        self.screen, self.at = "", 0

    def isatty(self) -> bool:
        return True

    def flush(self) -> None: ...

    def write(self, text: str) -> None:
        for letter in text:
            if letter == "\r":
                self.at = 0
            else:
                self.screen = self.screen[: self.at] + letter + self.screen[self.at + 1 :]
                self.at += 1


def test_terminal_writes_each_text_over_the_last_and_leaves_no_line_that_is_not_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "30")
    terminal = Terminal()
    show_text = Line(terminal)  # type: ignore[arg-type]
    show_text("reading the table, 12 s" + " and more" * 9, False)
    assert terminal.screen.rstrip() == "reading the table, 12 s and m"
    show_text("adding up rows, 13 s", False)
    assert terminal.screen.rstrip() == "adding up rows, 13 s"
    show_text("", True)
    assert terminal.screen.strip() == ""
    assert terminal.at == 0


def test_only_a_terminal_gets_a_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stderr", Terminal())
    assert line() is not None
    monkeypatch.setattr("sys.stderr", io.StringIO())
    assert line() is None
    monkeypatch.setattr("sys.stderr", None)
    assert line() is None
