"""Pictures hold an answer's numbers, can be read in both themes, and change nothing around them."""

from __future__ import annotations

import json
import math
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from html import unescape
from typing import Any

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio
import pytest

import dpnb
from dpnb._browser.glossary import POPULATION_INTERVAL
from dpnb.errors import DpnbError, RequestError
from dpnb.notebook.plots import answers, style
from dpnb.notebook.plots.marks import fan
from dpnb.render.numbers import format_cost, number_with_interval
from dpnb.render.tables import population_texts, rows_of
from dpnb.results.answer import History
from dpnb.results.display import to_picture
from dpnb.results.estimates import IntervalArrays
from dpnb.results.tables.table import Estimates

PLANS = ["free", "25%", "never"]
TOWNS = [f"town {number}" for number in range(12)]
LIGHT, DARK = "#ffffff", "#111111"


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    chance = np.random.default_rng(4)
    return pd.DataFrame(
        {
            "x": chance.gamma(2, 2, 4000),
            "y": chance.uniform(0, 5, 4000),
            "plan": chance.choice(PLANS[:2], 4000),
            "side": chance.choice(["north", "south"], 4000),
            "town": chance.choice(TOWNS, 4000),
            "week": chance.integers(0, 12, 4000),
        }
    )


@pytest.fixture(scope="module")
def frame(table: pd.DataFrame) -> Any:
    return opened(table)


def opened(table: pd.DataFrame) -> Any:
    schema: dict[str, Any] = {
        "x": dpnb.Bounded(0, 20),
        "y": dpnb.Bounded(0, 5),
        "week": dpnb.Bounded(0, 11, integer=True),
        "plan": dpnb.Categories(PLANS),
        "side": dpnb.Categories(["north", "south"]),
        "town": dpnb.Categories(TOWNS),
    }
    arguments: dict[str, Any] = {"name": "plots", "schema": schema, "ledger": ":memory:", "not_private_test_seed": 5}
    session = dpnb.Session(table, budget=dpnb.Budget.gdp(1000), **arguments)
    return session.frame


ASKED: dict[str, Callable[[Any], Any]] = {
    "a number": lambda f: f.count(),
    "counts": lambda f: f.groupby("plan").count(),
    "means": lambda f: f.groupby("plan")["x"].mean(),
    "shares": lambda f: f["plan"].value_counts(normalize=True),
    "histogram": lambda f: f["x"].histogram(10),
    "two levels": lambda f: f.groupby(["plan", "side"]).count(),
    "the first level in hues": lambda f: f.groupby(["plan", "town"])["x"].mean(),
    "panels": lambda f: f.groupby(["week", "town"]).count(),
    "many": lambda f: f.groupby(["town", "week"])["x"].mean(),
    "quantiles": lambda f: f["x"].quantile([0.1, 0.5, 0.9]),
    "quantiles by group": lambda f: f.groupby("plan")["x"].quantile([0.1, 0.5, 0.9]),
    "quantiles of many groups": lambda f: f.groupby("town")["x"].quantile([0.25, 0.75]),
    "description": lambda f: f["x"].describe(),
    "statistics by group": lambda f: f.groupby("plan").agg(n="count", mean=("x", "mean"), half=("y", "median")),
    "statistics by two levels": lambda f: f.groupby(["plan", "side"]).agg(n="count", mean=("x", "mean")),
}


@pytest.fixture(params=ASKED, scope="module")
def answer(request: pytest.FixtureRequest, frame: Any) -> Any:
    return ASKED[request.param](frame).release(mu=0.5)


@pytest.fixture(scope="module")
def drawing(answer: Any) -> go.Figure:
    """The picture of the answer, which takes longer than most tests of it; no test changes it."""
    return answer.plot()


def marks(figure: go.Figure) -> list[Any]:
    """The marks of the estimates, without the lines of population intervals."""
    return [trace for trace in figure.data if trace.meta != POPULATION_INTERVAL]


