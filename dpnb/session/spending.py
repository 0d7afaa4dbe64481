"""What of a budget is spent, in words, rounded conservatively."""

from __future__ import annotations

from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import decimal_down, decimal_up, exact
from dpnb.accounting.filters import Filter
from dpnb.accounting.filters.protocol import of_budget
from dpnb.accounting.no_budget import NoBudget
from dpnb.render.numbers import format_percent_up

__all__ = ["describe_spent", "of_budget", "percent_spent"]


def describe_spent(filter_: Filter, total: Budget | NoBudget) -> str:
    """The loss spent and the budget, in the filter's own measure, rounded conservatively but never past the budget."""
    words = filter_.spent_words
    if not total.is_limited or not total.discovery_delta:
        return words
    return f"{words}, and " + of_budget("delta", decimal_up(filter_.spent.delta), decimal_down(filter_.budget.delta))


def percent_spent(filter_: Filter) -> str:
    """The share of the budget that is spent, rounded up: what remains, rounded down, and this are 100% together.

    Below 1% it has hundredths, like the costs of which it is the sum.
    Without a budget, the loss.
    """
    if filter_.budget is None:
        return f"{filter_.spent.words} spent"
    spent = decimal_up(1 - exact(filter_.headroom))
    scope = " in the worst case" if filter_.is_individual else ""
    return f"{format_percent_up(spent) if spent else '0%'} spent{scope}"
