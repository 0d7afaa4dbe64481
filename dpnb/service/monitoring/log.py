"""The structured log of the service: one JSON object a line, without values.

It says who did what when, and what it cost; never an estimate, a token, a row or the text of an exception that a
library raised, since that may quote a row.  Logins are written to a second file, and refused ones to a third.

Anybody who can send requests can have lines written.  So a text in a line is short, the lines of one person or peer in
a minute are limited, and each file has a largest size, beyond which older lines are in numbered files.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
import traceback
from collections import OrderedDict
from collections.abc import Callable
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler, WatchedFileHandler
from pathlib import Path
from typing import Any

from dpnb.errors import DpnbError

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
