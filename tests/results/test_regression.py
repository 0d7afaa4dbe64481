"""The result of a regression: what statsmodels computes on the same rows, and which words stand beside it."""

from __future__ import annotations

import operator
import pickle
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf

import dpnb
from dpnb.accounting.losses import GDP
from dpnb.errors import InvalidValueError, RequestError
from dpnb.ledger import MEMORY
from dpnb.results.estimates.least_squares import LeastSquares
from dpnb.results.estimates.linear import RegressionNumbers, RegressionTerm, TermFactor
from dpnb.results.regression import RegressionResult

CHANCE = np.random.default_rng(47)
N, ROWS = 3000, 5


def _table() -> pd.DataFrame:
    person = np.arange(N) // ROWS
    own = CHANCE.normal(0, 0.7, N // ROWS)[person]
    x = (CHANCE.normal(0, 1, N) + own).clip(-3, 3)
    g, f = CHANCE.choice(list("abc"), N), CHANCE.random(N) < 0.4
    error = (CHANCE.normal(0, 1, N) + own) * np.exp(0.3 * x)
    y = (1 + 0.5 * x + 0.3 * (g == "b") + 0.2 * f + 0.1 * x * f + error).clip(-8, 8)
    return pd.DataFrame({"person": person, "x": x, "g": g, "f": f, "y": y})


TABLE = _table()
SCHEMA = {
    "x": dpnb.Bounded(-3, 3),
    "y": dpnb.Bounded(-8, 8),
    "g": dpnb.Categories(["a", "b", "c"]),
    "f": dpnb.Categories([False, True]),
}
FORMULA = "y ~ x*f + C(g)"
NAMES = ["Intercept", "x", "f[T.True]", "C(g)[T.b]", "C(g)[T.c]", "x:f[T.True]"]
MU = 50_000


def opened(persons: bool = False, table: pd.DataFrame = TABLE, **options: Any) -> dpnb.Session:
    unit = {"privacy_unit": "person", "max_rows_per_unit": ROWS} if persons else {}
    given = {"name": "t", "budget": dpnb.Budget.gdp(1e6), "schema": SCHEMA, "ledger": MEMORY}
    rows = table if persons else table.drop(columns="person")
    return dpnb.Session(rows, **{**given, "not_private_test_seed": 7, **unit, **options})


@pytest.fixture(scope="module")
def fitted() -> Any:
    return smf.ols(FORMULA, TABLE)


@pytest.fixture(scope="module")
def answer() -> Any:
    return opened().frame.regress(FORMULA).release(mu=MU)


def near(found: pd.Series, wanted: pd.Series, rel: float = 1e-3) -> None:
    assert found.to_numpy() == pytest.approx(wanted.reindex(found.index).to_numpy(), rel=rel, abs=1e-4)


# --- numbers of statsmodels -------------------------------------------------------------------------------------------


def test_rows_have_the_standard_errors_of_one_variance_at_no_further_charge(answer: Any, fitted: Any) -> None:
    wanted = fitted.fit()
    assert answer.params.index.tolist() == NAMES
    near(answer.params, wanted.params)
    near(answer.bse, wanted.bse)
    near(answer.tvalues, wanted.tvalues, 5e-3)
    near(answer.pvalues, pd.Series(2 * wanted.pvalues / 2, wanted.params.index), 0.05)
    assert float(answer.rsquared) == pytest.approx(wanted.rsquared, rel=1e-3)
    assert float(answer.residual_variance) == pytest.approx(wanted.mse_resid, rel=1e-3)
    assert float(answer.nobs) == pytest.approx(N, rel=1e-3)
    low, high = answer.rsquared.interval
    assert low < float(answer.rsquared) < high


def test_measured_standard_errors_are_robust_for_rows_and_clustered_for_persons(fitted: Any) -> None:
    robust = opened().frame.regress(FORMULA, population=True).release(mu=MU)
    near(robust.bse, fitted.fit(cov_type="HC0").bse, 2e-3)
    clusters = {"groups": TABLE["person"], "use_correction": False}
    wanted = fitted.fit(cov_type="cluster", cov_kwds=clusters)
    clustered = opened(persons=True).frame.regress(FORMULA).release(mu=MU).population(mu=MU)
    near(clustered.bse, wanted.bse, 0.02)  # the noise is five times as large
    found, names = clustered.cov_params(), wanted.cov_params().reindex(NAMES)[NAMES]
    assert found.to_numpy() == pytest.approx(names.to_numpy(), rel=0.02, abs=1e-5)
    assert "clustered by person" in str(clustered.summary())


def test_persons_with_one_row_each_are_rows() -> None:
    first = TABLE.groupby("person", as_index=False).first()
    session = opened(persons=True, table=first, max_rows_per_unit=1)
    answer = session.frame.regress("y ~ x").release(mu=MU)
    near(answer.bse, smf.ols("y ~ x", first).fit().bse)
    robust = answer.population(mu=MU)
    near(robust.bse, smf.ols("y ~ x", first).fit(cov_type="HC0").bse, 5e-3)
    assert "each row is a unit" in robust.numbers.errors


def test_within_units_they_are_those_of_deviations_from_means() -> None:
    deviations = TABLE[["x", "f", "y", "person"]].astype(float)
    deviations -= deviations.groupby(TABLE["person"]).transform("mean").assign(person=0.0)
    clusters = {"groups": TABLE["person"], "use_correction": False}
    wanted = smf.ols("y ~ x + f - 1", deviations).fit(cov_type="cluster", cov_kwds=clusters)
    found = opened(persons=True).frame.regress("y ~ x + f | person", population=True).release(mu=MU)
    assert found.params.to_numpy() == pytest.approx(wanted.params.to_numpy(), rel=1e-3)
    assert found.bse.to_numpy() == pytest.approx(wanted.bse.to_numpy(), rel=0.01)
    assert float(found.rsquared) == pytest.approx(wanted.rsquared, rel=1e-3)
    assert "R-squared are those of deviations from the means of each unit" in str(found.summary())


def test_the_means_of_units_are_those_of_the_chosen_rows() -> None:
    chosen = TABLE[TABLE["g"] != "a"]
    deviations = chosen[["x", "y"]] - chosen.groupby("person")[["x", "y"]].transform("mean")
    clusters = {"groups": chosen["person"], "use_correction": False}
    wanted = smf.ols("y ~ x - 1", deviations).fit(cov_type="cluster", cov_kwds=clusters)
    df = opened(persons=True).frame
    found = df[df["g"] != "a"].regress("y ~ x | person", population=True).release(mu=MU)
    assert found.params["x"] == pytest.approx(wanted.params["x"], rel=1e-2)
    assert found.bse["x"] == pytest.approx(wanted.bse["x"], rel=0.03)


def test_rows_with_missing_values_do_not_count() -> None:
    table = TABLE.assign(x=TABLE["x"].where(TABLE.index % 3 > 0))
    found = opened(table=table).frame.regress("y ~ x", population=True).release(mu=MU)
    wanted = smf.ols("y ~ x", table).fit(cov_type="HC0")
    near(found.params, wanted.params)
    near(found.bse, wanted.bse, 2e-3)


def test_predictions_are_for_an_own_table(answer: Any, fitted: Any) -> None:
    new = TABLE[["x", "f", "g"]].head(20)
    near(answer.predict(new), fitted.fit().predict(new))
    assert answer.predict(new).index.equals(new.index)
    beyond = pd.DataFrame({"x": [100.0, 3.0, None], "f": [True] * 3, "g": ["b"] * 3})
    first, second, third = answer.predict(beyond)
    assert first == second  # as in the regression
    assert np.isnan(third)
    with pytest.raises(RequestError, match=r"predict: the table must have the column 'g'; it has x, f"):
        answer.predict(new[["x", "f"]])
    with pytest.raises(RequestError, match="takes a pandas DataFrame"):
        answer.predict({"x": 1})


def test_two_derivations_give_one_noise(answer: Any) -> None:
    """Determinants shifted by each noise, and the derivative of the solution."""
    scales = np.sqrt(np.diag(answer.numbers.noise))
    assert scales == pytest.approx(answer.arrays.noise_scale[0], rel=1e-6)
    within = opened(persons=True).frame.regress("y ~ x + f | person").release(mu=5)
    assert np.sqrt(np.diag(within.numbers.noise)) == pytest.approx(within.arrays.noise_scale[0], rel=1e-3)


# --- which interval, and what is not known ----------------------------------------------------------------------------


def test_intervals_are_named_and_those_that_are_shown() -> None:
    answer = opened().frame.regress("y ~ x", population=True).release(mu=10)
    shown = answer.to_pandas()
    found = answer.conf_int()
    assert found.columns.tolist() == ["population_low", "population_high"]
    assert (found.to_numpy() == shown[["population_low", "population_high"]].to_numpy()).all()
    wider, narrow = answer.conf_int(0.01), answer.conf_int(alpha=0.5)
    assert (wider["population_low"] < found["population_low"]).all()
    assert (narrow["population_high"] < found["population_high"]).all()
    for alpha in (0, 1, -1, "x"):
        with pytest.raises(InvalidValueError, match="conf_int: alpha"):
            answer.conf_int(alpha)


def test_a_final_answer_has_the_usual_intervals() -> None:
    answer = opened().frame.regress("y ~ x", population=True).release(mu=100, final=True)
    other = answer.conf_int(0.0500001)
    assert answer.conf_int().to_numpy() == pytest.approx(other.to_numpy(), rel=1e-3)
    low = answer.params - 1.959964 * answer.bse
    assert other["population_low"].to_numpy() == pytest.approx(low.to_numpy(), rel=1e-5)
    first = opened().frame.regress("y ~ x", population=True).release(mu=100)
    assert (first.conf_int()["population_low"] < answer.conf_int()["population_low"] + 1e-2).all()


def test_without_a_sampling_error_there_are_no_tests_but_noise_intervals() -> None:
    answer = opened(persons=True).frame.regress("y ~ x").release(mu=10)
    assert answer.conf_int().columns.tolist() == ["low", "high"]
    for name in ("bse", "tvalues", "zvalues", "pvalues", "cov_params"):
        with pytest.raises(RequestError, match=r"sampling error of regression .* is not known .*\.population\("):
            operator.methodcaller(name)(answer) if name == "cov_params" else getattr(answer, name)
    text = str(answer.summary())
    assert "standard errors:     unknown: the sampling error was not measured" in text
    assert "std err" not in text
    assert "P>|z|" not in text
    assert "population interval" not in text


def test_a_refined_answer_has_no_tests() -> None:
    answer = opened().frame.regress("y ~ x").release(mu=5).refine(mu=10)
    with pytest.raises(RequestError, match="pvalues: is not offered after a refinement"):
        answer.pvalues  # noqa: B018
    with pytest.raises(RequestError, match=r"conf_int\(alpha=0\.1\): is not offered after a refinement"):
        answer.conf_int(0.1)
    assert (answer.conf_int().to_numpy() == answer.population_interval.to_numpy()).all()
    assert "no tests: the answer was refined" in str(answer.summary())
    assert "P>|z|" not in str(answer.summary())


def test_a_refinement_keeps_the_measured_sampling_error() -> None:
    answer = opened(persons=True).frame.regress("y ~ x", population=True).release(mu=50)
    refined = answer.refine(mu=100)
    assert refined.has_population_intervals
    assert refined.numbers.errors == answer.numbers.errors
    assert refined.bse["x"] == pytest.approx(answer.bse["x"], rel=0.2)


def test_in_a_census_only_the_noise_counts() -> None:
    session = opened(sampled="census")
    answer = session.frame.regress("y ~ x").release(mu=5, final=True)
    assert answer.bse.to_numpy() == pytest.approx(answer.noise_scale.to_numpy(), rel=1e-6)
    assert "in a census there is no sampling error" in str(answer.summary())


def test_a_large_fraction_of_the_population_has_less_sampling_error() -> None:
    whole = opened().frame.regress("y ~ x").release(mu=MU).numbers.sampling
    part = opened(sampled=0.75).frame.regress("y ~ x").release(mu=MU).numbers.sampling
    assert part == pytest.approx(whole / 4)


def test_collinear_predictors_are_unknown() -> None:
    table = TABLE.assign(z=TABLE["x"])
    session = opened(table=table, schema={**SCHEMA, "z": dpnb.Bounded(-3, 3)})
    answer = session.frame.regress("y ~ x + z", population=True).release(mu=2)
    text = str(answer.summary())
    assert answer.params.isna().sum() >= 2
    assert answer.pvalues.isna().sum() >= 2 if answer.has_population_intervals else "too little variation of" in text
    assert text.count("unknown") >= 2


@pytest.mark.parametrize("noisy", [np.nan, np.inf, 0.0, 1e300, -1.0])
def test_the_terms_that_vary_least_are_found_in_any_noise(noisy: float) -> None:
    """The second predictor hardly differs from the intercept, and the third varies."""
    moments = np.array([[9.0, 1, 1, 0], [1, 100, -99, 3], [1, -99, 98.1, 0], [0, 3, 0, 80]])
    model = LeastSquares(moments, np.zeros((1, 4, 4)), np.eye(3), np.zeros(3), 1.0, True)
    assert model.weakest == [1]
    broken = replace(model, moments=np.full((4, 4), noisy))
    assert set(broken.weakest) <= {1, 2}


def test_fitted_values_beyond_the_bounds_of_the_outcome_are_noted_from_bounds_alone() -> None:
    numbers = opened().frame.regress("y ~ x").release(mu=MU).numbers
    assert numbers.notes == ()
    narrow = opened(schema={**SCHEMA, "y": dpnb.Bounded(0, 2)}).frame.regress("y ~ x + C(g)").release(mu=MU)
    (note,) = narrow.numbers.notes
    assert "y is clamped to 0 to 2" in note
    low, high = (float(one) for one in note.split(" from ")[1].split(",")[0].split(" to "))
    slope, start = narrow.params["x"], narrow.params["Intercept"]
    groups = [0.0, narrow.params["C(g)[T.b]"], narrow.params["C(g)[T.c]"]]
    assert low == pytest.approx(start - 3 * slope + min(groups), rel=1e-3)
    assert high == pytest.approx(start + 3 * slope + max(groups), rel=1e-3)


# --- display, copies, exports -----------------------------------------------------------------------------------------


def test_the_summary_says_what_it_is_based_on(answer: Any) -> None:
    text, html = str(answer.summary()), answer.summary()._repr_html_()
    for part in ("R-squared", "residual variance", "homoskedastic", "95% population interval", "95% noise interval"):
        assert part in text
        assert part in html
    for name in NAMES:
        assert name in text
    assert "<0.001" in text
    assert "&lt;0.001" in html
    assert "cost" in text


def test_a_copy_keeps_everything(answer: Any) -> None:
    copy = pickle.loads(pickle.dumps(answer))
    assert str(copy.summary()) == str(answer.summary())
    assert copy.pvalues.equals(answer.pvalues)
    assert copy.to_csv() == answer.to_csv()


def test_the_figure_has_one_scale_a_zero_line_and_both_intervals(answer: Any) -> None:
    figure = answer.plot()
    marks, population = figure.data[:2]
    assert list(marks.y) == list(answer.outputs[1][1:])  # as in the table
    reach = [6.0, 1.0, 1.0, 1.0, 6.0]  # of the declared bounds
    assert list(marks.x) == pytest.approx((answer.params[1:] * reach).tolist())
    assert all(thin > thick for thin, thick in zip(population.error_x.array, marks.error_x.array, strict=True))
    (zero,) = figure.layout.shapes
    assert (zero.x0, zero.x1) == (0, 0)
    assert "change of y" in figure.layout.xaxis.title.text


def one(value: float, scale: float) -> Any:
    arrays = (np.array([part]) for part in (value, value - 2 * scale, value + 2 * scale, scale))
    return dpnb.results.estimates.IntervalArrays.of(*arrays)


def result(**changes: Any) -> RegressionResult:
    terms = (RegressionTerm(), RegressionTerm((TermFactor("age", None, 0, 100),)))
    noise = np.diag([0.01, 0.0001])
    given: dict[str, Any] = {
        "family": "logistic",
        "outcome": "y",
        "terms": terms,
        "params": np.array([-1.0, 0.02]),
        "noise": noise,
        "sampling": 3 * noise,
    }
    numbers = RegressionNumbers(**{**given, **changes})
    return RegressionResult.of(numbers, description="logistic regression of y", cost=GDP("0.1"), cost_fraction=0.01)


def test_a_result_of_several_steps_has_the_same_methods() -> None:
    found = result()
    assert found.bse.tolist() == pytest.approx([0.2, 0.02])
    assert found.pvalues.tolist() == pytest.approx([5.7330e-07, 0.31731], rel=1e-4)
    assert found.conf_int().loc["age"].tolist() == pytest.approx([0.02 - 0.0391993, 0.02 + 0.0391993], rel=1e-5)
    assert found.interval.loc["age"].tolist() == pytest.approx([0.02 - 0.0195996, 0.02 + 0.0195996], rel=1e-4)
    assert found.predict(pd.DataFrame({"age": [0, 50]})).tolist() == pytest.approx([0.268941, 0.5], rel=1e-5)
    assert result(family="poisson").predict(pd.DataFrame({"age": [50]})).tolist() == pytest.approx([1.0])
    with pytest.raises(RequestError, match="R-squared: is not known"):
        found.rsquared  # noqa: B018
    assert "cost 1.0% of the budget (mu 0.1)" in str(found.summary())
    assert "log-odds of y" in found.plot().layout.xaxis.title.text
    assert pickle.loads(pickle.dumps(found)).pvalues.equals(found.pvalues)


def test_unknown_coefficients_of_a_result_are_shown_as_such() -> None:
    unknown = np.full(2, np.nan)
    found = result(params=unknown, noise=np.diag(unknown), sampling=None, unknown="the information is not definite")
    assert found.params.isna().all()
    assert "the information is not definite" in str(found.summary())
    assert str(found.summary()).count("unknown") >= 3
    assert found.has_population_intervals is False


def test_a_term_is_found_by_each_of_its_names() -> None:
    table = pd.DataFrame({"x": [1.0, 2, 3, 4] * 50, "y": [2.0, 3, 5, 7] * 50, "g": ["a", "b", "b", "a"] * 50})
    schema = {"x": dpnb.Bounded(0, 5), "y": dpnb.Bounded(0, 10), "g": dpnb.Categories(["a", "b"])}
    session = dpnb.Session(table, name="t", budget=None, schema=schema, ledger=MEMORY, not_private_test_seed=1)
    query = session.frame.regress("y ~ x + C(g)")
    answer = query.release(mu=100)
    names = ["Intercept", "x", "C(g)[T.b]"]
    assert answer.to_pandas().index.tolist() == answer.params.index.tolist() == names
    assert query.preview(mu=200).expected_errors.index.tolist() == names
    for name in ("g", "C(g)", "g == b", "g == 'b'", "C(g)[T.b]"):
        assert answer.params[name] == answer[name].item() == answer.params.iloc[2]
    assert answer.params["intercept"] == answer.params["const"] == answer.params.iloc[0]
    assert answer.params.get("age", 0) == 0
    assert pickle.loads(pickle.dumps(answer.params)).equals(answer.params)
    narrow = {name: query.preview(within={name: 0.5}).cost.mu for name in ("C(g)[T.b]", "g == 'b'")}
    assert len(set(narrow.values())) == 1
    with pytest.raises(RequestError, match=r"\['age'\]: is not a term of the regression, which has 'Intercept', 'x'"):
        answer.params["age"]
