"""The structured log of the service, and figures for the curator's monitoring.

The structured log of the service: one JSON object a line, without values.

It says who did what when, and what it cost; never an estimate, a token, a row or the text of an exception that a
library raised, since that may quote a row.  Logins are written to a second file, and refused ones to a third.

Anybody who can send requests can have lines written.  So a text in a line is short, the lines of one person or peer in
a minute are limited, and each file has a largest size, beyond which older lines are in numbered files.

Figures for the curator's monitoring, in the text format of Prometheus, at the port of the cockpit.

Exact durations would undo the time grid, so no analyst and no auditor may read them.  There is no value, and no name of
an analyst.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import re
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from logging.handlers import RotatingFileHandler, WatchedFileHandler
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, ProcessCollector, generate_latest
from starlette.responses import Response

from dpnb.copying import NotCopyable
from dpnb.errors import DpnbError
from dpnb.render.numbers import format_percent_down

LOG = logging.getLogger("dpnb.service")
LOGINS = logging.getLogger("dpnb.service.logins")
REFUSED_LOGINS = logging.getLogger("dpnb.service.refused")
LIBRARIES = ("uvicorn", "asyncio", "starlette")
MOST_LOG_BYTES, MOST_LOGIN_BYTES, OLD_FILES = 50_000_000, 1_000_000, 5
MOST_CHARACTERS, MOST_OF_ERROR, MOST_ITEMS = 200, 2000, 300
"""Of a text, of an error's message, and of a list, in a line."""

LINES_PER_MINUTE, LOGINS_PER_MINUTE = 300, 12
"""Lines of one person or peer; as many again of errors."""

MINUTE, MOST_KEYS = 60.0, 1000
"""Seconds, and people and peers whose lines are counted."""


class JsonFormatter(logging.Formatter):
    """A record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        facts = getattr(record, "facts", {})
        stamp = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        # Of a library its own words without arguments, which may quote anything.
        event = str(record.msg) if record.name.startswith("dpnb.") else f"{record.name}: {str(record.msg)[:200]}"
        line = {"time": stamp, "level": record.levelname.lower(), "event": event, **shortened(facts)}
        if record.exc_info is not None and record.exc_info[1] is not None:
            line["error"] = shortened(described(record.exc_info[1]), MOST_OF_ERROR)
        return json.dumps(line)


def shortened(value: Any, most: int = MOST_CHARACTERS) -> Any:
    """A value of a line, with what is long cut off."""
    match value:
        case str() if len(value) > most:
            return f"{value[:most]}... ({len(value)} characters)"
        case dict():
            return {key: shortened(one, most) for key, one in value.items()}
        case list() | tuple():
            return [shortened(one, most) for one in value[:MOST_ITEMS]]
    return value


class LogFile(RotatingFileHandler, WatchedFileHandler):
    """A file of at most `most` bytes, which a tool that rotates logs may also move away.

    As many older lines are kept in each of `OLD_FILES` files beside it.
    """

    def __init__(self, path: Path, most: int) -> None:
        RotatingFileHandler.__init__(self, path, maxBytes=most, backupCount=OLD_FILES, encoding="utf-8")
        self.dev = self.ino = -1
        self._statstream()

    def emit(self, record: logging.LogRecord) -> None:
        """Write a line."""
        self.reopenIfNeeded()
        super().emit(record)


class _Lines:
    """The lines of one person or peer in a minute."""

    def __init__(self, begun: float) -> None:
        self.begun, self.written, self.suppressed = begun, 0, 0


class LineLimit(logging.Filter):
    """Limits the lines of one person or peer in a minute, and says how many were suppressed."""

    def __init__(self, handler: logging.Handler, per_minute: int, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._handler, self._per_minute, self._now = handler, per_minute, now
        self._lines: OrderedDict[str, _Lines] = OrderedDict()
        self._lock = threading.Lock()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to write a line."""
        facts = getattr(record, "facts", {})
        key = str(facts.get("actor") or facts.get("client") or record.name)
        with self._lock:
            self._end_minutes(self._now())
            lines = self._lines.setdefault(f"{key} {record.levelno >= logging.ERROR}", _Lines(self._now()))
            if lines.written >= self._per_minute:
                lines.suppressed += 1
                return False
            lines.written += 1
            return True

    def _end_minutes(self, now: float) -> None:
        """Forget what is more than a minute old, and the oldest of too many."""
        while self._lines:
            key, lines = next(iter(self._lines.items()))
            if now - lines.begun < MINUTE and len(self._lines) < MOST_KEYS:
                break
            del self._lines[key]
            if lines.suppressed:
                self._write(key.rpartition(" ")[0], lines.suppressed)

    def _write(self, key: str, number: int) -> None:
        record = logging.LogRecord(LOG.name, logging.WARNING, "", 0, "lines_suppressed", None, None)
        record.facts = {"by": key, "lines": number}
        self._handler.acquire()
        try:
            self._handler.emit(record)
        finally:
            self._handler.release()


