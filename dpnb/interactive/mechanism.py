"""The interface and the base class of interactive mechanisms.

An interactive mechanism answers several queries under one name, and its owner, a session, is charged in one of two
ways: in full *at launch*, after which its answers cost nothing more, or *step by step*, with nothing reserved.  In both
cases the charge is in the ledger before a row is read.  Any number of mechanisms may be open at once and be queried in
any order, interleaved with plain queries, and the analyst may choose each budget after seeing all earlier answers
(Haney et al. 2023).

==================  ==============  ==================================================================================
kind                charged         description
==================  ==============  ==================================================================================
sub-session         at launch       a part of the budget, with its own filter and odometers
partition           step by step    one session for each key; charged by the growth of the largest
above-threshold     at launch       a stream of queries compared with a threshold, up to `max_positives` positives
noise reduction     step by step    one answer, refined until it is accurate enough
gradient descent    step by step    a regression fitted by noisy gradients
==================  ==============  ==================================================================================

A launch has a name and is recorded in the ledger: launching again with the same name and arguments, in any kernel,
returns the same mechanism at no cost.  Hidden noise is never stored, so above-threshold gives no new answers after its
kernel has ended; its recorded answers remain free.

A new version of the table needs new launches, except for sub-sessions if it declares the same columns and limits;
launching under the same name closes the old one.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic, Literal, Protocol, TypeVar, runtime_checkable
from weakref import WeakValueDictionary

from dpnb._core.accountant.tree import KINDS, Launch
from dpnb._core.core import SessionCore
from dpnb._core.history.words import charge_text
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan
from dpnb._request import AnyMechanism, CloseMechanism, LaunchMechanism
from dpnb.accounting.losses import GDP, Loss
from dpnb.copying import NotCopyable, safe_repr
from dpnb.errors import InvalidValueError, RequestError
from dpnb.ledger import MEMORY, Ledger
from dpnb.mechanisms.randomness import NoiseSource
from dpnb.query.query import Query
from dpnb.render.numbers import format_cost
from dpnb.render.page import text_or_error
from dpnb.render.sessions import mechanism_html
from dpnb.schema import encodable

Charged = Literal["at launch", "step by step"]
MechanismState = Literal["open", "exhausted", "closed", "unavailable"]
"""``unavailable``: the hidden noise is or was in another kernel, or the launch is for another version of the table."""


@runtime_checkable
class InteractiveMechanism(Protocol):
    """The common interface of all interactive mechanisms.

    Examples
    --------
    >>> from dpnb.interactive import InteractiveMechanism
    >>> parts = session.partition("plan")
    >>> isinstance(parts, InteractiveMechanism), parts.kind, parts.charged
    (True, 'partition', 'step by step')
    """

    @property
    def name(self) -> str:
        """The name under which it was launched."""
        ...

    @property
    def kind(self) -> str:
        """``sub-session``, ``partition``, ``above-threshold``, ``noise reduction`` or ``gradient descent``."""
        ...

    @property
    def charged(self) -> Charged:
        """When its owner is charged: ``at launch`` or ``step by step``."""
        ...

    @property
    def cost(self) -> Loss:
        """The privacy loss that its owner accounts for; `session.log` says what the filter was charged for it."""
        ...

    @property
    def state(self) -> MechanismState:
        """``open``, ``exhausted``, ``closed`` or ``unavailable``; only an open mechanism gives new answers."""
        ...

    def close(self) -> None:
        """Close the mechanism for every kernel.  Recorded answers remain free; nothing is refunded."""
        ...


MAX_NAME_LENGTH = 100
"""Maximum number of characters of a launch's name."""


def title_of(words: str) -> str:
    """The name of a launch whose analyst gives none: what it is about, with a digest where that is too long."""
    if len(words) <= MAX_NAME_LENGTH:
        return words
    ending = f"... {hashlib.sha256(words.encode()).hexdigest()[:8]}"
    return words[: MAX_NAME_LENGTH - len(ending)] + ending


@dataclass(frozen=True)
class LaunchRequest:
    """A launch, before it is looked up in the ledger or charged."""

    name: object  # as given by the analyst, not yet checked
    mechanism: AnyMechanism
    loss: Loss = field(default_factory=lambda: GDP(0))  # charged at launch; zero if charged step by step
    resolved: Mapping[str, Any] = field(default_factory=dict)  # derived from the arguments and fixed at launch, as JSON
    facts: list[tuple[str, str]] = field(default_factory=list)  # further facts that a dry run shows
    # draws the hidden noise, which is kept in the process that holds the table
    draw: Callable[[NoiseSource], Any] | None = None

    @property
    def title(self) -> str:
        """The kind of mechanism and the name."""
        return f"{KINDS[type(self.mechanism)]} {self.name}"

    @property
    def stored(self) -> LaunchMechanism:
        """What is sent and stored; refuses a name that is none."""
        name = self.name
        if not (isinstance(name, str) and name.strip() and len(name) <= MAX_NAME_LENGTH and encodable(name)):
            raise InvalidValueError(
                f"name: must be a non-empty str of at most {MAX_NAME_LENGTH} characters; got {name!r}"
            )
        return LaunchMechanism(name, self.mechanism)


