"""Aggregations, which are measured, and views, which are computed from a measurement: frozen values without data.

An aggregation determines the noise, the charge and the earlier observations that can be combined.  A `View` is computed
from the noisy sums at no cost: variance and standard deviation of a column are two views of one measurement, and so
are all of its quantiles.
"""

from __future__ import annotations

from functools import reduce
from typing import Literal

import msgspec

from dpnb._plan.expressions.nodes import And, Expression, IsNull, Not
from dpnb.errors import PlanError
from dpnb.schema import Key

# --- what is measured ------------------------------------------------------------------------------------------------


class Aggregation(msgspec.Struct, frozen=True, tag_field="of", omit_defaults=True):
    """Base class of everything that can be measured."""


class Count(Aggregation, frozen=True, tag="count"):
    """Number of rows; with an expression, of rows where it is not null."""

    column: Expression | None = None


class CumulativeCount(Aggregation, frozen=True, tag="cumulative_count"):
    """Number of rows in each group and all groups before it; with an expression, of rows where it is not null."""

    column: Expression | None = None


class CountUnits(Aggregation, frozen=True, tag="count_units"):
    """Number of privacy units with at least one row."""


class CountActiveUnits(CountUnits, frozen=True, tag="count_active_units"):
    """Number of active privacy units: those whose remaining budget covers this count, under individual accounting."""

    label: str  # the analyst's name for the count; another label is another query


class Sum(Aggregation, frozen=True, tag="sum"):
    """Sum of a bounded expression."""

    column: Expression


class Mean(Aggregation, frozen=True, tag="mean"):
    """Count and centred sum of a bounded expression."""

    column: Expression


class Ratio(Aggregation, frozen=True, tag="ratio"):
    """Two sums, over the rows where neither is null."""

    column: Expression
    denominator: Expression


class WeightedMean(Ratio, frozen=True, tag="weighted_mean"):
    """Sum of an expression times a weight, and sum of the weights (the denominator), where neither is null."""


class LevelCounts(Aggregation, frozen=True, tag="level_counts"):
    """Number of rows with each public value of an expression."""

    column: Expression


class Moments(Aggregation, frozen=True, tag="moments"):
    """Count, sums, and sums of squares and products, over the rows where no column is null."""

    columns: tuple[Expression, ...]  # numbers
    categories: tuple[Expression, ...] = ()  # categories and conditions, as an indicator of each value except the first
    weights: Expression | None = None  # by which each row is multiplied; for least squares alone


class DeviationProducts(Aggregation, frozen=True, tag="deviation_products"):
    """Sums of the products of numbers' deviations from their means over the rows of each unit, of each pair once.

    Over the rows where no number is null.
    """

    columns: tuple[Expression, ...]
    max_rows: int  # of a unit; its sum of products is clipped to the bound for this number of rows

    @property
    def complete(self) -> Expression:
        """Whether no number is null."""
        present: list[Expression] = [Not(IsNull(node)) for node in self.columns]
        return reduce(And, present)


class UnitProducts(Aggregation, frozen=True, tag="unit_products"):
    """Sums over units of products of what a unit's rows in a group add up to, of each pair of numbers once.

    Over the rows where no number is null.
    """

    columns: tuple[Expression, ...]
    max_rows: int  # of a unit in a group; 1 if each row counts as a unit
    squares: bool = False  # of each number with itself only

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Indices of the two numbers of each product."""
        numbers = range(len(self.columns))
        return [(i, j) for i in numbers for j in numbers if (i == j if self.squares else i <= j)]


class QuantileTree(Aggregation, frozen=True, tag="quantile_tree"):
    """Number of rows in each node of a tree over the range of an expression."""

    column: Expression
    # leaves are finer near 0 (`dpnb._compile.grid`); not in plans recorded before this was possible
    graded: bool = False


Family = Literal["linear", "logistic", "poisson", "multinomial"]
"""Families of regressions that are fitted step by step."""


class RegressionModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A regression; `dpnb._plan.regression` defines its terms."""

    family: Family
    outcome: Expression
    columns: tuple[Expression, ...] = ()  # numbers, scaled to -1 to 1 by their bounds
    categories: tuple[Expression, ...] = ()  # categories and conditions, as an indicator of each value except the first


