"""Logistic and Poisson regressions by Newton steps: one call, its price, what it shows, and where it says "unknown"."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import statsmodels.api as sm
import statsmodels.formula.api as smf
from scipy.stats import norm

import dpnb
from dpnb._plan.measurements import ScoreSums
from dpnb.errors import BudgetExceeded, NotReleasedError, PlanError, RequestError, UnsupportedError
from dpnb.ledger import MEMORY
from dpnb.query import newton
from dpnb.results.estimates.newton import SHARES
from dpnb.session.snapshot import log_entry

SCHEMA = {
    "x": dpnb.Bounded(-3, 3),
    "z": dpnb.Bounded(0, 10),
    "g": dpnb.Categories(["a", "b", "c"]),
    "h": dpnb.Categories([False, True]),
    "y": dpnb.Categories([False, True]),
    "count": dpnb.Bounded(0, 15),
}
LOGISTIC, POISSON = "y ~ x + z + C(g) + h", "count ~ x + z + C(g) + x:z"
FORMULAS = {"logistic": LOGISTIC, "poisson": POISSON}
families = pytest.mark.parametrize("family", ["logistic", "poisson"])


def table(rows: int = 3000, persons: int = 1) -> pd.DataFrame:
    chance = np.random.default_rng(3)
    of_person = np.repeat(chance.normal(size=rows // persons), persons)
    frame = pd.DataFrame(
        {
            "person": np.repeat(np.arange(rows // persons), persons),
            "x": (0.6 * of_person + 0.8 * chance.normal(size=rows)).clip(-3, 3),
            "z": chance.uniform(0, 10, rows),
            "g": chance.choice(list("abc"), rows),
            "h": chance.random(rows) < 0.4,
        }
    )
    predictor = -1 + 0.5 * frame["x"] + 0.1 * frame["z"] + 0.4 * (frame["g"] == "b") + 0.2 * frame["h"]
    frame["y"] = chance.random(rows) < 1 / (1 + np.exp(-predictor - 0.5 * of_person))
    frame["count"] = chance.poisson(np.exp(0.4 * predictor + 0.2 * of_person)).clip(0, 15)
    frame.loc[[3, 7], "x"] = np.nan
    return frame


TABLE = table()


def opened(frame: pd.DataFrame = TABLE, **options: Any) -> dpnb.Session:
    budget = options.pop("budget", None)
    schema = options.pop("schema", SCHEMA)
    return dpnb.Session(
        frame,
        name="t",
        budget=budget,
        schema=schema,
        ledger=options.pop("ledger", MEMORY),
        not_private_test_seed=1,
        **options,
    )


def persons(**options: Any) -> dpnb.Session:
    return opened(table(3000, 3), privacy_unit="person", max_rows_per_unit=3, **options)


LIMITED = dpnb.Budget(epsilon=1, delta=1e-6)


# --- what it is -------------------------------------------------------------------------------------------------------


def without_noise(family: str, frame: pd.DataFrame, *, cluster: bool = False) -> Any:
    used = frame.dropna().assign(y=lambda one: one["y"].astype(int), h=lambda one: one["h"].astype(int))
    kind = sm.families.Binomial() if family == "logistic" else sm.families.Poisson()
    options: dict[str, Any] = {"cov_type": "HC0"}
    if cluster:
        options = {"cov_type": "cluster", "cov_kwds": {"groups": used["person"], "use_correction": False}}
    return smf.glm(FORMULAS[family], used, family=kind).fit(**options)


@families
@pytest.mark.parametrize("cluster", [False, True])
def test_almost_without_noise_it_is_that_of_statsmodels(family: str, cluster: bool) -> None:
    session = persons() if cluster else opened()
    frame = table(3000, 3) if cluster else TABLE
    found = session.frame.regress(FORMULAS[family], family=family).release(mu=1e5)
    expected = without_noise(family, frame, cluster=cluster)
    names = [name.replace("h[T.True]", "h") for name in found.params.index]
    assert set(names) == set(expected.params.index)
    assert found.params.to_numpy() == pytest.approx(expected.params[names].to_numpy(), abs=1e-3)
    assert found.bse.to_numpy() == pytest.approx(expected.bse[names].to_numpy(), rel=0.02)
    assert found.pvalues.to_numpy() == pytest.approx(expected.pvalues[names].to_numpy(), abs=0.01)
    assert ("clustered by person" if cluster else "each row is a unit") in str(found.summary())
    count = found.nobs
    assert count.item() == pytest.approx(len(frame) - 2, abs=0.5)


def test_columns_instead_of_a_formula_give_the_same() -> None:
    frame = opened().frame
    one = frame.regress("y ~ x + C(g) + h", family="logistic").release(mu=1)
    other = frame.regress("y", on=["x", "g", "h"], family="logistic").release(mu=1)
    assert one.params.equals(other.params)
    above = frame.regress(frame["z"] > 5, on=["x"], family="logistic").release(mu=1)
    assert above.params.index.tolist() == ["Intercept", "x"]


def test_terms_keep_the_order_in_which_they_were_written() -> None:
    frame = opened().frame
    first = frame.regress("y ~ C(g) + x", family="logistic").release(mu=100)
    second = frame.regress("y ~ x + C(g)", family="logistic").release(mu=100)
    assert first.params.index.tolist() == ["Intercept", "C(g)[T.b]", "C(g)[T.c]", "x"]
    assert first.params[second.params.index].equals(second.params)


def test_predictions_are_means_of_the_outcome() -> None:
    new = pd.DataFrame({"x": [0.0, 99.0], "z": [5.0, 5.0], "g": ["a", "b"], "h": [True, False]})
    for family in ("logistic", "poisson"):
        found = opened().frame.regress(FORMULAS[family], family=family).release(mu=1e5)
        expected = without_noise(family, TABLE).predict(new.assign(x=[0.0, 3.0], h=[1, 0]))
        assert found.predict(new).to_numpy() == pytest.approx(expected.to_numpy(), abs=1e-3)


def test_a_filter_and_computed_columns_are_those_of_the_frame() -> None:
    frame = opened().frame
    some = frame[frame["z"] > 5].assign(half=frame["x"] / 2)
    found = some.regress("y ~ half", family="logistic").release(mu=1e5)
    used = TABLE[TABLE["z"] > 5].dropna().assign(half=TABLE["x"] / 2, y=TABLE["y"].astype(int))
    expected = smf.logit("y ~ half", used).fit(disp=0)
    assert found.params.to_numpy() == pytest.approx(expected.params.to_numpy(), abs=2e-4)


# --- what it costs ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", [{"mu": 0.1}, {"rho": 0.005}, {"epsilon": 0.5}, {"share": 0.3}, {"share": 1}])
def test_the_whole_price_is_known_before_and_is_what_is_charged(target: Any) -> None:
    session = opened(budget=LIMITED)
    query = session.frame.regress(LOGISTIC, family="logistic")
    preview = query.preview(**target)
    assert preview.fits
    assert len(preview.steps) == len(SHARES)
    assert sum(step.mu_squared for step in preview.steps) == preview.cost.mu_squared
    assert len(session.log) == 0
    result = query.release(**target)
    assert float(result.cost.mu_squared) == pytest.approx(float(preview.cost.mu_squared), rel=1e-5)
    assert result.cost.mu_squared <= preview.cost.mu_squared
    if "share" in target:
        assert 1 - session.headroom == pytest.approx(target["share"], rel=1e-4)
    last, whole = preview.steps[-1].mu_squared, preview.cost.mu_squared
    assert float(last / whole) == pytest.approx(float(SHARES[-1]), rel=1e-4)


@pytest.mark.parametrize("name", ["zcdp", "rdp", "basic", "rogers", "approx-dp"])
def test_the_share_of_the_budget_is_that_of_all_steps_by_any_filter(name: str) -> None:
    """By some, four charges cost more than one of the same loss."""
    session = opened(filter=name, budget=LIMITED)
    query = session.frame.regress("y ~ x", family="logistic")
    preview = query.preview(share=0.8)
    result = query.release(share=0.8)
    assert preview.cost_fraction == pytest.approx(result.cost_fraction, rel=2e-3)
    assert preview.cost_fraction == pytest.approx(0.8, rel=0.1)
    shown = str(preview).split("% of the budget", maxsplit=1)[0].split()[-1]
    assert float(shown) == pytest.approx(100 * preview.cost_fraction, abs=0.1)


@pytest.mark.parametrize("name", ["gdp", "basic"])
def test_in_a_part_the_share_is_that_of_all_steps(name: str) -> None:
    session = opened(filter=name, budget=dpnb.Budget(epsilon=100, delta=1e-6))
    frame = session.partition("g")["a"].frame
    queries = frame.regress("y ~ x", family="logistic"), frame.regress("z ~ x", population=True)
    for query in queries:
        preview, before = query.preview(mu=1), session.headroom
        result = query.release(mu=1)
        assert preview.cost_fraction == pytest.approx(result.cost_fraction, rel=1e-4)
        assert before - session.headroom == pytest.approx(preview.cost_fraction, rel=1e-4)
    assert queries[0].preview(mu=1).cost_fraction == 0


def test_the_same_call_is_free_in_any_kernel(tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    first = opened(budget=LIMITED, ledger=file)
    result = first.frame.regress(LOGISTIC, family="logistic").release(share=0.5)
    left = first.headroom
    again = first.frame.regress(LOGISTIC, family="logistic").release(share=0.5, confidence=0.9)
    assert again.params.equals(result.params)
    other = opened(budget=LIMITED, ledger=file)
    query = other.frame.regress(LOGISTIC, family="logistic")
    assert query.preview(share=0.5).cost.mu_squared == 0
    assert query.release(share=0.5).params.equals(result.params)
    assert first.headroom == other.headroom == left


def test_too_small_a_budget_is_refused_before_the_first_charge() -> None:
    session = opened(budget=LIMITED)
    query = session.frame.regress(LOGISTIC, family="logistic")
    preview = query.preview(mu=1)
    assert not preview.fits
    assert "does not fit" in str(preview)
    with pytest.raises(BudgetExceeded, match="4 steps together cost"):
        query.release(mu=0.5)
    assert session.headroom == 1
    assert len(session.log) == 0


def test_a_run_that_is_stopped_keeps_what_it_has_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another kernel spends between two steps."""
    session = opened(budget=LIMITED)
    query = session.frame.regress(LOGISTIC, family="logistic")
    releases, original, steps = session._core.releases, session._core.releases.release, []

    def spending(request: Any, *conditions: Any) -> Any:
        steps.append(request)
        if len(steps) == 3:
            session.frame.count().release(share=1)  # the fourth request
        return original(request, *conditions)

    monkeypatch.setattr(
        releases, "release", lambda *arguments: spending(*arguments) if len(steps) < 3 else original(*arguments)
    )
    result = query.release(mu=0.2)
    assert "stopped after 2 of 4 steps" in str(result.summary())
    assert np.isfinite(result.params).all()
    assert result.to_pandas()[["low", "high"]].isna().all(axis=None)
    assert "noise interval" not in str(result.summary()).split("term  ")[1]
    with pytest.raises(RequestError, match=r"stopped after 2 of 4 steps.*; .params has the coefficients"):
        _ = result.bse


