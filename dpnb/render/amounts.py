"""Amounts of budget in a few digits, rounded in the safe direction."""

from __future__ import annotations

from dpnb.accounting.exact import decimal_down, decimal_sqrt_down, decimal_up, display_down, display_up
from dpnb.accounting.losses import PureGDP


def spent_words(amount: PureGDP) -> str:
    """What is spent, or would be: rounded up."""
    return _words(display_up(amount.mu), *(display_up(decimal_up(one)) for one in (amount.delta, amount.epsilon)))


def limit_words(amount: PureGDP | None) -> str | None:
    """What may be spent: rounded down; None if there is no such limit."""
    if amount is None:
        return None
    mu = display_down(decimal_sqrt_down(amount.mu_squared))
    return _words(mu, *(display_down(decimal_down(one)) for one in (amount.delta, amount.epsilon)))


def _words(mu: str, delta: str, epsilon: str) -> str:
    named = [("mu", mu), ("delta", delta), ("epsilon", epsilon)]
    return " and ".join(f"{name} {value}" for name, value in named if float(value)) or "nothing"
