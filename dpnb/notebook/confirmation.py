"""Which releases by mouse or magic are confirmed: those that take a large part of what is left.

Without a budget they are those that would take a large part of the budget (1, `odometer_delta`).

``%config DpnbMagics.confirm_above = 0.5`` sets the limit for a kernel, and ``c.DpnbMagics.confirm_above = 0.5`` in
``ipython_config.py`` for all kernels.  ``query.release(...)`` in code is never interrupted.

The page may show an earlier state of the budget than the kernel, or the kernel one than the service that holds the
table.  So a page returns the displayed cost with the target, and a release that would cost more is refused.
"""

from __future__ import annotations

import math
from contextlib import suppress
from decimal import ROUND_FLOOR, Decimal
from typing import Any

from IPython.core.getipython import get_ipython

from dpnb._core.accountant.accountant import Accountant
from dpnb._request import Release
from dpnb._target import Target
from dpnb.accounting.exact import exact, to_text
from dpnb.errors import DpnbError
from dpnb.query.query import Query
from dpnb.render.numbers import format_percent_up
from dpnb.results.preview import Preview

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