def drawn(figure: go.Figure) -> Iterator[tuple[float, float, float, str]]:
    """Every estimate of a picture: value (nan if the mark is open), low, high and what it says."""
    for trace in marks(figure):
        sideways = trace.orientation == "h"
        values, bars = (trace.x, trace.error_x) if sideways else (trace.y, trace.error_y)
        if bars.array is None:  # the triangle of an interval without end
            continue
        is_open = trace.type == "scatter" and str(trace.marker.symbol).endswith("-open")
        for value, up, down, said in zip(values, bars.array, bars.arrayminus, trace.hovertext, strict=True):
            if value is not None:
                yield (math.nan if is_open else value), value - down, value + up, said


def test_a_picture_holds_every_number_of_the_answer(answer: Any, drawing: go.Figure) -> None:
    found = sorted(drawn(drawing), key=lambda one: one[3])
    rows = rows_of(answer)
    cells = answer.arrays
    numbers = zip(cells.displayed.ravel(), cells.low.ravel(), cells.high.ravel(), rows, strict=True)
    told, wider = [], population_texts(answer)
    for value, low, high, (key, estimate, interval) in numbers:
        names = [*answer.names, *([answer.outputs[0]] if answer.outputs else [])]
        label = ", ".join(f"{name} {part}" for name, part in zip(names, key, strict=True))
        lines = [*([f"<b>{label}</b>"] if label else []), f"estimate {estimate}", f"95% noise interval {interval}"]
        lines += [f"95% population interval {text}" for text in wider[len(told) : len(told) + 1] if text]
        told.append((value, low, high, "<br>".join(lines)))
    told.sort(key=lambda one: one[3])
    assert [one[3] for one in found] == [one[3] for one in told]
    finite = [place for place, one in enumerate(told) if np.isfinite(one[1:3]).all()]
    assert finite
    for place in finite:
        assert found[place][:3] == pytest.approx(told[place][:3], nan_ok=True)


def test_population_intervals_are_thin_lines_around_the_estimates(frame: Any) -> None:
    answer = frame.groupby("plan").count().release(mu=0.5)
    (lines,) = [trace for trace in answer.plot().data if trace.meta == POPULATION_INTERVAL]
    ends = answer.population_interval
    assert [y - down for y, down in zip(lines.y, lines.error_y.arrayminus, strict=True)] == pytest.approx(
        ends["population_low"].tolist()
    )
    assert [y + up for y, up in zip(lines.y, lines.error_y.array, strict=True)] == pytest.approx(
        ends["population_high"].tolist()
    )
    assert lines.error_y.thickness < answer.plot().data[0].error_y.thickness
    assert "thin lines are population intervals" in " ".join(
        re.sub(r"<[^>]*>", " ", answer.plot().layout.title.text).split()
    )


def colours(node: Any) -> Iterator[str]:
    """Every opaque colour that something is drawn in."""
    if isinstance(node, dict):
        for name, value in node.items():
            if isinstance(value, str) and "color" in name and name not in ("bgcolor", "fillcolor") and value[0] == "#":
                yield value
            elif name not in ("hoverlabel", "colorway"):  # a label has a background of its own
                yield from colours(value)
    elif isinstance(node, list):
        for value in node:
            yield from colours(value)


def luminance(colour: str) -> float:
    """Relative luminance of WCAG 2."""
    channels = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(share * c for share, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one: str, other: str) -> float:
    dark, light = sorted([luminance(one), luminance(other)])
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("background", [LIGHT, DARK])
def test_words_can_be_read_in_both_themes(background: str) -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast(style.INK, background) > 4.3
    assert contrast(style.LOUD, background) > 4.3
    assert style.TEMPLATE.layout.font.color == style.INK
    label = style.TEMPLATE.layout.hoverlabel
    assert contrast(label.font.color, label.bgcolor) > 7


def test_marks_can_be_seen_in_both_themes(drawing: go.Figure) -> None:
    content = drawing.to_plotly_json()
    found = set(colours(json.loads(json.dumps(content, default=lambda value: value.to_plotly_json()))))
    assert {style.HUES[0], style.INK} <= found
    worst = min(contrast(colour, background) for colour in {*found, *style.HUES} for background in (LIGHT, DARK))
    assert worst > 3


