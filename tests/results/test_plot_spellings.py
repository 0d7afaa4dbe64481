"""``answer.plot`` under the names of pandas: the figure of the answer, or a refusal that names it."""

from __future__ import annotations

from typing import Any

import pytest

import dpnb
from dpnb.errors import AnswerAttributeError, RequestError

pytest.importorskip("plotly")


@pytest.fixture(scope="module")
def answer() -> Any:
    session = dpnb.Session.rehearse(
        name="t", budget=dpnb.Budget(epsilon=10, delta=1e-6), schema={"g": dpnb.Categories(["a", "b"])}
    )
    return session.frame["g"].value_counts().release(mu=1)


@pytest.mark.parametrize("kind", ["bar", "barh", "hist"])
def test_a_kind_of_pandas_is_the_figure_of_the_answer(answer: Any, kind: str) -> None:
    figure = answer.plot().to_json()
    assert getattr(answer.plot, kind)().to_json() == figure
    assert answer.plot(kind=kind).to_json() == figure
    assert getattr(answer.sort_values().plot, kind)().to_json() != figure


def test_another_kind_is_refused_with_what_draws_it(answer: Any) -> None:
    for use in (lambda: answer.plot.pie(), lambda: answer.plot(kind="pie")):
        with pytest.raises(AnswerAttributeError, match=r"use \.plot\(\).*\.to_pandas\(\)\['estimate'\]\.plot\.pie\(\)"):
            use()


def test_an_unknown_argument_is_refused(answer: Any) -> None:
    with pytest.raises(RequestError, match="has no argument 'histroy'; use history= or title="):
        answer.plot(histroy=True)


def test_the_title_is_drawn_and_what_is_not_drawn_is_refused_by_name(answer: Any) -> None:
    for draw in (answer.plot, answer.plot.bar, answer.plot.line, lambda title: answer.plot(history=True, title=title)):
        figure = draw(title="Wages & pay")
        assert "<b>Wages &amp; pay</b>" in figure.layout.title.text
        assert "by g" not in figure.layout.title.text
        assert "Wages & pay" in repr(figure)
    for drawing in ({"color": "red"}, {"figsize": (3, 2)}):
        with pytest.raises(RequestError, match=f"has no argument '{next(iter(drawing))}'"):
            answer.plot.bar(title="Wages", **drawing)
    with pytest.raises(RequestError, match="title: must be a text"):
        answer.plot(title=3)


def test_the_figure_says_where_it_is_not_of_the_kind_of_pandas(answer: Any) -> None:
    session = dpnb.Session.rehearse(
        name="v",
        budget=dpnb.Budget(epsilon=10, delta=1e-6),
        schema={"x": dpnb.Bounded(0, 1), "g": dpnb.Categories(["a", "b"])},
    )
    means = session.frame.groupby("g")["x"].mean().release(mu=1)
    for figure, note in [
        (means.plot.bar(), "points instead of bars"),
        (answer.plot.line(), "not a line"),
    ]:
        assert note in figure.layout.title.text
        assert note in repr(figure)
    assert "instead" not in means.plot().layout.title.text
    assert "instead" not in answer.plot.bar().layout.title.text


def test_a_query_is_drawn_when_it_is_released() -> None:
    session = dpnb.Session.rehearse(
        name="u", budget=dpnb.Budget(epsilon=1, delta=1e-6), schema={"g": dpnb.Categories(["a", "b"])}
    )
    query = session.frame["g"].value_counts()
    drawn = query.plot.bar(title="Groups")
    assert drawn.description.endswith("then .plot(title='Groups', kind='bar')")
    assert session.headroom == 1
    figure = drawn.release(mu=0.1)
    assert query.plot().to_plotly_json()["data"] == figure.to_plotly_json()["data"]  # it was released
    assert "Groups" in figure.layout.title.text
    assert figure.to_plotly_json()["data"] == query.answer.plot.bar().to_plotly_json()["data"]
    left = session.headroom
    for refused in (lambda: query.plot.box(), lambda: query.plot(color="red"), lambda: query.plot.bar(kind="pie")):
        with pytest.raises((RequestError, AnswerAttributeError, TypeError)):
            refused()
    assert session.headroom == left