Coefficients = tuple[float, ...]
"""Coefficients of a model whose columns are scaled to -1 to 1: class by class, each with the intercept first."""


class Gradient(Aggregation, frozen=True, tag="gradient"):
    """Gradients of a regression's loss: for each unit the sum over its rows, clipped to a norm."""

    model: RegressionModel
    at: tuple[Coefficients, ...]  # the coefficients at which the gradients are taken; one gradient for each tuple
    clip_norm: float  # the norm to which each gradient of a unit is scaled down


class ModelLoss(Aggregation, frozen=True, tag="model_loss"):
    """Prediction error of a regression, from 0 to 1 for each row: count and centred sum."""

    model: RegressionModel
    at: Coefficients


ScorePart = Literal["score", "information", "products"]
"""What is summed for a step of a logistic or Poisson regression."""


class ScoreSums(Aggregation, frozen=True, tag="score_sums"):
    """Sums of a regression's score, or of its information, or of products of its score, at some coefficients.

    Over the rows where nothing of the model is null; `dpnb._compile.scores` defines them.
    """

    model: RegressionModel
    at: Coefficients
    part: ScorePart
    max_slope: float | None = None  # to which the derivative of a row's mean is clamped, in the information
    max_rows: int = 1  # of a unit, whose score is the sum over its rows; 1 if each row counts as a unit


Joinable = (
    Count
    | CountUnits
    | Sum
    | Mean
    | Ratio
    | WeightedMean
    | LevelCounts
    | Moments
    | UnitProducts
    | ScoreSums
    | QuantileTree
)
"""Aggregations that can be parts of a joint aggregation."""


class WeightedAggregation(msgspec.Struct, frozen=True):
    """A part of a joint query, and its share of the charge relative to the other parts."""

    aggregation: Joinable
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 2.0**-60 <= self.weight <= 2.0**60:
            raise PlanError(f"agg: a weight must lie between 2**-60 and 2**60; got {self.weight!r}; 1 is the default")


class JointAggregation(Aggregation, frozen=True, tag="joint"):
    """Several measurements in one charge; each gets its share of mu squared."""

    parts: tuple[WeightedAggregation, ...]


class Discovery(Aggregation, frozen=True, tag="discovery"):
    """The groups that enough units have, discovered with a failure probability of `delta` (a decimal text)."""

    delta: str


Single = Joinable | CumulativeCount | CountActiveUnits | DeviationProducts | Gradient | ModelLoss
Measured = Single | JointAggregation | Discovery


def weighted_parts(aggregation: Measured) -> tuple[tuple[Single | Discovery, float], ...]:
    """The parts of a joint aggregation with their weights; any other aggregation is its only part."""
    if isinstance(aggregation, JointAggregation):
        return tuple((part.aggregation, part.weight) for part in aggregation.parts)
    return ((aggregation, 1.0),)


def statistic_of(aggregation: Measured) -> Measured:
    """What an aggregation is shown as: of a statistic with the products of its population interval, the statistic."""
    if isinstance(aggregation, JointAggregation) and products_of(aggregation) is not None:
        return aggregation.parts[0].aggregation
    return aggregation


def products_of(aggregation: Measured) -> UnitProducts | None:
    """The products from which a statistic, the other part of a joint aggregation, has a population interval."""
    match aggregation:
        case JointAggregation(
            (WeightedAggregation(Sum() | Mean() | Ratio()), WeightedAggregation(UnitProducts() as found))
        ):
            return found
    return None


# --- views -----------------------------------------------------------------------------------------------------------


class View(msgspec.Struct, frozen=True, tag_field="view", omit_defaults=True):
    """Base class of everything that can be computed from a measurement."""


class PlainView(View, frozen=True, tag="plain"):
    """The measured quantity itself."""


