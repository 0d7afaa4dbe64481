"""Hypothesis tests of answers: what is tested, what is refused, and that no released number makes them fail."""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.stats.proportion as sm
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

import dpnb
from dpnb.errors import InvalidValueError, NotReleasedError, PlanError, RequestError
from dpnb.ledger import MEMORY
from dpnb.results.estimates.noisy import SampledAs
from dpnb.results.testing import (
    GroupErrors,
    HypothesisTest,
    equality,
    independence,
    of_value,
    trend,
    under_equality,
    wald,
)

SCHEMA: dict[str, Any] = {
    "arm": dpnb.Categories(["new", "old"]),
    "dose": dpnb.Categories(["low", "middle", "high"]),
    "x": dpnb.Bounded(0, 10),
    "y": dpnb.Bounded(0, 10),
    "well": dpnb.Bounded(0, 1, integer=True),
}


def table(rows: int, seed: int = 0) -> pd.DataFrame:
    """Rows in which the mean of x, and the share of the well, depend on the arm; the dose depends on nothing."""
    chance = np.random.default_rng(seed)
    new = chance.random(rows) < 0.5
    return pd.DataFrame(
        {
            "arm": np.where(new, "new", "old"),
            "dose": chance.choice(["low", "middle", "high"], rows),
            "x": np.clip(chance.normal(5 + new, 1.5), 0, 10),
            "y": np.clip(chance.normal(5, 1.5, rows), 0, 10),
            "well": (chance.random(rows) < 0.4 + 0.2 * new).astype(int),
        }
    )


def frame_of(rows: pd.DataFrame, **options: Any) -> Any:
    session = dpnb.Session(
        rows,
        name="study",
        budget=dpnb.Budget.gdp(1e6),
        schema=SCHEMA,
        ledger=MEMORY,
        not_private_test_seed=7,
        **options,
    )
    return session.frame


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    return table(4000)


@pytest.fixture(scope="module")
def df(rows: pd.DataFrame) -> Any:
    return frame_of(rows)


ACCURATE = 1000.0
"""So little noise that the tests are those of the rows."""


def test_without_noise_the_tests_are_the_usual_ones(df: Any, rows: pd.DataFrame) -> None:
    by_arm = [part["x"] for _, part in rows.groupby("arm")]
    by_dose = [part["x"] for _, part in rows.groupby("dose", sort=False)]
    two = df.groupby("arm")["x"].mean(population=True).release(mu=ACCURATE).test()
    assert two.statistic == pytest.approx(stats.ttest_ind(*by_arm, equal_var=False).statistic, rel=1e-2)
    several = df.groupby("dose")["x"].mean(population=True).release(mu=ACCURATE).test()
    usual = stats.f_oneway(*by_dose)
    assert several.df == 2
    assert several.pvalue == pytest.approx(usual.pvalue, rel=0.05)
    shares = df.groupby("dose")["well"].mean().release(mu=ACCURATE).test()
    pearson = stats.chi2_contingency(pd.crosstab(rows["dose"], rows["well"]), correction=False)
    assert shares.statistic == pytest.approx(pearson.statistic, rel=2e-2)
    counts = df.groupby("dose").size().release(mu=ACCURATE)
    assert counts.test().statistic == pytest.approx(stats.chisquare(rows["dose"].value_counts()).statistic, rel=2e-2)
    crossed = dpnb.crosstab(df["dose"], df["arm"]).release(mu=ACCURATE).test()
    pearson = stats.chi2_contingency(pd.crosstab(rows["dose"], rows["arm"]), correction=False)
    assert (crossed.df, crossed.statistic) == (2, pytest.approx(pearson.statistic, rel=5e-2))
    one = df["x"].mean(population=True).release(mu=ACCURATE)
    assert one.test(5.4).statistic == pytest.approx(stats.ttest_1samp(rows["x"], 5.4).statistic, rel=2e-2)


