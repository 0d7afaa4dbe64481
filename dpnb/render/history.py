"""The answers after each observation of a query, as a table and as a small chart."""

from __future__ import annotations

import math
from functools import partial
from html import escape
from itertools import accumulate

from dpnb._protocol.glossary import NOISE_INTERVAL
from dpnb.accounting.exact import decimal_up, exact
from dpnb.render.numbers import date_with_interval, format_percent_first, format_time, number_with_interval
from dpnb.render.page import ACCENT, CHART_WIDTH
from dpnb.render.tables import Shown, interval_name, remark_part, rows_of, shown_as, table_part
from dpnb.results.answer import History
from dpnb.times import UTC_TIME

MAX_LINES = 60
"""Maximum number of lines of the table."""

FAN_HEIGHT = 56


@shown_as(History)
def _history(history: History) -> Shown:
    last, (head, *rows) = history[-1], _table(history)
    return Shown(
        last.notice, last.description, "history", [table_part(head, rows), *map(remark_part, _omitted(history))]
    )


def _table(history: History) -> list[list[str]]:
    """Header and rows: for each observation the groups that it includes, up to `MAX_LINES` rows."""
    last = history[-1]
    labels = [*last.names, *([last.outputs[0]] if last.outputs else [])]
    table = [["observation", "time (UTC)", "cost", "total cost", *labels, "estimate", interval_name(last)]]
    n_outputs = last.arrays.value.shape[1]
    totals = _total_costs(history)
    for number, (answer, observed) in enumerate(zip(history, history.observed_groups, strict=True), start=1):
        cost = format_percent_first(answer.cost, answer.cost_fraction)
        columns = [str(number), format_time(answer.time), cost, totals[number - 1]]
        for index, (key, value, interval) in enumerate(rows_of(answer)):
            if observed[index // n_outputs] and len(table) <= MAX_LINES:
                table.append([*columns, *key, value, interval])
                columns = [""] * len(columns)
    return table


def _total_costs(history: History) -> list[str]:
    if any(math.isnan(answer.cost_fraction) for answer in history):  # there is no budget
        return [answer.total_loss.words for answer in history]
    fractions = accumulate(exact(answer.cost_fraction) for answer in history)
    return [
        format_percent_first(answer.total_loss, decimal_up(fraction))
        for answer, fraction in zip(history, fractions, strict=True)
    ]


def _omitted(history: History) -> list[str]:
    observed, notes = history.observed_groups, []
    if not all(map(all, observed)):
        notes.append("each observation is shown with the groups that it includes; the others did not change")
    more = sum(map(sum, observed)) * history[-1].arrays.value.shape[1] - MAX_LINES
    return [*notes, f"{more:,} more lines; use .to_pandas() to get all of them"] if more > 0 else notes


def fan_html(history: History) -> str:
    """How the interval of one number narrowed with each observation, as a small chart with a text alternative."""
    ends = [(float(one.arrays.low[0, 0]), float(one.arrays.high[0, 0])) for one in history]
    values = [float(one.arrays.displayed[0, 0]) for one in history]
    finite = [x for x in (*values, *(end for pair in ends for end in pair)) if math.isfinite(x)]
    lowest, highest = min(finite, default=0.0), max(finite, default=1.0)
    step = (CHART_WIDTH - 12) / max(len(history) - 1, 1)

    def at(index: int, value: float) -> tuple[str, str]:
        width, share = highest - lowest, 0.5
        if width and math.isfinite(width) and not math.isnan(value):
            share = min(max((value - lowest) / width, 0.0), 1.0)
        return f"{6 + index * step:.1f}", f"{FAN_HEIGHT - 6 - share * (FAN_HEIGHT - 12):.1f}"

    def path(points: list[tuple[str, str]]) -> str:
        return " ".join(map(",".join, points))

    indices = range(len(history))
    band = [at(i, ends[i][1]) for i in indices] + [at(i, ends[i][0]) for i in reversed(indices)]
    line = [at(i, values[i]) for i in indices if not math.isnan(values[i])]
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="2.5" fill="{ACCENT}"/>' for x, y in line)
    dates = history[-1].dates
    shown = partial(date_with_interval, zone=dates[0] or UTC_TIME) if dates else number_with_interval
    steps = (
        (cost, *shown(value, low, high))
        for cost, value, (low, high) in zip(_total_costs(history), values, ends, strict=True)
    )
    description = "; ".join(f"at {cost} {value}, {NOISE_INTERVAL} {interval}" for cost, value, interval in steps)
    text = escape(f"{interval_name(history[-1])} after each of {len(history)} observations: {description}")
    return (
        f'<svg role="img" aria-label="{text}" width="{CHART_WIDTH}" height="{FAN_HEIGHT}" '
        f'style="display:block"><title>{text}</title>'
        f'<polygon points="{path(band)}" fill="{ACCENT}" fill-opacity="0.25"/>'
        f'<polyline points="{path(line)}" fill="none" stroke="{ACCENT}" stroke-width="1.5"/>{dots}</svg>'
    )
