"""Conditions that leave out rows with missing values are found where pandas would keep them, and only there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dpnb
from dpnb._backends.memory.expressions import NumpyEvaluator
from dpnb._backends.memory.prepare.prepared_table import prepare
from dpnb._compile.missing import left_out, left_out_of_values
from dpnb._plan.expressions.nodes import (
    And,
    AsNumber,
    Column,
    Compare,
    Expression,
    FillNull,
    IsIn,
    IsNull,
    Literal,
    Not,
    Or,
)
from dpnb._plan.measurements import Count, Mean
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.frame import Frame
from dpnb.notebook.picker_state import make_state
from dpnb.query.query import Query
from dpnb.schema import Bounded, Schema

SCHEMA: Schema = {"h": Bounded(0, 3, integer=True), "k": Bounded(0, 3, integer=True)}
ROWS = pd.DataFrame([(h, k) for h in (0, 1, 2, np.nan) for k in (0, 1, 2, np.nan)], columns=["h", "k"])
EVERY = NumpyEvaluator(prepare(ROWS, SCHEMA, PrivacyUnit()), SCHEMA)

COLUMNS = st.sampled_from([Column("h"), Column("k")])
VALUES = st.integers(0, 2)
SIGNS = st.sampled_from(["==", "!=", "<"])
CONDITIONS: st.SearchStrategy[Expression] = st.recursive(
    st.one_of(
        st.builds(lambda sign, of, to: Compare(sign, of, Literal(to)), SIGNS, COLUMNS, VALUES),
        st.builds(lambda of, to: Compare("!=", FillNull(of, 1), Literal(to)), COLUMNS, VALUES),
        st.builds(lambda of, one, two: IsIn(of, (one, two)), COLUMNS, VALUES, VALUES),
        st.builds(IsNull, COLUMNS),
    ),
    lambda inner: st.one_of(st.builds(And, inner, inner), st.builds(Or, inner, inner), st.builds(Not, inner)),
    max_leaves=5,
)  # fmt: skip


def in_pandas(node: Expression, table: pd.DataFrame) -> Any:
    match node:
        case Column(name):
            return table[name]
        case FillNull(inner, value):
            return in_pandas(inner, table).fillna(value)
        case Compare(sign, left, Literal(value)):
            compared = in_pandas(left, table)
            return {"==": compared == value, "!=": compared != value, "<": compared < value}[sign]
        case IsIn(inner, values):
            return in_pandas(inner, table).isin(values)
        case IsNull(inner):
            return in_pandas(inner, table).isna()
        case And(left, right):
            return in_pandas(left, table) & in_pandas(right, table)
        case Or(left, right):
            return in_pandas(left, table) | in_pandas(right, table)
        case Not(inner):
            return ~in_pandas(inner, table)
    raise TypeError(node)


@pytest.mark.parametrize(
    ("typed", "means"),
    [
        (lambda f: (f["h"] > 1) == False, lambda f: ~(f["h"] > 1)),  # noqa: E712
        (lambda f: (f["h"] > 1) != True, lambda f: ~(f["h"] > 1)),  # noqa: E712
        (lambda f: f["h"].isin([1]) == True, lambda f: f["h"].isin([1])),  # noqa: E712
        (lambda f: (f["h"] > 1).astype(int) == 0, lambda f: ~(f["h"] > 1)),
        (lambda f: (f["h"] > 1).astype(int) >= 1, lambda f: f["h"] > 1),
    ],
)
def test_a_condition_that_is_compared_with_a_constant_is_itself_or_its_negation(
    typed: Callable[[Any], Any], means: Callable[[Any], Any], frame: Frame
) -> None:
    assert frame[typed(frame)].count().plan == frame[means(frame)].count().plan


@given(CONDITIONS)
def test_where_nothing_is_found_the_rows_are_those_of_pandas(condition: Expression) -> None:
    kept = in_pandas(condition, ROWS).to_numpy()
    counted = np.asarray(EVERY.holds(condition))
    assert not (counted & ~kept).any()  # what counts here is kept by pandas
    if not left_out(Plan(Count(), where=condition), ()):
        assert np.array_equal(counted, kept)


@given(CONDITIONS)
def test_what_is_said_restores_the_rows_of_pandas(condition: Expression) -> None:
    found = left_out(Plan(Count(), where=condition), ())

    def restored(node: Expression, negated: bool) -> Expression:
        """The condition with negations at its leaves, and every condition that was found as it says."""
        if isinstance(node, Not):
            return restored(node.inner, not negated)
        if isinstance(node, And | Or):
            kind = And if isinstance(node, And) != negated else Or
            return kind(restored(node.left, negated), restored(node.right, negated))
        leaf: Expression = Not(node) if negated else node
        for term in found.get(leaf, []):
            leaf = Or(leaf, IsNull(term))
        return leaf

    counted = np.asarray(EVERY.holds(restored(condition, False)))
    assert np.array_equal(counted, in_pandas(condition, ROWS).to_numpy())


def test_a_search_that_asked_only_for_unequal_would_miss_a_negation() -> None:
    negated = Not(Compare("==", Column("h"), Literal(1)))
    assert list(left_out(Plan(Count(), where=negated), ())) == [negated]
    assert not np.array_equal(np.asarray(EVERY.holds(negated)), in_pandas(negated, ROWS).to_numpy())


SAID: dict[str, tuple[Callable[[Frame], Query], list[str]]] = {
    "unequal": (lambda f: f[f["h"] != 99].count(), ["df['h'] != 99"]),
    "not": (lambda f: f[~(f["h"] < 99)].count(), ["~(df['h'] < 99)"]),
    "not in": (lambda f: f.query("h not in [1, 2]").count(), ["~(df['h'].isin([1, 2]))"]),
    "a share": (lambda f: (f["h"] != 99).mean(), ["df['h'] != 99"]),
    "another column": (lambda f: f[f["h"] != 99]["k"].mean(), ["df['h'] != 99"]),
    "groups": (lambda f: f.groupby(f["h"] != 99).size(), ["df['h'] != 99"]),
    "two columns": (lambda f: f[f["h"] + f["k"] != 9].count(), ["df['h'] + df['k'] != 9"]),
    "where": (lambda f: f["k"].where(f["h"] != 99).mean(), ["df['h'] != 99"]),
    "looked up": (lambda f: f[f["c"].map({"a": "x"}) != "x"].count(), ["c.map"]),
    "text": (lambda f: f[~f["t"].str.contains("a")].count(), ["~(df['t'].str.contains('a'))"]),
    "each row of a person": (lambda f: f[f["h"] != 99].groupby("person")["k"].sum().mean(), ["df['h'] != 99"]),
    "several": (lambda f: f[(f["h"] != 1) & (f["k"] != 2)].count(), ["df['h'] != 1", "df['k'] != 2"]),
    "equal": (lambda f: f[f["h"] == 99].count(), []),
    "after notna": (lambda f: f[f["h"].notna() & (f["h"] != 99)].count(), []),
    "in a view without missing values": (lambda f: f.dropna()[f["h"] != 99].count(), []),
    "after fillna": (lambda f: f[f["h"].fillna(0) != 99].count(), []),
    "with isna": (lambda f: f[(f["h"] != 99) | f["h"].isna()].count(), []),
    "of the column itself": (lambda f: f[f["h"] != 99]["h"].mean(), []),
    "by the column itself": (lambda f: f[f["h"] != 99].groupby("h").size(), []),
    "not isna": (lambda f: f[~f["h"].isna()].count(), []),
    "within limits": (lambda f: f[(f["h"] != 99) & (f["h"] < 50)].count(), []),
    "not unequal": (lambda f: f[~(f["h"] != 99)].count(), []),
}


SAID_OF_VALUES: dict[str, tuple[Callable[[Frame], Query], list[str]]] = {
    "a share": (lambda f: (f["h"] > 9).mean(), ["(df['h'] > 9).fillna(False)"]),
    "by groups": (lambda f: f.assign(long=f["h"] > 9).groupby("c")["long"].mean(), ["(df['h'] > 9).fillna(False)"]),
    "groups": (lambda f: f.groupby(f["h"] > 9).size(), ["(df['h'] > 9).fillna(False)"]),
    "a list": (lambda f: f["h"].isin([1, 2]).mean(), ["df['h'].isin([1, 2]).fillna(False)"]),
    "both": (
        lambda f: ((f["h"] > 9) & (f["k"] > 2)).mean(),
        ["(df['h'] > 9).fillna(False)", "likewise in df['k'] > 2"],
    ),
    "otherwise": (lambda f: f["k"].where(f["h"] > 9, 0).mean(), ["(df['h'] > 9).fillna(False)"]),
    "a spread": (lambda f: (f["h"] > 9).std(), ["(df['h'] > 9).fillna(False)"]),
    "population": (lambda f: (f["h"] > 9).mean(population=True), ["(df['h'] > 9).fillna(False)"]),
    "a count of those that are true": (lambda f: (f["h"] > 9).sum(), []),
    "only where": (lambda f: f["k"].where(f["h"] > 9).mean(), []),
    "a filter": (lambda f: f[f["h"] > 9].count(), []),
    "after fillna": (lambda f: (f["h"].fillna(0) > 9).mean(), []),
    "as it says": (lambda f: (f["h"] > 9).fillna(False).mean(), []),
    "after notna": (lambda f: (f["h"].notna() & (f["h"] > 9)).mean(), []),
    "of rows with a value": (lambda f: (f[f["h"].notna()]["h"] > 9).mean(), []),
    "grouped by its own condition": (lambda f: f.groupby(f["h"] > 9)["h"].mean(), []),
}


@pytest.fixture(scope="module")
def frame() -> Frame:
    session = dpnb.Session.rehearse(
        name="people",
        budget=dpnb.Budget(epsilon=1, delta=1e-6),
        privacy_unit="person",
        max_rows_per_unit=3,
        schema={
            "h": dpnb.Bounded(0, 100, integer=True),
            "k": dpnb.Bounded(0, 9),
            "c": dpnb.Categories(["a", "b"]),
            "t": dpnb.Text(),
        },
    )
    return session.frame


@pytest.mark.parametrize("case", SAID)
def test_preview_and_explanation_say_it_from_the_plan(case: str, frame: Frame) -> None:
    ask, conditions = SAID[case]
    query = ask(frame)
    said = dict(query.preview(mu=0.01).left_out).get("missing values", "")
    explained = dict(query.explain().facts).get("missing values", "")
    assert explained == said
    assert bool(said) == bool(conditions)
    for condition in conditions:
        assert condition in said.replace("(df['h'] + df['k'])", "df['h'] + df['k']")


@pytest.mark.parametrize("case", SAID_OF_VALUES)
def test_where_false_counts_comparisons_say_it_too(case: str, frame: Frame) -> None:
    ask, remedies = SAID_OF_VALUES[case]
    query = ask(frame)
    said = dict(query.preview(mu=0.01).left_out).get("missing values", "")
    assert dict(query.explain().facts).get("missing values", "") == said
    assert bool(said) == bool(remedies)
    assert all(remedy in said for remedy in remedies)


@given(CONDITIONS)
def test_a_share_of_what_is_said_has_the_values_of_pandas(condition: Expression) -> None:
    plan = Plan(Mean(AsNumber(condition)))
    negated, counted = left_out(plan, ()), left_out_of_values(plan, ())

    def restored(node: Expression, turned: bool) -> Expression:
        if isinstance(node, Not):
            return restored(node.inner, not turned)
        if isinstance(node, And | Or):
            kind = And if isinstance(node, And) != turned else Or
            return kind(restored(node.left, turned), restored(node.right, turned))
        leaf: Expression = Not(node) if turned else node
        for term in negated.get(leaf, []):
            leaf = Or(leaf, IsNull(term))
        return FillNull(leaf, False) if leaf in counted else leaf

    new = restored(condition, False)
    assert np.array_equal(np.asarray(EVERY.holds(new)), in_pandas(condition, ROWS).to_numpy())
    assert np.asarray(EVERY.holds(Or(new, Not(new)))).all()


def test_a_released_answer_says_it_in_its_caption_and_so_does_the_picker_before_and_after(frame: Frame) -> None:
    said = "rows where h is missing are not counted, unlike in pandas"
    for condition in (frame["h"] != 99, ~frame["h"].isin([1]), ~(frame["h"] > 7)):
        query = frame[condition].groupby("c").size()
        answer = query.release(mu=0.01)
        assert said in str(answer)
        assert said in answer._repr_html_()
    share = (frame["k"] > 7).mean()
    compact = make_state(share)
    assert not compact.options
    assert compact.count_step is not None
    assert "Missing values: rows where k is missing do not count" in compact.count_step.text
    assert str(share.release(mu=0.01)).count("rows where k is missing are not counted, unlike in pandas") == 1
    assert make_state(frame[frame["k"] > 7].count()).count_step is None


def test_groups_of_declared_categories_say_that_other_values_do_not_count(frame: Frame) -> None:
    said = "rows with other values of c than declared are not counted"
    for query in (
        frame.groupby("c").size(),
        frame["c"].value_counts(),
        frame.groupby(["c", frame["h"] > 3])["k"].mean(),
    ):
        assert dict(query.preview(mu=0.01).left_out)["other values"] == said
        assert dict(query.explain().facts)["other values"] == said
    assert "other values" not in dict(frame.groupby("h").size().preview(mu=0.01).left_out)


def test_the_words_have_what_restores_the_meaning_of_pandas(frame: Frame) -> None:
    said = dict(frame[~(frame["h"] == 99)].count().preview(mu=0.01).left_out)["missing values"]
    assert said == (
        "rows where h is missing do not count in ~(df['h'] == 99), unlike in pandas; write ~(df['h'] == 99) | "
        "df['h'].isna() to count them"
    )
    df = frame
    line = said.partition("write ")[2].removesuffix(" to count them")
    query = df[eval(line)].count()
    assert "missing values" not in dict(query.preview(mu=0.01).left_out)
    many = frame[(frame["h"] != 1) & (frame["h"] != 2) & (frame["h"] != 3) & (frame["h"] != 4) & (frame["h"] != 5)]
    assert dict(many.count().preview(mu=0.01).left_out)["missing values"].endswith(
        "; likewise in df['h'] != 2 and df['h'] != 3 and df['h'] != 4 and 1 more"
    )