def test_an_interrupted_run_continues_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    session = opened(budget=LIMITED)
    query = session.frame.regress(LOGISTIC, family="logistic")
    releases, original, steps = session._core.releases, session._core.releases.release, []

    def interrupted(request: Any) -> Any:
        steps.append(request)
        if len(steps) == 3:
            raise KeyboardInterrupt
        return original(request)

    monkeypatch.setattr(releases, "release", interrupted)
    with pytest.raises(KeyboardInterrupt):
        query.release(mu=0.2)
    monkeypatch.setattr(releases, "release", original)
    preview = query.preview(mu=0.2)
    assert [bool(step.mu_squared) for step in preview.steps] == [False, False, True, True]
    result = query.release(mu=0.2)
    assert float(result.cost.mu_squared) == pytest.approx(0.04, rel=1e-4)
    assert float(session.spent.mu_squared) == pytest.approx(0.04, rel=1e-4)


# --- what is known before -----------------------------------------------------------------------------------------


def typical(rows: int, *, correlation: float = 0.0) -> dpnb.Session:
    """Columns with a standard deviation of a sixth of the distance of their bounds."""
    chance = np.random.default_rng(4)
    x, z = chance.normal(size=(2, rows)) / 3
    z = correlation * x + (1 - correlation**2) ** 0.5 * z
    means = np.exp(0.5 * x)
    frame = pd.DataFrame({"x": 3 * x, "z": 5 + 5 * z, "g": chance.choice(list("abc"), rows)})
    frame["y"] = chance.random(rows) < 1 / (1 + np.exp(-x))
    frame["count"] = chance.poisson(15 / 4 * means).clip(0, 15)
    schema = {name: SCHEMA[name] for name in frame}
    return opened(frame, schema=schema, public_size=rows)


