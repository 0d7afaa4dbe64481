"""A part of the budget, handed to a session of its own: what it costs, and what its owner sees of it."""

from __future__ import annotations

from typing import Any, ClassVar

from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import exact, shown
from dpnb.accounting.losses import ApproxDP, Loss
from dpnb.accounting.promise import Promise
from dpnb.answer.faces import cost_up, floor_percent
from dpnb.errors import BudgetExceeded, InvalidValueError, RequestError
from dpnb.interactive.protocol import Charged
from dpnb.session.account import Account
from dpnb.session.arguments import checked_amount, checked_budget
from dpnb.session.mechanisms.mechanism import Mechanism
from dpnb.session.releases import Releases
from dpnb.session.tree import Launch

NOT_BACK = "What is left of it in the end does not flow back."

COUNTED = {
    "gdp": ("gdp",),
    "zcdp": ("zcdp", "gdp", "approx-dp"),
    "rdp": ("rdp", "zcdp", "gdp", "approx-dp"),
    "approx-dp": ("approx-dp", "zcdp", "gdp"),
    "rogers": ("rogers", "basic", "gdp", "zcdp", "rdp", "approx-dp"),
    "basic": ("basic", "rogers", "gdp", "zcdp", "rdp", "approx-dp"),
}
"""Which filters a sub-session may have, by its session's.

Those whose promise a theorem turns into that filter's kind of loss, see :mod:`dpnb.accounting.convert`.  zCDP implies
no GDP, and an (epsilon, delta) has no Renyi divergence."""


class Sub(Mechanism):
    """A sub-session, as its owner sees it.

    Parameters
    ----------
    launch : Launch
    releases : Releases
        Of the owner.
    account : Account
        Of the sub-session.
    """

    charged: ClassVar[Charged] = "at launch"
    terms: ClassVar[str] = f"A session with a budget, filter and odometers of its own, paid for at launch. {NOT_BACK}"

    def __init__(self, launch: Launch, releases: Releases, account: Account) -> None:
        super().__init__(launch, releases)
        self.account = account

    @property
    def summary(self) -> str:
        """How it stands, in few words."""
        return f"{floor_percent(self.account.filter.headroom)} left of {cost_up(self.cost)}"


def one_way(**ways: object) -> str:
    """In which of several ways a budget is given.

    Raises
    ------
    RequestError
        Not in exactly one.
    """
    given = [name for name, value in ways.items() if value is not None]
    if len(given) != 1:
        raise RequestError(
            f"delegate: give one of a dpnb.Budget, mu=, rho= or share=; got {' and '.join(given) or 'none of them'}"
        )
    return given[0]


def budget_from(account: Account, way: str, given: Any) -> Budget:
    """The budget that is handed over.

    Parameters
    ----------
    account : Account
        Of the session that hands it over.
    way : str
        ``budget``, ``mu``, ``rho`` or ``share``.
    given : Budget or Number

    Raises
    ------
    InvalidValueError
        It is no budget, or a number is out of its range.
    BudgetExceeded
        Nothing is left to share.
    """
    if way == "budget":
        return checked_budget(given)
    if way == "mu":
        return Budget.gdp(checked_amount(given, "mu"))
    if way == "rho":
        return Budget.gdp_squared(2 * checked_amount(given, "rho"))
    part = checked_amount(given, "share")
    if part > 1:
        raise InvalidValueError(f"share: must be at most 1, all that is left; got {shown(given)}")
    left = account.promise.left(account.filter, exact(part))
    if not left.mu_squared:
        raise BudgetExceeded("delegate: nothing is left of the budget; nothing was charged")
    return Budget.gdp_squared(left.mu_squared)


def filter_for(account: Account, budget: Budget, asked: str | None) -> str:
    """The name of the sub-session's filter: what was asked for, or this session's if it can keep the budget.

    Raises
    ------
    RequestError
        No theorem turns the other's promise into this filter's kind of loss.
    """
    own = account.promise.name
    name = asked if asked is not None else own if budget.epsilon is not None else "gdp"
    if name not in COUNTED[own]:
        raise RequestError(
            f"delegate: filter={name!r} keeps a promise that the filter {own!r} of this session cannot count, as no "
            f"theorem turns one into the other; take one of {', '.join(map(repr, COUNTED[own]))}"
        )
    return name


def charged_for(owner: Promise, made: Promise) -> Loss:
    """What the sub-session's promise is to its owner's filter.

    To a filter that counts epsilons it is the (epsilon, delta) that was promised, whatever keeps it; to the others it
    is the budget of the sub-session's filter.
    """
    budget = made.budget
    if owner.slack is not None and budget.epsilon is not None and budget.delta is not None:
        return ApproxDP(budget.epsilon, budget.delta)
    budgeted: Loss = made.start.budget
    return budgeted