def described(error: BaseException) -> dict[str, Any]:
    """An exception without a value: its type and the places in the code; the message only if dpnb wrote it.

    Messages of libraries may quote rows, and so may the local variables of a frame.
    """
    chain: list[dict[str, Any]] = []
    one: BaseException | None = error
    while one is not None and len(chain) < 5:
        frames = traceback.extract_tb(one.__traceback__)
        where = [f"{'/'.join(Path(at.filename).parts[-3:])}:{at.lineno} {at.name}" for at in frames]
        chain.append({"type": type(one).__name__, "where": where})
        if isinstance(one, DpnbError):
            chain[-1]["message"] = str(one)
        one = one.__cause__ or one.__context__
    first, *earlier = chain
    return {**first, "after": earlier} if earlier else first


def log(event: str, level: int = logging.INFO, error: BaseException | None = None, **facts: Any) -> None:
    """Write an event to the log."""
    LOG.log(level, event, exc_info=error, extra={"facts": facts})


def log_login(event: str, **facts: Any) -> None:
    """Write a login to the log of logins, or to that of refused ones: these cannot push the others out."""
    (REFUSED_LOGINS if event.endswith("_refused") else LOGINS).info(event, extra={"facts": facts})


def set_up_log(path: Path | None) -> None:
    """Write the log to a file, or to the standard error, and those of logins beside it."""
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    logins = refused = handler
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = LogFile(path, MOST_LOG_BYTES)
        logins, refused = (
            LogFile(path.with_name(f"{path.stem}-{name}{path.suffix}"), MOST_LOGIN_BYTES)
            for name in ("logins", "refused")
        )
    for one in {handler, logins, refused}:
        one.setFormatter(JsonFormatter())
        one.addFilter(LineLimit(one, LINES_PER_MINUTE if one is handler else LOGINS_PER_MINUTE))
    for logger, its, level in (
        (LOG, handler, logging.INFO),
        (LOGINS, logins, logging.INFO),
        (REFUSED_LOGINS, refused, logging.INFO),
        *((logging.getLogger(name), handler, logging.WARNING) for name in LIBRARIES),
    ):
        for old in logger.handlers[:]:
            logger.removeHandler(old)
            old.close()
        logger.addHandler(its)
        logger.setLevel(level)
        logger.propagate = False
    logging.raiseExceptions = False  # a full disk must not print a record with its arguments


TEXT = "text/plain; version=0.0.4; charset=utf-8"
"""The media type of the format."""

UNIT = re.compile(r"( since unix epoch)?( in seconds| in bytes)?\.?$")
"""How the process's own figures name the units of their values."""

