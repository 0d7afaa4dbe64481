"""A service under hostile load: honest analysts ask, others attack, and it is killed; then the ledger alone is audited.

Every attacker has an address of its own, as analysts on other machines have.
"""

from __future__ import annotations

import json
import os
import random
import resource
import sqlite3
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import dpnb
from dpnb._core.accountant.grant import Mode
from dpnb.errors import DpnbError, ExecutionStopped, ServiceUnavailable
from dpnb.remote.channel import LONGEST_PAUSE
from dpnb.service.access.tokens import new_token
from dpnb.service.configuration.settings import Limits
from kernels import Kernel
from service.bodies import ROWS, session_of, valid_bodies
from service.curating import resume_held
from service.killed import CURATOR, EACH, Shown, check_divided, divided, figures
from service.open_page import OpenPage
from soak.kinds import OF_ANALYSTS, OF_NOBODY, Attacker, Kind, Told, mutate
from soak.watched import OPENING, WatchedService
from waiting import LIMIT, wait_until

HONEST = ("ana0", "ana1")
ANALYSTS = (*HONEST, *OF_ANALYSTS)

MOST_MEMORY = 400.0 + Limits().query_memory_mb
"""Megabytes of the service: what the process and its table take, and the declared figure of a query."""

MOST_WAIT = 60.0
"""Seconds that an honest request takes at most, without the time in which the service is not there.

It waits for at most one piece of work of each of the other seven, and each has its limit (`Limits.work`); on a machine
with two cores that does nothing else the longest takes about four.
"""

MOST_HEALTH = 10.0
"""Seconds until the health check is answered, on a machine that the attackers share with the service."""

MOST_LOG, MOST_LEDGER = 5e6, 50e6
"""Bytes a minute by which the log and the ledger grow."""

MOST_STOP = 90.0
"""Seconds from SIGTERM to the end."""

STORM, CALM = 60.0, 120.0
"""Seconds in which it is killed again and again, and in which it is left alone; kills alone would hide what grows."""

KILLS_PER_MINUTE, BODIES_PER_MINUTE = 5.0, 250.0
"""On average: two hundred and ten thousand in the forty minutes that `make soak` has for this."""

NICE = 10
"""Attackers are on other machines: what they compute does not keep the service waiting."""

PAUSE = 0.2
"""Seconds between two requests of an honest analyst."""


@dataclass(frozen=True)
class Load:
    """How much is done; the smallest is that of a test.

    Parameters
    ----------
    seconds : float
        How long, in each mode.
    modes : tuple of str
        How the budget is divided, one after the other.
    rows : int
        Rows of the table.
    size : float
        Which part of each burst is sent, at most 1.
    """

    seconds: float
    modes: tuple[Mode, ...] = ("reserved", "pooled")
    rows: int = 20_000
    size: float = 1.0


# --- clients, in processes of their own -------------------------------------------------------------------------------


def honest(pipe: Connection, address: str, token: str, first: int) -> None:
    """Ask one question after the other, and say each answer, when it was asked and when it was there."""
    session = None
    number = first
    while not pipe.poll():
        began = time.monotonic()
        try:
            session = session or dpnb.connect(address, "clinic", token=token)
            seen = figures(session, number)
        except ServiceUnavailable as error:
            pipe.send(("later", number, str(error), began, time.monotonic()))
            time.sleep(PAUSE)
            continue
        except ExecutionStopped as error:  # it ran when the service was killed: until the curator has resumed it
            pipe.send(("stopped", number, str(error), began, time.monotonic()))
            time.sleep(PAUSE)
            continue
        except DpnbError as error:
            pipe.send(("refused", number, f"{type(error).__name__}: {error}", began, time.monotonic()))
            number += 1
            time.sleep(1)
            continue
        pipe.send(("answer", number, seen, began, time.monotonic()))
        number += 1
        time.sleep(PAUSE)
    if session is not None:
        session.close()


