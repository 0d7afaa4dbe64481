"""The structured log of the service: one JSON object a line, without values.

It says who did what when, and what it cost; never an estimate, a token, a row or the text of an exception that a
library raised, since that may quote a row.  Logins are written to a separate file of limited size.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler, WatchedFileHandler
from pathlib import Path
from types import TracebackType
from typing import Any

from dpnb.errors import DpnbError

LOG = logging.getLogger("dpnb.service")
LOGINS = logging.getLogger("dpnb.service.logins")
LIBRARIES = ("uvicorn", "asyncio", "starlette")
MOST_LOGIN_BYTES, LOGIN_FILES = 1_000_000, 5


class JsonFormatter(logging.Formatter):
    """A record as one JSON object on one line."""

    def format(self, record: logging.LogRecord) -> str:
        """The line of a record."""
        facts = getattr(record, "facts", {})
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        line = {"time": time, "level": record.levelname.lower(), "event": _event(record), **facts}
        if record.exc_info is not None and record.exc_info[1] is not None:
            line["error"] = described(record.exc_info[1])
        return json.dumps(line)


def _event(record: logging.LogRecord) -> str:
    """What happened; of a library its own words without arguments, which may quote anything."""
    return str(record.msg) if record.name.startswith("dpnb.") else f"{record.name}: {str(record.msg)[:200]}"


def described(error: BaseException) -> dict[str, Any]:
    """An exception without a value: its type and the places in the code; the message only if dpnb wrote it.

    Messages of libraries may quote rows, and so may the local variables of a frame.
    """
    chain: list[dict[str, Any]] = []
    one: BaseException | None = error
    while one is not None and len(chain) < 5:
        chain.append({"type": type(one).__name__, "where": _frames(one.__traceback__)})
        if isinstance(one, DpnbError):
            chain[-1]["message"] = str(one)
        one = one.__cause__ or one.__context__
    first, *earlier = chain
    return {**first, "after": earlier} if earlier else first


def _frames(trace: TracebackType | None) -> list[str]:
    frames = traceback.extract_tb(trace)
    return [f"{'/'.join(Path(one.filename).parts[-3:])}:{one.lineno} {one.name}" for one in frames]


def log(event: str, level: int = logging.INFO, error: BaseException | None = None, **facts: Any) -> None:
    """Write an event to the log."""
    LOG.log(level, event, exc_info=error, extra={"facts": facts})


def log_login(event: str, **facts: Any) -> None:
    """Write a login, accepted or refused, to the log of logins."""
    LOGINS.info(event, extra={"facts": facts})


def set_up_log(path: Path | None) -> None:
    """Write the log to a file, or to the standard error, and that of logins beside it.

    Parameters
    ----------
    path : Path or None
        The log file; it may be moved away by a tool that rotates logs.

    Raises
    ------
    OSError
        If a file cannot be written.
    """
    handler: logging.Handler = logging.StreamHandler(sys.stderr)
    logins = handler
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        handler = WatchedFileHandler(path, encoding="utf-8")
        logins = RotatingFileHandler(
            path.with_name(f"{path.stem}-logins{path.suffix}"), maxBytes=MOST_LOGIN_BYTES, backupCount=LOGIN_FILES
        )
    for one in {handler, logins}:
        one.setFormatter(JsonFormatter())
    for logger, its, level in (
        (LOG, handler, logging.INFO),
        (LOGINS, logins, logging.INFO),
        *((logging.getLogger(name), handler, logging.WARNING) for name in LIBRARIES),
    ):
        for old in logger.handlers[:]:
            logger.removeHandler(old)
            old.close()
        logger.addHandler(its)
        logger.setLevel(level)
        logger.propagate = False
    logging.raiseExceptions = False  # a full disk must not print a record with its arguments