@families
def test_the_error_for_typical_values_is_that_of_the_answer(family: str) -> None:
    formula = "y ~ x + z + C(g)" if family == "logistic" else "count ~ x + z + C(g)"
    query = typical(10_000).frame.regress(formula, family=family)
    preview = query.preview(mu=1)
    assert not preview.doubt
    assert "computed from:   about 10,000 rows (public_size=10000) and typical values" in repr(preview)
    found = query.release(mu=1).arrays
    assert preview.half_widths == pytest.approx((found.high - found.low) / 2, rel=0.35)
    assert query.preview(mu=1).half_widths == pytest.approx((found.high - found.low) / 2, rel=1e-9)
    assert "free" in repr(query.preview(mu=1))


def test_unknown_coefficients_are_told_before_they_are_paid() -> None:
    query = typical(2000, correlation=0.9).frame.regress("y ~ x + z", family="logistic")
    assert "probably unknown" in query._repr_html_()  # as a notebook shows it
    preview = query.preview(mu=0.2)
    assert preview.doubt == "probable"
    for text in ("expected error:  probably unknown", "fewer predictors", "about mu=0.", ".clip(low, high)"):
        assert text in repr(preview)
    assert query.release(mu=0.2).params.isna().all()
    assert not query.preview(mu=2).doubt
    assert np.isfinite(query.release(mu=2).params).all()


