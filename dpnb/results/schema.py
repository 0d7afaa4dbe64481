"""The declared columns of a session's tables: what an analyst may know without spending anything."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb._plan.schema import ColumnType
from dpnb.errors import PlanError
from dpnb.results.display import Displayed


@dataclass(frozen=True, eq=False, repr=False)
class TableSchema(Displayed, Mapping[str, ColumnType]):
    """The columns of one table: a mapping from each name to its declared type.

    Parameters
    ----------
    name : str
        Name of the table; empty for a single one.
    columns : dict of str to ColumnType
        The declared columns.
    unit : PrivacyUnit
        The privacy unit, and the limits on what one unit contributes.
    public_size, public_rows : int or None
        The public numbers of units and of rows, if they are declared.
    notice : str or None
        A warning that answers are not real or not private.

    Examples
    --------
    >>> import dpnb
    >>> session = dpnb.Session.rehearse(
    ...     name="people",
    ...     budget=dpnb.Budget(epsilon=1, delta=1e-6),
    ...     schema={"age": dpnb.Bounded(0, 100), "town": dpnb.Categories(["north", "south"])},
    ... )
    >>> session.schema["age"].high
    100.0
    >>> list(session.schema)
    ['age', 'town']
    """

    name: str
    columns: Mapping[str, ColumnType] = field(hash=False)
    unit: PrivacyUnit
    public_size: int | None = None
    public_rows: int | None = None
    notice: str | None = None

    def __getitem__(self, name: str) -> ColumnType:
        if name in self:
            return self.columns[name]
        known = ", ".join(map(repr, self.columns))
        raise PlanError(f"schema: {name!r} is not a declared column; the columns are {known}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.columns

    def get(self, name: str, default: Any = None) -> Any:
        """The type of a column, or `default` if it is not declared."""
        if name not in self:
            return default
        return self[name]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)


@dataclass(frozen=True, eq=False, repr=False)
class TablesSchema(Displayed, Mapping[str, TableSchema]):
    """The schemas of several tables, by name.

    Parameters
    ----------
    tables : dict of str to TableSchema
        The tables of the session.
    """

    tables: Mapping[str, TableSchema] = field(hash=False)

    def __getitem__(self, name: str) -> TableSchema:
        if name in self:
            return self.tables[name]
        known = ", ".join(map(repr, self.tables))
        raise PlanError(f"schema: {name!r} is not a table of this session; the tables are {known}")

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __len__(self) -> int:
        return len(self.tables)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self.tables

    def get(self, name: str, default: Any = None) -> Any:
        """The schema of a table, or `default` if there is none of this name."""
        if name not in self:
            return default
        return self[name]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)
