"""What the curator declares: the columns an analyst may use, and the privacy unit."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from dpnb.errors import SchemaError

Key = bool | int | float | str
"""A category, and so the key of a group."""

NARROWEST_RANGE = 2.0**-20
"""Bounds must be at least this share of their largest magnitude apart, so that the grid can tell values apart."""


class Bounded(msgspec.Struct, frozen=True, tag="bounded", tag_field="type"):
    """A column of numbers, clamped to ``[low, high]`` before anything is computed.

    Parameters
    ----------
    low, high : float
        Finite, ``low < high``.  A value outside counts as the nearer bound; what is not a finite number does not
        count at all.

    Raises
    ------
    SchemaError
        A bound is not a finite number, the bounds are reversed or equal, or lie so close together that their
        difference is lost beside their size.
    """

    low: float
    high: float

    def __post_init__(self) -> None:
        for name in ("low", "high"):
            msgspec.structs.force_setattr(self, name, _finite(getattr(self, name), name))
        if not self.low < self.high:
            raise SchemaError(
                f"Bounded: low must be below high; got low={self.low!r}, high={self.high!r}; "
                f"write Bounded({min(self.low, self.high)!r}, {max(self.low, self.high)!r}) with two different bounds"
            )
        if self.high / 2 - self.low / 2 < NARROWEST_RANGE * self.magnitude / 2:
            raise SchemaError(
                f"Bounded: high - low must be at least 2**-20 of the larger bound's size; got low={self.low!r}, "
                f"high={self.high!r}; subtract a public constant from the column first"
            )

    @property
    def magnitude(self) -> float:
        """Largest absolute value that a row can have."""
        return max(abs(self.low), abs(self.high))


class Categories(msgspec.Struct, frozen=True, tag="categories", tag_field="type"):
    """A column that takes one of a declared, public list of values.

    Parameters
    ----------
    values : list of str, int, float or bool
        In the order in which groups are to appear.  A value of the table that is not listed does not count.

    Raises
    ------
    SchemaError
        The list is empty, holds a duplicate (1, 1.0 and True are one value), or something that is not a plain value.
    """

    values: tuple[Key, ...]

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "values", _categories(self.values))

    @property
    def numeric(self) -> bool:
        """Whether every category is a number, so that categories have an order."""
        return all(isinstance(value, int | float) for value in self.values)


ColumnType = Bounded | Categories


class PrivacyUnit(msgspec.Struct, frozen=True):
    """Whose presence is protected.

    Parameters
    ----------
    column : str, optional
        The column that says whose a row is; None when every row is its own unit.
    max_rows : int
        At most this many rows of a unit count; 1 for rows.
    """

    column: str | None = None
    max_rows: int = 1

    @property
    def words(self) -> str:
        """The unit in words, for example ``one zper (at most 5 rows)``."""
        if self.column is None:
            return "one row"
        return f"one {self.column} (at most {self.max_rows} row{'s' if self.max_rows > 1 else ''})"


Schema = dict[str, ColumnType]


def schema_from(columns: object) -> Schema:
    """Check the curator's mapping of column names to types.

    Raises
    ------
    SchemaError
        Not a mapping, empty, or with an entry that is no column type.
    """
    if not isinstance(columns, Mapping) or not columns:
        raise SchemaError(
            "schema: must map at least one column name to dpnb.Bounded(low, high) or dpnb.Categories([...]); "
            f"got {type(columns).__name__}{' (empty)' if isinstance(columns, Mapping) else ''}"
        )
    for name, column in columns.items():
        if not isinstance(name, str) or not name:
            raise SchemaError(f"schema: a column name must be a non-empty str; got {name!r}; rename the column")
        if not isinstance(column, Bounded | Categories):
            raise SchemaError(
                f"schema[{name!r}]: must be dpnb.Bounded(low, high) or dpnb.Categories([...]); got {column!r}"
            )
    return dict(columns)


def privacy_unit_from(column: object, max_rows_per_unit: object, schema: Schema) -> PrivacyUnit:
    """Check ``privacy_unit`` and ``max_rows_per_unit`` against each other and the schema.

    Raises
    ------
    SchemaError
        One is given without the other, the number of rows is not a positive integer, or the unit is also a column
        of the schema.
    """
    if column is None:
        if max_rows_per_unit is not None:
            raise SchemaError(
                f"max_rows_per_unit: needs privacy_unit; got max_rows_per_unit={max_rows_per_unit!r} alone; "
                "name the column that says whose a row is, or leave both out to protect single rows"
            )
        return PrivacyUnit()
    if not isinstance(column, str) or not column:
        raise SchemaError(f"privacy_unit: must be a column name; got {column!r}")
    if max_rows_per_unit is None:
        raise SchemaError(
            f"max_rows_per_unit: required with privacy_unit={column!r}; say how many rows of one unit may count"
        )
    most = whole_number(max_rows_per_unit)
    if most is None or not 1 <= most <= 2**31:
        raise SchemaError(f"max_rows_per_unit: must be a whole number from 1 to 2**31; got {max_rows_per_unit!r}")
    if column in schema:
        raise SchemaError(
            f"privacy_unit: {column!r} is also in the schema; leave it out of the schema, since what names a person "
            "is not something to ask about"
        )
    return PrivacyUnit(column, most)


def whole_number(value: object) -> int | None:
    """An integer of any library as an int; None for anything else, truth values included."""
    value = plain(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def plain(value: Any) -> Any:
    """Turn a numpy scalar into the Python value it holds; anything else stays."""
    item = getattr(value, "item", None)
    return item() if callable(item) and getattr(value, "shape", None) == () else value


def _finite(value: Any, name: str) -> float:
    if not isinstance(value, bool) and isinstance(value, numbers.Real):
        try:
            number = float(value)
        except OverflowError:
            number = math.inf
        if math.isfinite(number):
            return number
    raise SchemaError(f"Bounded: {name} must be a finite number; got {value!r}; give the column's public limit")


def _categories(values: object) -> tuple[Key, ...]:
    if isinstance(values, str | bytes | Mapping | set | frozenset) or not isinstance(values, Iterable):
        raise SchemaError(f"Categories: must be a list of values in a fixed order; got {values!r}")
    keys = tuple(plain(value) for value in values)
    if not keys:
        raise SchemaError("Categories: must hold at least one value; got an empty list")
    for key in keys:
        if not isinstance(key, bool | int | float | str) or (isinstance(key, float) and not math.isfinite(key)):
            raise SchemaError(
                f"Categories: each value must be a str, a bool or a finite number; got {key!r}; "
                "rows with nothing in the column do not count and need no category"
            )
        if isinstance(key, int) and abs(key) >= 2**63:
            raise SchemaError(f"Categories: an int must fit 64 bits; got {key!r}; use text for longer codes")
    seen: set[Key] = set()
    for key in keys:
        if key in seen:
            raise SchemaError(
                f"Categories: values must differ; got {key!r} twice; remove one (1, 1.0 and True are one)"
            )
        seen.add(key)
    return keys
