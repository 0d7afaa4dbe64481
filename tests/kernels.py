"""Kernels for tests: real processes that share a ledger, and can be killed between any two steps."""

from __future__ import annotations

import faulthandler
import multiprocessing
import os
import resource
import signal
import sqlite3
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pandas as pd

import dpnb
from dpnb._backends.memory import memory_backend
from dpnb._core.execution import releases
from dpnb.errors import BudgetExceeded, LedgerError
from dpnb.ledger import sqlite_file
from dpnb.results.answer import Answer
from waiting import LIMIT

# Each process is forked from a clean one that has imported the slow parts: quick, and without pytest's own state.
CONTEXT = multiprocessing.get_context("forkserver")
CONTEXT.set_forkserver_preload(
    [
        "mpmath",
        "pandas",
        "scipy.special",
        "dpnb.session.session",
        "dpnb.service.server",
        "dpnb.__main__",
        "dpnb.curator.draft",
        "dpnb.curator.personal_statement",
        "dpnb.service.database_snapshots",
        "multiprocessing.resource_sharer",
        "narwhals._pandas_like.namespace",
        "pyarrow.pandas_compat",
    ]
)
sqlite_file.SYNCHRONOUS = "OFF"  # in the processes too: see conftest.py

PEOPLE = 200
FIRST, TIGHTER = "0.3", "0.5"


def table() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "person": [f"p{i // 2}" for i in range(2 * PEOPLE)],
            "visits": [i % 11 for i in range(2 * PEOPLE)],
        }
    )


def open_session(path: Path, **changes: Any) -> dpnb.Session:
    arguments: dict[str, Any] = {
        "name": "clinic",
        "privacy_unit": "person",
        "max_rows_per_unit": 2,
        "budget": dpnb.Budget.gdp(1),
        "schema": {"visits": dpnb.Bounded(0, 1000)},
        "ledger": path,
    }
    return dpnb.Session(table(), **{**arguments, **changes})


def ask(session: dpnb.Session, number: int, mu: object) -> Answer:
    """Release one of as many different questions as there are numbers."""
    frame = session.frame
    return frame[frame["visits"] >= number].count().release(mu=mu)


def figures(answer: Answer) -> tuple[Any, ...]:
    """What an analyst sees of a total; equal exactly if it is the very same answer."""
    return answer.estimate, answer.interval, answer.noise_scale, answer.cost, answer.total_loss, answer.time


def _begun(work: Callable[..., None], stacks: str, *arguments: Any) -> None:
    """What a kernel's process runs: `work`, ready to write on a signal where its threads are."""
    faulthandler.register(signal.SIGUSR1, file=open(stacks, "w"))  # noqa: SIM115  (open until the process ends)
    work(*arguments)


class Kernel:
    """A process that runs ``work(pipe, *arguments)``."""

    def __init__(self, work: Callable[..., None], *arguments: Any) -> None:
        self.pipe, theirs = CONTEXT.Pipe()
        descriptor, stacks = tempfile.mkstemp(prefix="kernel-", suffix=".stacks")
        os.close(descriptor)
        self._stacks = Path(stacks)
        self._heard: Any = "nothing"
        self.process = CONTEXT.Process(target=_begun, args=(work, stacks, theirs, *arguments))
        self.process.start()
        theirs.close()

    def hear(self) -> Any:
        """The next thing that the kernel says."""
        assert self.pipe.poll(LIMIT), f"the kernel says nothing more within {LIMIT:.0f} s. {self._state()}"
        self._heard = self.pipe.recv()
        return self._heard

    def last_word(self) -> Any:
        """What it says once it has done long work; it is not given up before it has ended."""
        wait([self.pipe, self.process.sentinel])
        return self.hear()

    def said(self) -> Iterator[Any]:
        """Everything it says until it ends, however it ends."""
        while True:
            try:
                yield self.hear()
            except (EOFError, ConnectionError):  # also in the middle of a word
                return

    def interrupt(self) -> None:
        """As the Lab's Kernel > Interrupt."""
        os.kill(self.process.pid or 0, signal.SIGINT)

    def kill(self) -> None:
        """Kill -9."""
        self.process.kill()

    def end(self) -> int:
        """Wait for its end and give its exit code."""
        self.process.join(LIMIT)
        code = self.process.exitcode
        state = self._state() if code is None else ""
        self.process.kill()
        self.process.join()
        self.process.close()
        self.pipe.close()
        self._stacks.unlink()
        assert code is not None, f"the kernel does not end within {LIMIT:.0f} s. {state}"
        return code

    def _state(self) -> str:
        """What there is to see of it from outside."""
        code = self.process.exitcode
        if code is None:
            os.kill(self.process.pid or 0, signal.SIGUSR1)
            self.process.join(1)  # it writes within milliseconds, or not at all
        where = self._stacks.read_text() or "no stacks"
        return f"Last heard: {str(self._heard)[-500:]}; exit code: {code}.\n{where}"


