"""While an engine works nothing that a process prints, logs or warns of is seen, and afterwards everything is."""

from __future__ import annotations

import ctypes
import io
import linecache
import logging
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dpnb._backends import quiet
from dpnb.progress import Line, _own
from threads import at_once, joined
from waiting import LIMIT

pytestmark = pytest.mark.waits


@contextmanager
def watched() -> Iterator[Callable[[], str]]:
    """Everything that goes to descriptors 1 and 2, and to Python's streams; in the test, for pytest has its own."""
    out, streams_before = os.pipe(), (sys.stdout, sys.stderr)
    saved = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    for descriptor in saved:
        os.dup2(out[1], descriptor)
    text = io.StringIO()
    sys.stdout = sys.stderr = text
    os.set_blocking(out[0], False)

    def seen() -> str:
        try:
            piped = os.read(out[0], 2**16).decode()
        except BlockingIOError:
            piped = ""
        printed = text.getvalue()
        text.seek(0)
        text.truncate()
        return piped + printed

    try:
        yield seen
    finally:
        sys.stdout, sys.stderr = streams_before
        for descriptor, copy in saved.items():
            os.dup2(copy, descriptor)
            os.close(copy)
        for end in out:
            os.close(end)


def raised_in_a_thread() -> None:
    def fail() -> None:
        raise ValueError("secret")

    thread = threading.Thread(target=fail)
    thread.start()
    joined(thread)


class Unraisable:
    def __del__(self) -> None:
        raise ValueError("secret")


def logged() -> None:
    log = logging.getLogger("somebody's own")
    handler = logging.StreamHandler(sys.__stderr__)
    log.addHandler(handler)
    handler.setStream(os.fdopen(os.dup(2), "w"))
    try:
        log.error("secret")
        handler.flush()
    finally:
        log.removeHandler(handler)
        handler.stream.close()


WAYS: dict[str, Callable[[], object]] = {
    "print": lambda: print("secret"),
    "standard error": lambda: print("secret", file=sys.stderr),
    "bytes": lambda: sys.stdout.buffer.write(b"secret") if hasattr(sys.stdout, "buffer") else print("secret"),
    "descriptor 1": lambda: os.write(1, b"secret"),
    "descriptor 2": lambda: os.write(2, b"secret"),
    "C": lambda: ctypes.CDLL(None).dprintf(2, b"secret"),
    "a process": lambda: subprocess.run([sys.executable, "-c", "print('secret')"], check=True, timeout=LIMIT),
    "a thread that fails": raised_in_a_thread,
    "an object that cannot be deleted": lambda: Unraisable().__class__,
    "a warning": lambda: warnings.warn("secret", stacklevel=1),
    "a log": logged,
}


