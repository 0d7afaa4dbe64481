"""A loss in words, first as a percentage of the budget that pays for it."""

from __future__ import annotations

import math

from dpnb._core.accountant.accountant import Accountant
from dpnb.accounting.exact import decimal_up, display_up
from dpnb.accounting.guarantee import PrivacyGuarantee
from dpnb.accounting.losses import GDP, Loss, PureGDP
from dpnb.accounting.losses.gaussian import as_amount
from dpnb.render.numbers import format_cost, format_percent_up


def cost_text(account: Accountant, loss: Loss) -> str:
    """What a loss that the filter can count costs now, for example ``36.0% of the budget (mu 0.6)``."""
    filter_, counted = account.filter, account.guarantee.to_filter_loss(loss)
    if account.budget.pure_epsilon:
        counted = filter_.to_filter_loss(loss)
    return charge_text(account, loss, counted, account.forecast(counted)[0])


def charge_text(account: Accountant, loss: Loss, counted: Loss | None, share: float) -> str:
    """What a mechanism is charged at launch, of the budget and of the reserve for pure losses.

    `counted` is what the filter counts, if that is not the loss; `share` is the share of the budget.
    """
    charged = _charged(counted, loss, account.guarantee)
    if charged is None:
        return format_cost(loss, share)
    words, reserve = charged_words(account.guarantee, loss, charged), account.guarantee.initial_filter.reserve
    shares = [f"{format_percent_up(share)} of the budget"]
    if reserve and charged.epsilon:
        of_reserve = f"{format_percent_up(decimal_up(charged.epsilon / reserve))} of the reserve"
        shares = [*shares, of_reserve] if charged.mu_squared else [of_reserve]
        words = words if charged.mu_squared else loss.words
    return words if math.isnan(share) else f"{' and '.join(shares)} ({words})"


def charged_words(guarantee: PrivacyGuarantee, loss: Loss, counted: Loss | None) -> str:
    """What was charged for a loss, for example ``mu 0.1576 for epsilon 0.15``; `counted` None is the loss itself."""
    charged = _charged(counted, loss, guarantee)
    if charged is None:
        return loss.words
    words = charged_amount(guarantee, charged)
    return words if not charged.mu_squared else f"{words} for {loss.words}"


def charged_amount(guarantee: PrivacyGuarantee, charged: Loss) -> str:
    """The amount that a GDP filter was charged for a loss in pure DP."""
    parts, amount = [], as_amount(charged)
    if amount.mu_squared or amount.delta:
        parts.append(GDP.of(amount.mu_squared, amount.delta).words)
    if amount.epsilon:
        reserve = " of the reserve" if guarantee.initial_filter.reserve else ""
        parts.append(f"epsilon {display_up(decimal_up(amount.epsilon))}{reserve}")
    return " and ".join(parts) or "nothing"


def _charged(counted: Loss | None, loss: Loss, guarantee: PrivacyGuarantee) -> PureGDP | None:
    """What a GDP filter was charged, if that is not the loss."""
    if counted is None or counted.noise_mu_squared is None:
        return None
    return guarantee.initial_filter.recorded_charge(loss, counted)
