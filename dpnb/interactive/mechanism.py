"""The base class of interactive mechanisms: a launch in the ledger, a state, closing; few of them are kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, ClassVar, Generic, TypeVar
from weakref import WeakValueDictionary

from dpnb._core.accountant.tree import Launch
from dpnb._core.core import SessionCore
from dpnb._core.history.cost_text import charge_text
from dpnb._plan.measurements import AnyView
from dpnb._plan.plan import Plan
from dpnb._request import CloseMechanism
from dpnb.accounting.losses import Loss
from dpnb.copying import NotCopyable, safe_repr
from dpnb.errors import RequestError
from dpnb.interactive.protocol import Charged, MechanismState
from dpnb.ledger import MEMORY, Ledger
from dpnb.query.query import Query
from dpnb.render.numbers import format_cost
from dpnb.render.page import text_or_error
from dpnb.render.sessions import mechanism_html

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


# --- closing an interactive mechanism ---------------------------------------------------------------------------------


def close_launch(core: SessionCore, launch: Launch) -> None:
    """Record that a mechanism of a session is closed, unless it is."""
    if not core.account.tree.sync()[launch.id].is_closed:
        core.executor.run(CloseMechanism(launch.name))


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
        """Close the mechanism without notifying the listeners of the session."""
        close_launch(self._core, self._launch)

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
