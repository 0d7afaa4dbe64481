"""One child for each key, paid for by the largest: see :mod:`dpnb.accounting.parallel` for the proof."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, ClassVar, Generic, TypeVar

from dpnb._core.accountant.tree import PARTITION, Launch
from dpnb._core.core import SessionCore
from dpnb._plan.expressions.nodes import Column
from dpnb._plan.expressions.text import words
from dpnb._plan.partition import part_keys, parts_of_unit, parts_to_json
from dpnb._plan.plan import GroupLevel, TableSource
from dpnb._plan.schema import Key
from dpnb.accounting.exact import decimal_up
from dpnb.accounting.filters import RogersFilter
from dpnb.accounting.interleaving import partition_obstacle
from dpnb.accounting.losses import GDP, Loss
from dpnb.errors import PlanError, RequestError
from dpnb.frame.column_expr import ColumnExpr
from dpnb.interactive.launch_request import LaunchRequest
from dpnb.interactive.mechanism import SessionMechanism
from dpnb.interactive.protocol import Charged
from dpnb.ledger import node_of
from dpnb.render.numbers import format_cost_up

PARTS_TOLD = 50

P = TypeVar("P")
"""The session of a part."""


class Partition(SessionMechanism, Mapping[Key, P], Generic[P]):
    """Parts of a table, one for each public key, each asked like a session of its own.

    A mapping from keys to sessions.  Whatever is asked in a part, the session pays by how much the largest part's own
    sum grows (with p parts a unit: the sum of the p largest); nothing is reserved.

    Parameters
    ----------
    launch : Launch
    core : SessionCore
        Of the session that owns it.
    child : callable
        Makes the session of a part, of its core.
    """

    charged: ClassVar[Charged] = "step by step"

    def __init__(self, launch: Launch, core: SessionCore, child: Callable[[Partition[P], SessionCore], P]) -> None:
        super().__init__(launch, core)
        self._child = child
        self._keys: tuple[Key, ...] = tuple(launch.details["resolved"]["keys"])
        self._children: dict[Key, P] = {}
        self._most = int(launch.details["resolved"]["charged_parts_per_unit"])
        self._places = {node_of(launch.id, (key,)).partition(" ")[2]: place for place, key in enumerate(self._keys)}

    @property
    def cost_description(self) -> str:  # type: ignore[override]
        """What is paid when, in a sentence."""
        largest = "the largest part" if self._most == 1 else f"the sum of the {self._most} largest parts"
        return (
            f"Parts of the table by {self._launch.details['resolved']['by']}. The session pays step by step, by how "
            f"much "
            f"{largest} grows, and not for the sum of all. Nothing is reserved; parts and session may be asked in any "
            "order."
        )

    def __getitem__(self, key: Key) -> P:
        """The session of a part."""
        if key not in self._keys:
            known = ", ".join(map(repr, self._keys[:10])) + (", ..." if len(self._keys) > 10 else "")
            raise PlanError(f"{self.name}: {key!r} is no key of this partition; its keys are {known}")
        if key not in self._children:
            written = self._keys[self._keys.index(key)]  # 1 == True, and the name shows which
            self._children[key] = self._child(self, self._core.part_of(self._launch, written))
        return self._children[key]

    def __iter__(self) -> Iterator[Key]:
        return iter(self._keys)

    def __len__(self) -> int:
        return len(self._keys)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__

    @property
    def max_parts_per_unit(self) -> int:
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
        cost = format_cost_up(self.cost) if self.cost else "nothing"
        return f"{len(asked)} of {len(self)} parts asked; costs the session {cost} so far"

    @property
    def parts(self) -> list[dict[str, Any]]:
        """Parts that were asked, with what each was charged relative to the largest; of very many the largest."""
        state = self._account.sync()
        if isinstance(state.filter, RogersFilter):
            return []
        asked, kind, by = state.parts.of(self.id), state.filter.spent, self._launch.details["resolved"]["by"]
        told = sorted(asked.items(), key=lambda item: item[1], reverse=True)[:PARTS_TOLD]
        largest = told[0][1][0] if told else 0
        return [
            {
                "name": f"{by} {self._keys[self._places[part]]}",
                "value": decimal_up(sums[0] / largest) if largest else 0.0,
                "text": format_cost_up(kind.with_parts(sums)),
            }
            for part, sums in sorted(told, key=lambda item: self._places[item[0]])
        ]


def partition_request(
    core: SessionCore, by: Any, name: str | None, table: TableSource, limit: int | None
) -> LaunchRequest:
    """The launch of a partition; for the arguments see :meth:`Session.partition`.

    Raises
    ------
    PlanError
        The values are not public, or the limit is no whole number of at least 1.
    RequestError
        The filter has no rule for parts.
    """
    schema, unit = core.tables.schema(table), core.tables.unit(table)
    group = _group(by)
    keys = part_keys(group.expression, schema)
    most, enforced = parts_of_unit(unit, len(keys), limit)
    why = partition_obstacle(core.account.filter)
    if why is not None:
        raise RequestError(f"partition: {why}")
    asked = {"parts": parts_to_json(table, group, enforced)}
    about = {"by": group.name, "keys": list(keys), "charged_parts_per_unit": most}
    return LaunchRequest(PARTITION, f"by {group.name}" if name is None else name, asked, about=about)


def _group(by: Any) -> GroupLevel:
    """What a partition is by: a column's name, or an expression of columns."""
    if isinstance(by, str):
        return GroupLevel(by, Column(by))
    if isinstance(by, ColumnExpr):
        return GroupLevel(words(by._node), by._node)
    raise PlanError(f"partition: must be by a column's name, or an expression of columns; got {type(by).__name__}")
