"""Answers and previews as text for a terminal and as HTML for a notebook; both stay true without a kernel."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Decimal
from html import escape
from typing import TYPE_CHECKING

from dpnb.accounting.exact import decimal_sqrt_down, shown_down, shown_up
from dpnb.accounting.losses import GDP

if TYPE_CHECKING:
    from dpnb.answer.answer import Answer
    from dpnb.answer.preview import Preview

STYLE = (
    "font-family:var(--jp-ui-font-family,system-ui,sans-serif);font-size:13px;line-height:1.5;"
    "color:var(--jp-ui-font-color1,inherit)"
)
FAINT = "color:var(--jp-ui-font-color2,#616161)"
LOUD = "font-weight:600;color:var(--jp-error-color0,#b71c1c)"
NUMBER = "text-align:right;font-variant-numeric:tabular-nums"
LEFT = "text-align:left"
ACCENT = "var(--jp-brand-color1,#1976d2)"
PICTURE_WIDTH = 220


def figure(value: float, error: float) -> str:
    """A number with as many digits as its error leaves meaningful (two of the error's)."""
    if math.isnan(value):
        return "unknown"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    if not math.isfinite(error) or error <= 0:
        return f"{value:,.6g}"
    digits = max(0, min(12, 1 - math.floor(math.log10(error))))
    return f"{value:,.{digits}f}"


def mu_up(loss: GDP) -> str:
    """A loss in four digits, rounded up: for what was spent or asked."""
    return shown_up(loss.mu)


def mu_down(loss: GDP) -> str:
    """A loss in four digits, rounded down: for a budget and what is left of it."""
    return shown_down(decimal_sqrt_down(loss.mu_squared))


def ceil_percent(share: float) -> str:
    """A share as a percentage, rounded up, so that no cost looks smaller than it is."""
    if math.isinf(share):
        return "more than all"
    return f"{Decimal(repr(share * 100)).quantize(Decimal('0.01'), ROUND_CEILING)}%"


def price(cost: GDP, share: float) -> str:
    """A cost in words."""
    if not cost.mu_squared:
        return "free (known well enough already)"
    return f"mu {mu_up(cost)}, {ceil_percent(share)} of the budget"


def answer_text(answer: Answer) -> str:
    """The answer for a terminal."""
    lines = [answer.plan.words]
    if answer.plan.by:
        head, *body = [(answer.plan.by[0], "estimate", interval_name(answer)), *_rows(answer)]
        widths = [max(len(row[place]) for row in (head, *body)) for place in range(3)]
        for row in (head, *body):
            lines.append("  " + "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)))
    else:
        ((_, value, interval),) = _rows(answer)
        lines.append(f"  {value}   {interval_name(answer)} {interval}")
    lines.append(f"  {footer(answer)}")
    return "\n".join([*([answer.notice] if answer.notice else []), *lines])


def answer_html(answer: Answer) -> str:
    """The answer for a notebook."""
    rows = _rows(answer)
    picture = _Picture(answer) if answer.plan.by else None
    head = [*([answer.plan.by[0]] if answer.plan.by else []), "estimate", interval_name(answer)]
    cells = "".join(f'<th style="{NUMBER}">{escape(text)}</th>' for text in head) + ("<th></th>" if picture else "")
    body = ""
    for place, (key, value, interval) in enumerate(rows):
        texts = [*([key] if answer.plan.by else []), value, interval]
        body += "<tr>" + "".join(f'<td style="{NUMBER}">{escape(text)}</td>' for text in texts)
        body += (f"<td>{picture.bar(place)}</td>" if picture else "") + "</tr>"
    return (
        f'<div style="{STYLE}">{_notice_html(answer.notice)}<div><b>{escape(answer.plan.words)}</b></div>'
        f'<table style="margin:4px 0"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>'
        f'<div style="{FAINT}">{escape(footer(answer))}</div></div>'
    )


def percent(share: float) -> str:
    """A confidence as a percentage without empty digits."""
    return f"{share * 100:.6g}%"


def interval_name(answer: Answer) -> str:
    """Heading of the intervals."""
    return f"{percent(answer.confidence)} interval"


def footer(answer: Answer) -> str:
    """Cost and provenance in one line."""
    when = answer.time[:16].replace("T", " ")
    parts = [f"cost {price(answer.cost, answer.cost_share)}", f"asked {when} UTC"]
    if answer.looks > 1:
        parts.append(f"{answer.looks} looks combined")
    if answer.plan.by:
        parts.append("each interval by itself")
    return "; ".join(parts)


def preview_text(preview: Preview) -> str:
    """The preview for a terminal."""
    lines = [f"{preview.plan.words} (not released)"]
    lines += [f"  {name + ':':<16} {text}" for name, text in _facts(preview)]
    return "\n".join([*([preview.notice] if preview.notice else []), *lines])


def preview_html(preview: Preview) -> str:
    """The preview for a notebook."""
    rows = "".join(
        f'<tr><td style="{LEFT};{FAINT}">{escape(name)}</td><td style="{LEFT}">{escape(text)}</td></tr>'
        for name, text in _facts(preview)
    )
    return (
        f'<div style="{STYLE}">{_notice_html(preview.notice)}<div><b>{escape(preview.plan.words)}</b> '
        f'<span style="{FAINT}">not released</span></div>'
        f'<table style="margin:4px 0"><tbody>{rows}</tbody></table></div>'
    )


def _facts(preview: Preview) -> list[tuple[str, str]]:
    error = preview.expected_error
    known = "unknown" if error is None else f"± {figure(error, error)} at {percent(preview.confidence)}"
    facts = [("cost", price(preview.cost, preview.cost_share)), ("expected error", known)]
    if preview.assumption:
        facts.append(("this rests on", preview.assumption))
    facts.append(("contribution", preview.contribution))
    if preview.fits:
        facts.append(("headroom after", f"{floor_percent(preview.headroom_after)} of the budget"))
        if preview.times is not None:
            facts.append(("affordable", f"{preview.times:,} time{'s' if preview.times != 1 else ''} at this cost"))
        if preview.refining:
            facts.append(("refining later", preview.refining))
    else:
        facts.append(("headroom after", "does not fit: a release would be refused"))
        largest = f"mu {shown_down(preview.largest)}, or share=1" if preview.largest else "nothing is left"
        facts.append(("largest that fits", largest))
    return facts


def floor_percent(share: float) -> str:
    """A share as a percentage, rounded down, so that it never promises more than there is."""
    return f"{math.floor(share * 1000) / 10:.1f}%"


def _notice_html(notice: str | None) -> str:
    return f'<div style="{LOUD}">{escape(notice)}</div>' if notice else ""


def _rows(answer: Answer) -> list[tuple[str, str, str]]:
    """Key, estimate and interval of each cell."""
    keys = [str(key) for key in answer.keys] if answer.plan.by else [""]
    cells = answer.cells
    rows = []
    for key, value, low, high in zip(keys, cells.value, cells.low, cells.high, strict=True):
        error = (high - low) / 2
        rows.append((key, figure(value, error), f"{figure(low, error)} to {figure(high, error)}"))
    return rows


class _Picture:
    """Estimates with their intervals on one common scale."""

    def __init__(self, answer: Answer) -> None:
        self._cells = answer.cells
        ends = [x for x in (*answer.cells.low, *answer.cells.high) if math.isfinite(x)]
        self._low: float = min(ends, default=0.0)
        self._high: float = max(ends, default=1.0)

    def bar(self, place: int) -> str:
        low, high = self._at(self._cells.low[place]), self._at(self._cells.high[place])
        value = self._cells.value[place]
        dot = "" if math.isnan(value) else f'<circle cx="{self._at(value):.1f}" cy="8" r="4" fill="{ACCENT}"/>'
        return (
            f'<svg width="{PICTURE_WIDTH}" height="16" aria-hidden="true"><line x1="{low:.1f}" x2="{high:.1f}" y1="8" '
            f'y2="8" stroke="{ACCENT}" stroke-width="2"/>{dot}</svg>'
        )

    def _at(self, value: float) -> float:
        width = self._high - self._low or 1.0
        place = min(max((value - self._low) / width, 0.0), 1.0) if math.isfinite(value) else float(value > 0)
        return 5 + place * (PICTURE_WIDTH - 10)
