"""A service as a process of its own under hard limits, which is killed and started again, and watched from outside."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

from service.hub_running import free_ports
from soak.plain_http import LostError, Plain
from waiting import LIMIT

ROOT = Path(__file__).resolve().parents[2]
OPENING = """\
from pathlib import Path
from soak.wide import opened as opened_there

def opened():
    return opened_there(Path(__file__).parent / "clinic.dpnb", {rows})
"""

MOST_ADDRESSES = 4 * 2**30
"""Bytes of addresses: the hard limit. Libraries reserve nearly half of it without using it."""

MOST_FILES = 1024
"""Open files of the service, as systemd starts one."""

SAMPLE_SECONDS, HEALTH_SECONDS = 0.2, 0.5

Interval = tuple[float, float]


@dataclass
class Figures:
    """What was measured of the service, the largest of each."""

    memory: float = 0.0
    """Resident megabytes."""
    files: int = 0
    threads: int = 0
    health: float = 0.0
    """Seconds until the health check was answered, while the service ran."""
    restart: float = 0.0
    """Seconds from a start to the first connection that is accepted."""

    def largest(self, other: Figures) -> Figures:
        return Figures(*(max(pair) for pair in zip(vars(self).values(), vars(other).values(), strict=True)))


@dataclass
class WatchedService:
    """The service of a folder with ``curator.toml``.

    Attributes
    ----------
    down : list of (float, float)
        When it was not there: from a kill to the next connection that it accepts.
    faults : list of str
        What must not happen: that it ends without a signal, or does not answer the health check.
    """

    folder: Path
    port: int = field(default_factory=lambda: free_ports(1)[0])
    down: list[Interval] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    figures: Figures = field(default_factory=Figures)
    minute: Figures = field(default_factory=Figures)
    kills: int = 0
    cpu: float = 0.0

    def __post_init__(self) -> None:
        self._process: subprocess.Popen[str] | None = None
        self._starting, self._ended = threading.Lock(), threading.Event()
        self._killed = 0.0
        self._watchers = [threading.Thread(target=one, daemon=True) for one in (self._sample, self._ask_for_health)]

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def is_up(self) -> bool:
        return not self._killed

    def start(self) -> None:
        """Start it, and wait until it listens."""
        began = time.monotonic()
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "tests")))}
        environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as installed: a third of the time of a start
        command = [sys.executable, "-m", "dpnb", "serve", str(self.folder / "curator.toml")]
        with (self.folder / "stderr.txt").open("ab") as errors:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment)
        resource.prlimit(process.pid, resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (MOST_FILES, MOST_FILES))
        assert process.stdout is not None
        for line in process.stdout:
            if "serving at" in line:
                break
        else:
            raise AssertionError(f"the service does not start; see {self.folder / 'stderr.txt'}")
        self._process = process
        now = time.monotonic()
        self._add(Figures(restart=now - began))
        if self._killed:
            self.down.append((self._killed, now))
        self._killed = 0.0
        for watcher in self._watchers:
            if not watcher.is_alive() and not self._ended.is_set():
                watcher.start()

    def kill(self) -> None:
        """Kill it at this very moment, and start it again."""
        with self._starting:
            self._killed = time.monotonic()
            self.kills += 1
            self._gone(signal.SIGKILL)
            self.start()

    def stop(self) -> float:
        """Stop it as systemd does; how long that took."""
        self._ended.set()
        for watcher in self._watchers:
            watcher.join(LIMIT)
        began = time.monotonic()
        with self._starting:
            self._killed = began
            code = self._gone(signal.SIGTERM)
        if code:
            self.faults.append(f"the service ended with {code} after SIGTERM")
        return time.monotonic() - began

    def end(self) -> None:
        """Kill it for good."""
        self._ended.set()
        with self._starting:
            if self._process is not None:
                self._process.kill()
                self._process.wait()

    def overlap(self, began: float, ended: float) -> float:
        """Seconds between two moments in which it was not there, and how often it went away."""
        now = time.monotonic()
        open_ended = [(self._killed, now)] if self._killed else []
        return sum(max(0.0, min(ended, end) - max(began, start)) for start, end in [*self.down, *open_ended])

    def ends(self, began: float, ended: float) -> int:
        """How often it went away between two moments."""
        return sum(start <= ended and end >= began for start, end in list(self.down))

    def minutes_figures(self) -> Figures:
        """The figures since the last call."""
        last, self.minute = self.minute, Figures()
        return last

    def bytes_of(self, pattern: str) -> int:
        """Bytes of the files of a pattern in its folder."""
        return sum(one.stat().st_size for one in self.folder.glob(pattern))

    # --- inside -------------------------------------------------------------------------------------------------

    def _gone(self, number: int) -> int:
        process = self._process
        assert process is not None
        self.cpu += _cpu_seconds(process.pid)
        process.send_signal(number)
        try:
            code = process.wait(LIMIT)
        except subprocess.TimeoutExpired:
            self.faults.append(f"the service has not ended {LIMIT:.0f} s after signal {number}")
            process.kill()
            code = process.wait()
        if process.stdout is not None:
            process.stdout.close()
        return code

    def _add(self, found: Figures) -> None:
        self.figures, self.minute = self.figures.largest(found), self.minute.largest(found)

    def _sample(self) -> None:
        while not self._ended.wait(SAMPLE_SECONDS):
            process = self._process
            if process is None or self._killed:
                continue
            if process.poll() is not None:
                self._ended_by_itself(process.returncode)
                continue
            try:
                self._add(_state_of(process.pid))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue  # it ends just now

    def _ended_by_itself(self, code: int) -> None:
        with self._starting:
            if self._killed or self._ended.is_set() or (self._process and self._process.poll() is None):
                return
            self._killed = time.monotonic()
            self.faults.append(f"the service ended without a signal, with {code}; see {self.folder / 'stderr.txt'}")
            self.start()

    def _ask_for_health(self) -> None:
        while not self._ended.wait(HEALTH_SECONDS):
            began = time.monotonic()
            try:
                with Plain(self.port, "127.0.0.1", LIMIT / 2) as plain:
                    status, _ = plain.send("GET", "/v3/health")
            except LostError as error:
                status, why = 0, str(error)
            else:
                why = f"status {status}"
            ended = time.monotonic()
            if not self.is_up or self.ends(began, ended) or self._ended.is_set():
                continue
            if status != 200:
                self.faults.append(f"health: {why} after {ended - began:.1f} s")
            self._add(Figures(health=ended - began))


def _state_of(pid: int) -> Figures:
    lines = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").read_text().splitlines() if ":" in line)
    memory = int(lines["VmRSS"].split()[0]) / 1000
    return Figures(memory=memory, files=len(os.listdir(f"/proc/{pid}/fd")), threads=int(lines["Threads"]))


def _cpu_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except FileNotFoundError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
