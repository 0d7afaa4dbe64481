"""The first table of a study as text, HTML, Markdown and LaTeX."""

from __future__ import annotations

import math

from dpnb.render.answers import footer
from dpnb.render.numbers import format_number, number_with_interval
from dpnb.render.tables import (
    Shown,
    interval_name,
    population_name,
    remark_part,
    shown_as,
    table_latex,
    table_markdown,
    table_part,
)
from dpnb.results.display import to_latex, to_markdown
from dpnb.results.estimates.noisy import Cells
from dpnb.results.studies.table_one import TableOne, TableRow
from dpnb.results.tables.table import Estimates

LABELS = {"mean": "{}, mean (sd)", "median": "{}, median (quartiles)", "share": "{}: {}, %"}

WHOLE = 10.0
"""An error of which two significant digits are those of whole numbers."""


@shown_as(TableOne)
def _shown(table: TableOne) -> Shown:
    head, rows = _table(table)
    parts = [table_part(head, rows, left=1), remark_part("; ".join(footer(table)))]
    return Shown(table.notice, table.description, "", parts)


@to_markdown.register
def _markdown(table: TableOne) -> str:
    return table_markdown(*_table(table), left=1)


@to_latex.register
def _latex(table: TableOne) -> str:
    return table_latex(*_table(table), left=1)


# --- the cells of the table -------------------------------------------------------------------------------------------


def _table(table: TableOne) -> tuple[list[str], list[list[str]]]:
    """Head and rows: a column for each group, and for each difference one with its interval and a standardized one."""
    groups = [str(key[0]) for key in table.keys] if table.names else ["all"]
    head, differences = [table.names[0] if table.names else "", *groups], table.differences
    for key, found in differences.items():
        named = interval_name if found.population_arrays is None else population_name
        head += [f"{key} - {table.reference} ({named(found)})", "SMD"]
    displayed = table.shown  # each is computed once: there may be a million cells
    compared = [(_ends(found), table.standardized(key).tolist()) for key, found in differences.items()]
    rows = []
    for row in table.rows:
        label = LABELS.get(row.kind, "n").format(row.variable, row.level)
        cells = [label, *_cells(row, displayed[:, row.at], max(_errors(table, row.at[0]), default=math.nan))]
        for ends, standardized in compared:
            smd = standardized[row.at[0]]
            cells += [_difference(*ends[row.at[0]], row.kind), "" if math.isnan(smd) else f"{smd:.2f}"]
        rows.append(cells)
    return head, rows


def _cells(row: TableRow, numbers: Cells, error: float) -> list[str]:
    """The numbers of each group, to the digits that the longest interval in the row leaves significant."""
    times = 100.0 if row.kind == "share" else 1.0
    error = max(times * error, WHOLE) if row.kind == "n" else times * error
    cells = []
    for value, *others in (times * numbers).tolist():
        text, texts = format_number(value, error), [format_number(other, error) for other in others]
        cells.append(f"{text} ({', '.join(texts)})" if texts else text)
    return cells


def _errors(table: TableOne, at: int) -> list[float]:
    """Half of the lengths of the intervals of a statistic, without the unknown ones."""
    kinds = [table.arrays, *([] if table.population_arrays is None else [table.population_arrays])]
    columns = [arrays.select(slice(None), slice(at, at + 1)) for arrays in kinds]
    lengths = [length for arrays in columns for length in arrays.half_width[~columns[0].is_unknown].tolist()]
    return [length for length in lengths if math.isfinite(length)]


def _ends(found: Estimates) -> list[tuple[float, float, float]]:
    """Each difference with the ends of the interval that the head names."""
    arrays = found.arrays if found.population_arrays is None else found.population_arrays
    columns = (arrays.displayed[0], arrays.low[0], arrays.high[0])
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _difference(value: float, low: float, high: float, kind: str) -> str:
    """A difference with its interval."""
    if kind == "n":
        return ""
    if math.isnan(value) or math.isnan(low):
        return "unknown"
    times = 100.0 if kind == "share" else 1.0
    text, interval = number_with_interval(times * value, times * low, times * high)
    return f"{text} ({interval})"
