"""Sub-sessions with a part of the budget, and tables that are split by public keys."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from typing import Any, ClassVar, Generic, TypeVar

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.later_sessions import computed_parameters
from dpnb._core.accountant.tree import SUB_SESSION, Launch
from dpnb._core.core import SessionCore
from dpnb._plan.expressions.nodes import Column, Expression
from dpnb._plan.expressions.text import words
from dpnb._plan.join import check_parts, part_keys, parts_of_unit
from dpnb._plan.measurements import Count
from dpnb._plan.plan import GroupLevel, Join, Plan, TableSource
from dpnb._plan.structure import check_structure
from dpnb._request import DelegateBudget, PartitionTable
from dpnb._target import MAX_BITS, checked_loss, refuse_long
from dpnb.accounting.budget import Budget, checked_budget
from dpnb.accounting.exact import Number, decimal_down, decimal_up, display_down, shown
from dpnb.accounting.guarantee import PrivacyGuarantee, make_guarantee
from dpnb.accounting.losses import ApproxDP, Loss, PureDP
from dpnb.errors import BudgetExceeded, InvalidValueError, PlanError, RequestError
from dpnb.interactive.mechanism import Charged, Kept, LaunchRequest, SessionMechanism
from dpnb.ledger import node_of
from dpnb.render.numbers import format_percent_down, format_percent_first
from dpnb.schema import Key

NO_REFUND = "Unused budget is not refunded."

MAX_PARTS_SHOWN = 50

MOST_KEPT = 4
"""Sessions of parts that are kept although nobody uses them; each takes up to some hundred kilobytes."""

P = TypeVar("P")
"""Type of the session of a part."""


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


class Partition(SessionMechanism, Mapping[Key, P], Generic[P]):
    """Parts of a table, one for each public key, each queried like a session.

    A mapping from keys to sessions.  The session is charged by the growth of the largest part's spending (where a unit
    can be in p parts: of the sum of the p largest); nothing is reserved.

    Parameters
    ----------
    launch : Launch
    core : SessionCore
        Core of the session that owns the partition.
    session : callable
        Constructor of the session of a part from its core.

    Examples
    --------
    >>> plans = session.partition("plan", max_parts_per_unit=1)
    >>> free = plans["free"].frame["cost"].mean().release(mu=0.1)
    >>> paid = plans["paid"].frame["cost"].mean().release(mu=0.1)
    >>> plans.cost
    GDP(mu=0.1)
    """

    charged: ClassVar[Charged] = "step by step"

    def __init__(self, launch: Launch, core: SessionCore, session: Callable[[Partition[P], SessionCore], P]) -> None:
        super().__init__(launch, core)
        self._session = session
        self._keys: tuple[Key, ...] = tuple(launch.resolved["keys"])
        self._sessions: Kept[P] = Kept(MOST_KEPT)
        self._charged_parts = int(launch.resolved["charged_parts_per_unit"])

    @property
    def cost_description(self) -> str:  # type: ignore[override]
        """When the mechanism is charged, and for what, in a sentence."""
        largest = (
            "the largest part" if self._charged_parts == 1 else f"the sum of the {self._charged_parts} largest parts"
        )
        return (
            f"Parts of the table by {self._launch.resolved['by']}. The session is charged step by step, by "
            f"the growth of {largest}, not by the sum of all. Nothing is reserved; parts and session may be queried in "
            "any order."
        )

    def __getitem__(self, key: Key) -> P:
        """The session of a part."""
        if key not in self._keys:
            known = ", ".join(map(repr, self._keys[:10])) + (", ..." if len(self._keys) > 10 else "")
            raise PlanError(f"{self.name}: {key!r} is not a key of this partition; its keys are {known}")
        declared = self._keys[self._keys.index(key)]  # 1 == True: the name shows the declared one
        return self._sessions.get(declared, lambda: self._session(self, self._core.part_of(self._launch, declared)))

    def _part_at(self, node: str) -> P | None:
        """The session of the part on a node; None if no part has it.

        No other part's session is made.  No table of all nodes is kept: it would be larger than all else here.
        """
        key = self._key_at(node.partition(" ")[2])
        return None if key is None else self[key[0]]

    def _key_at(self, part: str) -> tuple[Key] | None:
        """The key of a part, from the text that its node has for it; None if there is no such part."""
        try:
            (key,) = json.loads(part)
        except (ValueError, TypeError, RecursionError):
            return None
        if key not in self._keys:
            return None
        declared = self._keys[self._keys.index(key)]
        return (declared,) if node_of(self.id, (declared,)).partition(" ")[2] == part else None

    def _index(self, part: str) -> int:
        return self._keys.index(json.loads(part)[0])

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    @property
    def max_parts_per_unit(self) -> int:
        """The number of parts in which one unit can have rows."""
        return self._charged_parts

    @property
    def cost(self) -> Loss:
        """The charges of the session for it so far, in the kind of loss that its filter counts."""
        state = self._account.sync()
        spent = state.filter.spent
        paid: Loss = spent.with_parts(state.parts.cost(self.id, self._charged_parts, len(spent.parts)))
        return paid

    @property
    def summary(self) -> str:
        """The current status, in few words."""
        queried = self._account.sync().parts.of(self.id)
        cost = self._format_cost(self.cost) if self.cost else "nothing"
        return f"{len(queried)} of {len(self)} parts queried; charged {cost} so far"

    def _part_text(self, cost: Loss) -> str:
        """What a part has spent, in few words."""
        return format_percent_first(cost, self._budget_fraction(cost))

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The parts that were queried, at most 50, each with its charge relative to the largest."""
        state = self._account.sync()
        queried, kind, by = state.parts.of(self.id), state.filter.spent, self._launch.resolved["by"]
        shown = sorted(queried.items(), key=lambda item: item[1], reverse=True)[:MAX_PARTS_SHOWN]
        largest = shown[0][1][0] if shown else 0
        return [
            {
                "name": f"{by} {self._keys[index]}",
                "value": decimal_up(sums[0] / largest) if largest else 0.0,
                "text": self._part_text(kind.with_parts(sums)),
            }
            for index, sums in sorted((self._index(part), sums) for part, sums in shown)
        ]


