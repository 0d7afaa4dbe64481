"""A target without a name, and an unknown name, are refused with a line to copy."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

import pytest

import dpnb
from dpnb.errors import RequestError
from dpnb.query.batch import Batch
from dpnb.query.largest_groups import LargestGroups
from dpnb.query.newton import NewtonRegression
from dpnb.query.query import Query
from dpnb.results.answer import Answer


@pytest.fixture(scope="module")
def session() -> dpnb.Session:
    return dpnb.Session.rehearse(
        name="wages",
        budget=dpnb.Budget(epsilon=1, delta=1e-6),
        schema={"wage": dpnb.Bounded(0, 100), "union": dpnb.Categories(["yes", "no"])},
    )


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "release, unnamed": (lambda df: df.count().release(0.05), ".release(share=0.05) for 5% of what is left"),
    "all of it": (lambda df: df.count().release(1), ".release(share=0.05)"),
    "not a number": (lambda df: df.count().release("0.1"), ".release(share=0.05)"),
    "preview, unnamed": (lambda df: df.count().preview(0.1), ".preview(share=0.1)"),
    "refine, unnamed": (lambda df: df.count().release(mu=0.1).refine(0.3), ".refine(share=0.3)"),
    "population, unnamed": (lambda df: df.count().release(mu=0.1).population(0.3), ".population(share=0.3)"),
    "unknown name": (lambda df: df.count().release(budget=0.1), ".release(share=0.1)"),
    "misspelt name": (
        lambda df: df.count().release(epsilom=0.1),
        "did you mean epsilon=?; write for example .release(epsi",
    ),
    "misspelt option": (lambda df: df.count().release(share=0.1, grops=["a"]), "did you mean groups=?"),
    "no target": (lambda df: df.count().release(), ".release(share=0.05)"),
    "no target of refine": (lambda df: df.count().release(mu=0.1).refine(), ".refine(share=0.05)"),
    "two targets": (lambda df: df.count().release(mu=0.1, share=0.2), ".release(share=0.05)"),
    "largest groups": (lambda df: df["union"].value_counts().top(1).release(0.1), ".release(epsilon=0.1)"),
    "unknown name of a selection": (
        lambda df: df["union"].value_counts().idxmax().release(budget=0.1),
        ".release(epsilon=0.1)",
    ),
    "logistic": (
        lambda df: df.regress(df["wage"] > 5, on="wage", family="logistic").release(0.1),
        ".release(share=0.1)",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_the_refusal_has_a_line_to_copy(session: dpnb.Session, case: str) -> None:
    call, line = WRONG[case]
    with pytest.raises(RequestError, match=re.escape(line)):
        call(session.frame)


def test_a_batch_has_the_line_too(session: dpnb.Session) -> None:
    queries = [session.frame.count()]
    with pytest.raises(RequestError, match=re.escape(".plan(..., share=0.1)")):
        session.plan(queries, 0.1)  # type: ignore[call-arg, misc]
    with pytest.raises(RequestError, match=re.escape(".release(share=0.1)")):
        session.plan(queries).release(0.1)  # type: ignore[call-arg, misc]


def test_the_signatures_that_help_shows_name_the_arguments() -> None:
    methods = [Answer.refine, *(one.release for one in (Query, Batch, NewtonRegression, LargestGroups))]
    for method in methods:
        assert "epsilon: 'Number | None' = None" in str(inspect.signature(method))
