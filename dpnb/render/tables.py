"""Tables and lists of facts, as text and as HTML, the labels of the numbers in them, and values made of them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Collection, Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np

from dpnb._browser.glossary import NOISE_INTERVAL, POPULATION_INTERVAL
from dpnb._plan.plan import in_words
from dpnb.render.numbers import date_with_interval, format_decimals, label_text, number_with_interval, percent
from dpnb.render.page import FAINT, box_html, term_html, title_html, with_notice
from dpnb.results.answer import Answer
from dpnb.results.display import to_html, to_text
from dpnb.results.estimates.noisy import IntervalArrays
from dpnb.results.tables.intervals import Comparison
from dpnb.results.tables.table import Estimates

# --- the numbers of an answer with their labels -----------------------------------------------------------------------


MAX_DECIMALS = 12
"""Most decimals of a rounded number that are displayed; beyond, as many as the noise leaves significant."""


def released(estimates: Estimates) -> Answer | None:
    """The released answer that these estimates are, or are a rearrangement of; None for computed estimates."""
    source = estimates if estimates.source is None else estimates.source
    return source if isinstance(source, Answer) else None


def heading_of(estimates: Estimates) -> str:
    """The title of estimates; that of a released answer in words instead of code."""
    answer, description = released(estimates), estimates.description
    return description if answer is None else in_words(description, answer.plan, answer.view)


def interval_name(estimates: Estimates | Comparison) -> str:
    """Heading of the column of intervals, which names what they cover."""
    return f"{percent(estimates.confidence)} {NOISE_INTERVAL}"


def population_name(estimates: Estimates | Comparison) -> str:
    """Heading of the column of population intervals."""
    return f"{percent(estimates.confidence)} {POPULATION_INTERVAL}"


def intervals_name(estimates: Estimates) -> str:
    """The name of several intervals, and whether they hold at once."""
    names = [interval_name(estimates), *([population_name(estimates)] if estimates.has_population_intervals else [])]
    kinds = " and ".join(f"{name}s" for name in names)
    return f"{kinds}, {'all at once' if estimates.simultaneous else 'each separately'}"


def labels_of(estimates: Estimates | Comparison) -> list[list[str]]:
    """The labels of each number, as text."""
    labels = estimates.outputs[1] if estimates.outputs else (None,)
    return [
        [*map(str, key), *([] if label is None else [label_text(label)])] for key in estimates.keys for label in labels
    ]


def numbers_of(arrays: IntervalArrays, noise: IntervalArrays | None = None) -> list[tuple[str, str]]:
    """Estimate and interval of each number, to the digits that its noise leaves significant.

    `noise` are the intervals that cover the noise alone, if these cover more.
    """
    with np.errstate(all="ignore"):  # a length beyond the range of doubles is infinite
        errors = np.fmax(*((one.unclipped[2] - one.unclipped[1]) / 2 for one in (arrays, noise or arrays)))
    ends = (arrays.displayed, arrays.low, arrays.high, errors)
    return [number_with_interval(*row) for row in zip(*(end.ravel().tolist() for end in ends), strict=True)]


def rows_of(estimates: Estimates) -> list[tuple[list[str], str, str]]:
    """Labels, estimate and interval of each number, as text."""
    numbers = _texts(estimates, estimates.arrays)
    return [(label, *number) for label, number in zip(labels_of(estimates), numbers, strict=True)]


def population_ends(estimates: Estimates) -> list[tuple[float, float]]:
    """The population interval of each number, NaN where there is none; nothing without any."""
    arrays = estimates.population_arrays
    return [] if arrays is None else list(zip(arrays.low.ravel().tolist(), arrays.high.ravel().tolist(), strict=True))


def population_texts(estimates: Estimates) -> list[str]:
    """The population interval of each number, as text, empty where there is none; nothing without any."""
    arrays = estimates.population_arrays
    if arrays is None:
        return []
    missing = np.isnan(arrays.low).ravel().tolist()
    return ["" if none else text for none, (_, text) in zip(missing, _texts(estimates, arrays), strict=True)]


def _texts(estimates: Estimates, arrays: IntervalArrays) -> list[tuple[str, str]]:
    numbers = numbers_of(arrays, estimates.arrays)
    if estimates.dates:
        cells = (arrays.value, arrays.low, arrays.high)
        dates = estimates.dates * len(estimates.keys)
        columns = (cell.ravel().tolist() for cell in cells)
        for index, (zone, *column) in enumerate(zip(dates, *columns, strict=True)):
            if zone is not None:
                numbers[index] = date_with_interval(column[0], column[1], column[2], zone)
    if estimates.decimals is not None:
        cells = (arrays.displayed, arrays.low, arrays.high)
        decimals = estimates.decimals * len(estimates.keys)
        for index, (digits, *ends) in enumerate(zip(decimals, *(cell.ravel() for cell in cells), strict=True)):
            if digits <= MAX_DECIMALS:
                value, low, high = (format_decimals(end, digits) for end in ends)
                numbers[index] = (value, f"{low} to {high}")
    return numbers


# --- tables and lists of facts ----------------------------------------------------------------------------------------


NUMBER = "text-align:right;font-variant-numeric:tabular-nums"
LEFT = "text-align:left"
PADDING = "padding:2px 12px 2px 0"
NO_HTML: Mapping[str, str] = MappingProxyType({})


def table_text(rows: Sequence[Sequence[str]], *, left: Collection[int] = (), indent: str = "") -> list[str]:
    """Lines with aligned columns: to the right, except the columns whose indices are in `left`."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = []
    for row in rows:
        texts = [
            text.ljust(width) if index in left else text.rjust(width)
            for index, (text, width) in enumerate(zip(row, widths, strict=True))
        ]
        lines.append(indent + "  ".join(texts).rstrip())
    return lines


