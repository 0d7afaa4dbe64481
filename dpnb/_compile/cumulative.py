"""The sensitivity of cumulative counts: the norm of what one unit adds to the square root of their prefix sums.

The columns of the matrix are not orthogonal, as the cells of other queries are, and none of their products is negative.
So k rows of a unit in one cell add more than in several: k times the first column, by the triangle inequality.  If at
most m of them are in one cell, they add no more than m rows in each of the first k/m cells, rounded up, since no entry
of the unit's vector and no product of columns is negative.  Proofs: `dpnb.accounting.prefix_sums`.
"""

from __future__ import annotations

from dpnb.accounting.prefix_sums import MAX_STEPS, prefix_sums_norm_squared
from dpnb.errors import PlanError


def cumulative_squared(rows: int | None, per_group: int | None, cells: int, words: str) -> int:
    """The largest squared norm of what one unit adds to a cumulative count, in steps of 2^-60.

    `rows` and `per_group` are the largest numbers of its rows in all groups and in one; None if nothing bounds them.
    """
    if cells > MAX_STEPS:
        raise PlanError(f"{words}: must have at most {MAX_STEPS:,} groups; it has {cells:,}; give wider groups")
    if rows is None or per_group is None:
        raise PlanError(
            f"{words}: adds up groups, for which a limit on the norm of a unit is not enough; limit its rows, by "
            "max_rows_per_unit= or by max_groups_per_unit= with max_rows_per_group="
        )
    in_cells = per_group**2 * prefix_sums_norm_squared(cells, -(-rows // per_group))
    return min(rows**2 * prefix_sums_norm_squared(cells), in_cells)
