"""What can be measured, and what can be read off a measurement: frozen values without data.

An aggregation decides the noise, the charge and what can be combined with earlier looks.  A `View` is what is read
off the noisy sums, and is free: variance and standard deviation of a column are two views of one measurement, and so
are all of its quantiles.
"""

from __future__ import annotations

from typing import Literal, TypeVar

import msgspec

from dpnb._plan.expressions.nodes import Expression
from dpnb._plan.schema import Key
from dpnb.errors import PlanError

T = TypeVar("T")

# --- what is measured ------------------------------------------------------------------------------------------------


class Aggregation(msgspec.Struct, frozen=True, tag_field="of", omit_defaults=True):
    """Base of what can be measured."""


class Count(Aggregation, frozen=True, tag="count"):
    """Rows; with an expression, rows for which it gives something."""

    column: Expression | None = None


class CountUnits(Aggregation, frozen=True, tag="count_units"):
    """Privacy units with at least one row."""


class CountActiveUnits(CountUnits, frozen=True, tag="count_active_units"):
    """Privacy units that can still pay for this count, under individual accounting.

    Parameters
    ----------
    label : str
        What the analyst calls the moment; another one is another question.
    """

    label: str


class Sum(Aggregation, frozen=True, tag="sum"):
    """Sum of a bounded expression."""

    column: Expression


class Mean(Aggregation, frozen=True, tag="mean"):
    """Count and centred sum of a bounded expression."""

    column: Expression


class Ratio(Aggregation, frozen=True, tag="ratio"):
    """Two sums, over the rows that have both."""

    column: Expression
    denominator: Expression


class Moments(Aggregation, frozen=True, tag="moments"):
    """Count, sums, and sums of squares and products, over the rows that have all of the columns.

    Parameters
    ----------
    columns : tuple of expression
        Numbers.
    categories : tuple of expression
        Categories and conditions, as an indicator of each value but the first.
    """

    columns: tuple[Expression, ...]
    categories: tuple[Expression, ...] = ()


class QuantileTree(Aggregation, frozen=True, tag="quantile_tree"):
    """Rows in each node of a tree over the range of an expression."""

    column: Expression


Family = Literal["linear", "logistic", "poisson", "multinomial"]
"""Of regressions that are fitted step by step."""


class RegressionModel(msgspec.Struct, frozen=True, omit_defaults=True):
    """A regression; `dpnb._plan.regression` says what its terms are.

    Parameters
    ----------
    family : str
    outcome : expression
    columns : tuple of expression
        Numbers, brought to -1 to 1 by their bounds.
    categories : tuple of expression
        Categories and conditions, as an indicator of each value but the first.
    """

    family: Family
    outcome: Expression
    columns: tuple[Expression, ...] = ()
    categories: tuple[Expression, ...] = ()


Coefficients = tuple[float, ...]
"""Of a model whose columns are brought to -1 to 1: class by class, and in each the intercept first."""


class Gradient(Aggregation, frozen=True, tag="gradient"):
    """Gradients of a regression's loss: of each unit the sum over its rows, scaled down to a norm.

    Parameters
    ----------
    model : Model
    at : tuple of tuple of float
        The coefficients at which they are taken; each tuple gives a gradient of its own.
    clip_norm : float
        The norm to which a unit's gradient is scaled down, each by itself.
    """

    model: RegressionModel
    at: tuple[Coefficients, ...]
    clip_norm: float


class ModelLoss(Aggregation, frozen=True, tag="model_loss"):
    """How badly a regression predicts, from 0 to 1 a row: count and centred sum.

    Parameters
    ----------
    model : Model
    at : tuple of float
        Its coefficients.
    """

    model: RegressionModel
    at: Coefficients


Joinable = Count | CountUnits | Sum | Mean | Ratio | Moments | QuantileTree
"""What can be measured in one charge with other things."""


class WeightedAggregation(msgspec.Struct, frozen=True):
    """A part of a joint question, and its share of the charge relative to the other parts."""

    aggregation: Joinable
    weight: float = 1.0

    def __post_init__(self) -> None:
        if not 2.0**-60 <= self.weight <= 2.0**60:
            raise PlanError(f"agg: a weight must lie between 2**-60 and 2**60; got {self.weight!r}; 1 is the default")


