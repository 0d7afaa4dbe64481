"""Figures where plotly's script does not run: an SVG in exports and on code hosts, text in a terminal."""

from __future__ import annotations

import copy
import io
import json
import math
import pickle
import re
import xml.etree.ElementTree as ET
from base64 import b64decode
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dpnb.errors import RequestError
from dpnb.notebook.plots import text as text_plots
from dpnb.notebook.plots.figure import SVG
from dpnb.notebook.plots.style import HUES
from dpnb.notebook.plots.svg import svg_of
from dpnb.render.tables import heading_of
from tests.notebook.test_plots import ASKED, answer, by_hand, drawing, drawn, frame, table  # noqa: F401  (fixtures)

NAMESPACE = "{http://www.w3.org/2000/svg}"


def picture(figure: Any) -> ET.Element:
    return ET.fromstring(svg_of(figure))


def words(element: ET.Element) -> list[str]:
    return [one.text or "" for one in element.iter(f"{NAMESPACE}text")]


def numbers(element: ET.Element) -> Iterator[float]:
    for one in element.iter():
        for name in ("x", "y", "x1", "x2", "y1", "y2", "cx", "cy"):
            if name in one.attrib:
                yield float(one.attrib[name])


def test_the_output_of_a_figure_has_an_svg_and_text_beside_the_json(answer: Any, drawing: Any) -> None:  # noqa: F811
    bundle = drawing._repr_mimebundle_()
    assert SVG in bundle
    assert heading_of(answer) in bundle["text/plain"]
    assert "Figure(" not in bundle["text/plain"]


def test_the_svg_has_the_title_and_every_mark_of_the_figure(drawing: Any) -> None:  # noqa: F811
    found = picture(drawing)
    said = " ".join(words(found))
    for line in re.sub("<br>", "\n", drawing.layout.title.text).split("\n"):
        assert re.sub("<[^>]*>", "", line) in said
    whiskers = [one for one in found.iter(f"{NAMESPACE}line") if one.attrib["stroke"] in HUES]
    assert len(whiskers) >= 3 * len(list(drawn(drawing)))  # the interval and both of its ends
    assert all(math.isfinite(number) for number in numbers(found))
    height, width = float(found.attrib["height"]), float(found.attrib["width"])
    assert all(0 <= float(one.attrib["x"]) <= width for one in found.iter(f"{NAMESPACE}text"))
    assert all(0 <= float(one.attrib["y"]) <= height for one in found.iter(f"{NAMESPACE}text"))


def test_the_bars_of_the_svg_are_as_high_as_the_counts() -> None:
    found = picture(by_counts([3, 6, 12]))
    heights = [float(one.attrib["height"]) for one in found.iter(f"{NAMESPACE}rect")]
    assert heights[1] / heights[0] == pytest.approx(2, abs=0.02)
    assert heights[2] / heights[0] == pytest.approx(4, abs=0.02)


def by_counts(counts: list[int]) -> Any:
    import plotly.graph_objects as go

    bars = go.Bar(x=list(map(str, counts)), y=counts, marker={"line": {"color": "#0072b2"}})
    axes = {"xaxis": {"type": "category"}, "yaxis": {"range": [0, 12], "tickformat": ",.0f", "dtick": 4}}
    return go.Figure([bars], {**axes, "height": 300, "margin": {"t": 50, "b": 50}})


def test_texts_of_the_svg_are_escaped() -> None:
    label = '<script>&"x"'
    figure = by_hand([(1, 0, 2), (2, 1, 3)], [label, "b"]).plot()
    assert label in words(picture(figure))


def test_unknown_numbers_and_unbounded_intervals_are_drawn() -> None:
    figure = by_hand([(1, 0, 2), (math.nan, 0, 4), (3, -math.inf, 5), (math.nan, -math.inf, math.inf)]).plot()
    assert all(math.isfinite(number) for number in numbers(picture(figure)))
    lines = repr(figure).splitlines()
    assert "?" in lines[2]
    assert "<" in lines[3]
    assert "<" in lines[4]
    assert ">" in lines[4]
    picture(by_hand([(math.nan, -math.inf, math.inf)]).plot())


def test_the_history_is_drawn_too(frame: Any) -> None:  # noqa: F811
    first = frame["x"].mean().release(mu=0.05)
    figure = first.refine(mu=0.1).plot(history=True)
    assert len(list(picture(figure).iter(f"{NAMESPACE}polygon"))) == 1  # the area between the ends
    assert re.search(r"^  1  mu 0.05 .*\n  2  mu 0.1 ", repr(figure), re.MULTILINE)