def hostile(pipe: Connection, attacker: Attacker, kinds: tuple[Kind, ...], bodies_each: float) -> None:
    """One burst after the other; say after each what was found."""
    os.nice(NICE)
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # it computes next to nothing itself
    if mutate in kinds:
        with tempfile.TemporaryDirectory() as folder:
            attacker.bodies = valid_bodies(session_of(ROWS, Path(folder), "bodies"))
    began, bursts = time.monotonic(), 0
    while bursts == 0 or not pipe.poll():
        attacker.chance.choice(kinds)(attacker)
        bursts += 1
        pipe.send((attacker.found, attacker.faults, attacker.told, attacker.slowest))
        attacker.found, attacker.faults, attacker.told = Counter(), {}, {}
        if mutate in kinds:  # as many as are to be sent in all, and not at once
            ahead = bursts * attacker.some(10) / bodies_each - (time.monotonic() - began)
            pipe.poll(max(0.0, min(ahead, LIMIT / 2)))


# --- what they say ----------------------------------------------------------------------------------------------------


@dataclass
class Heard:
    """What all clients have said so far."""

    shown: Shown = field(default_factory=dict)
    waits: list[tuple[float, float]] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    found: Counter[str] = field(default_factory=Counter)
    told: Told = field(default_factory=dict)
    faults: dict[str, bytes] = field(default_factory=dict)
    slowest: dict[str, float] = field(default_factory=dict)
    """Seconds that a hostile analyst waited for a reply, the longest."""
    answers: Counter[str] = field(default_factory=Counter)
    """The number of answers of each honest analyst."""
    since: dict[str, float] = field(default_factory=dict)
    """When each honest analyst who still asks has last said something."""

    def follow(self, kernel: Kernel, name: str) -> None:
        """Hear a client until it ends."""
        if name in HONEST:
            self.since[name] = time.monotonic()
        with suppress(EOFError, ConnectionError):
            while True:
                word = kernel.pipe.recv()
                if name in HONEST:
                    self.since[name] = time.monotonic()
                    self.answers[name] += word[0] == "answer"
                    self._honest(*word)
                else:
                    self._hostile(name, *word)
        self.since.pop(name, None)

    def all_waits(self) -> list[tuple[float, float]]:
        """When each honest request began and ended, those included that have not ended."""
        now = time.monotonic()
        return [*self.waits, *((since, now) for since in list(self.since.values()))]

    def _honest(self, kind: str, number: int, said: Any, began: float, ended: float) -> None:
        self.waits.append((began, ended))
        if kind == "answer":
            self.shown[number] = said
        else:
            self.refused[f"{kind}: {said[:200]}"] += 1

    def _hostile(self, name: str, found: Counter[str], faults: dict[str, bytes], told: Told, slowest: float) -> None:
        self.slowest[name] = max(slowest, self.slowest.get(name, 0.0))
        self.found += found
        for words, sent in faults.items():
            self.faults.setdefault(f"{name or 'nobody'}: {words}", sent)
        for number, ids in told.items():
            self.told.setdefault(number, []).extend(ids)


# --- one mode ---------------------------------------------------------------------------------------------------------