class JointAggregation(Aggregation, frozen=True, tag="joint"):
    """Several measurements in one charge; each gets its share of mu squared."""

    parts: tuple[WeightedAggregation, ...]


class Discovery(Aggregation, frozen=True, tag="discovery"):
    """The groups that enough units have, found with a failure probability of `delta` (a decimal text)."""

    delta: str


Single = Count | CountUnits | CountActiveUnits | Sum | Mean | Ratio | Moments | QuantileTree | Gradient | ModelLoss
Measured = Single | JointAggregation | Discovery

# --- what is read off ------------------------------------------------------------------------------------------------


class View(msgspec.Struct, frozen=True, tag_field="view", omit_defaults=True):
    """Base of what can be read off."""


class PlainView(View, frozen=True, tag="plain"):
    """The measured quantity itself."""


class Proportions(View, frozen=True, tag="proportions"):
    """Each group's count as a share of all of them."""


class MomentsView(View, frozen=True, tag="from_moments"):
    """``count``, ``mean``, ``var``, ``std``, ``cov``, ``corr`` or ``regression`` of moments.

    Parameters
    ----------
    statistic : str
    columns : tuple of int
        Which of the measured columns (categories are numbered after them); for a regression the outcome first.
    labels : tuple of str
        What the outcome and the terms of a regression are called.
    ddof : int
        Of ``var``, ``std`` and ``cov``: the divisor is the count less this, 0 or 1.
    """

    statistic: str
    columns: tuple[int, ...] = (0,)
    labels: tuple[str, ...] = ()
    ddof: int = 0


class MeanCountView(View, frozen=True, tag="count_of_mean"):
    """The count that a mean measures too."""


class QuantilesView(View, frozen=True, tag="quantiles"):
    """Quantiles of a tree; with `single` it is one number a group and not a list."""

    at: tuple[float, ...]
    single: bool = False


class CoefficientsView(View, frozen=True, tag="per_term"):
    """The numbers of a gradient, by name: chain by chain, class by class, and in each the intercept first.

    Parameters
    ----------
    terms : tuple of str
    classes : tuple of Key
        Of a multinomial regression.
    chains : int
    """

    terms: tuple[str, ...]
    classes: tuple[Key, ...] = ()
    chains: int = 1


SingleView = PlainView | MomentsView | MeanCountView | QuantilesView
"""What can be read off one part of a joint question."""


class NamedColumn(msgspec.Struct, frozen=True):
    """A column of a joint answer: which part, and what is read off it."""

    name: str
    part: int
    view: SingleView = PlainView()


class ColumnsView(View, frozen=True, tag="columns"):
    """The named columns of a joint answer.

    Parameters
    ----------
    columns : tuple of Named
    title : str
        What they are together; the list of them if left out.
    """

    columns: tuple[NamedColumn, ...]
    title: str = ""


AnyView = PlainView | Proportions | MomentsView | MeanCountView | QuantilesView | ColumnsView | CoefficientsView

# --- as text ----------------------------------------------------------------------------------------------------------

# Made once, at import: msgspec may crash where two threads need a type for the first time at once.
_VIEWS: msgspec.json.Decoder[AnyView] = msgspec.json.Decoder(AnyView)


def view_to_json(view: AnyView) -> str:
    """The view as JSON, the same text for equal views."""
    return msgspec.json.encode(view, order="deterministic").decode()


def view_from_json(text: str) -> AnyView:
    """The view that `view_to_json` wrote.

    Raises
    ------
    PlanError
        The text is not a view.
    """
    return decoded(text, _VIEWS)


def decoded(text: str, decoder: msgspec.json.Decoder[T]) -> T:
    """A value from its JSON.

    Raises
    ------
    PlanError
        The text is no such value.
    """
    try:
        return decoder.decode(text)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PlanError(
            f"plan: the text is not one that this version of dpnb knows ({error}); write one with to_json()"
        ) from None
