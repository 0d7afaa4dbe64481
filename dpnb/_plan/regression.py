"""The terms and scales of a regression that is fitted step by step.  Holds no data.

The terms are an intercept, the numeric columns scaled to -1 to 1 by their bounds in the schema, and an indicator for
each value of a category (or condition) except the first.  A row's linear predictor is the sum of coefficient times
term; a multinomial regression has one for each class.

===========  ===========================  ========================  ===============================================
family       outcome                      what is predicted         loss of a row, with linear predictor e
===========  ===========================  ========================  ===============================================
linear       a number, scaled to -1..1    e                         (e - y)^2 / 2
logistic     a condition, or two values   1 / (1 + exp(-e))         log(1 + exp(e)) - y e
poisson      a number of at least 0       exp(e)                    exp(e) - y e
multinomial  one of several values        exp(e_k) / sum exp(e_j)   log(sum exp(e_j)) - e_y
===========  ===========================  ========================  ===============================================

The gradient of each is (prediction - outcome) times the terms.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import get_args

from dpnb._plan.expressions.dtypes import Boolean, Categorical, Numeric
from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.expressions.rules import dtype_of, numeric_dtype_of, public_keys_of
from dpnb._plan.expressions.text import explained, words
from dpnb._plan.measurements import Coefficients, Family, Gradient, ModelLoss, RegressionModel, ScoreSums
from dpnb.errors import PlanError
from dpnb.schema import MIN_RELATIVE_RANGE, Key, Schema

FAMILIES: tuple[Family, ...] = get_args(Family)

MAX_CLASSES = 1000
MAX_TERMS = 100_000
MAX_SCORE_TERMS = 60
"""Largest number of terms of a regression of which each pair is measured."""

LEAST_OUTCOME, LARGEST_OUTCOME = 1e-9, 1e12
"""Smallest and largest upper bound of the outcome of a Poisson regression by steps: their means stay within those of
linear predictors from -30 to 30."""

LARGEST = 2.0**20
"""Largest absolute value of a coefficient, for columns that are scaled to -1 to 1."""

MIN_SLOPE = 2.0**-100
MIN_CLIP_NORM, MAX_CLIP_NORM = 2.0**-100, 2.0**100


@dataclass(frozen=True)
class RegressionDesign:
    """A model's terms under a schema."""

    middles: tuple[float, ...]  # of the bounds of the numeric columns
    reaches: tuple[float, ...]  # half-widths of these bounds
    sizes: tuple[int, ...]  # number of indicators of each category
    outcome: tuple[float, float]  # middle and half-width of its bounds; (0, 1) if it is not a number
    classes: tuple[Key, ...] = ()  # of a multinomial outcome

    @property
    def terms(self) -> int:
        """Number of terms: intercept, numeric columns and indicators."""
        return 1 + len(self.middles) + sum(self.sizes)

    @property
    def width(self) -> int:
        """Number of coefficients: one for each term, and for several classes for each class."""
        return self.terms * max(1, len(self.classes))

    @property
    def max_norm_squared(self) -> int:
        """The largest squared norm of a row's vector of terms."""
        return 1 + len(self.middles) + len(self.sizes)

    @cached_property
    def blocks(self) -> tuple[range, ...]:
        """The terms of the intercept, of each numeric column and of each category."""
        ends, blocks = 0, []
        for size in (1, *(1 for _ in self.middles), *self.sizes):
            blocks.append(range(ends, ends + size))
            ends += size
        return tuple(blocks)

    @cached_property
    def pairs_of_blocks(self) -> tuple[tuple[int, int], ...]:
        """Each pair of blocks once, ascending; and each block with itself."""
        numbers = range(len(self.blocks))
        return tuple((a, b) for a in numbers for b in numbers[a:])

    def is_category(self, block: int) -> bool:
        """Whether a block has the indicators of a category, of which at most one is 1."""
        return block > len(self.middles)


def design(model: RegressionModel, schema: Schema, verb: str = "fit") -> RegressionDesign:
    """The terms of a model, whose columns must be distinct and of the right types; refusals begin with `verb`."""
    nodes = (model.outcome, *model.columns, *model.categories)
    if len(set(nodes)) != len(nodes):
        twice = words(next(node for node in nodes if nodes.count(node) > 1))
        raise PlanError(
            f"{verb}: a column can occur only once, as the outcome or a predictor; got {twice} twice; remove one"
        )
    scales = [_scale(node, schema, verb) for node in model.columns]
    sizes = tuple(_indicators(node, schema, verb) for node in model.categories)
    terms = RegressionDesign(
        tuple(middle for middle, _ in scales),
        tuple(reach for _, reach in scales),
        sizes,
        _outcome(model, schema, verb),
        _classes(model, schema, verb),
    )
    if terms.width > MAX_TERMS:
        raise PlanError(
            f"{verb}: the model has {terms.width:,} coefficients; at most {MAX_TERMS:,} are possible; leave out "
            "columns, or use categories with fewer values"
        )
    return terms


def outcome_values(node: Expression, schema: Schema, verb: str) -> tuple[Key, ...]:
    """The public values of a categorical outcome; raises `PlanError` if they are not public."""
    values = public_keys_of(node, schema)
    if values is None:
        raise PlanError(
            f"{verb}: the values of {words(node)} are texts, and the set of texts is private; declare them as "
            "dpnb.Categories, or compare with one of them, as in df['x'] == 'a'"
        )
    return values


