"""The engine Spark, and its jobs for one request: tagged, so that an interrupt cancels these and no others."""

from __future__ import annotations

import re
import signal
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import narwhals as nw

from dpnb._backends.contribution import LIMB_BITS
from dpnb._backends.lazy.engines.engine import (
    HEX_DIGITS,
    LIMB,
    LIMITED,
    ONE_OF_SEVERAL,
    RANDOM,
    TIME,
    Engine,
    LazyFrame,
    Paths,
    PlanLine,
    T,
    folded,
    inputs_of,
    line_of,
    opened,
    squared,
)
from dpnb._backends.worker_thread import refuse_stopped
from dpnb._plan.expressions.letters import LETTERS, Case
from dpnb._plan.expressions.periods import DAY
from dpnb.errors import SchemaError

# --- the jobs of Spark for one request --------------------------------------------------------------------------------


class TaggedJobs:
    """Jobs with a tag, run by the sessions of some data frames of Spark."""

    def __init__(self, natives: Iterable[Any]) -> None:
        sessions = {id(session): session for session in (native.sparkSession for native in natives)}
        self._calls = [_calls(session) for session in sessions.values()]
        self._tag = f"dpnb-{time.monotonic_ns()}"

    def run(self, work: Callable[[], T]) -> T:
        """Run work in this thread and tag its jobs."""
        for add, _, _ in self._calls:
            add(self._tag)
        try:
            return work()
        finally:
            for _, remove, _ in self._calls:
                remove(self._tag)

    def cancel(self) -> None:
        """Cancel the jobs, from any thread."""
        for _, _, cancel in self._calls:
            cancel(self._tag)


TagCall = Callable[[str], Any]


def _calls(session: Any) -> tuple[TagCall, TagCall, TagCall]:
    """Three calls: start tagging a thread's jobs, stop tagging them, and cancel the jobs with the tag."""
    if type(session).__module__.startswith("pyspark.sql.connect"):
        return session.addTag, session.removeTag, session.interruptTag
    context = session.sparkContext  # a session's tags are visible in one thread only
    return context.addJobTag, context.removeJobTag, context.cancelJobsWithTag


@contextmanager
def python_sigint_handler() -> Iterator[None]:
    """Use Python's handler of interrupts instead of PySpark's, which cancels the jobs of all threads.

    PySpark's handler also calls the JVM during other calls, whose answers may then be mixed up.
    """
    before = signal.getsignal(signal.SIGINT)
    is_main_thread = threading.current_thread() is threading.main_thread()
    if not is_main_thread or not getattr(before, "__module__", "").startswith("pyspark"):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


# --- the engine -------------------------------------------------------------------------------------------------------


_SETTINGS = {"spark.sql.functionResolution.sessionOrder": ("second", "last"), "spark.sql.path.enabled": ("false",)}
"""Settings with whose other values a function of the session can take the place of one of Spark, and what they may be.
The first value is the default."""

_MICROS = int(DAY * 1_000_000)
"""Microseconds of a day."""

_SQL_TYPES = {str: "string", float: "double", int: "bigint"}


