"""What the picker offers to ask the curator of a service for, where a cap leaves less than the budget."""

from __future__ import annotations

import math
from contextlib import suppress

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.granting import MAX_WHY
from dpnb._core.core import SessionCore
from dpnb._core.query import Query
from dpnb._core.requesting import ask_service
from dpnb._protocol.picker import Ask, AskOption
from dpnb.accounting.exact import Number
from dpnb.errors import DpnbError, RequestError
from dpnb.ledger import ROOT
from dpnb.notebook.amounts import short_amount
from dpnb.render.numbers import format_cost
from dpnb.render.previews import describe_expected_error

SHARES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Shares of the budget, as mu squared, that are offered where the cap does not allow them."""

MAX_OPTIONS = 4


def make_ask(query: Query) -> Ask | None:
    """What can be asked for; None in a session without a service, and unless a cap limits it."""
    core = query.runner
    if not isinstance(core, SessionCore) or core.remote is None or core.account.root_node != ROOT:
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
    core = query.runner
    if not isinstance(core, SessionCore):
        raise RequestError("picker: the page sent an invalid request; reload the page, and run the cell again")
    number = ask_service(core, [(query.plan, query.view, core.target(query.plan, {"mu": mu}))], why)
    return f"Request {number} was sent to the curator; the answer appears in the panel."
