"""The first table of a study as text, HTML, Markdown and LaTeX."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpnb.render.answers import footer
from dpnb.render.numbers import format_number, number_with_interval
from dpnb.render.tables import (
    Shown,
    interval_name,
    population_name,
    remark_part,
    shown_as,
    table_markdown,
    table_part,
)
from dpnb.results.display import to_latex, to_markdown
from dpnb.results.estimates.noisy import IntervalArrays
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
    head, rows = _table(table)
    lines = [" & ".join(map(latex_text, row)) + r" \\" for row in (head, *rows)]
    columns = "l" + "r" * (len(head) - 1)
    body = [lines[0], r"\hline", *lines[1:]]
    return "\n".join([rf"\begin{{tabular}}{{{columns}}}", r"\hline", *body, r"\hline", r"\end{tabular}"])


_LATEX = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "\r": " ", "\n": " "},
    **{"∞": r"$\infty$", "[": "{[}", "]": "{]}"},  # a bracket after a line break would be its argument
}


def latex_text(text: str) -> str:
    """A text such that LaTeX shows it as it is."""
    return "".join(_LATEX.get(char, char) for char in text)


# --- the cells of the table -------------------------------------------------------------------------------------------


def _table(table: TableOne) -> tuple[list[str], list[list[str]]]:
    """Head and rows: a column for each group, and for each difference one with its interval and a standardized one."""
    groups = [str(key[0]) for key in table.keys] if table.names else ["all"]
    head, differences = [table.names[0] if table.names else "", *groups], table.differences
    for key, found in differences.items():
        named = interval_name if found.population_arrays is None else population_name
        head += [f"{key} - {table.reference} ({named(found)})", "SMD"]
    standardized = {key: table.standardized(key) for key in differences}
    rows = []
    for row in table.rows:
        cells = [LABELS.get(row.kind, "n").format(row.variable, row.level)]
        cells += [_cell(table, row, group) for group in range(len(groups))]
        for key, found in differences.items():
            smd = float(standardized[key][row.at[0]])
            cells += [_difference(found, row), "" if math.isnan(smd) else f"{smd:.2f}"]
        rows.append(cells)
    return head, rows


def _cell(table: TableOne, row: TableRow, group: int) -> str:
    """The numbers of a group, to the digits that the longest interval in the row leaves significant."""
    times = 100.0 if row.kind == "share" else 1.0
    value, *others = (times * float(table.shown[group, at]) for at in row.at)
    error = times * max(_errors(table, row.at[0]), default=math.nan)
    error = max(error, WHOLE) if row.kind == "n" else error
    text = format_number(value, error)
    texts = [format_number(other, error) for other in others]
    return f"{text} ({', '.join(texts)})" if texts else text


def _errors(table: TableOne, at: int) -> list[float]:
    """Half of the lengths of the intervals of a statistic, without the unknown ones."""
    kinds = [table.arrays, *([] if table.population_arrays is None else [table.population_arrays])]
    known = ~table.arrays.is_unknown[:, at]
    lengths = [length for arrays in kinds for length in arrays.half_width[known, at].tolist()]
    return [length for length in lengths if math.isfinite(length)]


def _difference(found: Estimates, row: TableRow) -> str:
    """A difference with the interval that the head names."""
    if row.kind == "n":
        return ""
    arrays = found.arrays if found.population_arrays is None else found.population_arrays
    value, low, high = _one(arrays, row.at[0])
    if math.isnan(value) or math.isnan(low):
        return "unknown"
    times = 100.0 if row.kind == "share" else 1.0
    text, interval = number_with_interval(times * value, times * low, times * high)
    return f"{text} ({interval})"


def _one(arrays: IntervalArrays, at: int) -> tuple[float, float, float]:
    with np.errstate(all="ignore"):
        ends: Sequence[float] = [float(end[0, at]) for end in (arrays.displayed, arrays.low, arrays.high)]
    return ends[0], ends[1], ends[2]
