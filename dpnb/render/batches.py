"""Batches and their previews, as text and as HTML."""

from __future__ import annotations

import math
from dataclasses import replace
from html import escape

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
from dpnb.render.page import FAINT, box_html, title_html, with_notice
from dpnb.render.tables import facts_html, facts_text, rows_of, table_html, table_text
from dpnb.results.answer import Answer
from dpnb.results.batch import BatchAnswer, BatchPreview, PlannedQuery
from dpnb.results.display import to_html, to_text
from dpnb.results.reconciled import OLD_INTERVALS, ReconciledEstimates, Reconciliation
from dpnb.results.tables.table import Estimates

PLANNED = ("query", "expected error", "separately")
ANSWERED = ("query", "answer", "error")
RECONCILED = "reconciled with other answers, at no further cost"


@to_text.register
def batch_preview_text(preview: BatchPreview) -> str:
    """The preview for a terminal."""
    rows = [_planned_row(preview, query) for query in preview.queries]
    lines = [
        f"{preview.description} (not released)",
        *facts_text(_facts(preview), 19, indent="  "),
        *table_text([PLANNED, *rows], left=(0,), indent="  "),
    ]
    return with_notice(preview.notice, lines)


@to_html.register
def batch_preview_html(preview: BatchPreview) -> str:
    """The preview for a notebook."""
    rows = [[escape(text) for text in _planned_row(preview, query)] for query in preview.queries]
    title = title_html(preview.description, "not released")
    html = {"cost": cost_html(preview.cost, preview.cost_fraction)}
    return box_html(preview.notice, title, facts_html(_facts(preview), {}, html), table_html(PLANNED, rows, left=1))


@to_text.register
def batch_text(batch: BatchAnswer) -> str:
    """The answers of a batch for a terminal."""
    table = table_text([ANSWERED, *map(_answered_row, batch.answers)], left=(0,), indent="  ")
    return with_notice(batch.notice, [batch.description, *table, f"  {_footer(batch)}"])


@to_html.register
def batch_html(batch: BatchAnswer) -> str:
    """The answers of a batch for a notebook."""
    rows = [[escape(text) for text in _answered_row(answer)] for answer in batch.answers]
    below = f'<div style="{FAINT}">{escape(_footer(batch))}</div>'
    return box_html(batch.notice, title_html(batch.description), table_html(ANSWERED, rows, left=1), below)


def _planned_row(preview: BatchPreview, query: PlannedQuery) -> tuple[str, str, str]:
    error = "unknown"
    if query.half_widths is not None:
        error = describe_error(query.half_widths, query.outputs, preview.confidence, query.error_unit)
        error += f", {query.rank_note}" if query.rank_note is not None and error != "unknown" else ""
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
    cost = format_cost(batch.cost, batch.cost_fraction)
    return (
        f"cost {cost}, {_tables(batch.n_tables)} measured; requested {format_time(batch.time)} UTC; {_adds_up(batch)}"
    )


def _adds_up(batch: BatchAnswer) -> str:
    confidence = percent(batch.answers[0].confidence)
    return f"each answer is batch[0], batch[1], ...; {NOISE_INTERVAL}s at {confidence}"


def _tables(count: int) -> str:
    return f"{count} table{'s' if count != 1 else ''}"


def _facts(preview: BatchPreview) -> list[tuple[str, str]]:
    separate = format_percent_first(preview.separate_cost, preview.separate_fraction)
    saving = float(np.floor(preview.saving * 100 + 1e-6) / 100)  # 1 although the cost was rounded up
    facts = [
        ("cost", f"{format_cost(preview.cost, preview.cost_fraction)}"),
        ("separately", f"{separate} for the same errors, {saving:.2f} times as much"),
        ("measures", _tables(preview.n_tables)),
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
