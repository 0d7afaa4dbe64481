"""A compiled plan: the sums, and their sensitivity: the largest change that one privacy unit can cause in them.

Two tables differ in one unit with all its rows, whatever they are.  Let each row add a vector of norm at most r to the
cell of its group, and let n_c of a unit's rows be in cell c.  By the triangle inequality the unit's part of cell c has
norm at most n_c r, and parts of different cells are orthogonal, so the unit's vector has norm at most
r sqrt(sum n_c^2).  What remains is the largest sum of squares under the limits: the squares are convex, so it is
attained by filling as few cells as possible.

* at most k rows                                  k^2: all in one cell
* at most g cells and m rows in each              g m^2
* all three                                       cells with m rows each up to k rows, and one with the remainder
* a norm of c rows, with or without the others    at most c^2, since the unit's vector is scaled down to c r

Equal rows in the fullest cells attain it.  For counts of units the vector is an indicator of the cells in which the
unit has a row, at most min(k, g, cells) of them.  Cumulative counts: `dpnb.accounting.prefix_sums`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from dpnb._compile.features import (
    BY_UNIT,
    CountFeature,
    Feature,
    GradientFeature,
    ModelLossFeature,
    TreeFeature,
    UnitFeature,
    UnitValueFeature,
    ValueFeature,
)
from dpnb._compile.lowering import features_of
from dpnb._compile.missing import LeftOut, describe_left_out
from dpnb._compile.work import LOCAL_LIMITS, WorkLimits, refuse_unsound, work_of
from dpnb._plan.checks import check_plan
from dpnb._plan.expressions.nodes import Expression, WithinUnit, conjuncts, nodes_of
from dpnb._plan.expressions.rules import TypedSchema
from dpnb._plan.measurements import (
    CumulativeCount,
    DeviationProducts,
    Discovery,
    ScoreSums,
    Single,
    UnitProducts,
    weighted_parts,
)
from dpnb._plan.plan import Plan, group_keys
from dpnb._plan.privacy_unit import MAX_LIMIT, ContributionBounds, PrivacyUnit, describe_bounds, effective_bounds
from dpnb.accounting.prefix_sums import MAX_STEPS, largest_norm_squared
from dpnb.errors import PlanError
from dpnb.schema import Key, Schema

# --- the largest contribution of one unit's rows ----------------------------------------------------------------------


def rows_squared(limits: ContributionBounds, cells: int) -> int | None:
    """The largest sum over cells of (rows of one unit)^2; None if no number of rows bounds it.

    At least one of rows, groups with rows per group, or norm is limited.
    """
    rows, per_group = rows_of_unit(limits, cells), max_rows_in_cell(limits)
    if rows is None or per_group is None:
        return None
    return rows // per_group * per_group**2 + (rows % per_group) ** 2


def rows_of_unit(limits: ContributionBounds, cells: int) -> int | None:
    """The largest number of rows of one unit in all groups together; None if nothing bounds it."""
    per_group = max_rows_in_cell(limits)
    if per_group is None:
        return None
    groups = cells if limits.max_groups is None else min(limits.max_groups, cells)
    return groups * per_group if limits.max_rows is None else min(limits.max_rows, groups * per_group)


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


# --- a compiled plan --------------------------------------------------------------------------------------------------


MIN_WEIGHT = 2**8
"""The smallest weight of a joint query before common factors are divided out: shares are met within 1 in 250."""

MIN_ROW_STEPS = 2**20
"""The smallest number of integer steps in the largest row of a feature if units are scaled down: rounding toward zero
then removes a millionth of a row, not a row."""

UNKNOWN_CELLS = 2**62
"""The number of groups that is assumed if it is unknown, as in a discovery."""


@dataclass(frozen=True)
class LinearQuery:
    """The sums of a query, and the largest change that one privacy unit can cause in them."""

    plan: Plan
    # each aggregation, the index of its first feature, and the number of its features
    parts: tuple[tuple[Single | Discovery, int, int], ...]
    features: tuple[Feature, ...]
    # of the cells, one value for each level; empty for one cell without a key, or if keys are discovered
    keys: tuple[tuple[Key, ...], ...]
    l2_sensitivity_squared: int  # C squared, in integer steps
    contribution_bounds: ContributionBounds
    # squared norm to which a unit's row features are scaled down; None if no vector can be longer
    clip_squared: int | None = None
    # Indices of the cells that are measured, ascending; None for all.  The rows of a unit that count, and the scaling
    # of its vector, are those for all cells, so that a cell's exact sums are the same.
    cell_subset: tuple[int, ...] | None = None

    @cached_property
    def cells(self) -> int:
        """Number of groups; 1 for an ungrouped query."""
        return max(1, len(self.keys))

    @cached_property
    def slots(self) -> int:
        """Numbers in one cell."""
        return sum([feature.slots for feature in self.features])

    @cached_property
    def numbers(self) -> int:
        """Numbers of the answer: those of the measured cells."""
        return self.slots * (self.cells if self.cell_subset is None else len(self.cell_subset))

    def of_features(self, chosen: slice) -> LinearQuery:
        """The sums of some of the features, over the same rows."""
        part = replace(self, features=self.features[chosen])
        part.__dict__["required"] = self.required  # not only what these features need
        return part

    @cached_property
    def is_cumulative(self) -> bool:
        """Whether the square root of the prefix sums over the cells is measured, not the cells."""
        return isinstance(self.plan.aggregation, CumulativeCount)

    @property
    def norm_step(self) -> int:
        """The squared norm of what a unit adds is a multiple of this, unless the unit's vector is scaled down."""
        return 1 if self.clip_squared is not None else math.gcd(*(feature.weight for feature in self.features)) ** 2

    @property
    def max_count_change(self) -> int | None:
        """The most that one privacy unit adds to the count in one cell, in integer steps, at least 1.

        A vector that is scaled down to a norm has no entry above that norm, which as an integer is at most its square
        root rounded down.  None for a query of anything but one count of rows or of units, which a unit might lower.
        """
        feature, is_alone = self.features[0], len(self.features) == self.slots == 1
        if self.is_cumulative or not is_alone or not isinstance(feature, CountFeature | UnitFeature):
            return None
        rows = 1 if isinstance(feature, UnitFeature) else max_rows_in_cell(self.contribution_bounds)
        bounds = [] if rows is None else [rows * feature.weight]
        if self.clip_squared is not None and isinstance(feature, CountFeature):
            bounds.append(math.isqrt(self.clip_squared))
        return max(1, min(bounds))

    @cached_property
    def required_by_features(self) -> list[tuple[Expression, ...]]:
        """For each feature the expressions that must not be missing; once for features that share a tuple of them."""
        required = [
            ()
            if isinstance(feature, UnitFeature)
            else (feature.expression,)
            if isinstance(feature, TreeFeature)
            else feature.required
            for feature in self.features
        ]
        return list({id(nodes): nodes for nodes in required}.values())

    @cached_property
    def required(self) -> tuple[Expression, ...]:
        """Expressions that must not be missing in a row, for any of the features."""
        first, *others = self.required_by_features
        required = [*dict.fromkeys(first)]
        for nodes in others:
            required = [node for node in required if node in nodes]
        return tuple(required)

    @cached_property
    def left_out(self) -> LeftOut:
        """Which rows with missing values do not count although pandas counts them, in words."""
        return describe_left_out(self.plan, self.required)

    @cached_property
    def most_nodes(self) -> int:
        """The most nodes of expressions that are computed together, at least 1; an object counts once."""
        return max([len(nodes_of(item, once=True)) for item in self._items()], default=1)

    def _items(self) -> list[list[Expression]]:
        """The expressions, by what is computed together."""
        items = [[node] for node in conjuncts(self.plan.where)]
        items.append([group.expression for group in self.plan.group_by])
        for feature in self.features:
            if isinstance(feature, GradientFeature | ModelLossFeature):
                chains = feature.chains if isinstance(feature, GradientFeature) else 1
                items.append([*feature.required, *feature.required[:1] * chains])
            elif isinstance(feature, TreeFeature | ValueFeature):
                items.append([feature.expression])
            if isinstance(feature, CountFeature | ValueFeature):
                items.append([*feature.split.by])
        items += [[node] for required in self.required_by_features for node in required]
        return [item for item in items if item]

    @cached_property
    def has_windows(self) -> bool:
        """Whether anything besides the table is computed from the rows of one unit."""
        read = nodes_of((self.plan.where, self.plan.group_by, self.features), once=True)
        return bool([node for node in read if isinstance(node, WithinUnit)])


