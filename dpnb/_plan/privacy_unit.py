"""The privacy unit, and the limits of one unit's contribution to a query.

The curator declares the limits: on the rows of a unit, the groups in which a unit has rows, the rows of a unit in one
group, or the norm of a unit's whole contribution.  A query may tighten them, never loosen them.
"""

from __future__ import annotations

import math
import numbers
import re
from decimal import Decimal
from typing import Any, Literal, TypeVar, get_args

import msgspec

from dpnb.errors import PlanError, SchemaError
from dpnb.schema import MAX_EXACT_INTEGER, Schema, plain, text_of, whole_number

MAX_LIMIT = 2**31
MIN_NORM = 2.0**-10
N = TypeVar("N", int, float)

UnitType = Literal["text", "integer"]
"""How the identifiers of units are read; without it as their container has them."""

INTEGER = re.compile(r"[+-]?[0-9]{1,19}", re.ASCII)


class ContributionBounds(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
):
    """Limits on the contribution of one unit to one query; None means no limit."""

    max_rows: int | None = None
    max_groups: int | None = None  # groups in which a unit counts
    max_rows_per_group: int | None = None
    # L2 norm of the vector that a unit adds, as a multiple of the largest norm that one row can add; a longer vector is
    # scaled down
    max_norm: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value, minimum = getattr(self, name), MIN_NORM if name == "max_norm" else 1
            if value is not None and not minimum <= value <= MAX_LIMIT:
                raise SchemaError(f"{name}: must lie between {minimum} and 2**31; got {value!r}")

    def rows_below(self, max_rows: int | None) -> int | None:
        """The limit on rows in a table where a unit has at most `max_rows`; None if the limit has no effect there."""
        return self.max_rows if max_rows is None or (self.max_rows is not None and self.max_rows < max_rows) else None

    def by_rank(self, max_rows: int | None) -> bool:
        """Whether each unit's rows must be ranked to decide which of them count."""
        return self.rows_below(max_rows) is not None or self.max_rows_per_group is not None

    def tightened(self, other: ContributionBounds) -> ContributionBounds:
        """Both limits at once."""
        return ContributionBounds(
            *(_smaller(getattr(self, name), getattr(other, name)) for name in self.__struct_fields__)
        )


NO_LIMITS = ContributionBounds()


class PrivacyUnit(msgspec.Struct, frozen=True):
    """The entity whose presence is protected."""

    column: str | None = None  # has the name of the unit of each row; None if each row is a unit
    # at most this many rows of a unit count; 1 if rows are units, None if only `contribution_bounds` limit a unit
    max_rows: int | None = 1
    contribution_bounds: ContributionBounds = NO_LIMITS  # of every query
    # how each identifier is read, alone
    type: UnitType | msgspec.UnsetType = msgspec.UNSET  # absent from the ledgers in which it is not declared
    label: str | msgspec.UnsetType = (
        msgspec.UNSET
    )  # the curator's word for one unit, which is no part of what is declared

    @property
    def noun(self) -> str:
        """A word for one unit: its label, or the name of its column."""
        return self.label or self.column or "row"

    @property
    def words(self) -> str:
        """The unit in words, for example ``one zper (at most 5 rows)``."""
        if self.column is None:
            return f"one {self.label} (one row)" if self.label else "one row"
        limits = describe_bounds(self.contribution_bounds.tightened(ContributionBounds(max_rows=self.max_rows)))
        return f"one {self.noun} ({limits})"


def describe_bounds(limits: ContributionBounds) -> str:
    """The limits in words, for example ``at most 5 rows, in at most 2 groups``."""
    texts = []
    if limits.max_rows is not None:
        texts.append(f"at most {limits.max_rows} row{'s' if limits.max_rows > 1 else ''}")
    if limits.max_groups is not None:
        texts.append(f"in at most {limits.max_groups} group{'s' if limits.max_groups > 1 else ''}")
    if limits.max_rows_per_group is not None:
        plural = "s" if limits.max_rows_per_group > 1 else ""
        texts.append(f"at most {limits.max_rows_per_group} row{plural} in a group")
    if limits.max_norm is not None:
        texts.append(f"scaled to at most {limits.max_norm:g} times the longest row")
    return ", ".join(texts)


def ordinal(number: int) -> str:
    """A place in an order, for example ``5th``."""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return "first" if number == 1 else f"{number:,}{ending}"


