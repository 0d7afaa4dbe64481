"""What is said before a charge, and what an answer in rows of rank says: from public figures alone."""

from __future__ import annotations

import copy
import re
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpnb
from dpnb.errors import BudgetExceeded, ErrorEstimateUnavailable, RefinementWarning, RequestError
from dpnb.notebook.picker_state import make_state
from dpnb.results.preview import Preview, Previews

pytestmark = pytest.mark.filterwarnings("error::dpnb.errors.RefinementWarning")

BUDGET = dpnb.Budget(epsilon=2, delta=1e-6)
ROWS = 4360
TABLE = pd.DataFrame({"los": np.arange(ROWS) % 50 + 1, "g": np.arange(ROWS) % 3})
SCHEMA = {"los": dpnb.Bounded(0, 60, integer=True), "g": dpnb.Categories([0, 1, 2])}


def opened(budget: Any = BUDGET, **options: Any) -> dpnb.Session:
    return dpnb.Session(
        TABLE, name="stays", budget=budget, schema=SCHEMA, ledger=":memory:", not_private_test_seed=1, **options
    )


# --- refinements ------------------------------------------------------------------------------------------------------


def test_an_answer_previews_its_refinement_for_free() -> None:
    session = opened()
    query = session.frame["los"].sum()
    answer = query.release(share=0.05)
    spent = session.spent
    found = answer.preview(share=0.3)
    assert isinstance(found, Preview)
    assert re.search(r"now ± [\d,]+ -> ± [\d,]+ los", str(found))
    assert str(found) == str(query.preview(share=0.3))
    assert isinstance(answer.preview(), Previews)
    assert len(answer.preview(mu=[0.2, 0.3])) == 2
    assert session.spent == spent
    with pytest.raises(RequestError, match="copied answer has no session"):
        copy.copy(answer).preview()


def test_each_answer_of_a_batch_previews_its_refinement() -> None:
    session = opened()
    by_group, total = session.plan([session.frame.groupby("g").size(), session.frame.count()]).release(mu=0.05)
    assert "now ±" in str(total.preview(share=0.5))
    assert "now ±" in str(by_group.preview(share=0.5))


@pytest.mark.parametrize("budget", [BUDGET, None])
def test_a_refinement_without_gain_warns_before_the_charge_and_names_the_least_with_one(budget: Any) -> None:
    session = opened(budget)
    answer = session.frame["los"].sum().release(mu=0.1)
    spent = session.spent
    little = {"share": 0.001} if budget else {"mu": 0.1001}
    with pytest.raises(RefinementWarning, match="is the least that narrows the widest one by a quarter") as warned:
        answer.refine(**little)  # warnings are errors in tests
    assert session.spent == spent
    kind, least = re.findall(r"(share|mu)=([\d.]+) is the least", str(warned.value))[0]
    at_least: Any = answer.preview(**{kind: Fraction(least)})
    assert at_least.gain >= 0.25
    below: Any = answer.preview(**{kind: Fraction(least) * Fraction(9, 10)})
    assert below.gain < 0.25
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RefinementWarning)
        answer.refine(**little)
    assert session.spent != spent
    answer.refine(**{kind: Fraction(least)})  # without a warning


def test_a_refinement_without_gain_says_where_all_that_is_left_has_none() -> None:
    session = opened()
    answer = session.frame["los"].sum().release(share=0.95)
    with pytest.raises(RefinementWarning, match="nor is all that is left; "):
        answer.refine(share=0.5)


# --- rows of rank -----------------------------------------------------------------------------------------------------


def test_an_answer_within_rows_of_rank_says_so() -> None:
    frame = opened().frame
    assert "; requested within ± 300 rows of rank;" in str(frame["los"].median().release(within=300))
    assert "requested within ± 400 rows of rank" in frame["los"].max().release(within=400)._repr_html_()
    described = frame["los"].describe().release(within={"max": 500, "count": 200})
    assert "requested max within ± 500 rows of rank" in str(described)
    assert "rank" not in str(frame["los"].sum().release(within=5000))


def test_a_refusal_of_rows_of_rank_says_so() -> None:
    frame = opened().frame
    for query, words in (
        (frame["los"].median(), "within= of a median is in rows of rank"),
        (frame["los"].max(), "within= of a maximum is in rows of rank"),
        (frame["los"].quantile([0.1, 0.9]), "within= of quantiles is in rows of rank"),
    ):
        with pytest.raises(BudgetExceeded, match=f"{words}; .* share=1, for ± [0-9,.]+ rows of rank"):
            query.release(within=1)
    with pytest.raises(BudgetExceeded) as refused:
        frame["los"].sum().release(within=1)
    assert "rank" not in str(refused.value)


def test_compact_errors_in_rank_name_their_unit() -> None:
    frame = opened().frame
    shown = str(frame["los"].describe().preview(share=0.05))
    assert len(re.findall(r"^ +(?:min|25%|50%|75%|max) +± [\d,.]+ rows of rank$", shown, re.MULTILINE)) == 5
    assert re.search(r"^ +count +± [\d,.]+$", shown, re.MULTILINE)
    option = make_state(frame.describe()).options[-1]
    assert option.errors is not None
    assert option.errors[0] == ["statistic", "expected error"]
    assert re.fullmatch(r"max ± [\d,.]+ rows of rank", " ".join(option.errors[-1]))
    answer = frame["los"].max().release(share=0.05)
    assert re.search(r"in one release: +± [\d,.]+ rows of rank at mu", str(answer.preview(share=0.3)))


