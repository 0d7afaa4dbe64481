"""Survival curves as text and HTML: the curves, medians, restricted means and the test of the groups."""

from __future__ import annotations

from html import escape

from dpnb.render.answers import estimates_html, estimates_text, footer
from dpnb.render.numbers import format_cost, format_time
from dpnb.render.page import FAINT
from dpnb.render.tables import population_texts, rows_of
from dpnb.results.display import to_html, to_text
from dpnb.results.survival.answer import SurvivalAnswer
from dpnb.results.tables.table import Estimates


@to_text.register
def _text(answer: SurvivalAnswer) -> str:
    return "\n".join([estimates_text(answer), *(f"  {line}" for line in _summaries(answer))])


@to_html.register
def _html(answer: SurvivalAnswer) -> str:
    lines = "".join(f"<div>{escape(line)}</div>" for line in _summaries(answer))
    return estimates_html(answer, f'<div style="{FAINT}">{lines}</div>')


@footer.register
def _footer(answer: SurvivalAnswer) -> list[str]:
    cost = f"cost {format_cost(answer.cost, answer.cost_fraction)}"
    return [cost, f"requested {format_time(answer.time)} UTC", *footer.dispatch(Estimates)(answer)]


def _summaries(answer: SurvivalAnswer) -> list[str]:
    """The medians and the test, each in a line."""
    median = answer.median()
    kind = "population" if median.has_population_intervals else "noise"
    ends = population_texts(median) or [interval for _, _, interval in rows_of(median)]
    lines = [
        f"median{f' of {chr(44).join(label)}' if label else ''}: {value}, {kind} interval {interval}"
        for (label, value, _), interval in zip(rows_of(median), ends, strict=True)
    ]
    if len(answer.keys) > 1 and answer.has_population_intervals:
        test = answer.test()
        lines.append(f"log-rank test of the groups: {test.decision}; .test() has the p-value")
    return lines