def test_without_a_number_of_rows_the_count_comes_first() -> None:
    session = opened(budget=LIMITED)
    query = session.frame[session.frame["z"] > 5].regress("y ~ x", family="logistic")
    preview = query.preview(share=0.3)
    assert preview.half_widths is None
    assert "release first" in repr(preview)
    session.frame[session.frame["z"] > 5].count().release(share=0.01)
    assert np.isfinite(query.preview(share=0.3).half_widths).all()


def test_the_log_of_the_panel_does_not_describe_the_sums_of_a_step() -> None:
    session = opened(budget=LIMITED)
    session.frame.regress("y ~ x", family="logistic").release(share=0.5)
    session.frame.count().release(share=0.1)
    (count, *steps) = [log_entry(one) for one in session._core.log.latest(5)]
    assert count.query == "count of rows"
    assert count.error is not None
    assert {(one.title, one.estimate, one.error) for one in steps} == {
        ("logistic regression of y on x: a step towards its coefficients", "taken", None)
    }


# --- what is said -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("confidence", [0.8, 0.99])
def test_all_intervals_have_the_confidence_that_is_said(confidence: float) -> None:
    result = opened().frame.regress(LOGISTIC, family="logistic").release(mu=10, confidence=confidence)
    z = norm.ppf((1 + confidence) / 2)
    assert f"{confidence:.0%} noise interval" in str(result.summary())
    count = result.nobs.arrays
    assert count.high - count.low == pytest.approx(2 * z * count.noise_scale)
    assert result.arrays.high - result.arrays.low == pytest.approx(2 * z * result.arrays.noise_scale)


def test_simultaneous_intervals_hold_at_once() -> None:
    query = opened().frame.regress(LOGISTIC, family="logistic")
    assert query.preview(mu=10, simultaneous=True).cost == query.preview(mu=10).cost
    each, at_once = query.release(mu=10), query.release(mu=10, simultaneous=True)
    wider = norm.ppf(1 - 0.025 / len(each.params)) / norm.ppf(0.975)
    ends = [found.conf_int().diff(axis=1).iloc[:, 1].to_numpy() for found in (each, at_once)]
    assert ends[1] / ends[0] == pytest.approx(wider)
    nine = [found.conf_int(alpha=0.1).diff(axis=1).iloc[:, 1].to_numpy() for found in (each, at_once)]
    assert nine[1] / nine[0] == pytest.approx(norm.ppf(1 - 0.05 / len(each.params)) / norm.ppf(0.95))
    assert "at once" in str(at_once.summary())
    assert each.pvalues.equals(at_once.pvalues)