class HostileRun:
    """A service, its clients, and what is measured of them.

    Parameters
    ----------
    folder : Path
        Empty.
    chance : Random
    mode : str
        How the budget is divided.
    load : Load
    """

    def __init__(self, folder: Path, chance: random.Random, mode: Mode, load: Load) -> None:
        self.folder, self.chance, self.mode, self.load = folder, chance, mode, load
        self.ledger = folder / "clinic.dpnb"
        self.page = OpenPage(folder / "tokens.json")
        self.service = WatchedService(folder)
        self.heard, self.faults, self.resumed = Heard(), list[str](), 0
        self.tokens = {name: new_token(folder / "tokens.json", name) for name in ANALYSTS}
        self._curator = new_token(folder / "tokens.json", CURATOR, role="curator")
        self._ended = threading.Event()
        settings = f'host = "127.0.0.1"\nport = {self.service.port}\nlog = "service.log"\nheads = "heads"\n'
        settings += "time_grid = false\n"
        table = f'[tables.clinic]\nsession = "clinic.py:opened"\n{divided(mode, list(ANALYSTS))}'
        (folder / "curator.toml").write_text(settings + self.page.settings + table, "utf-8")
        (folder / "clinic.py").write_text(OPENING.format(rows=load.rows), "utf-8")
        self._grown = (0, 0)

    def run(self) -> list[str]:
        """Attack, then stop, and check all that must hold; what does not, each with an example in the folder."""
        self.service.start()
        try:
            began = time.monotonic()
            curator = threading.Thread(target=self._resume, daemon=True)
            curator.start()
            with self.page, self._clients():
                self._kill_now_and_then(began)
            self._ended.set()
            curator.join(LIMIT)
            self.check_growth(began)
            self._check_answers()
            self.faults += [*self.service.faults, *self.heard.faults]
            stopped = self.service.stop()
            if stopped > MOST_STOP:
                self.faults.append(f"it took {stopped:.0f} s to stop")
            print(self.figures(stopped), flush=True)
        finally:
            self._ended.set()
            self.service.end()
        for number, (words, sent) in enumerate(self.heard.faults.items()):
            (self.folder / f"example-{number}").write_bytes(words.encode() + b"\n" + sent)
        violations = [f"{words}; {times} times" for words, times in Counter(self.faults).most_common()]
        (self.folder / "violations.txt").write_text("\n".join(violations), "utf-8")
        return violations

    @contextmanager
    def _clients(self) -> Iterator[None]:
        """The processes of all clients, and a thread that hears each."""
        cockpit, each = int(self.page.settings.rpartition("=")[2]), BODIES_PER_MINUTE / 60
        kernels: dict[str, Kernel] = {}
        try:
            for number, name in enumerate(HONEST):
                kernels[name] = Kernel(honest, self.service.address, self.tokens[name], EACH * number)
            for number, (name, kinds) in enumerate([*OF_ANALYSTS.items(), ("", OF_NOBODY)]):
                chance = random.Random(self.chance.getrandbits(60))
                token, peer = self.tokens.get(name, ""), f"127.0.0.{10 + number}"
                attacker = Attacker(name, token, self.service.port, cockpit, peer, chance, [], self.load.size)
                kernels[name] = Kernel(hostile, attacker, kinds, each)
            hearing = [
                threading.Thread(target=self.heard.follow, args=(kernel, name), daemon=True)
                for name, kernel in kernels.items()
            ]
            for thread in hearing:
                thread.start()
            yield
            for kernel in kernels.values():
                with suppress(OSError):
                    kernel.pipe.send("end")
            for thread in hearing:
                thread.join(2 * LIMIT)
        finally:
            for kernel in kernels.values():
                kernel.kill()
                kernel.end()

    def _resume(self) -> None:
        """Let run again what ran when the service was killed, as a curator would; until the end."""
        while not self._ended.wait(1):
            with suppress(DpnbError):  # it is killed just now
                self.resumed += len(resume_held(self.service.address, self._curator, "clinic"))

    def _kill_now_and_then(self, began: float) -> None:
        """Kill it in every storm, as often as is to be in all, and say a line each minute."""
        minute, planned = 1, 0.0
        while (now := time.monotonic()) - began < self.load.seconds:
            if now - began > 60 * minute:
                print(self.line(minute), flush=True)
                minute += 1
            in_storm = (now - began) % (STORM + CALM) < STORM
            storms = (now - began) // (STORM + CALM) * STORM + min((now - began) % (STORM + CALM), STORM)
            planned = KILLS_PER_MINUTE / 60 * storms * (STORM + CALM) / STORM
            if in_storm and self.service.kills < planned:
                time.sleep(self.chance.uniform(0, 2))  # whatever it does then
                self.service.kill()
            time.sleep(0.1)
        self._wait_for_answers()
        self.service.kill()
        self._wait_for_answers()

    def _wait_for_answers(self) -> None:
        """Until each honest analyst has one more answer."""
        before = self.heard.answers.copy()

        def behind() -> list[str]:
            return [name for name in HONEST if self.heard.answers[name] == before[name]]

        try:
            wait_until(lambda: not behind(), "every honest analyst to have one more answer", behind)
        except AssertionError as error:
            self.faults.append(str(error))

    # --- what must hold -----------------------------------------------------------------------------------------

    def waits(self) -> list[float]:
        """Seconds of each request of the honest analysts, without those in which the service was not there."""
        down = self.service
        return [
            max(0.0, end - begin - down.overlap(begin, end) - LONGEST_PAUSE * down.ends(begin, end))
            for begin, end in self.heard.all_waits()
        ]

    def check_growth(self, began: float) -> None:
        """That memory, waiting and files stayed within what is declared."""
        minutes = max(1.0, (time.monotonic() - began) / 60)
        found, longest = self.service.figures, max(self.waits(), default=0.0)
        log, ledger = (self.service.bytes_of(one) / minutes for one in ("service*.log*", "clinic.dpnb*"))
        for words, figure, most in (
            ("megabytes of memory", found.memory, MOST_MEMORY),
            ("seconds that an honest analyst waited", longest, MOST_WAIT),
            ("seconds until the health check was answered", found.health, MOST_HEALTH),
            ("bytes of log a minute", log, MOST_LOG),
            ("bytes of ledger a minute", ledger, MOST_LEDGER),
        ):
            if figure > most:
                self.faults.append(f"{words}: {figure:,.0f}; at most {most:,.0f}")
        if not self.heard.shown:
            self.faults.append(f"no honest request was answered; {self.heard.refused.most_common(3)}")

    def _check_answers(self) -> None:
        """That nothing is over-spent, lost or charged twice: by an audit, and by asking all of it again."""
        honest = [self.tokens[name] for name in HONEST]
        try:
            check_divided(self.ledger, self.heard.shown, self.service.address, honest, frozenset(ANALYSTS))
        except (AssertionError, DpnbError) as error:
            self.faults.append(f"ledger: {type(error).__name__}: {str(error)[:1000]}")
        self.faults += errors_of(self.folder)
        self.faults += [f"honest: {one}" for one in self.heard.refused if one.startswith("refused")]
        asked = Counter(number // EACH for number in self.heard.shown)
        rows = Counter(actor for actor, _, _ in numbers_of(self.ledger))
        for one, name in enumerate(HONEST):
            if rows[name] - asked[one] not in (0, 1):  # the last one may be on its way
                self.faults.append(f"ledger: {name} has {rows[name]} rows, and was shown {asked[one]} answers")
        self.faults += answered_once(self.ledger, self.heard.told)
        rows = len(numbers_of(self.ledger))
        if self.page.last is None or not 0 <= rows - self.page.rows <= 1000:
            self.faults.append(f"cockpit: the page has followed to {self.page.rows:,} of {rows:,} rows")

    # --- figures ------------------------------------------------------------------------------------------------

    def line(self, minute: int) -> str:
        """What was measured in a minute."""
        found, waits = self.service.minutes_figures(), self.waits()
        return (
            f"hostile, {self.mode}, minute {minute}: {self.service.kills} kills, {found.memory:,.0f} MB, "
            f"{found.files} files, {found.threads} threads, health {found.health:.2f} s, "
            f"restart {found.restart:.1f} s, "
            f"{len(self.heard.shown)} honest answers, longest wait {max(waits, default=0):.1f} s, "
            f"{sum(self.heard.found.values())} attacks, {len(self.heard.faults) + len(self.service.faults)} faults, "
            f"ledger {self.service.bytes_of('clinic.dpnb*') / 1e6:.1f} MB, "
            f"log {self.service.bytes_of('service*.log*') / 1e6:.2f} MB"
        )

    def figures(self, stopped: float) -> str:
        """The table of figures at the end."""
        found, waits = self.service.figures, sorted(self.waits()) or [0.0]
        median, most, longest = waits[len(waits) // 2], waits[len(waits) * 99 // 100], waits[-1]
        rows: list[tuple[str, str]] = [
            ("mode", self.mode),
            ("kills", f"{self.service.kills:,}"),
            ("largest memory", f"{found.memory:,.0f} MB; declared {MOST_MEMORY:,.0f} MB"),
            ("most open files", f"{found.files:,}"),
            ("most threads", f"{found.threads:,}"),
            ("slowest restart", f"{found.restart:.1f} s"),
            ("slowest health check", f"{found.health:.2f} s; stated {MOST_HEALTH:.0f} s"),
            ("CPU of the service", f"{self.service.cpu:,.0f} s"),
            ("time to stop", f"{stopped:.1f} s; stated {MOST_STOP:.0f} s"),
            ("honest answers", f"{len(self.heard.shown):,}"),
            (
                "honest refusals",
                "; ".join(f"{n} times {one}" for one, n in self.heard.refused.most_common(5)) or "none",
            ),
            ("waits: median, 99 in 100", f"{median:.2f}, {most:.2f} s"),
            ("longest wait", f"{longest:.1f} s; stated {MOST_WAIT:.0f} s"),
            ("ledger", f"{self.service.bytes_of('clinic.dpnb*') / 1e6:,.1f} MB, {len(numbers_of(self.ledger)):,} rows"),
            ("log", f"{self.service.bytes_of('service*.log*') / 1e6:,.2f} MB"),
            ("resumed by the curator", f"{self.resumed:,}"),
            ("page", f"read {self.page.states} times, after {self.page.logins} logins"),
            (
                "longest wait of attackers",
                ", ".join(f"{one or 'nobody'} {n:.0f} s" for one, n in self.heard.slowest.items()),
            ),
            *sorted((one, f"{number:,}") for one, number in self.heard.found.items()),
        ]
        return "\n".join(f"{name:>36}  {value}" for name, value in rows)


def numbers_of(ledger: Path) -> list[tuple[str | None, str | None, str]]:
    """Who requested each row, by which request, and its status."""
    with closing(sqlite3.connect(f"file:{ledger}?mode=rw", uri=True, timeout=LIMIT)) as file:
        return file.execute("SELECT actor, request_id, status FROM events ORDER BY id").fetchall()


def errors_of(folder: Path) -> list[str]:
    """What the service has logged as an error: nothing that a client does is one."""
    lines = (line for path in folder.glob("service.log*") for line in path.read_text("utf-8").splitlines())
    found = [json.loads(line) for line in lines if '"level": "error"' in line]
    return [f"log: {one['event']} {one.get('error', {}).get('type', '')}".rstrip() for one in found]


def answered_once(ledger: Path, told: Told) -> list[str]:
    """The requests whose replies differ, or that have other rows in the ledger than were told."""
    found: dict[str, list[str]] = {}
    for _, number, status in numbers_of(ledger):
        if number in told:
            found.setdefault(number, []).append(status)
    faults = []
    for number, ids in told.items():
        if any(one != ids[0] for one in ids):
            faults.append(f"ledger: request {number} was answered by different rows: {json.dumps(ids)}")
        if found.get(number, []) != ["released"] * len(ids[0]):
            faults.append(f"ledger: request {number} was told rows {ids[0]}, and has {found.get(number)}")
    return faults


def under_attack(folder: Path, chance: random.Random, load: Load) -> Counter[str]:
    """Attack a service in each mode; what was done, and how many modes had violations, which are printed."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most[1], most[1]))  # for the silent connections
    done = Counter[str]()
    for mode in load.modes:
        here = folder / mode
        here.mkdir()
        run = HostileRun(here, chance, mode, load)
        violations = run.run()
        print(f"{mode}: {len(violations)} violations", *violations, sep="\n- ", flush=True)
        done["failures"] += bool(violations)
        done["kills"] += run.service.kills
        done["requests"] += len(run.heard.waits) + sum(run.heard.found.values())
        done["charges"] += len(numbers_of(run.ledger)) if run.ledger.exists() else 0
    return done