def privacy_unit_from(
    column: object,
    schema: Schema,
    *,
    rows: object = None,
    groups: object = None,
    rows_per_group: object = None,
    norm: object = None,
    unit_type: object = None,
) -> PrivacyUnit:
    """Check the privacy unit and its limits against each other and the schema.

    Refuses limits or a type without a unit, a unit whose contribution nothing bounds, and one that is also a column.
    """
    limits = bounds_from(rows=rows, groups=groups, rows_per_group=rows_per_group, norm=norm)
    if unit_type is not None and (unit_type not in get_args(UnitType) or column is None):
        raise SchemaError(
            f"unit_type: must be 'text' or 'integer', with a privacy_unit; got {unit_type!r}; leave it out if each "
            "row is a unit, or to identify units as the table has them"
        )
    if column is None:
        if limits != NO_LIMITS:
            raise SchemaError(
                f"privacy_unit: required with {_arguments(limits)}; name the column that identifies the unit of a row, "
                "or leave out the limits to protect single rows"
            )
        return PrivacyUnit()
    if not isinstance(column, str) or not column:
        raise SchemaError(f"privacy_unit: must be a column name; got {column!r}")
    if (
        limits.max_rows is None
        and limits.max_norm is None
        and (limits.max_groups is None or limits.max_rows_per_group is None)
    ):
        raise SchemaError(
            f"max_rows_per_unit: required with privacy_unit={column!r}; give the number of rows of one {column} that "
            "may count, as in max_rows_per_unit=5 (others are left out, and a larger number needs more noise), or "
            "bound a unit by max_norm_per_unit=, or by max_groups_per_unit= with max_rows_per_group="
        )
    if column in schema:
        raise SchemaError(
            f"privacy_unit: {column!r} is also in the schema; leave it out of the schema, since the column that "
            "identifies the units cannot be queried"
        )
    return PrivacyUnit(
        column,
        limits.max_rows,
        ContributionBounds(None, limits.max_groups, limits.max_rows_per_group, limits.max_norm),
        msgspec.UNSET if unit_type is None else msgspec.convert(unit_type, UnitType),
    )


def identifier_of(value: Any, unit_type: UnitType) -> str | int | None:
    """An identifier as its declared type; None if it has no value of this type."""
    value = plain(value)
    if unit_type == "text":
        return text_of(value)
    if isinstance(value, str):
        value = int(value) if INTEGER.fullmatch(value) else None
    if isinstance(value, float) and abs(value) < MAX_EXACT_INTEGER and value.is_integer():
        value = int(value)
    if isinstance(value, Decimal) and -(2**63) <= value < 2**63 and value == int(value):
        value = int(value)
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    return value if is_integer and -(2**63) <= value < 2**63 else None


def bounds_from(*, rows: object, groups: object, rows_per_group: object, norm: object) -> ContributionBounds:
    """Check the limits of a session or of one query."""
    checked = []
    for name, value in (
        ("max_rows_per_unit", rows),
        ("max_groups_per_unit", groups),
        ("max_rows_per_group", rows_per_group),
    ):
        number = whole_number(value)
        if value is not None and (number is None or not 1 <= number <= MAX_LIMIT):
            raise SchemaError(f"{name}: must be a whole number from 1 to 2**31; got {value!r}")
        checked.append(number)
    if norm is not None:
        try:
            length = math.nan if isinstance(norm, bool) or not isinstance(norm, numbers.Real) else float(norm)
        except OverflowError:
            length = math.inf
        if not MIN_NORM <= length <= MAX_LIMIT:
            raise SchemaError(f"max_norm_per_unit: must lie between 2**-10 and 2**31; got {norm!r}; 1 is one full row")
        return ContributionBounds(checked[0], checked[1], checked[2], length)
    return ContributionBounds(checked[0], checked[1], checked[2])


def effective_bounds(unit: PrivacyUnit, requested: ContributionBounds) -> ContributionBounds:
    """The limits of a unit's contribution to a query that requests tighter ones."""
    if unit.column is None and requested != NO_LIMITS:
        raise PlanError(
            f"bound_contributions: each row is a privacy unit here; got {_arguments(requested)}; leave it out"
        )
    return unit.contribution_bounds.tightened(ContributionBounds(max_rows=unit.max_rows)).tightened(requested)


def _arguments(limits: ContributionBounds) -> str:
    names = ("max_rows_per_unit", "max_groups_per_unit", "max_rows_per_group", "max_norm_per_unit")
    values = (getattr(limits, field) for field in limits.__struct_fields__)
    return ", ".join(f"{name}={value!r}" for name, value in zip(names, values, strict=True) if value is not None)


def _smaller(one: N | None, other: N | None) -> N | None:
    return other if one is None else one if other is None else min(one, other)
