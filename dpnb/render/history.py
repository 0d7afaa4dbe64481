"""What was known of a question after each look at it, as a table and as a small drawing."""

from __future__ import annotations

import math
from html import escape

from dpnb.render.labels import interval_name, rows_of
from dpnb.render.numbers import format_cost_up, format_mu_up, format_time, number_with_interval
from dpnb.render.page import ACCENT, FAINT, PICTURE_WIDTH, boxed, noticed, title_html
from dpnb.render.tables import table_html, table_text
from dpnb.results.answer import History
from dpnb.results.display import to_html, to_text

MOST_LINES = 60
"""Of a table that is shown unasked."""

FAN_HEIGHT = 56


@to_text.register
def history_text(history: History) -> str:
    """All looks for a terminal."""
    last, table = history[-1], table_text(_table(history), indent="  ")
    return noticed(
        last.notice, [f"{last.description} (history)", *table, *(f"  {text}" for text in _left_out(history))]
    )


@to_html.register
def history_html(history: History) -> str:
    """All looks for a notebook."""
    last, (head, *body) = history[-1], _table(history)
    more = "".join(f'<div style="{FAINT}">{escape(text)}</div>' for text in _left_out(history))
    table = table_html(head, [[*map(escape, row)] for row in body])
    return boxed(last.notice, title_html(last.description, "history"), table, more)


def _table(history: History) -> list[list[str]]:
    """Head and lines; of many groups the first lines, and of each look the groups that were in it."""
    last = history[-1]
    labels = [*last.names, *([last.outputs[0]] if last.outputs else [])]
    table = [["look", "time (UTC)", "cost", "known", *labels, "estimate", interval_name(last)]]
    each = last.arrays.value.shape[1]
    for number, (answer, inside) in enumerate(zip(history, history.observed_groups, strict=True), start=1):
        known = f"mu {format_mu_up(answer.total_loss)}"
        about = [str(number), format_time(answer.time), format_cost_up(answer.cost), known]
        for place, (key, value, interval) in enumerate(rows_of(answer)):
            if inside[place // each] and len(table) <= MOST_LINES:
                table.append([*about, *key, value, interval])
                about = [""] * len(about)
    return table


def _left_out(history: History) -> list[str]:
    """What the table does not show, in words."""
    inside, words = history.observed_groups, []
    if not all(map(all, inside)):
        words.append("of each look only the groups that were in it; the others stayed as they were")
    more = sum(map(sum, inside)) * history[-1].arrays.value.shape[1] - MOST_LINES
    return [*words, f"{more:,} more lines: .to_pandas() has them all"] if more > 0 else words


def fan_html(history: History) -> str:
    """How one number narrowed from look to look, as a small drawing that says the same in words."""
    ends = [(float(one.arrays.low[0, 0]), float(one.arrays.high[0, 0])) for one in history]
    values = [float(one.arrays.value[0, 0]) for one in history]
    finite = [x for x in (*values, *(end for pair in ends for end in pair)) if math.isfinite(x)]
    least, most = min(finite, default=0.0), max(finite, default=1.0)
    step = (PICTURE_WIDTH - 12) / max(len(history) - 1, 1)

    def at(look: int, value: float) -> tuple[str, str]:
        width, share = most - least, 0.5
        if width and math.isfinite(width) and not math.isnan(value):
            share = min(max((value - least) / width, 0.0), 1.0)
        return f"{6 + look * step:.1f}", f"{FAN_HEIGHT - 6 - share * (FAN_HEIGHT - 12):.1f}"

    def path(places: list[tuple[str, str]]) -> str:
        return " ".join(map(",".join, places))

    looks = range(len(history))
    band = [at(look, ends[look][1]) for look in looks] + [at(look, ends[look][0]) for look in reversed(looks)]
    seen = [at(look, values[look]) for look in looks if not math.isnan(values[look])]
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="2.5" fill="{ACCENT}"/>' for x, y in seen)
    each = (
        (format_mu_up(one.total_loss), *number_with_interval(value, low, high))
        for one, value, (low, high) in zip(history, values, ends, strict=True)
    )
    said = "; ".join(f"at mu {mu} {value}, interval {interval}" for mu, value, interval in each)
    text = escape(f"{interval_name(history[-1])} after each of {len(history)} looks: {said}")
    return (
        f'<svg role="img" aria-label="{text}" width="{PICTURE_WIDTH}" height="{FAN_HEIGHT}" '
        f'style="display:block"><title>{text}</title>'
        f'<polygon points="{path(band)}" fill="{ACCENT}" fill-opacity="0.25"/>'
        f'<polyline points="{path(seen)}" fill="none" stroke="{ACCENT}" stroke-width="1.5"/>{dots}</svg>'
    )
