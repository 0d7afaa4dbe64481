"""Results of whole studies as text and HTML: regressions, hypothesis tests, survival, the first table."""

from __future__ import annotations

import math
from html import escape

from dpnb.render.answers import estimates_html, estimates_text, footer
from dpnb.render.numbers import format_cost, format_number, format_time, number_with_interval
from dpnb.render.page import FAINT
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
    table_latex,
    table_markdown,
    table_part,
)
from dpnb.results.display import to_html, to_latex, to_markdown, to_text
from dpnb.results.estimates.noisy import Cells
from dpnb.results.regression import RegressionResult
from dpnb.results.survival import SurvivalAnswer
from dpnb.results.table_one import TableOne, TableRow
from dpnb.results.tables.regression_methods import RegressionSummary
from dpnb.results.tables.table import Estimates
from dpnb.results.testing import HypothesisTest

LABELS = {"mean": "{}, mean (sd)", "median": "{}, median (quartiles)", "share": "{}: {}, %"}

WHOLE = 10.0
"""An error of which two significant digits are those of whole numbers."""

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


@to_text.register
def _text(answer: SurvivalAnswer) -> str:
    return "\n".join([estimates_text(answer), *(f"  {line}" for line in _summaries(answer))])


@to_html.register
def _html(answer: SurvivalAnswer) -> str:
    lines = "".join(f"<div>{escape(line)}</div>" for line in _summaries(answer))
    return estimates_html(answer, f'<div style="{FAINT}">{lines}</div>')


@footer.register
def _footer(answer: SurvivalAnswer) -> list[str]:
    cost = f"cost {format_cost(answer.cost, answer.cost_fraction)}"
    return [cost, f"requested {format_time(answer.time)} UTC", *footer.dispatch(Estimates)(answer)]


def _summaries(answer: SurvivalAnswer) -> list[str]:
    """The medians and the test, each in a line."""
    median = answer.median()
    kind = "population" if median.has_population_intervals else "noise"
    ends = population_texts(median) or [interval for _, _, interval in rows_of(median)]
    lines = [
        f"median{f' of {chr(44).join(label)}' if label else ''}: {value}, {kind} interval {interval}"
        for (label, value, _), interval in zip(rows_of(median), ends, strict=True)
    ]
    if len(answer.keys) > 1 and answer.has_population_intervals:
        test = answer.test()
        lines.append(f"log-rank test of the groups: {test.decision}; .test() has the p-value")
    return lines


@shown_as(TableOne)
def _shown(table: TableOne) -> Shown:
    head, rows = _table(table)
    parts = [table_part(head, rows, left=1), remark_part("; ".join(footer(table)))]
    return Shown(table.notice, table.description, "", parts)


@to_markdown.register
def _markdown(table: TableOne) -> str:
    return table_markdown(*_table(table), left=1)


@to_latex.register
def _latex(table: TableOne) -> str:
    return table_latex(*_table(table), left=1)


# --- the cells of the table -------------------------------------------------------------------------------------------


def _table(table: TableOne) -> tuple[list[str], list[list[str]]]:
    """Head and rows: a column for each group, and for each difference one with its interval and a standardized one."""
    groups = [str(key[0]) for key in table.keys] if table.names else ["all"]
    head, differences = [table.names[0] if table.names else "", *groups], table.differences
    for key, found in differences.items():
        named = interval_name if found.population_arrays is None else population_name
        head += [f"{key} - {table.reference} ({named(found)})", "SMD"]
    displayed = table.shown  # each is computed once: there may be a million cells
    compared = [(_ends(found), table.standardized(key).tolist()) for key, found in differences.items()]
    rows = []
    for row in table.rows:
        label = LABELS.get(row.kind, "n").format(row.variable, row.level)
        cells = [label, *_cells(row, displayed[:, row.at], max(_errors(table, row.at[0]), default=math.nan))]
        for ends, standardized in compared:
            smd = standardized[row.at[0]]
            cells += [_difference(*ends[row.at[0]], row.kind), "" if math.isnan(smd) else f"{smd:.2f}"]
        rows.append(cells)
    return head, rows


def _cells(row: TableRow, numbers: Cells, error: float) -> list[str]:
    """The numbers of each group, to the digits that the longest interval in the row leaves significant."""
    times = 100.0 if row.kind == "share" else 1.0
    error = max(times * error, WHOLE) if row.kind == "n" else times * error
    cells = []
    for value, *others in (times * numbers).tolist():
        text, texts = format_number(value, error), [format_number(other, error) for other in others]
        cells.append(f"{text} ({', '.join(texts)})" if texts else text)
    return cells


def _errors(table: TableOne, at: int) -> list[float]:
    """Half of the lengths of the intervals of a statistic, without the unknown ones."""
    kinds = [table.arrays, *([] if table.population_arrays is None else [table.population_arrays])]
    columns = [arrays.select(slice(None), slice(at, at + 1)) for arrays in kinds]
    lengths = [length for arrays in columns for length in arrays.half_width[~columns[0].is_unknown].tolist()]
    return [length for length in lengths if math.isfinite(length)]


def _ends(found: Estimates) -> list[tuple[float, float, float]]:
    """Each difference with the ends of the interval that the head names."""
    arrays = found.arrays if found.population_arrays is None else found.population_arrays
    columns = (arrays.displayed[0], arrays.low[0], arrays.high[0])
    return list(zip(*(column.tolist() for column in columns), strict=True))


def _difference(value: float, low: float, high: float, kind: str) -> str:
    """A difference with its interval."""
    if kind == "n":
        return ""
    if math.isnan(value) or math.isnan(low):
        return "unknown"
    times = 100.0 if kind == "share" else 1.0
    text, interval = number_with_interval(times * value, times * low, times * high)
    return f"{text} ({interval})"


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