def partition_request(
    core: SessionCore, group: GroupLevel, name: str | None, table: TableSource, limit: int | None
) -> LaunchRequest:
    """The launch of a partition by a level of groups; for the arguments see :meth:`dpnb.Session.partition`."""
    # Refuses rows that this session does not pay for, in a part.
    schema, unit = core.tables.schema(table), core.tables.unit(table)
    check_structure(Plan(Count(), group_by=(group,), source=table))
    check_parts(table, core.tables.schemas, core.tables.units)
    if isinstance(table, Join):
        raise PlanError("partition: must be of a table or a part of one; got a join; join the parts instead")
    keys = part_keys(group.expression, schema)
    max_parts, enforced = parts_of_unit(unit, len(keys), limit)
    obstacle = core.account.filter.partition_obstacle
    if obstacle is not None:
        raise RequestError(f"partition: {obstacle}")
    resolved = {"by": group.name, "keys": list(keys), "charged_parts_per_unit": max_parts}
    title = f"by {group.name}" if name is None else name
    return LaunchRequest(title, PartitionTable(table, group, enforced), resolved=resolved)


def level_by(by: Any) -> GroupLevel:
    """The level that splits the table: a column's name, or an expression of columns."""
    if isinstance(by, str):
        return GroupLevel(by, Column(by))
    if isinstance(node := getattr(by, "_node", None), Expression):  # a column of a frame, which is a higher layer
        return GroupLevel(words(node), node)
    raise PlanError(f"partition: by must be a column's name or an expression of columns; got {type(by).__name__}")