def check_gradient(aggregation: Gradient | ModelLoss, schema: Schema) -> None:
    """Refuse the regression of a plan if it is undefined under the schema."""
    terms = design(aggregation.model, schema)
    at = aggregation.at if isinstance(aggregation, Gradient) else (aggregation.at,)
    if not at:
        raise PlanError("fit: a gradient needs the coefficients at which it is computed; got none")
    for coefficients in at:
        _check_coefficients(coefficients, terms, "fit")
    if isinstance(aggregation, Gradient) and not MIN_CLIP_NORM <= aggregation.clip_norm <= MAX_CLIP_NORM:
        raise PlanError(f"fit: clip_norm must be from 2**-100 to 2**100; got {aggregation.clip_norm!r}; 1 is usual")


def check_scores(aggregation: ScoreSums, schema: Schema) -> None:
    """Refuse the sums of a regression's step if they are undefined under the schema."""
    terms = design(aggregation.model, schema, "regress")
    if aggregation.model.family not in ("logistic", "poisson"):
        raise PlanError(f"regress: steps are those of a logistic or poisson family; got {aggregation.model.family!r}")
    if terms.terms > MAX_SCORE_TERMS:
        raise PlanError(
            f"regress: the formula must have at most {MAX_SCORE_TERMS} terms, since each pair of them is measured; it "
            f"has {terms.terms}; leave out terms, or use categories with fewer values"
        )
    if aggregation.model.family == "poisson" and not LEAST_OUTCOME <= sum(terms.outcome) <= LARGEST_OUTCOME:
        raise PlanError(
            f"regress: the outcome of a poisson regression must have an upper bound from {LEAST_OUTCOME:g} to "
            f"{LARGEST_OUTCOME:g}; got {sum(terms.outcome):g}; .clip() it, or change its unit"
        )
    _check_coefficients(aggregation.at, terms, "regress")
    if aggregation.max_slope is not None and not MIN_SLOPE <= aggregation.max_slope <= 1 / MIN_SLOPE:
        raise PlanError(f"regress: max_slope must be from 2**-100 to 2**100; got {aggregation.max_slope!r}")


def describe_model(model: RegressionModel) -> str:
    """A model in words, for example ``poisson regression of mdvis on age, idp``."""
    on = ", ".join(explained(node) for node in (*model.columns, *model.categories)) or "nothing"
    return f"{model.family} regression of {explained(model.outcome)} on {on}"


def modelled(model: RegressionModel, schema: Schema) -> str:
    """The outcome in words; of two categories, the one whose probability is modelled."""
    name = words(model.outcome)
    if model.family != "logistic" or isinstance(dtype_of(model.outcome, schema), Boolean):
        return name
    return f"{name} == {outcome_values(model.outcome, schema, 'regress')[1]!r}"


def is_class(model: RegressionModel) -> bool:
    """Whether the outcome is categorical, so that a prediction is right or wrong."""
    return model.family in ("logistic", "multinomial")


def _check_coefficients(coefficients: Coefficients, terms: RegressionDesign, verb: str) -> None:
    if len(coefficients) != terms.width:
        raise PlanError(
            f"{verb}: this regression has {terms.width} coefficients; got {len(coefficients)}; give all of them"
        )
    if not all(-LARGEST <= value <= LARGEST for value in coefficients):
        raise PlanError(
            f"{verb}: a coefficient (of columns scaled to -1 to 1) must be at most 2**20 in absolute value"
            f"{'; use a smaller learning_rate=' if verb == 'fit' else ''}"
        )


def _scale(node: Expression, schema: Schema, verb: str) -> tuple[float, float]:
    """Middle and half-width of an expression's bounds."""
    number = numeric_dtype_of(node, schema, verb)
    middle, reach = number.low / 2 + number.high / 2, number.high / 2 - number.low / 2
    if reach < MIN_RELATIVE_RANGE * number.magnitude / 2 or not math.isfinite(1 / reach if reach else math.inf):
        raise PlanError(
            f"{verb}: {words(node)} has the bounds {number.low:g} and {number.high:g}, which must be at least 2**-20 "
            "of the larger one's size apart; leave out constant columns"
        )
    return middle, reach


def _indicators(node: Expression, schema: Schema, verb: str) -> int:
    kind = dtype_of(node, schema)
    listed = isinstance(kind, Categorical | Boolean) or (isinstance(kind, Numeric) and kind.whole)
    if not listed or len(public_keys_of(node, schema) or ()) < 2:
        raise PlanError(f"{verb}: {words(node)} must have at least two public values; leave it out")
    return len(public_keys_of(node, schema) or ()) - 1


def _outcome(model: RegressionModel, schema: Schema, verb: str) -> tuple[float, float]:
    if model.family == "linear":
        return _scale(model.outcome, schema, verb)
    if model.family == "poisson":
        number = numeric_dtype_of(model.outcome, schema, verb)
        if number.low < 0:
            raise PlanError(
                f"{verb}: the outcome of a poisson regression must be a number of at least 0; {words(model.outcome)} "
                f"may be as low as {number.low:g}; .clip(0, ...) it"
            )
        return _scale(model.outcome, schema, verb)
    return 0.0, 1.0


def _classes(model: RegressionModel, schema: Schema, verb: str) -> tuple[Key, ...]:
    if not is_class(model):
        return ()
    values = outcome_values(model.outcome, schema, verb)
    if model.family == "logistic":
        if len(values) != 2:
            raise PlanError(
                f"{verb}: the outcome of a logistic regression must be a condition or have two values; "
                f"{words(model.outcome)} has {len(values)}; compare it, as in df['x'] > 1, or use df.fit with "
                "family='multinomial'"
            )
        return ()
    if not 2 <= len(values) <= MAX_CLASSES:
        raise PlanError(
            f"{verb}: the outcome of a multinomial regression must have 2 to {MAX_CLASSES:,} values; "
            f"{words(model.outcome)} has {len(values):,}; choose another outcome"
        )
    return values
