"""The launches of a ledger, and the parts of its budget that analysts have, as a tree of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpnb._core.accountant import grant as grants
from dpnb._core.accountant.budget_request import BudgetRequest, Decision, actor_of, decided_request
from dpnb._core.accountant.grant import SETTINGS_ACTOR, Cap, Grant, amount_from_json
from dpnb._request import (
    AnyMechanism,
    DelegateBudget,
    DescendGradient,
    LaunchMechanism,
    MechanismRequest,
    PartitionTable,
    ReduceNoise,
    ScanThreshold,
    request_from,
)
from dpnb.accounting.losses import PureGDP
from dpnb.accounting.partition_cost import PartRef
from dpnb.errors import ChargesStopped, LedgerError, MechanismClosed
from dpnb.ledger import ROOT, ChargeSummary, Ledger, node_of, parent_launch, refuse_unreadable
from dpnb.ledger.charge import ACT, BUDGET_REQUEST, CLOSE, GRANT, LAUNCH, VERSION
from dpnb.ledger.declared import shape_of
from dpnb.ledger.origin import current_origin

PARTITION = "partition"
SUB_SESSION = "sub-session"
ABOVE_THRESHOLD = "above-threshold"
NOISE_REDUCTION = "noise reduction"
GRADIENT_DESCENT = "gradient descent"
KINDS: dict[type[MechanismRequest], str] = {
    PartitionTable: PARTITION,
    DelegateBudget: SUB_SESSION,
    ScanThreshold: ABOVE_THRESHOLD,
    ReduceNoise: NOISE_REDUCTION,
    DescendGradient: GRADIENT_DESCENT,
}
"""The kinds of mechanisms in words."""


@dataclass(frozen=True)
class Launch:
    """One interactive mechanism, as recorded in the ledger.

    `id` and `closed_by` are the ids of the rows that launched and closed it.  `node` is the one in which it was
    launched, and `version` that of the table then.  `mechanism` is as written, and `resolved` are values that were
    fixed at the launch.  `actor` is the analyst who launched it at a service; None in a local session.  Its columns and
    limits are declared now if it `is_declared`.
    """

    id: int
    name: str
    node: str
    version: str
    mechanism: AnyMechanism
    resolved: Mapping[str, Any]
    closed_by: int | None = None
    actor: str | None = None
    is_declared: bool = True

    @classmethod
    def from_row(cls, charge: ChargeSummary) -> Launch:
        """Read the row of a launch; a `LedgerError` if it cannot be read."""
        with refuse_unreadable(f"row {charge.id}"):
            request = request_from(charge.request or "")
            if not isinstance(request, LaunchMechanism):
                raise TypeError(type(request).__name__)
            place, resolved = (charge.node, charge.table_version), charge.launch or {}
            return cls(charge.id, request.name, *place, request.mechanism, resolved, actor=actor_of(charge) or None)

    @property
    def kind(self) -> str:
        """The kind of mechanism in words."""
        return KINDS[type(self.mechanism)]

    def continues_with(self, version: str) -> bool:
        """Whether it continues with that version of the table.

        A sub-session does if the version declares the same columns and limits, like a session: its budget covers
        everything that it ever releases.  A partition does not, since a unit may be in other parts of another version.
        """
        return self.is_declared and (self.kind == SUB_SESSION or self.version == version)

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self.closed_by is not None


def partition_of(launch: Launch) -> PartitionTable:
    """What a partition was launched as."""
    if not isinstance(launch.mechanism, PartitionTable):  # never: its kind is that of a partition
        raise TypeError(launch.kind)
    return launch.mechanism


@dataclass(frozen=True)
class FromSettings:
    """What the settings of a service last said about a part and its cap, which a curator may have changed since."""

    cap: PureGDP | None
    is_present: bool = True


class BudgetTree:
    """The launches of all kernels in one ledger, and the parts of its budget that a service granted to analysts."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._launches: dict[int, Launch] = {}
        self._grants: dict[int, Grant] = {}
        self._caps: dict[str, Cap] = {}  # by node
        self._from_settings: dict[str, FromSettings] = {}  # likewise
        self._requests: dict[int, BudgetRequest] = {}
        self._frozen: str | None = None
        self._last_id = 0

    def sync(self) -> Mapping[int, Launch]:
        """All launches by the ids of their rows, in their current state."""
        with self._ledger.lock.checked():
            for charge in self._ledger.summaries(after=self._last_id):
                if charge.launch is not None:
                    with refuse_unreadable(f"row {charge.id}"):
                        self._add(charge, charge.launch)
                self._last_id = charge.id
            return dict(self._launches)  # a copy, since other threads may launch meanwhile

    def _add(self, charge: ChargeSummary, details: Mapping[str, Any]) -> None:
        if charge.kind == CLOSE:
            closed = int(details["closes"])
            self._launches[closed] = replace(self._launches[closed], closed_by=charge.id)
        elif charge.kind == LAUNCH:
            self._launches[charge.id] = Launch.from_row(charge)
            self._note_declared([charge.id])
        elif charge.kind == VERSION:
            self._note_declared([*self._launches])
        elif charge.kind == GRANT:
            grant = self._grants[charge.id] = Grant.from_details(charge.id, charge.node, details)
            node, actor = node_of(charge.id), actor_of(charge)
            self._caps[node] = Cap(grant.cap, grant.ceiling)
            self._from_settings[node] = FromSettings(grant.cap, is_present=actor in ("", SETTINGS_ACTOR))
        elif charge.kind == ACT:
            self._act(charge, charge.node, details)
        elif charge.kind == BUDGET_REQUEST:
            part = self._part_of(charge.node, actor_of(charge))
            self._requests[charge.id] = BudgetRequest.from_row(charge, None if part is None else part.id)

    def _note_declared(self, ids: list[int]) -> None:
        """Note whether what is declared now, up to columns that were added, is what some launches were made for."""
        ledger = self._ledger
        if not ledger.earlier and not ledger.declaring():
            return  # nothing was ever declared otherwise
        now, shapes = shape_of(ledger.valid.metadata), dict[int, dict[str, str]]()
        for number in ids:
            then = ledger.declaring(number)
            if then not in shapes:
                shapes[then] = shape_of(ledger.declaration(then).metadata)
            self._launches[number] = replace(self._launches[number], is_declared=shapes[then] == now)

    def _act(self, charge: ChargeSummary, node: str, details: Mapping[str, Any]) -> None:
        match details["act"]:
            case "cap":
                base = amount_from_json(details["cap"])
                self._caps[node] = self._caps.get(node, Cap(None)).set_to(base)
                if actor_of(charge) == SETTINGS_ACTOR:
                    self._from_settings[node] = replace(self._said(node), cap=base)
            case "freeze":
                self._frozen = str(details["why"])
            case "unfreeze":
                self._frozen = None
            case "revoke" | "restore" | grants.REMOVE | grants.HAND_OVER as act:
                number, _ = parent_launch(node) or (0, "")
                by_settings = actor_of(charge) == SETTINGS_ACTOR
                if node != ROOT:  # among the rows of one analyst alone, the part is the root, whose row they lack
                    self._grants[number] = self._grants[number].after(act, by_settings=by_settings)
                if by_settings:
                    self._from_settings[node] = replace(self._said(node), is_present=act == "restore")
            case "approve" | "decline":
                request, decision = decided_request(self._requests, details["request"]), Decision.from_row(charge)
                self._requests[request.id] = replace(request, decision=decision)
                if decision.amount is not None:
                    known = self._caps.get(node, Cap(None))
                    self._caps[node] = known.raised(decision.amount, decision.until)
            case "end" | "resume" | grants.TAKE_OVER | grants.LEDGER_RESTORED:
                pass  # not refused as unknown, though they change neither caps nor charges
            case _:
                raise ValueError

    # --- parts of the budget ------------------------------------------------------------------------------------

    def grants(self) -> Mapping[int, Grant]:
        """The parts of the budget by the ids of their rows, in their current state."""
        with self._ledger.lock.checked():
            self.sync()
            return dict(self._grants)

    def grant_named(self, level: str, name: str) -> Grant | None:
        """The part of the budget of a project or an analyst; one that was handed over only if there is no other."""
        named = [one for one in self.grants().values() if (one.level, one.name) == (level, name)]
        return max(named, key=lambda one: (not one.is_handed_over, one.id), default=None)

    def cap(self, node: str) -> PureGDP | None:
        """What all charges of a node together are limited to, within its budget; None for no such limit.

        In a transaction, the cap that holds at the time of its rows.
        """
        cap = self.cap_with_raises(node)
        return cap.at(self._ledger.time_in(node)) if cap.raises else cap.base

    def cap_with_raises(self, node: str) -> Cap:
        """The cap of a node, with the requests that were approved since it was set."""
        with self._ledger.lock.checked():
            self.sync()
            return self._caps.get(node, Cap(None))

    def from_settings(self, part: Grant) -> FromSettings:
        """What the settings of the service last said about a part."""
        with self._ledger.lock.checked():
            self.sync()
            return self._said(node_of(part.id))

    def _said(self, node: str) -> FromSettings:
        return self._from_settings.get(node, FromSettings(None))

    def named_by_settings(self, level: str, name: str) -> Grant | None:
        """The part that settings mean by a name: the one that they named before, also if it was handed over."""
        named = [one for one in self.grants().values() if (one.level, one.name) == (level, name)]
        said = next((one for one in reversed(named) if self.from_settings(one).is_present), None)
        return said or next((one for one in reversed(named) if not one.is_handed_over), None)

    def budget_requests(self) -> Mapping[int, BudgetRequest]:
        """The requests for a larger cap by the ids of their rows, in their current state."""
        with self._ledger.lock.checked():
            self.sync()
            return dict(self._requests)

    def part_of(self, node: str, analyst: str) -> Grant | None:
        """The part of an analyst: the one that contains the node of a request, or in pooled mode that of their name."""
        with self._ledger.lock.checked():
            self.sync()
            return self._part_of(node, analyst)

    def _part_of(self, node: str, analyst: str) -> Grant | None:
        number, _ = parent_launch(node) or (0, "")
        pooled = (
            one for one in self._grants.values() if (one.mode, one.level, one.name) == ("pooled", "analyst", analyst)
        )
        return self._grants.get(number) or next(pooled, None)

    @property
    def frozen(self) -> str | None:
        """Why the table is frozen; None if it is not."""
        self.sync()
        return self._frozen

    def grant_of(self, node: str) -> Grant | None:
        """The innermost part of the budget that contains a node; None for one outside all of them."""
        grants = self.grants()
        while (parent := parent_launch(node)) is not None:
            if parent[0] in grants:
                return grants[parent[0]]
            node = self.sync()[parent[0]].node
        return None

    def launches_in(self, root: str) -> list[Launch]:
        """The launches in a session and in the parts of its partitions, but not in its sub-sessions."""
        launches = self.sync().values()
        return [launch for launch in launches if self.path(launch.node, root) is not None]

    def is_closed(self, launch: Launch) -> bool:
        """Whether it is closed, or a mechanism inside which it was launched."""
        outer = (one for one, _ in self._outwards(launch.node, ROOT) if isinstance(one, Launch))
        return launch.is_closed or any(one.is_closed for one in outer)

    def path(self, node: str, root: str) -> tuple[PartRef, ...] | None:
        """The parts through which a loss in a node reaches the node `root`, innermost first.

        None if the loss is not counted there: a sub-session was paid for when it was launched.
        """
        if node == root:
            return ()
        parts = []
        for outer, part in self._outwards(node, root):
            if isinstance(outer, Launch):
                if outer.kind == SUB_SESSION:
                    return None
                if outer.kind == PARTITION:
                    parts.append(PartRef(outer.id, part, int(outer.resolved["charged_parts_per_unit"])))
            if outer.node == root:
                return tuple(parts)
        return None

    def refuse_ended(self, node: str, version: str) -> None:
        """Refuse new requests to a mechanism that is closed, or was launched for another version of the table.

        Also while the table is frozen, and in a part of the budget that was revoked.
        """
        self.sync()
        origin = current_origin()
        pooled = None if origin is None else self._part_of(node, origin.actor)
        while pooled is not None:  # in pooled mode no node contains it
            self._refuse_revoked(pooled)
            pooled = self.grant_of(pooled.node)
        if self._frozen is not None:
            raise ChargesStopped(
                f"table: the curator has frozen it ({self._frozen}); nothing was charged; recorded answers stay free"
            )
        for launch, _ in self._outwards(node, ROOT):
            if isinstance(launch, Grant):
                self._refuse_revoked(launch)
                continue
            if not launch.continues_with(version):
                now = (
                    "the ledger now declares other columns"
                    if launch.version == version
                    else f"this is version {version!r}"
                )
                raise MechanismClosed(
                    f"{launch.name}: this {launch.kind} was launched for version {launch.version!r} of the table, and "
                    f"{now}, in which a unit may have other rows or be in other parts; nothing was charged; launch it "
                    "again, under the same name or another"
                )
            if launch.is_closed:
                raise MechanismClosed(
                    f"{launch.name}: this {launch.kind} is closed; nothing was charged; recorded answers stay free; "
                    "launch another one under a new name"
                )

    @staticmethod
    def _refuse_revoked(part: Grant) -> None:
        if part.is_revoked:
            what = "handed over" if part.is_handed_over else "revoked"
            raise ChargesStopped(
                f"{part.level} {part.name}: the curator has {what} this part of the budget; nothing was charged; "
                "recorded answers stay free"
            )

    def _outwards(self, node: str, root: str) -> Iterator[tuple[Launch | Grant, str]]:
        """What made the nodes between a node and the node `root`, innermost first."""
        while node != root:
            parent = parent_launch(node)
            if parent is None:
                return
            number = parent[0]
            outer = self._launches.get(number) or self._grants.get(number) or self.sync().get(number)
            outer = outer or self._grants.get(number)
            if outer is None:
                raise LedgerError(
                    f"ledger: a row has the node of row {number}, which is missing; restore the file from a copy that "
                    "has every charge"
                )
            yield outer, parent[1]
            node = outer.node
