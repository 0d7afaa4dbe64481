"""One child for each key, paid for by the largest: see :mod:`dpnb.accounting.parallel` for the proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from dpnb.accounting.exact import decimal_up
from dpnb.accounting.filters import RogersFilter
from dpnb.accounting.losses import GDP, Loss
from dpnb.answer.faces import cost_up
from dpnb.errors import PlanError
from dpnb.interactive.protocol import Charged
from dpnb.ledger import branch_of
from dpnb.query.schema import Key
from dpnb.session.mechanisms.mechanism import Mechanism
from dpnb.session.releases import Releases
from dpnb.session.tree import Launch

if TYPE_CHECKING:
    from dpnb.session.session import Session

PARTS_TOLD = 50

Child = Callable[[Launch, Key], "Session"]


class Partition(Mechanism, Mapping[Key, "Session"]):
    """Parts of a table, one for each public key, each asked like a session of its own.

    A mapping from keys to sessions.  Whatever is asked in a part, the session pays by how much the largest part's own
    sum grows (with p parts a unit: the sum of the p largest); nothing is reserved.

    Parameters
    ----------
    launch : Launch
    releases : Releases
    keys : tuple of Key
    child : callable
        Makes the session of a part.
    """

    charged: ClassVar[Charged] = "step by step"

    def __init__(self, launch: Launch, releases: Releases, keys: tuple[Key, ...], child: Child) -> None:
        super().__init__(launch, releases)
        self._keys, self._child = keys, child
        self._children: dict[Key, Session] = {}
        self._most = int(launch.about["parts per unit"])
        self._places = {branch_of(launch.id, (key,)).partition(" ")[2]: place for place, key in enumerate(keys)}

    @property
    def terms(self) -> str:  # type: ignore[override]
        """What is paid when, in a sentence."""
        largest = "the largest part" if self._most == 1 else f"the sum of the {self._most} largest parts"
        return (
            f"Parts of the table by {self._launch.about['by']}. The session pays step by step, by how much {largest} "
            "grows, and not for the sum of all. Nothing is reserved; parts and session may be asked in any order."
        )

    def __getitem__(self, key: Key) -> Session:
        """The session of a part."""
        if key not in self._keys:
            known = ", ".join(map(repr, self._keys[:10])) + (", ..." if len(self._keys) > 10 else "")
            raise PlanError(f"{self.name}: {key!r} is no key of this partition; its keys are {known}")
        if key not in self._children:
            self._children[key] = self._child(self._launch, self._keys[self._keys.index(key)])
        return self._children[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    @property
    def parts_per_unit(self) -> int:
        """In how many parts one unit can have rows."""
        return self._most

    @property
    def cost(self) -> Loss:
        """What the session has paid for it so far, in the kind of loss that its filter counts."""
        state = self._account.sync()
        if isinstance(state.filter, RogersFilter):
            return GDP(0)
        spent = state.filter.spent
        paid: Loss = spent.with_parts(state.parts.cost(self.id, self._most, len(spent.parts)))
        return paid

    @property
    def summary(self) -> str:
        """How it stands, in few words."""
        asked = self._account.sync().parts.of(self.id)
        cost = cost_up(self.cost) if self.cost else "nothing"
        return f"{len(asked)} of {len(self)} parts asked; costs the session {cost} so far"

    @property
    def parts(self) -> list[dict[str, Any]]:
        """Parts that were asked, with what each was charged relative to the largest; of very many the largest."""
        state = self._account.sync()
        if isinstance(state.filter, RogersFilter):
            return []
        asked, kind, by = state.parts.of(self.id), state.filter.spent, self._launch.about["by"]
        told = sorted(asked.items(), key=lambda item: item[1], reverse=True)[:PARTS_TOLD]
        largest = told[0][1][0] if told else 0
        return [
            {
                "name": f"{by} {self._keys[self._places[part]]}",
                "value": decimal_up(sums[0] / largest) if largest else 0.0,
                "text": cost_up(kind.with_parts(sums)),
            }
            for part, sums in sorted(told, key=lambda item: self._places[item[0]])
        ]
