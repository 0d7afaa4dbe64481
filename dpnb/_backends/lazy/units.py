"""What is kept of each unit in the engine: its first rows, and its spending.

The first rows are the same as by `dpnb._backends.contribution.ranks`, found without sorting whole rows: the hash of
every row is sorted in numpy, beside its unit; the engine then keeps the rows whose hash is at most that of the last row
of their unit that counts.  Only for engines in this process, since both columns leave the engine.  The bound on a
unit's rows holds only if both reads see the same rows, as every table in an engine must have.

The spending of each unit is a table in the engine, charged by the norm of its contribution to a query.  The arithmetic
is that of `dpnb.accounting.individual`, operation by operation, so that the same units are included as in memory: sums
and products rounded to the nearest double, then up to the next one if their exact error requires it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction

import narwhals as nw
import numpy as np

from dpnb._backends.contribution import PRIME_BITS, Integers
from dpnb._backends.lazy.contribution import content_hashes, ranked
from dpnb._backends.lazy.engines.engine import Engine, InProcessEngine, LazyFrame
from dpnb._backends.lazy.execute import SelectedRows
from dpnb._backends.lazy.lazy_table import NAME, UNIT, LazyTable
from dpnb._backends.unit_vectors import SUMMING_MARGIN
from dpnb._compile.features import BRANCHING, TreeFeature
from dpnb._compile.sensitivity import LinearQuery
from dpnb.accounting.individual import OnExhausted, UnitChargeTerms
from dpnb.accounting.individual.arrays import EXACT, MAX_DOUBLE, budget_as_double, taken_apart
from dpnb.accounting.individual.arrays import plus_up as plus_up_in_memory

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


# --- the squared norm of each unit's contribution to a query ----------------------------------------------------------


def unit_norms_squared(query: LinearQuery, selected: SelectedRows) -> LazyFrame:
    """``unit`` and ``square`` of every unit that has a row which counts, rounded up where doubles may not be exact."""
    frame = selected.frame
    if query.cell_subset is not None:
        frame = frame.filter(nw.col("cell").is_in(list(query.cell_subset)))
    parts = [_plain_squares(query, selected, frame)]
    for feature, of in zip(query.features, selected.columns, strict=True):
        if of is not None and of.slot is not None:
            present = of.contributing(frame)
            slot = nw.col(of.slot)
            levels = feature.levels if isinstance(feature, TreeFeature) else 1
            for level in range(levels):
                node = (slot.cast(nw.Float64) / float(BRANCHING**level)).floor()
                by_node = present.with_columns(node=node, value=of.number).group_by("unit", "cell", "node")
                square = nw.col("value").cast(nw.Float64) * feature.weight
                parts.append(
                    by_node.agg(nw.col("value").sum(), terms=nw.len())
                    .with_columns(square=square * square)
                    .select("unit", "square", nw.col("terms").cast(nw.Int64))
                )
    total = nw.concat(parts).group_by("unit").agg(nw.col("square").sum(), nw.col("terms").sum())
    if query.l2_sensitivity_squared < EXACT:
        return total.select("unit", "square")
    margin = (nw.col("terms").cast(nw.Float64) + 3.0) * (2 * SUMMING_MARGIN)
    return total.select("unit", square=nw.col("square") * (margin + 1.0))


def _plain_squares(query: LinearQuery, selected: SelectedRows, frame: LazyFrame) -> LazyFrame:
    """Squares of the features with one slot, and of those to which a unit adds one in each of its cells."""
    columns: dict[str, nw.Expr] = {}
    squares = nw.lit(0.0)
    for index, (feature, of) in enumerate(zip(query.features, selected.columns, strict=True)):
        if of is None:
            squares = squares + float(feature.weight) ** 2
        elif of.slot is None:
            columns[f"s{index}"] = of.number
            length = nw.col(f"s{index}").cast(nw.Float64) * float(feature.weight)
            squares = squares + length * length
    sums = [nw.col(name).sum() for name in columns]
    by_cell = (frame.with_columns(**columns) if columns else frame).group_by("unit", "cell").agg(*sums, terms=nw.len())
    terms = nw.col("terms").cast(nw.Int64) * max(len(query.features), 1)
    return by_cell.with_columns(square=squares, terms=terms).select("unit", "square", "terms")


# --- the spending of each unit ----------------------------------------------------------------------------------------


TO_NEXT = 2.0**-53 * (1 + 2.0**-52)
"""A positive normal double times this is between half of the distance to the next double and 1.5 times this distance;
adding it gives the next."""

SPLIT = 134217729.0
"""2^27 + 1 (Veltkamp): splits a double into two halves of 26 bits."""

MAX_EXPONENT = 400
"""Powers of two up to which no half of a product overflows or vanishes."""


@dataclass(frozen=True, repr=False)
class UnitSpending:
    """The spending of each unit.  SENSITIVE, like everything derived from it."""

    engine: Engine
    budget: Fraction  # of each unit, as mu squared
    drop: bool  # a unit whose budget has once been too small is excluded from all later queries
    units: LazyFrame | None = None  # ``unit``, ``spent``, ``inside``, of the units that some query has used
    others: float = 0.0  # what each other unit has spent

    @classmethod
    def nothing(cls, engine: Engine, budget: Fraction, mode: OnExhausted) -> UnitSpending:
        """The spending before any charge."""
        return cls(engine, budget, mode == "drop")

    def charge(self, squares: LazyFrame, terms: UnitChargeTerms) -> tuple[LazyFrame, UnitSpending]:
        """The units included in a query (``unit``), among those it uses, and the spending after it.

        `squares` has ``unit``, each once, and ``square``, its squared norm, rounded up.
        """
        frame = squares.select("unit", loss=_losses(nw.col("square"), terms))
        if self.units is not None:
            frame = frame.join(self.units, on="unit", how="left")
            spent, inside = nw.col("spent").fill_null(self.others), nw.col("inside").fill_null(True)
            frame = frame.with_columns(spent=spent, inside=inside)
        else:
            frame = frame.with_columns(spent=nw.lit(self.others), inside=nw.lit(True))
        frame = frame.with_columns(after=_plus_up(nw.col("spent"), nw.col("loss")))
        if terms.all_admitted:
            frame = frame.with_columns(after=_minimum(nw.col("after"), MAX_DOUBLE), active=nw.lit(True))
        else:
            limit = budget_as_double(self.budget, name="budget")
            frame = frame.with_columns(active=nw.col("inside") & (nw.col("after") <= limit))
        after = nw.when(nw.col("active")).then(nw.col("after")).otherwise(nw.col("spent"))
        inside = nw.col("active") if self.drop and not terms.all_admitted else nw.col("inside")
        affected = self.engine.kept(frame.select("unit", "active", spent=after, inside=inside))
        units = affected.select("unit", "spent", "inside")
        if self.units is not None:
            units = self.engine.kept(nw.concat([self.units.join(units, on="unit", how="anti"), units]))
        return affected.filter(nw.col("active")).select("unit"), replace(self, units=units)

    def after_charge(self, loss: float) -> UnitSpending:
        """The spending after the same charge to every unit."""
        others = float(np.minimum(plus_up_in_memory(np.array([self.others]), np.array([loss])), MAX_DOUBLE)[0])
        if self.units is None:
            return replace(self, others=others)
        spent = _minimum(_plus_up(nw.col("spent"), nw.lit(loss)), MAX_DOUBLE)
        units = self.units.with_columns(spent=spent).select("unit", "spent", "inside")
        return replace(self, others=others, units=self.engine.kept(units))


def _losses(squares: nw.Expr, terms: UnitChargeTerms) -> nw.Expr:
    """The loss of each unit, as mu squared; see `losses_of_squares`."""
    mantissa, shift = taken_apart(1 / Fraction(terms.sigma) ** 2)
    if abs(shift) >= MAX_EXPONENT:
        raise OverflowError
    if terms.rough:
        return _minimum(squares * (mantissa * (1 + 2.0**-51) * 2.0**shift), float(np.finfo(np.float64).max))
    product, error = _product(squares, mantissa)
    return _minimum(_moved_up(product, error) * 2.0**shift, float(np.finfo(np.float64).max))


def _plus_up(a: nw.Expr, b: nw.Expr) -> nw.Expr:
    """The sum, rounded up (Knuth)."""
    total = a + b
    back = total - a
    return _moved_up(total, (a - (total - back)) + (b - back))


def _product(a: nw.Expr, b: float) -> tuple[nw.Expr, nw.Expr]:
    """The product to nearest, and its exact error (Dekker)."""
    split_a, split_b = a * SPLIT, b * SPLIT
    high_a, high_b = split_a - (split_a - a), split_b - (split_b - b)
    low_a, low_b = a - high_a, b - high_b
    product = a * b
    return product, ((high_a * high_b - product) + high_a * low_b + low_a * high_b) + low_a * low_b


def _moved_up(number: nw.Expr, error: nw.Expr) -> nw.Expr:
    return nw.when(error > 0).then(number + number * TO_NEXT).otherwise(number)


def _minimum(number: nw.Expr, upper: float) -> nw.Expr:
    return nw.when(number < upper).then(number).otherwise(nw.lit(upper))
