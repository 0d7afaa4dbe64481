"""Spark."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from dpnb._backends.contribution import LIMB_BITS
from dpnb._backends.lazy.engines.engine import HEX_DIGITS, LIMB, Engine, Frame, Paths, T, folded, opened, squared
from dpnb._backends.lazy.engines.plans import LIMITED, ONE_OF_SEVERAL, RANDOM, TIME, PlanLine, below, line_of
from dpnb._backends.lazy.engines.spark_jobs import TaggedJobs, heard_by_python
from dpnb._backends.worker_thread import refuse_stopped


class Spark(Engine):
    """Data frames of PySpark, also through Spark Connect."""

    name = "pyspark"

    def hashed(self, frame: Frame, columns: Mapping[str, str]) -> Frame:
        from pyspark.sql import functions as spark

        def number(column: str) -> Any:
            return spark.conv(spark.substring(spark.md5(spark.col(column)), 1, HEX_DIGITS), 16, 10).cast("bigint")

        return opened(frame.to_native().withColumns({to: number(column) for column, to in columns.items()}))

    def microseconds(self, frame: Frame, columns: Mapping[str, str]) -> Frame:
        from pyspark.sql import functions as spark

        since = {to: spark.unix_micros(spark.col(column).cast("timestamp")) for column, to in columns.items()}
        return opened(frame.to_native().withColumns(since))

    def dated(self, frame: Frame, column: str, to: str) -> Frame:
        from pyspark.sql import functions as spark

        date = spark.date_add(spark.lit("1970-01-01").cast("date"), spark.col(column))
        return opened(frame.to_native().withColumn(to, date))

    def row_hash(self, frame: Frame, columns: Sequence[str], to: str) -> Frame:
        from pyspark.sql import functions as spark

        limbs = [
            limb for column in map(spark.col, columns) for limb in (spark.shiftright(column, LIMB_BITS), column % LIMB)
        ]
        native = frame.to_native().withColumn(to, folded(limbs))
        return opened(native.withColumn(to, squared(spark.col(to))))

    def kept(self, frame: Frame) -> Frame:
        refuse_stopped()
        return opened(frame.to_native().localCheckpoint())

    def run(self, work: Callable[[], T], natives: Iterable[Any]) -> T:
        jobs = TaggedJobs(natives)
        with heard_by_python():
            return self._background.run(lambda: jobs.of(work), jobs.cancel)

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
        for place, (_, line) in enumerate(lines):
            ordered = any(re.match(r"Sort .*, true$", one) for one in below(lines, place))
            if line.startswith("Sample "):
                return RANDOM
            if re.match(r"(GlobalLimit|Limit|Offset|Tail) ", line) and not ordered:
                return LIMITED
            if line.startswith("Deduplicate ") and _fewer(line, lines[place + 1 :]):
                return ONE_OF_SEVERAL
            if re.search(r"\b(current_timestamp|current_date|now|localtimestamp)\(", line):
                return TIME
        return None

    def files(self, native: Any) -> Paths:
        found = list(native.inputFiles())  # Spark has listed them too, and reads no others
        return lambda: found


def _fewer(line: str, below: list[PlanLine]) -> bool:
    """Whether rows are compared by fewer columns than they have: of equal rows the first to come is kept."""
    names = re.findall(r"\w+#\d+", line)
    there = re.findall(r"\w+#\d+", below[0][1]) if below else []
    return not set(there) <= set(names)
