"""One question as a frozen value: what is computed, of which rows, for which groups.  Holds no data."""

from __future__ import annotations

import msgspec

from dpnb.errors import PlanError
from dpnb.query.expressions import Condition, check_condition, column_type, words
from dpnb.query.schema import Bounded, Categories, Schema


class Aggregation(msgspec.Struct, frozen=True, tag_field="of"):
    """Base of what can be computed."""


class Count(Aggregation, frozen=True, tag="count"):
    """Rows; with a column, rows that have something in it."""

    column: str | None = None


class Units(Aggregation, frozen=True, tag="units"):
    """Privacy units with at least one row."""


class Sum(Aggregation, frozen=True, tag="sum"):
    """Sum of a bounded column."""

    column: str


class Mean(Aggregation, frozen=True, tag="mean"):
    """Mean of a bounded column."""

    column: str


class Plan(msgspec.Struct, frozen=True):
    """A question.

    Parameters
    ----------
    aggregation : Count, Units, Sum or Mean
    where : condition, optional
        Only rows for which it is true count.
    by : tuple of str
        Columns with declared categories; every category gets an answer, also one without rows.
    """

    aggregation: Count | Units | Sum | Mean
    where: Condition | None = None
    by: tuple[str, ...] = ()

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
        try:
            return msgspec.json.decode(text, type=Plan)
        except msgspec.MsgspecError as error:
            raise PlanError(
                f"plan: the text is not a plan that this version of dpnb knows ({error}); write one with to_json()"
            ) from None

    @property
    def words(self) -> str:
        """The question in words, for example ``mean of mdvis by coins where female == 1``."""
        match self.aggregation:
            case Count(None):
                text = "count of rows"
            case Count(column):
                text = f"count of {column}"
            case Units():
                text = "count of privacy units"
            case Sum(column):
                text = f"sum of {column}"
            case Mean(column):
                text = f"mean of {column}"
        if self.by:
            text += f" by {', '.join(self.by)}"
        if self.where is not None:
            text += f" where {words(self.where)}"
        return text


def check_plan(plan: Plan, schema: Schema) -> None:
    """Refuse a plan that the schema gives no meaning or no bound.

    Raises
    ------
    PlanError
        An unknown column, a sum or mean of a column without bounds, groups that are not declared.
    """
    aggregation = plan.aggregation
    if isinstance(aggregation, Sum | Mean):
        name = aggregation.column
        if not isinstance(column_type(name, schema), Bounded):
            raise PlanError(
                f"{plan.words}: {name!r} has declared categories, so nothing bounds what one row adds; "
                f"declare it as dpnb.Bounded(low, high) to sum it"
            )
    elif isinstance(aggregation, Count) and aggregation.column is not None:
        column_type(aggregation.column, schema)
    if len(plan.by) > 1:
        raise PlanError(f"{plan.words}: groups are made by one column; got {len(plan.by)}")
    for name in plan.by:
        if not isinstance(column_type(name, schema), Categories):
            raise PlanError(
                f"{plan.words}: {name!r} has bounds, not categories, so its groups are not public; "
                f"declare it as dpnb.Categories([...]) to group by it"
            )
    if plan.where is not None:
        check_condition(plan.where, schema)