def test_no_hue_stands_alone(frame: Any) -> None:
    """Readers who cannot tell two hues apart have symbols, dashes or patterns."""
    for hues in (style.HUES, style.SYMBOLS, style.DASHES, style.PATTERNS):
        assert len(set(hues)) == len(hues) == 8
    bars = marks(frame.groupby(["plan", "side"]).count().release(mu=0.5).plot())
    assert len({trace.marker.pattern.shape for trace in bars}) == 2
    lines = [t for t in ASKED["quantiles by group"](frame).release(mu=0.5).plot().data if t.mode == "lines+markers"]
    assert len({trace.line.dash for trace in lines}) == len({trace.marker.symbol for trace in lines}) == 3


def test_letters_are_large_enough_and_nothing_is_asked_of_the_network(drawing: go.Figure) -> None:
    text = drawing.to_json()
    assert "http" not in text
    sizes = [font["size"] for font in fonts(json.loads(text))]
    assert min(sizes) >= 12
    assert len(sizes) > 5


def fonts(node: Any) -> Iterator[dict[str, Any]]:
    for name, value in node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ():
        if str(name).endswith("font") and "size" in value:
            yield value
        else:
            yield from fonts(value)


def test_nothing_global_changes(frame: Any) -> None:
    before = pio.templates.default, list(pio.templates), pio.renderers.default
    figure = frame.count().release(mu=0.5).plot()
    assert (pio.templates.default, list(pio.templates), pio.renderers.default) == before
    assert figure.layout.template.layout.font.color == style.INK
    assert figure.layout.template.layout.paper_bgcolor == "rgba(0,0,0,0)"


def title(figure: go.Figure) -> str:
    """The text of the title, without the breaks of its lines."""
    return re.sub(r"</?span[^>]*>", "", re.sub(r"</(span|b)><br><\1[^>]*>", " ", str(figure.layout.title.text)))


def test_a_picture_says_what_was_asked_how_sure_it_is_and_what_it_cost(frame: Any) -> None:
    answer = frame.groupby("plan")["x"].mean().release(mu=0.5)
    figure = answer.plot()
    assert "mean of x by plan" in title(figure)
    assert "95% noise intervals, each separately" in title(figure)
    assert f"cost {format_cost(answer.cost, answer.cost_fraction)}" in title(figure)
    assert f'color:{style.LOUD}">NOT PRIVATE: seeded test noise' in title(figure)
    assert figure.layout.yaxis.title.text == "mean of x"
    assert figure.layout.xaxis.title.text == "plan"
    together = frame.groupby("plan")["x"].mean().release(mu=0.5, simultaneous=True, confidence=0.9).plot()
    assert "90% noise intervals, all at once" in title(together)
    rehearsed = dpnb.Session.rehearse(name="r", budget=dpnb.Budget.gdp(1), schema={"x": dpnb.Bounded(0, 1)})
    assert "REHEARSAL: mock data" in title(rehearsed.frame.count().release(mu=0.5).plot())


def test_counts_are_bars_from_zero_and_means_are_points_without_it(frame: Any) -> None:
    counts = frame.groupby("plan").count().release(mu=0.5).plot()
    assert [trace.type for trace in marks(counts)] == ["bar"]
    assert counts.layout.yaxis.range[0] <= 0
    means = frame.groupby("side")["x"].mean().release(mu=0.5).plot()
    assert {trace.type for trace in means.data} == {"scatter"}
    assert means.layout.yaxis.range[0] > 0
    assert [trace.type for trace in marks(ASKED["histogram"](frame).release(mu=0.5).plot())] == ["bar"]


def test_groups_stand_in_the_declared_order_as_texts(frame: Any) -> None:
    figure = frame.groupby("plan").count().release(mu=0.5).plot()
    assert figure.data[0].x == tuple(PLANS)
    assert figure.layout.xaxis.type == "category"
    assert figure.layout.xaxis.categoryarray == tuple(PLANS)
    weeks = frame.groupby("week").count().release(mu=0.5).plot()
    assert weeks.data[0].x == tuple(map(str, range(12)))


