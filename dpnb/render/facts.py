"""Explanations as text and as HTML."""

from __future__ import annotations

from dpnb.render.page import box_html, title_html, with_notice
from dpnb.render.tables import facts_html, facts_text
from dpnb.results.display import to_html, to_text
from dpnb.results.explanation import Explanation

WIDTH = 90
"""Characters in one line of a fact's text in a terminal."""


@to_text.register
def explanation_text(explanation: Explanation) -> str:
    """An explanation for a terminal."""
    column = max((len(name) for name, _ in explanation.facts), default=0) + 4
    return with_notice(explanation.notice, [explanation.words, *facts_text(explanation.facts, column, WIDTH, "  ")])


@to_html.register
def explanation_html(explanation: Explanation) -> str:
    """An explanation for a notebook."""
    return box_html(explanation.notice, title_html(explanation.words), facts_html(explanation.facts))
