"""The column that identifies the privacy unit: its values are never used, only the number of units can be queried."""

from __future__ import annotations

from dpnb._core.query import Query
from dpnb._plan.plan import GroupLevel
from dpnb._plan.schema import Key
from dpnb.errors import PlanError
from dpnb.frame.coerce import aggregation_for
from dpnb.frame.examples import examples
from dpnb.frame.unsupported import UnsupportedOperations
from dpnb.frame.view import TableView


class UnitColumn(UnsupportedOperations):
    """What ``frame[column]`` is for the column of the privacy unit."""

    __slots__ = ("_by", "_keys", "_name", "_view")

    def __init__(
        self,
        view: TableView,
        name: str,
        by: tuple[GroupLevel, ...] = (),
        keys: tuple[tuple[Key, ...], ...] | None = None,
    ) -> None:
        self._view, self._name, self._by, self._keys = view, name, by, keys

    def _description(self) -> str:
        return f"privacy unit {self._name}"

    def _examples(self) -> dict[str, str]:
        return examples(self._view)

    def __repr__(self) -> str:
        return f"<privacy unit: {self._name}; .nunique() is the number of units>"

    def nunique(self) -> Query:
        """Number of privacy units with at least one row: the query of `Frame.count_units`."""
        return self._view.query(*aggregation_for("units", None), self._by, self._keys)

    def __eq__(self, other: object) -> bool:
        raise PlanError(
            f"{self._name}: identifies the privacy unit, so rows cannot be selected by it; df.count_units() counts the "
            "units"
        )

    __ne__ = __lt__ = __le__ = __gt__ = __ge__ = __eq__
    __hash__ = None  # type: ignore[assignment]  # a column
