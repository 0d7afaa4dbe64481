"""The declared columns of a session's tables: what an analyst may know without spending anything."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeVar

from dpnb._plan.privacy_unit import PrivacyUnit
from dpnb.errors import PlanError
from dpnb.results.display import Displayed
from dpnb.schema import ColumnType

V = TypeVar("V")


class ByName(Displayed, Mapping[str, V]):
    """A mapping by name that refuses an unknown one with the names that there are."""

    _unknown: ClassVar[str]
    """The part of the message between an unknown name and the known ones."""

    @property
    @abstractmethod
    def _entries(self) -> Mapping[str, V]:
        """The entries."""

    def __getitem__(self, name: str) -> V:
        if name in self:
            return self._entries[name]
        raise PlanError(f"schema: {name!r} {self._unknown} {', '.join(map(repr, self._entries))}")

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in self._entries

    def get(self, name: str, default: Any = None) -> Any:
        """The entry of a name, or `default` if there is none.

        Parameters
        ----------
        name : str
            The name.
        default : object, optional
            What is returned if there is no entry.

        Examples
        --------
        >>> session.schema.get("age")
        Bounded(low=0.0, high=100.0, integer=True, outside='clamp')
        >>> session.schema.get("height") is None
        True
        """
        if name not in self:
            return default
        return self[name]

    def _ipython_key_completions_(self) -> list[str]:
        return list(self)


@dataclass(frozen=True, eq=False, repr=False)
class TableSchema(ByName[ColumnType]):
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
    missing : tuple of str
        The texts that are missing values in CSV files.
    sampled : str or float
        What the units are: ``"population"`` (a sample of a large one), ``"census"``, or the fraction that was drawn.

    Examples
    --------
    >>> session.schema["age"].high
    100.0
    >>> list(session.schema)
    ['age', 'cost', 'plan', 'admitted', 'note']
    """

    _unknown = "is not a declared column; the columns are"

    name: str
    columns: Mapping[str, ColumnType] = field(hash=False)
    unit: PrivacyUnit
    public_size: int | None = None
    public_rows: int | None = None
    notice: str | None = None
    missing: tuple[str, ...] = ()
    sampled: str | float = "population"

    @property
    def _entries(self) -> Mapping[str, ColumnType]:
        return self.columns


@dataclass(frozen=True, eq=False, repr=False)
class TablesSchema(ByName[TableSchema]):
    """The schemas of several tables, by name.

    Parameters
    ----------
    tables : dict of str to TableSchema
        The tables of the session.
    """

    _unknown = "is not a table of this session; the tables are"

    tables: Mapping[str, TableSchema] = field(hash=False)

    @property
    def _entries(self) -> Mapping[str, TableSchema]:
        return self.tables
