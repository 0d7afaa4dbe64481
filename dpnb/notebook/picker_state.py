"""What the budget picker shows: for each budget that its slider can be put on, what a release would cost and give.

All of it is worked out here, in advance: the browser looks up and shows, so that the slider answers at once, also while
the kernel is busy.  Made of previews, which are free.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from decimal import ROUND_FLOOR, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
from IPython.lib.pretty import pretty

from dpnb._core.query import Query
from dpnb._protocol.picker import (
    VERSION,
    Option,
    PickerRefusal,
    PickerState,
    Preset,
    RenderedAnswer,
    Unanswered,
)
from dpnb.accounting.exact import decimal_sqrt_down, to_text
from dpnb.errors import BudgetExceeded, DpnbError
from dpnb.render.answers import estimates_html, estimates_text
from dpnb.render.explanations import explanation_for
from dpnb.render.numbers import format_cost, format_mu_up, format_percent_down, percent
from dpnb.render.previews import describe_expected_error
from dpnb.results.answer import Answer
from dpnb.results.estimates.expected import RANK
from dpnb.results.preview import Preview

STEPS = 40
MANY = 1000
"""Groups; with more of them there are fewer steps, since each is a preview of them all."""
DECADES = 2
"""The least budget on the slider is this many powers of ten below all that is left."""

PRESETS = (
    ("glance", "A first glance", 0.01),
    ("talk", "A figure for a talk", 0.05),
    ("print", "A figure for print", 0.2),
)
"""Name, label, and the share of what is left that it takes at most."""

ALL = "1"


def make_state(query: Query) -> PickerState:
    """What the picker of a query shows before anybody has used it."""
    try:
        best = query.best
        unanswered = [_unanswered(target) for target in query.unanswered if set(target) <= {"mu", "share"}]
    except DpnbError as error:  # of the ledger: it cannot be read
        return _state(query, None, [], refusal=refusal_state(error))
    try:
        steps = _steps(query, best)
    except DpnbError as error:
        return _state(query, best, unanswered, refusal=refusal_state(error))
    presets = list(_presets(query, steps))
    return _state(
        query,
        best,
        unanswered,
        options=[_option(target, preview, best) for target, preview in steps],
        presets=presets,
        start=presets[0].option if presets else 0,
        facts=_facts(steps[-1][1]),
    )


def _state(query: Query, best: Answer | None, unanswered: list[Unanswered], **fields: Any) -> PickerState:
    """A state with the current answer, and by default without any option."""
    state: dict[str, Any] = {
        "version": VERSION,
        "phase": "choosing",
        "query": query.description,
        "notice": query.runner.notice,
        "session": query.runner.name,
        "current": None if best is None else f"known at mu {format_mu_up(best.total_loss)} already",
        "answer": None if best is None else rendered(best),
        "refusal": None,
        "unanswered": unanswered,
        "completed_request": None,
        "options": [],
        "presets": [],
        "start": 0,
        "facts": [],
        "code_hint": None,
    }
    return PickerState(**{**state, **fields})


def _presets(query: Query, steps: list[Step]) -> Iterator[Preset]:
    """The presets that some option is cheap enough for."""
    whole, of_what = query.runner.account.filter.headroom, "what is left"
    if _goes_on(query):
        whole, of_what = 1.0, "one person's whole budget"
    for name, label, share in PRESETS:
        most = share * whole
        at = max((place for place, (_, step) in enumerate(steps) if step.cost_fraction <= most), default=None)
        if at is not None:
            yield Preset(id=name, label=label, meaning=f"at most {percent(share)} of {of_what}", option=at)


Step = tuple[dict[str, str], Preview]
"""The target that is sent back for an option, and what it would cost and give."""


def _steps(query: Query, best: Answer | None) -> list[Step]:
    """From the cheapest that narrows what is known to all that is left.

    Raises
    ------
    DpnbError
        There is none.
    """
    last = {"share": ALL}
    if _goes_on(query):  # up to all that one unit ever had, and nothing is combined with what is known
        last, best = {"mu": repr(decimal_sqrt_down(query.runner.account.budget.loss.mu_squared))}, None
    whole = _preview(query, **last)
    if not whole.fits:
        raise BudgetExceeded(f"{query.description}: what is left cannot hold it, however little is asked for")
    if not whole.narrows_interval:
        raise BudgetExceeded(f"{query.description}: all that is left would not narrow its intervals")
    steps: list[Step] = [({"mu": repr(mu)}, _preview(query, mu=mu)) for mu in _amounts(best, whole)]
    offered = (one for one in steps if one[1].fits and one[1].cost.mu_squared and one[1].narrows_interval)
    return [*offered, (last, whole)]


def _goes_on(query: Query) -> bool:
    """Whether questions are answered although nothing is left in the worst case."""
    return query.runner.account.individual and not query.runner.account.filter.headroom


def refusal_state(error: DpnbError) -> PickerRefusal:
    """A refusal, to be shown in the picker."""
    words = explanation_for(error)
    return PickerRefusal(title=words.title, message=str(error), explanation=words.id, text=words.text)


def rendered(answer: Answer) -> RenderedAnswer:
    """An answer, to be shown in the picker's place."""
    return RenderedAnswer(html=estimates_html(answer), text=estimates_text(answer))


