"""Selections, their previews, and results of above-threshold mechanisms, as text and as HTML."""

from __future__ import annotations

from html import escape

from dpnb._protocol.glossary import IN_THIS_TABLE
from dpnb.accounting.exact import decimal_sqrt_down, display_down, display_up
from dpnb.render.numbers import FREE, NO_LIMIT, error_level, format_percent_down
from dpnb.render.page import box_html, with_notice
from dpnb.render.tables import (
    NOT_RELEASED,
    WIDTH,
    Shown,
    ShownPart,
    facts_part,
    shown_as,
    table_html,
    table_part,
    table_text,
)
from dpnb.results.display import to_html, to_text
from dpnb.results.selection import SelectedGroups, SelectionPreview, SelectionPreviews
from dpnb.results.tables.comparison import ThresholdResult

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
    return Shown(selected.notice, selected.description, KEYS_ONLY, [*parts, facts_part(_result_facts(selected), 10, WIDTH)])


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