def test_errors_of_a_description_are_a_table() -> None:
    schema = {"age": dpnb.Bounded(0, 99), "los": dpnb.Bounded(0, 60)}
    session = dpnb.Session.rehearse(name="stays", budget=BUDGET, schema=schema, public_size=4000)
    query = session.frame.describe()
    option = make_state(query).options[-1]
    assert option.errors is not None
    assert option.errors[0] == ["column", "count", "mean", "std", "min", "25%", "50%", "75%", "max"]
    assert [row[0] for row in option.errors[1:]] == ["age", "los"]
    assert "; min, 25%, 50%, 75%, max in rows of rank, " in option.error
    shown = str(query.preview(mu=0.1)).splitlines()
    head = next(at for at, line in enumerate(shown) if line.split() == option.errors[0])
    assert "expected error:  at 95% (noise); " in shown[head - 1]
    assert shown[head + 1].split()[0] == "age"
    assert "and 14 more" in str(query.preview(mu=[0.1, 0.2]))


def test_an_error_of_more_rows_than_there_are_is_unknown() -> None:
    session = opened()
    query = session.frame["los"].max()
    at = {"mu": "0.001"}
    assert "rows of rank" in str(query.preview(**at))  # nothing is known of the number of rows
    session.frame.count().release(mu=0.1)
    assert "unknown" in str(query.preview(**at))
    assert "rows of rank" not in str(query.preview(**at))
    assert "rows of rank" in str(query.preview(mu=0.1))
    assert re.search(r"max +unknown", str(session.frame["los"].describe().preview(**at)))
    assert "max unknown" in str(session.plan([session.frame["los"].describe()]).preview(**at))
    public = opened(public_rows=ROWS).frame["los"].median()
    assert "unknown" in str(public.preview(mu="0.0005"))


def test_a_root_of_a_negative_variance_is_not_forecast_as_exact() -> None:
    table = pd.DataFrame({"x": np.zeros(2000)})
    said = []
    for seed in range(6):
        session = dpnb.Session(
            table,
            name="t",
            budget=BUDGET,
            schema={"x": dpnb.Bounded(0, 60)},
            ledger=":memory:",
            public_size=2000,
            not_private_test_seed=seed,
        )
        query = session.frame["x"].std()
        query.release(mu=0.1)
        said.append(str(query.preview(mu=1)))
    assert not any("± 0 " in text for text in said)
    assert any("no narrower than the current noise interval" in text for text in said), "of a variance below 0"


@pytest.mark.parametrize("share", [0.02, 0.2])
def test_an_extreme_says_in_how_many_rows_more_extreme_values_may_be(share: float) -> None:
    frame = opened().frame
    for query, words, beyond in (
        (frame["los"].max(), "larger", lambda value: int((TABLE["los"] > value).sum())),
        (frame["los"].min(), "smaller", lambda value: int((TABLE["los"] < value).sum())),
    ):
        answer = query.release(share=share)
        found = re.search(rf"{words} values may exist in at most ([\d,]+) rows", str(answer))
        assert found is not None
        assert beyond(answer.item()) <= int(found[1].replace(",", ""))
    assert "may exist" not in str(frame["los"].median().release(share=share))


@pytest.mark.statistical
def test_the_bound_on_the_rows_beyond_an_extreme_holds() -> None:
    """At most alpha of the draws have more rows; 300 draws at 0.05, of which 30 would be one in 10,000."""
    missed, loose = 0, 0
    table = pd.DataFrame({"los": np.random.default_rng(0).binomial(60, 0.5, ROWS)})
    for seed in range(300):
        session = dpnb.Session(
            table,
            name="stays",
            budget=None,
            schema={"los": SCHEMA["los"]},
            ledger=":memory:",
            not_private_test_seed=seed,
        )
        answer = session.frame["los"].max().release(mu=0.1)
        found = re.search(r"in at most ([\d,]+) rows", str(answer))
        if found is not None:
            rows = int((table["los"] > answer.item()).sum())
            missed += rows > int(found[1].replace(",", ""))
            loose += rows > int(found[1].replace(",", "")) / 5  # the broken control: a fifth of the bound
    assert missed <= 30
    assert loose > 30


# --- prices and refusals ----------------------------------------------------------------------------------------------


def test_the_button_of_the_count_shows_the_error_that_it_buys() -> None:
    step = make_state(opened().frame["los"].mean()).count_step
    assert step is not None
    assert re.search(r"\(0\.97% of the budget, ± \d+ rows\)", step.label)


def test_a_refused_within_of_a_mean_shows_a_line_that_runs() -> None:
    session = opened()
    for query in (session.frame["los"].mean(), session.frame.groupby("g")["los"].mean()):
        with pytest.raises(ErrorEstimateUnavailable, match=r"as in \.release\(share=0\.05\)") as refused:
            query.release(within=1)
        (line,) = re.findall(r"session\.frame\S*\.release\([a-z]+=[\d.]+\)", str(refused.value))
        eval(line, {"session": session})  # as it is shown
        query.preview(within=1)


def test_a_refusal_has_few_digits_and_what_it_says_to_fit_does() -> None:
    session = opened()
    query = session.frame["los"].sum()
    query.release(mu="0.123")
    with pytest.raises(BudgetExceeded) as refused:
        query.release(mu="4.032640823319103")
    said = str(refused.value)
    assert not re.search(r"\d[.\d]*\d{5}", said.replace("1000%", ""))
    assert "mu=4.033, of which mu=0.123 is already paid" in said
    assert re.search(r"or share=1, for ± [\d,.]+ los", said)
    (fits,) = re.findall(r"the largest that fits is mu=([\d.]+)", said)
    assert query.preview(mu=fits).fits
    assert not query.preview(mu=float(fits) + 0.001).fits
    query.release(mu=fits)
