"""A compiled plan: the sums, and the largest change that one privacy unit can cause in them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from dpnb._compile.features import BY_UNIT, Feature, GradientFeature, TreeFeature, UnitFeature
from dpnb._compile.lowering import features_of
from dpnb._compile.sensitivity import cells_of_unit, clips, longest_squared
from dpnb._compile.validation import refuse_unsound
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.measurements import Discovery, JointAggregation, Single, WeightedAggregation
from dpnb._plan.plan import Plan, check_plan, group_keys
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit, effective_bounds
from dpnb._plan.schema import Key, Schema
from dpnb.errors import PlanError

FINEST_WEIGHT = 2**8
"""The smallest weight of a joint query before common factors are divided out: shares are met within 1 in 250."""

FINE = 2**20
"""The smallest number of integer steps in the largest row of a feature if units are scaled down: rounding toward zero
then removes a millionth of a row, not a row."""

MOST_NUMBERS = 20_000_000
"""Largest number of noisy values in one answer: a few hundred megabytes."""

ANY_NUMBER = 2**62
"""Stands for the number of groups if it is not known."""


@dataclass(frozen=True)
class LinearQuery:
    """The sums of a query, and the largest change that one privacy unit can cause in them.

    Parameters
    ----------
    plan : Plan
        The plan that was compiled.
    parts : tuple of (aggregation, first feature, features)
        For each aggregation, the index of its first feature and the number of its features.
    features : tuple of Feature
        The features of all aggregations.
    keys : tuple of tuple
        Keys of the cells, one value for each level; empty for one cell without a key, or if keys are discovered.
    l2_sensitivity_squared : int
        C squared, in integer steps.
    contribution_bounds : ContributionBounds
        The limits of a unit's contribution.
    clip_squared : int or None
        Square of the norm to which a unit's row features are scaled down; None if no vector can be longer.
    cell_subset : tuple of int or None
        Indices of the cells that are measured, ascending; None for all.  The rows of a unit that count, and the scaling
        of its vector, are those for all cells, so that a cell's exact sums are the same.
    """

    plan: Plan
    parts: tuple[tuple[Single | Discovery, int, int], ...]
    features: tuple[Feature, ...]
    keys: tuple[tuple[Key, ...], ...]
    l2_sensitivity_squared: int
    contribution_bounds: ContributionBounds
    clip_squared: int | None = None
    cell_subset: tuple[int, ...] | None = None

    @property
    def cells(self) -> int:
        """Number of groups; 1 for an ungrouped query."""
        return max(1, len(self.keys))

    @property
    def slots(self) -> int:
        """Numbers in one cell."""
        return sum(feature.slots for feature in self.features)

    @cached_property
    def required(self) -> tuple[Expression, ...]:
        """Expressions that must not be missing in a row, for any of the features."""
        required = [
            ()
            if isinstance(feature, UnitFeature)
            else (feature.expression,)
            if isinstance(feature, TreeFeature)
            else feature.required
            for feature in self.features
        ]
        return tuple(node for node in dict.fromkeys(required[0]) if all(node in nodes for nodes in required))


def linear_query(
    plan: Plan,
    schema: Schema,
    unit: PrivacyUnit,
    only: tuple[int, ...] | None = None,
    *,
    divisible: bool = False,
) -> LinearQuery:
    """Compile a plan, to be measured in all or some of its cells.

    Parameters
    ----------
    plan : Plan
        The plan.
    schema : dict
        The schema of the plan's table.
    unit : PrivacyUnit
        The privacy unit of the plan's table.
    only : tuple of int, optional
        Indices of the cells that are measured; all by default.
    divisible : bool
        Whether a unit's vector may be scaled down later to the unit's remaining budget; the integer steps are then made
        fine enough.

    Raises
    ------
    PlanError
        The plan is undefined or unbounded under the schema, or one of its numbers is out of range.
    """
    check_plan(plan, schema)
    limits = effective_bounds(unit, plan.contribution_bounds)
    keys = group_keys(plan, schema) if plan.group_by and not isinstance(plan.aggregation, Discovery) else ()
    cells = max(1, len(keys)) if not isinstance(plan.aggregation, Discovery) else ANY_NUMBER
    if isinstance(plan.aggregation, Discovery) and limits.max_rows is None and limits.max_groups is None:
        raise PlanError(
            "discover: needs a bound on the groups of one unit; give max_groups_per_unit= or max_rows_per_unit= to the "
            "session or to .bound_contributions()"
        )
    single = plan.aggregation
    weighted = single.parts if isinstance(single, JointAggregation) else (WeightedAggregation(single),)  # type: ignore[arg-type]
    parts: list[tuple[Single | Discovery, int, int]] = []
    features: list[Feature] = []
    shares: list[Fraction] = []
    for part in weighted:
        part_features = features_of(part.aggregation, schema)
        parts.append((part.aggregation, len(features), len(part_features)))
        features += part_features
        shares += [Fraction(part.weight) / len(part_features)] * len(part_features)
    scaled_down = clips(limits, cells) and not all(isinstance(feature, BY_UNIT) for feature in features)
    numbers = max(1, len(keys)) * sum(feature.slots for feature in features)
    if numbers > MOST_NUMBERS:
        raise PlanError(
            f"{plan.words}: needs {numbers:,} noisy numbers at once; at most {MOST_NUMBERS:,} are possible; request "
            "fewer groups by keys=[...], or a simpler statistic (a quantile needs some thousands for each group)"
        )
    weights = _weights(shares, _reach(features, limits, cells))
    if scaled_down or (divisible and not isinstance(single, Discovery)):
        fineness = _fineness(features, weights)
        weights = [weight * fineness for weight in weights]
    features = [replace(feature, weight=weight) for feature, weight in zip(features, weights, strict=True)]
    measured = cells if only is None else len(only)
    reach = [bound * weight**2 for bound, weight in zip(_reach(features, limits, measured), weights, strict=True)]
    clip = None
    if scaled_down:
        long = zip(features, _reach(features, limits, cells), weights, strict=True)
        clip = math.floor(
            sum(bound * weight**2 for feature, bound, weight in long if not isinstance(feature, UnitFeature))
        )
    squared = math.ceil(sum(reach, Fraction(0)))
    refuse_unsound(plan.words, features, squared, clip)
    return LinearQuery(plan, tuple(parts), tuple(features), keys, squared, limits, clip, only)


def _reach(features: list[Feature], limits: ContributionBounds, cells: int) -> list[Fraction]:
    """The largest squared norm that one unit can add to each feature, before weighting."""
    longest, present = longest_squared(limits, cells), cells_of_unit(limits, cells)
    return [
        (1 if isinstance(feature, GradientFeature) else present if isinstance(feature, UnitFeature) else longest)
        * Fraction(feature.limit_squared)
        for feature in features
    ]


def _fineness(features: list[Feature], weights: list[int]) -> int:
    """The factor for all weights that makes the integer steps fine enough for scaling down."""
    coarsest = min(weight * math.isqrt(part.limit_squared) for part, weight in zip(features, weights, strict=True))
    return max(1, FINE // coarsest)


def _weights(shares: list[Fraction], reach: list[Fraction]) -> list[int]:
    """Integers w without a common factor for which w^2 reach is nearly proportional to the shares.

    Each feature is charged (weight^2 reach)/sigma^2, and these charges add up to mu squared.
    """
    squared = [share / bound for share, bound in zip(shares, reach, strict=True)]
    least = min(squared)
    weights = [math.isqrt(round(FINEST_WEIGHT**2 * value / least)) for value in squared]
    divisor = math.gcd(*weights)
    return [weight // divisor for weight in weights]
