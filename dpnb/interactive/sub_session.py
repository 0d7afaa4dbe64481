"""A sub-session with a part of the budget: its cost, and its representation in the owner's session."""

from __future__ import annotations

from fractions import Fraction
from typing import ClassVar

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.parameters import computed_parameters
from dpnb._core.accountant.tree import SUB_SESSION, Launch
from dpnb._core.core import SessionCore
from dpnb._request import DelegateBudget
from dpnb._target import MAX_BITS, checked_loss, refuse_long
from dpnb.accounting.budget import Budget, checked_budget
from dpnb.accounting.exact import Number, decimal_down, display_down, shown
from dpnb.accounting.guarantee import PrivacyGuarantee, make_guarantee
from dpnb.accounting.losses import ApproxDP, Loss, PureDP
from dpnb.errors import BudgetExceeded, InvalidValueError, RequestError
from dpnb.interactive.launch_request import LaunchRequest
from dpnb.interactive.mechanism import SessionMechanism
from dpnb.interactive.protocol import Charged
from dpnb.render.numbers import format_percent_down

NO_REFUND = "Unused budget is not refunded."


class SubSessionMechanism(SessionMechanism):
    """A sub-session, as seen by its owner, whose core is `core`; that of the sub-session is `inner`."""

    charged: ClassVar[Charged] = "at launch"
    cost_description: ClassVar[str] = (
        f"A session with its own budget, filter and odometers, charged at launch. {NO_REFUND}"
    )

    def __init__(self, launch: Launch, core: SessionCore) -> None:
        super().__init__(launch, core)
        self.inner = core.sub_session(launch)

    @property
    def summary(self) -> str:
        """The current status, in few words."""
        return f"{format_percent_down(self.inner.account.filter.headroom)} left of {self._format_launch_cost()}"


def sub_session_request(
    core: SessionCore,
    known: Launch | None,
    name: object,
    filter_: str | None,
    budget: Budget | None = None,
    mu: Number | None = None,
    rho: Number | None = None,
    share: Number | None = None,
) -> LaunchRequest:
    """The launch of a sub-session.

    `core` is that of the session that gives a part of its budget, `known` the earlier launch of that name.
    """
    account, amounts = core.account, {"budget": budget, "mu": mu, "rho": rho, "share": share}
    names = [argument for argument, amount in amounts.items() if amount is not None]
    if len(names) != 1:
        raise RequestError(
            f"delegate: give one of a dpnb.Budget, mu=, rho= or share=; got {' and '.join(names) or 'none of them'}"
        )
    if share is not None and known is not None and known.kind == SUB_SESSION:
        part = Budget.from_json(known.resolved["budget"])  # a share of what remained at the first request
    else:
        part = budget_argument(account, budget, mu, rho, share)
    kind = filter_of_sub_session(account, part, filter_)
    guarantee = make_guarantee(kind, part)
    mechanism = (
        DelegateBudget(kind, part.to_json())
        if share is None
        else DelegateBudget(kind, share=checked_loss(share, "share"))
    )
    return LaunchRequest(
        name,
        mechanism,
        loss_of_sub_session(account.guarantee, guarantee),
        {
            "budget": part.to_json(),
            "filter": kind,
            "parameters": computed_parameters(guarantee, core.pricer.public.units, account.delta),
        },
        [
            ("guarantee", f"{guarantee.words}, with its own filter, odometers and log"),
            ("unused budget", f"{NO_REFUND} To be charged step by step instead, query this session or a partition."),
        ],
    )


def budget_argument(
    account: Accountant, budget: Budget | None, mu: Number | None, rho: Number | None, share: Number | None
) -> Budget:
    """The budget of a sub-session, which the session of `account` gives; one of the arguments is given."""
    if budget is not None:
        budget = checked_budget(budget)
    own = account.guarantee.budget
    if own.is_pure and (budget is None or budget.loss):
        given = "mu=" if mu is not None else "rho=" if rho is not None else "share="
        raise BudgetExceeded(
            f"delegate: the budget of this session is in pure DP, so that of a sub-session must be too; got "
            f"{given if budget is None else repr(budget)}; give for example "
            f"dpnb.Budget.pure({display_down(decimal_down(own.pure_epsilon / 10))}); nothing was charged"
        )
    if budget is not None:
        for one in (budget.epsilon, budget.delta, budget.discovery_delta, budget.pure_epsilon, budget.loss.mu_squared):
            refuse_long(one or Fraction(0), "delegate", budget, 2 * MAX_BITS)
        return budget
    if mu is not None:
        return Budget.gdp(checked_loss(mu, "mu"))
    if rho is not None:
        return Budget.from_mu_squared(2 * checked_loss(rho, "rho"))
    part = checked_loss(share, "share")
    if part > 1:
        raise InvalidValueError(f"share: must be at most 1, the whole remaining budget; got {shown(share)}")
    if not account.guarantee.has_budget:
        raise RequestError(
            "delegate: this session has no budget, so there is no share of what remains; got share=; give a "
            "dpnb.Budget, mu= or rho= instead"
        )
    remaining = account.guarantee.remaining(account.filter, part)
    if not remaining.mu_squared:
        raise BudgetExceeded("delegate: no budget remains; nothing was charged")
    return Budget.from_mu_squared(remaining.mu_squared)


def filter_of_sub_session(account: Accountant, budget: Budget, filter_: str | None) -> str:
    """The name of the sub-session's filter: the requested one, or this session's if it can enforce the budget.

    A theorem must convert the requested filter's guarantee into this filter's kind of loss.
    """
    own, accepted = account.guarantee.filter_name, account.guarantee.initial_filter.counted_filters
    name = filter_ if filter_ is not None else own if budget.epsilon is not None and own in accepted else "gdp"
    if name not in accepted:
        owner = f"the filter {own!r} of this session" if account.guarantee.has_budget else "this session"
        raise RequestError(
            f"delegate: filter={name!r} enforces a guarantee that {owner} cannot count, as "
            f"no theorem converts one into the other; use one of {', '.join(map(repr, accepted))}"
        )
    return name


def loss_of_sub_session(owner: PrivacyGuarantee, inner: PrivacyGuarantee) -> Loss:
    """The sub-session's guarantee as a loss of its owner's filter.

    For a filter that counts epsilons it is the guaranteed (epsilon, delta), whatever filter enforces it; for the others
    it is the budget of the sub-session's filter.
    """
    budget = inner.budget
    if owner.shared_delta is not None and budget.epsilon is not None and budget.delta is not None:
        return ApproxDP(budget.epsilon, budget.delta)
    loss: Loss = inner.initial_filter.budget
    return PureDP(budget.pure_epsilon) if budget.is_pure else loss
