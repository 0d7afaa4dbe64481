"""Launches of interactive mechanisms: charged before any row is read, and identified by their names."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Generic, Protocol, TypeVar

from dpnb._core.accountant.tree import (
    ABOVE_THRESHOLD,
    GRADIENT_DESCENT,
    NOISE_REDUCTION,
    PARTITION,
    SUB_SESSION,
    Launch,
)
from dpnb._core.core import SessionCore
from dpnb._core.history.words import charge_text
from dpnb._request import ALWAYS, CloseMechanism, CompareWithThreshold, LaunchMechanism
from dpnb.accounting.grid import capped_up
from dpnb.copying import NotCopyable, safe_repr
from dpnb.errors import RequestError
from dpnb.interactive.gradient_descent import GradientDescent
from dpnb.interactive.launches import CloseKind, ComparisonKind, LaunchKind
from dpnb.interactive.mechanism import Kept, LaunchRequest, SessionMechanism
from dpnb.interactive.noise_reduction import NoiseReduction
from dpnb.interactive.scan import ThresholdScan
from dpnb.interactive.sub_session import Partition, SubSessionMechanism
from dpnb.ledger import parent_launch, refuse_unreadable
from dpnb.ledger.origin import is_node
from dpnb.render.numbers import format_percent_down
from dpnb.render.page import text_or_error
from dpnb.results.display import Explanation


class HasMechanisms(Protocol):
    """The part of a session that its outer session uses."""

    @property
    def _mechanisms(self) -> MechanismRegistry[Any, Any]: ...


MOST_KEPT = 32
"""Mechanisms and sub-sessions of one session that are kept although nobody uses them."""

S = TypeVar("S")
"""Type of a sub-session."""
P = TypeVar("P", bound=HasMechanisms)
"""Type of the session of a part."""


class MechanismRegistry(NotCopyable, Generic[S, P]):
    """The mechanisms launched in one session; `sub_session` and `part` construct the inner sessions."""

    def __init__(
        self,
        core: SessionCore,
        sub_session: Callable[[SubSessionMechanism], S],
        part: Callable[[Partition[P], SessionCore], P],
    ) -> None:
        self._core, self._account, self._launches = core, core.account, LaunchKind(core)
        self._closes = CloseKind(self._launches)
        core.executor.kinds |= {
            LaunchMechanism: self._launches,
            CloseMechanism: self._closes,
            CompareWithThreshold: ComparisonKind(core, self._launches),
        }
        self._sub_session, self._part = sub_session, part
        self._mechanisms_by_id: Kept[SessionMechanism] = Kept(MOST_KEPT)
        self._sub_sessions: Kept[S] = Kept(MOST_KEPT)

    # --- look-up ------------------------------------------------------------------------------------------------

    def all(self) -> MechanismMapping:
        """The mechanisms by name; for each name the newest."""
        return MechanismMapping((launch.name, self.attached(launch)) for launch in self._launches.here())

    def entries(self) -> list[dict[str, Any]]:
        """The mechanisms as the panel shows them, including those launched in parts of the table."""
        entries = []
        for launch in self._account.tree.launches_in(self._account.root_node):
            inside = self.at(launch.node)
            prefix = "" if inside is self else f"{inside._core.label}: "
            entry = inside._of(launch)._to_dict()
            entries.append({**entry, "name": prefix + entry["name"]})
        return entries

    def at(self, node: str) -> MechanismRegistry[Any, Any]:
        """The registry of this session, or of a sub-session or part inside it."""
        if node == self._account.root_node:
            return self
        step = parent_launch(node) if is_node(node) else None
        outer = None if step is None else self._account.tree.sync().get(step[0])
        if outer is not None and outer.kind in (SUB_SESSION, PARTITION):
            inside = self.at(outer.node).attached(outer)
            session = inside if outer.kind == SUB_SESSION else inside._part_at(node)
            if session is not None and session._core.account.root_node == node:
                registry: MechanismRegistry[Any, Any] = session._mechanisms
                return registry
        # Without the node: its number in the ledger depends on the rows of other analysts, and so below.
        raise RequestError("node: must be a session, a sub-session or a part here; got another one")

    def attached(self, launch: Launch) -> Any:
        """The object that the analyst uses."""
        mechanism = self._of(launch)
        if not isinstance(mechanism, SubSessionMechanism):
            return mechanism
        return self._sub_sessions.get(launch.id, lambda: self._sub_session(mechanism))

    def _of(self, launch: Launch) -> SessionMechanism:
        return self._mechanisms_by_id.get(launch.id, partial(self._read, launch))

    def _read(self, launch: Launch) -> SessionMechanism:
        with refuse_unreadable(f"row {launch.id}"):  # which may lack what was fixed at the launch
            return self._make(launch)

    def _make(self, launch: Launch) -> SessionMechanism:
        if launch.kind == PARTITION:
            return Partition(launch, self._core, self._part)
        kinds: dict[str, Callable[[Launch, SessionCore], SessionMechanism]] = {
            SUB_SESSION: SubSessionMechanism,
            NOISE_REDUCTION: NoiseReduction,
            GRADIENT_DESCENT: GradientDescent,
            ABOVE_THRESHOLD: ThresholdScan,
        }
        return kinds[launch.kind](launch, self._core)

    def open(self, name: str) -> SessionMechanism:
        """The mechanism that was launched here under a name."""
        launch = self._launches.named(name)
        if launch is None:
            raise RequestError("launch: must be the name of a mechanism of this session; got another one")
        return self._of(launch)

    def closed(self, request: CloseMechanism) -> int:
        """Close a mechanism; the id of the row of its close."""
        launch = self._closes.launch(request)
        self._of(launch).close()
        return self._account.tree.sync()[launch.id].closed_by or launch.id

    @property
    def core(self) -> SessionCore:
        """Core of the session."""
        return self._core

    # --- launching ----------------------------------------------------------------------------------------------

    def launched(self, request: LaunchMechanism) -> Launch:
        """The launch of that name, recorded now if there is none; the charge is durable when this returns.

        If it raises `BudgetExceeded`, nothing was charged.
        """
        old = self._launches.named(request.name)
        with self._core.executor.refusals_of(lambda: self._launches.describe(request)):
            if self._core.remote is None and old is not None and not old.continues_with(self._core.version):
                self._of(old).close()  # the new one replaces it, and a unit may be in another part in the new version
            (row,) = self._core.executor.run(request)
        return self._account.tree.sync()[row.id]

    def launch(self, request: LaunchRequest) -> Any:
        """The mechanism of that name, as the analyst uses it; see `launched`."""
        return self.attached(self.launched(request.stored))

    def named(self, name: object) -> Launch | None:
        """The launch of a name, as :meth:`LaunchKind.current`."""
        return self._launches.current(name)

    def preview(self, request: LaunchRequest) -> Explanation:
        """The cost of a launch, by the same rules as the launch itself; nothing is charged."""
        facts, stored = request.facts, request.stored
        loss, title = capped_up(request.loss, self._account.filter), request.title
        if loss:
            self._launches.refuse_if_individual(request)
        with self._account.ledger.transaction():
            is_known, counted = bool(self._launches.recorded(stored)), loss
            if not is_known:
                self._launches.refuse_ended(stored, ALWAYS)
                counted = self._launches.admitted(request, loss)
        if not loss:
            before = (
                [("launch", "the earlier launch of this name is reused, and its recorded steps are free")]
                if is_known
                else []
            )
            return Explanation(title, [*before, *facts], self._core.notice)
        if is_known:
            reused = [("cost", "nothing: the earlier launch of this name is reused"), *facts]
            return Explanation(title, reused, self._core.notice)
        left = "no budget limits it"
        if self._account.guarantee.has_budget:
            after = self._account.filter.step(counted)
            left = f"{format_percent_down(after.headroom)} of the budget would remain"
        cost = charge_text(self._account, loss, counted, self._account.forecast(counted)[0])
        return Explanation(
            title,
            [("cost", f"{cost}, in full at launch; {left}; nothing was charged"), *facts],
            self._core.notice,
        )


class MechanismMapping(dict[str, Any]):
    """Mechanisms by name; its repr has a line for each."""

    @safe_repr
    def __repr__(self) -> str:
        return "\n".join(f"{name}: {one.kind}, charged {one.charged}" for name, one in self.items())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else text_or_error(self))

    def __str__(self) -> str:
        """With the state of each, read from the ledger."""
        return "\n".join(f"{name}: {one.kind}, {one.state}, charged {one.charged}" for name, one in self.items())