class Spark(Engine):
    """Data frames of PySpark, also through Spark Connect."""

    name, label = "pyspark", "Spark"
    shares_subexpressions = False
    has_settings = True

    def refuse_settings(self, natives: Iterable[Any]) -> None:
        for session in {id(native.sparkSession): native.sparkSession for native in natives}.values():
            for name, values in _SETTINGS.items():
                value = str(session.conf.get(name, values[0]))
                if value.lower() not in values:
                    raise SchemaError(
                        f"Spark session: {name} must be {values[0]!r}, since another value lets functions of the "
                        f"session take the place of those of Spark; got {value!r}; spark.conf.unset({name!r})"
                    )

    def by_unit(self, frame: LazyFrame) -> LazyFrame:
        return opened(frame.to_native().repartition("unit"))

    def distinct(self, frame: LazyFrame) -> LazyFrame:
        return opened(frame.to_native().distinct())  # narwhals numbers the rows instead, which sorts them

    def hashed(self, frame: LazyFrame, columns: Mapping[str, str]) -> LazyFrame:
        from pyspark.sql import functions as spark

        def number(column: str) -> Any:
            return spark.conv(spark.substring(spark.md5(spark.col(column)), 1, HEX_DIGITS), 16, 10).cast("bigint")

        return opened(frame.to_native().withColumns({to: number(column) for column, to in columns.items()}))

    def microseconds(self, frame: LazyFrame, columns: Mapping[str, str]) -> LazyFrame:
        from pyspark.sql import functions as spark

        types = frame.collect_schema()

        def micros(column: str) -> Any:
            if types[column] == nw.Date:  # a cast would be to the start of the day in the session's time zone
                # The product is null for a day outside the range of microseconds, where a cast would be an error.
                return spark.try_multiply(spark.unix_date(spark.col(column)).cast("bigint"), spark.lit(_MICROS))
            return spark.unix_micros(spark.col(column).cast("timestamp"))

        return opened(frame.to_native().withColumns({to: micros(column) for column, to in columns.items()}))

    def dated(self, frame: LazyFrame, column: str, to: str) -> LazyFrame:
        from pyspark.sql import functions as spark

        date = spark.date_add(spark.lit("1970-01-01").cast("date"), spark.col(column))
        return opened(frame.to_native().withColumn(to, date))

    def with_case(self, frame: LazyFrame, column: str, to: str, case: Case) -> LazyFrame:
        from pyspark.sql import functions as spark

        letters = LETTERS[case]
        changed = spark.translate(spark.col(column), "".join(letters), "".join(letters.values()))
        return opened(frame.to_native().withColumn(to, changed))

    def row_hash(self, frame: LazyFrame, columns: Sequence[str], to: str) -> LazyFrame:
        from pyspark.sql import functions as spark

        limbs = [
            limb for column in map(spark.col, columns) for limb in (spark.shiftright(column, LIMB_BITS), column % LIMB)
        ]
        native = frame.to_native().withColumn(to, folded(limbs))
        return opened(native.withColumn(to, squared(spark.col(to))))

    def public_table(self, frame: LazyFrame, columns: Mapping[str, Sequence[Any]]) -> LazyFrame:
        from pyspark.sql import functions as spark

        kinds = {name: _SQL_TYPES[type(values[0])] for name, values in columns.items()}
        schema = ", ".join(f"{name} {kind}" for name, kind in kinds.items())
        rows = list(zip(*columns.values(), strict=True))
        return opened(spark.broadcast(frame.to_native().sparkSession.createDataFrame(rows, schema)))

    def kept(self, frame: LazyFrame) -> LazyFrame:
        refuse_stopped()
        return opened(frame.to_native().localCheckpoint())

    def run(self, work: Callable[[], T], natives: Iterable[Any], within: float | None = None) -> T:
        jobs = TaggedJobs(natives)
        with python_sigint_handler():
            return self._background.run(lambda: jobs.run(work), jobs.cancel, within)

    def unstable(self, native: Any) -> str | None:
        if hasattr(native, "_jdf"):
            plan = native._jdf.queryExecution().analyzed()
            text, random = plan.toString(), not plan.deterministic()
        else:  # Spark Connect
            text = (
                native._explain_string(extended=True).partition("== Analyzed Logical Plan ==")[2].partition("\n== ")[0]
            )
            random = bool(re.search(r"\b(rand|randn|uuid|shuffle|monotonically_increasing_id)\(", text))
        if random:
            return RANDOM
        lines = [line_of(line) for line in text.splitlines()]
        for index, (_, line) in enumerate(lines):
            ordered = any(re.match(r"Sort .*, true$", text) for text in inputs_of(lines, index))
            if line.startswith("Sample "):
                return RANDOM
            if re.match(r"(GlobalLimit|Limit|Offset|Tail) ", line) and not ordered:
                return LIMITED
            if line.startswith("Deduplicate ") and _compares_some_columns(line, lines[index + 1 :]):
                return ONE_OF_SEVERAL
            if re.search(r"\b(current_timestamp|current_date|now|localtimestamp)\(", line):
                return TIME
        return None

    def files(self, native: Any) -> Paths:
        paths = list(native.inputFiles())  # Spark lists the files once, and reads no others
        return lambda: paths


def _compares_some_columns(line: str, below: list[PlanLine]) -> bool:
    """Whether duplicates are found by some of the columns: then the first row to arrive is kept."""
    compared = re.findall(r"\w+#\d+", line)
    columns = re.findall(r"\w+#\d+", below[0][1]) if below else []
    return not set(columns) <= set(compared)