def test_at_most_eight_hues_and_otherwise_panels(frame: Any) -> None:
    two = ASKED["two levels"](frame).release(mu=0.5).plot()
    assert [trace.name for trace in marks(two)] == ["north", "south"]
    assert two.layout.legend.title.text == "side"
    panels = ASKED["panels"](frame).release(mu=0.5).plot()
    assert len([trace for trace in panels.data if trace.type == "bar"]) == 12
    assert {trace.marker.line.color for trace in marks(panels)} == {style.HUES[0]}
    assert [note.text for note in panels.layout.annotations] == TOWNS


def test_statistics_have_scales_of_their_own(frame: Any) -> None:
    figure = ASKED["statistics by group"](frame).release(mu=0.5).plot()
    assert [note.text for note in figure.layout.annotations] == ["n", "mean", "half"]
    ranges = {figure.layout[name].range for name in ("yaxis", "yaxis2", "yaxis3")}
    assert len(ranges) == 3
    assert [figure.layout[name].matches for name in ("yaxis", "yaxis2", "yaxis3")] == [None] * 3


def by_hand(values: list[tuple[float, float, float]], keys: list[Any] | None = None) -> Estimates:
    value, low, high = np.array(values).T
    names = keys or [f"g{place}" for place in range(len(values))]
    return Estimates(
        description="made by hand",
        names=("group",),
        keys=tuple((name,) for name in names),
        outputs=None,
        arrays=IntervalArrays.of(value, low, high, np.ones(len(values))),
        confidence=0.95,
    )


def test_what_is_unknown_or_endless_is_marked_so() -> None:
    figure = by_hand([(1, 0, 2), (math.nan, 0, 4), (3, -math.inf, 5), (math.nan, -math.inf, math.inf)]).plot()
    known, unknown, up, down = figure.data
    low, high = figure.layout.yaxis.range
    assert known.y == (1, None, 3, None)
    assert unknown.y == (None, 2, None, pytest.approx((low + high) / 2))
    assert unknown.marker.symbol == "circle-open"
    assert "estimate unknown" in unknown.hovertext[1]
    assert (up.marker.symbol, up.y) == ("triangle-up", (None, None, None, high))
    assert (down.marker.symbol, down.y) == ("triangle-down", (None, None, low, low))
    assert known.y[2] - known.error_y.arrayminus[2] == pytest.approx(low)
    assert "open marks are unknown" in title(figure)
    assert style.UNBOUNDED in title(figure)


def test_an_estimate_may_lie_outside_its_interval() -> None:
    figure = by_hand([(-3, 0, 2), (1, 0, 2)]).plot()
    assert [one[:3] for one in drawn(figure)] == [(-3, 0, 2), (1, 0, 2)]
    assert "an estimate outside its interval is due to noise" in title(figure)
    assert figure.layout.yaxis.range[0] < -3


def test_nothing_known_at_all_is_drawn_without_a_scale() -> None:
    figure = by_hand([(math.nan, -math.inf, math.inf)]).plot()
    assert figure.layout.yaxis.showticklabels is False


@pytest.mark.parametrize("values", [[(5, 5, 5)], [(0, 0, 0)], [(1e308, -1e308, 1e308)]])
def test_degenerate_scales_are_drawn(values: list[tuple[float, float, float]]) -> None:
    low, high = by_hand(values).plot().layout.yaxis.range
    assert low < high
    assert math.isfinite(low)
    assert math.isfinite(high)


def test_keys_are_shown_as_they_are_and_stay_apart() -> None:
    numbers = [(1.0, 0.0, 2.0)] * 5
    figure = by_hand(numbers, [1, "1", "<b>x</b>", "R&D", "$5 to $9"]).plot()
    assert figure.data[0].x == ("1", "'1'", "&lt;b>x&lt;/b>", "R&amp;D", "&#36;5 to &#36;9")