CHANGES: dict[str, Callable[[Any], Any]] = {
    "a pie": lambda figure: figure.add_pie(values=[1, 2]),
    "a scale": lambda figure: figure.update_yaxes(type="log"),
    "a range": lambda figure: figure.update_xaxes(range=[0, 100]),
    "a line": lambda figure: figure.add_hline(y=200),
    "a note": lambda figure: figure.add_annotation(text="peak", x=1, y=450),
    "a note at a name": lambda figure: figure.add_annotation(text="peak", x="free", y=450),
    "a note without a place": lambda figure: figure.add_annotation(text="peak"),
    "points": lambda figure: figure.add_scatter(x=[450, 460], y=["a", "b"], mode="markers"),
    "points with a name": lambda figure: figure.add_scatter(x=[450, 460], y=["a", "b"], name="mine"),
    "bars": lambda figure: figure.add_bar(x=[450, 460], y=["a", "b"], orientation="h", name="mine"),
    "bars without names": lambda figure: figure.add_bar(y=[2, 3]),
    "margins": lambda figure: figure.update_layout(margin=None),
    "numbers": lambda figure: figure.data[0].update(y=[1, 2, 3]),
    "no traces": lambda figure: figure.update(data=[], overwrite=True),
    "no meta": lambda figure: figure.update_layout(meta=None),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_figure_that_its_user_has_changed_has_no_svg(change: str, frame: Any) -> None:  # noqa: F811
    figure = ASKED["counts"](frame).release(mu=0.5).plot()
    CHANGES[change](figure)
    for one in (figure, copy.deepcopy(figure)):
        assert SVG not in one._repr_mimebundle_()


def test_a_figure_is_saved_as_the_svg_without_kaleido(
    answer: Any,  # noqa: F811
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("dpnb.notebook.plots.figure.find_spec", lambda name: None)
    figure, file, stream = answer.plot(title="mine"), tmp_path / "figure.SVG", io.BytesIO()
    figure.write_image(str(file))
    figure.write_image(stream, format="svg")
    assert file.read_text(encoding="utf-8") == stream.getvalue().decode() == svg_of(figure)
    refused = [lambda: figure.write_image("figure.png"), lambda: figure.write_image(file, scale=2)]
    for written in (*refused, lambda: figure.update_traces(opacity=0.5).write_image(file)):
        with pytest.raises(
            RequestError, match=r"write_image\('figure.svg'\), or .write_html\('figure.html'\).*kaleido"
        ):
            written()
    for one in (answer, figure):
        with pytest.raises(AttributeError, match=r"write_image\('figure.svg'\)"):
            one.savefig("figure.png")
    assert not hasattr(figure, "unknown")


@pytest.mark.parametrize("height", [10, 400, 2000, None])
def test_the_svg_of_a_figure_has_its_users_title_and_height(height: int | None, frame: Any) -> None:  # noqa: F811
    figure = ASKED["counts"](frame).release(mu=0.5).plot().update_layout(title="mine", height=height, width=300)
    found = ET.fromstring(figure._repr_mimebundle_()[SVG])
    assert words(found)[0] == "mine"
    assert float(found.attrib["height"]) >= (height or 450)
    assert all(float(one.attrib["height"]) > 0 for one in found.iter(f"{NAMESPACE}rect"))


def test_a_copy_of_a_figure_keeps_its_text_and_its_svg(drawing: Any) -> None:  # noqa: F811
    expected = drawing._repr_mimebundle_()
    for one in (copy.deepcopy(drawing), pickle.loads(pickle.dumps(drawing))):
        assert (repr(one), one._repr_mimebundle_()[SVG]) == (repr(drawing), expected[SVG])


def test_text_marks_are_where_the_numbers_are() -> None:
    lines = text_plots.text_plot(by_hand([(0, 0, 0), (5, 2, 8), (10, 10, 10)])).splitlines()
    middle = lines[2].rindex("o")
    assert lines[1].rindex("o") < middle < lines[3].rindex("o")
    assert middle * 2 == pytest.approx(lines[1].rindex("o") + lines[3].rindex("o"), abs=2)
    assert re.search(r"\|-+o-+\|", lines[2])


def test_many_numbers_are_cut_off_in_text_and_counted() -> None:
    shown = text_plots.text_plot(by_hand([(1, 0, 2)] * 130, list(range(130))))
    assert "the first 100 of 130 numbers" in shown
    assert len(shown.splitlines()) < 105


def test_an_export_of_a_notebook_shows_the_svg(frame: Any) -> None:  # noqa: F811
    nbconvert = pytest.importorskip("nbconvert")
    nbformat = pytest.importorskip("nbformat")
    bundle = ASKED["counts"](frame).release(mu=0.5).plot()._repr_mimebundle_()
    output = nbformat.v4.new_output(
        "display_data", json.loads(json.dumps({**bundle, "application/vnd.plotly.v1+json": {}}))
    )
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell("x", outputs=[output])])
    html, _ = nbconvert.HTMLExporter(template_name="basic").from_notebook_node(notebook)
    embedded = re.findall(r"data:image/svg\+xml;base64,([^\"]+)", html)
    assert [b64decode(one).decode() for one in embedded] == [bundle[SVG]]


def test_a_figure_is_one_of_plotly() -> None:
    import plotly.graph_objects as go

    assert isinstance(by_hand([(1, 0, 2)]).plot(), go.Figure)