def linear_query(
    plan: Plan,
    schema: Schema,
    unit: PrivacyUnit,
    cell_subset: tuple[int, ...] | None = None,
    *,
    divisible: bool = False,
    limits: WorkLimits = LOCAL_LIMITS,
) -> LinearQuery:
    """Compile a plan, to be measured in all cells or in those with the indices `cell_subset`.

    A plan that a client may have written must be one that `check_structure` does not refuse.  `divisible` makes the
    integer steps fine enough for scaling a unit's vector down later, to the unit's remaining budget.  The limits are
    checked before anything of the query is listed.
    """
    schema = TypedSchema(schema)
    limits.refuse(plan.words, work_of(plan, schema))
    check_plan(plan, schema)
    bounds = _bounds_of(plan, unit)
    keys = group_keys(plan, schema) if plan.group_by and not isinstance(plan.aggregation, Discovery) else ()
    cells = max(1, len(keys)) if not isinstance(plan.aggregation, Discovery) else UNKNOWN_CELLS
    if isinstance(plan.aggregation, Discovery) and bounds.max_rows is None and bounds.max_groups is None:
        raise PlanError(
            "discover: needs a bound on the groups of one unit; give max_groups_per_unit= or max_rows_per_unit= to the "
            "session or to .bound_contributions()"
        )
    parts: list[tuple[Single | Discovery, int, int]] = []
    features: list[Feature] = []
    shares: list[Fraction] = []
    for aggregation, share in weighted_parts(plan.aggregation):
        part_features = features_of(aggregation, schema)
        parts.append((aggregation, len(features), len(part_features)))
        features += part_features
        shares += [Fraction(share) / len(part_features)] * len(part_features)
    scaled_down = clips(bounds, cells) and not all(isinstance(feature, BY_UNIT) for feature in features)
    norms_squared = _max_norms_squared(features, bounds, cells)
    weights = _weights(shares, norms_squared)
    if scaled_down or (divisible and not isinstance(plan.aggregation, Discovery)):
        fineness = _fineness(features, weights)
        weights = [weight * fineness for weight in weights]
    features = [replace(feature, weight=weight) for feature, weight in zip(features, weights, strict=True)]
    clip = None
    if scaled_down:
        weighted = zip(features, norms_squared, weights, strict=True)
        clip = math.floor(
            sum(bound * weight**2 for feature, bound, weight in weighted if not isinstance(feature, UnitFeature))
        )
    measured = _max_norms_squared(features, bounds, cells if cell_subset is None else len(cell_subset))
    squared = math.ceil(sum(bound * weight**2 for bound, weight in zip(measured, weights, strict=True)))
    if isinstance(plan.aggregation, CumulativeCount):
        squared = _cumulative_squared(plan.words, bounds, cells) * weights[0] ** 2
    refuse_unsound(plan.words, features, squared, clip)
    return LinearQuery(plan, tuple(parts), tuple(features), keys, squared, bounds, clip, cell_subset)