@contextmanager
def kernels(*started: Kernel) -> Iterator[tuple[Kernel, ...]]:
    """Kernels that are gone after the block, whatever happens in it."""
    try:
        yield started
    finally:
        for kernel in started:
            if not kernel.pipe.closed:
                kernel.kill()
                kernel.end()


# --- what kernels do -----------------------------------------------------------------------------------------------


class Steps:
    """Counts what this process does and kills it just before one step.

    A step is a statement that SQLite starts, a reading of rows, or a drawing of noise.
    """

    def __init__(self, last: int | None) -> None:
        self.names: list[str] = []
        self._last = last

    def __call__(self, name: str) -> None:
        self.names.append(" ".join(name.split()[:3]))
        if len(self.names) == self._last:
            os.kill(os.getpid(), signal.SIGKILL)

    def watch(self) -> None:
        """From now on."""
        connect, execute, measure = sqlite3.connect, memory_backend.execute, releases.measure

        def connecting(*arguments: Any, **options: Any) -> sqlite3.Connection:
            connection = connect(*arguments, **options)
            connection.set_trace_callback(self)
            return connection

        def reading(*arguments: Any) -> Any:
            self("rows are read")
            return execute(*arguments)

        def drawing(*arguments: Any, **options: Any) -> Any:
            self("noise is drawn")
            return measure(*arguments, **options)

        sqlite3.connect = connecting  # type: ignore[assignment]
        memory_backend.execute = reading
        releases.measure = drawing


def look_twice(pipe: Connection, path: Path, last: int | None) -> None:
    """Open, ask, refine; say each answer, then the steps that were taken."""
    steps = Steps(last)
    steps.watch()
    session = open_session(path)
    for mu in (FIRST, TIGHTER):
        pipe.send((mu, figures(ask(session, 0, mu))))
    pipe.send((None, steps.names))


def ask_without_end(pipe: Connection, path: Path, first: int, mu: str) -> None:
    """Ask one question after the other and say each answer."""
    session = open_session(path, budget=dpnb.Budget.gdp(100))
    pipe.send("ready")
    number = first
    while True:
        pipe.send((number, figures(ask(session, number, mu))))
        number += 1


def race(pipe: Connection, path: Path, numbers: list[int], mu: str, budget: dpnb.Budget) -> None:
    """On a word, ask many questions as fast as possible; say which were admitted."""
    session = open_session(path, budget=budget)
    pipe.send("ready")
    pipe.recv()
    admitted = []
    for number in numbers:
        try:
            ask(session, number, mu)
        except BudgetExceeded:
            continue
        admitted.append(number)
    pipe.send(admitted)


def make_and_ask(pipe: Connection, path: Path) -> None:
    """On a word, open the ledger, which may not be there yet, ask the one question that all ask, say the answer."""
    pipe.send("ready")
    pipe.recv()
    pipe.send(figures(ask(open_session(path), 0, FIRST)))


def ask_slowly(pipe: Connection, path: Path) -> None:
    """Charge, wait for a word before rows are read, answer."""
    session = open_session(path)
    execute = memory_backend.execute

    def waiting(*arguments: Any) -> Any:
        pipe.send("charged")
        pipe.recv()
        return execute(*arguments)

    memory_backend.execute = waiting
    pipe.send(figures(ask(session, 0, FIRST)))


def fork_and_ask(pipe: Connection, path: Path | str) -> None:
    """Open a session, ask in a fork of this process; say what the fork got, and what is spent here."""
    session = open_session(path)  # type: ignore[arg-type]
    child = os.fork()
    if child == 0:
        try:
            ask(session, 0, FIRST)
            pipe.send("answered")
        except LedgerError as error:
            pipe.send(str(error))
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    pipe.send(figures(ask(session, 0, FIRST)))


def fill_the_disk(pipe: Connection, path: Path, room: int) -> None:
    """Ask until files cannot grow beyond `room` bytes; say the answers, then the error."""
    session = open_session(path, budget=dpnb.Budget.gdp(100))
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, room))
    for number in range(1000):
        try:
            answer = ask(session, number, "0.1")
        except LedgerError as error:
            pipe.send((None, str(error)))
            return
        pipe.send((number, figures(answer)))
