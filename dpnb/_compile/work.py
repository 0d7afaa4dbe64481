"""Bounds of a query: its work and the size of its answer before it is compiled, and its numbers afterwards.

Before it is compiled nothing is listed: the numbers of features and groups are products of numbers of columns, values
and keys.  So a query that is too large is refused in the time that it takes to read its plan, and before anything is
charged; the number of rows, which is private, is not used.

The last check of a compiled plan is about the numbers that rows and sums are divided, shifted and multiplied by.
Interval arithmetic should have refused what is out of range, but the check does not rely on it: for any plan and any
features, each of these numbers is finite, normal and positive as a double, or the plan is refused before anything is
charged.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields
from fractions import Fraction

from dpnb._compile import grid
from dpnb._compile.features import (
    BRANCHING,
    CLIP_STEPS,
    Feature,
    GradientFeature,
    ModelLossFeature,
    TreeFeature,
    ValueFeature,
)
from dpnb._compile.lowering import tree_levels
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.expressions.rules import numeric_dtype_of, public_key_count
from dpnb._plan.measurements import (
    DeviationProducts,
    Discovery,
    Gradient,
    LevelCounts,
    Mean,
    ModelLoss,
    Moments,
    QuantileTree,
    Ratio,
    ScoreSums,
    Single,
    UnitProducts,
    weighted_parts,
)
from dpnb._plan.plan import Plan
from dpnb._plan.regression import RegressionDesign, design
from dpnb.accounting.losses import GDP
from dpnb.errors import PlanError
from dpnb.schema import ALLOWED_MAGNITUDES, Schema, has_allowed_magnitude

MB = 10**6

MAX_WORDS = 200
"""Characters of the query in a refusal."""

NUMBER_BYTES = 250
"""Memory for each number of an answer: sums, random bits, noisy integers, their text, and a copy for the reply."""

OBSERVED_BYTES = 95
"""Memory for each number of an earlier observation, while it is combined with others."""

GROUP_BYTES, LEVEL_BYTES = 100, 20
"""Memory for the key of a group, and for each of its values, in a compiled query and its answer."""

FEATURE_BYTES = 10_000
"""Memory for a compiled feature, of which several copies may be kept."""

MAX_UNITS = 2**32
"""Largest number of units: sums over as many rows are exact in every engine (`dpnb._compile.grid`)."""

NOISE_STEPS, GRID_STEPS = 2**26, 2**21
"""Bounds on the noise and on its scale, in steps of the output grid; see `dpnb.mechanisms.gaussian`."""

QUOTED = 4
"""Characters around an integer in a stored answer: two quotes, comma and blank."""

STORED_WORDS = 2_000
"""Bytes of the words of an answer besides those of its query: several numbers of at most 200 digits."""

STORED_HEAD = 200
"""Characters of a stored answer besides its integers."""


@dataclass(frozen=True)
class Work:
    """The work of a query, or of several."""

    features: int = 0
    numbers: int = 0  # noisy values: groups times slots
    groups: int = 0  # 1 for an ungrouped query
    key_values: int = 0  # groups times levels

    def __add__(self, other: Work) -> Work:
        return Work(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(Work)))

    @property
    def memory(self) -> int:
        """Bytes that compiling, answering and storing need at most, besides tables and blocks of their rows."""
        keys = self.groups * GROUP_BYTES + self.key_values * LEVEL_BYTES
        return self.numbers * NUMBER_BYTES + keys + self.features * FEATURE_BYTES


@dataclass(frozen=True)
class WorkLimits:
    """Limits of the work of a query; the defaults are those of a session in the analyst's own process."""

    features: int = 126_000  # by default those of all products of 500 columns
    numbers: int = 20_000_000  # noisy values
    # In bytes, besides the tables and the blocks of their rows, which have a fixed size for each core
    # (`dpnb._backends.memory.blocks`).
    memory: int = 16_000 * MB
    answer: int = 900 * MB  # bytes of a stored answer; SQLite stores no text of more than 10**9

    def refuse(self, words: str, work: Work) -> None:
        """Refuse a query, given in words, whose work is above a limit."""
        words = _shortened(words)
        if work.features > self.features:
            raise PlanError(
                f"{words}: must sum at most {self.features:,} features of a row; it has {work.features:,}; nothing was "
                "charged; leave out columns (products of k columns are k * (k + 1) / 2 features), or use several "
                "queries"
            )
        if work.numbers > self.numbers:
            raise PlanError(
                f"{words}: needs {work.numbers:,} noisy numbers at once; at most {self.numbers:,} are possible; "
                f"nothing was charged; {SMALLER}"
            )
        if work.memory > self.memory:
            raise PlanError(
                f"{words}: must need at most {self.memory // MB:,} MB of memory; its {work.numbers:,} noisy numbers in "
                f"{work.groups:,} groups need up to {-(-work.memory // MB):,} MB; nothing was charged; {SMALLER}"
            )

    def refuse_observed(self, words: str, work: Work, observations: int) -> None:
        """Refuse a query that was observed so often that what was released takes too much memory together."""
        needed = work.memory + observations * work.numbers * OBSERVED_BYTES
        if needed > self.memory:
            raise PlanError(
                f"{_shortened(words)}: must need at most {self.memory // MB:,} MB of memory; with its {observations:,} "
                f"observations so far, of {work.numbers:,} numbers each, it needs up to {-(-needed // MB):,} MB; "
                f"nothing was charged; {SMALLER}"
            )

    def refuse_stored(self, words: str, stored: int) -> None:
        """Refuse a query whose answer, of at most `stored` bytes by `stored_bytes`, is above the limit."""
        if stored > self.answer:
            raise PlanError(
                f"{_shortened(words)}: must have an answer of at most {self.answer // MB:,} MB in the ledger; it has "
                f"up to {-(-stored // MB):,} MB; nothing was charged; {SMALLER}"
            )


