"""The largest contribution of one unit's rows, whatever they are (add or remove one unit with all its rows).

Let each row add a vector of norm at most r to the cell of its group, and let n_c of a unit's rows be in cell c.
By the triangle inequality the unit's part of cell c has norm at most n_c r, and parts of different cells are
orthogonal, so the unit's vector has norm at most r sqrt(sum n_c^2).  What remains is the largest sum of squares under
the limits: the squares are convex, so it is attained by filling as few cells as possible.

* at most k rows                                  k^2: all in one cell
* at most g cells and m rows in each              g m^2
* all three                                       cells with m rows each up to k rows, and one with the remainder
* a norm of c rows, with or without the others    at most c^2, since the unit's vector is scaled down to c r

Equal rows in the fullest cells attain it.  For counts of units the vector is an indicator of the cells in which the
unit has a row, at most min(k, g, cells) of them.
"""

from __future__ import annotations

from fractions import Fraction

from dpnb._plan.privacy_unit import ContributionBounds


def rows_squared(limits: ContributionBounds, cells: int) -> int | None:
    """The largest sum over cells of (rows of one unit)^2; None if no number of rows bounds it.

    At least one of rows, groups with rows per group, or norm is limited.
    """
    groups = cells if limits.max_groups is None else min(limits.max_groups, cells)
    per_group = max_rows_in_cell(limits)
    if per_group is None:
        return None
    rows = groups * per_group if limits.max_rows is None else min(limits.max_rows, groups * per_group)
    return rows // per_group * per_group**2 + (rows % per_group) ** 2


def max_rows_in_cell(limits: ContributionBounds) -> int | None:
    """The largest number of rows of one unit in one group; None if no number of rows bounds it."""
    bounds = [bound for bound in (limits.max_rows, limits.max_rows_per_group) if bound is not None]
    return min(bounds, default=None)


def max_norm_squared(limits: ContributionBounds, cells: int) -> Fraction:
    """The largest squared norm of one unit's vector, as a multiple of the largest squared norm of a single row."""
    counted = rows_squared(limits, cells)
    clipped = None if limits.max_norm is None else Fraction(limits.max_norm) ** 2
    return min(Fraction(bound) for bound in (counted, clipped) if bound is not None)


def clips(limits: ContributionBounds, cells: int) -> bool:
    """Whether a unit's vector can exceed the norm limit, so that vectors must be checked unit by unit."""
    counted = rows_squared(limits, cells)
    return limits.max_norm is not None and (counted is None or Fraction(limits.max_norm) ** 2 < counted)


def cells_of_unit(limits: ContributionBounds, cells: int) -> int:
    """The largest number of groups in which one unit can have a row."""
    return min(bound for bound in (limits.max_rows, limits.max_groups, cells) if bound is not None)
