"""The first rows of each unit, without sorting whole rows; the same rows as by `dpnb._backends.contribution.ranks`.

The hash of every row is sorted in numpy, beside its unit; the engine then keeps the rows whose hash is at most that of
the last row of their unit that counts.  Only for engines in this process, since both columns leave the engine.  The
bound on a unit's rows holds only if both reads see the same rows, as every table in an engine must have.
"""

from __future__ import annotations

from dataclasses import replace

import narwhals as nw
import numpy as np

from dpnb._backends.contribution import PRIME_BITS, Integers
from dpnb._backends.lazy.contribution import content_hashes, ranked
from dpnb._backends.lazy.engines.engine import Engine, InProcessEngine, LazyFrame
from dpnb._backends.lazy.lazy_table import NAME, UNIT, LazyTable

HASH, LAST = "h_first", "h_last"
"""Columns: a row's hash if no other row of its unit is equal, and that of the last row of its unit that counts."""


def with_first_rows(table: LazyTable, max_rows: int, *, keep: bool) -> LazyTable:
    """The table with at most `max_rows` rows of each unit, and its columns prepared.

    With `keep`, the rows are computed once and kept in the engine, which must then be in this process.
    """
    engine = table.engine
    table = table.all_prepared()
    if not isinstance(engine, InProcessEngine):
        return replace(table, frame=_by_rank(table, table.frame, max_rows), max_rows=max_rows)
    columns = table.prepared_columns()
    frame = content_hashes(engine, table.frame, table.contents()[0], HASH).select(*columns, HASH)
    frame = _first_rows(engine, table, engine.kept(frame) if keep else frame, max_rows)
    return replace(table, frame=engine.kept(frame) if keep else frame, max_rows=max_rows)


def _by_rank(table: LazyTable, frame: LazyFrame, max_rows: int) -> LazyFrame:
    columns = table.prepared_columns()
    return (
        ranked(table.engine, frame.select(*columns), *table.contents())
        .filter(nw.col("rank") <= max_rows)
        .select(*columns)
    )


def _first_rows(engine: InProcessEngine, table: LazyTable, frame: LazyFrame, max_rows: int) -> LazyFrame:
    columns = table.prepared_columns()
    is_integer = frame.collect_schema()[UNIT].is_integer()
    # An integer identifies its unit; the number of a text does if no two units have the same.
    key = UNIT if is_integer else NAME
    units, last, tied, count = _last_hashes(engine, frame, key, max_rows)
    if not is_integer and int(engine.collected(frame.select(nw.col(UNIT).n_unique().fill_null(0)))[UNIT][0]) != count:
        return _by_rank(table, frame, max_rows)
    limits = engine.private_table(frame, {key: units, LAST: last})
    first = frame.join(limits, on=key, how="left").filter(nw.col(LAST).is_null() | (nw.col(HASH) <= nw.col(LAST)))
    if not len(tied):
        return first.select(*columns)
    # Rows of these units may be equal, and are then numbered before they are hashed.
    those = engine.private_table(frame, {key: tied})
    others = first.join(those, on=key, how="anti").select(*columns)
    return nw.concat([others, _by_rank(table, frame.join(those, on=key, how="semi"), max_rows)])


def _last_hashes(
    engine: InProcessEngine, frame: LazyFrame, key: str, max_rows: int
) -> tuple[Integers, Integers, Integers, int]:
    if has_small_units(engine, frame, key):
        (sorting,) = engine.arrays(frame.select(sorting=nw.col(key) * 2**PRIME_BITS + nw.col(HASH))).values()
        return last_hashes(sorting, max_rows)
    keys, hashes = engine.arrays(frame.select(key, nw.col(HASH).cast(nw.Int32))).values()
    distinct, numbers = np.unique(keys, return_inverse=True)
    units, last, tied, count = last_hashes((numbers.astype(np.int64) << PRIME_BITS) | hashes, max_rows)
    return distinct[units], last, distinct[tied], count


def has_small_units(engine: Engine, frame: LazyFrame, key: str) -> bool:
    """Whether all units are integers from 0 to 2**32 - 1, which fit 64 bits together with a hash."""
    low, high = nw.col(key).min().fill_null(-1), nw.col(key).max().fill_null(-1)  # -1: the table is empty
    ends = engine.collected(frame.select(low=low, high=high))
    return bool(ends["low"][0] >= 0 and ends["high"][0] < 2**32)


def last_hashes(sorting: Integers, max_rows: int) -> tuple[Integers, Integers, Integers, int]:
    """The units with more than `max_rows` rows, each with the hash of the last row that counts.

    `sorting` is for each row its unit, from 0 to 2**32 - 1, times 2**31, plus its hash.  Returns the units, their last
    hashes, the units that have two rows with the same hash (their last hash is not to be used), and the number of
    units.
    """
    sorting = np.sort(sorting)
    units = sorting >> PRIME_BITS
    is_first = np.ones(len(units), np.bool_)
    np.not_equal(units[1:], units[:-1], out=is_first[1:])
    starts = np.flatnonzero(is_first)
    tied = np.unique(units[1:][sorting[1:] == sorting[:-1]])
    long = starts[np.diff(starts, append=len(units)) > max_rows]
    return units[long], sorting[long + (max_rows - 1)] & (2**PRIME_BITS - 1), tied, len(starts)