FOLLOWED = {
    "running": "Requests that run or wait",
    "executing_seconds": "Age of the request that is executed",
    "waiting": "Requests that wait for their turn",
    "queue_seconds": "Age of the request that waits longest",
    "held": "Charges that wait for the curator to let them run again",
    "streams": "Open streams of events",
    "stored_bytes": "Bytes of the rows of the person who has stored most",
    "disk_free_bytes": "Free on the disk of the ledger",
    "headroom": "Share of the budget that is left",
}
"""The figures that are read from the state of a table."""


class Metrics(NotCopyable):
    """The figures of a service; `registry` has all of them."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._requests = Counter("dpnb_requests", "Requests", ("table", "call", "outcome"), registry=self.registry)
        self._seconds = Histogram(
            "dpnb_request_seconds", "Duration of the execution", ("table", "call"), registry=self.registry
        )
        self.missed = Counter(
            "dpnb_missed_slots", "Slots of the time grid that replies missed", ("table",), registry=self.registry
        )
        self._limited = Counter("dpnb_limited", "Requests beyond a limit", ("limit",), registry=self.registry)
        self.refused_logins = Counter("dpnb_refused_logins", "Requests without a valid token", registry=self.registry)
        self.dropped = Counter(
            "dpnb_dropped", "Waiting requests of people who lost their access", ("table",), registry=self.registry
        )
        ProcessCollector(registry=self.registry)
        self.connections = Gauge("dpnb_connections", "Open connections", ("port",), registry=self.registry)
        self.closed_connections = Counter(
            "dpnb_closed_connections", "Connections closed for a limit", ("port", "limit"), registry=self.registry
        )
        self._followed = {
            name: Gauge(f"dpnb_{name}", words, ("table",), registry=self.registry) for name, words in FOLLOWED.items()
        }

    def executed(self, table: str, call: str, outcome: str, seconds: float) -> None:
        """Count a request that was executed."""
        self._requests.labels(table, call, outcome).inc()
        self._seconds.labels(table, call).observe(seconds)

    def limited(self, limit: str) -> None:
        """Count a request beyond a limit."""
        self._limited.labels(limit).inc()

    def follow(self, table: str, reads: Mapping[str, Callable[[], float]]) -> None:
        """Read the state of a table and of its queue, by the names in `FOLLOWED`, whenever the figures are read.

        A figure that cannot be read, for example of a ledger that was replaced, is NaN, and hides no other one.
        """
        for name, gauge in self._followed.items():
            gauge.labels(table).set_function(partial(_figure, reads[name]))

    async def reply(self, *_: object) -> Response:
        """All figures as they are now; reads ledgers, in another thread."""
        return Response(await asyncio.to_thread(generate_latest, self.registry), headers={"Content-Type": TEXT})

    def in_words(self, table: str) -> list[tuple[str, str]]:
        """The figures of a table and of the process, to be read by a person; without the numbers of a histogram."""
        shown = []
        for family in self.registry.collect():
            for sample in family.samples:
                labels = dict(sample.labels)
                if labels.pop("table", table) == table and not sample.name.endswith(("_bucket", "_count", "_created")):
                    of = "".join(f", {value}" for value in labels.values())
                    words = (
                        UNIT.sub("", family.documentation) + of + (", in total" if family.type == "histogram" else "")
                    )
                    shown.append((words, _in_words(sample.name, sample.value)))
        return shown

    def forget(self, table: str) -> None:
        """Read the state of a table no longer: its ledger is closed."""
        for gauge in self._followed.values():
            gauge.remove(table)


def _in_words(name: str, value: float) -> str:
    """A figure with its unit, which its name has."""
    if not math.isfinite(value):
        return "unknown"
    if name.endswith("_start_time_seconds"):
        return datetime.fromtimestamp(value, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    if "_bytes" in name:
        return f"{value / 1e6:,.1f} MB"
    if name.endswith("headroom"):
        return format_percent_down(value)
    return f"{value:,.3f} s" if "_seconds" in name else f"{value:,.0f}"


def _figure(read: Callable[[], float]) -> float:
    try:
        return read()
    except (DpnbError, OSError):
        return math.nan
