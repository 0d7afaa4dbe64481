"""A loss in words, first as a percentage of the budget that pays for it."""

from __future__ import annotations

from dpnb._core.accountant.accountant import Accountant
from dpnb.accounting.exact import decimal_up
from dpnb.accounting.filters import GDPReserveFilter
from dpnb.accounting.losses import Loss, PureGDP
from dpnb.render.numbers import format_cost, format_cost_up, format_percent_up


def cost_text(account: Accountant, loss: Loss) -> str:
    """What a loss costs now, for example ``36.0% of the budget (mu 0.6)``.

    Parameters
    ----------
    account : Accountant
        The accountant that is charged.
    loss : Loss
        A loss that the filter can count.
    """
    filter_, counted = account.filter, account.guarantee.to_filter_loss(loss)
    if isinstance(filter_, GDPReserveFilter):
        counted = filter_.to_filter_loss(loss)
    return charge_text(account, loss, counted, account.forecast(counted)[0])


def charge_text(account: Accountant, loss: Loss, counted: Loss | None, share: float) -> str:
    """What a mechanism is charged at launch, of the budget and of the reserve for pure losses.

    Parameters
    ----------
    account : Accountant
        The accountant that is charged.
    loss : Loss
        The loss of the mechanism.
    counted : Loss or None
        What the filter counts, if that is not the loss.
    share : float
        The share of the budget.
    """
    filter_ = account.guarantee.initial_filter
    if not isinstance(counted, PureGDP) or not counted.epsilon or not isinstance(filter_, GDPReserveFilter):
        return format_cost(loss, share)
    if not filter_.budget.mu_squared:  # it is in pure DP
        return format_cost(loss, share)
    reserve = f"{format_percent_up(decimal_up(counted.epsilon / filter_.budget.epsilon))} of the reserve"
    gaussian = f"{format_percent_up(share)} of the budget and " if counted.mu_squared else ""
    return f"{gaussian}{reserve} ({format_cost_up(loss)})"
