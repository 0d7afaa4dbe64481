"""pandas verbs that build plans: lazy, immutable, and without a single row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NoReturn, TypeVar

from dpnb.errors import PlanError
from dpnb.query.expressions import (
    And,
    Column,
    Compare,
    Condition,
    Literal,
    Not,
    Operator,
    Or,
    check_condition,
    column_type,
    words,
)
from dpnb.query.plan import Count, Mean, Plan, Sum, Units, check_plan
from dpnb.query.schema import Schema, plain

Q = TypeVar("Q")
"""What a finished question becomes; a session makes its queries of it."""


class Frame(Generic[Q]):
    """A view of the private table, used like a pandas DataFrame.  Every verb gives a new view or a question.

    Parameters
    ----------
    schema : dict
        Column names and types; all that a view knows of the table.
    ask : callable
        Turns a plan into a question; given by the session.
    where : condition, optional
        Rows of the view.
    """

    __slots__ = ("_ask", "_schema", "_where")

    def __init__(self, schema: Schema, ask: Callable[[Plan], Q], where: Condition | None = None) -> None:
        self._schema = schema
        self._ask = ask
        self._where = where

    @property
    def columns(self) -> list[str]:
        """Names of the declared columns."""
        return list(self._schema)

    def __getitem__(self, key: str | Mask) -> Any:
        """A column by name, or the rows for which a condition is true."""
        if isinstance(key, Mask):
            where = key.condition if self._where is None else And(self._where, key.condition)
            check_condition(where, self._schema)
            return Frame(self._schema, self._ask, where)
        column_type(key, self._schema)
        return Series(self, key)

    def groupby(self, by: str) -> GroupBy[Q]:
        """Ask a question of each declared category of a column; categories without rows are answered too.

        Raises
        ------
        PlanError
            No such column, or its categories are not declared.
        """
        return GroupBy(self, by)

    def count(self) -> Q:
        """Number of rows."""
        return self._question(Count())

    def units(self) -> Q:
        """Number of privacy units with at least one row."""
        return self._question(Units())

    def _question(self, aggregation: Count | Units | Sum | Mean, by: tuple[str, ...] = ()) -> Q:
        plan = Plan(aggregation, self._where, by)
        check_plan(plan, self._schema)
        return self._ask(plan)

    def __repr__(self) -> str:
        where = "" if self._where is None else f" where {words(self._where)}"
        return f"<private table: {', '.join(self._schema)}{where}>"

    def __iter__(self) -> NoReturn:
        raise PlanError("a private table cannot be iterated: its rows are never shown; ask .count(), .mean(), ...")

    def __len__(self) -> NoReturn:
        raise PlanError("a private table has no len(): its size is private; ask .count() or .units() and release it")

    def __bool__(self) -> NoReturn:
        raise PlanError("a private table is neither true nor false; ask .count() and release it")


class Series(Generic[Q]):
    """One column of a view."""

    __slots__ = ("_frame", "_name")
    __hash__ = None  # type: ignore[assignment]  # == builds a condition

    def __init__(self, frame: Frame[Q], name: str) -> None:
        self._frame = frame
        self._name = name

    def count(self) -> Q:
        """Number of rows that have something in the column."""
        return self._frame._question(Count(self._name))

    def sum(self) -> Q:
        """Sum of a bounded column."""
        return self._frame._question(Sum(self._name))

    def mean(self) -> Q:
        """Mean of a bounded column: its count and centred sum, asked jointly."""
        return self._frame._question(Mean(self._name))

    def __eq__(self, other: object) -> Mask:  # type: ignore[override]
        return self._compare("==", other)

    def __ne__(self, other: object) -> Mask:  # type: ignore[override]
        return self._compare("!=", other)

    def __lt__(self, other: object) -> Mask:
        return self._compare("<", other)

    def __le__(self, other: object) -> Mask:
        return self._compare("<=", other)

    def __gt__(self, other: object) -> Mask:
        return self._compare(">", other)

    def __ge__(self, other: object) -> Mask:
        return self._compare(">=", other)

    def _compare(self, operator: Operator, other: object) -> Mask:
        right = Column(other._name) if isinstance(other, Series) else _literal(other, self._name, operator)
        condition = Compare(operator, Column(self._name), right)
        check_condition(condition, self._frame._schema)
        return Mask(condition)

    def __repr__(self) -> str:
        return f"<private column {self._name!r}>"

    def __iter__(self) -> NoReturn:
        raise PlanError(f"{self._name}: a private column cannot be iterated; ask .count(), .sum() or .mean()")

    def __len__(self) -> NoReturn:
        raise PlanError(f"{self._name}: a private column has no len(); ask .count() and release it")

    def __bool__(self) -> NoReturn:
        raise PlanError(f"{self._name}: a private column is neither true nor false; compare it, then filter with it")


class Mask:
    """A condition on rows, to be combined with ``&``, ``|`` and ``~`` and used as ``frame[mask]``."""

    __slots__ = ("condition",)

    def __init__(self, condition: Condition) -> None:
        self.condition = condition

    def __and__(self, other: object) -> Mask:
        return Mask(And(self.condition, _mask(other, "&")))

    def __or__(self, other: object) -> Mask:
        return Mask(Or(self.condition, _mask(other, "|")))

    def __invert__(self) -> Mask:
        return Mask(Not(self.condition))

    def __repr__(self) -> str:
        return f"<condition: {words(self.condition)}>"

    def __bool__(self) -> NoReturn:
        raise PlanError(
            f"{words(self.condition)}: a condition on private rows is neither true nor false; join conditions with "
            "&, | and ~ in brackets, as in (a > 1) & (b < 2), not with and, or, not or a chain like 1 < a < 2"
        )


class GroupBy(Generic[Q]):
    """A view split by the declared categories of a column."""

    __slots__ = ("_by", "_frame")

    def __init__(self, frame: Frame[Q], by: str) -> None:
        check_plan(Plan(Count(), None, (by,)), frame._schema)
        self._frame = frame
        self._by = by

    def __getitem__(self, name: str) -> GroupedSeries[Q]:
        column_type(name, self._frame._schema)
        return GroupedSeries(self._frame, self._by, name)

    def count(self) -> Q:
        """Number of rows in each group."""
        return self._frame._question(Count(), (self._by,))

    def units(self) -> Q:
        """Number of privacy units with at least one row in each group."""
        return self._frame._question(Units(), (self._by,))

    def __repr__(self) -> str:
        return f"<private table by {self._by}>"

    def __iter__(self) -> NoReturn:
        raise PlanError(f"groups of {self._by!r} cannot be iterated; ask a question of all of them at once")


class GroupedSeries(Generic[Q]):
    """One column of a split view."""

    __slots__ = ("_by", "_frame", "_name")

    def __init__(self, frame: Frame[Q], by: str, name: str) -> None:
        self._frame = frame
        self._by = by
        self._name = name

    def count(self) -> Q:
        """Number of rows of each group that have something in the column."""
        return self._frame._question(Count(self._name), (self._by,))

    def sum(self) -> Q:
        """Sum of a bounded column in each group."""
        return self._frame._question(Sum(self._name), (self._by,))

    def mean(self) -> Q:
        """Mean of a bounded column in each group: counts and centred sums, asked jointly."""
        return self._frame._question(Mean(self._name), (self._by,))

    def __repr__(self) -> str:
        return f"<private column {self._name!r} by {self._by}>"


def _literal(value: object, name: str, operator: str) -> Literal:
    value = plain(value)
    if isinstance(value, bool | float | str) or (isinstance(value, int) and abs(value) < 2**63):
        return Literal(value)
    raise PlanError(
        f"{name} {operator} {value!r}: a column is compared with a number of at most 64 bits, a str or another column"
    )


def _mask(other: object, operator: str) -> Condition:
    if isinstance(other, Mask):
        return other.condition
    raise PlanError(
        f"{operator}: both sides must be conditions; got {type(other).__name__}; "
        f"put each comparison in brackets, as in (a > 1) {operator} (b < 2)"
    )
