"""Results of above-threshold mechanisms as text and as HTML."""

from __future__ import annotations

from html import escape

from dpnb.render.page import boxed, noticed
from dpnb.results.display import to_html, to_text
from dpnb.results.threshold import ThresholdResult


@to_text.register
def crossing_text(crossing: ThresholdResult) -> str:
    """A result for a terminal."""
    return noticed(crossing.notice, [_sentence(crossing)])


@to_html.register
def crossing_html(crossing: ThresholdResult) -> str:
    """A result for a notebook."""
    return boxed(crossing.notice, escape(_sentence(crossing)))


def _sentence(crossing: ThresholdResult) -> str:
    text = f"{crossing.description}: {'above' if crossing.above else 'below'} {crossing.threshold:g}"
    if crossing.value is not None and crossing.half_width is not None:
        text += f"; about {crossing.value:.4g} ± {crossing.half_width:.2g} ({crossing.confidence:.0%})"
    return text
