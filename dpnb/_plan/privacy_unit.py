"""Whom the promise protects, and how much one of them may contribute to a question.

The bounds are the curator's, in words that a curator has: rows of a unit, groups in which a unit has rows, rows of a
unit in one group, or the length of what a unit adds altogether.  A question may tighten them, never loosen them.
"""

from __future__ import annotations

import math
import numbers
from typing import TypeVar

import msgspec

from dpnb._plan.schema import Schema, whole_number
from dpnb.errors import PlanError, SchemaError

MOST = 2**31
SHORTEST_NORM = 2.0**-10
N = TypeVar("N", int, float)


class ContributionBounds(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
):
    """How much of one unit counts in one question; None where nothing is said.

    Parameters
    ----------
    max_rows : int, optional
        Rows of a unit.
    max_groups : int, optional
        Groups in which a unit counts.
    max_rows_per_group : int, optional
        Rows of a unit in one group.
    max_norm : float, optional
        Length (L2 norm) of the vector that a unit adds, as a multiple of the longest that one row can add; a longer
        one is scaled down.
    """

    max_rows: int | None = None
    max_groups: int | None = None
    max_rows_per_group: int | None = None
    max_norm: float | None = None

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value, least = getattr(self, name), SHORTEST_NORM if name == "max_norm" else 1
            if value is not None and not least <= value <= MOST:
                raise SchemaError(f"{name}: must lie between {least} and 2**31; got {value!r}")

    def rows_below(self, most: int | None) -> int | None:
        """The limit on rows, in a table where a unit has at most `most`; None where that changes nothing."""
        return self.max_rows if most is None or (self.max_rows is not None and self.max_rows < most) else None

    def by_rank(self, most: int | None) -> bool:
        """Whether it takes an order of each unit's rows to tell which of them count."""
        return self.rows_below(most) is not None or self.max_rows_per_group is not None

    def tightened(self, other: ContributionBounds) -> ContributionBounds:
        """Both limits at once."""
        return ContributionBounds(
            *(_smaller(getattr(self, name), getattr(other, name)) for name in self.__struct_fields__)
        )


class PrivacyUnit(msgspec.Struct, frozen=True):
    """Whose presence is protected.

    Parameters
    ----------
    column : str, optional
        The column that says whose a row is; None when every row is its own unit.
    max_rows : int, optional
        At most this many rows of a unit count; 1 for rows, None where only `contribution_bounds` bound a unit.
    contribution_bounds : Limits
        What else bounds a unit, in every question.
    """

    column: str | None = None
    max_rows: int | None = 1
    contribution_bounds: ContributionBounds = ContributionBounds()

    @property
    def words(self) -> str:
        """The unit in words, for example ``one zper (at most 5 rows)``."""
        if self.column is None:
            return "one row"
        said = describe_bounds(self.contribution_bounds.tightened(ContributionBounds(max_rows=self.max_rows)))
        return f"one {self.column} ({said})"


def describe_bounds(limits: ContributionBounds) -> str:
    """The limits in words, for example ``at most 5 rows, in at most 2 groups``."""
    said = []
    if limits.max_rows is not None:
        said.append(f"at most {limits.max_rows} row{'s' if limits.max_rows > 1 else ''}")
    if limits.max_groups is not None:
        said.append(f"in at most {limits.max_groups} group{'s' if limits.max_groups > 1 else ''}")
    if limits.max_rows_per_group is not None:
        said.append(f"at most {limits.max_rows_per_group} row{'s' if limits.max_rows_per_group > 1 else ''} in a group")
    if limits.max_norm is not None:
        said.append(f"scaled to at most {limits.max_norm:g} times the longest row")
    return ", ".join(said)


def privacy_unit_from(
    column: object,
    schema: Schema,
    *,
    rows: object = None,
    groups: object = None,
    rows_per_group: object = None,
    norm: object = None,
) -> PrivacyUnit:
    """Check the privacy unit and its limits against each other and the schema.

    Raises
    ------
    SchemaError
        A limit is given without a unit, nothing bounds a unit's contribution, a limit is out of its range, or the
        unit is also a column of the schema.
    """
    limits = bounds_from(rows=rows, groups=groups, rows_per_group=rows_per_group, norm=norm)
    if column is None:
        if limits != ContributionBounds():
            raise SchemaError(
                f"privacy_unit: needed for {_given(limits)}; name the column that says whose a row is, or leave all "
                "of it out to protect single rows"
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
            f"max_rows_per_unit: required with privacy_unit={column!r}; say how many rows of one unit may count, or "
            "bound a unit by max_norm_per_unit=, or by max_groups_per_unit= with max_rows_per_group="
        )
    if column in schema:
        raise SchemaError(
            f"privacy_unit: {column!r} is also in the schema; leave it out of the schema, since what names a person "
            "is not something to ask about"
        )
    return PrivacyUnit(
        column, limits.max_rows, ContributionBounds(None, limits.max_groups, limits.max_rows_per_group, limits.max_norm)
    )


def bounds_from(*, rows: object, groups: object, rows_per_group: object, norm: object) -> ContributionBounds:
    """Check the limits of a session or of one question.

    Raises
    ------
    SchemaError
        A limit is out of its range.
    """
    checked = []
    for name, value in (
        ("max_rows_per_unit", rows),
        ("max_groups_per_unit", groups),
        ("max_rows_per_group", rows_per_group),
    ):
        number = whole_number(value)
        if value is not None and (number is None or not 1 <= number <= MOST):
            raise SchemaError(f"{name}: must be a whole number from 1 to 2**31; got {value!r}")
        checked.append(number)
    if norm is not None:
        try:
            length = math.nan if isinstance(norm, bool) or not isinstance(norm, numbers.Real) else float(norm)
        except OverflowError:
            length = math.inf
        if not SHORTEST_NORM <= length <= MOST:
            raise SchemaError(f"max_norm_per_unit: must lie between 2**-10 and 2**31; got {norm!r}; 1 is one full row")
        return ContributionBounds(checked[0], checked[1], checked[2], length)
    return ContributionBounds(checked[0], checked[1], checked[2])


def effective_bounds(unit: PrivacyUnit, asked: ContributionBounds) -> ContributionBounds:
    """What bounds a unit in a question.

    Raises
    ------
    PlanError
        Single rows are the unit, and the question limits what is one row anyway.
    """
    if unit.column is None and asked != ContributionBounds():
        raise PlanError(f"limit: each row is a unit of its own here; got {_given(asked)}; leave it out")
    return unit.contribution_bounds.tightened(ContributionBounds(max_rows=unit.max_rows)).tightened(asked)


def _given(limits: ContributionBounds) -> str:
    names = ("max_rows_per_unit", "max_groups_per_unit", "max_rows_per_group", "max_norm_per_unit")
    values = (getattr(limits, field) for field in limits.__struct_fields__)
    return ", ".join(f"{name}={value!r}" for name, value in zip(names, values, strict=True) if value is not None)


def _smaller(one: N | None, other: N | None) -> N | None:
    return other if one is None else one if other is None else min(one, other)
