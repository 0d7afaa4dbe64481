"""A loss in words, first as a percentage of the budget that pays for it."""

from __future__ import annotations

from dpnb._core.accountant.accountant import Accountant
from dpnb.accounting.losses import Loss
from dpnb.render.numbers import format_cost


def cost_text(account: Accountant, loss: Loss) -> str:
    """What a loss costs now, for example ``36.0% of the budget (mu 0.6)``.

    Parameters
    ----------
    account : Accountant
        The accountant that is charged.
    loss : Loss
        A loss that the filter can count.
    """
    return format_cost(loss, account.forecast(account.guarantee.to_filter_loss(loss))[0])
