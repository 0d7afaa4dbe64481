"""The state of the budget picker: cost and expected error of a release, for each position of its slider.

All of it is computed here in advance, so that the slider responds at once, also while the kernel is busy.  It uses
previews, which are free.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fractions import Fraction
from typing import Any

import numpy as np
from IPython.lib.pretty import pretty
from msgspec.structs import replace

from dpnb._browser.messages import (
    VERSION,
    CountStep,
    Option,
    PickerRefusal,
    PickerState,
    Preset,
    RenderedAnswer,
    Unanswered,
)
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.history.words import cost_text
from dpnb._plan.plan import in_words
from dpnb.accounting.exact import decimal_sqrt_down, percent_down, to_text
from dpnb.accounting.losses import GDP
from dpnb.accounting.odometers import SpentAccumulator
from dpnb.errors import BudgetExceeded, DpnbError, RequestError
from dpnb.notebook.picker_steps import large_share, make_ask, make_step, short_amount, with_cost
from dpnb.query.query import Query
from dpnb.render.answers import estimates_html, estimates_text
from dpnb.render.numbers import format_percent_down, format_percent_up, percent
from dpnb.render.previews import (
    FEW,
    MAX_IN_A_LINE,
    UNKNOWN,
    describe_expected_error,
    error_note,
    error_table,
    error_words,
    in_one_release,
    needed_words,
)
from dpnb.render.refusals import explanation_for
from dpnb.results.answer import Answer
from dpnb.results.estimates.expected import RANK
from dpnb.results.preview import GAIN, Preview
from dpnb.session.gauges import finite

STEPS = 40
MANY_GROUPS = 1000
"""With more groups than this there are fewer steps, since each step is a preview of all groups."""
DECADES = 2
"""The smallest budget on the slider is this many powers of ten below the remaining budget."""

PRESETS = (
    ("glance", "Rough estimate", 0.01),
    ("talk", "For a talk", 0.05),
    ("print", "For publication", 0.2),
)
"""Name, label, and the largest fraction of the remaining budget that the preset uses."""

MAX_MU = 0.5
"""The largest mu that the slider adds without a budget to an unknown answer; larger ones are possible in code."""

PRESET_MUS = {"glance": 0.02, "talk": 0.05, "print": 0.1}
"""The largest mu that each preset adds without a budget."""

ALL = "1"


def make_state(query: Query) -> PickerState:
    """The state of the picker of a query before it is used."""
    try:
        best = query.best
        unanswered = [_unanswered(target) for target in query.unanswered if set(target) <= {"mu", "share"}]
    except DpnbError as error:  # the ledger cannot be read
        return _state(query, None, [], refusal=refusal_state(error))
    try:
        steps = _steps(query, best)
    except DpnbError as error:
        return _state(query, best, unanswered, refusal=refusal_state(error))
    count = query.count_needed if steps[-1][1].count_needed else None
    step = None if count is None else make_step(count)
    if step is not None and count is not None and _comes_first(count, steps[-1][1]):
        text = " ".join([step.text, *_left_out(steps[-1][1])])  # there is no list of facts without options
        return _state(query, best, unanswered, count_step=replace(step, text=text))
    presets, is_refinement = list(_presets(query, steps)), steps[-1][1].gain is not None
    return _state(
        query,
        best,
        unanswered,
        options=[_option(query, target, preview, best) for target, preview in steps],
        presets=presets,
        start=presets[0].option if presets and not is_refinement else 0,
        facts=_facts(steps, step),
        count_step=step,
    )


def _comes_first(count: Query, preview: Preview) -> bool:
    """Whether a query is not offered before the count: nobody should pay for an answer of which nothing is known.

    It can be released in code.  A count that was released already and is not precise enough does not come first: that
    of small groups may never be.
    """
    with suppress(DpnbError):  # the ledger cannot be read
        return preview.half_widths is None and count.best is None
    return False


def _state(query: Query, best: Answer | None, unanswered: list[Unanswered], **fields: Any) -> PickerState:
    """A state with the current answer, by default without options."""
    state: dict[str, Any] = {
        "version": VERSION,
        "phase": "choosing",
        "query": in_words(query.description, query.plan, query.view),
        "notice": query.runner.notice,
        "session": query.runner.name,
        "current": None if best is None else cost_text(query.runner.account, best.total_loss),
        "answer": None if best is None else rendered(best),
        "refusal": None,
        "unanswered": unanswered,
        "completed_request": None,
        "options": [],
        "presets": [],
        "start": 0,
        "facts": [],
        "count_step": None,
        "count_answer": None,
        "ask": make_ask(query),
        "asked": None,
    }
    return PickerState(**{**state, **fields})


def _presets(query: Query, steps: list[Step]) -> Iterator[Preset]:
    """The presets for which at least one option is cheap enough."""
    has_budget = query.runner.account.guarantee.has_budget
    whole, whole_text = query.runner.account.filter.headroom, "what is left"
    if _continues(query):
        whole, whole_text = 1.0, "one unit's whole budget"
    for name, label, share in PRESETS:
        mu, limit = PRESET_MUS[name], share * whole
        cheap = [
            index
            for index, (_, step) in enumerate(steps)
            if (step.cost_fraction <= limit if has_budget else step.cost.mu <= mu)
        ]
        if cheap:
            meaning = f"at most {percent(share)} of {whole_text}" if has_budget else f"mu at most {mu:g}"
            error = _short_error(steps[cheap[-1]][1])
            yield Preset(id=name, label=label, meaning=meaning, error=error, option=cheap[-1])


Step = tuple[dict[str, str], Preview]
"""The target that is sent back for an option, and its preview."""


def _steps(query: Query, best: Answer | None) -> list[Step]:
    """From the cheapest target that narrows an interval to the whole remaining budget; `DpnbError` if there is none."""
    if not query.runner.account.guarantee.has_budget:
        return _steps_without_budget(query, best)
    if _continues(query):  # up to the whole budget of a unit; earlier observations are not combined
        whole_mu = decimal_sqrt_down(query.runner.account.budget.reference.loss.mu_squared)
        (last,), best = _mu_steps(query, [whole_mu]), None
    elif not query.runner.account.filter.headroom:
        raise BudgetExceeded(f"{query.description}: nothing is left of the budget, and what was answered stays free")
    else:
        last = {"share": ALL}, query.preview(share=ALL)
    whole = last[1]
    if not whole.fits:
        raise BudgetExceeded(f"{query.description}: the remaining budget is too small for any release")
    if not whole.narrows_interval:
        raise BudgetExceeded(f"{query.description}: even the whole remaining budget would not narrow its intervals")
    steps = _mu_steps(query, _amounts(best, whole))
    return [*_worthwhile([one for one in steps if one[1].fits], whole), last]


def _steps_without_budget(query: Query, best: Answer | None) -> list[Step]:
    """Up to `MAX_MU`, or five times what is known, in addition to what is known; every target is a mu.

    Raises `RequestError` if no such target narrows an interval.
    """
    known = 0.0 if best is None else best.total_loss.mu
    (last,) = _mu_steps(query, [short_amount(math.hypot(known, max(MAX_MU, 5 * known)), known)])
    steps = [*_mu_steps(query, _amounts(best, last[1])), last]
    options = _worthwhile(steps, last[1])
    if not options:
        raise RequestError(f"{query.description}: no step of the slider would narrow its intervals; give mu= in code")
    return options


def _worthwhile(steps: list[Step], whole: Preview) -> list[Step]:
    """Those that narrow an interval; of refinements, those that narrow the widest one by `GAIN`, if any can.

    If none can, those that narrow it by half of what the whole does.
    """
    least = None if whole.gain is None else GAIN if whole.gain >= GAIN else whole.gain / 2
    options = [one for one in steps if one[1].cost.mu_squared and one[1].narrows_interval]
    return [one for one in options if least is None or (one[1].gain or 0.0) >= least]


def _continues(query: Query) -> bool:
    """Whether queries are answered although no budget remains in the worst case."""
    return query.runner.account.individual and not query.runner.account.filter.headroom


def refusal_state(error: DpnbError) -> PickerRefusal:
    """A refusal as displayed in the picker."""
    explained = explanation_for(error)
    return PickerRefusal(title=explained.title, message=str(error), explanation=explained.id, text=explained.text)


def rendered(answer: Answer, hint: str | None = None) -> RenderedAnswer:
    """An answer as displayed in place of the picker, with code that returns it again."""
    return RenderedAnswer(html=estimates_html(answer), text=estimates_text(answer), hint=hint)


def static_output(query: Query) -> dict[str, object]:
    """A query as static output, without a slider."""
    return {"text/plain": pretty(query), "text/html": query._repr_html_()}  # type: ignore[no-untyped-call]


def _unanswered(target: dict[str, Fraction]) -> Unanswered:
    ((kind, amount),) = target.items()
    return Unanswered(target={kind: to_text(amount)}, label=f"{kind}={float(amount):.6g}")


def _mu_steps(query: Query, mus: list[float]) -> list[Step]:
    """One for each mu; their previews share what depends on the query alone."""
    previews: Iterable[Preview] = query.preview(mu=mus) if mus else ()
    return [({"mu": repr(mu)}, preview) for mu, preview in zip(mus, previews, strict=True)]


def _facts(steps: list[Step], step: CountStep | None) -> list[str]:
    """Facts that hold for every option."""
    preview = steps[-1][1]
    facts = [f"One privacy unit: {preview.contribution}."]
    if preview.gain is not None and preview.gain < GAIN:
        most = "all that is left" if preview.has_budget else "the most that the slider offers"
        facts.insert(0, f"Even {most} narrows the widest interval by {percent_down(preview.gain)} only.")
    if preview.assumption and not preview.cost.delta and step is None:  # that of a discovery differs between options
        verb = "depends on" if preview.half_widths is None else "is computed from"
        facts.append(f"The expected error {verb} {preview.assumption}.")
    facts += _left_out(preview)
    if needed := next(filter(None, (needed_words(one) for _, one in steps)), None):
        facts.append(f"Where the error is unknown, it helps to have {needed}.")
    if preview.refinement_note:
        facts.append(f"Refining later: {preview.refinement_note}.")
    return facts


def _left_out(preview: Preview) -> list[str]:
    return [f"{heading.capitalize()}: {text}." for heading, text in preview.left_out]


def _amounts(best: Answer | None, whole: Preview) -> list[float]:
    """Targets that add from a hundredth of the remaining budget to nearly all of it: log-spaced, in short numbers."""
    known = 0.0 if best is None else best.total_loss.mu
    max_mu = math.sqrt(float(whole.cost.mu_squared))
    if not max_mu:
        return []  # below the range of doubles
    steps = STEPS if len(whole.keys) <= MANY_GROUPS else STEPS // 4
    added = max_mu * np.logspace(-DECADES, 0, steps, endpoint=False)
    totals = sorted({short_amount(math.hypot(known, extra), known) for extra in added.tolist()})
    return [total for total in totals if total > known]


def _option(query: Query, target: dict[str, str], preview: Preview, best: Answer | None) -> Option:
    error, errors = UNKNOWN, error_table(preview)
    if preview.half_widths is not None:
        error = describe_expected_error(preview) if errors is None else error_note(preview)
    account = query.runner.account
    large = large_share(account, preview)
    more = (preview.max_repetitions or 1) - 1
    whole = "" if "mu" in target else ", all that is left"
    return Option(
        target=with_cost(target, preview),
        cost=f"{format_percent_up(preview.cost_fraction)} of the budget{whole}"
        if preview.has_budget
        else preview.cost.words,
        loss=preview.total_loss.words + ("" if best is None else " in total"),
        confirm=None if large is None else f"{'Release' if best is None else 'Refine'} for {large}?",
        error=error + (f"; {preview.assumption}" if preview.cost.delta and preview.assumption else ""),
        errors=errors,
        error_value=finite(preview.expected_error),
        in_one_release=in_one_release(preview),
        relative_error=_relative(preview, best),
        after=(
            f"{format_percent_down(preview.headroom_after)} left"
            if preview.has_budget
            else f"no budget: {_spent_after(account, preview.cost)} in total with it"
        )
        + (f"; participation: {preview.participation}" if preview.participation else ""),
        remaining=preview.headroom_after if preview.has_budget else None,
        max_repetitions=f"{more:,} more quer{'y' if more == 1 else 'ies'} at this cost" if preview.has_budget else None,
    )


def _spent_after(account: Accountant, cost: GDP) -> str:
    """The loss of everything with one more release, in few words."""
    after = account.filter.step(account.guarantee.to_filter_loss(cost))
    return SpentAccumulator(after).words


def _short_error(preview: Preview) -> str:
    """The expected error without what it assumes."""
    text = error_words(preview, FEW if error_table(preview) else MAX_IN_A_LINE)
    return "error unknown" if text == UNKNOWN else text


def _relative(preview: Preview, best: Answer | None) -> str | None:
    """The expected error relative to the current answer, for the group where it is largest."""
    if best is None or preview.half_widths is None or preview.error_unit == RANK:
        return None
    with np.errstate(all="ignore"):
        ratios = preview.half_widths / np.abs(best.arrays.value)
    finite = ratios[np.isfinite(ratios)]
    if not finite.size:
        return None
    percent = float(f"{100 * finite.max():.2g}")  # 870, and not 8.7e+02
    return f"{'at most ' if finite.size > 1 else ''}{percent:,g}% of the current answer"
