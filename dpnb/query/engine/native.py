"""What engines do each in a way of their own; everything else is said once, in narwhals.

Nothing here may fail on account of what a row holds: an engine's own message would quote it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import narwhals as nw

from dpnb.query.background import Background, refuse_stopped
from dpnb.query.contribution import LIMB_BITS, MULTIPLIER, PRIME, name_number
from dpnb.query.engine.spark_jobs import TaggedJobs, heard_by_python
from dpnb.query.own_settings import own_settings

Frame = nw.LazyFrame[Any]
T = TypeVar("T")

FEW = 64
"""Values that are looked up in a list; among more, DuckDB decides by halves."""

LIMB = 2**LIMB_BITS

ROWS_AT_ONCE = 2**24
"""Of a few columns they take between one and two gigabytes to put in order."""

HEX_DIGITS = 15
"""Of an MD5, as in `dpnb.query.contribution.name_number`."""


class Engine(ABC):
    """What every engine can do through narwhals alone, or would have to override."""

    name = ""
    rows_at_once: int | None = None
    """About persons a longer table is asked share by share, since the engine would put all of its rows in order at
    once; None for an engine that spreads them over machines."""
    wide_sums = False
    """Sums of 64-bit integers are wider than these, and cannot wrap round however many rows there are."""

    def __init__(self) -> None:
        self._background = Background()

    def run(self, work: Callable[[], T], natives: Iterable[Any]) -> T:
        """Have the engine do something for some of its frames; an interrupt ends it and is raised as an interrupt.

        All work of an engine goes through this method: see `dpnb.query.background`.
        """
        del natives
        return self._background.run(work)

    def settle(self) -> None:
        """Wait until what an interrupt left behind has ended."""
        self._background.settle()

    def opened(self, native: Any) -> Frame:
        """The native frame as narwhals sees it."""
        with own_settings():  # narwhals warns of plugins that could be installed
            return _opened(native)

    def rows(self, native: Any) -> int:
        """How many a frame has."""
        return int(self.collected(self.opened(native).select(rows=nw.len()))[0]["rows"])

    @abstractmethod
    def hashed(self, frame: Frame, columns: Mapping[str, str]) -> Frame:
        """The frame with the number of each text, as `name_number` gives it, for every ``from: to`` of `columns`."""

    def microseconds(self, frame: Frame, columns: Mapping[str, str]) -> Frame:
        """The frame with moments in microseconds since 1970, in UTC, for every ``from: to`` of `columns`."""
        return frame.with_columns(**{to: nw.col(column).dt.timestamp("us") for column, to in columns.items()})

    @abstractmethod
    def dated(self, frame: Frame, column: str, to: str) -> Frame:
        """The frame with dates, of 32-bit days since 1970."""

    @abstractmethod
    def row_hash(self, frame: Frame, columns: Sequence[str], to: str) -> Frame:
        """The frame with a hash of integer columns, not negative ones, as `dpnb.query.contribution.row_hash`."""

    def divided(self, column: nw.Expr, by: float) -> nw.Expr:
        """A column of finite doubles divided by one number, correctly rounded."""
        return column / by

    def placed(self, column: nw.Expr, values: Sequence[Any], places: Sequence[int]) -> nw.Expr:
        """The place of a column's value in a public list, whose values are of its type; -1 for any other."""
        return column.replace_strict(list(values), list(places), default=-1, return_dtype=nw.Int64)

    def collected(self, frame: Frame) -> list[dict[str, Any]]:
        """The rows of a small result."""
        refuse_stopped()
        with own_settings():
            return frame.collect().rows(named=True)

    @abstractmethod
    def kept(self, frame: Frame) -> Frame:
        """The same rows, worked out once, where the engine keeps them."""