class Proportions(View, frozen=True, tag="proportions"):
    """Each group's count as a share of the sum over the groups."""

    within: str = ""  # names of the leading levels within which the shares add up to 1; empty for all groups together
    size: int = 0  # number of consecutive groups that add up to 1; 0 for all groups


class MomentsView(View, frozen=True, tag="from_moments"):
    """A statistic that is computed from moments."""

    # ``count``, ``mean``, ``var``, ``std``, ``cov``, ``corr``, ``regression``, ``corr matrix`` or ``cov matrix``
    statistic: str
    # indices of the measured columns (categories are numbered after them); for a regression the outcome first
    columns: tuple[int, ...] = (0,)
    labels: tuple[str, ...] = ()  # names of the outcome and the terms of a regression, or of the columns of a matrix
    ddof: int = 0  # of ``var``, ``std``, ``cov`` and ``cov matrix``: the divisor is the count less this, 0 or 1


class SlopesView(View, frozen=True, tag="slopes"):
    """Least squares of the first number on the others, without an intercept: of deviations within units."""

    labels: tuple[str, ...]  # names of the outcome and of the terms
    within: str  # the name of the privacy unit


class MeanCountView(View, frozen=True, tag="count_of_mean"):
    """The count that a mean also measures."""


class LevelShareView(View, frozen=True, tag="share_of_level"):
    """The rows with one public value of an expression, as a share of those with any."""

    level: int  # index of the value


class StandardErrorView(View, frozen=True, tag="sem"):
    """The standard error of a mean: the standard deviation of its sampling error."""


class QuantilesView(View, frozen=True, tag="quantiles"):
    """Quantiles of a tree; with `single` one number for each group instead of a list."""

    at: tuple[float, ...]
    single: bool = False


class CoefficientsView(View, frozen=True, tag="per_term"):
    """The numbers of a gradient, by name: chain by chain, class by class, each with the intercept first.

    Or those of products that are added up for each unit.
    """

    terms: tuple[str, ...]
    classes: tuple[Key, ...] = ()  # of a multinomial regression
    chains: int = 1  # number of gradients


class StepView(View, frozen=True, tag="regression_step"):
    """The sums of a step of a regression: those of the score, then of each pair of terms those of each other part."""

    terms: tuple[str, ...]
    products: bool = False  # whether products of the score were measured too


class BoundsView(View, frozen=True, tag="bounds"):
    """Counts of rows by magnitude, and the smallest range of bins that are above the noise."""

    ranges: tuple[tuple[float, float], ...]  # the numbers in each bin
    whole: bool = False  # the column has whole numbers


SingleView = PlainView | MomentsView | MeanCountView | LevelShareView | QuantilesView
"""Views of one part of a joint query."""


class NamedColumn(msgspec.Struct, frozen=True):
    """A column of a joint answer: its name, the index of its part, and the view of that part."""

    name: str
    part: int
    view: SingleView = PlainView()


class ColumnsView(View, frozen=True, tag="columns"):
    """The named columns of a joint answer; if it is a table with `rows` and `statistics`, its numbers row by row."""

    columns: tuple[NamedColumn, ...]
    title: str = ""  # description of the answer; by default the list of the columns
    rows: tuple[str, ...] = ()
    statistics: tuple[str, ...] = ()


class TableOneView(ColumnsView, frozen=True, tag="table_one"):
    """The columns of a description of groups, and the group with which the others are compared."""

    variables: tuple[str, ...] = ()  # for each column, the name of what it describes
    reference: tuple[Key, ...] = ()  # the key of that group; empty without groups


AnyView = (
    PlainView
    | Proportions
    | MomentsView
    | SlopesView
    | StandardErrorView
    | MeanCountView
    | LevelShareView
    | QuantilesView
    | ColumnsView
    | TableOneView
    | CoefficientsView
    | StepView
    | BoundsView
)


def is_regression(view: AnyView) -> bool:
    """Whether a view is that of a linear regression."""
    return isinstance(view, SlopesView) or (isinstance(view, MomentsView) and view.statistic == "regression")
