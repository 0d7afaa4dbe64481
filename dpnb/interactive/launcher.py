"""Launching interactive mechanisms: named, charged before anything is read, found again under the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar

from dpnb._core import registry
from dpnb._core.accountant.admission import admit_launch
from dpnb._core.accountant.tree import (
    ABOVE_THRESHOLD,
    CODES,
    GRADIENT_DESCENT,
    NOISE_REDUCTION,
    PARTITION,
    SUB_SESSION,
    Launch,
)
from dpnb._core.core import SessionCore
from dpnb._plan.schema import encodable
from dpnb.accounting.interleaving import interleaving_obstacle
from dpnb.accounting.losses import Loss
from dpnb.copying import NotCopyable, safe_repr
from dpnb.errors import BudgetExceeded, InvalidValueError, PlanError, RequestError
from dpnb.interactive.gradient_descent import GradientDescent
from dpnb.interactive.launch_request import LONGEST_NAME, LaunchRequest
from dpnb.interactive.mechanism import SessionMechanism
from dpnb.interactive.noise_reduction import NoiseReduction
from dpnb.interactive.partition import Partition
from dpnb.interactive.sub_session import SubSessionMechanism
from dpnb.interactive.threshold_scan import ThresholdScan
from dpnb.ledger import node_of, parent_launch
from dpnb.ledger.charge import LAUNCH, digest
from dpnb.render.numbers import format_cost_up, format_percent_down
from dpnb.render.page import text_or_error
from dpnb.results.explanation import Explanation


class HasMechanisms(Protocol):
    """A session, as far as its outer one must know it."""

    @property
    def _mechanisms(self) -> MechanismRegistry[Any, Any]: ...


S = TypeVar("S")
"""A sub-session, as the analyst holds it."""
P = TypeVar("P", bound=HasMechanisms)
"""The session of a part."""


class MechanismRegistry(NotCopyable, Generic[S, P]):
    """What is launched in one session.

    Parameters
    ----------
    core : SessionCore
    sub_session, part : callable
        Make the sessions inside.
    """

    def __init__(
        self,
        core: SessionCore,
        sub_session: Callable[[SubSessionMechanism], S],
        part: Callable[[Partition[P], SessionCore], P],
    ) -> None:
        self._core, self._account = core, core.account
        self._sub_session, self._part = sub_session, part
        self._made: dict[int, SessionMechanism] = {}
        self._sub_sessions: dict[int, S] = {}

    # --- finding ------------------------------------------------------------------------------------------------

    def all(self) -> MechanismMapping:
        """By name; of one name the newest."""
        return MechanismMapping((launch.name, self.attached(launch)) for launch in self._here())

    def told(self) -> list[dict[str, Any]]:
        """What the panel is told, also of what was launched in parts of the table."""
        told = []
        for launch in self._account.tree.launches_in(self._account.root_node):
            inside = self._at(launch.node)
            where = "" if inside is self else f"{inside._core.label}: "
            one = inside._of(launch).to_dict()
            told.append({**one, "name": where + one["name"]})
        return told

    def _at(self, branch: str) -> MechanismRegistry[Any, Any]:
        """Those of this session, or of a part that is reached from it."""
        step = parent_launch(branch)
        if branch == self._account.root_node or step is None:
            return self
        outer = self._account.tree.sync()[step[0]]
        partition: Partition[P] = self._at(outer.node).attached(outer)
        return next(partition[key] for key in partition if node_of(outer.id, (key,)) == branch)._mechanisms

    def _here(self) -> list[Launch]:
        launches = self._account.tree.sync().values()
        return [launch for launch in launches if launch.node == self._account.root_node]

    def attached(self, launch: Launch) -> Any:
        """As the analyst holds it."""
        made = self._of(launch)
        if not isinstance(made, SubSessionMechanism):
            return made
        if launch.id not in self._sub_sessions:
            self._sub_sessions[launch.id] = self._sub_session(made)
        return self._sub_sessions[launch.id]

    def _of(self, launch: Launch) -> SessionMechanism:
        if launch.id not in self._made:
            self._made[launch.id] = self._make(launch)
        return self._made[launch.id]

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

    # --- launching ----------------------------------------------------------------------------------------------

    def launched(self, request: LaunchRequest) -> Launch:
        """The launch of that name, written now if there is none; durable and charged when this returns.

        Raises
        ------
        BudgetExceeded
            It does not fit; nothing was charged.
        RequestError
            The name was given to something else, or the filter allows no such launch.
        InvalidValueError
            The name is none.
        """
        checked = _checked_name(request.name, request.kind)
        try:
            launch = self._found_or_charged(request, checked)
        except (BudgetExceeded, InvalidValueError, PlanError, RequestError) as error:
            self._core.releases.refused(f"{request.kind} {checked}", error)
            raise
        self._core.changed()
        return launch

    def launch(self, request: LaunchRequest) -> Any:
        """The mechanism of that name, as the analyst holds it; see `launched`."""
        return self.attached(self.launched(request))

    def _found(self, request: LaunchRequest, name: str) -> Launch | None:
        """The launch of that name, if there is one that goes on with this version of the table.

        Raises
        ------
        RequestError
            The name was given to something else.
        """
        found = self.named(name)
        if found is None or not found.continues_with(self._core.version):
            return None
        if (found.kind, found.details["arguments"]) != (request.kind, request.stored):
            raise RequestError(
                f"{name}: was launched before as a {found.kind} with other arguments, and a launch is remembered by "
                "its name; give the same arguments, or another name"
            )
        return found

    def named(self, name: object) -> Launch | None:
        """The launch of a name that goes on with this version of the table; without one the newest."""
        found = [launch for launch in self._here() if launch.name == name]
        serving = [launch for launch in found if launch.continues_with(self._core.version)]
        best = serving or found
        return best[-1] if best else None

    def _refuse(self, kind: str, name: str, loss: Loss) -> None:
        """Refuse a launch that may not be, or does not fit; call inside the ledger's transaction."""
        account = self._account
        account.tree.refuse_ended(account.root_node, self._core.version)
        if loss:
            self._refuse_for_everybody(kind, name)
        why = interleaving_obstacle(account.filter)
        if why is not None:
            raise RequestError(f"{kind} {name}: {why}")
        if loss:
            admit_launch(account, f"{kind} {name}", loss)

    def _refuse_for_everybody(self, kind: str, name: str) -> None:
        """Refuse what is paid for by everybody beforehand, where each unit pays only for what touches it."""
        if self._account.individual:
            raise RequestError(
                f"{kind} {name}: would be paid by everybody at its launch, also by those whom nothing in it touches; "
                "under accounting='individual' ask the questions themselves, of which each costs only those it touches"
            )

    def _found_or_charged(self, request: LaunchRequest, name: str) -> Launch:
        account, version = self._account, self._core.version
        old = self.named(name)
        if old is not None and not old.continues_with(version):
            self._of(old).close()  # nobody can reach it behind the new one, and a unit may be elsewhere by now
        with account.ledger.transaction():
            found = self._found(request, name)
            if found is not None:
                return found
            self._refuse(request.kind, name, request.loss)
            number = account.ledger.reserve(
                kind=LAUNCH,
                key=digest(["launch", account.root_node, version, name]),
                branch=account.root_node,
                version=version,
                question=name,
                loss=request.loss,
                launch={
                    "mechanism": CODES[request.kind],
                    "name": name,
                    "arguments": request.stored,
                    "resolved": request.about,
                },
                cell=registry.current_cell(),
            ).id
        return account.tree.sync()[number]  # not before it is on disk: what was undone must not be remembered

    def preview(self, request: LaunchRequest) -> Explanation:
        """What a launch would cost, by the very rules of a launch; nothing is charged.

        Raises
        ------
        BudgetExceeded, RequestError, InvalidValueError
            As `launched`.
        """
        kind, loss, facts = request.kind, request.loss, request.facts
        checked = _checked_name(request.name, kind)
        if loss:
            self._refuse_for_everybody(kind, checked)
        title = f"{kind} {checked}"
        with self._account.ledger.transaction():
            found = self._found(request, checked) is not None
            if not found:
                self._refuse(kind, checked, loss)
        if not loss:
            before = [("launched", "before: it is found again, and its steps so far are free")] if found else []
            return Explanation(title, [*before, *facts], self._core.notice)
        if found:
            return Explanation(title, [("cost", "nothing: it was launched before, and is found again."), *facts])
        after = self._account.filter.step(self._account.promise.to_filter_loss(loss))
        left = f"{format_percent_down(after.headroom)} of the budget would be left"
        return Explanation(
            title, [("cost", f"{format_cost_up(loss)}, all of it at launch; {left}. Nothing was charged yet."), *facts]
        )


class MechanismMapping(dict[str, Any]):
    """Mechanisms by name, a line each."""

    @safe_repr
    def __repr__(self) -> str:
        return "\n".join(f"{name}: {one.kind}, charged {one.charged}" for name, one in self.items())

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else text_or_error(self))

    def __str__(self) -> str:
        """With the state of each, read from the ledger."""
        return "\n".join(f"{name}: {one.kind}, {one.state}, charged {one.charged}" for name, one in self.items())


def _checked_name(name: object, kind: str) -> str:
    if isinstance(name, str) and name.strip() and len(name) <= LONGEST_NAME and encodable(name):
        return name
    raise InvalidValueError(f"name: a {kind} must have one, a str of at most {LONGEST_NAME} characters; got {name!r}")
