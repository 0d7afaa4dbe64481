"""Comparisons of estimates with a number, as text and as HTML."""

from __future__ import annotations

from html import escape

from dpnb._protocol.glossary import IN_THIS_TABLE
from dpnb.render.labels import interval_name, labels_of, numbers_of
from dpnb.render.numbers import percent
from dpnb.render.page import FAINT, box_html, title_html, with_notice
from dpnb.render.tables import table_html, table_text
from dpnb.results.comparison import Comparison
from dpnb.results.display import to_html, to_text

WORDS = {True: "yes", False: "no", None: "too close to say"}


@to_text.register
def comparison_text(comparison: Comparison) -> str:
    """A comparison for a terminal."""
    head, *body = _table(comparison)
    rows = [head, *body] if not comparison.is_scalar else body
    table = table_text(rows, indent="  ")
    return with_notice(comparison.notice, [_title(comparison), *table, f"  {_confidence(comparison)}"])


@to_html.register
def comparison_html(comparison: Comparison) -> str:
    """A comparison for a notebook."""
    head, *body = _table(comparison)
    table = table_html(head, [[*map(escape, row)] for row in body], left=len(head) - 2)
    below = f'<div style="{FAINT}">{escape(_confidence(comparison))}</div>'
    return box_html(comparison.notice, title_html(_title(comparison)), table, below)


def _title(comparison: Comparison) -> str:
    return f"{comparison.description} {comparison.operator} {comparison.number:g}"


def _table(comparison: Comparison) -> list[list[str]]:
    names = [*comparison.names, *([comparison.outputs[0]] if comparison.outputs else [])]
    rows = zip(labels_of(comparison), comparison.outcomes, numbers_of(comparison.arrays), strict=True)
    head = [*names, f"outcome {IN_THIS_TABLE}", interval_name(comparison)]
    return [head, *([*label, WORDS[outcome], words] for label, outcome, (_, words) in rows)]


def _confidence(comparison: Comparison) -> str:
    level = f"{IN_THIS_TABLE}, at {percent(comparison.confidence)} confidence"
    if comparison.is_scalar:
        return level
    return f"{level}, all at once" if comparison.simultaneous else f"{level} each"
