"""Launches of interactive mechanisms: charged before any row is read, and identified by their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Protocol, TypeVar, cast

from dpnb._core import registry
from dpnb._core.accountant.admission import admit_launch
from dpnb._core.accountant.cost_text import charge_text
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
from dpnb.accounting.grid import capped_up
from dpnb.accounting.losses import Loss
from dpnb.copying import NotCopyable, safe_repr
from dpnb.errors import BudgetExceeded, InvalidValueError, PlanError, RequestError
from dpnb.interactive.descent.gradient_descent import GradientDescent
from dpnb.interactive.launch_request import MAX_NAME_LENGTH, LaunchRequest
from dpnb.interactive.mechanism import Kept, SessionMechanism
from dpnb.interactive.noise_reduction import NoiseReduction
from dpnb.interactive.partition import Partition
from dpnb.interactive.sub_session import SubSessionMechanism
from dpnb.interactive.threshold.hidden_noise import discard_hidden_noise, keep_hidden_noise
from dpnb.interactive.threshold.scan import ThresholdScan
from dpnb.ledger import Charge, parent_launch
from dpnb.ledger.charge import LAUNCH
from dpnb.ledger.node import is_node
from dpnb.ledger.request_key import launch_key
from dpnb.render.numbers import format_percent_down
from dpnb.render.page import text_or_error
from dpnb.results.display import Explanation
from dpnb.schema import encodable
from dpnb.wire.calls import LaunchMechanism, MechanismCode


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
        self._core, self._account = core, core.account
        self._sub_session, self._part = sub_session, part
        self._mechanisms_by_id: Kept[SessionMechanism] = Kept(MOST_KEPT)
        self._sub_sessions: Kept[S] = Kept(MOST_KEPT)

    # --- look-up ------------------------------------------------------------------------------------------------

    def all(self) -> MechanismMapping:
        """The mechanisms by name; for each name the newest."""
        return MechanismMapping((launch.name, self.attached(launch)) for launch in self._here())

    def told(self) -> list[dict[str, Any]]:
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

    def _here(self) -> list[Launch]:
        launches = self._account.tree.sync().values()
        return [launch for launch in launches if launch.node == self._account.root_node]

    def attached(self, launch: Launch) -> Any:
        """The object that the analyst uses."""
        mechanism = self._of(launch)
        if not isinstance(mechanism, SubSessionMechanism):
            return mechanism
        return self._sub_sessions.get(launch.id, lambda: self._sub_session(mechanism))

    def _of(self, launch: Launch) -> SessionMechanism:
        return self._mechanisms_by_id.get(launch.id, lambda: self._make(launch))

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

    def by_id(self, launch: int) -> SessionMechanism:
        """The mechanism that a row of the ledger launched here."""
        for one in self._here():
            if one.id == launch:
                return self._of(one)
        raise RequestError("launch: must be a mechanism of this session; got another number")

    @property
    def core(self) -> SessionCore:
        """Core of the session."""
        return self._core

    # --- launching ----------------------------------------------------------------------------------------------

    def launched(self, request: LaunchRequest) -> Launch:
        """The launch of that name, recorded now if there is none; the charge is durable when this returns.

        If it raises `BudgetExceeded`, nothing was charged.
        """
        checked = _checked_name(request.name)
        try:
            launch = self._launched_remotely(request, checked) or self._launched_here(request, checked)
        except (BudgetExceeded, InvalidValueError, PlanError, RequestError) as error:
            self._core.releases.refused(f"{request.kind} {checked}", error)
            raise
        self._core.changed()
        return launch

    def launch(self, request: LaunchRequest) -> Any:
        """The mechanism of that name, as the analyst uses it; see `launched`."""
        return self.attached(self.launched(request))

    def _find(self, request: LaunchRequest, name: str) -> Launch | None:
        """The launch of that name, if there is one that continues with this version of the table."""
        known = self.named(name)
        if known is None or not known.continues_with(self._core.version):
            return None
        if (known.kind, known.details["arguments"]) != (request.kind, request.stored_arguments):
            raise RequestError(
                f"{name}: was launched before as a {known.kind} with other arguments, and a launch is identified by "
                "its name; use the same arguments, or another name"
            )
        return known

    def named(self, name: object) -> Launch | None:
        """The launch of a name that continues with this version of the table; otherwise the newest of the name."""
        launches = [launch for launch in self._here() if launch.name == name]
        current = [launch for launch in launches if launch.continues_with(self._core.version)]
        best = current or launches
        return best[-1] if best else None

    def _admit(self, kind: str, name: str, loss: Loss) -> Loss:
        """What the filter counts; refuses a launch that is not allowed or does not fit.  Call in the transaction."""
        account = self._account
        account.tree.refuse_ended(account.root_node, self._core.version)
        if loss:
            self._refuse_if_individual(kind, name)
        obstacle = account.filter.interleaving_obstacle
        if obstacle is not None:
            raise RequestError(f"{kind} {name}: {obstacle}")
        return admit_launch(account, f"{kind} {name}", loss) if loss else loss

    def _refuse_if_individual(self, kind: str, name: str) -> None:
        """Refuse a charge at launch to every unit under individual accounting."""
        if self._account.individual:
            raise RequestError(
                f"{kind} {name}: would charge every unit at launch, including those that no query in it uses; under "
                "accounting='individual' release the queries themselves, which charge only the units they use"
            )

    def _launched_remotely(self, request: LaunchRequest, name: str) -> Launch | None:
        """The launch, recorded by the service that keeps the ledger; None if that is this process."""
        remote = self._core.remote
        if remote is None:
            return None
        known = self._find(request, name)
        if known is not None:
            return known
        code, arguments = cast(MechanismCode, CODES[request.kind]), request.stored_arguments
        expected = LAUNCH, self._account.root_node, code, name, arguments
        (row,) = remote.run(LaunchMechanism(code, name, arguments), lambda rows: [*map(_written, rows)] == [expected])
        return self._account.tree.sync()[row.id]

    def _launched_here(self, request: LaunchRequest, name: str) -> Launch:
        """The launch, recorded with its hidden noise if it has any."""
        account, version = self._account, self._core.version
        old = self.named(name)
        if old is not None and not old.continues_with(version):
            self._of(old).close()  # the new one replaces it, and a unit may be in another part in the new version
        token, resolved = None, request.resolved
        try:
            with account.ledger.transaction():
                known = self._find(request, name)
                if known is not None:
                    return known
                loss = capped_up(request.loss, account.filter)
                counted = self._admit(request.kind, name, loss)
                charged = account.guarantee.initial_filter.recorded_charge(loss, counted)
                if request.draw is not None:
                    # Only for a launch that is recorded: a remote session does not send the others to the service, and
                    # words of a seeded source that they use here would change all later answers.
                    token = keep_hidden_noise(request.draw(self._core.source))
                    resolved = {**resolved, "noise_token": token}
                number = account.ledger.reserve(
                    kind=LAUNCH,
                    request_key=launch_key(version, account.root_node, name),
                    node=account.root_node,
                    table_version=version,
                    query_key=name,
                    loss=loss,
                    charged=charged,
                    launch={
                        "mechanism": CODES[request.kind],
                        "name": name,
                        "arguments": request.stored_arguments,
                        "resolved": resolved,
                    },
                    cell_id=registry.current_cell(),
                ).id
        except BaseException:
            if token is not None:
                discard_hidden_noise(token)
            raise
        return account.tree.sync()[number]  # only after the commit: a launch that was rolled back must not be kept

    def preview(self, request: LaunchRequest) -> Explanation:
        """The cost of a launch, by the same rules as the launch itself; nothing is charged."""
        kind, facts = request.kind, request.facts
        loss = capped_up(request.loss, self._account.filter)
        checked = _checked_name(request.name)
        if loss:
            self._refuse_if_individual(kind, checked)
        title = f"{kind} {checked}"
        with self._account.ledger.transaction():
            is_known = self._find(request, checked) is not None
            counted = loss if is_known else self._admit(kind, checked, loss)
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


def _written(row: Charge) -> tuple[Any, ...]:
    """What the row of a launch says about its request."""
    details = row.launch or {}
    return row.kind, row.node, *map(details.get, ("mechanism", "name", "arguments"))


def _checked_name(name: object) -> str:
    if isinstance(name, str) and name.strip() and len(name) <= MAX_NAME_LENGTH and encodable(name):
        return name
    raise InvalidValueError(f"name: must be a non-empty str of at most {MAX_NAME_LENGTH} characters; got {name!r}")