def test_a_trend_is_the_slope_over_the_scores(df: Any, rows: pd.DataFrame) -> None:
    scores = {"low": 0, "middle": 1, "high": 3}
    answer = df.groupby("dose")["x"].mean(population=True).release(mu=ACCURATE)
    found = answer.test(scores=scores)
    usual = stats.linregress(rows["dose"].map(scores).astype(float), rows["x"])
    assert found.estimate.item() == pytest.approx(usual.slope, abs=2e-3)
    assert found.statistic == pytest.approx(usual.slope / usual.stderr, abs=0.1)
    assert answer.test(scores=[0, 1, 3]).statistic == found.statistic
    low, high = found.estimate.population_interval
    assert low < found.estimate.item() < high


def test_a_difference_is_rejected_where_its_population_interval_excludes_0(df: Any) -> None:
    shares = df.groupby("arm")["well"].mean().release(mu=0.3)
    difference = shares["new"] - shares["old"]
    found = shares.test()
    assert found.outcome is bool(difference > 0) is True
    assert found.pvalue == shares["new"].test(shares["old"]).pvalue == difference.test(0).pvalue
    assert found.estimate.population_interval == difference.population_interval
    low, _ = difference.population_interval
    assert difference.test(low, alpha=0.04).pvalue == pytest.approx(0.04, rel=1e-6)  # of a first observation


def test_groups_can_be_chosen_beforehand_but_not_by_what_they_show(df: Any) -> None:
    answer = df.groupby("dose")["x"].mean(population=True).release(mu=0.5)
    chosen = answer.test(groups=["low", "high"])
    assert chosen.null == "in the population, mean of x by dose is the same for low and high"
    assert chosen.pvalue == answer["low"].test(answer["high"]).pvalue
    assert answer.sort_values().test().pvalue == pytest.approx(answer.test().pvalue)
    with pytest.raises(RequestError, match=r"some groups are left out, .* groups=\[...\]"):
        answer.nlargest(2).test()


def test_coefficients_are_tested_one_by_one_or_together(df: Any) -> None:
    answer = df.regress("x ~ y + C(dose) + C(arm)", population=True).release(mu=2)
    assert answer.test("y").pvalue == pytest.approx(answer.pvalues["y"])
    assert answer["y"].test(0).pvalue == pytest.approx(answer.pvalues["y"], abs=1e-3)
    assert answer.test("dose").df == answer.test("C(dose)").df == 2
    assert answer.test().df == 4
    assert answer.test("arm").outcome is True
    assert answer.test("C(arm)[T.old]", value=-1).pvalue > 0.01
    with pytest.raises(RequestError, match="'z' is not a term or column of the regression; it has Intercept, y"):
        answer.test("z")


def test_persons_are_clusters_and_may_be_in_several_groups() -> None:
    chance = np.random.default_rng(1)
    persons = table(1000).assign(person=range(1000))
    twice = pd.concat([persons, persons.assign(dose=chance.choice(["low", "middle", "high"], 1000))])
    df = frame_of(twice, privacy_unit="person", max_rows_per_unit=2)
    found = df.groupby("dose")["x"].mean(population=True).release(mu=ACCURATE).test()
    assert found.remarks[0].endswith("the test is conservative")
    shares = df.groupby("dose")["well"].mean(population=True).release(mu=ACCURATE)
    assert shares["low"].test(shares["high"]).remarks == found.remarks
    with pytest.raises(RequestError, match=r"may be counted in several cells .* df.drop_duplicates\('person'\)"):
        dpnb.crosstab(df["dose"], df["arm"]).release(mu=1).test()
    once = df.drop_duplicates("person")
    assert once.groupby(["dose", "arm"]).size().release(mu=ACCURATE).test().df == 2
    assert not once.groupby("dose")["x"].mean(population=True).release(mu=ACCURATE).test().remarks


def test_a_test_is_displayed_and_exported(df: Any) -> None:
    found = df.groupby("arm")["well"].mean().release(mu=0.3).test()
    text = str(found)
    assert "null hypothesis: in the population, mean of well by arm is the same for new and old" in text.splitlines()
    assert "the estimate is that of new minus that of old" in text
    assert "rejected at level 0.05" in text
    assert "95% population interval" in text
    assert "rejected at level 0.05" in found._repr_html_()
    assert bool(found) is found.outcome is True
    exported = found.to_pandas()
    assert exported.loc[0, "pvalue"] == found.pvalue
    assert exported.loc[0, "population_low"] == found.estimate.population_interval[0]
    assert copy.deepcopy(found).pvalue == found.pvalue