# --- objects that can be made again from the ledger -------------------------------------------------------------------


T = TypeVar("T")


class Kept(Generic[T]):
    """One object for each key while it is used, and the `most` recent ones longer."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._used: WeakValueDictionary[Hashable, T] = WeakValueDictionary()
        self._recent: OrderedDict[Hashable, T] = OrderedDict()

    def __len__(self) -> int:
        return len(self._used)

    def get(self, key: Hashable, make: Callable[[], T]) -> T:
        """The object of a key, made now if there is none."""
        kept = self._used.get(key)
        if kept is None:
            kept = self._used[key] = make()
        self._recent[key] = kept
        self._recent.move_to_end(key)
        while len(self._recent) > self._most:
            self._recent.popitem(last=False)
        return kept


# --- the base class of a session's interactive mechanisms -------------------------------------------------------------


class SessionMechanism(NotCopyable, ABC):
    """One interactive mechanism of a session; see :class:`dpnb.interactive.InteractiveMechanism`."""

    charged: ClassVar[Charged]
    cost_description: ClassVar[str]
    """When the mechanism is charged, and for what, in a sentence."""

    def __init__(self, launch: Launch, core: SessionCore) -> None:
        self._launch, self._core = launch, core
        self._releases, self._account = core.releases, core.account

    @property
    def id(self) -> int:
        """Id of the ledger row that launched it."""
        return self._launch.id

    @property
    def name(self) -> str:
        """The name under which it was launched."""
        return self._launch.name

    @property
    def kind(self) -> str:
        """The kind of mechanism."""
        return self._launch.kind

    @property
    def state(self) -> MechanismState:
        """``open``, ``exhausted``, ``closed`` or ``unavailable``."""
        launch = self._account.tree.sync()[self._launch.id]
        if self._account.tree.is_closed(launch):
            return "closed"
        return "open" if launch.continues_with(self._core.version) else "unavailable"

    @property
    def cost(self) -> Loss:
        """The privacy loss of all its answers."""
        return self._account.ledger.by_id((self._launch.id,))[0].loss

    def _format_cost(self, cost: Loss) -> str:
        """A cost as a percentage of its session's budget, then in its own measure."""
        return format_cost(cost, self._budget_fraction(cost))

    def _format_launch_cost(self) -> str:
        """What was charged at launch, as a percentage of the budget or of the reserve, then in its own measure."""
        row = self._account.ledger.by_id((self._launch.id,))[0]
        return charge_text(self._account, row.loss, row.charged, self._account.cost_fraction(row.id))

    def _budget_fraction(self, cost: Loss) -> float:
        account = self._account
        return account.filter.budget_fraction(account.guarantee.to_filter_loss(cost))

    @property
    @abstractmethod
    def summary(self) -> str:
        """The current status, in few words."""

    @property
    def parts(self) -> list[dict[str, Any]]:
        """Its parts, for a chart: name, size relative to the largest, text."""
        return []

    def close(self) -> None:
        """Close the mechanism for every kernel.  Recorded answers remain free; nothing is refunded.

        A query that was charged but not answered because of a crash can still be completed.

        Examples
        --------
        >>> fit = df.fit("cost", on=["age"], family="linear", mu=0.05, steps=3, clip_norm=1.0)
        >>> fit.close()
        >>> fit.state
        'closed'
        """
        self.end()
        self._core.changed()

    def end(self) -> None:
        """Record that the mechanism is closed, unless it is, without notifying the listeners of the session."""
        if not self._account.tree.sync()[self.id].is_closed:
            self._core.executor.run(CloseMechanism(self.name))

    def _to_dict(self) -> dict[str, Any]:
        """Its representation for the panel."""
        return {
            "id": str(self.id),
            "name": self.name,
            "kind": self.kind,
            "state": self.state,
            "text": self.summary,
            "description": self.cost_description,
            "parts": self.parts,
        }

    @safe_repr
    def __repr__(self) -> str:
        return f"<{self.kind} {self.name!r}, charged {self.charged}>"

    def __str__(self) -> str:
        """With the state and the summary, read from the ledger."""
        return f"<{self.kind} {self.name!r}, {self.state}: {self.summary}; charged {self.charged}>"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else text_or_error(self))

    def _repr_html_(self) -> str:
        return mechanism_html(self._to_dict())


def own_query(query: object, branch: str, ledger: Ledger) -> tuple[Plan, AnyView]:
    """Plan and view of a query of this session."""
    if not isinstance(query, Query):
        raise RequestError(f"query: must be a query, such as session.frame.count(); got {type(query).__name__}")
    account = query.runner.account
    same = account.ledger is ledger or account.ledger.path == ledger.path != MEMORY  # the session was reopened
    if not same or account.root_node != branch:
        raise RequestError(
            f"{query.description}: is a query of another session and would be charged there; use a query of the "
            "session in which the mechanism was launched"
        )
    return query.plan, query.view
