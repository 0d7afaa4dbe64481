"""A plan compiled: what is summed, and how much one privacy unit can change the sums."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

from dpnb._compile.features import BY_UNIT, Feature, GradientFeature, TreeFeature, UnitFeature, features_of
from dpnb._compile.sensitivity import cells_of_unit, clips, longest_squared
from dpnb._compile.validation import refuse_unsound
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.measurements import Discovery, JointAggregation, Single, WeightedAggregation
from dpnb._plan.plan import Plan, check_plan, group_keys
from dpnb._plan.privacy_unit import ContributionBounds, PrivacyUnit, effective_bounds
from dpnb._plan.schema import Key, Schema
from dpnb.errors import PlanError

FINEST_WEIGHT = 2**8
"""The smallest weight of a joint question before common factors are taken out: shares are met within 1 in 250."""

FINE = 2**20
"""Steps that the largest row of every feature has at least where units are scaled down: rounding toward zero then takes
off a millionth of a row, not a row."""

MOST_NUMBERS = 20_000_000
"""In one answer: a few hundred megabytes."""

ANY_NUMBER = 2**62
"""Of groups that are not known."""


@dataclass(frozen=True)
class LinearQuery:
    """What is summed, and how much one privacy unit can change the sums.

    Parameters
    ----------
    plan : Plan
    parts : tuple of (aggregation, first feature, features)
        Which features measure which aggregation.
    features : tuple of Feature
    keys : tuple of tuple
        Keys of the cells, one value a level; empty for one cell without a key, and where they are to be discovered.
    l2_sensitivity_squared : int
        C squared, in integer steps.
    contribution_bounds : Limits
        What bounds a unit.
    clip_squared : int or None
        Square of the norm to which a unit's row features are scaled down; None where nothing can be longer.
    cell_subset : tuple of int or None
        Places of the cells that are measured, ascending; None for all.  Which rows of a unit count, and how its vector
        is scaled down, is decided as for all cells, so that a cell's exact sums are the same.
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
        """Number of groups; 1 for an ungrouped question."""
        return max(1, len(self.keys))

    @property
    def slots(self) -> int:
        """Numbers in one cell."""
        return sum(feature.slots for feature in self.features)

    @cached_property
    def required(self) -> tuple[Expression, ...]:
        """What every row that counts has, whichever feature it is for."""
        needed = [
            ()
            if isinstance(feature, UnitFeature)
            else (feature.expression,)
            if isinstance(feature, TreeFeature)
            else feature.required
            for feature in self.features
        ]
        return tuple(node for node in dict.fromkeys(needed[0]) if all(node in nodes for nodes in needed))


def linear_query(
    plan: Plan,
    schema: Schema,
    unit: PrivacyUnit,
    only: tuple[int, ...] | None = None,
    *,
    divisible: bool = False,
) -> LinearQuery:
    """Compile a plan, to be measured in all of its cells or in some.

    Parameters
    ----------
    plan : Plan
    schema : dict
    unit : PrivacyUnit
    only : tuple of int, optional
        Places of the cells.
    divisible : bool
        A unit's vector may be scaled down later, to what the unit can still pay: steps are made fine enough for that.

    Raises
    ------
    PlanError
        The schema gives the plan no meaning or no bound, or a figure of it is not finite, normal and positive.
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
        found = features_of(part.aggregation, schema)
        parts.append((part.aggregation, len(features), len(found)))
        features += found
        shares += [Fraction(part.weight) / len(found)] * len(found)
    scaled_down = clips(limits, cells) and not all(isinstance(feature, BY_UNIT) for feature in features)
    numbers = max(1, len(keys)) * sum(feature.slots for feature in features)
    if numbers > MOST_NUMBERS:
        raise PlanError(
            f"{plan.words}: asks for {numbers:,} noisy numbers at once; {MOST_NUMBERS:,} are the most; ask for fewer "
            "groups by keys=[...], or for something simpler of them (a quantile takes some thousands a group)"
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
    """The square of the most that one unit can add to each feature, unweighted."""
    longest, present = longest_squared(limits, cells), cells_of_unit(limits, cells)
    return [
        (1 if isinstance(feature, GradientFeature) else present if isinstance(feature, UnitFeature) else longest)
        * Fraction(feature.limit_squared)
        for feature in features
    ]


def _fineness(features: list[Feature], weights: list[int]) -> int:
    """The factor by which every feature gets steps that are fine enough to be scaled down."""
    coarsest = min(weight * math.isqrt(part.limit_squared) for part, weight in zip(features, weights, strict=True))
    return max(1, FINE // coarsest)


def _weights(shares: list[Fraction], reach: list[Fraction]) -> list[int]:
    """Integers w without a common factor for which w^2 reach is as good as proportional to the shares.

    What a feature is charged is its own (weight^2 reach)/sigma^2, and these add up to mu squared.
    """
    squared = [share / bound for share, bound in zip(shares, reach, strict=True)]
    least = min(squared)
    weights = [math.isqrt(round(FINEST_WEIGHT**2 * value / least)) for value in squared]
    divisor = math.gcd(*weights)
    return [weight // divisor for weight in weights]
