"""One question as a frozen value: what is measured, of which rows, for which groups.  Holds no data."""

from __future__ import annotations

import msgspec

from dpnb._plan.description import describe_aggregation
from dpnb._plan.expressions.dtypes import Boolean
from dpnb._plan.expressions.nodes import Column, Expression
from dpnb._plan.expressions.rules import MAX_KEYS, dtype_of, numeric_dtype_of, public_keys_of
from dpnb._plan.expressions.text import words
from dpnb._plan.measurements import (
    AnyView,
    Count,
    Discovery,
    Gradient,
    JointAggregation,
    Mean,
    Measured,
    ModelLoss,
    Moments,
    PlainView,
    QuantileTree,
    Ratio,
    Single,
    Sum,
    WeightedAggregation,
    decoded,
)
from dpnb._plan.privacy_unit import ContributionBounds, describe_bounds
from dpnb._plan.regression import check_gradient
from dpnb._plan.schema import Key, Schema
from dpnb.errors import PlanError


class Join(msgspec.Struct, frozen=True, tag="join"):
    """Every pair of rows that one unit has in two tables."""

    left: TableSource
    right: TableSource
    suffixes: tuple[str, str] = ("_x", "_y")


class GroupLevel(msgspec.Struct, frozen=True):
    """One level of groups: a name for it, and the expression whose values make the groups."""

    name: str
    expression: Expression


class PartSource(msgspec.Struct, frozen=True, tag="part", omit_defaults=True):
    """The rows of one group, as a table of their own.

    Parameters
    ----------
    source : str, Joined or PartOf
    by : Group
    key : str, int, float or bool
        Whose group.
    max_parts_per_unit : int, optional
        A unit's rows count in so many groups only, the first by the hash of `contribution`; left out where a unit
        cannot be in more than are paid for.
    """

    source: TableSource
    by: GroupLevel
    key: Key
    max_parts_per_unit: int | None = None


TableSource = str | Join | PartSource
"""A table of the session by its name (empty for the only one), a join of two, or a part of one."""


class Plan(
    msgspec.Struct,
    frozen=True,
    omit_defaults=True,
):
    """What is measured.

    Parameters
    ----------
    aggregation : Measured
    where : expression, optional
        Only rows for which it is true count.
    group_by : tuple of Group
        Every key gets an answer, also one without rows.
    group_keys : tuple of tuple, optional
        The groups' public keys, one value a level; left out, every combination of the levels' public values.
    contribution_bounds : Limits
        Tighter limits of a unit's contribution than the session's.
    source : str, Joined or PartOf
        Which table.
    """

    aggregation: Measured
    where: Expression | None = None
    group_by: tuple[GroupLevel, ...] = ()
    group_keys: tuple[tuple[Key, ...], ...] | None = None
    contribution_bounds: ContributionBounds = ContributionBounds()
    source: TableSource = ""

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
        return decoded(text, _PLANS)

    @property
    def words(self) -> str:
        """The question in words, for example ``mean of mdvis by coins where female == 1``."""
        return describe_plan(self, PlainView())

    @property
    def scope_description(self) -> str:
        """Groups, rows and limits in words."""
        text = ""
        if self.group_by:
            text += f" by {', '.join(group.name for group in self.group_by)}"
        if self.source:
            text += f" in {describe_source(self.source)}"
        if self.where is not None:
            text += f" where {words(self.where)}"
        if self.contribution_bounds != ContributionBounds():
            text += f" ({describe_bounds(self.contribution_bounds)})"
        return text


_PLANS: msgspec.json.Decoder[Plan] = msgspec.json.Decoder(Plan)
"""Made once, at import, with all that a plan may hold: see `aggregations`."""


def column(name: str) -> GroupLevel:
    """A level of groups that is a column itself."""
    return GroupLevel(name, Column(name))


def check_plan(plan: Plan, schema: Schema) -> None:
    """Refuse a plan that the schema gives no meaning or no bound.

    Raises
    ------
    PlanError
        An unknown column, a sum or mean of something without bounds, groups that are not public.
    """
    joint = plan.aggregation
    parts = joint.parts if isinstance(joint, JointAggregation) else (WeightedAggregation(joint),)  # type: ignore[arg-type]
    for part in parts:
        _check_aggregation(part.aggregation, schema)
    if isinstance(plan.aggregation, Gradient) and (plan.group_by or plan.contribution_bounds.max_norm is not None):
        raise PlanError(
            f"{plan.words}: a gradient is of all rows together, and a unit's is scaled to clip_norm=; leave groups and "
            "max_norm_per_unit out, or filter the rows by df[...]"
        )
    names = [group.name for group in plan.group_by]
    for name in names:
        if names.count(name) > 1:
            raise PlanError(f"{plan.words}: groups must have different names; got {name!r} twice; .assign() one anew")
    if isinstance(plan.aggregation, Discovery):
        for group in plan.group_by:
            public_keys_of(group.expression, schema)
    elif plan.group_by:
        group_keys(plan, schema)
    if plan.where is not None and not isinstance(dtype_of(plan.where, schema), Boolean):
        raise PlanError(f"{words(plan.where)}: rows are chosen by a condition, such as df['x'] > 1")


def group_keys(plan: Plan, schema: Schema) -> tuple[tuple[Key, ...], ...]:
    """The keys of the groups, in order.

    Raises
    ------
    PlanError
        They are not public, or too many.
    """
    listed = [public_keys_of(group.expression, schema) for group in plan.group_by]
    if plan.group_keys is not None:
        return plan.group_keys
    total = 1
    for group, values in zip(plan.group_by, listed, strict=True):
        if values is None:
            raise PlanError(
                f"groups of {group.name!r}: are texts, and which there are is private; give the public ones as "
                f"groupby({group.name!r}, keys=[...]), or ask .discover({group.name!r}) for the common ones first"
            )
        total *= len(values)
    if total > MAX_KEYS:
        raise PlanError(f"{plan.words}: has {total:,} groups, and {MAX_KEYS:,} are the most; give keys=[...]")
    keys: list[tuple[Key, ...]] = [()]
    for values in listed:
        keys = [(*key, value) for key in keys for value in values or ()]
    return tuple(keys)


def _check_aggregation(aggregation: Single | Discovery, schema: Schema) -> None:
    match aggregation:
        case Count(node) if node is not None:
            dtype_of(node, schema)
        case Ratio(node, denominator):
            for side in (node, denominator):
                numeric_dtype_of(side, schema, "ratio")
        case Moments(columns, categories):
            for node in columns:
                numeric_dtype_of(node, schema, "moments")
            for node in categories:
                if len(public_keys_of(node, schema) or ()) < 2:
                    raise PlanError(f"regress: {words(node)} must have at least two public values to tell apart")
        case Gradient() | ModelLoss():
            check_gradient(aggregation, schema)
        case Sum(node) | Mean(node) | QuantileTree(node):
            numeric_dtype_of(node, schema, {Sum: "sum", Mean: "mean", QuantileTree: "quantiles"}[type(aggregation)])


def describe_plan(plan: Plan, view: AnyView) -> str:
    """Plan and view in words, for example ``median of mdvis by coins``."""
    return describe_aggregation(plan.aggregation, view) + plan.scope_description


def describe_source(source: TableSource) -> str:
    """A table by its name, a join by both, a part by its key."""
    if isinstance(source, Join):
        return f"{describe_source(source.left)} joined with {describe_source(source.right)}"
    if isinstance(source, PartSource):
        whole = f"{describe_source(source.source)}, " if source.source else ""
        return f"{whole}{source.by.name} {source.key}"
    return source
