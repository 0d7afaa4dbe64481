"""The refusal of Gaussian noise under a budget in pure DP."""

from __future__ import annotations

from dpnb.accounting.budget import Budget
from dpnb.accounting.no_budget import NoBudget
from dpnb.errors import BudgetExceeded


def refuse_in_pure_dp(budget: Budget | NoBudget, description: str) -> None:
    """Refuse Gaussian noise under a budget in pure DP, whatever is left of it."""
    if budget.is_pure:
        raise BudgetExceeded(
            f"{description}: has Gaussian noise, and the budget is in pure DP; use session.above_threshold(...), or "
            ".top(k) or .idxmax() of a count, or a session with dpnb.Budget(epsilon, delta, pure_epsilon); nothing was "
            "charged"
        )