@pytest.mark.skipif(sys.platform == "win32", reason="C's name for it is another")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("way", WAYS)
def test_nothing_is_seen_until_the_engine_is_done(way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched() as both:
        # Python's own, in the place of pytest's.
        monkeypatch.setattr(threading, "excepthook", threading.__excepthook__)
        monkeypatch.setattr(sys, "unraisablehook", sys.__unraisablehook__)
        monkeypatch.setattr(warnings, "showwarning", lambda text, *rest: print(text, file=sys.stderr))
        with warnings.catch_warnings():
            warnings.simplefilter("always")
            with quiet.discard_output():
                WAYS[way]()
            assert both() == ""
            WAYS[way]()  # the control
            assert "secret" in both()


def test_what_was_printed_before_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched() as both:
        with os.fdopen(1, "w", closefd=False) as buffered:
            monkeypatch.setattr(sys, "stdout", buffered)
            buffered.write("before")
            with quiet.discard_output():
                buffered.write("secret")  # by somebody who keeps a reference to it
        assert both() == "before"


def test_of_several_questions_the_last_ends_it() -> None:
    with watched() as both:
        first, second = quiet.discard_output(), quiet.discard_output()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        os.write(2, b"secret")
        print("secret")
        second.__exit__(None, None, None)
        os.write(2, b"shown")
        assert both() == "shown"


def test_what_an_interrupt_left_behind_is_not_seen_and_hides_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched() as both:
        waiting, left = quiet.discard_output(), quiet.discard_output(waited_for=False)
        waiting.__enter__()
        left.__enter__()
        waiting.__exit__(None, None, None)  # by an interrupt
        os.write(2, b"secret")
        print("shown")
        left.__exit__(None, None, None)
        os.write(2, b"and this")
        assert both() == "and thisshown\n"


def test_a_terminal_is_given_back_after_an_interrupt(monkeypatch: pytest.MonkeyPatch) -> None:
    with watched() as both, os.fdopen(1, "w", closefd=False) as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        waiting, left = quiet.discard_output(), quiet.discard_output(waited_for=False)
        waiting.__enter__()
        left.__enter__()
        waiting.__exit__(None, None, None)
        print("shown", flush=True)
        left.__exit__(None, None, None)
        assert both() == "shown\n"


@pytest.mark.parametrize(
    "place", ["_exchange", "_restore_python_streams", "_restore_descriptors", "_flush", "redirect_to_null"]
)
def test_an_interrupt_at_any_step_takes_all_of_them_back(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with watched() as both:
        real = getattr(quiet, place)
        calls: list[int] = []

        def interrupted(*given: object) -> None:
            real(*given)
            calls.append(1)
            if len(calls) == 1:
                raise KeyboardInterrupt

        monkeypatch.setattr(quiet, place, interrupted)
        before = sys.stdout, sys.stderr, logging.root.manager.disable, quiet.identities()
        with pytest.raises(KeyboardInterrupt), quiet.discard_output():
            pass
        assert (sys.stdout, sys.stderr, logging.root.manager.disable, quiet.identities()) == before
        os.write(2, b"shown")
        assert both() == "shown"


def interrupted_at(line: int, act: Callable[[], None]) -> bool:
    """Interrupt before some line of what disables logging, counted from its beginning; whether it got there."""
    lines = 0

    def trace(frame: Any, event: str, argument: object) -> Any:
        nonlocal lines
        if frame.f_code.co_filename != logging.__file__ and "disable" not in frame.f_code.co_name:
            return None
        # Python handles no signal on its way into or out of a `with`, where a trace would be told of the line.
        source = linecache.getline(frame.f_code.co_filename, frame.f_lineno).strip()
        here = event == "line" and not source.startswith("with")
        lines += here
        if here and lines == line:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    except KeyboardInterrupt:
        return True
    finally:
        sys.settrace(before)
    return False


def lock_is_left(act: Callable[[], None]) -> bool:
    """Whether an interrupt at any line leaves the lock of `logging` to a thread that has long gone on."""
    line, left = 1, False
    while interrupted_at(line, act):
        got: list[bool] = []

        def take(got: list[bool] = got) -> None:
            got.append(logging._lock.acquire(blocking=False))  # type: ignore[attr-defined]
            if got == [True]:
                logging._lock.release()  # type: ignore[attr-defined]

        assert at_once(take) == []
        if got == [False]:
            left = True
            logging._lock.release()  # type: ignore[attr-defined]
        line += 1
    assert line > 3
    return left


def test_an_interrupt_leaves_no_lock_of_logging_behind() -> None:
    """Another thread, as one that asks an engine, would wait for it for ever."""
    before = logging.root.manager.disable
    assert not lock_is_left(lambda: quiet._disable_logging(before))
    assert logging.root.manager.disable == before


@pytest.mark.skipif(sys.version_info >= (3, 13), reason="from 3.13 on logging.disable releases its lock")
def test_with_the_function_of_the_library_an_interrupt_leaves_a_lock_behind() -> None:
    assert lock_is_left(lambda: logging.disable(logging.root.manager.disable))


def test_a_descriptor_that_cannot_be_kept_ends_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    def none_left(descriptor: int) -> int:
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "dup", none_left)
    with pytest.raises(OSError, match="Too many"), quiet.discard_output():
        pytest.fail("it was asked")
    assert not isinstance(sys.stdout, type(None))
    assert sys.stdout is not quiet._nowhere


def test_where_streams_lead_is_known_while_they_lead_nowhere() -> None:
    with watched() as both:
        before = quiet.identities()
        with quiet.discard_output():
            assert quiet.identities() == before
            assert quiet.identity(2) not in before
        assert both() == ""


def test_a_line_in_a_terminal_goes_on() -> None:
    with watched() as both:
        with os.fdopen(2, "w", closefd=False) as terminal:
            tell = Line(_own(terminal))
            control = Line(terminal)
        with quiet.discard_output():
            tell("adding up rows, 2 s", False)
            control._out = sys.stderr
            control("not seen", False)
        assert both().strip() == "adding up rows, 2 s"


def test_loggers_of_engines_are_silent_for_good(caplog: pytest.LogCaptureFixture) -> None:
    names = ("distributed.worker", "py4j", "dask")

    def logged() -> list[str]:
        for name in (*names, "distributed.made later"):
            logging.getLogger(name).error("secret")
        logging.getLogger("asyncio").error("shown")
        log = logging.getLogger("asyncio").error
        waiting = threading.Thread(target=log, args=("secret",), name=quiet.DASK_THREAD)
        waiting.start()
        joined(waiting)
        said = [record.getMessage() for record in caplog.records]
        caplog.clear()
        return said

    for name in (*names, "distributed"):
        logging.getLogger(name).disabled = False
        logging.getLogger(name).setLevel(logging.WARNING)
    logging.getLogger("asyncio").removeFilter(quiet._not_of_dask)
    assert logged() == ["secret"] * 4 + ["shown", "secret"]  # the control
    quiet.silence()
    assert logged() == ["shown"]