def table_markdown(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """A table in GitHub's Markdown: the first `left` columns to the left, the others to the right."""
    escaped = [[_markdown(cell) for cell in row] for row in (head, *rows)]
    rule = [":---" if index < left else "---:" for index in range(len(head))]
    return "\n".join(f"| {' | '.join(row)} |" for row in (escaped[0], rule, *escaped[1:]))


def _markdown(cell: str) -> str:
    """A cell as plain text: without line breaks, and with the characters escaped that Markdown or HTML interprets."""
    return "".join(f"\\{char}" if char in "\\|`*_<>[]" else " " if char in "\r\n" else char for char in cell)


_LATEX = {
    **{char: f"\\{char}" for char in "&%$#_{}"},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{"<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}", "\r": " ", "\n": " "},
    **{"∞": r"$\infty$", "[": "{[}", "]": "{]}"},  # a bracket after a line break would be its argument
}


def latex_text(text: str) -> str:
    """A text such that LaTeX shows it as it is."""
    return "".join(_LATEX.get(char, char) for char in text)


def table_latex(head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int) -> str:
    """A table in LaTeX, of which the first `left` columns are aligned to the left; it shows each text as it is."""
    cells = [[latex_text(cell) for cell in row] for row in (head, *rows)]
    first, *others = [" & ".join(row) + r" \\" for row in cells]
    columns = "l" * left + "r" * (len(head) - left)
    body = [rf"\begin{{tabular}}{{{columns}}}", r"\hline", first, r"\hline", *others, r"\hline", r"\end{tabular}"]
    return "\n".join(body)


def _head_html(text: str) -> str:
    """The head of a column; what an interval covers is explained on hover and focus."""
    term = next((term for term in (NOISE_INTERVAL, POPULATION_INTERVAL) if text.endswith(term)), None)
    return escape(text) if term is None else term_html(text, term)


def table_html(
    head: Sequence[str], rows: Sequence[Sequence[str]], charts: Sequence[str] = (), *, left: int = 0, scale: str = ""
) -> str:
    """A table of numbers, from HTML of each cell, and of one additional cell for each row in `charts`.

    The first `left` columns are labels, which are aligned to the left; `scale` is the axis of the charts.
    """
    styles = [f"{LEFT if index < left else NUMBER};{PADDING}" for index in range(len(head))]
    heads = "".join(f'<th style="{style}">{_head_html(text)}</th>' for style, text in zip(styles, head, strict=True))
    heads += f"<th>{scale}</th>" if charts else ""
    body = ""
    for index, row in enumerate(rows):
        body += "<tr>" + "".join(f'<td style="{style}">{cell}</td>' for style, cell in zip(styles, row, strict=True))
        body += (f"<td>{charts[index]}</td>" if charts else "") + "</tr>"
    return f'<table style="margin:4px 0"><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>'


def facts_text(facts: Sequence[tuple[str, str]], column: int, width: int = 0, indent: str = "") -> list[str]:
    """Lines of names and texts.

    The texts start at `column` and are wrapped to `width`, or not if it is 0; the names are indented by `indent`.
    """
    lines = []
    for name, text in facts:
        first, *rest = (textwrap.wrap(text, width, break_long_words=False) if width else [text]) or [""]
        lines += [f"{f'{indent}{name}:':<{column - 1}} {first}", *(" " * column + part for part in rest)]
    return lines


def facts_html(
    facts: Sequence[tuple[str, str]],
    links: Mapping[str, str] = NO_HTML,
    html: Mapping[str, str] = NO_HTML,
) -> str:
    """Names and texts as a table; `links` are appended to the texts of some names, `html` replaces some texts."""
    rows = "".join(
        f'<tr><td style="{LEFT};{PADDING};{FAINT};white-space:nowrap;vertical-align:top">{term_html(name)}</td>'
        f'<td style="{LEFT};font-variant-numeric:tabular-nums">{html.get(name) or escape(text)}{links.get(name, "")}'
        "</td></tr>"
        for name, text in facts
    )
    return f'<table style="margin:4px 0"><tbody>{rows}</tbody></table>'


# --- values that are shown in the same way as text and as HTML --------------------------------------------------------


T = TypeVar("T")

WIDTH = 90
"""Characters in one line of a fact's text in a terminal."""

NOT_RELEASED = "not released"
"""The status of a preview."""


class ShownPart(NamedTuple):
    """Lines for a terminal, and the same for a notebook."""

    lines: list[str]
    html: str


class Shown(NamedTuple):
    """A value with its title, below a notice about the whole session."""

    notice: str | None
    title: str
    status: str  # beside the title
    parts: Sequence[ShownPart]


def shown_as(kind: type[T]) -> Callable[[Callable[[T], Shown]], Callable[[T], Shown]]:
    """Make text and HTML of the values of a class from what the decorated function says of them."""

    def register(describe: Callable[[T], Shown]) -> Callable[[T], Shown]:
        to_text.register(kind, lambda value: _text(describe(value)))
        to_html.register(kind, lambda value: _html(describe(value)))
        return describe

    return register


def _text(shown: Shown) -> str:
    title = f"{shown.title} ({shown.status})" if shown.status else shown.title
    return with_notice(shown.notice, [title, *(line for part in shown.parts for line in part.lines)])


def _html(shown: Shown) -> str:
    return box_html(shown.notice, title_html(shown.title, shown.status), *(part.html for part in shown.parts))


def facts_part(
    facts: Sequence[tuple[str, str]],
    column: int,
    width: int = 0,
    links: Mapping[str, str] = NO_HTML,
    html: Mapping[str, str] = NO_HTML,
) -> ShownPart:
    """Names and texts; see `facts_text` and `facts_html`."""
    return ShownPart(facts_text(facts, column, width, "  "), facts_html(facts, links, html))


def table_part(
    head: Sequence[str], rows: Sequence[Sequence[str]], *, left: int = 0, html: Sequence[Sequence[str]] | None = None
) -> ShownPart:
    """A table whose first `left` columns are labels; its cells in HTML are the escaped ones unless they are given."""
    cells = [[*map(escape, row)] for row in rows] if html is None else html
    return ShownPart(table_text([head, *rows], left=range(left), indent="  "), table_html(head, cells, left=left))


def remark_part(text: str) -> ShownPart:
    """A line below a table."""
    return ShownPart([f"  {text}"], f'<div style="{FAINT}">{escape(text)}</div>')
