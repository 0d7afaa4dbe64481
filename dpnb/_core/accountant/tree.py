"""The launches of a ledger, as a tree of nodes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dpnb.accounting.parallel import PartRef
from dpnb.errors import LedgerError, MechanismClosed
from dpnb.ledger import ROOT, ChargeSummary, Ledger, parent_launch, refuse_unreadable
from dpnb.ledger.charge import CLOSE, LAUNCH

PARTITION = "partition"
SUB_SESSION = "sub-session"
ABOVE_THRESHOLD = "above-threshold"
NOISE_REDUCTION = "noise reduction"
GRADIENT_DESCENT = "gradient descent"
KINDS = {
    "partition": PARTITION,
    "sub_session": SUB_SESSION,
    "above_threshold": ABOVE_THRESHOLD,
    "noise_reduction": NOISE_REDUCTION,
    "gradient_descent": GRADIENT_DESCENT,
}
"""What the ledger calls each, and what it is called in words."""
CODES = {words: code for code, words in KINDS.items()}


@dataclass(frozen=True)
class Launch:
    """One interactive mechanism, as the ledger remembers it.

    Parameters
    ----------
    id : int
        Of the row that launched it.
    kind, name : str
    node : str
        Where it was launched.
    version : str
        Of the table then.
    details : mapping
        What it was launched with: the ``arguments`` as written, and what was ``resolved`` at the launch.
    closed_by : int or None
        The row that closed it.
    """

    id: int
    kind: str
    name: str
    node: str
    version: str
    details: Mapping[str, Any]
    closed_by: int | None = None

    def continues_with(self, version: str) -> bool:
        """Whether it goes on with that version of the table.

        A sub-session does, like a session: its budget is over everything that it ever releases.  What has been charged
        for parts of one version says nothing of the parts in which a unit is in another.
        """
        return self.kind == SUB_SESSION or self.version == version

    @property
    def is_closed(self) -> bool:
        """Whether it was closed."""
        return self.closed_by is not None


class BudgetTree:
    """Every launch of one ledger, whichever kernel made it.

    Parameters
    ----------
    ledger : Ledger
    """

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._launches: dict[int, Launch] = {}
        self._seen = 0

    def sync(self) -> Mapping[int, Launch]:
        """All launches by their rows, as they stand now."""
        with self._ledger.lock.checked():
            for charge in self._ledger.summaries(after=self._seen):
                with refuse_unreadable(f"row {charge.id}"):
                    self._note(charge)
            return dict(self._launches)  # a copy: other threads launch meanwhile

    def _note(self, charge: ChargeSummary) -> None:
        about = charge.launch or {}
        if charge.kind == CLOSE:
            number = int(about["closes"])
            self._launches[number] = replace(self._launches[number], closed_by=charge.id)
        elif charge.kind == LAUNCH:
            kind, name = KINDS[about["mechanism"]], about["name"]
            if not isinstance(name, str):
                raise ValueError
            self._launches[charge.id] = Launch(charge.id, kind, name, charge.node, charge.table_version, about)
        self._seen = charge.id

    def launches_in(self, trunk: str) -> list[Launch]:
        """What was launched in a session, the parts of its partitions and so on, but not inside its sub-sessions."""
        self.sync()
        return self._inside(trunk)

    def _inside(self, trunk: str) -> list[Launch]:
        with self._ledger.lock.checked():
            launches = list(self._launches.values())
        return [launch for launch in launches if self.path(launch.node, trunk) is not None]

    def open_launches(self, trunk: str) -> list[Launch]:
        """Of these the ones that may still be asked."""
        return [launch for launch in self.launches_in(trunk) if not self.is_closed(launch, trunk)]

    def open_launches_at(self, row: int, trunk: str) -> list[Launch]:
        """The ones that could be asked just after a row of the ledger was written, one that was taken in by `sync`."""
        return [
            launch
            for launch in self._inside(trunk)
            if launch.id <= row
            and all(
                one.closed_by is None or one.closed_by > row
                for one in (launch, *(outer for outer, _ in self._upwards(launch.node, trunk)))
            )
        ]

    def is_closed(self, launch: Launch, trunk: str = ROOT) -> bool:
        """Whether it, or anything that it was launched in, is closed."""
        return launch.is_closed or any(outer.is_closed for outer, _ in self._upwards(launch.node, trunk))

    def path(self, branch: str, trunk: str) -> tuple[PartRef, ...] | None:
        """Through which parts a loss on a branch reaches a trunk, innermost first.

        None where it never does: a sub-session was paid for when it was launched.
        """
        if branch == trunk:
            return ()
        places, reached = [], False
        for launch, part in self._upwards(branch, trunk):
            if launch.kind == SUB_SESSION:
                return None
            if launch.kind == PARTITION:
                places.append(PartRef(launch.id, part, int(launch.details["resolved"]["charged_parts_per_unit"])))
            reached = launch.node == trunk
        return tuple(places) if reached else None

    def refuse_ended(self, branch: str, version: str) -> None:
        """Refuse new requests to a mechanism that is closed, or was launched for another version of the table.

        Raises
        ------
        MechanismClosed
        """
        self.sync()
        for launch, _ in self._upwards(branch, ROOT):
            if not launch.continues_with(version):
                raise MechanismClosed(
                    f"{launch.name}: this {launch.kind} was launched for version {launch.version!r} of the table, and "
                    f"this is version {version!r}, in which a unit may be in other parts; nothing was charged; launch "
                    "it again, under the same name or another"
                )
            if launch.is_closed:
                raise MechanismClosed(
                    f"{launch.name}: this {launch.kind} is closed; nothing was charged; recorded answers stay free; "
                    "launch another one under a new name"
                )

    def _upwards(self, branch: str, trunk: str) -> Iterator[tuple[Launch, str]]:
        """The launches between a branch and a trunk, and the parts that the way leads through."""
        while branch != trunk:
            step = parent_launch(branch)
            if step is None:
                return
            found = self._launches.get(step[0]) or self.sync().get(step[0])
            if found is None:
                raise LedgerError(
                    f"ledger: a row is on the branch of launch {step[0]}, which is not there; restore the file from a "
                    "copy that has every charge"
                )
            launch = found
            yield launch, step[1]
            branch = launch.node
