"""Results of above-threshold mechanisms as text and as HTML."""

from __future__ import annotations

from html import escape

from dpnb._protocol.glossary import IN_THIS_TABLE
from dpnb.accounting.exact import display_up
from dpnb.render.numbers import error_level
from dpnb.render.page import box_html, with_notice
from dpnb.results.display import to_html, to_text
from dpnb.results.threshold import ThresholdResult


@to_text.register
def result_text(result: ThresholdResult) -> str:
    """A result for a terminal."""
    return with_notice(result.notice, [_sentence(result)])


@to_html.register
def result_html(result: ThresholdResult) -> str:
    """A result for a notebook."""
    return box_html(result.notice, escape(_sentence(result)))


def _sentence(result: ThresholdResult) -> str:
    text = f"{result.description}: {'above' if result.above else 'below'} {result.threshold:g} {IN_THIS_TABLE}"
    if result.value is not None and result.half_width is not None:
        text += f"; about {result.value:.4g} ± {display_up(result.half_width, 2)}{error_level(result.confidence)}"
    return text
