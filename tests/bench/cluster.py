"""How fast dpnb answers on Spark and Dask, compared with their own queries, by rows and by workers.

Parquet files are written once for each number of rows, and read by a local cluster.  Spark reads them for each query;
in Dask the rows stay on the workers, those of the plain query as well as the prepared ones of a session.

``python tests/bench/cluster.py --rows 1e6 --workers 1 2 --kept FILE`` keeps every figure in a file, and measures only
what is missing there.  ``--figure FILE`` draws them.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from operator import itemgetter
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from bench.cluster_plain import PLAIN  # noqa: E402
from bench.measures.questions import PEOPLE, ROWS, released, session, used  # noqa: E402
from bench.measures.tables import in_polars, made  # noqa: E402

QUESTIONS = [*(f"rows: {name}" for name in ROWS), *(f"persons: {name}" for name in PEOPLE)]
FEW = ["rows: sum", "rows: mean by 50 keys", "persons: sum"]
"""The questions about tables of more than `MANY` rows."""
MANY = 10**7
PIECE = 5_000_000
ROUNDS = 5
FOLDER = Path(tempfile.gettempdir()) / "dpnb-cluster"
SECONDS = 1800
HOW = ("rows", "workers", "engine")
SHOWN = ("dpnb", "plain", "ratio", "setup", "error")


def measured(rows: int, workers: int, engine: str, question: str) -> dict[str, Any]:
    """Medians of seconds of dpnb and of the plain query, taking turns; and of the session's set-up.

    In a process of its own, since a cluster cannot be changed.  A failure is stated instead.

    Parameters
    ----------
    rows : int
    workers : int
        Threads of Spark's local cluster, or processes of Dask's.
    engine : {"spark", "dask"}
    question : str
        One of `QUESTIONS`.
    """
    return all_measured(rows, workers, engine, [question])[0]


def all_measured(rows: int, workers: int, engine: str, questions: list[str]) -> list[dict[str, Any]]:
    """`measured` for several questions to one cluster."""
    written(rows)
    how = {"rows": rows, "workers": workers, "engine": engine}
    line = [sys.executable, str(Path(__file__).resolve()), "--child", json.dumps({**how, "questions": questions})]
    try:
        run = subprocess.run(line, check=False, timeout=SECONDS, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        lines, error = run.stdout.decode().splitlines(), f"the process ended with {run.returncode}"
    except subprocess.TimeoutExpired as expired:
        lines, error = (expired.stdout or b"").decode().splitlines(), f"more than {SECONDS} s"
    found = {one["question"]: one for one in map(json.loads, (line for line in lines if line.startswith("{")))}
    return [{**how, **found.get(question, {"question": question, "error": error})} for question in questions]


def written(rows: int) -> Path:
    """The folder of Parquet files of a table; at least four files, so that all workers have something to read."""
    folder = FOLDER / str(rows)
    if not folder.exists():
        unfinished = folder.with_suffix(".unfinished")
        unfinished.mkdir(parents=True, exist_ok=True)
        piece = min(PIECE, -(-rows // 4))
        for first in range(0, rows, piece):
            part = in_polars(made(rows, None, first, min(first + piece, rows)), categories=False)
            part.write_parquet(unfinished / f"{first // piece:04d}.parquet", compression="snappy")
        unfinished.rename(folder)
    return folder


def asked(rows: int, workers: int, engine: str, questions: list[str]) -> None:
    """Print the figures of each question, measured in this process."""
    columns = sorted({column for question in questions for column in _columns(question)})
    with CLUSTERS[engine](workers, written(rows), columns) as frame, tempfile.TemporaryDirectory() as ledgers:
        for place, question in enumerate(questions):
            figures = _turns(engine, frame, question, Path(ledgers) / str(place))
            print(json.dumps({"question": question, **figures}), flush=True)


def _columns(question: str) -> list[str]:
    unit, _, name = question.partition(": ")
    return used(name, unit == "persons")


def _turns(engine: str, frame: Any, question: str, ledger: Path) -> dict[str, float]:
    """The figures of one question; the session has the columns that it reads."""
    unit, _, name = question.partition(": ")
    person = unit == "persons"
    start = time.perf_counter()
    asker = session(frame, ledger, person=person, columns=used(name, person))
    setup = time.perf_counter() - start
    contenders: dict[str, Callable[[float], Any]] = {
        "dpnb": lambda above: released(name, asker.frame, above),
        "plain": lambda above: PLAIN[engine](name, frame, above, person=person),
    }
    found: dict[str, list[float]] = {contender: [] for contender in contenders}
    for number in range(ROUNDS + 1):
        above = 30 + 40 * number / ROUNDS  # another one each time: the same question would be free
        for contender in list(contenders)[:: 1 if number % 2 else -1]:
            start = time.perf_counter()
            contenders[contender](above)
            found[contender].append(time.perf_counter() - start)
        if number and sum(map(sum, found.values())) > MOST_SECONDS:
            break
    figures = {contender: statistics.median(seconds[1:]) for contender, seconds in found.items()}
    return {**figures, "ratio": figures["dpnb"] / figures["plain"], "setup": setup}


MOST_SECONDS = 25
"""Seconds of one question after which no further round begins; the first one, which warms up, does not count."""


# --- clusters --------------------------------------------------------------------------------------------------------


@contextmanager
def spark(workers: int, folder: Path, columns: list[str]) -> Iterator[Any]:
    """The table in Spark, with one thread for each worker."""
    from pyspark.sql import SparkSession

    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    builder = SparkSession.builder.master(f"local[{workers}]").appName("dpnb bench")
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.memory": "3g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.log.level": "OFF",
        "spark.local.dir": str(FOLDER),
    }
    for name, value in settings.items():
        builder = builder.config(name, value)
    made = builder.getOrCreate()
    try:
        yield made.read.parquet(str(folder)).select(*columns)
    finally:
        made.stop()


@contextmanager
def dask(workers: int, folder: Path, columns: list[str]) -> Iterator[Any]:
    """The table in Dask, kept on the workers, each of which is a process with one thread."""
    import dask.dataframe
    import distributed

    options = {"threads_per_worker": 1, "dashboard_address": None, "local_directory": str(FOLDER)}
    with (
        distributed.LocalCluster(n_workers=workers, memory_limit="8GB", **options) as cluster,
        distributed.Client(cluster),
    ):
        # Not by `columns=`: Dask 2026.8 persists a file of which it reads some columns wrongly (dask/dask#12488).
        frame = dask.dataframe.read_parquet(folder).map_partitions(itemgetter(columns)).persist()
        distributed.wait(frame)
        yield frame


CLUSTERS = {"spark": spark, "dask": dask}


def main() -> None:
    """Measure what is missing, and draw the figure."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=lambda text: int(float(text)), nargs="+", default=[10**6, 10**7, 10**8])
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--engines", choices=CLUSTERS, nargs="+", default=list(CLUSTERS))
    parser.add_argument("--questions", choices=QUESTIONS, nargs="+", default=QUESTIONS)
    parser.add_argument("--kept", type=Path, default=FOLDER / "figures.json", help="a file of figures, to go on from")
    parser.add_argument("--figure", type=Path, help="an SVG file to draw")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        asked(**json.loads(options.child))
        return
    kept: list[dict[str, Any]] = json.loads(options.kept.read_text()) if options.kept.exists() else []
    options.kept.parent.mkdir(parents=True, exist_ok=True)
    for rows, workers, engine in product(options.rows, options.workers, options.engines):
        there = {one["question"] for one in kept if [one[name] for name in HOW] == [rows, workers, engine]}
        questions = [name for name in options.questions if name not in there and (rows <= MANY or name in FEW)]
        found = all_measured(rows, workers, engine, questions) if questions else []
        for one in found:
            print(*(one[name] for name in HOW), one["question"], {name: one.get(name) for name in SHOWN})
        kept += [one for one in found if "error" not in one]
        options.kept.write_text(json.dumps(kept, indent=1))
    if options.figure is not None:
        from bench.cluster_figure import drawn

        options.figure.write_text(drawn(kept))


if __name__ == "__main__":
    main()
