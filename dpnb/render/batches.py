"""Batches, selections and their previews, as text and as HTML."""

from __future__ import annotations

from dataclasses import replace
from html import escape

import numpy as np

from dpnb._browser.glossary import IN_THIS_TABLE, NOISE_INTERVAL
from dpnb.accounting.exact import decimal_sqrt_down, display_down, display_up
from dpnb.render.answers import footer
from dpnb.render.numbers import (
    FREE,
    NO_LIMIT,
    cost_html,
    describe_error,
    error_level,
    format_cost,
    format_percent_down,
    format_percent_first,
    format_time,
    percent,
)
from dpnb.render.page import box_html, with_notice
from dpnb.render.previews import explained, headroom_facts
from dpnb.render.tables import (
    NOT_RELEASED,
    WIDTH,
    Shown,
    ShownPart,
    facts_part,
    remark_part,
    rows_of,
    shown_as,
    table_html,
    table_part,
    table_text,
)
from dpnb.results.answer import Answer
from dpnb.results.batch import BatchAnswer, BatchPreview, PlannedQuery
from dpnb.results.display import to_html, to_text
from dpnb.results.reconciled import OLD_INTERVALS, ReconciledEstimates, Reconciliation
from dpnb.results.selection import SelectedGroups, SelectionPreview, SelectionPreviews
from dpnb.results.tables.intervals import ThresholdResult
from dpnb.results.tables.table import Estimates

PLANNED = ("query", "expected error", "separately")
ANSWERED = ("query", "answer", "error")
RECONCILED = "reconciled with other answers, at no further cost"


@shown_as(BatchPreview)
def _batch_preview(preview: BatchPreview) -> Shown:
    rows = [_planned_row(preview, query) for query in preview.queries]
    html = {"cost": cost_html(preview.cost, preview.cost_fraction)}
    parts = [facts_part(_facts(preview), 19, html=html), table_part(PLANNED, rows, left=1)]
    return Shown(preview.notice, preview.description, NOT_RELEASED, parts)


@shown_as(BatchAnswer)
def _batch(batch: BatchAnswer) -> Shown:
    parts = [table_part(ANSWERED, [*map(_answered_row, batch.answers)], left=1), remark_part(_footer(batch))]
    return Shown(batch.notice, batch.description, "", parts)


def _planned_row(preview: BatchPreview, query: PlannedQuery) -> tuple[str, str, str]:
    error = "unknown"
    if query.half_widths is not None:
        error = describe_error(
            query.half_widths,
            query.outputs,
            preview.confidence,
            query.error_unit,
            least=query.least_half_widths,
            units=query.output_units,
        )
        error += explained(query) if error != "unknown" else ""
    return query.description, error, query.loss.words


def _answered_row(answer: Answer) -> tuple[str, str, str]:
    error = describe_error(answer.arrays.half_width, answer.outputs, answer.confidence)
    if answer.is_scalar:
        ((_, value, interval),) = rows_of(answer)
        return answer.description, f"{value} ({interval})", error
    n_groups, n_outputs = answer.arrays.value.shape
    groups = f"{n_groups:,} groups" if answer.names else ""
    values = f"{n_outputs} values" if answer.outputs else ""
    return answer.description, ", ".join(filter(None, (groups, values))), error


def _footer(batch: BatchAnswer) -> str:
    cost, confidence = format_cost(batch.cost, batch.cost_fraction), percent(batch.answers[0].confidence)
    uncounted = dict.fromkeys(f"; {answer.uncounted}" for answer in batch.answers if answer.uncounted is not None)
    return (
        f"cost {cost}, {_tables(batch.n_tables)} measured; requested {format_time(batch.time)} UTC; each answer is "
        f"batch[0], batch[1], ...; {NOISE_INTERVAL}s at {confidence}{''.join(uncounted)}"
    )


def _tables(count: int) -> str:
    return f"{count} table{'s' if count != 1 else ''}"


def _facts(preview: BatchPreview) -> list[tuple[str, str]]:
    separate = format_percent_first(preview.separate_cost, preview.separate_fraction)
    saving = float(np.floor(preview.saving * 100 + 1e-6) / 100)  # 1 although the cost was rounded up
    return [
        ("cost", f"{format_cost(preview.cost, preview.cost_fraction)}"),
        ("separately", f"{separate} for the same errors, {saving:.2f} times as much"),
        ("measures", _tables(preview.n_tables)),
        *preview.left_out,
        *headroom_facts(preview),
    ]


@to_text.register
def reconciliation_text(reconciled: Reconciliation) -> str:
    """Reconciled estimates for a terminal."""
    return with_notice(reconciled.notice, [to_text(replace(one, notice=None)) for one in reconciled.estimates])


@to_html.register
def reconciliation_html(reconciled: Reconciliation) -> str:
    """Reconciled estimates for a notebook."""
    return box_html(reconciled.notice, "", *(to_html(replace(one, notice=None)) for one in reconciled.estimates))