def test_many_names_stand_below_each_other() -> None:
    figure = by_hand([(1, 0, 2)] * 100).plot()
    assert figure.data[0].orientation == "h"
    assert figure.layout.yaxis.autorange == "reversed"
    assert figure.layout.height > 100 * 12
    assert by_hand([(1, 0, 2)] * 100, list(range(100))).plot().data[0].orientation == "v"


def test_too_many_panels_are_said_to_be_left_out() -> None:
    cells = IntervalArrays(*np.ones((4, 60, 2)))
    keys = tuple((number,) for number in range(60))
    lines = Estimates(
        description="w", names=("g",), keys=keys, outputs=("quantile", (0.1, 0.9)), arrays=cells, confidence=0.95
    ).plot()
    assert len(marks(lines)) == answers.MAX_PANELS
    assert "the first 48 of 60 panels" in title(lines)


def test_of_very_many_groups_the_first_are_drawn() -> None:
    figure = by_hand([(1, 0, 2)] * 5000).plot()
    assert len(figure.data[0].x) == answers.MAX_GROUPS
    assert "the first 1,000 of 5,000 groups" in title(figure)


def test_no_group_at_all_is_drawn_as_nothing() -> None:
    """As a discovery that finds none."""
    none = IntervalArrays(*np.ones((4, 0, 1)))
    figure = Estimates(description="w", names=("g",), keys=(), outputs=None, arrays=none, confidence=0.95).plot()
    assert list(drawn(figure)) == []


def test_long_names_leave_room_for_the_picture() -> None:
    figure = by_hand([(1, 0, 2)] * 2, ["a < b " * 30, "short"]).plot()
    assert figure.layout.yaxis.ticktext[1] == "short"
    assert len(figure.layout.yaxis.ticktext[0]) < 50
    assert figure.layout.yaxis.ticktext[0].startswith("a &lt; b")
    assert f"group {'a &lt; b ' * 30}" in figure.data[0].hovertext[0]


def test_arithmetic_has_pictures_too(frame: Any) -> None:
    counts = frame.groupby("plan").count().release(mu=0.5)
    ratio = counts / frame["y"].sum().release(mu=0.5)
    figure = ratio.plot()
    assert [one[0] for one in drawn(figure)] == ratio.estimate.tolist()  # type: ignore[union-attr]
    assert figure.layout.yaxis.title.text == "estimate"
    assert counts["free"].plot().data[0].x == (counts["free"].estimate,)


def test_a_histogram_stands_upright_with_its_edges_between_the_bars(frame: Any) -> None:
    edges = [0.125 * number for number in range(81)]  # long labels, and many
    for answer in (frame["x"].histogram(10), frame.groupby(dpnb.cut(frame["x"], edges)).size()):
        released = answer.release(mu=0.5)
        figure = released.plot()
        (bars,) = marks(figure)
        assert (bars.type, bars.orientation) == ("bar", "v")
        assert bars.x == tuple(key for (key,) in released.keys)
        assert bars.y == tuple(released.estimate)
        axis = figure.layout.xaxis
        assert axis.tickvals[0] == -0.5
        assert np.diff(axis.tickvals).min() == np.diff(axis.tickvals).max() >= 1
        assert axis.ticktext[0] == "0"
        assert sum(len(label) + 1 for label in axis.ticktext) <= 90
        assert {float(label) for label in axis.ticktext} <= {*edges, *range(0, 21, 2)}


def test_ticks_of_values_have_separators_and_equal_decimals(frame: Any) -> None:
    assert frame.groupby("plan").count().release(mu=0.5).plot().layout.yaxis.tickformat == ",.0f"
    axis = by_hand([(0.31, 0.3, 0.33), (0.35, 0.34, 0.37)]).plot().layout.yaxis
    assert (axis.tickformat, axis.dtick) == (",.2f", 0.02)
    assert by_hand([(1e300, 1e299, 2e300)]).plot().layout.yaxis.tickformat is None


