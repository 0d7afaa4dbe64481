"""Summaries of regressions, with a row for each coefficient, and hypothesis tests, as text and HTML."""

from __future__ import annotations

import math

from dpnb.render.answers import footer
from dpnb.render.numbers import format_cost, format_number
from dpnb.render.tables import (
    WIDTH,
    Shown,
    facts_part,
    interval_name,
    population_name,
    population_texts,
    remark_part,
    rows_of,
    shown_as,
    table_part,
)
from dpnb.results.regression import RegressionResult, RegressionSummary
from dpnb.results.tables.table import Estimates
from dpnb.results.testing.hypothesis import HypothesisTest

FACTS_AT = 23
"""The column at which the facts of a summary start."""

LINKS = {
    "logistic": "logit: exp(coef) is the odds ratio for one more of the term",
    "poisson": "log: exp(coef) is the ratio of means for one more of the term",
}

TESTS_HOLD = (
    "covers the sampling of the units and the noise, for a hypothesis that was fixed beforehand; costs nothing",
)
"""What is said of every test."""

LEAST = 0.001
"""Smaller p-values are shown as smaller than this: the normal approximation is not exact enough for more."""


@shown_as(RegressionSummary)
def _summary(summary: RegressionSummary) -> Shown:
    result = summary.result
    numbers = result.numbers
    facts = [("model", f"{numbers.family} regression of {numbers.outcome}")]
    if numbers.family in LINKS:
        facts.append(("link", LINKS[numbers.family]))
    singles = (
        (f"number of {numbers.nobs_words}", numbers.nobs),
        ("R-squared", numbers.rsquared),
        ("residual variance", numbers.residual_variance),
    )
    for name, arrays in singles:
        if arrays is not None:
            facts.append((name, _single(result, name, arrays)))
    if numbers.units is not None:
        facts.append(("number of units", f"{numbers.units:,} in the whole table (declared)"))
    facts.append(("standard errors", numbers.errors))
    if numbers.unknown:
        facts.append(("unknown", numbers.unknown))
    head, rows = _coefficients(result)
    tests = ["no tests: the answer was refined, perhaps because of what it showed"] if result.is_refined else []
    remarks = [*numbers.notes, *tests, *footer(result)]
    parts = [facts_part(facts, FACTS_AT, WIDTH), table_part(head, rows, left=1), *map(remark_part, remarks)]
    return Shown(result.notice, result.description, "", parts)


@shown_as(HypothesisTest)
def _test(test: HypothesisTest) -> Shown:
    facts = [("method", test.method)]
    if math.isfinite(test.statistic):
        freedom = "" if test.df is None else f" with {test.df:,} degree{'' if test.df == 1 else 's'} of freedom"
        facts.append(("statistic", f"{'z' if test.df is None else 'chi-square'} = {test.statistic:.2f}{freedom}"))
        facts.append(("p-value", _p_text(test.pvalue)))
    facts.append(("outcome", test.decision))
    estimate = test.estimate
    if estimate is not None:
        ((_, value, _),), ends = rows_of(estimate), population_texts(estimate)
        facts.append(("estimate", f"{value} ({population_name(estimate)} {ends[0]})" if ends else value))
    remarks = [remark_part(remark) for remark in (*test.remarks, *TESTS_HOLD)]
    return Shown(test.notice, f"null hypothesis: {test.null}", "", [facts_part(facts, FACTS_AT, WIDTH), *remarks])


def _single(result: Estimates, name: str, arrays: object) -> str:
    one = result._single(arrays, name)  # type: ignore[attr-defined]  # a regression
    ((_, value, interval),) = rows_of(one)
    return f"{value} ({interval_name(one)} {interval})" if one.arrays.noise_scale[0, 0] else value


def _coefficients(result: Estimates) -> tuple[list[str], list[list[str]]]:
    numbers = result.numbers  # type: ignore[attr-defined]  # a regression
    errors = numbers.standard_errors
    tested = errors is not None and not result.is_refined
    ends = population_texts(result)
    head = ["term", "coef", *(["std err"] if errors is not None else []), *(["z", "P>|z|"] if tested else [])]
    head += [*([population_name(result)] if ends else []), *([interval_name(result)] if result.has_intervals else [])]
    rows = []
    for index, (term, (_, value, interval)) in enumerate(zip(numbers.terms, rows_of(result), strict=True)):
        row = [term.name, value]
        known = math.isfinite(result.arrays.displayed[0, index])
        if errors is not None:
            error = float(errors[index])
            row.append(format_number(error, error) if known else "")
            if tested:
                z = float(result.arrays.displayed[0, index]) / error if known and error else math.nan
                row += [f"{z:.2f}", _p_value(z)] if math.isfinite(z) else ["", ""]
        rows.append([*row, *([ends[index]] if ends else []), *([interval] if result.has_intervals else [])])
    return head, rows


def _p_value(z: float) -> str:
    return _p_text(math.erfc(abs(z) / math.sqrt(2)))


def _p_text(p: float) -> str:
    return f"<{LEAST:g}" if p < LEAST else f"{p:.3f}"


@footer.register
def _result_footer(result: RegressionResult) -> list[str]:
    return [f"cost {format_cost(result.cost, result.cost_fraction)}", *footer.dispatch(Estimates)(result)]
