"""The first rows of each unit, without sorting whole rows; the same rows as by `dpnb._backends.contribution.ranks`.

The hash of every row is sorted in numpy, beside its unit; the engine then keeps the rows whose hash is at most that of
the last row of their unit that counts.  Only for engines in this process, since both columns leave the engine.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np

from dpnb._backends.contribution import PRIME_BITS, Integers, starts_of
from dpnb._backends.lazy.contribution import content_hashes, ranked
from dpnb._backends.lazy.engines.engine import Frame
from dpnb._backends.lazy.lazy_table import NAME, UNIT, LazyTable

HASH, LAST = "h_first", "h_last"
"""Columns: a row's hash if no other row of its unit is equal, and that of the last row of its unit that counts."""


def with_first_rows(table: LazyTable, max_rows: int, *, keep: bool) -> LazyTable:
    """The table with at most `max_rows` rows of each unit, and its columns prepared.

    Parameters
    ----------
    table : LazyTable
    max_rows : int
    keep : bool
        Whether the rows are computed once and kept in the engine, which must then be in this process.
    """
    engine = table.engine
    table = table.all_prepared()
    if not engine.in_process:
        return replace(table, frame=_by_rank(table, table.frame, max_rows), max_rows=max_rows)
    columns = table.prepared_columns()
    frame = content_hashes(engine, table.frame, table.contents()[0], HASH).select(*columns, HASH)
    frame = _first_rows(table, engine.kept(frame) if keep else frame, max_rows)
    return replace(table, frame=engine.kept(frame) if keep else frame, max_rows=max_rows)


def _by_rank(table: LazyTable, frame: Frame, max_rows: int) -> Frame:
    columns = table.prepared_columns()
    return (
        ranked(table.engine, frame.select(*columns), *table.contents())
        .filter(nw.col("rank") <= max_rows)
        .select(*columns)
    )


def _first_rows(table: LazyTable, frame: Frame, max_rows: int) -> Frame:
    engine, columns = table.engine, table.prepared_columns()
    is_integer = frame.collect_schema()[UNIT].is_integer()
    # An integer identifies its unit; the number of a text does if no two units have the same.
    key = UNIT if is_integer else NAME
    keys, hashes = engine.arrays(frame.select(key, nw.col(HASH).cast(nw.Int32))).values()
    units, last, tied, count = last_hashes(keys, hashes, max_rows)
    del keys, hashes
    if not is_integer and int(engine.collected(frame.select(nw.col(UNIT).n_unique()))[0][UNIT]) != count:
        return _by_rank(table, frame, max_rows)
    limits = engine.private_table(frame, {key: units, LAST: last})
    first = frame.join(limits, on=key, how="left").filter(nw.col(LAST).is_null() | (nw.col(HASH) <= nw.col(LAST)))
    if not len(tied):
        return first.select(*columns)
    # Rows of these units may be equal, and are then numbered before they are hashed.
    those = engine.private_table(frame, {key: tied})
    others = first.join(those, on=key, how="anti").select(*columns)
    return nw.concat([others, _by_rank(table, frame.join(those, on=key, how="semi"), max_rows)])


def last_hashes(units: Integers, hashes: Any, max_rows: int) -> tuple[Integers, Integers, Integers, int]:
    """The units with more than `max_rows` rows, each with the hash of the last row that counts.

    Parameters
    ----------
    units : int64 array, shape (rows,)
    hashes : integer array, shape (rows,)
        Below 2**31.
    max_rows : int

    Returns
    -------
    units, last : int64 arrays
    tied : int64 array
        The units that have two rows with the same hash; their last hash is not to be used.
    count : int
        The number of units.
    """
    distinct: Integers | None = None
    if len(units) and (units.min() < 0 or units.max() >= 2**32):
        distinct, units = np.unique(units, return_inverse=True)
    sorting = units.astype(np.int64) << PRIME_BITS
    sorting |= hashes
    sorting.sort()
    ordered = sorting >> PRIME_BITS
    starts = starts_of([ordered])
    tied = np.unique(ordered[1:][sorting[1:] == sorting[:-1]])
    sizes = np.diff(np.r_[starts, len(ordered)])
    long = starts[sizes > max_rows]
    found, last = ordered[long], sorting[long + (max_rows - 1)] & (2**PRIME_BITS - 1)
    if distinct is not None:
        found, tied = distinct[found], distinct[tied]
    return found, last, tied, len(starts)