def test_what_the_noise_decides_nothing_about_is_unknown() -> None:
    df = frame_of(table(20))
    for found in (
        df.groupby("dose")["x"].mean(population=True).release(mu=0.01).test(),
        df.groupby("arm")["x"].mean(population=True).release(mu=0.01).test(),
        dpnb.crosstab(df["dose"], df["arm"]).release(mu=0.01).test(),
        df.regress("x ~ y", population=True).release(mu=0.01).test("y"),
    ):
        assert math.isnan(found.pvalue)
        assert found.outcome is None
        assert "unknown" in str(found)
        with pytest.raises(RequestError, match="is unknown, since the noise is too large"):
            bool(found)


# --- what is refused --------------------------------------------------------------------------------------------------


def test_a_refusal_names_what_to_write(df: Any) -> None:
    without = df.groupby("arm")["x"].mean().release(mu=0.4)
    with pytest.raises(RequestError, match=r"\.population\(share=0.01\); population=True is for a first release"):
        without.test()
    assert 0 <= without.population(mu=0.4).test().pvalue <= 1
    shares = df["dose"].value_counts(normalize=True).release(mu=0.4)
    with pytest.raises(RequestError, match=r"use the same noise.*df.groupby\(...\).size\(\)"):
        shares.test()
    with pytest.raises(RequestError, match=r"select one, as in answer\['mean'\]"):
        df.groupby("arm")["x"].agg(["mean", "var"]).release(mu=0.4).test()
    with pytest.raises(RequestError, match=r"as in answer.test\(0\)"):
        df["well"].mean().release(mu=0.4).test()
    with pytest.raises(RequestError, match="same noise"):
        dpnb.crosstab(df["dose"], df["arm"], margins=True).release(mu=0.4).test()
    error = copy.deepcopy(df["x"].sem().release(mu=0.4))
    with pytest.raises(RequestError, match=r"the sampling error of .* is not known; release the mean by"):
        error.test(0.1)
    with pytest.raises(InvalidValueError, match="alpha must lie between 0 and 1"):
        df["well"].mean().release(mu=0.4).test(0.5, alpha=0)


def test_arguments_that_are_no_number_of_doubles_are_refused(df: Any) -> None:
    counts, model = df.groupby("dose").size().release(mu=0.4), df.regress("x ~ y", population=True).release(mu=0.4)
    with pytest.raises(RequestError, match="takes a finite number"):
        df["well"].mean().release(mu=0.4).test(10**400)
    for scores in ([10**400, 1, 2], np.ones((3, 2)), np.array(1)):
        with pytest.raises(RequestError, match="test: scores must"):
            counts.test(scores=scores)
    for groups in (np.ones((2, 2)), np.array("low")):
        with pytest.raises(RequestError, match="test: groups must"):
            counts.test(groups=groups)
    with pytest.raises(InvalidValueError, match="range of doubles"):
        model.test("y", value=10**400)
    curve = df.survival("x", "well").release(mu=0.4)
    with pytest.raises(InvalidValueError, match="until must be after 0"):
        curve.restricted_mean(10**400)


def test_a_refined_answer_is_not_tested(df: Any) -> None:
    answer = df.groupby("arm").size().release(mu=0.11)
    refined = answer.refine(mu=0.2)
    with pytest.raises(RequestError, match=r"not offered after a refinement.*history\[0\]"):
        refined.test()
    assert refined.history[0].test().pvalue == answer.test().pvalue


