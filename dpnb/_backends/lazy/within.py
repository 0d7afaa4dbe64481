"""Values that are computed from the rows of one unit, by windows of the engine over the unit; as in memory.

Each step is a window that every engine has, on a column of the frame, since engines do not nest windows.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property

import narwhals as nw

from dpnb._backends.lazy import arithmetic
from dpnb._backends.lazy.expressions import ALWAYS, NarwhalsEvaluator
from dpnb._backends.lazy.lazy_table import NAME, PLACE, UNIT, LazyTable
from dpnb._backends.protocol import ChosenRows
from dpnb._compile import grid
from dpnb._compile.within import is_any_number
from dpnb._plan.expressions.dtypes import Boolean, Categorical, Dtype, String, as_column
from dpnb._plan.expressions.nodes import Expression, WithinUnit
from dpnb._plan.expressions.rules import column_type, dtype_of
from dpnb._plan.expressions.within import by_value, order_of
from dpnb.schema import Bounded, Categories, Schema

ONE, NONE = nw.lit(1).cast(nw.Int64), nw.lit(0).cast(nw.Int64)


def windowed(table: LazyTable, schema: Schema, columns: tuple[tuple[str, WithinUnit], ...]) -> LazyTable:
    """A table with further columns, each computed from the rows of one unit."""
    frame, contents, finer = table.with_contents()
    table = replace(table, frame=frame.select(*table.prepared_columns()), is_prepared=True)
    rows = NarwhalsEvaluator(table, schema)
    rows.frame = rows.frame.with_columns(**contents, **finer)
    kept = table.prepared_columns()
    stems, types = dict(table.stems), {name: column_type(node, schema) for name, node in columns}
    order = [*contents, *finer]
    for name, node in columns:
        stem = stems[name] = f"w{len(stems)}"
        window = _Window(rows, node, order)
        added = {f"{stem}_{part}": value for part, value in window.column(types[name]).items()}
        if window.is_ordered and not table.is_numbered:
            # Otherwise equal rows could have one order for this column, and another one for others or for ranks.
            added[PLACE] = nw.col(window.numbers)
            table, order = replace(table, is_numbered=True), [*order, PLACE]
        rows.frame = rows.frame.with_columns(**added)
        kept += added
    return replace(
        table,
        frame=rows.frame.select(*kept),
        stems=stems,
        schema=table.schema | types,
        codes=table.codes | {stems[name]: {} for name in types},
        derived=table.derived | set(types),
    )


def chosen_rows(table: LazyTable, chosen: ChosenRows) -> LazyTable:
    """Some rows of a table, with other columns."""
    schema = chosen.schema
    rows = NarwhalsEvaluator(table.all_prepared(), schema)
    rows.keep([rows.holds(chosen.row)])
    stems: dict[str, str] = {}
    types: Schema = {}
    values: dict[str, nw.Expr] = {}
    for level in chosen.columns:
        name, node = level.name, level.expression
        stem = stems[name] = f"c{len(stems)}"
        kind, types[name] = dtype_of(node, schema), column_type(node, schema)
        if isinstance(kind, Categorical | Boolean):
            values[f"{stem}_code"] = rows.level_codes(node)[0].cast(nw.Int64)
        elif isinstance(kind, String):
            values[f"{stem}_hash"] = rows.text_hash(node)
            text = rows.text(node)
            values[f"{stem}_value"], values[f"{stem}_present"] = text.value, text.present
        else:
            values |= {f"{stem}_{part}": of for part, of in _number(rows.numbers(node), types[name]).items()}
    rows.frame = rows.frame.with_columns(**{f"n{name}": value for name, value in values.items()})
    frame = rows.frame.select(UNIT, NAME, **{name: nw.col(f"n{name}") for name in values})
    empty: dict[str, dict[object, int]] = {stem: {} for stem in stems.values()}
    return LazyTable(table.engine, frame, stems, empty, table.public, types, True, chosen.max_rows, is_prepared=True)


def _number(number: object, column: object) -> dict[str, nw.Expr]:
    value, present = number.value, number.present  # type: ignore[attr-defined]
    low, high = column.low, column.high  # type: ignore[attr-defined]
    return {"value": arithmetic.clipped(value, low, high), "present": present}


class _Window:
    """A value within a unit, as columns of the frame of an evaluator."""

    def __init__(self, rows: NarwhalsEvaluator, node: WithinUnit, contents: list[str]) -> None:
        self._rows, self._node = rows, node
        self._kind: Dtype = rows.kind(node.inner)
        # At most as many codes as the values are that were counted; engines tell 0.0 from -0.0.
        codes = [rows.level_codes(key)[0].cast(nw.Int64) for key in node.keys]
        counts = [rows.holds(node.where), *(code >= 0 for code in codes)]
        by = order_of(node)
        self.is_ordered = bool(by) or (node.function == "number" and not is_any_number(node))
        values = [nw.all_horizontal(*counts, ignore_nulls=False).fill_null(False), *codes]
        if by:  # rows without an order are the last ones, and in no computation
            in_order = nw.all_horizontal(*(rows.present(one) for one, _ in by), ignore_nulls=False)
            sortable = [self._sortable(one, in_order, descending=is_down) for one, is_down in by]
            values += [in_order, _integer(~in_order), *sortable]
        self._member, *names = rows.named(*values)
        self._parts = [UNIT, self._member, *names[: len(codes)]]
        order = names[len(codes) :]
        self._in_order = nw.col(order.pop(0)) if by else ALWAYS
        self._order = [*order, *([] if is_any_number(node) else contents)] or [UNIT]

    def column(self, kind: object) -> dict[str, nw.Expr]:
        """The parts of the value as a prepared column, by their names."""
        value, present = self._value()
        present = nw.col(self._member) & present
        if isinstance(kind, Categories):
            return {"code": nw.when(present).then(value.cast(nw.Int64)).otherwise(-ONE)}  # sums can be wider
        low, high = float(kind.low), float(kind.high)  # type: ignore[attr-defined]
        number = nw.when(present).then(value.cast(nw.Float64)).otherwise(nw.lit(low))
        return {"value": arithmetic.clipped(number, low, high), "present": present}

    # --- columns of the frame ---

    def _column(self, value: nw.Expr) -> str:
        return self._rows.named(value)[0]

    def _of(self, value: nw.Expr) -> nw.Expr:
        return nw.col(self._column(value))

    def _both(self, one: nw.Expr, other: nw.Expr) -> tuple[nw.Expr, nw.Expr]:
        first, second = self._rows.named(one, other)
        return nw.col(first), nw.col(second)

    def _order_of(self, node: Expression) -> nw.Expr:
        kind = self._rows.kind(node)
        if not isinstance(kind, Categorical):
            return self._rows.numbers(node).value + 0.0  # not -0.0
        places = {value: place for place, value in enumerate(sorted(kind.values, key=by_value))}
        return self._rows.translated(self._rows.codes(node), [places[value] for value in kind.values])

    def _sortable(self, node: Expression, in_order: nw.Expr, *, descending: bool) -> nw.Expr:
        number = self._order_of(node)
        return nw.when(in_order).then(-number if descending else number).otherwise(nw.lit(0))

    # --- windows ---

    def _over(self, value: nw.Expr, *more: str) -> nw.Expr:
        """A statistic of the rows with the same unit and keys."""
        return self._of(value.over(*self._parts, *more))

    def _ordered(self, value: nw.Expr) -> nw.Expr:
        return self._of(value.over(*self._parts, order_by=[self.numbers]))

    @cached_property
    def numbers(self) -> str:
        """The column with 1, 2, 3, ... for the rows of a unit in their order.

        All windows are in the order of these numbers: two of them could have equal rows in different orders.
        """
        number = nw.col(NAME).cum_count().cast(nw.Int64)
        return self._column(number.over(*self._parts, order_by=list(dict.fromkeys(self._order))))

    @property
    def _number(self) -> nw.Expr:
        return nw.col(self.numbers)

    @cached_property
    def _present(self) -> nw.Expr:
        """Where the argument is present, a column of truth values."""
        if self._node.function in ("size", "number"):
            return ALWAYS
        return self._of(nw.col(self._member) & self._rows.present(self._node.inner) & self._in_order)

    @cached_property
    def _argument(self) -> nw.Expr:
        """The argument in each row; a placeholder where it is missing."""
        if isinstance(self._kind, Categorical):
            return self._of(self._rows.codes(self._node.inner))
        return self._of(self._rows.numbers(self._node.inner).value + 0.0)  # not -0.0

    def _value(self) -> tuple[nw.Expr, nw.Expr]:
        """The value, and where it is present in the rows that are computed together."""
        node = self._node
        match node.function:
            case "size":
                return self._over(self._of(ONE + NONE * nw.col(NAME).cast(nw.Int64)).sum()), ALWAYS
            case "number":
                return self._number - 1, ALWAYS
            case "count":
                return self._count(self._present), ALWAYS
            case "nunique":
                return self._nunique(), ALWAYS
            case "sum":
                return self._from_grid(self._over(self._steps.sum())), ALWAYS
            case "cumsum":
                return self._from_grid(self._ordered(self._steps.cum_sum())), self._present
            case "mean":
                return self._mean(self._over(self._steps.sum()), self._count(self._present))
            case "rolling_sum" | "rolling_mean":
                return self._rolling()
            case "min" | "max":
                filled = self._filled
                extreme = filled.min() if node.function == "min" else filled.max()
                return self._over(extreme), self._count(self._present) > 0
            case "cummin" | "cummax":
                filled = self._filled
                extreme = filled.cum_min() if node.function == "cummin" else filled.cum_max()
                return self._ordered(extreme), self._present
            case "rank":
                return self._rank()
            case "shift":
                present = self._shifted(_integer(self._present)) > 0
                return self._shifted(self._argument), present & self._in_order
        return self._selected()

    def _count(self, condition: nw.Expr) -> nw.Expr:
        return self._over(self._of(_integer(condition)).sum())

    def _shifted(self, value: nw.Expr) -> nw.Expr:
        shifted = self._ordered(value.shift(self._node.offset))
        return self._of(shifted.fill_null(0))

    # --- sums ---

    @property
    def _grid(self) -> Bounded:
        column = as_column(self._node.inner, self._kind)
        if not isinstance(column, Bounded):
            raise TypeError(type(column).__name__)
        return column

    @cached_property
    def _steps(self) -> nw.Expr:
        present = self._present
        steps = arithmetic.to_grid(self._argument, self._grid).cast(nw.Int64)
        return self._of(nw.when(present).then(steps).otherwise(NONE))

    def _from_grid(self, steps: nw.Expr) -> nw.Expr:
        return steps.cast(nw.Int64).cast(nw.Float64) * 2.0 ** grid.exponent(self._grid)

    def _mean(self, steps: nw.Expr, counts: nw.Expr) -> tuple[nw.Expr, nw.Expr]:
        divisor = self._of(nw.when(counts > 0).then(counts).otherwise(ONE).cast(nw.Float64))
        mean = self._of(steps.cast(nw.Int64).cast(nw.Float64)) / divisor
        return mean * 2.0 ** grid.exponent(self._grid), counts > 0

    def _rolling(self) -> tuple[nw.Expr, nw.Expr]:
        sums, counts = (
            self._of(running - self._shifted(running))
            for running in (
                self._ordered(self._steps.cum_sum()),
                self._ordered(self._of(_integer(self._present)).cum_sum()),
            )
        )
        enough = (counts >= self._node.least) & self._in_order
        if self._node.function == "rolling_sum":
            return self._from_grid(sums), enough
        return self._mean(sums, counts)[0], enough

    # --- order statistics ---

    @property
    def _filled(self) -> nw.Expr:
        """The argument, and where it is missing a number beyond its bounds that no extreme is."""
        low, high = float(self._kind.low), float(self._kind.high)  # type: ignore[union-attr]  # by its rule
        beyond = high if self._node.function.endswith("min") else low
        return self._of(nw.when(self._present).then(self._argument).otherwise(nw.lit(beyond)))

    def _numbered(self) -> tuple[nw.Expr, str, str]:
        """The rows of a unit with a value numbered by it, and the columns where it is present and what it is."""
        present, value = self._rows.named(_integer(self._present), self._argument)
        number = nw.col(NAME).cum_count().cast(nw.Int64).over(*self._parts, present, order_by=[value, UNIT])
        return self._of(number), present, value

    def _nunique(self) -> nw.Expr:
        number, present, value = self._numbered()
        first = self._over(number.min(), present, value)
        return self._count((number == first) & (nw.col(present) > 0))

    def _rank(self) -> tuple[nw.Expr, nw.Expr]:
        number, present, value = self._numbered()
        parts = (*self._parts, present, value)
        first, last = self._both(number.min().over(*parts), number.max().over(*parts))
        return (first + last).cast(nw.Float64) / 2.0, nw.col(present) > 0

    # --- values of other rows ---

    def _selected(self) -> tuple[nw.Expr, nw.Expr]:
        """The value of one row with a value, in all rows of its unit or, for "ffill", in those up to the next one."""
        node, present = self._node, self._present
        counted = self._of(_integer(present))
        more: list[str] = []
        if node.function == "nth":
            number = self._number
            place = node.offset + 1 if node.offset >= 0 else self._count(self._in_order) + node.offset + 1
            is_it = present & (number == place)
        else:
            before = self._ordered(counted.cum_sum())
            if node.function == "ffill":
                more, is_it = [self._column(before), self._column(self._in_order)], present
            else:
                place = 1 if node.function == "first" else self._over(counted.sum())
                is_it = present & (before == place)
        chosen = self._of(_integer(is_it))
        zero = nw.lit(0.0) if not isinstance(self._kind, Categorical) else NONE
        value = self._of(nw.when(chosen > 0).then(self._argument).otherwise(zero))
        parts = (*self._parts, *more)
        found, is_found = self._both(value.sum().over(*parts), chosen.sum().over(*parts))
        return found, is_found > 0


def _integer(condition: nw.Expr) -> nw.Expr:
    return nw.when(condition).then(ONE).otherwise(NONE)
