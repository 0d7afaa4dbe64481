"""A compiled plan: the sums, and the largest change that one privacy unit can cause in them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from dpnb._compile.features import BY_UNIT, CountFeature, Feature, GradientFeature, TreeFeature, UnitFeature
from dpnb._compile.lowering import features_of
from dpnb._compile.sensitivity import cells_of_unit, clips, max_norm_squared, max_rows_in_cell
from dpnb._compile.validation import refuse_unsound
from dpnb._compile.work import LOCAL_LIMITS, WorkLimits, work_of
from dpnb._plan.checks import check_plan
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.measurements import Discovery, Single, weighted_parts
from dpnb._plan.plan import Plan, group_keys
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit, effective_bounds
from dpnb._plan.schema import Key, Schema
from dpnb.errors import PlanError

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

    @property
    def cells(self) -> int:
        """Number of groups; 1 for an ungrouped query."""
        return max(1, len(self.keys))

    @property
    def slots(self) -> int:
        """Numbers in one cell."""
        return sum(feature.slots for feature in self.features)

    @property
    def numbers(self) -> int:
        """Numbers of the answer: those of the measured cells."""
        return self.slots * (self.cells if self.cell_subset is None else len(self.cell_subset))

    def of_features(self, chosen: slice) -> LinearQuery:
        """The sums of some of the features, over the same rows."""
        part = replace(self, features=self.features[chosen])
        part.__dict__["required"] = self.required  # not only what these features need
        return part

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
        if len(self.features) != 1 or self.slots != 1 or not isinstance(self.features[0], CountFeature | UnitFeature):
            return None
        (feature,) = self.features
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
        return tuple(node for node in dict.fromkeys(first) if all(node in nodes for nodes in others))


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
    limits.refuse(plan.words, work_of(plan, schema))
    check_plan(plan, schema)
    bounds = effective_bounds(unit, plan.contribution_bounds)
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
    refuse_unsound(plan.words, features, squared, clip)
    return LinearQuery(plan, tuple(parts), tuple(features), keys, squared, bounds, clip, cell_subset)


def _max_norms_squared(features: list[Feature], limits: ContributionBounds, cells: int) -> list[Fraction]:
    """The largest squared norm that one unit can add to each feature, before weighting."""
    by_row, by_cell = max_norm_squared(limits, cells), cells_of_unit(limits, cells)
    return [
        (1 if isinstance(feature, GradientFeature) else by_cell if isinstance(feature, UnitFeature) else by_row)
        * Fraction(feature.limit_squared)
        for feature in features
    ]


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