def test_the_summary_says_which_outcome_is_modelled_and_by_which_link() -> None:
    schema = {**SCHEMA, "y": dpnb.Categories(["no", "yes"])}
    frame = opened(TABLE.assign(y=TABLE["y"].map({False: "no", True: "yes"})), schema=schema).frame
    result = frame.regress("y ~ x", family="logistic").release(mu=100)
    assert result.numbers.outcome == "y == 'yes'"
    assert "odds ratio" in str(result.summary())
    assert result.params.equals(opened().frame.regress("y ~ x", family="logistic").release(mu=100).params)
    assert "ratio of means" in str(opened().frame.regress(POISSON, family="poisson").release(mu=100).summary())


def test_the_public_number_of_clusters_is_shown() -> None:
    query = persons(public_size=1000).frame.regress(LOGISTIC, family="logistic")
    assert "number of units:     1,000 in the whole table (declared)" in str(query.release(mu=100).summary())
    linear = persons(public_size=1000).frame.regress("z ~ x", population=True).release(mu=100)
    assert "number of units:     1,000 in the whole table (declared)" in str(linear.summary())
    assert "number of units" not in str(persons().frame.regress("z ~ x").release(mu=100).summary())


# --- where it is unknown ----------------------------------------------------------------------------------------------


@families
def test_with_too_much_noise_it_is_unknown(family: str) -> None:
    result = opened().frame.regress(FORMULAS[family], family=family).release(mu=0.01)
    assert result.params.isna().all()
    assert "not clear of its noise" in str(result.summary())
    assert "unknown" in str(result)


def test_terms_that_repeat_each_other_are_unknown() -> None:
    frame = opened().frame
    both = frame.assign(twice=frame["x"] * 2)
    assert both.regress("y ~ x + twice", family="logistic").release(mu=5).params.isna().all()


def test_separated_outcomes_are_not_said_to_have_coefficients() -> None:
    """The likelihood has no maximum: each step moves further."""
    frame = pd.DataFrame({"x": np.linspace(-3, 3, 2000)}).assign(y=lambda one: one["x"] > 0)
    schema = {name: SCHEMA[name] for name in "xy"}
    result = opened(frame, schema=schema).frame.regress("y ~ x", family="logistic").release(mu=5)
    assert "not converged" in str(result.summary()) or result.params.isna().all()
    assert result.population_arrays is None


def test_what_is_clamped_is_said() -> None:
    result = opened().frame.regress(POISSON, family="poisson").release(mu=100)
    assert "clamped to its bounds, 0 ... 15" in str(result.summary())
    narrow = opened(schema={**SCHEMA, "count": dpnb.Bounded(0, 1)}).frame
    assert "clamping may bind" in str(narrow.regress(POISSON, family="poisson").release(mu=100).summary())
    assert "clamped" in str(opened().frame.regress(POISSON, family="poisson").preview(mu=1))
    assert "clamped" not in str(opened().frame.regress(LOGISTIC, family="logistic").preview(mu=1))
    above = opened(schema={**SCHEMA, "count": dpnb.Bounded(2, 30)}).frame.regress(POISSON, family="poisson")
    assert ", below 2; whether any row" in str(above.release(mu=100).summary())


def test_in_a_census_population_intervals_are_those_of_the_noise() -> None:
    query = opened(sampled="census").frame.regress(LOGISTIC, family="logistic")
    assert "in a census there is no sampling error" in str(query.preview(mu=10))
    result = query.release(mu=10)
    assert result.population_arrays is not None
    assert result.population_arrays.low == pytest.approx(result.arrays.low)
    assert "in a census there is no sampling error" in str(result.summary())
    assert result.bse.to_numpy() == pytest.approx(result.arrays.noise_scale[0])
    part = opened(sampled=0.75).frame.regress(LOGISTIC, family="logistic").release(mu=1000)
    whole = opened().frame.regress(LOGISTIC, family="logistic").release(mu=1000)
    assert (part.bse / whole.bse).to_numpy() == pytest.approx(0.5, rel=0.01)


def test_units_that_may_be_excluded_leave_no_intervals() -> None:
    session = opened(budget=dpnb.Budget(epsilon=8, delta=1e-6), accounting="individual")
    result = session.frame.regress(LOGISTIC, family="logistic").release(share=0.5)
    assert result.bse.notna().all()
    later = session.frame.regress("y ~ x", family="logistic").release(mu=1.4)
    assert later.population_arrays is None
    assert "some may be excluded" in str(later.summary())


