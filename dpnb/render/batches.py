"""Batches and their previews, as text and as HTML."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from dpnb._protocol.glossary import NOISE_INTERVAL
from dpnb.accounting.exact import display_down
from dpnb.render.answers import footer
from dpnb.render.numbers import (
    NO_LIMIT,
    cost_html,
    describe_error,
    format_cost,
    format_percent_down,
    format_percent_first,
    format_time,
    percent,
)
from dpnb.render.page import box_html, with_notice
from dpnb.render.previews import explained
from dpnb.render.tables import NOT_RELEASED, Shown, facts_part, remark_part, rows_of, shown_as, table_part
from dpnb.results.answer import Answer
from dpnb.results.batch import BatchAnswer, BatchPreview, PlannedQuery
from dpnb.results.display import to_html, to_text
from dpnb.results.reconciled import OLD_INTERVALS, ReconciledEstimates, Reconciliation
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
    facts = [
        ("cost", f"{format_cost(preview.cost, preview.cost_fraction)}"),
        ("separately", f"{separate} for the same errors, {saving:.2f} times as much"),
        ("measures", _tables(preview.n_tables)),
        *preview.left_out,
    ]
    if math.isnan(preview.headroom_after):
        facts.append(("headroom after", NO_LIMIT))
    elif preview.fits:
        facts.append(("headroom after", f"{format_percent_down(preview.headroom_after)} of the budget"))
    else:
        facts.append(("headroom after", "does not fit: a release would be refused"))
        largest = f"mu {display_down(preview.max_mu)}, or share=1" if preview.max_mu else "nothing is left"
        facts.append(("largest that fits", largest))
    return facts


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
