"""One table in memory, in a process of its own: every question, its contenders taking turns."""

from __future__ import annotations

import gc
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench.measures.children import tell
from bench.measures.limits import bytes_read
from bench.measures.opendp_client import OpenDP
from bench.measures.peak import Peak, let_go
from bench.measures.questions import PEOPLE, ROWS, of_pandas, of_polars, released, session, used, warm
from bench.measures.tables import in_pandas, in_polars, made
from bench.measures.turns import median, took, turns
from dpnb._backends.memory import kernels


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
    frames, needed = _frames(rows, person)
    peer = OpenDP(opendp, rows, person)
    found: dict[str, Any] = {"questions": {}, "opendp": peer.said, "failures": peer.failures}
    setups, reads = [], []
    try:
        with tempfile.TemporaryDirectory() as folder:
            warm(Path(folder), person=person)
            _compile()
            found["file"] = read_file(frames[0][needed], Path(folder))
            for place, question in enumerate(PEOPLE if person else ROWS):
                gc.collect()
                reads.append(took(lambda: read_once(frames[0][needed])))
                start = time.perf_counter()
                asker = session(frames[0], Path(folder) / str(place), person=person)
                setups.append(time.perf_counter() - start)
                found["questions"][question] = _contested(question, asker, frames, person, rounds, peer)
                found |= {"setup": median(setups), "read": median(reads)}
                _show(rows, person, question, found)
                del asker
        found["context"] = median([peer.took("context", 40 + i) for i in range(3)])
    finally:
        peer.close()
    return found


def one_thread(rows: int, rounds: int) -> dict[str, Any]:
    """Seconds of every question about rows, dpnb and polars taking turns in a process that has one core."""
    frames, _ = _frames(rows, False)
    found: dict[str, Any] = {"questions": {}}
    with tempfile.TemporaryDirectory() as folder:
        warm(Path(folder), person=False)
        _compile()
        asker = session(frames[0], Path(folder) / "one", person=False)
        for question in ROWS:
            found["questions"][question] = _timed(question, asker, frames, False, rounds, {})
            _show(rows, False, f"{question}, one thread", found)
    return found


def _compile() -> None:
    """Compile what a session of a large table compiles in the background, so that no figure shares its cores."""
    kernels.start_compiling()
    if kernels._compilation.thread is not None:
        kernels._compilation.thread.join()


def _frames(rows: int, person: bool) -> tuple[tuple[Any, Any], list[str]]:
    columns = made(rows)
    frames = in_pandas(columns), in_polars(columns)
    return frames, [name for name in frames[0].columns if person or name != "person"]


def _show(rows: int, person: bool, question: str, found: dict[str, Any]) -> None:
    figures = list(found["questions"].values())[-1]
    shown = {name: value and round(1000 * value, 2) for name, value in figures.items() if name != "bytes"}
    print(f"{rows:>12,} {'persons' if person else 'rows':<8} {question:<20} {shown} ms", file=sys.stderr)
    tell(found)


def _contested(
    question: str, asker: Any, frames: tuple[Any, Any], person: bool, rounds: int, peer: OpenDP
) -> dict[str, float | None]:
    """Medians of one question's contenders, the first answer of dpnb's new session, and the bytes that it reads."""
    others = {
        "pandas": lambda above: took(lambda: of_pandas(question, frames[0], above, person=person)),
        "opendp": lambda above: peer.took(question, above),
    }
    found = _timed(question, asker, frames, person, rounds, others)
    _agree(question, asker.frame, frames, person)
    return found


def _timed(
    question: str, asker: Any, frames: tuple[Any, Any], person: bool, rounds: int, others: dict[str, Any]
) -> dict[str, float | None]:
    contenders = {
        "dpnb": lambda above: took(lambda: released(question, asker.frame, above)),
        "polars": lambda above: took(lambda: of_polars(question, frames[1], above, person=person)),
        **others,
    }
    first = {name: work(29.5) for name, work in contenders.items()}
    read = bytes_read(asker, used(question, person), question)
    return {"first": first["dpnb"], "bytes": read, **turns(contenders, rounds)}


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
        _compile()
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