# --- what is refused --------------------------------------------------------------------------------------------------


def refused(words: str, formula: Any = LOGISTIC, session: dpnb.Session | None = None, **options: Any) -> None:
    frame = (session or opened()).frame
    with pytest.raises(PlanError, match=words):
        frame.regress(formula, **{"family": "logistic", **options})


def test_models_that_are_not_offered_are_refused_in_words() -> None:
    refused("'linear', 'logistic' or 'poisson'", family="probit")
    refused("df.fit has 'multinomial'", family="multinomial")
    refused("two values", "g ~ x")
    refused("must be public", "z ~ x")
    refused("at least 0", "x ~ z", family="poisson")
    refused("regress: a column can occur only once", "y ~ y + x")
    refused("regress: the outcome of a logistic", "g ~ x")
    refused("fixed effects", "y ~ x | person", session=persons())
    refused("not in this view", "y ~ nothing")
    refused("takes the outcome", alpha=3)
    limits = {"privacy_unit": "person", "max_groups_per_unit": 1, "max_rows_per_group": 2}
    refused("max_rows_per_unit", session=opened(table(300, 3), **limits))
    with pytest.raises(PlanError, match="bound_contributions"):
        persons().frame.bound_contributions(max_rows_per_unit=1).regress(LOGISTIC, family="logistic")


def test_a_query_is_no_result() -> None:
    query = opened().frame.regress(LOGISTIC, family="logistic")
    with pytest.raises(NotReleasedError, match="release"):
        _ = query.params
    with pytest.raises(NotReleasedError, match="not a number"):
        query + 1  # type: ignore[operator]
    with pytest.raises(RequestError, match="exactly one"):
        query.release()
    assert "one call" not in repr(query)
    assert [name for name, _ in query.explain().facts][:2] == ["steps", "standard errors"]


def test_an_engine_is_refused_in_words() -> None:
    import polars as pl

    session = opened(pl.from_pandas(TABLE).lazy())
    with pytest.raises(UnsupportedError, match="needs a table in memory"):
        session.frame.regress(LOGISTIC, family="logistic")


def test_a_rehearsal_shows_all_of_it() -> None:
    session = dpnb.Session.rehearse(name="t", budget=LIMITED, schema=SCHEMA)
    result = session.frame.regress(LOGISTIC, family="logistic").release(share=1)
    assert "REHEARSAL" in str(result)


# --- nothing of a row is observable but the noisy sums ----------------------------------------------------------------


ODD = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, 0.0]


@families
def test_no_content_of_a_row_raises_or_changes_what_is_shown_beside_the_numbers(family: str) -> None:
    """The same requests are made whatever the rows are; what they measure depends on released numbers alone."""
    ordinary = TABLE.astype({"count": float})
    odd = ordinary.copy()
    odd.loc[: len(ODD) - 1, "x"] = ODD
    odd.loc[len(ODD) : 2 * len(ODD) - 1, "count"] = ODD
    odd.loc[20:40, "g"] = None
    odd.loc[41:60, "g"] = "never declared"
    shown = []
    for frame in (ordinary, odd, ordinary[:0], odd[:1]):
        session = opened(frame, budget=LIMITED)
        result = session.frame.regress(FORMULAS[family], family=family).release(share=1)
        log = session.log
        shown.append(
            (len(log), log["query"].tolist()[:1], log["mu"].tolist(), session.headroom, result.params.index.tolist())
        )
    assert all(one == shown[0] for one in shown)


def test_what_is_measured_is_a_function_of_released_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tables with the same noisy answers lead to the same next request."""
    session = opened()
    made: list[Any] = []
    original = newton.NewtonRegression._plan

    def plan(self: Any, index: int, at: tuple[float, ...], max_slope: float | None = None) -> Any:
        found = original(self, index, at, max_slope)
        made.append(found)
        return found

    monkeypatch.setattr(newton.NewtonRegression, "_plan", plan)
    session.frame.regress(LOGISTIC, family="logistic").release(mu=1)
    for one in made:
        for part in one.aggregation.parts:
            assert isinstance(part.aggregation, ScoreSums)
            assert part.aggregation.at == tuple(round(value, 8) for value in part.aggregation.at)
