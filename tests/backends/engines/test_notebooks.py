"""What a notebook saves of a question that fails on a row: its outputs, whatever an engine prints, logs or shows.

Each notebook first asks with nothing kept quiet, as a control, about another table with another secret.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import nbclient
import nbformat
import pandas as pd
import pytest

from kernel_pool.forked_kernels import forking_here
from waiting import LIMIT

if sys.platform == "win32":
    pytest.skip("a kernel watches its descriptors on Unix alone", allow_module_level=True)

pytestmark = pytest.mark.notebook

SECRET, CONTROL = "SECRET-Alice-HIV", "SECRET-of-the-control"
MARK = "# nothing kept quiet\n"

BEGIN = """
%xmode Verbose
import os, signal, sys, time
from pathlib import Path
sys.path.append("{tests}")
import dpnb
from dpnb._backends import dask as dask_work
from dpnb._backends.lazy import lazy_backend as engine

quietly = engine.run_silently
engine.run_silently = dask_work.run_silently = lambda work, engine, frames, run: run(work)

def asked(table, name):  # a function, since a traceback shows variables, and DuckDB's relations show rows
    session = dpnb.Session(
        table(), name=name, budget=dpnb.Budget.gdp(1), schema={"num": dpnb.Bounded(0, 9)}, ledger=f"{name}.dpnb"
    )
    session.frame["num"].sum().release(mu=0.1)

def failed(table, name, *expected):
    # The cell goes on until its output has the expected words: what another process prints may be late.
    shown = []
    for stream in (sys.stdout, sys.stderr):
        stream.write = lambda text, write=stream.write: (shown.append(text), write(text))[1]
    try:
        asked(table, name)
    except BaseException as error:
        print("outcome:", type(error).__name__)
    while not all(words in "".join(shown) for words in expected):
        time.sleep(0.1)
    for stream in (sys.stdout, sys.stderr):
        del stream.write
"""

QUIET = "engine.run_silently = dask_work.run_silently = quietly"

POLARS = (
    """
import polars as pl

def said(value):
    print("said", value)
    os.write(2, value.encode())
    raise SystemExit(value)

def calling(name):
    return pl.scan_parquet(name).select(pl.col("num").map_elements(said, return_dtype=pl.Float64))

def rewritten(name):
    pl.DataFrame({"num": [float(row) for row in range(20_000)]}).write_parquet("open.parquet")
    session = dpnb.Session(
        pl.scan_parquet("open.parquet"), name=name, budget=dpnb.Budget.gdp(1), schema={"num": dpnb.Bounded(0, 9)},
        ledger=f"{name}.dpnb",
    )
    from dpnb._backends.lazy import lazy_backend as engine

    adding = engine.added_up

    def rewriting(*given):
        Path("open.parquet").write_bytes(Path(f"{name}.parquet").read_bytes())
        return adding(*given)

    engine.added_up = rewriting  # between the charge and the reading
    try:
        session.frame["num"].sum().release(mu=0.1)
    finally:
        engine.added_up = adding
""",
    MARK + 'failed(lambda: calling("control.parquet"), "called-control")',
    MARK + 'rewritten("control")',
    QUIET,
    'asked(lambda: calling("secret.parquet"), "called")',
    'rewritten("secret")',
    'asked(lambda: pl.scan_parquet("secret.parquet").select(pl.col("num").cast(pl.Float64)), "cast")',
)

DUCKDB = (
    """
import duckdb

connection = duckdb.connect()
connection.sql("set progress_bar_time = 0")

def said(value):
    print("said", value)
    os.write(2, value.encode())
    raise SystemExit(value)

connection.create_function("said", said, ["VARCHAR"], "DOUBLE")
LONG = "select (a.range % 9)::double as num from range(400000) a, range(50)"
""",
    MARK + 'failed(lambda: connection.sql("select said(num) as num from \'control.parquet\'"), "called-control")',
    MARK + 'asked(lambda: connection.sql(LONG), "long-control")',
    # Without a time to wait DuckDB shows even how far the statement is by which its progress bar is switched off.
    QUIET + "\nasked(lambda: connection.sql('select 1.0 as num'), 'first')",
    'asked(lambda: connection.sql("select said(num) as num from \'secret.parquet\'"), "called")',
    'asked(lambda: connection.sql("select num::double as num from \'secret.parquet\'"), "cast")',
    'asked(lambda: connection.sql(LONG), "long")',
)

DASK = (
    """
import dask
import dask.dataframe as dd
from dask.diagnostics import ProgressBar
import clusters

dask.config.set({"dataframe.convert-string": False})
ProgressBar().register()

def said(frame):
    for value in frame["num"]:
        print("said", value)
    return frame.assign(num=frame["num"].astype(float))

def calling(name):
    return dd.read_parquet(name).map_partitions(said, meta={"num": float})
""",
    MARK + 'failed(lambda: calling("control.parquet"), "in-threads-control")',
    """