def static_output(query: Query) -> dict[str, object]:
    """A question where nobody can use a slider."""
    return {"text/plain": pretty(query), "text/html": query._repr_html_()}  # type: ignore[no-untyped-call]


def _unanswered(target: dict[str, Fraction]) -> Unanswered:
    """A request that was charged and not answered."""
    ((kind, amount),) = target.items()
    return Unanswered(target={kind: to_text(amount)}, label=f"{kind} {float(amount):.6g}")


def _preview(query: Query, **target: Any) -> Preview:
    found = query.preview(**target)
    if not isinstance(found, Preview):  # a single target has a single preview; the type checker does not know
        raise TypeError(type(found).__name__)
    return found


def _facts(preview: Preview) -> list[str]:
    """What is true of every budget."""
    facts = [f"One privacy unit: {preview.contribution}."]
    if preview.assumption and not preview.cost.delta:  # what a discovery rests on differs from budget to budget
        facts.append(f"The expected error rests on {preview.assumption}.")
    if preview.refinement_note:
        facts.append(f"Refining later: {preview.refinement_note}.")
    return facts


def _amounts(best: Answer | None, whole: Preview) -> list[float]:
    """Targets that add from a hundredth of what is left to nearly all of it: even on a log scale, in short numbers."""
    known = 0.0 if best is None else best.total_loss.mu
    most = math.sqrt(float(whole.cost.mu_squared))
    if not most:
        return []  # less than a double can hold
    steps = STEPS if len(whole.keys) <= MANY else STEPS // 4
    added = most * np.logspace(-DECADES, 0, steps, endpoint=False)
    totals = sorted({_short(math.hypot(known, extra), known) for extra in added.tolist()})
    return [total for total in totals if total > known]


def _short(number: float, known: float) -> float:
    """Rounded down, to two digits of what it is above what is known."""
    above = max(number - known, number * 1e-14)
    unit = Decimal(1).scaleb(math.floor(math.log10(above)) - 1)
    return float(Decimal(repr(number)).quantize(unit, ROUND_FLOOR))


def _option(target: dict[str, str], preview: Preview, best: Answer | None) -> Option:
    error = f"unknown: it rests on {preview.assumption or 'what nobody can know beforehand'}"
    if preview.half_widths is not None:
        error = describe_expected_error(preview)
    return Option(
        target=target,
        label=f"mu {format_mu_up(preview.total_loss)}" if "mu" in target else "all that is left",
        cost=format_cost(preview.cost, preview.cost_fraction),
        error=error + (f"; {preview.assumption}" if preview.cost.delta and preview.assumption else ""),
        error_value=None if preview.expected_error is None else _finite(preview.expected_error),
        relative_error=_relative(preview, best),
        after=f"{format_percent_down(preview.headroom_after)} left"
        + (f"; asked of {preview.participation}" if preview.participation else ""),
        remaining=preview.headroom_after,
        max_repetitions=f"{(preview.max_repetitions or 1) - 1:,}",
    )


def _finite(number: float) -> float | None:
    return number if math.isfinite(number) else None


def _relative(preview: Preview, best: Answer | None) -> str | None:
    """The expected error as a share of what is known by now, of the group where it is the largest."""
    if best is None or preview.half_widths is None or preview.error_unit == RANK:
        return None
    with np.errstate(all="ignore"):
        shares = preview.half_widths / np.abs(best.arrays.value)
    told = shares[np.isfinite(shares)]
    if not told.size:
        return None
    return f"{'at most ' if told.size > 1 else ''}{100 * told.max():.2g}% of the answer known by now"
