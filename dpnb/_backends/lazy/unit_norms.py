"""The squared norm of each unit's contribution to a query, in the engine; see `dpnb._backends.memory.unit_norms`."""

from __future__ import annotations

import narwhals as nw

from dpnb._backends.lazy.engines.engine import LazyFrame
from dpnb._backends.lazy.execute import SelectedRows
from dpnb._backends.unit_vectors import SUMMING_MARGIN
from dpnb._compile.features import BRANCHING, TreeFeature
from dpnb._compile.linear import LinearQuery
from dpnb.accounting.individual.admission import EXACT


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
