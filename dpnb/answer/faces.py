"""Answers and previews as text for a terminal and as HTML for a notebook; both stay true without a kernel."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal
from html import escape
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np

from dpnb.accounting.exact import decimal_up, percent_down, percent_up, shown_down, shown_up
from dpnb.accounting.losses import GDP, Loss

if TYPE_CHECKING:
    from dpnb.answer.estimates.noisy import Cells
    from dpnb.answer.figures import Figures
    from dpnb.answer.preview import Preview, Previews
    from dpnb.query.schema import Key

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
EXACT = Context(prec=400)
"""Enough digits for every double with twelve decimals."""


def figure(value: float, error: float, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number with as many digits as its error leaves meaningful (two of the error's).

    Parameters
    ----------
    value, error : float
    rounding : str
        A mode of :mod:`decimal`.  To the nearest for an estimate; ends of intervals are rounded outward and half-widths
        up, so that no interval looks narrower than it is.
    """
    if math.isnan(value):
        return "unknown"
    if not math.isfinite(value):
        return "∞" if value > 0 else "-∞"
    if not math.isfinite(error) or error <= 0:
        return f"{value:,.6g}"
    digits = max(0, min(12, 1 - math.floor(math.log10(error))))
    return f"{Decimal(float.__repr__(float(value))).quantize(Decimal(1).scaleb(-digits), rounding, EXACT):,f}"


def mu_up(loss: GDP) -> str:
    """A loss in four digits, rounded up: for what was spent or asked."""
    return shown_up(loss.mu)


def cost_up(loss: Loss) -> str:
    """A cost in mu, and in delta if it has one; another kind of loss in its own terms."""
    if not isinstance(loss, GDP):
        return loss.words(up=True).replace("=", " ")
    return f"mu {mu_up(loss)}" + (f" and delta {shown_up(decimal_up(loss.delta))}" if loss.delta else "")


def ceil_percent(share: float) -> str:
    """A share as a percentage, rounded up, so that no cost looks smaller than it is."""
    if math.isinf(share):
        return "more than all"
    return percent_up(share)


def price(cost: GDP, share: float) -> str:
    """A cost in words."""
    if not cost.mu_squared:
        return "free (known well enough already)"
    return f"{cost_up(cost)}, {ceil_percent(share)} of the budget"


