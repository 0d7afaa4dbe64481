"""Answers and estimates computed from them, as text and as HTML."""

from __future__ import annotations

import math
from contextlib import suppress
from functools import singledispatch
from html import escape

import numpy as np

from dpnb.errors import DpnbError
from dpnb.render.history import fan_html
from dpnb.render.labels import interval_name, rows_of
from dpnb.render.numbers import format_cost, format_time, percent
from dpnb.render.page import ACCENT, FAINT, PICTURE_WIDTH, boxed, explanation_link, noticed, title_html
from dpnb.render.tables import table_html, table_text
from dpnb.results.answer import Answer
from dpnb.results.display import to_html, to_text
from dpnb.results.fit import COVERS, NO_INTERVAL, NOISY, FitResult
from dpnb.results.table import Estimates


@to_text.register
def estimates_text(figures: Estimates) -> str:
    """Estimates for a terminal."""
    lines = [figures.description]
    if figures.is_scalar:
        ((_, value, interval),) = rows_of(figures)
        lines.append(f"  {value}   {interval_name(figures)} {interval}")
    else:
        lines += table_text([_head(figures), *_body(figures)], indent="  ")
    below = footer(figures)
    if below:
        lines.append(f"  {'; '.join(below)}")
    return noticed(figures.notice, lines)


@to_html.register
def estimates_html(figures: Estimates, between: str = "") -> str:
    """Estimates for a notebook, with optional HTML between the table and the footer."""
    body = _body(figures)
    pictures = []
    # Statistics in different units have no common scale.
    if not figures.is_scalar and (not figures.outputs or figures.outputs[0] == "quantile"):
        picture = _IntervalBars(figures)
        pictures = [picture.bar(index) for index in range(len(body))]
    table = table_html(_head(figures), [[*map(escape, row)] for row in body], pictures)
    below = f'<div style="{FAINT}">{_footer_html(figures)}</div>'
    return boxed(figures.notice, title_html(figures.description), table, between, below)


@to_html.register
def answer_html(answer: Answer) -> str:
    """An answer for a notebook; for a refined number also a chart of how its interval narrowed."""
    fan = ""
    if answer.is_scalar and answer.n_observations > 1:
        with suppress(DpnbError):  # the answer is shown even if its ledger is gone
            fan = fan_html(answer.history)
    return estimates_html(answer, fan)


@singledispatch
def footer(figures: Estimates) -> list[str]:
    """The remarks below the numbers."""
    parts = (
        [] if figures.is_scalar else ["all intervals at once" if figures.simultaneous else "each interval separately"]
    )
    return [*parts, *(text for _, text in figures.warnings)]


@footer.register
def _answer_footer(answer: Answer) -> list[str]:
    """Cost and provenance."""
    bound = "at most " if answer.worst_case and answer.cost else ""
    parts = [
        f"cost {bound}{format_cost(answer.cost, answer.cost_fraction)}",
        f"requested {format_time(answer.time)} UTC",
    ]
    if answer.n_observations > 1:
        parts.append(f"{answer.n_observations} observations combined")
    return [*parts, *footer.dispatch(Estimates)(answer)]


@footer.register
def _fit_footer(fitted: FitResult) -> list[str]:
    """How the coefficients were computed, and what the intervals cover."""
    coverage = NO_INTERVAL if np.isnan(fitted.arrays.low).all() else COVERS
    return [*fitted.notes, coverage, *([NOISY] if fitted.is_noisy else []), *footer.dispatch(Estimates)(fitted)]


def _footer_html(figures: Estimates) -> str:
    explained = {text: explanation for explanation, text in figures.warnings}
    return "; ".join(
        escape(text) + (explanation_link(explained[text]) if text in explained else "") for text in footer(figures)
    )


def _wide(figures: Estimates) -> bool:
    """Whether several statistics are shown side by side, with one row for each group."""
    return bool(figures.names and figures.outputs and figures.outputs[0] == "statistic")


def _head(figures: Estimates) -> list[str]:
    if _wide(figures) and figures.outputs:
        return [*figures.names, *(f"{label} ({percent(figures.confidence)})" for label in figures.outputs[1])]
    return [*figures.names, *([figures.outputs[0]] if figures.outputs else []), "estimate", interval_name(figures)]


def _body(figures: Estimates) -> list[list[str]]:
    """The rows of the table below its header."""
    rows = rows_of(figures)
    if not _wide(figures) or not figures.outputs:
        return [[*key, value, interval] for key, value, interval in rows]
    many, levels = len(figures.outputs[1]), len(figures.names)
    groups = [rows[start : start + many] for start in range(0, len(rows), many)]
    return [[*group[0][0][:levels], *(f"{value} ({interval})" for _, value, interval in group)] for group in groups]


class _IntervalBars:
    """Estimates with their intervals on one common scale."""

    def __init__(self, figures: Estimates) -> None:
        self._value, self._lower, self._upper = (
            array.ravel().tolist() for array in (figures.arrays.value, figures.arrays.low, figures.arrays.high)
        )
        ends = [x for x in (*self._lower, *self._upper) if math.isfinite(x)]
        self._low: float = min(ends, default=0.0)
        self._high: float = max(ends, default=1.0)

    def bar(self, index: int) -> str:
        low, high = self._at(self._lower[index]), self._at(self._upper[index])
        value = self._value[index]
        dot = "" if math.isnan(value) else f'<circle cx="{self._at(value):.1f}" cy="8" r="4" fill="{ACCENT}"/>'
        return (
            f'<svg width="{PICTURE_WIDTH}" height="16" aria-hidden="true"><line x1="{low:.1f}" x2="{high:.1f}" y1="8" '
            f'y2="8" stroke="{ACCENT}" stroke-width="2"/>{dot}</svg>'
        )

    def _at(self, value: float) -> float:
        width = self._high - self._low or 1.0
        position = min(max((value - self._low) / width, 0.0), 1.0) if math.isfinite(value) else float(value > 0)
        return 5 + position * (PICTURE_WIDTH - 10)
