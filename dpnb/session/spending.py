"""What of a budget is spent, in words, rounded conservatively."""

from __future__ import annotations

from typing import Any

from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import decimal_down, decimal_sqrt_down, decimal_up, display_down, display_up, exact
from dpnb.accounting.filters import ApproxDPFilter, RogersFilter, SumFilter, UnboundedFilter
from dpnb.accounting.guarantee import AnyFilter
from dpnb.accounting.individual import WorstCaseFilter
from dpnb.accounting.losses import GDP, RDP, EpsilonLoss, PureGDP
from dpnb.accounting.no_budget import NoBudget
from dpnb.accounting.odometers import SpentAccumulator
from dpnb.render.numbers import format_percent_up


def describe_spent(filter_: AnyFilter, total: Budget | NoBudget) -> str:
    """The loss spent and the budget, in the filter's own measure, rounded conservatively but never past the budget."""
    if isinstance(filter_, UnboundedFilter):
        return f"{SpentAccumulator(filter_).words} in total"
    words = _spent(filter_)
    if not total.discovery_delta:
        return words
    return f"{words}, and " + of_budget("delta", decimal_up(filter_.spent.delta), decimal_down(filter_.budget.delta))


def percent_spent(filter_: AnyFilter) -> str:
    """The share of the budget that is spent, rounded up: what remains, rounded down, and this are 100% together.

    Below 1% it has hundredths, like the costs of which it is the sum.
    Without a budget, the loss.
    """
    if isinstance(filter_, UnboundedFilter):
        return f"{SpentAccumulator(filter_).words} spent"
    spent = decimal_up(1 - exact(filter_.headroom))
    scope = " in the worst case" if isinstance(filter_, WorstCaseFilter) else ""
    return f"{format_percent_up(spent) if spent else '0%'} spent{scope}"


def _spent(filter_: SumFilter[Any] | RogersFilter) -> str:
    spent, budget = filter_.spent, filter_.budget
    if isinstance(spent, GDP | PureGDP) and isinstance(budget, GDP | PureGDP):
        gaussian = of_budget("mu", spent.mu, decimal_sqrt_down(budget.mu_squared))
        if not isinstance(spent, PureGDP) or not isinstance(budget, PureGDP):
            return gaussian
        reserve = of_budget("epsilon", decimal_up(spent.epsilon), decimal_down(budget.epsilon))
        if not budget.mu_squared:
            return reserve
        return f"{gaussian}, and {reserve} of the reserve"
    if isinstance(filter_, ApproxDPFilter):
        return of_budget("V", decimal_up(2 * spent.parts[0]), decimal_down(2 * budget.parts[0]))
    name = "K" if isinstance(filter_, RogersFilter) else "epsilon" if isinstance(budget, EpsilonLoss) else "rho"
    words = of_budget(name, decimal_up(spent.parts[0]), decimal_down(budget.parts[0]))
    return f"{words} at order {decimal_up(budget.orders[0]):g}" if isinstance(budget, RDP) else words


def of_budget(name: str, spent: float, budget: float) -> str:
    """The loss spent, rounded up, and the budget, rounded down, with enough digits that it does not exceed the budget.

    If six digits are not enough, all of the budget is spent but for less than a millionth; the loss is still rounded
    up.
    """
    for digits in range(4, 7):
        used, whole = display_up(spent, digits), display_down(budget, digits)
        if float(used) <= float(whole):
            return f"{name} {used} of {whole}"
    return f"{name} {display_up(spent)}, all of it"
