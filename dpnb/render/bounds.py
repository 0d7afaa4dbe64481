"""The answer of a bounds finder as text and as HTML: the lines to copy, and the bins that they follow from."""

from __future__ import annotations

import math
from dataclasses import replace
from html import escape

from dpnb._plan.schema import Bounded
from dpnb._protocol.glossary import IN_THIS_TABLE
from dpnb.render.answers import estimates_html, estimates_text
from dpnb.render.numbers import format_percent_up, percent
from dpnb.results.bounds import BoundsAnswer
from dpnb.results.display import to_html, to_text


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
