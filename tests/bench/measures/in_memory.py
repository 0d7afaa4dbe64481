"""One table of the benchmark, in a process of its own: every question, its contenders taking turns."""

from __future__ import annotations

import gc
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.measures.peak import Peak, let_go
from bench.measures.questions import PEOPLE, ROWS, of_pandas, of_polars, released, session, used, warm
from bench.measures.tables import in_pandas, in_polars, made

HERE = Path(__file__).resolve().parent


class OpenDP:
    """OpenDP in a process of its own, with the same table; says nothing where it is not installed.

    Parameters
    ----------
    python : str or None
        The interpreter that has it.
    rows : int
    person : bool
    """

    def __init__(self, python: str | None, rows: int, person: bool) -> None:
        self.failures: dict[str, str] = {}
        self.said: dict[str, Any] = {"error": "left out"}
        self._process: Any = None
        if python is None:
            return
        if not Path(python).exists():
            self.said = {"error": "not installed"}
            return
        line = [python, str(HERE / "opendp_peer.py"), str(rows), str(person)]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True)
        self.said = self._read()

    def _read(self) -> dict[str, Any]:
        line = self._process.stdout.readline()
        return json.loads(line) if line else {"error": "it ended"}

    def took(self, question: str, above: float) -> float | None:
        """Seconds of one answer, timed there."""
        if "error" in self.said or question in self.failures:
            return None
        print(json.dumps({"question": question, "above": above}), file=self._process.stdin, flush=True)
        said = self._read()
        if "error" in said:
            self.failures[question] = said["error"]
        return said.get("seconds")

    def close(self) -> None:
        """End it."""
        if self._process is not None:
            self._process.stdin.close()
            self._process.wait()


def took(work: Callable[[], object]) -> float:
    """Seconds of one call."""
    start = time.perf_counter()
    work()
    return time.perf_counter() - start


def median(figures: list[float | None]) -> float | None:
    """Of those that were measured."""
    found = [figure for figure in figures if figure is not None]
    return statistics.median(found) if found else None


def read_once(frame: Any) -> None:
    """A copy of every column: reading the frame once and keeping it."""
    import pyarrow as pa

    for name in frame.columns:
        if frame[name].dtype != "str":
            frame[name].copy(deep=True)
            continue
        texts = pa.chunked_array(pa.array(frame[name]))  # whose copy in pandas would be no copy
        for chunk in texts.chunks:
            [buffer.to_pybytes() for buffer in chunk.buffers() if buffer is not None]


def read_file(frame: Any, folder: Path) -> float:
    """Seconds in which pandas reads the frame from a Parquet file that the system holds in memory."""
    import pandas as pd

    path = folder / "frame.parquet"
    frame.to_parquet(path)
    try:
        return statistics.median(took(lambda: pd.read_parquet(path)) for _ in range(3))
    finally:
        path.unlink()


def measured(rows: int, person: bool, rounds: int, opendp: str | None) -> dict[str, Any]:
    """Seconds of every question for one table and one kind of unit."""
    columns = made(rows)
    frames = in_pandas(columns), in_polars(columns)
    needed = [name for name in frames[0].columns if person or name != "person"]
    del columns
    peer = OpenDP(opendp, rows, person)
    found: dict[str, Any] = {"questions": {}}
    setups, reads = [], []
    try:
        with tempfile.TemporaryDirectory() as folder:
            warm(Path(folder), person=person)
            file = read_file(frames[0][needed], Path(folder))
            for place, question in enumerate(PEOPLE if person else ROWS):
                gc.collect()
                reads.append(took(lambda: read_once(frames[0][needed])))
                start = time.perf_counter()
                asker = session(frames[0], Path(folder) / str(place), person=person)
                setups.append(time.perf_counter() - start)
                figures = _contested(question, asker, frames, person, rounds, peer)
                found["questions"][question] = figures
                shown = {name: value and round(1000 * value, 2) for name, value in figures.items()}
                print(f"{rows:>12,} {'persons' if person else 'rows':<8} {question:<20} {shown} ms", file=sys.stderr)
                del asker
        found["context"] = median([peer.took("context", 40 + i) for i in range(3)])
    finally:
        peer.close()
    found |= {
        "setup": median(setups),
        "read": median(reads),
        "file": file,
        "opendp": peer.said,
        "failures": peer.failures,
    }
    return found


def _contested(
    question: str, asker: Any, frames: tuple[Any, Any], person: bool, rounds: int, peer: OpenDP
) -> dict[str, float | None]:
    """Medians of one question's contenders, and the first answer of dpnb's new session."""
    frame = asker.frame
    found: dict[str, list[float | None]] = {"dpnb": [], "pandas": [], "polars": [], "opendp": []}
    first = took(lambda: released(question, frame, 29.5))
    of_pandas(question, frames[0], 29.5, person=person)
    of_polars(question, frames[1], 29.5, person=person)
    peer.took(question, 29.5)
    for number in range(rounds):
        above = 30 + 40 * number / rounds  # another one each time: the same question would be free
        contenders: dict[str, Callable[[], float | None]] = {
            "dpnb": lambda above=above: took(lambda: released(question, frame, above)),  # type: ignore[misc]
            "pandas": lambda above=above: took(lambda: of_pandas(question, frames[0], above, person=person)),  # type: ignore[misc]
            "polars": lambda above=above: took(lambda: of_polars(question, frames[1], above, person=person)),  # type: ignore[misc]
            "opendp": lambda above=above: peer.took(question, above),  # type: ignore[misc]
        }
        order = list(contenders)
        for name in order if number % 2 == 0 else reversed(order):
            found[name].append(contenders[name]())
    _agree(question, frame, frames, person)
    return {"first": first, **{name: median(figures) for name, figures in found.items()}}


def _agree(question: str, frame: Any, frames: tuple[Any, Any], person: bool) -> None:
    """Refuse to time different questions: all three must answer alike."""
    if person and "mean" not in question and "quantiles" not in question:
        return  # dpnb chooses a person's rows before it filters, for every question alike
    answer = released(question, frame, 50, mu=50).estimate  # hardly any noise
    plain, other = (
        of_pandas(question, frames[0], 50, person=person),
        of_polars(question, frames[1], 50, person=person),
    )
    if question == "discovered keys":
        figures = float(answer.sum()), float(plain.sum()), float(other["len"].sum())
    elif "keys" in question:
        figures = float(answer.median()), float(plain.median()), float(other["y"].median())
    elif "quantiles" in question:
        figures = float(answer.iloc[1]), float(plain.iloc[1]), float(other.row(0)[1])
    else:
        figures = float(answer), float(plain), float(other.item())
    if max(figures) - min(figures) > 0.03 * abs(figures[1]):
        raise AssertionError(f"{question}: dpnb, pandas and polars answer {figures}")


def memory(rows: int, person: bool, question: str) -> dict[str, Any]:
    """Bytes at the peak of a session of the columns that a question uses, above the frame: set-up, and a release."""
    names = used(question, person)
    frame = in_pandas(made(rows, names))
    with tempfile.TemporaryDirectory() as folder:
        warm(Path(folder), person=person)
        let_go()
        peak = Peak()
        asker = session(frame, Path(folder) / "peak", person=person, columns=names)
        setup = peak.bytes()
        for above in (40, 50):
            released(question, asker.frame, above)
        everything = peak.bytes()
        del asker
    columns = int(frame.memory_usage(deep=True, index=False).sum())
    return {"setup": setup, "peak": everything, "columns": columns}