class Polars(Engine):
    """Lazy frames of polars, with its streaming engine: what does not fit the memory is read as it is needed."""

    name = "polars"
    rows_at_once = ROWS_AT_ONCE

    def hashed(self, frame: Frame, columns: Mapping[str, str]) -> Frame:  # noqa: D102
        import polars as pl

        def numbers(texts: Any) -> Any:
            distinct = texts.unique()
            found = pl.Series([name_number(text) for text in distinct.to_list()], dtype=pl.Int64)
            return texts.replace_strict(distinct, found, return_dtype=pl.Int64) if len(distinct) else found

        exprs = {
            to: pl.col(column).map_batches(numbers, return_dtype=pl.Int64, is_elementwise=True)
            for column, to in columns.items()
        }
        return _opened(frame.to_native().with_columns(**exprs))

    def divided(self, column: nw.Expr, by: float) -> nw.Expr:  # noqa: D102
        # By a single number polars multiplies with its reciprocal, which rounds twice: 49 / 49 would be below 1.
        return column / (column * 0.0 + by)

    def dated(self, frame: Frame, column: str, to: str) -> Frame:  # noqa: D102
        import polars as pl

        return _opened(frame.to_native().with_columns(pl.col(column).cast(pl.Date).alias(to)))

    def row_hash(self, frame: Frame, columns: Sequence[str], to: str) -> Frame:  # noqa: D102
        import polars as pl

        limbs = [limb for column in map(pl.col, columns) for limb in (column // LIMB, column % LIMB)]
        native = frame.to_native().with_columns(_folded(limbs).alias(to))
        return _opened(native.with_columns(_squared(pl.col(to)).alias(to)))

    def collected(self, frame: Frame) -> list[dict[str, Any]]:  # noqa: D102
        return self._ran(frame).rows(named=True)  # type: ignore[no-any-return]

    def kept(self, frame: Frame) -> Frame:  # noqa: D102
        return _opened(self._ran(frame).lazy())

    def _ran(self, frame: Frame) -> Any:
        # Its own `collect(background=True)` can be stopped, but holds what it streams in memory.  This one looks for
        # interrupts by itself, wherever they arrive, and ends a few seconds after one.
        refuse_stopped()
        return frame.to_native().collect(engine="streaming")


class DuckDB(Engine):
    """Relations of DuckDB, of whatever it reads: tables, Parquet, CSV; larger than memory if need be."""

    name = "duckdb"
    rows_at_once = ROWS_AT_ONCE
    wide_sums = True

    def hashed(self, frame: Frame, columns: Mapping[str, str]) -> Frame:  # noqa: D102
        from duckdb import ColumnExpression as Column
        from duckdb import ConstantExpression as Constant
        from duckdb import FunctionExpression as Function
        from duckdb import StarExpression as Star

        def number(column: str) -> Any:
            digits = Function("substr", Function("md5", Column(column)), Constant(1), Constant(HEX_DIGITS))
            return Function("concat", Constant("0x"), digits).cast("BIGINT")

        native = frame.to_native().select(Star(), *(number(column).alias(to) for column, to in columns.items()))
        return _opened(native)

    def microseconds(self, frame: Frame, columns: Mapping[str, str]) -> Frame:  # noqa: D102
        from duckdb import ColumnExpression as Column
        from duckdb import FunctionExpression as Function
        from duckdb import SQLExpression as Sql
        from duckdb import StarExpression as Star

        # A date, or a moment in coarser steps, may lie beyond what microseconds count: converting it is an error.
        types = frame.collect_schema()
        cast = {to: name for name, to in columns.items() if types[name] == nw.Date or _is_coarse(types[name])}
        moments = (Sql(f'try_cast("{name}" AS TIMESTAMP)').alias(to) for to, name in cast.items())
        since = (Function("epoch_us", Column(to if to in cast else name)).alias(to) for name, to in columns.items())
        native = frame.to_native().select(Star(), *moments)
        return _opened(native.select(*map(Column, types), *since))

    def dated(self, frame: Frame, column: str, to: str) -> Frame:  # noqa: D102
        from duckdb import ColumnExpression as Column
        from duckdb import ConstantExpression as Constant
        from duckdb import StarExpression as Star

        date = Constant("1970-01-01").cast("DATE") + Column(column)
        return _opened(frame.to_native().select(Star(), date.alias(to)))

    def row_hash(self, frame: Frame, columns: Sequence[str], to: str) -> Frame:  # noqa: D102
        from duckdb import ColumnExpression as Column
        from duckdb import StarExpression as Star

        limbs = [limb for column in map(Column, columns) for limb in (column // LIMB, column % LIMB)]
        native = frame.to_native().select(Star(), _folded(limbs).alias(to))
        return _opened(native.select(Star(exclude=[to]), _squared(Column(to)).alias(to)))

    def placed(self, column: nw.Expr, values: Sequence[Any], places: Sequence[int]) -> nw.Expr:  # noqa: D102
        if len(values) <= FEW:
            return super().placed(column, values, places)
        ordered = sorted(zip(values, places, strict=True))

        def within(start: int, end: int) -> nw.Expr:
            if end - start == 1:
                value, place = ordered[start]
                return nw.when(column == value).then(nw.lit(place)).otherwise(nw.lit(-1))
            middle = (start + end) // 2
            return nw.when(column < ordered[middle][0]).then(within(start, middle)).otherwise(within(middle, end))

        return within(0, len(ordered)).cast(nw.Int64)

    def kept(self, frame: Frame) -> Frame:  # noqa: D102
        refuse_stopped()
        return _opened(frame.to_native().materialize())

    def run(self, work: Callable[[], T], natives: Iterable[Any]) -> T:  # noqa: D102
        # Only a private attribute gives a relation's connection; without it the work is waited for.
        connections = [con for native in natives if (con := getattr(native, "_con", None)) is not None]

        def cancel() -> None:
            for connection in connections:
                connection.interrupt()

        return self._background.run(work, cancel)


class Spark(Engine):
    """Data frames of PySpark, also through Spark Connect."""

    name = "pyspark"

    def hashed(self, frame: Frame, columns: Mapping[str, str]) -> Frame:  # noqa: D102
        from pyspark.sql import functions as spark

        def number(column: str) -> Any:
            return spark.conv(spark.substring(spark.md5(spark.col(column)), 1, HEX_DIGITS), 16, 10).cast("bigint")

        return _opened(frame.to_native().withColumns({to: number(column) for column, to in columns.items()}))

    def microseconds(self, frame: Frame, columns: Mapping[str, str]) -> Frame:  # noqa: D102
        from pyspark.sql import functions as spark

        since = {to: spark.unix_micros(spark.col(column).cast("timestamp")) for column, to in columns.items()}
        return _opened(frame.to_native().withColumns(since))

    def dated(self, frame: Frame, column: str, to: str) -> Frame:  # noqa: D102
        from pyspark.sql import functions as spark

        date = spark.date_add(spark.lit("1970-01-01").cast("date"), spark.col(column))
        return _opened(frame.to_native().withColumn(to, date))

    def row_hash(self, frame: Frame, columns: Sequence[str], to: str) -> Frame:  # noqa: D102
        from pyspark.sql import functions as spark

        limbs = [
            limb for column in map(spark.col, columns) for limb in (spark.shiftright(column, LIMB_BITS), column % LIMB)
        ]
        native = frame.to_native().withColumn(to, _folded(limbs))
        return _opened(native.withColumn(to, _squared(spark.col(to))))

    def kept(self, frame: Frame) -> Frame:  # noqa: D102
        refuse_stopped()
        return _opened(frame.to_native().localCheckpoint())

    def run(self, work: Callable[[], T], natives: Iterable[Any]) -> T:  # noqa: D102
        jobs = TaggedJobs(natives)
        with heard_by_python():
            return self._background.run(lambda: jobs.of(work), jobs.cancel)


def _is_coarse(kind: Any) -> bool:
    """Whether a type is of moments without a zone, in seconds or milliseconds."""
    return isinstance(kind, nw.Datetime) and kind.time_zone is None and kind.time_unit in ("s", "ms")


def _opened(native: Any) -> Frame:
    """An engine's own frame as narwhals sees it."""
    frame: Frame = nw.from_native(native)
    return frame


def _folded(limbs: Sequence[Any]) -> Any:
    """The state of the hash after some limbs, in an engine's own words: narwhals' remainder holds its operand twice."""
    state = limbs[0] % PRIME + (MULTIPLIER + 1)
    for limb in limbs[1:]:
        state = state % PRIME * MULTIPLIER + limb % PRIME + 1
    return state % PRIME


def _squared(state: Any) -> Any:
    """Without a square the hash would be linear."""
    return (state * state % PRIME * MULTIPLIER + state) % PRIME


ENGINES: dict[nw.Implementation, Engine] = {
    nw.Implementation.POLARS: Polars(),
    nw.Implementation.DUCKDB: DuckDB(),
    nw.Implementation.PYSPARK: Spark(),
    nw.Implementation.PYSPARK_CONNECT: Spark(),
}
