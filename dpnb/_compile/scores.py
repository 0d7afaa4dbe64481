"""The sums of a step of a logistic or Poisson regression, as expressions of a row.

With terms x of norm at most 1 each, coefficients b, an outcome y and the mean m = f(x'b) of its family, a row adds ::

    score         x (y - m)          of each term
    information   x x' f'(x'b)       of each pair of terms
    products      x x' (y - m)^2     of each pair of terms, where a row is a unit

These are the first derivative of the log-likelihood, the negative second one, and the outer products of the first
(McCullagh and Nelder 1989, *Generalized Linear Models*, section 2.5).  Where a unit has up to K rows, its score is the
sum over its rows, and the products are those of this sum: see `dpnb._compile.products`.

Nothing is clipped for a logistic regression: y is 0 or 1 and m between them.  The mean of a Poisson regression has no
bound, so it is clamped to the declared bounds of the outcome, and f' is 0 where it is clamped: then ``|y - m|`` is at
most their distance.  The bounds below are tightened by what the coefficients and the bounds of the columns imply.  The
information may be measured with f' clamped to a smaller number (`max_slope`), for less noise.

=============  =================================  ====================================
bound of       logistic                           Poisson, with y and m in low..high
=============  =================================  ====================================
``|y - m|``    1                                  high - low
f'             1/4                                high
=============  =================================  ====================================

The indicators of a category are one feature with a slot for each, of which a row is in at most one; so are the products
of two categories, and those of a category with a number.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, reduce

from dpnb._compile.features import Feature, ScoreFeature, SlotLayout, UnitValueFeature
from dpnb._compile.products import unit_products
from dpnb._plan.expressions.dtypes import Boolean, Numeric
from dpnb._plan.expressions.nodes import (
    And,
    Apply,
    Arithmetic,
    AsNumber,
    Clip,
    Compare,
    Expression,
    Literal,
    Lookup,
    Where,
    negative,
)
from dpnb._plan.expressions.rules import dtype_of, public_keys_of
from dpnb._plan.measurements import ScoreSums, UnitProducts
from dpnb._plan.regression import RegressionDesign, design, outcome_values
from dpnb.schema import Schema

MAX_PREDICTOR = 30.0
"""Bound on the linear predictor, beyond which a mean would be above 1e13 or its distance from 0 or 1 below 1e-13."""


def score_features(aggregation: ScoreSums, schema: Schema) -> tuple[Feature, ...]:
    """The features of one part of a step, each with the slots of its terms or pairs of terms.

    Refuses coefficients and columns for which a number of a row has no allowed bounds: not when rows are read.
    """
    rows = _ScoredRow(aggregation, schema)
    for node in (rows.residual, rows.slope[0], *rows.numbers):  # what is multiplied by numbers of at most 1
        dtype_of(node, schema)
    if aggregation.part == "score":
        return tuple(rows.feature(rows.residual, rows.largest_residual, (block,)) for block in rows.blocks)
    if aggregation.part == "information":
        slope, largest = rows.slope
        return tuple(rows.feature(slope, largest, pair, least=0.0) for pair in rows.design.pairs_of_blocks)
    if aggregation.max_rows == 1:
        square = Arithmetic("**", rows.residual, Literal(2))
        largest = rows.largest_residual**2
        return tuple(rows.feature(square, largest, pair, least=0.0) for pair in rows.design.pairs_of_blocks)
    products = unit_products(UnitProducts(rows.scores, aggregation.max_rows))
    return tuple(rows.of_unit(node, aggregation.max_rows) for node in products)


@dataclass(frozen=True)
class _ScoredRow:
    """The expressions of a row, at the coefficients of a step."""

    aggregation: ScoreSums
    schema: Schema

    @cached_property
    def design(self) -> RegressionDesign:
        return design(self.aggregation.model, self.schema, "regress")

    @property
    def blocks(self) -> range:
        """The numbers of the blocks of terms."""
        return range(len(self.design.blocks))

    @cached_property
    def required(self) -> tuple[Expression, ...]:
        """What must not be missing in a row; one tuple, which is compared once for all features."""
        model = self.aggregation.model
        return (model.outcome, *model.columns, *model.categories)

    # --- the numbers of a row ---------------------------------------------------------------------------------------

    @cached_property
    def numbers(self) -> list[Expression]:
        """The numeric columns, scaled to -1 to 1."""
        layout = self.design
        scales = zip(self.aggregation.model.columns, layout.middles, layout.reaches, strict=True)
        return [
            Clip(Arithmetic("/", Arithmetic("-", node, Literal(middle)), Literal(reach)), -1.0, 1.0)
            for node, middle, reach in scales
        ]

    @cached_property
    def outcome(self) -> Expression:
        """The outcome as a number within its bounds."""
        model, (middle, reach) = self.aggregation.model, self.design.outcome
        if model.family == "poisson":
            return Clip(model.outcome, max(middle - reach, 0.0), middle + reach)
        if isinstance(dtype_of(model.outcome, self.schema), Boolean):
            return AsNumber(model.outcome)
        second = outcome_values(model.outcome, self.schema, "regress")[1]
        return AsNumber(Compare("==", model.outcome, Literal(second)))

    @cached_property
    def predictor(self) -> Expression:
        """The linear predictor, clipped to its largest value."""
        at, layout = self.aggregation.at, self.design
        terms: list[Expression] = [Literal(at[0])]
        for node, value in zip(self.numbers, at[1:], strict=False):
            terms.append(Arithmetic("*", Literal(value), node))
        for node, block in zip(self.aggregation.model.categories, layout.blocks[1 + len(self.numbers) :], strict=True):
            keys, values = public_keys_of(node, self.schema) or (), (0.0, *(at[term] for term in block))
            name = f"coefficient of a value {len(terms)}"
            each = tuple((key,) for key in keys)
            terms.append(Lookup(name, (node,), each, values, min(values), max(values)))
        return Clip(_total(terms), -MAX_PREDICTOR, MAX_PREDICTOR)

    @cached_property
    def predictor_range(self) -> tuple[float, float]:
        """The smallest and the largest linear predictor, for any row."""
        at, layout = self.aggregation.at, self.design
        low = high = at[0]
        for block in layout.blocks[1:]:
            values = [at[term] for term in block]
            ends = [0.0, *values] if len(values) > 1 or block[0] > len(self.numbers) else [values[0], -values[0]]
            low, high = low + min(ends), high + max(ends)
        return tuple(min(max(end, -MAX_PREDICTOR), MAX_PREDICTOR) for end in (low, high))  # type: ignore[return-value]

    @cached_property
    def outcome_range(self) -> tuple[float, float]:
        """The bounds of the outcome."""
        middle, reach = self.design.outcome
        return (max(middle - reach, 0.0), middle + reach) if self.is_poisson else (0.0, 1.0)

    @property
    def is_poisson(self) -> bool:
        return self.aggregation.model.family == "poisson"

    @cached_property
    def _exponential(self) -> Expression:
        """The mean of a Poisson regression before it is clamped."""
        return Apply("exp", self.predictor)

    @cached_property
    def mean(self) -> Expression:
        """The mean of the outcome at the coefficients."""
        low, high = self.outcome_range
        if self.is_poisson:
            return Clip(self._exponential, low, high)
        one = Literal(1.0)
        return Arithmetic("/", one, Arithmetic("+", one, Apply("exp", negative(self.predictor))))

    def _mean_at(self, predictor: float) -> float:
        low, high = self.outcome_range
        return min(max(math.exp(predictor), low), high) if self.is_poisson else 1 / (1 + math.exp(-predictor))

    @cached_property
    def largest_residual(self) -> float:
        """The largest distance of an outcome from its mean."""
        (low, high), (least, most) = self.outcome_range, map(self._mean_at, self.predictor_range)
        return max(high - least, most - low)

    @cached_property
    def residual(self) -> Expression:
        """The outcome minus its mean."""
        largest = self.largest_residual
        return Clip(Arithmetic("-", self.outcome, self.mean), -largest, largest)

    @cached_property
    def slope(self) -> tuple[Expression, float]:
        """The derivative of the mean, and its largest value."""
        (low, high), (least, most) = self.outcome_range, self.predictor_range
        limit = math.inf if self.aggregation.max_slope is None else self.aggregation.max_slope
        if self.is_poisson:
            mean, largest = self._exponential, min(high, math.exp(most), limit)
            inside: Expression = Compare("<", mean, Literal(high))
            inside = And(inside, Compare(">", mean, Literal(low))) if low else inside
            return Where(inside, Clip(mean, 0.0, largest), Literal(0.0)), largest
        nearest = self._mean_at(min(max(0.0, least), most))  # at the predictor where the derivative is largest
        slope = Arithmetic("*", self.mean, Arithmetic("-", Literal(1.0), self.mean))
        largest = min(nearest * (1 - nearest), limit)
        return Clip(slope, 0.0, largest), largest

    # --- features ---------------------------------------------------------------------------------------------------

    def feature(self, node: Expression, largest: float, blocks: tuple[int, ...], least: float = -1.0) -> ScoreFeature:
        """A number of at most `largest`, times the terms of one block or two, as one feature.

        It is at least `least` times that, before it is multiplied by numeric columns.
        """
        layout, by, sizes = self.design, [], []
        # A row has one indicator of a category, which is its own square.
        for block in dict.fromkeys(blocks) if layout.is_category(blocks[0]) else blocks:
            if layout.is_category(block):
                by.append(self.aggregation.model.categories[block - 1 - len(self.numbers)])
                sizes.append(len(layout.blocks[block]))
            elif block:
                node = Arithmetic("*", node, self.numbers[block - 1])
        mixed = len(set(blocks)) > 1 or len(blocks) == 1
        if mixed and any(0 < block <= len(self.numbers) for block in blocks):
            least = -1.0
        split = SlotLayout(tuple(by), tuple(sizes))
        return ScoreFeature(node, least * largest, largest, required=self.required, split=split)

    @cached_property
    def scores(self) -> tuple[Expression, ...]:
        """What a row adds to the score of each term."""
        largest, found = self.largest_residual, [self.residual]
        found += [Clip(Arithmetic("*", self.residual, node), -largest, largest) for node in self.numbers]
        for node in self.aggregation.model.categories:
            for key in (public_keys_of(node, self.schema) or ())[1:]:
                found.append(Where(Compare("==", node, Literal(key)), self.residual, Literal(0.0)))
        return tuple(found)

    def of_unit(self, node: Expression, rows: int) -> UnitValueFeature:
        """A product of what a unit's rows add to the score of two terms."""
        number = dtype_of(node, self.schema)
        if not isinstance(number, Numeric):  # never: for the type checker
            raise TypeError(type(number).__name__)
        return UnitValueFeature(node, number.low, number.high, required=self.required, max_rows=rows)


def _total(terms: list[Expression]) -> Expression:
    """A sum, added in pairs: the depth of the expression is the logarithm of their number."""
    while len(terms) > 1:
        pairs = [terms[at : at + 2] for at in range(0, len(terms), 2)]
        terms = [reduce(lambda left, right: Arithmetic("+", left, right), pair) for pair in pairs]
    return terms[0]