cluster, client = clusters.dask()
""",
    MARK + 'failed(lambda: calling("control.parquet"), "called-control", "Compute Failed")',
    QUIET,
    'asked(lambda: calling("secret.parquet"), "called")',
    """
good = dpnb.Session(
    dd.read_parquet("good.parquet"), name="good", budget=dpnb.Budget.gdp(1), schema={"num": dpnb.Bounded(0, 9)},
    ledger="good.dpnb",
)
def killed():
    workers = client.run(os.getpid)
    os.kill(next(iter(workers.values())), signal.SIGKILL)
    while set(client.run(os.getpid, on_error="ignore").values()) & {next(iter(workers.values()))}:
        time.sleep(0.1)
""",
    """
killed()
good.frame["num"].sum().release(mu=0.1)
""",
    """
client.wait_for_workers(2)
asked(lambda: calling("secret.parquet"), "called-later")
""",
    """
client.close()
cluster.close()
asked(lambda: calling("secret.parquet"), "in-threads")
""",
)

SPARK = (
    MARK
    + """
import clusters

settings = {
    "spark.log.level": "WARN",
    "spark.ui.showConsoleProgress": "true",
    "spark.ui.consoleProgress.update.interval": "10",
    "spark.sql.shuffle.partitions": "1",
    "spark.task.maxFailures": "2",
}
spark = clusters.spark("local-cluster[1,1,1024]", settings, Path.cwd())

def cast(name):
    return spark.read.parquet(name).selectExpr("cast(num as double) as num")

def executor():
    java = spark.sparkContext._gateway.proc.pid
    while True:  # a failing task may have ended the last one, and the next has not begun
        for line in os.popen("ps -ww -e -o pid= -o ppid= -o args=").read().splitlines():
            pid, parent, command = line.split(None, 2)
            if int(parent) == java and "ExecutorBackend" in command:
                return int(pid)
        time.sleep(0.1)

# Here, since reading a file's columns is work of Spark's that is none of dpnb's.
control, secret, good = (cast(f"{name}.parquet") for name in ("control", "secret", "good"))
""",
    MARK
    + """
failed(lambda: control, "cast-control", "QueryContextLogger")
while spark.sparkContext.statusTracker().getActiveStageIds():
    time.sleep(0.1)
""",
    QUIET,
    'asked(lambda: secret, "cast")',
    """
os.kill(executor(), signal.SIGKILL)
asked(lambda: good, "good")
""",
    'asked(lambda: secret, "cast-later")',
    "spark.stop()",
)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Callable[[tuple[str, ...]], list[nbformat.NotebookNode]]:
    """Run cells in a kernel of their own; give them back with their outputs."""

    def executed(cells: tuple[str, ...]) -> list[nbformat.NotebookNode]:
        folder = tmp_path_factory.mktemp("notebook")
        for name, value in (("secret", SECRET), ("control", CONTROL), ("good", "7")):
            pd.DataFrame({"num": pd.Series([value] * 4, dtype=object)}).to_parquet(folder / f"{name}.parquet")
        begin = BEGIN.replace("{tests}", str(Path(__file__).parents[2]))
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in (begin, *cells)])
        client = nbclient.NotebookClient(
            notebook,
            timeout=int(LIMIT),
            startup_timeout=int(LIMIT),
            kernel_name="python3",
            allow_errors=True,
            store_widget_state=False,
            resources={"metadata": {"path": str(folder)}},
        )
        # Under pytest a kernel would not watch its descriptors.
        env = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        with forking_here():
            client.execute(env=env | {"SPARK_WORKER_DIR": str(folder / "workers")})
        return notebook.cells

    return executed


@pytest.mark.parametrize(
    ("cells", "seen"),
    [
        pytest.param(POLARS, [CONTROL, "panicked"], id="polars"),
        pytest.param(DUCKDB, [CONTROL, "FloatProgress"], id="duckdb"),
        pytest.param(DASK, [CONTROL, "Compute Failed", "Completed"], id="dask", marks=pytest.mark.dask),
        pytest.param(
            SPARK,
            [CONTROL, "QueryContextLogger", "[Stage"],
            id="spark",
            marks=[
                pytest.mark.spark,
                pytest.mark.skipif(shutil.which("java") is None and "JAVA_HOME" not in os.environ, reason="needs Java"),
            ],
        ),
    ],
)
def test_a_saved_notebook_shows_nothing_of_what_engines_say(
    cells: tuple[str, ...], seen: list[str], run: Callable[[tuple[str, ...]], list[nbformat.NotebookNode]]
) -> None:
    executed = run(cells)
    control = json.dumps([cell.outputs for cell in executed if cell.source.startswith(MARK)])
    for words in seen:
        assert words in control
    for cell in executed:
        if cell.source.startswith((MARK, QUIET)):  # to the second the last words of the control may come
            continue
        saved = json.dumps(cell.outputs)
        for words in [SECRET, *seen]:
            assert words not in saved, cell.source
        names = [output.ename for output in cell.outputs if output.output_type == "error"]
        assert names == (["ExecutionError"] if "secret" in cell.source else []), saved[-3000:]
