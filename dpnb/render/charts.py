"""Small charts as static SVG: histograms of ordered groups, intervals in a table, the answers after each observation.

They need no kernel.  The kinds of numbers and the ticks are also those of the figures of plotly.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from html import escape
from itertools import accumulate, pairwise

from dpnb._browser.glossary import NOISE_INTERVAL
from dpnb._plan.measurements import (
    ColumnsView,
    Count,
    CountUnits,
    Discovery,
    JointAggregation,
    MeanCountView,
    MomentsView,
    Sum,
)
from dpnb.accounting.exact import decimal_up, exact
from dpnb.render.numbers import date_with_interval, format_percent_first, format_time, number_with_interval
from dpnb.render.page import ACCENT, CHART_WIDTH
from dpnb.render.tables import (
    Shown,
    interval_name,
    labels_of,
    population_ends,
    released,
    remark_part,
    rows_of,
    shown_as,
    table_part,
)
from dpnb.results.answer import History
from dpnb.results.tables.table import Estimates
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


# --- kinds of numbers -------------------------------------------------------------------------------------------------


_BIN = re.compile(r"[\[(](?P<low>[^,]+), (?P<high>[^,]+)[\])]")


COMMON_SCALE = ("quantile", "time")
"""Names of several numbers of a group that have one scale; others are statistics in different units."""


def has_common_scale(estimates: Estimates) -> bool:
    """Whether all numbers have one scale."""
    return estimates.outputs is None or estimates.outputs[0] in COMMON_SCALE


def adds_up(estimates: Estimates) -> list[bool]:
    """For each output whether it is a count or a sum, which is drawn as a bar from 0."""
    answer, many = released(estimates), estimates.arrays.value.shape[1]
    if answer is None:
        return [False] * many
    plan, view = answer.plan.aggregation, answer.view
    shown = [(column.part, column.view) for column in view.columns] if isinstance(view, ColumnsView) else [(0, view)]
    parts = [part.aggregation for part in plan.parts] if isinstance(plan, JointAggregation) else [plan]
    adds = [
        isinstance(parts[part], Count | CountUnits | Sum | Discovery)
        or isinstance(one, MeanCountView)
        or (isinstance(one, MomentsView) and one.statistic == "count")
        for part, one in shown
    ]
    labels = answer.outputs[1] if answer.outputs else ()
    if len(adds) != len(labels) or not estimates.outputs:
        return adds if len(adds) == many else adds[:1] * many
    return [adds[labels.index(label)] for label in estimates.outputs[1]]  # the outputs may be rearranged


def is_ordered(estimates: Estimates) -> bool:
    """Whether all groups are ranges of numbers or dates, parts of dates, or numbers, so that an axis shows their order.

    A table in another order, for example sorted by its estimates, is not.
    """
    if not estimates.names:
        return False
    if all(isinstance(part, int | float) for key in estimates.keys for part in key):
        return True
    answer = released(estimates)
    return answer is not None and all(map(answer._has_ordered_keys, range(len(answer.names))))


def bin_edges(labels: Sequence[str]) -> list[str] | None:
    """The edges of adjacent ranges such as ``[0, 5]`` and ``(5, 10]``; None for other labels."""
    matches = [_BIN.fullmatch(label) for label in labels]
    bins = [(match["low"], match["high"]) for match in matches if match]
    if len(bins) < max(len(labels), 1) or any(one[1] != other[0] for one, other in pairwise(bins)):
        return None
    return [low for low, _ in bins] + [bins[-1][1]]


# --- ticks of an axis -------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Ticks:
    """The ticks of an axis of values."""

    step: float  # distance of the ticks, which are its multiples
    decimals: int  # of every label

    @classmethod
    def between(cls, low: float, high: float, most: int) -> Ticks | None:
        """At most about `most` ticks for a range; None if it needs exponents, or is empty.

        >>> Ticks.between(0, 2400, 6)
        Ticks(step=500, decimals=0)
        >>> Ticks.between(3.68, 4.45, 6)
        Ticks(step=0.2, decimals=1)
        """
        length = float(high) - float(low)
        if not 1e-9 < length < 1e15 or max(abs(low), abs(high)) >= 1e15:
            return None
        exponent = math.floor(math.log10(length / most))
        for factor in (1, 2, 5, 10):
            step = factor * 10**exponent if exponent >= 0 else factor / 10**-exponent
            if length / step <= most:
                break
        return cls(step, max(0, -exponent - (factor == 10)))

    def within(self, low: float, high: float) -> list[float]:
        """The ticks from `low` to `high`."""
        first, last = math.ceil(low / self.step - 1e-9), math.floor(high / self.step + 1e-9)
        return [index * self.step for index in range(first, last + 1)]

    def label(self, value: float) -> str:
        """The label of a tick."""
        return f"{value:z,.{self.decimals}f}"


# --- counts and sums of ordered groups as an upright histogram --------------------------------------------------------


WIDTH, HEIGHT = 560, 190
LEFT, RIGHT, TOP, BOTTOM = 58, 12, 8, 24
CHARACTER = 6.5
"""Width of a character of a label, in pixels."""

MAX_BARS = 200


def is_histogram(estimates: Estimates) -> bool:
    """Whether the estimates are counts or sums of ordered groups."""
    return (
        len(estimates.names) == 1
        and estimates.outputs is None
        and 2 <= len(estimates.keys) <= MAX_BARS
        and is_ordered(estimates)
        and adds_up(estimates) == [True]
    )


def histogram_html(estimates: Estimates) -> str:
    """Bars from 0 to each estimate, also below 0, with the interval, and the edges of the groups below.

    The numbers are in the table below it, so it is hidden from screen readers.
    """
    value, low, high = (
        array.ravel().tolist() for array in (estimates.arrays.displayed, estimates.arrays.low, estimates.arrays.high)
    )
    wider = population_ends(estimates)
    limits = [end for pair in wider for end in pair]
    ends = [0.0, *(end for end in (*value, *low, *high, *limits) if math.isfinite(end))]
    ticks = Ticks.between(min(ends), max(ends), 5)
    if ticks is None:
        return ""
    bottom, top = min(ends), max(ends) + 0.03 * (max(ends) - min(ends))
    width, height = (WIDTH - LEFT - RIGHT) / len(value), HEIGHT - TOP - BOTTOM

    def y(number: float) -> float:
        position = (min(max(number, bottom), top) - bottom) / (top - bottom)
        return TOP + (1 - position) * height

    parts = []
    for tick in ticks.within(bottom, top):
        strong = ";stroke-opacity:.7" if tick == 0 else ""
        parts.append(_line(LEFT, y(tick), WIDTH - RIGHT, y(tick), f"stroke:currentColor;stroke-opacity:.18{strong}"))
        parts.append(_text(LEFT - 6, y(tick) + 4, ticks.label(tick), "end"))
    for index, (number, *interval) in enumerate(zip(value, low, high, strict=True)):
        middle = LEFT + (index + 0.5) * width
        if not math.isnan(number):
            upper, lower = y(max(number, 0.0)), y(min(number, 0.0))
            parts.append(
                f'<rect x="{middle - 0.46 * width:.1f}" y="{upper:.1f}" width="{0.92 * width:.1f}" '
                f'height="{max(lower - upper, 0.5):.1f}" style="fill:{ACCENT};fill-opacity:.35;stroke:{ACCENT}"/>'
            )
        if not any(map(math.isnan, interval)):
            parts.append(_whisker(middle, y(interval[0]), y(interval[1]), min(4.0, width / 3)))
        if wider and not any(map(math.isnan, wider[index])):
            below, above = wider[index]
            parts.append(_whisker(middle, y(below), y(above), min(7.0, width / 2), "1"))
    parts += _axis_labels([label for (label,) in labels_of(estimates)], width)
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" font-size="11" aria-hidden="true" '
        f'style="display:block;max-width:100%;height:auto;overflow:visible">{"".join(parts)}</svg>'
    )


def _axis_labels(labels: list[str], width: float) -> list[str]:
    """The edges of ranges between the bars, or the groups below the bars; as many as there is room for."""
    edges = bin_edges(labels)
    texts, shift = (labels, 0.5) if edges is None else (edges, 0.0)
    every = math.ceil((max(map(len, texts)) + 2) * CHARACTER / width)
    return [
        _text(LEFT + (index + shift) * width, HEIGHT - 8, text, "middle")
        for index, text in enumerate(texts)
        if index % every == 0
    ]


def _whisker(x: float, low: float, high: float, cap: float, width: str = "1.5") -> str:
    style = f"stroke:{ACCENT};stroke-width:{width}"
    ends = "".join(_line(x - cap, end, x + cap, end, style) for end in (low, high))
    return _line(x, low, x, high, style) + ends


def _line(x1: float, y1: float, x2: float, y2: float, style: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" style="{style}"/>'


def _text(x: float, y: float, text: str, anchor: str) -> str:
    style = "font-variant-numeric:tabular-nums"
    place = f'x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"'
    return f'<text {place} fill="currentColor" style="{style}">{escape(text)}</text>'


# --- intervals in the rows of a table ---------------------------------------------------------------------------------


class IntervalBars:
    """Estimates with their intervals on one common scale, on which unknown numbers are not drawn."""

    def __init__(self, estimates: Estimates) -> None:
        self._value, self._lower, self._upper = (
            array.ravel().tolist()
            for array in (estimates.arrays.displayed, estimates.arrays.low, estimates.arrays.high)
        )
        self._wider = population_ends(estimates)
        self._unknown: list[bool] = estimates.arrays.is_unknown.ravel().tolist()
        rows = zip(self._unknown, self._value, self._lower, self._upper, strict=True)
        ends = [x for unknown, *numbers in rows for x in numbers if math.isfinite(x) and not unknown]
        ends += [x for pair in self._wider for x in pair if math.isfinite(x)]
        self._low: float = min(ends, default=0.0)
        self._high: float = max(ends, default=1.0)
        self._ticks = Ticks.between(self._low, self._high, 3)
        if len(self._marks) < 2:  # one place is no scale
            self._ticks = Ticks.between(self._low, self._high, 5)

    @property
    def _marks(self) -> list[float]:
        return [] if self._ticks is None else self._ticks.within(self._low, self._high)

    def scale(self) -> str:
        """The axis of the bars, for the head of their column."""
        style = 'text-anchor="middle" font-size="11" fill="currentColor" fill-opacity=".75"'
        texts = "".join(
            f'<text x="{min(max(self._at(tick), 12), CHART_WIDTH - 12):.1f}" y="12" {style}>'
            f"{escape(self._ticks.label(tick) if self._ticks else '')}</text>"
            for tick in self._marks
        )
        return f'<svg width="{CHART_WIDTH}" height="16" aria-hidden="true">{texts}</svg>' if texts else ""

    def bar(self, index: int) -> str:
        """One estimate with its intervals."""
        if self._unknown[index]:
            return ""
        low, high = self._at(self._lower[index]), self._at(self._upper[index])
        value = self._value[index]
        dot = "" if math.isnan(value) else f'<circle cx="{self._at(value):.1f}" cy="8" r="4" fill="{ACCENT}"/>'
        axis = "".join(
            f'<line x1="{self._at(tick):.1f}" x2="{self._at(tick):.1f}" y1="0" y2="16" stroke="currentColor" '
            f'stroke-opacity="{0.5 if tick == 0 and self._low < 0 else 0.15}"/>'
            for tick in self._marks
        )
        line = f'<line x1="{low:.1f}" x2="{high:.1f}" y1="8" y2="8" stroke="{ACCENT}" stroke-width="2"/>'
        if self._wider and not math.isnan(self._wider[index][0]):
            low, high = map(self._at, self._wider[index])
            style = f'stroke="{ACCENT}" stroke-width="6" stroke-opacity=".3"'
            line = f'<line x1="{low:.1f}" x2="{high:.1f}" y1="8" y2="8" {style}/>{line}'
        return f'<svg width="{CHART_WIDTH}" height="16" aria-hidden="true">{axis}{line}{dot}</svg>'

    def _at(self, value: float) -> float:
        width = self._high - self._low or 1.0
        position = min(max((value - self._low) / width, 0.0), 1.0) if math.isfinite(value) else float(value > 0)
        return 5 + position * (CHART_WIDTH - 10)
