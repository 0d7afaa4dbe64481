"""Answers, estimates, comparisons and bounds finders, as text and as HTML."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from functools import singledispatch
from html import escape

from dpnb._browser.glossary import IN_THIS_TABLE, NOISE_INTERVAL
from dpnb.errors import DpnbError
from dpnb.render.charts import IntervalBars, fan_html, has_common_scale, histogram_html, is_histogram
from dpnb.render.numbers import format_cost, format_mu_up, format_percent_up, format_time, label_text, percent
from dpnb.render.page import (
    FAINT,
    box_html,
    explained_html,
    explanation_link,
    term_html,
    title_html,
    with_notice,
)
from dpnb.render.tables import (
    Shown,
    ShownPart,
    heading_of,
    interval_name,
    intervals_name,
    labels_of,
    numbers_of,
    population_name,
    population_texts,
    remark_part,
    rows_of,
    shown_as,
    table_html,
    table_latex,
    table_markdown,
    table_text,
)
from dpnb.results.answer import Answer
from dpnb.results.batch import TableWithMargins
from dpnb.results.bounds import BoundsAnswer
from dpnb.results.display import to_html, to_latex, to_markdown, to_text
from dpnb.results.regression import NO_INTERVALS, FitResult
from dpnb.results.tables.intervals import Comparison
from dpnb.results.tables.table import UNKNOWN, Estimates
from dpnb.schema import Bounded

# --- comparisons of estimates with a number ---------------------------------------------------------------------------


WORDS = {True: "yes", False: "no", None: "too close to say"}


@shown_as(Comparison)
def _comparison(comparison: Comparison) -> Shown:
    head, *body = _table(comparison)
    lines = table_text(body if comparison.is_scalar else [head, *body], indent="  ")
    html = table_html(head, [[*map(escape, row)] for row in body], left=len(head) - 2)
    title = f"{comparison.description} {comparison.operator} {comparison.number:g}"
    return Shown(comparison.notice, title, "", [ShownPart(lines, html), remark_part(_confidence(comparison))])


def _table(comparison: Comparison) -> list[list[str]]:
    names = [*comparison.names, *([comparison.outputs[0]] if comparison.outputs else [])]
    rows = zip(labels_of(comparison), comparison.outcomes, numbers_of(comparison.deciding_arrays), strict=True)
    named = interval_name if comparison.population_arrays is None else population_name
    head = [*names, f"outcome {comparison.scope}", named(comparison)]
    return [head, *([*label, WORDS[outcome], words] for label, outcome, (_, words) in rows)]


def _confidence(comparison: Comparison) -> str:
    level = f"{comparison.scope}, at {percent(comparison.confidence)} confidence"
    if comparison.is_scalar:
        return level
    return f"{level}, all at once" if comparison.simultaneous else f"{level} each"


# --- answers and estimates computed from them -------------------------------------------------------------------------


WIDE = ("statistic", "corr", "cov")
"""Names of the numbers that are shown side by side, with one row for each group."""

DERIVED = "computed from an answer, at no further cost"


@to_text.register
def estimates_text(estimates: Estimates) -> str:
    """Estimates for a terminal."""
    lines = [heading_of(estimates)]
    if estimates.is_scalar:
        ((_, value, interval),) = rows_of(estimates)
        lines.append(f"  {value}   {interval_name(estimates)} {interval}" if estimates.has_intervals else f"  {value}")
        indent = " " * (len(value) + 5)
        lines += [f"{indent}{population_name(estimates)} {text}" for text in population_texts(estimates)]
    else:
        lines += table_text([_head(estimates), *_body(estimates)], indent="  ")
    below = footer(estimates)
    if below:
        lines.append(f"  {'; '.join(below)}")
    return with_notice(estimates.notice, lines)


@to_html.register
def estimates_html(estimates: Estimates, between: str = "") -> str:
    """Estimates for a notebook, with optional HTML between the table and the footer."""
    body, charts = _body(estimates), []
    picture = histogram_html(estimates) if is_histogram(estimates) else ""
    has_scale = has_common_scale(estimates) and estimates.has_intervals
    bars = IntervalBars(estimates)
    if has_scale and not (picture or estimates.is_scalar or estimates.is_two_way):  # which has several in a row
        charts = [bars.bar(index) for index in range(len(body))]
    labels = len(estimates.names) - estimates.is_two_way
    if not (_wide(estimates) or estimates.is_two_way):
        labels += estimates.outputs is not None
    head, number, below = _head(estimates), _number_html, ""
    if (_wide(estimates) or estimates.is_two_way) and estimates.has_intervals:
        head, number = [name.removesuffix(f" ({_level(estimates)})") for name in head], _stacked_html
        both = f"are its {_level(estimates).replace(';', ' and')} intervals"
        is_both = estimates.has_population_intervals
        below = f"below each number {both if is_both else f'is its {interval_name(estimates)}'}; "
    cells = [[*map(escape, row[:labels]), *map(number, row[labels:])] for row in body]
    table = table_html(head, cells, charts, left=labels, scale=bars.scale() if charts else "")
    below = f'<div style="{FAINT}">{below}{_footer_html(estimates)}</div>'
    return box_html(
        estimates.notice, title_html(heading_of(estimates), exact=estimates.description), picture, table, between, below
    )


def _number_html(text: str) -> str:
    """A number with its interval, or either; an unknown number is explained."""
    unknown, reason = UNKNOWN.split(": ", 1)
    if not text.startswith(unknown):
        return escape(text)
    return explained_html(unknown, f"{reason[0].upper()}{reason[1:]}.") + escape(text.removeprefix(unknown))


SMALL = f"{FAINT};font-size:0.85em;white-space:nowrap"


def _stacked_html(text: str) -> str:
    """A number with its intervals below it, one in a line, so that many columns have room beside each other."""
    number, separator, intervals = text.partition(" (")
    lines = intervals.removesuffix(")").split("; ") if separator else []
    return _number_html(number) + "".join(f'<div style="{SMALL}">{escape(line)}</div>' for line in lines)


@to_html.register
def answer_html(answer: Answer) -> str:
    """An answer for a notebook; for a refined number also a chart of how its interval narrowed."""
    fan = ""
    if answer.is_scalar and answer.n_observations > 1:
        with suppress(DpnbError):  # the answer is shown even if its ledger is gone
            fan = fan_html(answer.history)
    return estimates_html(answer, fan)


@singledispatch
def footer(estimates: Estimates) -> list[str]:
    """The remarks below the numbers."""
    parts = [] if estimates.is_scalar or not estimates.has_intervals else [intervals_name(estimates)]
    if estimates.source is not None:
        parts = [DERIVED, *(_fit_notes(estimates.source) if isinstance(estimates.source, FitResult) else []), *parts]
    return [*parts, *(text for _, text in _remarks(estimates))]


def _remarks(estimates: Estimates) -> list[tuple[str, str]]:
    """The warnings; what they say of several statistics they say once, with their names."""
    labels = {" ".join(label) for label in labels_of(estimates)} if estimates.outputs else set()
    return [(explanation, _said_once(text, labels)) for explanation, text in estimates.warnings]


def _said_once(text: str, labels: set[str]) -> str:
    names: dict[str, list[str]] = {}
    for part in text.split("; "):
        name, _, rest = part.partition(": ")
        names.setdefault(rest if name in labels else part, []).extend([name] if name in labels else [])
    return "; ".join(f"{', '.join(own)}: {said}" if own else said for said, own in names.items())


@footer.register
def _answer_footer(answer: Answer) -> list[str]:
    bound = "at most " if answer.worst_case and answer.cost else ""
    cost = f"cost {bound}{format_cost(answer.cost, answer.cost_fraction)}"
    if answer.was_known:
        before = f"; it was released for this {cost}" if answer.cost.mu_squared else ""
        cost = f"nothing was charged: already known at mu {format_mu_up(answer.total_loss)}{before}"
    parts = [
        cost,
        f"requested {format_time(answer.time)} UTC",
    ]
    if answer.requested_in_rank is not None:
        parts.insert(1, answer.requested_in_rank)
    if answer.n_observations > 1:
        parts.append(f"{answer.n_observations} observations combined")
    return [*parts, *footer.dispatch(Estimates)(answer)]


@footer.register
def _margins_footer(table: TableWithMargins) -> list[str]:
    batch = table.batch
    cost = f"cost {format_cost(batch.cost, batch.cost_fraction)}"
    return [cost, f"requested {format_time(batch.time)} UTC", *footer.dispatch(Estimates)(table)]


@footer.register
def _fit_footer(fitted: FitResult) -> list[str]:
    return [*_fit_notes(fitted), *footer.dispatch(Estimates)(fitted)]


def _fit_notes(fitted: FitResult) -> list[str]:
    return [*fitted.notes, NO_INTERVALS]


def _footer_html(estimates: Estimates) -> str:
    explained = {text: explanation for explanation, text in _remarks(estimates)}
    interval = intervals_name(estimates)
    return "; ".join(
        (term_html(text, NOISE_INTERVAL) if text == interval else escape(text))
        + (explanation_link(explained[text]) if text in explained else "")
        for text in footer(estimates)
    )


@to_markdown.register
def estimates_markdown(estimates: Estimates) -> str:
    """The table of estimates as Markdown; a single number as a table with one row."""
    return table_markdown(_head(estimates), _body(estimates), left=len(estimates.names))


@to_latex.register
def estimates_latex(estimates: Estimates) -> str:
    """The table of estimates in LaTeX."""
    return table_latex(_head(estimates), _body(estimates), left=len(estimates.names))


def _wide(estimates: Estimates) -> bool:
    """Whether several statistics are shown side by side, with one row for each group."""
    return bool(estimates.names and estimates.outputs and estimates.outputs[0] in WIDE)


def _head(estimates: Estimates) -> list[str]:
    if estimates.is_two_way:
        *outer, inner = estimates._axis_names
        columns = dict.fromkeys(key[-1] for key in estimates.keys)
        return [*outer, *(f"{inner} {label_text(label)} ({_level(estimates)})" for label in columns)]
    if _wide(estimates) and estimates.outputs:
        level = f" ({_level(estimates)})" if estimates.has_intervals else ""
        return [*estimates._axis_names, *(f"{label}{level}" for label in estimates.outputs[1])]
    return [
        *estimates._axis_names,
        *([estimates.outputs[0]] if estimates.outputs else []),
        "estimate",
        *([interval_name(estimates)] if estimates.has_intervals else []),
        *([population_name(estimates)] if estimates.has_population_intervals else []),
    ]


def _level(estimates: Estimates) -> str:
    """What the intervals beside a number are."""
    return f"{percent(estimates.confidence)} noise{'; population' if estimates.has_population_intervals else ''}"


def _body(estimates: Estimates) -> list[list[str]]:
    rows, more = rows_of(estimates), population_texts(estimates)
    if more and (estimates.is_two_way or _wide(estimates)):
        rows = [
            (key, value, f"{interval}; {text}" if text else interval)
            for (key, value, interval), text in zip(rows, more, strict=True)
        ]
    if not estimates.has_intervals and not _wide(estimates):
        return [[*key, value] for key, value, _ in rows]
    if estimates.is_two_way:
        return _two_way(estimates, rows)
    if not _wide(estimates) or not estimates.outputs:
        columns = [[text] for text in more] or [[]] * len(rows)
        return [[*key, value, interval, *column] for (key, value, interval), column in zip(rows, columns, strict=True)]
    many, levels = len(estimates.outputs[1]), len(estimates.names)
    groups = [rows[start : start + many] for start in range(0, len(rows), many)]
    cells = [(f"{value} ({interval})" if estimates.has_intervals else value) for _, value, interval in rows]
    return [[*group[0][0][:levels], *cells[index * many : (index + 1) * many]] for index, group in enumerate(groups)]


def _two_way(estimates: Estimates, rows: list[tuple[list[str], str, str]]) -> list[list[str]]:
    """A row for each key of the outer levels, with an empty cell where a group is missing."""
    columns = list(dict.fromkeys(key[-1] for key in estimates.keys))
    table: dict[tuple[object, ...], list[str]] = {}
    for key, (label, value, interval) in zip(estimates.keys, rows, strict=True):
        row = table.setdefault(key[:-1], [*label[:-1], *("" for _ in columns)])
        row[len(key) - 1 + columns.index(key[-1])] = f"{value} ({interval})"
    return list(table.values())


# --- the answer of a bounds finder as text and as HTML ----------------------------------------------------------------


def code_lines(bounds: Bounded) -> list[str]:
    """What to write with the bounds that were found: in a schema, and in a query."""
    low, high = _number(bounds.low), _number(bounds.high)
    whole = ", integer=True" if bounds.integer else ""
    return [f"dpnb.Bounded({low}, {high}{whole})", f".clip({low}, {high})"]


@to_text.register
def bounds_text(answer: BoundsAnswer) -> str:
    """Bounds for a terminal."""
    bounds = answer.bounds
    if bounds is None:
        return f"{estimates_text(answer)}\n  {_nothing(answer)}"
    declare, clip = code_lines(bounds)
    return "\n".join([
        estimates_text(_titled(answer, bounds)),
        f"  in a schema: {declare}",
        f"  in a query:  {clip}",
        f"  {_outside(answer)}",
    ])  # fmt: skip


@to_html.register
def bounds_html(answer: BoundsAnswer) -> str:
    """Bounds for a notebook."""
    bounds = answer.bounds
    if bounds is None:
        return estimates_html(answer, f"<div>{escape(_nothing(answer))}</div>")
    declare, clip = (f"<code>{escape(line)}</code>" for line in code_lines(bounds))
    lines = f"<div>in a schema: {declare}<br>in a query: {clip}</div><div>{escape(_outside(answer))}</div>"
    return estimates_html(_titled(answer, bounds), lines)


def _titled(answer: BoundsAnswer, bounds: Bounded) -> BoundsAnswer:
    title = f"{answer.description}: {_number(bounds.low)} to {_number(bounds.high)}"
    return replace(answer.around, description=title)


def _outside(answer: BoundsAnswer) -> str:
    """What is known about the values outside the bounds."""
    share, rows = answer.share_outside, answer.rows_outside
    outside = f"at most {math.ceil(rows):,} rows" + (f" ({format_percent_up(share)})" if share < 1 else "")
    return (
        f"{IN_THIS_TABLE}, with {percent(answer.confidence)} confidence, {outside} lie outside the bounds (the limit "
        "allows for the noise of all bins there), and every bin with a noisy count above "
        f"{math.ceil(answer.threshold):,} contains rows; all of these bins are inside the bounds"
    )


def _nothing(answer: BoundsAnswer) -> str:
    return (
        f"no bounds were found: no noisy count exceeds {math.ceil(answer.threshold):,}, the most that noise alone is "
        "likely to give; refine the answer with a larger budget, or use the declared bounds"
    )


def _number(number: float) -> str:
    return str(int(number)) if number.is_integer() and abs(number) < 1e15 else repr(number)
