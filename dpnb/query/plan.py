"""One question as frozen values: what is measured, of which rows, for which groups, and what is read off.  No data.

A `Plan` is what is measured: it decides the noise, the charge and what can be combined with earlier looks.  A `View` is
what is read off the noisy sums, and is free: variance and standard deviation of a column are two views of one plan, and
so are all of its quantiles.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from dpnb.errors import PlanError
from dpnb.query.expressions.kinds import MOST_KEYS, Truth, Words, keys_of, kind_of, number_of
from dpnb.query.expressions.nodes import AsNumber, Column, Expression
from dpnb.query.expressions.words import words
from dpnb.query.schema import Key, Schema
from dpnb.query.unit import Limits, limit_words

T = TypeVar("T")

# --- what is measured ------------------------------------------------------------------------------------------------


class Aggregation(msgspec.Struct, frozen=True, tag_field="of", omit_defaults=True):
    """Base of what can be measured."""


class Count(Aggregation, frozen=True, tag="count"):
    """Rows; with an expression, rows for which it gives something."""

    column: Expression | None = None


class Units(Aggregation, frozen=True, tag="units"):
    """Privacy units with at least one row."""


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


class Tree(Aggregation, frozen=True, tag="tree"):
    """Rows in each node of a tree over the range of an expression."""

    column: Expression


class Weighted(msgspec.Struct, frozen=True):
    """A part of a joint question, and its share of the charge relative to the other parts."""

    aggregation: Count | Units | Sum | Mean | Ratio | Moments | Tree
    weight: float = 1.0


class Joint(Aggregation, frozen=True, tag="joint"):
    """Several measurements in one charge; each gets its share of mu squared."""

    parts: tuple[Weighted, ...]


class Discovery(Aggregation, frozen=True, tag="discovery"):
    """The groups that enough units have, found with a failure probability of `delta` (a decimal text)."""

    delta: str


Single = Count | Units | Sum | Mean | Ratio | Moments | Tree
Measured = Single | Joint | Discovery

# --- what is read off ------------------------------------------------------------------------------------------------


class View(msgspec.Struct, frozen=True, tag_field="show", omit_defaults=True):
    """Base of what can be read off."""


class Plain(View, frozen=True, tag="plain"):
    """The measured quantity itself."""


class Shares(View, frozen=True, tag="shares"):
    """Each group's count as a share of all of them."""


class FromMoments(View, frozen=True, tag="from moments"):
    """``count``, ``mean``, ``var``, ``std``, ``cov``, ``corr`` or ``regression`` of moments.

    Parameters
    ----------
    statistic : str
    columns : tuple of int
        Which of the measured columns (categories are numbered after them); for a regression the outcome first.
    labels : tuple of str
        What the outcome and the terms of a regression are called.
    """

    statistic: str
    columns: tuple[int, ...] = (0,)
    labels: tuple[str, ...] = ()


class FromMean(View, frozen=True, tag="from mean"):
    """The count that a mean measures too."""


class Quantiles(View, frozen=True, tag="quantiles"):
    """Quantiles of a tree; with `single` it is one number a group and not a list."""

    at: tuple[float, ...]
    single: bool = False


SingleView = Plain | FromMoments | FromMean | Quantiles
"""What can be read off one part of a joint question."""


class Named(msgspec.Struct, frozen=True):
    """A column of a joint answer: which part, and what is read off it."""

    name: str
    part: int
    view: SingleView = Plain()


class Columns(View, frozen=True, tag="columns"):
    """The named columns of a joint answer.

    Parameters
    ----------
    columns : tuple of Named
    title : str
        What they are together; the list of them if left out.
    """

    columns: tuple[Named, ...]
    title: str = ""


AnyView = Plain | Shares | FromMoments | FromMean | Quantiles | Columns

# --- the question ----------------------------------------------------------------------------------------------------


class Joined(msgspec.Struct, frozen=True, tag="joined"):
    """Every pair of rows that one unit has in two tables."""

    left: Source
    right: Source
    suffixes: tuple[str, str] = ("_x", "_y")


