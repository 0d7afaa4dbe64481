"""Previews as text and as HTML."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np

from dpnb.accounting.exact import display_down, display_up
from dpnb.render.numbers import (
    MAX_STATISTICS,
    NO_LIMIT,
    cost_html,
    describe_error,
    error_amount,
    error_level,
    format_cost,
    format_percent_down,
    label_text,
)
from dpnb.render.page import explanation_link
from dpnb.render.tables import NOT_RELEASED, Shown, ShownPart, facts_part, shown_as, table_part
from dpnb.results.batch import BatchPreview, PlannedQuery
from dpnb.results.estimates.expected import RANK
from dpnb.results.preview import CLEAR, CountNeeded, Preview, Previews
from dpnb.schema import Key

CODE = "white-space:normal;overflow-wrap:anywhere"
"""Of code in a text: it breaks where the page is narrow."""

UNKNOWN = "unknown"

FIRST_SHARE = 0.01
"""The share of the remaining budget for which a count of rows is proposed."""

FIRST_MU = 0.02
"""The mu for which a count of rows is proposed without a budget."""


MAX_TERMS = 4
"""Largest number of terms of a regression whose errors are described one by one."""

PROBABLY_UNKNOWN = "probably unknown"

ERROR = "expected error"
COLUMNS = ("request", "cost", ERROR, "headroom after")


@shown_as(Preview)
def _preview(preview: Preview) -> Shown:
    html = {"cost": cost_html(preview.cost, preview.cost_fraction)}
    if preview.count_needed:
        html["release first"] = _first_html(preview.count_needed, preview)
    facts, links, table = _facts(preview), _links(preview), error_table(preview)
    if table is None:
        return Shown(preview.notice, preview.description, NOT_RELEASED, [facts_part(facts, 19, links=links, html=html)])
    note, errors = error_note(preview), table_part(table[0], table[1:], left=1)
    facts = [(name, note if name == ERROR else text) for name, text in facts]
    html[ERROR] = f"{errors.html}<div>{escape(note)}</div>"
    below = [name for name, _ in facts].index(ERROR) + 1
    lines = [*facts_part(facts[:below], 19).lines, *errors.lines, *facts_part(facts[below:], 19).lines]
    shown = ShownPart(lines, facts_part(facts, 19, links=links, html=html).html)
    return Shown(preview.notice, preview.description, NOT_RELEASED, [shown])


@shown_as(Previews)
def _previews(previews: Previews) -> Shown:
    first, rows, html = previews.previews[0], [*map(_row, previews.previews)], []
    for preview, row in zip(previews.previews, rows, strict=True):
        links = _links(preview)
        html.append([escape(text) + links.get(name, "") for name, text in zip(COLUMNS, row, strict=True)])
    html[0][1] = cost_html(first.cost, first.cost_fraction)  # the loss is explained once
    parts = [table_part(COLUMNS, rows, html=html)]
    helps = map(needed_words, reversed(previews.previews)) if first.clearness is not None else ()
    if needed := next(filter(None, helps), None):
        below = f"<div>What helps: {escape(needed)}</div>"
        parts.append(ShownPart([f"  what helps: {needed}"], below))
    if count := first.count_needed:
        below = f"<div>Release first: {_first_html(count, first)}</div>"
        parts.append(ShownPart([f"  release first: {_first_text(count, first)}"], below))
    for heading, text in first.left_out:
        below = f"<div>{escape(heading.capitalize())}: {escape(text)}</div>"
        parts.append(ShownPart([f"  {heading}: {text}"], below))
    return Shown(first.notice, first.description, NOT_RELEASED, parts)


def describe_expected_error(preview: Preview) -> str:
    """A short description of the expected errors: of the worst group, or of each statistic; and their assumption."""
    if preview.half_widths is None:
        return UNKNOWN
    text = error_words(preview)
    if preview.gain is not None and preview.current_half_widths is not None:
        if preview.narrows_interval:
            outputs, (current,) = _described(preview, preview.current_half_widths)
            most = MAX_STATISTICS if outputs is preview.outputs else MAX_TERMS
            now = error_amount(current, outputs, units=preview.output_units, most=most)
            now = now if np.isfinite(current).any() else "unknown"
            text = f"now {now} -> {text}"
        elif text != UNKNOWN:
            text += ", no narrower than the current noise interval"
    if preview.clearness is not None and preview.doubt == "possible" and text != UNKNOWN:
        text += ", or unknown if predictors are closely related"
    return text if text in (UNKNOWN, PROBABLY_UNKNOWN) else text + explained(preview)


def needed_words(preview: Preview) -> str | None:
    """What makes the coefficients of a regression known, where they may be unknown; None elsewhere."""
    if not preview.doubt or not preview.clearness:
        return None
    times = CLEAR / preview.clearness
    more, share = f"mu={display_up(times * preview.total_loss.mu, 2)}", preview.cost_fraction * times**2
    if preview.has_budget:
        more += f" ({100 * share:.2g}% of the budget)" if share < 1 else f" ({share:.2g} times the whole budget)"
    return (
        "fewer predictors, or predictors with narrower bounds, as by .clip(low, high): their variation has to be clear "
        f"of the noise; or more budget, about {more}"
    )


MAX_IN_A_LINE = 3
"""Most statistics whose errors are a sentence; those of more are a table."""

FEW = 2
"""Statistics whose errors stand for those of many, where there is room for one line."""

MAX_ROWS = 20
"""Most rows of a table of errors."""


def error_table(preview: Preview) -> list[list[str]] | None:
    """The expected errors as a table, with its head: of every statistic of every column, or of many statistics.

    None where they are a sentence.
    """
    outputs, errors = preview.outputs, preview.half_widths
    if errors is None or outputs is None or outputs[0] != "statistic" or len(outputs[1]) <= MAX_IN_A_LINE:
        return None
    labels = [*map(label_text, outputs[1])]
    lows = [None] * len(labels) if preview.least_half_widths is None else preview.least_half_widths.T
    texts = [error_amount(column, None, low) for column, low in zip(errors.T, lows, strict=True)]
    if preview.layout is not None:
        names, statistics = preview.layout
        many = len(statistics)
        rows = [[name, *texts[at * many : (at + 1) * many]] for at, name in enumerate(names)]
        return [["column", *statistics], *rows[:MAX_ROWS]]
    units = preview.output_units or (None,) * len(labels)
    rows = [
        [label, f"{text} {unit}" if unit and text != UNKNOWN else text]
        for label, text, unit in zip(labels, texts, units, strict=True)
    ]
    return [["statistic", "expected error"], *rows[:MAX_ROWS]]


def error_note(preview: Preview) -> str:
    """What the errors of `error_table` are, and what they assume."""
    text = error_level(preview.confidence).strip()
    rows, in_rank = len(preview.outputs[1]) if preview.outputs else 0, ""
    if preview.layout is not None:
        (names, statistics), units = preview.layout, preview.output_units
        rows = len(names)
        ranked = [name for name, unit in zip(statistics, units, strict=False) if unit]
        in_rank = f"; {', '.join(ranked)} in {RANK}" if ranked else ""
    more = f", and of {rows - MAX_ROWS:,} more" if rows > MAX_ROWS else ""
    wide = "" if preview.gain is None or preview.narrows_interval else ", no narrower than the current noise intervals"
    return f"{text}{more}{in_rank}{wide}{explained(preview)}"


def explained(preview: Preview | PlannedQuery) -> str:
    """What the expected errors leave out and what they assume, as clauses after them."""
    note = f", {preview.rank_note}" if preview.rank_note is not None else ""
    return note + (f", assuming that {preview.assumed_description}" if preview.assumed_description else "")


def error_words(preview: Preview, most: int = MAX_STATISTICS) -> str:
    """The expected errors alone: of the worst group, or of each of the first statistics."""
    if preview.half_widths is None:
        return UNKNOWN
    if preview.clearness is not None and preview.doubt == "probable" and np.isfinite(preview.half_widths).any():
        return PROBABLY_UNKNOWN
    outputs, widths, least = preview.outputs, preview.half_widths, preview.least_half_widths
    is_regression = outputs is not None and outputs[0] == "term"
    if is_regression:
        outputs, (widths, least) = _described(preview, widths, least)
    if is_regression and not np.isfinite(widths).any():
        return UNKNOWN
    return describe_error(
        widths,
        outputs,
        preview.confidence,
        preview.error_unit,
        least=least,
        units=preview.output_units,
        most=min(most, MAX_TERMS) if is_regression else most,
    )


def _described(preview: Preview, *errors: Any) -> tuple[tuple[str, tuple[Key, ...]] | None, list[Any]]:
    """The outputs whose errors are described: of a regression each term alone, and not the intercept.

    The intercept is the mean where all columns are 0, which may be far from any row, and has the largest error.
    """
    outputs = preview.outputs
    if outputs is None or outputs[0] != "term":
        return outputs, [*errors]
    first = int(len(outputs[1]) > 1 and str(outputs[1][0]).lower() == "intercept")
    shown = [None if one is None else one[:, first:] for one in errors]
    return ("statistic", outputs[1][first:]), shown


def in_one_release(preview: Preview) -> str | None:
    """What one release at the total loss would have given; None except for a refinement of which it is known."""
    errors = preview.half_widths_in_one_release
    if errors is None or not np.isfinite(errors).any():
        return None
    rank = f" {RANK}" if preview.error_unit == RANK else ""
    most = MAX_STATISTICS if error_table(preview) is None else FEW
    outputs, (errors,) = _described(preview, errors)
    amount = error_amount(errors, outputs, units=preview.output_units, most=most)
    return f"{amount}{rank} at {preview.total_loss.words}"


def _first_text(count: CountNeeded, preview: Preview) -> str:
    """The count after which the expected error is known, with code that releases it."""
    what = "the expected error is known" if len(preview.outputs[1] if preview.outputs else ()) <= 1 else "more is known"
    return f"the {count.description}, after which {what}: {_first_code(count, preview)}"


def _first_html(count: CountNeeded, preview: Preview) -> str:
    text, code = _first_text(count, preview), _first_code(count, preview)
    return f'{escape(text.removesuffix(code))}<code style="{CODE}">{escape(code)}</code>'


def _first_code(count: CountNeeded, preview: Preview) -> str:
    target = f"share={FIRST_SHARE:g}" if preview.has_budget else f"mu={FIRST_MU:g}"
    return f"{count.code or 'query.count_needed'}.release({target})"


def _row(preview: Preview) -> tuple[str, ...]:
    after = f"{format_percent_down(preview.headroom_after)} left" if preview.has_budget else NO_LIMIT
    after = after if preview.fits else "would be refused"
    many = error_table(preview) is not None
    error = error_words(preview, FEW) if many else describe_expected_error(preview)
    return preview.request, format_cost(preview.cost, preview.cost_fraction), error, after


def _links(preview: Preview) -> dict[str, str]:
    """Links to explanations, keyed by the fact or column that they explain."""
    ids = {
        ERROR: "error-estimate-unavailable" if describe_expected_error(preview) == UNKNOWN else "",
        "headroom after": "" if preview.fits else "budget-exceeded",
        "participation": "excluded-units" if preview.participation else "",
    }
    return {name: explanation_link(explanation) for name, explanation in ids.items() if explanation}


def _facts(preview: Preview) -> list[tuple[str, str]]:
    facts = [
        ("cost", format_cost(preview.cost, preview.cost_fraction)),
        (ERROR, describe_expected_error(preview)),
    ]
    if preview.cost.mu_squared and preview.cost.mu_squared < preview.total_loss.mu_squared:
        total = preview.total_loss.words
        combined = f"combined with earlier observations, to a total of {total}; only the difference is charged"
        facts.insert(1, ("refinement", combined))
        once = in_one_release(preview)
        facts[3:3] = [("in one release", once)] if once else []
    if preview.parts:
        facts.insert(1, ("divided among", "; then ".join(f"{name}: {price}" for name, price in preview.parts)))
    if preview.clearness is not None and (needed := needed_words(preview)) is not None:
        facts.append(("what helps", needed))
    if preview.count_needed:
        facts.append(("release first", _first_text(preview.count_needed, preview)))
    elif preview.assumption:
        facts.append(("computed from", preview.assumption))
    facts += [("contribution", preview.contribution), *preview.left_out]
    if preview.participation:
        facts.append(("participation", preview.participation))
    facts += headroom_facts(preview)
    if preview.has_budget and preview.fits:
        if preview.max_repetitions is not None and not preview.participation:
            times = f"{preview.max_repetitions:,} time{'s' if preview.max_repetitions != 1 else ''}"
            facts.append(("affordable", f"{times} at this cost"))
        if preview.refinement_note:
            facts.append(("refining later", preview.refinement_note))
    return facts


def headroom_facts(preview: Preview | BatchPreview) -> list[tuple[str, str]]:
    """What would remain, or what would fit."""
    if math.isnan(preview.headroom_after):
        return [("headroom after", NO_LIMIT)]
    if preview.fits:
        return [("headroom after", f"{format_percent_down(preview.headroom_after)} of the budget")]
    largest = f"mu {display_down(preview.max_mu)}, or share=1" if preview.max_mu else "nothing is left"
    return [("headroom after", "does not fit: a release would be refused"), ("largest that fits", largest)]