def test_a_rearranged_answer_is_drawn_like_the_answer(frame: Any) -> None:
    answer = frame.groupby("town").count().release(mu=0.5)
    original, ordered = answer.plot(), answer.sort_values(ascending=False).round().head(3).plot()
    assert {trace.type for trace in marks(ordered)} == {"bar"} == {trace.type for trace in marks(original)}
    axis = ordered.layout.xaxis if ordered.data[0].orientation == "v" else ordered.layout.yaxis
    assert list(axis.categoryarray) == list(answer.estimate.sort_values(ascending=False).index[:3])
    pairs = frame.groupby(["plan", "side"]).count().release(mu=0.5)
    assert [trace.type for trace in marks(pairs.unstack().plot())] == ["bar", "bar"]
    table = ASKED["statistics by group"](frame).release(mu=0.5)
    kinds = [trace.type for trace in marks(table.sort_values("mean").plot())]
    assert kinds == [trace.type for trace in marks(table.plot())]


def test_a_negative_count_is_a_bar_below_zero_with_its_interval(table: pd.DataFrame) -> None:
    frame = opened(table)  # its noise is the same whatever other tests have released
    answer = frame[frame["x"] > 19].groupby("plan").count().release(mu=0.005)
    figure = answer.plot()
    (bars,) = marks(figure)
    assert min(bars.y) < 0
    assert bars.y == tuple(answer.estimate)
    assert figure.layout.yaxis.range[0] < min(bars.y)
    assert figure.layout.yaxis.range[1] > answer.interval["high"].max()
    assert [high - low for _, low, high, _ in drawn(figure)] == pytest.approx(
        (answer.interval["high"] - answer.interval["low"]).tolist()
    )


def test_lines_of_text_fit_a_narrow_cell(frame: Any) -> None:
    query = frame[(frame["x"] > 1.2345) & (frame["y"] < 4.321) & (frame["week"] > 3)]
    figure = query.groupby(["side", dpnb.cut(query["x"], [0, 1, 2, 3, 4, 5, 20])]).count().release(mu=0.5).plot()
    lines = re.sub(r"</?(span|b)( [^>]*)?>", "", figure.layout.title.text).split("<br>")
    assert len(lines) > 3
    assert max(len(unescape(line)) for line in lines) <= style.NOTE_WIDTH
    assert max(map(len, figure.layout.legend.title.text.split("<br>"))) <= style.LEGEND_WIDTH


# --- history ---


def test_the_fan_holds_every_look(frame: Any) -> None:
    count = frame[frame["x"] > 1].count()
    answer = count.release(mu=0.1).refine(mu=0.2).refine(mu=0.5)
    high, low, estimate = answer.plot(history=True).data
    entries = list(answer.history)
    assert estimate.y == tuple(float(entry) for entry in entries)
    assert low.y == tuple(entry.interval[0] for entry in entries)
    assert high.y == tuple(entry.interval[1] for entry in entries)
    assert low.fill == "tonexty"
    widths = np.subtract(high.y, low.y)
    assert (np.diff(widths) < 0).all()
    assert answer.plot(history=True).layout.xaxis.ticktext == ("1<br>mu 0.1", "2<br>mu 0.2", "3<br>mu 0.5")
    value, interval = number_with_interval(float(entries[1]), *entries[1].interval)
    assert f"estimate {value}<br>95% noise interval {interval}" in estimate.hovertext[1]
    assert f"cost {entries[1].cost.words}" in estimate.hovertext[1]


def test_groups_fan_out_in_panels_and_say_which_look_they_were_in(frame: Any) -> None:
    means = frame.groupby("side")["x"].mean().release(mu=0.3).refine(mu=0.6, groups=["south"])
    figure = means.plot(history=True)
    assert [note.text for note in figure.layout.annotations] == ["north", "south"]
    north, south = (trace for trace in figure.data if trace.name == "estimate")
    assert north.marker.size[1] < north.marker.size[0] == south.marker.size[1]
    assert "not in this observation" in north.hovertext[1]
    assert "not in this observation" not in south.hovertext[1]
    assert "small marks: not in that observation, whose mu" in title(figure)


