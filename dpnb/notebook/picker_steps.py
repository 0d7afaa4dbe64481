"""Steps around the picker: confirmation, the count that makes an error known, asking the curator for more.

Releases by mouse or magic are confirmed where they take a large part of what is left; without a budget, where they
would take a large part of the budget (1, `odometer_delta`).  ``%config DpnbMagics.confirm_above = 0.5`` sets the limit
for a kernel, and ``c.DpnbMagics.confirm_above = 0.5`` in ``ipython_config.py`` for all kernels.
``query.release(...)`` in code is never interrupted.

The page may show an earlier state of the budget than the kernel, or the kernel one than the service that holds the
table.  So a page returns the displayed cost with the target, and a release that would cost more is refused.
"""

from __future__ import annotations

import math
from contextlib import suppress
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from IPython.core.getipython import get_ipython

from dpnb._browser.messages import Ask, AskOption, CountStep
from dpnb._core.accountant.accountant import Accountant
from dpnb._core.pricing.public_knowledge import count_code
from dpnb._core.requesting import ask_service
from dpnb._request import Release
from dpnb._target import Target, target_from
from dpnb.accounting.exact import Number, decimal_sqrt_down, exact, to_text
from dpnb.errors import DpnbError
from dpnb.ledger import ROOT
from dpnb.query.query import Query
from dpnb.render.numbers import error_amount, format_cost, format_mu_up, format_percent_up
from dpnb.render.previews import FIRST_MU, FIRST_SHARE, describe_expected_error
from dpnb.results.answer import Answer
from dpnb.results.preview import Preview
from dpnb.wire.limits import MAX_WHY

# --- the cost that a page displays ------------------------------------------------------------------------------------


AT_MOST = "at_most"
"""Name of the displayed cost in a target."""


def with_cost(target: dict[str, str], preview: Preview) -> dict[str, str]:
    """A target of a release with the cost of its displayed preview, as mu squared."""
    return {**target, AT_MOST: to_text(preview.cost.mu_squared)}


# --- budgets in few digits --------------------------------------------------------------------------------------------


def short_amount(number: float, known: float) -> float:
    """A budget rounded down, to two significant digits of its difference from `known`."""
    above = max(number - known, number * 1e-14)
    unit = Decimal(1).scaleb(math.floor(math.log10(above)) - 1)
    return float(Decimal(repr(number)).quantize(unit, ROUND_FLOOR))


# --- confirmation -----------------------------------------------------------------------------------------------------


CONFIRM_ABOVE = 0.2
"""The largest share of what is left that is released without a confirmation."""

MAGICS = "DpnbMagics"


def limit() -> float:
    """The largest share of what is left that is released without a confirmation, as set in this kernel."""
    shell: Any = get_ipython()
    magics = None if shell is None else shell.magics_manager.registry.get(MAGICS)
    return CONFIRM_ABOVE if magics is None else float(magics.confirm_above)


def large_share(account: Accountant, preview: Preview, above: float | None = None) -> str | None:
    """The share of what is left that a release takes, in words; None if it needs no confirmation.

    Without a budget, its loss.  The largest share that needs none is `above`; by default `limit`.
    """
    if not preview.cost or not preview.fits:
        return None  # free, or refused anyway
    above = limit() if above is None else above
    if not account.budget.is_limited:
        is_small = preview.cost.mu_squared <= exact(above) * account.budget.reference.loss.mu_squared
        return None if above >= 1 or is_small else f"{preview.cost.words}, which no budget limits"
    left, left_words = account.filter.headroom, "what is left"
    if not left:  # under individual accounting, when nothing is left in the worst case
        left, left_words = 1.0, "the whole budget of one unit"
    share = preview.cost_fraction / left
    return f"{format_percent_up(min(share, 1.0))} of {left_words}" if share > above else None


def large_release(query: Query, target: Target, above: float | None = None) -> str | None:
    """As `large_share`, of a release with this target; None if it is free, or if any release would refuse it."""
    with suppress(DpnbError):
        if not query.runner.executor.find(Release(query.plan, query.view, target)):
            return large_share(query.runner.account, query._previewed([target])[0], above)
    return None


# --- asking the curator -----------------------------------------------------------------------------------------------


SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Shares of the budget, as mu squared, that are offered where the cap does not allow them."""

MAX_OPTIONS = 4


def make_ask(query: Query) -> Ask | None:
    """What can be asked for; None in a session without a service, and unless a cap limits it."""
    core = query.runner
    if core.remote is None or core.account.root_node != ROOT:
        return None
    with suppress(DpnbError):  # the ledger cannot be read, or the query can no longer be refined
        options = _options(query, core.account)
        return Ask(options=options[:MAX_OPTIONS], start=0, max_characters=MAX_WHY) if options else None
    return None


def _options(query: Query, account: Accountant) -> list[AskOption]:
    """What the cap does not allow and the budget does."""
    budget = account.budget.limit
    if budget is None or account.binding_limit is None:
        return []
    whole, filter_ = account.sync().filter, account.guarantee.to_filter_loss
    best = query.best
    known = 0.0 if best is None else best.total_loss.mu
    options = []
    for share in SHARES:
        mu = short_amount(math.hypot(known, math.sqrt(share * float(budget.loss.mu_squared))), known)
        preview = query.preview(mu=mu)
        if not preview.fits and preview.narrows_interval and preview.cost.mu_squared:
            counted = filter_(preview.cost)
            if not whole.admits(counted):
                break
            error = describe_expected_error(preview)
            cost = format_cost(preview.cost, whole.budget_fraction(counted))  # of the budget, not of the cap
            options.append(AskOption(target={"mu": repr(mu)}, label=f"{error}: {cost}"))
    return options


def ask(query: Query, mu: Number, why: str) -> str:
    """Ask for the budget of a release; return the request in words."""
    number = ask_service(query.runner, [Release(query.plan, query.view, target_from(mu))], why)
    return f"Request {number} was sent to the curator; the answer appears in the panel."


# --- the step of the picker that makes an unknown expected error known ------------------------------------------------


def make_step(count: Query) -> CountStep | None:
    """The release of a count: for a hundredth of what is left, or for as much again as was spent on it.

    Without a budget it is for `FIRST_MU` instead of a hundredth.  The count is `Query.count_needed` of the query that
    is shown; None if it cannot be released, for example because nothing is left.
    """
    rows = "the number of rows in each group" if count.plan.group_by else "the number of rows"
    try:
        unanswered = next((target for target in count.unanswered if set(target) <= {"mu", "share"}), None)
        if unanswered is not None:
            return CountStep(
                text=f"Expected error unknown: it depends on {rows}, which was charged but not answered.",
                label="Release the number of rows (charged already)",
                loss=None,
                target={kind: to_text(amount) for kind, amount in unanswered.items()},
                confirm=None,
            )
        best = count.best
        preview = _preview(count, best)
    except DpnbError:
        return None
    if preview is None or not preview.fits:
        return None
    cost = preview.cost.words
    if preview.has_budget:
        cost = f"{format_percent_up(preview.cost_fraction)} of the budget"
    if preview.half_widths is not None:
        cost += f", {error_amount(preview.half_widths, preview.outputs)} rows"
    text, label = f"Expected error unknown: it depends on {rows}.", f"Release the number of rows first ({cost})"
    if best is not None:
        text = "Expected error unknown"
        text += f"{' for some groups' if count.plan.group_by else ''}: {rows} is not known precisely enough."
        label = f"Release the number of rows more precisely ({cost})"
    large = large_share(count.runner.account, preview)
    return CountStep(
        text=text,
        label=label,
        loss=f"mu {format_mu_up(preview.total_loss)}" + (" in total" if best is not None else ""),
        target=with_cost({"mu": repr(preview.total_loss.mu)}, preview),
        confirm=None if large is None else f"Release for {large}?",
    )


def _preview(count: Query, best: Answer | None) -> Preview | None:
    """The preview of the proposed release, whose loss is a short number; None if it would be free."""
    account, known = count.runner.account, 0.0 if best is None else best.total_loss.mu
    preview: Any
    if not account.guarantee.has_budget:  # for `FIRST_MU`, or for as much again as was spent on the count
        mu = short_amount(math.hypot(known, max(known, FIRST_MU)), known)
        preview = count.preview(mu=mu) if mu > known else None
    else:
        share = FIRST_SHARE
        if best is not None:
            spent, _ = account.forecast(account.guarantee.to_filter_loss(best.total_loss))
            share = min(max(share, spent / (account.filter.headroom or 1.0)), 1.0)
        proposed: Any = count.preview(share=share)
        mu = short_amount(decimal_sqrt_down(proposed.total_loss.mu_squared), known)
        preview = count.preview(mu=mu if mu > known else proposed.total_loss.mu)
    return preview if preview is not None and preview.cost else None


def code_of(count: Query) -> str:
    """Code that makes the count."""
    return count_code(count.plan) or "query.count_needed"
