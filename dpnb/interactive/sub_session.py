"""A part of the budget, handed to a session of its own: what it costs, and what its owner sees of it."""

from __future__ import annotations

from typing import Any, ClassVar

from dpnb._core.accountant.accountant import Accountant, parameters_of
from dpnb._core.accountant.tree import SUB_SESSION, Launch
from dpnb._core.core import SessionCore
from dpnb._core.options import checked_amount, checked_budget
from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import exact, shown, to_text
from dpnb.accounting.guarantee import PrivacyGuarantee, make_guarantee
from dpnb.accounting.losses import ApproxDP, Loss
from dpnb.errors import BudgetExceeded, InvalidValueError, RequestError
from dpnb.interactive.launch_request import LaunchRequest
from dpnb.interactive.mechanism import SessionMechanism
from dpnb.interactive.protocol import Charged
from dpnb.render.numbers import format_cost_up, format_percent_down

NO_REFUND = "What is left of it in the end does not flow back."

ACCEPTED_FILTERS = {
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


class SubSessionMechanism(SessionMechanism):
    """A sub-session, as its owner sees it.

    Parameters
    ----------
    launch : Launch
    core : SessionCore
        Of the owner.

    Attributes
    ----------
    inner : SessionCore
        Of the sub-session.
    """

    charged: ClassVar[Charged] = "at launch"
    cost_description: ClassVar[str] = (
        f"A session with a budget, filter and odometers of its own, paid for at launch. {NO_REFUND}"
    )

    def __init__(self, launch: Launch, core: SessionCore) -> None:
        super().__init__(launch, core)
        self.inner = core.sub_session(launch)

    @property
    def summary(self) -> str:
        """How it stands, in few words."""
        return f"{format_percent_down(self.inner.account.filter.headroom)} left of {format_cost_up(self.cost)}"


def sub_session_request(
    core: SessionCore, known: Launch | None, name: object, filter_: str | None, **ways: Any
) -> LaunchRequest:
    """The launch of a sub-session.

    Parameters
    ----------
    core : SessionCore
        Of the session that hands a part of its budget over.
    known : Launch, optional
        What was launched under that name before.
    name : object
    filter_ : str, optional
        The sub-session's filter.
    **ways
        The budget, in one of several ways: see `single_budget_argument` and `budget_argument`.

    Raises
    ------
    RequestError, InvalidValueError, BudgetExceeded
        As these, or `filter_of_sub_session`.
    """
    account, way = core.account, single_budget_argument(**ways)
    if way == "share" and known is not None and known.kind == SUB_SESSION:
        given = Budget.from_json(known.details["resolved"]["budget"])  # of what was left when it was first asked for
    else:
        given = budget_argument(account, way, ways[way])
    kind = filter_of_sub_session(account, given, filter_)
    made = make_guarantee(kind, given)
    # A share is of what is left at the time: another kernel that asks for the same share launches the same.
    amount = to_text(checked_amount(ways["share"], "share")) if way == "share" else given.to_json()
    return LaunchRequest(
        SUB_SESSION,
        name,
        {way if way == "share" else "budget": amount, "filter": kind},
        loss_of_sub_session(account.promise, made),
        {"budget": given.to_json(), "filter": kind, "parameters": parameters_of(made, core.questions.public.units)},
        [
            ("what it keeps", f"{made.words}: a filter, odometers and a log of its own"),
            ("what is not used", f"{NO_REFUND} To pay as you go instead, ask here, or in a partition."),
        ],
    )


def single_budget_argument(**ways: object) -> str:
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


def budget_argument(account: Accountant, way: str, given: Any) -> Budget:
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
        return Budget.from_mu_squared(2 * checked_amount(given, "rho"))
    part = checked_amount(given, "share")
    if part > 1:
        raise InvalidValueError(f"share: must be at most 1, all that is left; got {shown(given)}")
    left = account.promise.remaining(account.filter, exact(part))
    if not left.mu_squared:
        raise BudgetExceeded("delegate: nothing is left of the budget; nothing was charged")
    return Budget.from_mu_squared(left.mu_squared)


def filter_of_sub_session(account: Accountant, budget: Budget, asked: str | None) -> str:
    """The name of the sub-session's filter: what was asked for, or this session's if it can keep the budget.

    Raises
    ------
    RequestError
        No theorem turns the other's promise into this filter's kind of loss.
    """
    own = account.promise.filter_name
    name = asked if asked is not None else own if budget.epsilon is not None else "gdp"
    if name not in ACCEPTED_FILTERS[own]:
        raise RequestError(
            f"delegate: filter={name!r} keeps a promise that the filter {own!r} of this session cannot count, as no "
            f"theorem turns one into the other; take one of {', '.join(map(repr, ACCEPTED_FILTERS[own]))}"
        )
    return name


def loss_of_sub_session(owner: PrivacyGuarantee, made: PrivacyGuarantee) -> Loss:
    """What the sub-session's promise is to its owner's filter.

    To a filter that counts epsilons it is the (epsilon, delta) that was promised, whatever keeps it; to the others it
    is the budget of the sub-session's filter.
    """
    budget = made.budget
    if owner.shared_delta is not None and budget.epsilon is not None and budget.delta is not None:
        return ApproxDP(budget.epsilon, budget.delta)
    budgeted: Loss = made.initial_filter.budget
    return budgeted