def test_of_many_groups_the_first_eight_fan_out(frame: Any) -> None:
    figure = frame.groupby("town").count().release(mu=0.3).refine(mu=0.6).plot(history=True)
    assert len([trace for trace in figure.data if trace.name == "estimate"]) == 8
    assert "the first 8 of 12" in title(figure)


def test_an_unknown_look_is_an_open_mark(frame: Any) -> None:
    first, second = frame["y"].mean().release(mu=0.3).refine(mu=0.6).history
    nothing = IntervalArrays.of(*(np.array([x]) for x in (math.nan, 0.0, math.inf, math.nan)))
    figure = fan(History((replace(first, arrays=nothing), second)))
    estimate, unknown, endless = figure.data[2:]
    assert estimate.y == (None, float(second))
    assert unknown.marker.symbol == "circle-open"
    assert (unknown.y[0] is None, unknown.y[1] is None) == (False, True)
    assert (endless.marker.symbol, endless.y) == ("triangle-up", (figure.layout.yaxis.range[1], None))
    assert "open marks are unknown" in title(figure)
    assert style.UNBOUNDED in title(figure)


def test_what_was_computed_has_no_fan(frame: Any) -> None:
    counts = frame.groupby("plan").count().release(mu=0.5)
    with pytest.raises(RequestError, match="history: belongs to a released answer"):
        (counts * 2).plot(history=True)
    with pytest.raises(RequestError, match="True or False"):
        counts.plot(history="yes")


# --- without plotly ---


def run(code: str) -> str:
    return subprocess.check_output([sys.executable, "-W", "error", "-c", code], text=True)


ONE = """
import sys
sys.modules["rfc3987_syntax"] = None  # as in conftest.py: a second for a grammar that nothing here needs
import numpy as np
import dpnb
from dpnb.results.estimates import IntervalArrays
from dpnb.results.tables.table import Estimates
one = np.ones((1, 1))
arrays = IntervalArrays(one, one, one, one)
figures = Estimates(description="w", names=(), keys=((),), outputs=None, arrays=arrays, confidence=0.95)
"""

BOTH = "print(plot)\nprint('shown:')\nimport webbrowser\nwebbrowser.open = webbrowser.get = None\nplot.show()"


def test_the_first_picture_loads_plotly_and_is_shown_as_text_where_there_is_no_front_end() -> None:
    """Before it, a repr is text of our own."""
    loaded = "print('plotly' in sys.modules)"
    printed = run(f"{ONE}\nrepr(figures)\n{loaded}\nplot = figures.plot()\n{loaded}\n{BOTH}")
    before, after, text = printed.split("\n", 2)
    assert (before, after) == ("False", "True")
    plot, shown = text.split("shown:\n")
    assert plot.startswith("w\n")
    assert shown == plot


def test_without_plotly_a_figure_is_text_that_names_the_remedy_and_show_prints_it() -> None:
    told = run(f"import sys\nsys.modules['plotly'] = None\n{ONE}\nplot = figures.plot()\n{BOTH}\n"
               "try:\n    plot.data\nexcept AttributeError as error:\n    print('refused:', error)")  # fmt: skip
    text, refusal = told.split("refused: .data of this plot: ")
    plot, shown = text.split("shown:\n")
    assert plot.startswith("w\n")
    assert shown == plot
    assert 'pip install "dpnb[lab]"' in plot
    assert 'pip install "dpnb[lab]"' in refusal


def test_another_missing_module_is_not_taken_for_plotly(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpnb.notebook.plots import answers

    def broken(figures: Estimates) -> Any:
        raise ModuleNotFoundError("no module", name="something_else")

    monkeypatch.setattr(answers, "draw", broken)
    with pytest.raises(ModuleNotFoundError, match="no module"):
        by_hand([(1, 0, 2)]).plot()


def test_answers_alone_cannot_draw_and_say_what_to_install() -> None:
    with pytest.raises(DpnbError, match=r'pip install "dpnb\[lab\]"'):
        to_picture.dispatch(object)(by_hand([(1, 0, 2)]), False)