def _shortened(words: str) -> str:
    return words if len(words) <= MAX_WORDS else f"{words[:MAX_WORDS]} ..."


LOCAL_LIMITS = WorkLimits()

SMALLER = "request fewer groups by keys=[...], or a simpler statistic (a quantile needs some thousands for each group)"


def work_of(plan: Plan, schema: Schema) -> Work:
    """The work of a query, of a form that `check_structure` does not refuse."""
    groups = _groups(plan, schema)
    features = slots = 0
    for aggregation, _ in weighted_parts(plan.aggregation):
        more = _features_and_slots(aggregation, schema)
        features, slots = features + more[0], slots + more[1]
    return Work(features, groups * slots, groups, groups * len(plan.group_by))


def stored_bytes(numbers: int, loss: GDP) -> int:
    """The largest number of bytes of a stored answer of some noisy numbers.

    A number is S + sigma Z in steps h of the output grid (`dpnb.mechanisms.gaussian`), where |S| is at most the number
    of units times the sensitivity C, since no unit's vector is longer, and C = mu sigma.  So ``|S|/h`` is at most units
    times mu times ``sigma/h < GRID_STEPS``, and the noise is less than `NOISE_STEPS`.
    """
    mu = Fraction(math.isqrt(math.ceil(loss.mu_squared * 2**200)) + 1, 2**100)
    largest = math.ceil(MAX_UNITS * GRID_STEPS * mu) + NOISE_STEPS
    return STORED_HEAD + numbers * (len(str(largest)) + len("-") + QUOTED)


def stored_words_bytes(description: str) -> int:
    """The largest number of bytes of the words of an answer, in which each of the query's may be escaped."""
    return STORED_WORDS + 2 * len(description.encode())


def _groups(plan: Plan, schema: Schema) -> int:
    if isinstance(plan.aggregation, Discovery):
        return 1
    if plan.group_keys is not None:
        return max(1, len(plan.group_keys))
    return math.prod(public_key_count(group.expression, schema) or 1 for group in plan.group_by)


def _features_and_slots(aggregation: Single | Discovery, schema: Schema) -> tuple[int, int]:
    match aggregation:
        case Mean() | Ratio() | ModelLoss():
            return 2, 2
        case LevelCounts(column):
            return 1, public_key_count(column, schema) or 1
        case Moments(columns, categories):
            return _moments(len(columns), [_indicators(node, schema) for node in categories])
        case DeviationProducts(columns):
            pairs = len(columns) * (len(columns) + 1) // 2
            return pairs, pairs
        case UnitProducts():
            return len(aggregation.pairs), len(aggregation.pairs)
        case ScoreSums(model):
            return _scores(aggregation, [len(block) for block in design(model, schema).blocks])
        case QuantileTree(column):
            levels = tree_levels(numeric_dtype_of(column, schema, "quantiles"))
            return 1, sum(BRANCHING**level for level in range(1, levels + 1))
        case Gradient(model, at):
            return 1, len(at) * design(model, schema).width
    return 1, 1


