"""A query that is used as a number or a table is refused with one sentence, which shows the release."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb._plan.unreleased import Unreleased
from dpnb.errors import DpnbError, NotReleasedError, UnsupportedError
from dpnb.query.query import Query
from dpnb.results.tables.operators import Operators
from dpnb.results.tables.pandas_methods import PandasMethods

SENTENCE = (
    "mean of wage: this is a query, not a number; .release(...) answers it, for example .release(share=0.01){method}"
)


@pytest.fixture(scope="module")
def session() -> dpnb.Session:
    return dpnb.Session.rehearse(
        name="wages",
        budget=dpnb.Budget(epsilon=1, delta=1e-6),
        schema={"wage": dpnb.Bounded(0, 100), "union": dpnb.Categories(["yes", "no"])},
    )


@pytest.fixture(scope="module")
def query(session: dpnb.Session) -> Any:
    return session.frame["wage"].mean()


USES: dict[str, Callable[[Any], Any]] = {
    "times": lambda q: q * 2,
    "of numpy": lambda q: np.float64(2) * q,
    "of an array": lambda q: np.array([1.0, 2.0]) + q,
    "of a Series": lambda q: pd.Series([1.0, 2.0]) - q,
    "a Series above": lambda q: pd.Series([1.0, 2.0]) > q,
    "remainder": lambda q: q % 2,
    "negative": lambda q: -q,
    "and": lambda q: q & True,
    "sum": lambda q: sum([q, q]),
    "max": lambda q: max(q, 1),
    "ufunc": np.sqrt,
    "array": np.asarray,
    "math": math.sqrt,
    "above": lambda q: q > 1,
    "below, reflected": lambda q: 1 < q,  # noqa: SIM300
    "equal": lambda q: q == 1,
    "not equal": lambda q: q != 1,
    "in a list": lambda q: 1 in [q],
    "float": float,
    "int": int,
    "round": lambda q: round(q, 2),
    "floor": math.floor,
    "range": range,
    "format": lambda q: f"{q:.2f}",
    "percent format": lambda q: "%.2f" % q,  # noqa: UP031  (what analysts type)
    "bool": bool,
    "if": lambda q: "yes" if q else "no",
    "list": list,
    "unpacking": lambda q: [*q],
    "len": len,
    "index": lambda q: q[0],
    "in": lambda q: 1 in q,
}

METHODS = {
    "head": ".head()",
    "to_csv": ".to_csv()",
    "proportions": ".proportions()",
    "to_pandas": ".to_pandas()",
    "estimate": ".estimate",
    "interval": ".interval",
    "refine": ".refine()",
    "value": "",
    "to_numpy": "",
    "iloc": "",
}


@pytest.mark.parametrize("use", USES)
def test_a_use_as_a_number_is_refused_with_the_sentence(query: Any, use: str) -> None:
    with pytest.raises(NotReleasedError) as refused:
        USES[use](query)
    assert str(refused.value) == SENTENCE.format(method="")


@pytest.mark.parametrize("method", METHODS)
def test_a_method_of_an_answer_is_refused_with_the_sentence(query: Any, method: str) -> None:
    with pytest.raises(NotReleasedError) as refused:
        getattr(query, method)
    assert str(refused.value) == SENTENCE.format(method=METHODS[method])
    assert not hasattr(query, method)


COLUMNS: dict[str, Callable[[Any, Any], Any]] = {
    "minus": lambda x, q: x - q,
    "minus, reflected": lambda x, q: q - x,
    "above": lambda x, q: x > q,
    "clip": lambda x, q: x.clip(0, q),
    "between": lambda x, q: x.between(0, q),
    "fillna": lambda x, q: x.fillna(q),
    "isin": lambda x, q: x.isin([1, q]),
    "where": lambda x, q: x.where(x > 1, q),
    "power": lambda x, q: x**q,
    "ufunc": np.subtract,
}


@pytest.mark.parametrize("use", COLUMNS)
def test_a_query_in_an_expression_of_columns_is_refused_with_the_sentence(
    session: dpnb.Session, query: Any, use: str
) -> None:
    with pytest.raises(NotReleasedError) as refused:
        COLUMNS[use](session.frame["wage"], query)
    assert str(refused.value) == SENTENCE.format(method="")


def test_no_use_as_a_number_releases_anything() -> None:
    schema = {"wage": dpnb.Bounded(0, 100)}
    table = pd.DataFrame({"wage": [1.0]})
    session = dpnb.Session(table, name="w", budget=dpnb.Budget.gdp(1), schema=schema, ledger=":memory:")
    query = session.frame["wage"].mean()
    for use in USES.values():
        with pytest.raises(NotReleasedError):
            use(query)
    for method in METHODS:
        with pytest.raises(NotReleasedError):
            getattr(query, method)
    assert session.spent.mu == 0
    query.release(mu=0.1)
    assert session.spent.mu > 0  # the control: a release is charged


@pytest.mark.parametrize("use", USES)
def test_a_preview_is_not_a_number_either(query: Any, use: str) -> None:
    """It is compared as a value, so it may be in a list."""
    if use in ("equal", "not equal", "in a list"):
        return
    with pytest.raises(NotReleasedError, match=r"^mean of wage: this is a preview, not a number; \.release\(\.\.\.\)"):
        USES[use](query.preview(mu=0.1))
    several = query.preview(mu=[0.1, 0.2])
    if use not in ("bool", "if", "list", "unpacking", "len", "index", "in"):
        with pytest.raises(NotReleasedError, match="this is a preview"):
            USES[use](several)


def test_several_previews_are_a_sequence(query: Any) -> None:
    previews = query.preview(mu=[0.1, 0.2])
    assert (len(previews), [one.request for one in previews]) == (2, [one.request for one in previews.previews])
    assert previews[0] in list(previews)
    assert previews


def test_a_query_can_be_shown_and_kept_in_a_collection(session: dpnb.Session, query: Any) -> None:
    other = session.frame["wage"].sum()
    assert f"{query}" == str(query) == repr(query)
    assert (query == query, query == None) == (True, False)  # noqa: E711
    assert (query in [query, other], {query: 1, other: 2}[query], len({query, other})) == (True, 1, 2)


@pytest.mark.parametrize("use", [lambda q, r: q == r, lambda q, r: q != r, lambda q, r: r in [q]])
def test_two_queries_are_not_compared_before_their_release(
    session: dpnb.Session, query: Any, use: Callable[[Any, Any], Any]
) -> None:
    """``False`` would be read as a statement about their numbers, also for the same question asked twice."""
    frame = session.frame
    for other in (frame["wage"].mean(), frame["wage"].sum(), session.plan([frame.count()]), query.preview(mu=0.1)):
        with pytest.raises(NotReleasedError, match=r"this is a query, not a number; \.release"):
            use(query, other)


@pytest.mark.parametrize(("typed", "meant"), [("realease", "release"), ("explian", "explain"), ("prewiev", "preview")])
def test_a_misspelt_method_is_named(query: Any, typed: str, meant: str) -> None:
    with pytest.raises(NotReleasedError, match=rf"^\.{typed} of mean of wage: .* did you mean \.{meant}\?$"):
        getattr(query, typed)


def test_what_a_debugger_shows_of_an_unfinished_query_does_not_recurse_endlessly() -> None:
    unfinished = Query.__new__(Query)
    for name in ("plan", "description", "_repr_html_of_something", "__deepcopy_of_something__"):
        with pytest.raises(AttributeError):
            getattr(unfinished, name)
    assert "repr failed" in repr(unfinished)
    with pytest.raises(TypeError, match="cannot be copied"):
        copy.copy(unfinished)


def test_the_refusal_is_an_attribute_error_but_not_one_of_rows() -> None:
    """`UnsupportedError` explains that an operation would show rows, which is not the reason here."""
    assert issubclass(NotReleasedError, DpnbError)
    assert issubclass(NotReleasedError, AttributeError)
    assert not issubclass(NotReleasedError, UnsupportedError)


def test_every_operator_of_python_and_numpy_is_covered() -> None:
    """Those of a float, a Series and an answer, which an analyst expects of a query."""
    ordinary = {name for name in dir(Query) if name.startswith("__")}
    members = [item for kind in (float, complex, Operators, PandasMethods) for item in vars(kind).items()]
    special = {name for name, member in members if name.startswith("__") and callable(member)}
    special -= {"__new__", "__getnewargs__", "__getformat__", "__from_number__"}
    assert sorted(special - ordinary) == []
    assert {name for name in dir(list) if name.startswith("__")} - ordinary == {
        "__iadd__",
        "__imul__",
        "__class_getitem__",
    }
    assert issubclass(Query, Unreleased)
