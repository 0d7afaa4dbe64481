"""Many analysts whose sessions are connected, and a curator whose page is open, while one of them asks."""

from __future__ import annotations

import random
from contextlib import ExitStack, closing
from pathlib import Path

import psutil

import dpnb
from dpnb.service.access.tokens import new_token
from load import count
from service.killed import OPENING, SETTINGS, started
from service.open_page import OpenPage
from waiting import wait_until


def idle_analysts(folder: Path, chance: random.Random, *, analysts: int, requests: int) -> tuple[float, float, float]:
    """Megabytes of the service before and after, and its CPU seconds; all sessions have followed by then."""
    settings = folder / "curator.toml"
    page = OpenPage(folder / "tokens.json")
    settings.write_text(SETTINGS + page.settings, "utf-8")
    (folder / "clinic.py").write_text(OPENING, "utf-8")
    tokens = [new_token(folder / "tokens.json", f"ana{number}") for number in range(analysts)]
    kernel = started(settings)
    try:
        process = psutil.Process(kernel.process.pid)
        before, address = process.memory_info().rss, f"unix://{folder / 's'}"
        with ExitStack() as stack:
            stack.enter_context(page)
            sessions = [stack.enter_context(closing(dpnb.connect(address, "clinic", token=one))) for one in tokens]
            asking = chance.choice(sessions)
            for number in range(requests):
                count(asking, number).release(mu="0.001")
            for one in sessions:
                wait_until(lambda one=one: len(one.log) == requests, "a session to follow")  # type: ignore[misc]
            wait_until(lambda: page.rows == requests, "the page to follow")
            after, times = process.memory_info().rss, process.cpu_times()
    finally:
        kernel.kill()
        kernel.end()
    return before / 1e6, after / 1e6, times.user + times.system