def _moments(columns: int, sizes: list[int]) -> tuple[int, int]:
    """The numbers of features and slots of moments: see `dpnb._compile.lowering.moment_order`."""
    categories, indicators = len(sizes), sum(sizes)
    numbers = 1 + columns + columns * (columns + 1) // 2
    pairs = (indicators**2 - sum(size**2 for size in sizes)) // 2
    features = numbers + categories * (1 + columns) + categories * (categories - 1) // 2
    return features, numbers + indicators * (1 + columns) + pairs


def _scores(aggregation: ScoreSums, sizes: list[int]) -> tuple[int, int]:
    """The numbers of features and slots of a part of a step, whose terms are in blocks of these sizes."""
    blocks, terms = len(sizes), sum(sizes)
    if aggregation.part == "score":
        return blocks, terms
    if aggregation.part == "products" and aggregation.max_rows > 1:
        return terms * (terms + 1) // 2, terms * (terms + 1) // 2
    return blocks * (blocks + 1) // 2, (terms**2 - sum(size**2 for size in sizes)) // 2 + terms


def _indicators(node: Expression, schema: Schema) -> int:
    return max((public_key_count(node, schema) or 0) - 1, 0)


# --- the last check ---------------------------------------------------------------------------------------------------


Figure = tuple[str, float | Fraction]


def refuse_unsound(words: str, features: Sequence[Feature], l2_sensitivity_squared: int, clip: int | None) -> None:
    """Refuse a plan with a range, width, grid, scale or sensitivity that is not finite, normal and positive.

    `clip` is the squared norm to which units are scaled down.
    """
    for feature in features:
        for name, bound in _bounds(feature):
            if not has_allowed_magnitude(bound):
                raise PlanError(
                    f"{words}: its {name} must be {ALLOWED_MAGNITUDES}; it is {bound!r}; .clip() the column first"
                )
        for name, figure in _figures(feature):
            if not _is_sound(figure):
                raise PlanError(_REFUSAL.format(words=words, name=name, figure=figure))
    for name, squared in (("sensitivity", l2_sensitivity_squared), ("clip", clip)):
        if squared is not None and not _is_sound(Fraction(squared)):
            raise PlanError(_REFUSAL.format(words=words, name=name, figure=squared))


_REFUSAL = (
    "{words}: its {name} must be a finite, normal number above 0; it is {figure}; give the column other bounds, by "
    ".clip() or in the schema"
)


def _is_sound(figure: float | Fraction) -> bool:
    try:
        return sys.float_info.min <= float(figure) < math.inf
    except OverflowError:
        return False


def _bounds(feature: Feature) -> Iterator[tuple[str, float]]:
    """The bounds to which rows are clamped."""
    if isinstance(feature, ValueFeature | TreeFeature):
        yield "lower bound", feature.low
        yield "upper bound", feature.high


def _figures(feature: Feature) -> Iterator[Figure]:
    """The numbers by which rows, or their sums, are divided or multiplied."""
    yield "weight", feature.weight
    yield "unit", feature.unit
    yield "longest row", Fraction(feature.limit_squared)
    if isinstance(feature, ValueFeature):
        yield "range", feature.high - feature.low
        yield "grid", Fraction(2) ** -grid.exponent(feature)
    if isinstance(feature, TreeFeature):
        yield "width of a leaf", feature.width
        yield "range", feature.width * feature.leaves
        for piece in feature.pieces:
            yield "width of a leaf", piece.width
        if not feature.pieces:
            yield "number of leaves", feature.leaves - feature.whole * (feature.high - feature.low)
    if isinstance(feature, GradientFeature):
        yield "clip", feature.gradient.clip_norm
        yield "steps of the clip", CLIP_STEPS / feature.gradient.clip_norm if feature.gradient.clip_norm else math.inf
    if isinstance(feature, GradientFeature | ModelLossFeature):
        yield from _scales(feature.design)


def _scales(design: RegressionDesign) -> Iterator[Figure]:
    """The numbers by which columns are divided, to scale them to -1 to 1."""
    for reach in (*design.reaches, design.outcome[1]):
        yield "half of a range", reach
