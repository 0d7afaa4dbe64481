"""A loss in words, first as a percentage of the budget that pays for it."""

from __future__ import annotations

import math
from typing import TypeGuard

from dpnb._core.accountant.accountant import Accountant
from dpnb.accounting.exact import decimal_up, display_up
from dpnb.accounting.filters import GDPReserveFilter, GDPResidueFilter
from dpnb.accounting.guarantee import AnyFilter, PrivacyGuarantee
from dpnb.accounting.losses import GDP, Loss, PureGDP
from dpnb.render.numbers import format_cost, format_cost_up, format_percent_up


def cost_text(account: Accountant, loss: Loss) -> str:
    """What a loss that the filter can count costs now, for example ``36.0% of the budget (mu 0.6)``."""
    filter_, counted = account.filter, account.guarantee.to_filter_loss(loss)
    if isinstance(filter_, GDPReserveFilter):
        counted = filter_.to_filter_loss(loss)
    return charge_text(account, loss, counted, account.forecast(counted)[0])


def charge_text(account: Accountant, loss: Loss, counted: Loss | None, share: float) -> str:
    """What a mechanism is charged at launch, of the budget and of the reserve for pure losses.

    `counted` is what the filter counts, if that is not the loss; `share` is the share of the budget.
    """
    if not _differs(counted, loss, account.guarantee):
        return format_cost(loss, share)
    words, filter_ = charged_words(account.guarantee, loss, counted), account.guarantee.initial_filter
    shares = [f"{format_percent_up(share)} of the budget"]
    if _has_reserve(filter_) and isinstance(counted, PureGDP) and counted.epsilon:
        reserve = f"{format_percent_up(decimal_up(counted.epsilon / filter_.budget.epsilon))} of the reserve"
        shares = [*shares, reserve] if counted.mu_squared else [reserve]
        words = words if counted.mu_squared else format_cost_up(loss)
    return words if math.isnan(share) else f"{' and '.join(shares)} ({words})"


def charged_words(guarantee: PrivacyGuarantee, loss: Loss, charged: Loss | None) -> str:
    """What was charged for a loss, for example ``mu 0.1576 for epsilon 0.15``; `charged` None is the loss itself."""
    if not _differs(charged, loss, guarantee):
        return format_cost_up(loss)
    words = charged_amount(guarantee, charged)
    return words if not charged.mu_squared else f"{words} for {format_cost_up(loss)}"


def charged_amount(guarantee: PrivacyGuarantee, charged: GDP | PureGDP) -> str:
    """The amount that a GDP filter was charged for a loss in pure DP."""
    parts = []
    if charged.mu_squared or charged.delta:
        parts.append(format_cost_up(GDP.of(charged.mu_squared, charged.delta)))
    if isinstance(charged, PureGDP) and charged.epsilon:
        reserve = " of the reserve" if _has_reserve(guarantee.initial_filter) else ""
        parts.append(f"epsilon {display_up(decimal_up(charged.epsilon))}{reserve}")
    return " and ".join(parts) or "nothing"


def _differs(charged: Loss | None, loss: Loss, guarantee: PrivacyGuarantee) -> TypeGuard[GDP | PureGDP]:
    """Whether what a GDP filter was charged is not the loss."""
    by_residue = isinstance(guarantee.initial_filter, GDPResidueFilter | GDPReserveFilter)
    return by_residue and not isinstance(loss, GDP) and isinstance(charged, GDP | PureGDP)


def _has_reserve(filter_: AnyFilter) -> TypeGuard[GDPReserveFilter]:
    """Whether a budget has a reserve for pure losses beside its Gaussian part."""
    return isinstance(filter_, GDPReserveFilter) and bool(filter_.budget.mu_squared)