def figures_text(figures: Figures) -> str:
    """Estimates for a terminal."""
    lines = [figures.words]
    if figures.single:
        ((_, value, interval),) = rows_of(figures)
        lines.append(f"  {value}   {interval_name(figures)} {interval}")
    else:
        table = [_head(figures), *_body(figures)]
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        for row in table:
            lines.append("  " + "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)))
    if figures.footer:
        lines.append(f"  {'; '.join(figures.footer)}")
    return "\n".join([*([figures.notice] if figures.notice else []), *lines])


def figures_html(figures: Figures, below: str = "") -> str:
    """Estimates for a notebook, with something more below the table."""
    # Statistics of different units have no common scale.
    picture = None if figures.single or (figures.outputs and figures.outputs[0] != "quantile") else _Picture(figures)
    head = _head(figures)
    cells = "".join(f'<th style="{NUMBER}">{escape(text)}</th>' for text in head) + ("<th></th>" if picture else "")
    body = ""
    for place, texts in enumerate(_body(figures)):
        body += "<tr>" + "".join(f'<td style="{NUMBER}">{escape(text)}</td>' for text in texts)
        body += (f"<td>{picture.bar(place)}</td>" if picture else "") + "</tr>"
    return (
        f'<div style="{STYLE}">{notice_html(figures.notice)}<div><b>{escape(figures.words)}</b></div>'
        f'<table style="margin:4px 0"><thead><tr>{cells}</tr></thead><tbody>{body}</tbody></table>'
        f'{below}<div style="{FAINT}">{_footer_html(figures)}</div></div>'
    )


def _footer_html(figures: Figures) -> str:
    explained = {text: explanation for explanation, text in figures.warnings}
    return "; ".join(escape(text) + (why(explained[text]) if text in explained else "") for text in figures.footer)


def why(explanation: str, words: str = "Why?") -> str:
    """Link to an explanation by its id; whoever shows explanations answers to it."""
    return f' <a href="#dpnb-why-{explanation}">{words}</a>'


def as_of_now() -> str:
    """When something that stands still was true."""
    return datetime.now(UTC).strftime("as of %Y-%m-%d %H:%M:%S UTC")


def dated(html: str) -> str:
    """With the moment at which it was true."""
    return f'{html}<div style="{STYLE};{FAINT}">{as_of_now()}</div>'


def moment(time: str) -> str:
    """A point in time of the ledger, to the minute."""
    return time[:16].replace("T", " ")


def percent(share: float) -> str:
    """A confidence as a percentage without trailing zeros, rounded down: no interval claims more than it has."""
    sure = Decimal(float.__repr__(float(share)))
    places = max(4, -(1 - sure).adjusted())  # also those of 99.99999%
    return f"{(100 * sure).quantize(Decimal(1).scaleb(-places), ROUND_FLOOR).normalize():f}%"


def interval_name(figures: Figures) -> str:
    """Heading of the intervals."""
    return f"{percent(figures.confidence)} interval"


def preview_text(preview: Preview) -> str:
    """The preview for a terminal."""
    lines = [f"{preview.words} (not released)"]
    lines += [f"  {name + ':':<16} {text}" for name, text in _facts(preview)]
    return "\n".join([*([preview.notice] if preview.notice else []), *lines])


def preview_html(preview: Preview) -> str:
    """The preview for a notebook."""
    return (
        f'<div style="{STYLE}">{notice_html(preview.notice)}<div><b>{escape(preview.words)}</b> '
        f'<span style="{FAINT}">not released</span></div>{facts_html(_facts(preview), _whys(preview))}</div>'
    )


def facts_html(facts: list[tuple[str, str]], links: Mapping[str, str] = MappingProxyType({})) -> str:
    """Names and texts as a table; `links` are put behind the texts of some names."""
    rows = "".join(
        f'<tr><td style="{LEFT};{FAINT};white-space:nowrap;vertical-align:top">{escape(name)}</td>'
        f'<td style="{LEFT}">{escape(text)}{links.get(name, "")}</td></tr>'
        for name, text in facts
    )
    return f'<table style="margin:4px 0"><tbody>{rows}</tbody></table>'


def previews_text(previews: Previews) -> str:
    """Several previews for a terminal."""
    first = previews.previews[0]
    table = [PREVIEW_COLUMNS, *map(_preview_row, previews.previews)]
    widths = [max(map(len, column)) for column in zip(*table, strict=True)]
    lines = ["  " + "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True)) for row in table]
    return "\n".join([*([first.notice] if first.notice else []), f"{first.words} (not released)", *lines])


def previews_html(previews: Previews) -> str:
    """Several previews for a notebook."""
    first = previews.previews[0]
    head = "".join(f'<th style="{NUMBER}">{escape(text)}</th>' for text in PREVIEW_COLUMNS)
    body = "".join(
        "<tr>"
        + "".join(
            f'<td style="{NUMBER}">{escape(text)}{_whys(preview).get(name, "")}</td>'
            for name, text in zip(PREVIEW_COLUMNS, _preview_row(preview), strict=True)
        )
        + "</tr>"
        for preview in previews.previews
    )
    return (
        f'<div style="{STYLE}">{notice_html(first.notice)}<div><b>{escape(first.words)}</b> '
        f'<span style="{FAINT}">not released</span></div>'
        f'<table style="margin:4px 0"><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>'
    )


PREVIEW_COLUMNS = ("asked", "cost", "expected error", "headroom after")


def _whys(preview: Preview) -> dict[str, str]:
    """Links to explanations, by the fact or column that they explain."""
    return {
        **({"expected error": why("unknown-error-size")} if expected_error_words(preview) == "unknown" else {}),
        **({} if preview.fits else {"headroom after": why("budget-exceeded")}),
        **({"takes part": why("left-out")} if preview.who else {}),
    }


def _preview_row(preview: Preview) -> tuple[str, ...]:
    after = f"{floor_percent(preview.headroom_after)} left" if preview.fits else "would be refused"
    return preview.asked, price(preview.cost, preview.cost_share), expected_error_words(preview), after


def expected_error_words(preview: Preview) -> str:
    """The errors to expect in few words: of the worst group, or of each statistic; and what that assumes."""
    if preview.errors is None:
        return "unknown"
    words = error_words(preview.errors, preview.outputs, preview.confidence, preview.error_unit)
    if not preview.narrows and preview.known_errors is not None:
        known = error_words(preview.known_errors, preview.outputs, preview.confidence, preview.error_unit)
        words += f", no narrower than known already ({known})"
    return words + (f", assumed that {preview.assumed}" if preview.assumed and words != "unknown" else "")


def error_words(
    errors: Cells, outputs: tuple[str, tuple[Key, ...]] | None, confidence: float, unit: str | None = None
) -> str:
    """Half-widths of intervals in few words: of the worst group, or of each statistic.

    Parameters
    ----------
    errors : float64 array, shape (groups, outputs)
    outputs : (str, tuple) or None
        As in an answer.
    confidence : float
    unit : str, optional
        Of the errors, if it is not the answer's.
    """
    level = f" at {percent(confidence)}"
    if outputs and outputs[0] == "statistic":
        each = (_worst(column) for column in errors.T)
        return ", ".join(f"{_label(label)} {words}" for label, words in zip(outputs[1], each, strict=True)) + level
    told = errors[np.isfinite(errors)]
    if not told.size:
        return "unknown"
    better = " or better" if told.min() < told.max() * (1 - 1e-9) else ""
    some = "" if told.size == errors.size else ", unknown for some"
    return f"{_worst(told)}{f' {unit}' if unit else ''}{level}{better}{some}"


def _worst(errors: Cells) -> str:
    """The largest of some half-widths that is known."""
    error = float(max(errors[np.isfinite(errors)], default=math.nan))
    return "unknown" if math.isnan(error) else f"± {figure(error, error, ROUND_CEILING)}"


def _facts(preview: Preview) -> list[tuple[str, str]]:
    facts = [("cost", price(preview.cost, preview.cost_share)), ("expected error", expected_error_words(preview))]
    if preview.assumption:
        facts.append(("this rests on", preview.assumption))
    facts.append(("contribution", preview.contribution))
    if preview.who:
        facts.append(("takes part", preview.who))
    if preview.fits:
        facts.append(("headroom after", f"{floor_percent(preview.headroom_after)} of the budget"))
        if preview.times is not None and not preview.who:
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
    return percent_down(share)


def notice_html(notice: str | None) -> str:
    """A loud word about an answer, above it."""
    return f'<div style="{LOUD}">{escape(notice)}</div>' if notice else ""


def _wide(figures: Figures) -> bool:
    """Whether several statistics of groups are shown side by side, a row for each group."""
    return bool(figures.names and figures.outputs and figures.outputs[0] == "statistic")


def _head(figures: Figures) -> list[str]:
    if _wide(figures) and figures.outputs:
        return [*figures.names, *(f"{label} ({percent(figures.confidence)})" for label in figures.outputs[1])]
    return [*figures.names, *([figures.outputs[0]] if figures.outputs else []), "estimate", interval_name(figures)]


def _body(figures: Figures) -> list[list[str]]:
    """The cells of the table below its head."""
    rows = rows_of(figures)
    if not _wide(figures) or not figures.outputs:
        return [[*key, value, interval] for key, value, interval in rows]
    many, levels = len(figures.outputs[1]), len(figures.names)
    groups = [rows[start : start + many] for start in range(0, len(rows), many)]
    return [[*group[0][0][:levels], *(f"{value} ({interval})" for _, value, interval in group)] for group in groups]


def told(value: float, low: float, high: float) -> tuple[str, str]:
    """An estimate and its interval, with the digits that the interval leaves meaningful."""
    error = (float(high) - float(low)) / 2  # beyond the range of doubles infinite, without a word of numpy's
    return figure(value, error), f"{figure(low, error, ROUND_FLOOR)} to {figure(high, error, ROUND_CEILING)}"


def rows_of(figures: Figures) -> list[tuple[list[str], str, str]]:
    """Labels, estimate and interval of each number."""
    labels = figures.outputs[1] if figures.outputs else (None,)
    names = [[*map(str, key), *([] if label is None else [_label(label)])] for key in figures.keys for label in labels]
    cells = figures.cells
    rows = []
    for key, value, low, high in zip(names, cells.value.ravel(), cells.low.ravel(), cells.high.ravel(), strict=True):
        rows.append((key, *told(value, low, high)))
    return rows


def _label(label: object) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label)


class _Picture:
    """Estimates with their intervals on one common scale."""

    def __init__(self, figures: Figures) -> None:
        self._value, self._lower, self._upper = (
            array.ravel().tolist() for array in (figures.cells.value, figures.cells.low, figures.cells.high)
        )
        ends = [x for x in (*self._lower, *self._upper) if math.isfinite(x)]
        self._low: float = min(ends, default=0.0)
        self._high: float = max(ends, default=1.0)

    def bar(self, place: int) -> str:
        low, high = self._at(self._lower[place]), self._at(self._upper[place])
        value = self._value[place]
        dot = "" if math.isnan(value) else f'<circle cx="{self._at(value):.1f}" cy="8" r="4" fill="{ACCENT}"/>'
        return (
            f'<svg width="{PICTURE_WIDTH}" height="16" aria-hidden="true"><line x1="{low:.1f}" x2="{high:.1f}" y1="8" '
            f'y2="8" stroke="{ACCENT}" stroke-width="2"/>{dot}</svg>'
        )

    def _at(self, value: float) -> float:
        width = self._high - self._low or 1.0
        place = min(max((value - self._low) / width, 0.0), 1.0) if math.isfinite(value) else float(value > 0)
        return 5 + place * (PICTURE_WIDTH - 10)