Source = str | Joined
"""A table of the session by its name (empty for the only one), or a join of two."""


class Group(msgspec.Struct, frozen=True):
    """One level of groups: a name for it, and the expression whose values make the groups."""

    name: str
    of: Expression


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is measured.

    Parameters
    ----------
    aggregation : Measured
    where : expression, optional
        Only rows for which it is true count.
    by : tuple of Group
        Every key gets an answer, also one without rows.
    keys : tuple of tuple, optional
        The groups' public keys, one value a level; left out, every combination of the levels' public values.
    limits : Limits
        Tighter limits of a unit's contribution than the session's.
    source : str or Joined
        Which table.
    """

    aggregation: Measured
    where: Expression | None = None
    by: tuple[Group, ...] = ()
    keys: tuple[tuple[Key, ...], ...] | None = None
    limits: Limits = Limits()
    source: Source = ""

    def to_json(self) -> str:
        """The plan as JSON, the same text for equal plans."""
        return msgspec.json.encode(self, order="deterministic").decode()

    @staticmethod
    def from_json(text: str) -> Plan:
        """The plan that `to_json` wrote.

        Raises
        ------
        PlanError
            The text is not a plan.
        """
        return _decoded(text, Plan)

    @property
    def words(self) -> str:
        """The question in words, for example ``mean of mdvis by coins where female == 1``."""
        return question_words(self, Plain())

    @property
    def scope(self) -> str:
        """Groups, rows and limits in words."""
        text = ""
        if self.by:
            text += f" by {', '.join(group.name for group in self.by)}"
        if self.source:
            text += f" in {source_words(self.source)}"
        if self.where is not None:
            text += f" where {words(self.where)}"
        if self.limits != Limits():
            text += f" ({limit_words(self.limits)})"
        return text


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
    return _decoded(text, AnyView)  # type: ignore[arg-type]  # a union is a type to msgspec


def column(name: str) -> Group:
    """A level of groups that is a column itself."""
    return Group(name, Column(name))


def check_plan(plan: Plan, schema: Schema) -> None:
    """Refuse a plan that the schema gives no meaning or no bound.

    Raises
    ------
    PlanError
        An unknown column, a sum or mean of something without bounds, groups that are not public.
    """
    parts = plan.aggregation.parts if isinstance(plan.aggregation, Joint) else (Weighted(plan.aggregation),)  # type: ignore[arg-type]
    for part in parts:
        _check_aggregation(part.aggregation, schema)
    names = [group.name for group in plan.by]
    for name in names:
        if names.count(name) > 1:
            raise PlanError(f"{plan.words}: groups must have different names; got {name!r} twice; .assign() one anew")
    if isinstance(plan.aggregation, Discovery):
        for group in plan.by:
            keys_of(group.of, schema)
    elif plan.by:
        group_keys(plan, schema)
    if plan.where is not None and not isinstance(kind_of(plan.where, schema), Truth):
        raise PlanError(f"{words(plan.where)}: rows are chosen by a condition, such as df['x'] > 1")


def group_keys(plan: Plan, schema: Schema) -> tuple[tuple[Key, ...], ...]:
    """The keys of the groups, in order.

    Raises
    ------
    PlanError
        They are not public, or too many.
    """
    listed = [keys_of(group.of, schema) for group in plan.by]
    if plan.keys is not None:
        return plan.keys
    total = 1
    for group, values in zip(plan.by, listed, strict=True):
        if values is None:
            raise PlanError(
                f"groups of {group.name!r}: are texts, and which there are is private; give the public ones as "
                f"groupby({group.name!r}, keys=[...]), or ask .discover({group.name!r}) for the common ones first"
            )
        total *= len(values)
    if total > MOST_KEYS:
        raise PlanError(f"{plan.words}: has {total:,} groups, and {MOST_KEYS:,} are the most; give keys=[...]")
    keys: list[tuple[Key, ...]] = [()]
    for values in listed:
        keys = [(*key, value) for key in keys for value in values or ()]
    return tuple(keys)


def _check_aggregation(aggregation: Single | Discovery, schema: Schema) -> None:
    match aggregation:
        case Count(node) if node is not None:
            kind_of(node, schema)
        case Ratio(node, denominator):
            for side in (node, denominator):
                number_of(side, schema, "ratio")
        case Moments(columns, categories):
            for node in columns:
                number_of(node, schema, "moments")
            for node in categories:
                if len(keys_of(node, schema) or ()) < 2:
                    raise PlanError(f"regress: {words(node)} must have at least two public values to tell apart")
        case Sum(node) | Mean(node) | Tree(node):
            number_of(node, schema, {Sum: "sum", Mean: "mean", Tree: "quantiles"}[type(aggregation)])


def texts_in(plan: Plan, schema: Schema) -> bool:
    """Whether a level of groups is of texts."""
    return any(isinstance(kind_of(group.of, schema), Words) for group in plan.by)


# --- words -----------------------------------------------------------------------------------------------------------


def question_words(plan: Plan, view: AnyView) -> str:
    """Plan and view in words, for example ``median of mdvis by coins``."""
    if isinstance(view, Columns) and view.title:
        return view.title + plan.scope
    if isinstance(plan.aggregation, Joint):
        parts = [part.aggregation for part in plan.aggregation.parts]
        columns = view.columns if isinstance(view, Columns) else ()
        shown = [_words(parts[named.part], named.view) for named in columns] or [
            _words(part, Plain()) for part in parts
        ]
        return ", ".join(dict.fromkeys(shown)) + plan.scope
    return _words(plan.aggregation, view) + plan.scope


def _words(aggregation: Single | Discovery, view: AnyView) -> str:
    match aggregation:
        case Count(node) if node is not None:
            return f"{'shares' if isinstance(view, Shares) else 'count'} of {words(node)}"
        case Count():
            return "shares of rows" if isinstance(view, Shares) else "count of rows"
        case Units():
            return "shares of privacy units" if isinstance(view, Shares) else "count of privacy units"
        case Sum(AsNumber(condition)) if isinstance(view, Plain):
            return f"count of rows with {words(condition)}"
        case Mean(AsNumber(condition)) if isinstance(view, Plain):
            return f"share of rows with {words(condition)}"
        case Sum(node):
            return f"{'shares of the sum' if isinstance(view, Shares) else 'sum'} of {words(node)}"
        case Mean(node):
            return f"{'count' if isinstance(view, FromMean) else 'mean'} of {words(node)}"
        case Ratio(node, denominator):
            return f"ratio of {words(node)} to {words(denominator)}"
        case Moments(columns, categories):
            return _moment_words(columns + categories, view)
        case Tree(node):
            return f"{_quantile_words(view)} of {words(node)}"
        case Discovery():
            return "groups that enough privacy units have,"


def _moment_words(columns: tuple[Expression, ...], view: AnyView) -> str:
    if not isinstance(view, FromMoments):
        return f"moments of {', '.join(map(words, columns))}"
    chosen = list(view.labels) or [words(columns[at]) for at in view.columns]
    if view.statistic == "regression":
        return f"regression of {chosen[0]} on {', '.join(words(columns[at]) for at in view.columns[1:])}"
    name = {"cov": "covariance", "corr": "correlation", "var": "variance", "std": "standard deviation"}
    return f"{name.get(view.statistic, view.statistic)} of {' and '.join(chosen)}"


def _quantile_words(view: AnyView) -> str:
    if not isinstance(view, Quantiles):
        return "quantiles"
    if view.single:
        special = {0.0: "smallest", 0.5: "median", 1.0: "largest"}
        return special.get(view.at[0], f"quantile {view.at[0]:g}")
    return f"quantiles {', '.join(f'{at:g}' for at in view.at)}"


def source_words(source: Source) -> str:
    """A table by its name, a join by both."""
    if isinstance(source, Joined):
        return f"{source_words(source.left)} joined with {source_words(source.right)}"
    return source


def _decoded(text: str, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise PlanError(
            f"plan: the text is not one that this version of dpnb knows ({error}); write one with to_json()"
        ) from None