def _cumulative_squared(words: str, limits: ContributionBounds, cells: int) -> int:
    """The largest squared norm of what one unit adds to the square root of prefix sums, in steps of 2^-60."""
    rows, per_group = rows_of_unit(limits, cells), max_rows_in_cell(limits)
    if cells > MAX_STEPS or rows is None or per_group is None or limits.max_norm is not None:
        raise PlanError(
            f"{words}: takes at most {MAX_STEPS:,} groups, and a limit of rows; it has {cells:,}, and "
            f"{describe_bounds(limits)}; give wider groups, or max_rows_per_unit="
        )
    return largest_norm_squared(cells, rows=rows, rows_in_step=per_group)


def _bounds_of(plan: Plan, unit: PrivacyUnit) -> ContributionBounds:
    """The limits on the rows of a unit that count; a number of a unit stands in one of them."""
    bounds = effective_bounds(unit, plan.contribution_bounds)
    if isinstance(plan.aggregation, DeviationProducts):
        return ContributionBounds(max_rows=unit.max_rows or MAX_LIMIT)
    parts = [part for part, _ in weighted_parts(plan.aggregation)]
    sums = any(isinstance(part, UnitProducts | ScoreSums) and part.max_rows > 1 for part in parts)
    unusual = unit.max_rows is None or bounds.max_rows_per_group is not None or bounds.max_norm is not None
    if sums and unusual:
        raise PlanError("population: needs max_rows_per_unit=, and no limit on the rows in a group or on norms")
    return bounds


def _max_norms_squared(features: list[Feature], limits: ContributionBounds, cells: int) -> list[Fraction]:
    """The largest squared norm that one unit can add to each feature, before weighting."""
    by_row, by_cell = max_norm_squared(limits, cells), cells_of_unit(limits, cells)
    return [
        (1 if isinstance(feature, GradientFeature) else by_cell if isinstance(feature, UnitFeature) else by_row)
        * Fraction(feature.limit_squared)
        if not isinstance(feature, UnitValueFeature)
        else _of_unit(feature, limits.max_rows, by_cell)
        for feature in features
    ]


def _of_unit(feature: UnitValueFeature, rows: int | None, cells: int) -> Fraction:
    """The largest squared norm of a unit's numbers in at most `cells` groups: see `dpnb._compile.products`.

    `rows` are all of its rows in the table, not only those that count in a group.
    """
    times = Fraction(cells) if rows is None else min(Fraction(rows, feature.max_rows), Fraction(cells))
    return max(Fraction(1), times) * feature.limit_squared


def _fineness(features: list[Feature], weights: list[int]) -> int:
    """The factor for all weights that makes the integer steps fine enough for scaling down."""
    steps = min(weight * math.isqrt(feature.limit_squared) for feature, weight in zip(features, weights, strict=True))
    return max(1, MIN_ROW_STEPS // steps)


def _weights(shares: list[Fraction], norms_squared: list[Fraction]) -> list[int]:
    """Integer weights w without a common factor for which w^2 c^2 is nearly proportional to the shares.

    A feature of norm c is charged w^2 c^2/sigma^2, and these charges add up to mu squared.
    """
    squared = [share / bound for share, bound in zip(shares, norms_squared, strict=True)]
    smallest = min(squared)
    weights = [math.isqrt(round(MIN_WEIGHT**2 * value / smallest)) for value in squared]
    divisor = math.gcd(*weights)
    return [weight // divisor for weight in weights]
