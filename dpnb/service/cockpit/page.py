"""The document of the cockpit, its script and style, and how it hears of changes."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

from dpnb.copying import NotCopyable
from dpnb.errors import InvalidValueError

POLL_SECONDS = 0.5
HEARTBEAT_SECONDS = 5.0
"""Time after which a comment is sent, so that the page notices a lost connection."""

MOST_STREAMS = 50


class Live(NotCopyable):
    """The streams of all open pages.

    `state` returns a text that changes with anything that the page shows, and is called in another thread.
    """

    def __init__(self, state: Callable[[], str]) -> None:
        self._state, self._ended, self._streams = state, False, 0

    @property
    def is_full(self) -> bool:
        """Whether no further stream may be opened."""
        return self._streams >= MOST_STREAMS

    def end(self) -> None:
        """End all streams, so that the service can stop."""
        self._ended = True

    async def stream(self, is_valid: Callable[[], bool]) -> AsyncIterator[bytes]:
        """The text of a stream, until its login is no longer valid."""
        self._streams += 1
        seen, last = "", 0.0
        try:
            while not self._ended and is_valid():
                state = await asyncio.to_thread(self._state)
                now = time.monotonic()
                if state != seen:
                    seen, last = state, now
                    yield b"data: changed\n\n"
                elif now - last >= HEARTBEAT_SECONDS:
                    last = now
                    yield b": still here\n\n"
                await asyncio.sleep(POLL_SECONDS)
        finally:
            self._streams -= 1


STATIC = Path(__file__).parents[1] / "static"

DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>dpnb cockpit</title>
<link rel="icon" href="data:,">
<link rel="stylesheet" href="/cockpit.css">
<script type="module" src="/cockpit.js"></script>
</head>
<body>
<div id="cockpit"></div>
<noscript><p>This page needs JavaScript.</p></noscript>
</body>
</html>
"""


def read_static(name: str) -> bytes:
    """The content of a built file; `InvalidValueError` if it was not built."""
    try:
        return (STATIC / name).read_bytes()
    except OSError:
        pass
    raise InvalidValueError(
        f"cockpit: its page was not built: {name} is missing in this installation; run `make serve` once in the clone, "
        "or install a release"
    )