@footer.register
def _reconciled_footer(estimates: ReconciledEstimates) -> list[str]:
    return [RECONCILED, *footer.dispatch(Estimates)(estimates), OLD_INTERVALS]


# --- results of above-threshold mechanisms as text and as HTML --------------------------------------------------------


def _sentence(result: ThresholdResult) -> str:
    text = f"{result.description}: {'above' if result.above else 'below'} {result.threshold:g} {IN_THIS_TABLE}"
    if result.value is not None and result.half_width is not None:
        text += f"; about {result.value:.4g} ± {display_up(result.half_width, 2)}{error_level(result.confidence)}"
    return text


to_text.register(ThresholdResult, lambda result: with_notice(result.notice, [_sentence(result)]))
to_html.register(ThresholdResult, lambda result: box_html(result.notice, escape(_sentence(result))))


# --- selections and their previews as text and as HTML ----------------------------------------------------------------


MAX_KEYS = 50
"""Number of keys that are shown."""

KEYS_ONLY = "keys only, without counts"

COLUMNS = ("request", "cost", "may fall short by", "by all counts instead", "headroom after")


@shown_as(SelectedGroups)
def _selected(selected: SelectedGroups) -> Shown:
    keys = [*map(_key, selected.keys[:MAX_KEYS])]
    more = len(selected) - len(keys)
    lines = table_text([(f"{number}.", key) for number, key in enumerate(keys, start=1)], left=(1,), indent="  ")
    cells = [(str(number), escape(key)) for number, key in enumerate(keys, start=1)]
    parts = [ShownPart(lines, table_html(("", ", ".join(selected.names)), cells, left=2))]
    if more:
        parts.append(ShownPart([f"  and {more:,} more"], f"<div>and {more:,} more</div>"))
    return Shown(
        selected.notice, selected.description, KEYS_ONLY, [*parts, facts_part(_result_facts(selected), 10, WIDTH)]
    )


@shown_as(SelectionPreview)
def _preview(preview: SelectionPreview) -> Shown:
    return Shown(preview.notice, preview.description, NOT_RELEASED, [facts_part(_preview_facts(preview), 14, WIDTH)])


@shown_as(SelectionPreviews)
def _previews(previews: SelectionPreviews) -> Shown:
    return Shown(
        previews[0].notice, previews[0].description, NOT_RELEASED, [table_part(COLUMNS, [*map(_row, previews)])]
    )


def _key(key: object) -> str:
    """A key as text; of several levels, all of them."""
    return ", ".join(map(str, key)) if isinstance(key, tuple) else str(key)


def _result_facts(selected: SelectedGroups) -> list[tuple[str, str]]:
    counts = f"a second query: {selected.code}" if selected.code else "a second query, with keys=[...] of these groups"
    return [
        ("order", f"close groups may be swapped or replaced: {selected.reliability}"),
        ("by", selected.mechanism),
        ("cost", selected.cost_text),
        ("counts", counts),
        *selected.left_out,
    ]


def _preview_facts(preview: SelectionPreview) -> list[tuple[str, str]]:
    facts = [
        ("cost", FREE if preview.is_known else preview.cost_text or f"{preview.loss.words}, which does not fit"),
        ("reliable", f"{preview.reliability}; among {preview.groups:,} groups"),
        ("by", preview.mechanism),
        ("returns", f"{KEYS_ONLY}, which are a second query"),
        *preview.left_out,
    ]
    if preview.counts_loss is not None and preview.counts_shortfall is not None:
        mu = display_down(decimal_sqrt_down(preview.counts_loss.mu_squared))  # rounded up it would cost more
        text = f"the counts of all groups at the same cost, .release(mu={mu}) of the counts, "
        text += f"rank the groups within {display_up(preview.counts_shortfall, 3)} {preview.unit}, and include values"
        facts.append(("instead", text))
    if preview.refusal is not None:
        return [*facts, ("refused", preview.refusal)]
    return [
        *facts,
        (
            "remaining",
            f"{format_percent_down(preview.headroom_after)} of the budget afterwards"
            if preview.has_budget
            else NO_LIMIT,
        ),
    ]


def _row(preview: SelectionPreview) -> tuple[str, ...]:
    request = f"epsilon={display_up(float(preview.epsilon))}"
    number = display_up(preview.shortfall, 3)
    unit = preview.unit.removesuffix("s") if number == "1" else preview.unit
    width = f"{number} {unit}{error_level(preview.confidence)}"
    counts = "" if preview.counts_shortfall is None else f"{display_up(preview.counts_shortfall, 3)} {preview.unit}"
    cost = "free" if preview.is_known else preview.cost_text or "refused"
    after = (
        "no budget"
        if not preview.has_budget
        else format_percent_down(preview.headroom_after)
        if preview.fits
        else "does not fit"
    )
    return request, cost, width, counts, after
