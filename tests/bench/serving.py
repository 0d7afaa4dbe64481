"""What the service adds: the round trip of a release, of a preview, idle analysts, and the slots of the time grid.

Ratios of medians measured in one run.  ``python tests/bench/serving.py``
"""

from __future__ import annotations

import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path

import psutil

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import dpnb
from dpnb.service.access.tokens import new_token
from kernels import Kernel
from load import clinic, count
from service.killed import OPENING, SETTINGS, divided, started

TIMES = 60
IDLE_ANALYSTS, IDLE_SECONDS = 50, 20


def main() -> None:
    """Measure once and print a table."""
    folder = Path(tempfile.mkdtemp())
    try:
        with closing(clinic(folder / "local.dpnb").ledger) as ledger:
            local = clinic(Path(ledger.path))
            released, previewed = _released(local), _previewed(local)
        with _served(folder / "one", ["ana"]) as (_, (session,)):
            _row("release, local, ms", released)
            remote = _released(session)
            _row("release over a Unix socket, ms", remote, released)
            _row("preview, as the picker's slider asks for it, local, ms", previewed)
            _row("preview of a remote session, ms", _previewed(session), previewed)
        with _served(folder / "eight", [f"ana{number}" for number in range(8)]) as (_, sessions):
            _row("release, one of eight analysts in reserved mode, ms", _released(sessions[3]), remote)
        with _served(folder / "idle", [f"ana{number}" for number in range(IDLE_ANALYSTS)]) as (kernel, _):
            process = psutil.Process(kernel.process.pid)
            before = process.cpu_times()
            time.sleep(IDLE_SECONDS)
            after = process.cpu_times()
            share = (after.user + after.system - before.user - before.system) / IDLE_SECONDS
            print(f"{f'{IDLE_ANALYSTS} idle analysts: share of one core':<62}{share:>10.1%}")
            print(f"{'  memory of the service, MB':<62}{process.memory_info().rss / 1e6:>10.0f}")
        with _served(folder / "grid", ["ana"], has_grid=True) as (_, (session,)):
            none, every = (_slots(session, level) for level in (1000, 0))
            _row("release on the time grid, filter matches no row, ms", none)
            _row("release on the time grid, filter matches every row, ms", every, none)
            slots = {round(one / 250) for one in (*none, *every)}
            print(f"{'  slots of 250 ms in which they left':<62}{', '.join(map(str, sorted(slots))):>10}")
    finally:
        shutil.rmtree(folder)


@contextmanager
def _served(folder: Path, names: list[str], has_grid: bool = False) -> Iterator[tuple[Kernel, list[dpnb.Session]]]:
    """A service in another process, and a session of each analyst."""
    folder.mkdir()
    settings = SETTINGS.replace("time_grid = false", f"time_grid = {str(has_grid).lower()}")
    (folder / "curator.toml").write_text(settings + divided("reserved", names), "utf-8")
    (folder / "clinic.py").write_text(OPENING, "utf-8")
    tokens = [new_token(folder / "tokens.json", name) for name in names]
    kernel = started(folder / "curator.toml")
    try:
        with ExitStack() as stack:
            address = f"unix://{folder / 's'}"
            yield kernel, [stack.enter_context(closing(dpnb.connect(address, "clinic", token=one))) for one in tokens]
    finally:
        kernel.kill()
        kernel.end()


def _timed(act: Callable[[int], object], times: int = TIMES) -> list[float]:
    took = []
    for number in range(times):
        start = time.perf_counter()
        act(number)
        took.append(1000 * (time.perf_counter() - start))
    return took[1:]  # the first one imports and opens


def _released(session: dpnb.Session) -> list[float]:
    return _timed(lambda number: count(session, number).release(mu="0.001"))


def _previewed(session: dpnb.Session) -> list[float]:
    query = count(session, 7)
    return _timed(lambda number: query.preview(mu=f"{number + 1}/1000"))


def _slots(session: dpnb.Session, level: int) -> list[float]:
    return _timed(lambda number: count(session, level + number / 100).release(mu="0.001"), 10)


def _row(label: str, took: list[float], beside: list[float] | None = None) -> None:
    ratio = "" if beside is None else f"{statistics.median(took) / statistics.median(beside):>9.2f}x"
    print(f"{label:<62}{statistics.median(took):>10.2f}{ratio}", flush=True)


if __name__ == "__main__":
    main()