TESTS: dict[str, tuple[Any, str]] = {
    "scipy.ttest_ind": (stats.ttest_ind, "(df['x'] - df['y']).mean(population=True).release(share=0.05).test(0)"),
    "scipy.mannwhitneyu": (stats.mannwhitneyu, "(df['x'] - df['y']).median().release(share=0.05).test(0)"),
    "scipy.ttest_rel": (stats.ttest_rel, "(df['x'] - df['y']).mean(population=True).release(share=0.05).test(0)"),
    "scipy.pearsonr": (stats.pearsonr, "df['x'].corr(df['y']).release(share=0.05).population(share=0.05).test(0)"),
    "scipy.chi2_contingency": (
        lambda x, _: stats.chi2_contingency(x),
        "dpnb.crosstab(df['arm'], df['dose']).release(share=0.05).test()",
    ),
    "scipy.levene": (stats.levene, "df.groupby('arm')['x'].var().release(share=0.05).population(share=0.05).test()"),
    "scipy.linregress": (
        stats.linregress,
        "df.regress('y', on=['x'], population=True).release(share=0.05).test()",
    ),
    "statsmodels.proportions_ztest": (
        sm.proportions_ztest,
        "(df['arm'] == 'new').groupby(df['dose']).mean().release(share=0.05).test()",
    ),
}


@pytest.mark.parametrize("name", TESTS)
def test_a_test_of_another_library_is_refused_with_the_one_here(df: Any, name: str) -> None:
    test, remedy = TESTS[name]
    with pytest.raises(PlanError) as refusal:
        test(df["x"], df["y"])
    assert str(refusal.value) == f"{name}: needs rows, which a private table never shows; use {remedy}"
    found = eval(remedy, {"df": frame_of(table(500)), "dpnb": dpnb})
    assert isinstance(found, HypothesisTest)
    with pytest.raises(NotReleasedError, match=rf"release\(share=0.01\)\.test\(...\); {name} would need rows"):
        test(df["x"].mean(), df["y"].mean())
    answer = df.groupby("arm")["well"].mean().release(mu=0.3)
    with pytest.raises(RequestError, match=rf"^{name}: would take mean of well by arm as exact.*use \.test"):
        test(answer, answer)


@pytest.mark.parametrize(
    ("test", "statistic"), [(stats.ttest_ind, "mean(population=True)"), (stats.kruskal, "median()")]
)
def test_two_samples_of_one_column_are_its_groups(df: Any, test: Any, statistic: str) -> None:
    with pytest.raises(PlanError) as refusal:
        test(df[df["arm"] == "new"]["x"], df[df["arm"] == "old"]["x"])
    assert f"use df.groupby('arm')['x'].{statistic}.release(share=0.05).test()" in str(refusal.value)


# --- any released numbers ---------------------------------------------------------------------------------------------

ANY = st.floats(allow_nan=True, allow_infinity=True)


def lies_in_range(pvalue: float) -> bool:
    return math.isnan(pvalue) or 0 <= pvalue <= 1


@settings(deadline=None)
@given(data=st.data(), shape=st.tuples(st.integers(2, 4), st.integers(2, 3)))
def test_every_test_is_total(data: st.DataObject, shape: tuple[int, int]) -> None:
    counts, noise, sampling = (data.draw(arrays(float, shape, elements=ANY)) for _ in range(3))
    ratio = data.draw(st.none() | st.just(1.0))
    assert lies_in_range(independence(counts, noise, sampling, ratio).pvalue)
    groups = GroupErrors(counts[0], noise[0], sampling[0], data.draw(st.booleans()))
    assert lies_in_range(equality(groups).pvalue)
    assert lies_in_range(trend(groups, np.arange(shape[1], dtype=float)).statistic.pvalue)
    assert lies_in_range(of_value(*data.draw(st.tuples(ANY, ANY, ANY)), 2.0, 0.0).pvalue)
    with np.errstate(all="ignore"):
        products = noise[:, :2].T @ noise[:, :2]
        for statistic in ("count", "share"):
            under_equality(counts[0], sampling[0], 2.0, SampledAs(2.0, statistic, 1.0))  # type: ignore[arg-type]
    assert lies_in_range(wald(counts[0, :2], products, 0.0).pvalue)
    assert lies_in_range(wald(counts[0, :1], products[:1, :1], 0.0).pvalue)
