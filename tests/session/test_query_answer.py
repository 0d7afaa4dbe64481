"""``query.answer``: the answer of a query by a name, however it was released."""

from __future__ import annotations

from typing import Any

import pytest

import dpnb
from dpnb.errors import NotReleasedError, RequestError


@pytest.fixture
def frame() -> Any:
    return dpnb.Session.rehearse(name="q", budget=dpnb.Budget.gdp(9), schema={"age": dpnb.Bounded(0, 99)}).frame


def test_the_answer_is_the_best_one_and_free(frame: Any) -> None:
    query = frame["age"].mean()
    query.release(mu=0.1)
    query.release(mu=0.3)
    spent = query.runner.account.filter.headroom
    assert query.answer.interval == query.best.interval
    assert query.answer.n_observations == 2
    assert query.runner.account.filter.headroom == spent


def test_before_the_release_the_release_is_named(frame: Any) -> None:
    with pytest.raises(
        RequestError, match=r"^\.answer of count of rows: nothing was released yet; .*\.release\(share="
    ):
        _ = frame.count().answer


def test_a_two_way_query_has_a_two_way_answer() -> None:
    schema: dict[str, Any] = {"a": dpnb.Categories(["x", "y"]), "b": dpnb.Categories(["u", "v"])}
    frame = dpnb.Session.rehearse(name="q", budget=dpnb.Budget.gdp(9), schema=schema).frame
    query = frame.groupby(["a", "b"]).count().unstack()
    query.release(mu=0.1)
    assert query.answer.is_two_way


def test_after_the_release_a_query_is_drawn(frame: Any) -> None:
    """As after a release by the picker's button, of which the analyst has the query alone."""
    query = frame["age"].hist(bins=5)
    assert query.plot().description.endswith(", then .plot()")  # drawn when it is released
    query.release(mu=0.1)
    assert repr(frame["age"].hist(bins=5).plot()) == repr(query.answer.plot())
    assert repr(query.sort_values().plot()) == repr(query.sort_values().answer.plot())


def test_after_the_release_the_answer_is_named(frame: Any) -> None:
    query = frame["age"].mean()
    query.release(mu=0.1)
    with pytest.raises(NotReleasedError, match=r"it was released: \.answer is its answer, .* \.answer\.item\(\)$"):
        query.item()
