"""The tree: frozen values that become JSON and come back equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Literal as OneOf

import msgspec

from dpnb._plan.expressions.letters import Case
from dpnb.schema import Key
from dpnb.times import UTC_ZONE

ComparisonOperator = OneOf["==", "!=", "<", "<=", ">", ">="]
Operator = OneOf["+", "-", "*", "/", "//", "%", "**"]
Function = OneOf["abs", "log1p", "exp", "log", "log2", "log10"]
DatePart = OneOf[
    "year", "quarter", "month", "day", "dayofyear", "dayofweek", "hour", "minute", "second", "days", "seconds"
]  # fmt: skip
TextRelation = OneOf["startswith", "endswith", "contains"]
PeriodUnit = OneOf["hour", "day", "week", "month", "quarter", "year"]
WithinFunction = OneOf[
    "size", "count", "nunique", "sum", "mean", "min", "max", "rank", "first", "last", "nth", "shift", "ffill", "number",
    "cumsum", "cummax", "cummin", "rolling_sum", "rolling_mean",
]  # fmt: skip


class Node(msgspec.Struct, frozen=True, tag_field="op", omit_defaults=True):
    """Base class of all nodes."""


class Column(Node, frozen=True, tag="column"):
    """A column of the schema."""

    name: str


class Literal(Node, frozen=True, tag="literal"):
    """A constant that the analyst wrote; a date as ISO text, in UTC if it has no distance from UTC."""

    value: Key


class Arithmetic(Node, frozen=True, tag="arithmetic"):
    """``left operator right``; the right side of ``//``, ``%`` and ``**`` is a constant."""

    operator: Operator
    left: Expression
    right: Expression


class Compare(Node, frozen=True, tag="compare"):
    """``left operator right``."""

    operator: ComparisonOperator
    left: Expression
    right: Expression


class And(Node, frozen=True, tag="and"):
    """True if both conditions are true."""

    left: Expression
    right: Expression


class Or(Node, frozen=True, tag="or"):
    """True if at least one condition is true."""

    left: Expression
    right: Expression


class Not(Node, frozen=True, tag="not"):
    """True if the condition is false."""

    inner: Expression


class IsIn(Node, frozen=True, tag="isin"):
    """True if the value is in a list."""

    inner: Expression
    values: tuple[Key, ...]


class IsNull(Node, frozen=True, tag="isna"):
    """True if the value is missing; true or false for every row."""

    inner: Expression


class FillNull(Node, frozen=True, tag="fillna"):
    """The value, or a constant where it is missing."""

    inner: Expression
    value: Key


class Clip(Node, frozen=True, tag="clip"):
    """The value, or the nearer limit if it is outside."""

    inner: Expression
    low: float | None
    high: float | None


class Apply(Node, frozen=True, tag="apply"):
    """A function of one number."""

    function: Function
    inner: Expression


class Round(Node, frozen=True, tag="round"):
    """Rounded to a number of decimals, halves to even."""

    inner: Expression
    decimals: int = 0


class Where(Node, frozen=True, tag="where"):
    """`inner` where the condition is true, `otherwise` where it is false, missing where it is neither."""

    condition: Expression
    inner: Expression
    otherwise: Expression


class OnlyWhere(Node, frozen=True, tag="only_where"):
    """`inner` where the condition is true, otherwise missing."""

    condition: Expression
    inner: Expression


class Cut(Node, frozen=True, tag="cut"):
    """The label of the bin, between ascending edges, that contains a number or a date; missing outside the bins.

    With `right` a bin includes its upper edge (the first bin also its lower edge), otherwise its lower edge (the last
    bin also its upper edge).  With `dates` the edges are points in time, in seconds since 1970; `zone` is that of the
    labels if they are days of another zone than UTC, which do not state it.
    """

    inner: Expression
    edges: tuple[float, ...]
    labels: tuple[Key, ...]
    right: bool = True
    dates: bool = False
    zone: str | None = None


class ExtractDatePart(Node, frozen=True, tag="date_part"):
    """A part of a point in time, as a whole number; for a duration ``days`` and ``seconds``.

    `zone` is that of the dates, so that the words of the node can say it.
    """

    part: DatePart
    inner: Expression
    zone: str = UTC_ZONE


class Period(Node, frozen=True, tag="period"):
    """The calendar period that contains a point in time, as its label; see `dpnb._plan.expressions.periods`."""

    unit: PeriodUnit
    inner: Expression
    zone: str = UTC_ZONE  # that of the dates, as for `ExtractDatePart`


class AsNumber(Node, frozen=True, tag="as_number"):
    """Numeric categories as numbers, true as 1 and false as 0."""

    inner: Expression


class Seconds(Node, frozen=True, tag="seconds"):
    """A point in time as a number, in seconds since 1970: the argument of an aggregation whose answer is a date."""

    inner: Expression
    zone: str = UTC_ZONE  # that of the dates, as for `ExtractDatePart`; the answer is in it


class MatchText(Node, frozen=True, tag="match_text"):
    """True if a text starts with, ends with or contains another one, character by character."""

    relation: TextRelation
    inner: Expression
    text: str


class ChangeCase(Node, frozen=True, tag="change_case"):
    """A text in lower or upper case; see `dpnb._plan.expressions.letters`."""

    case: Case
    inner: Expression


class TextLength(Node, frozen=True, tag="text_length"):
    """The number of characters (code points) of a text, at most the declared maximal length."""

    inner: Expression


class Lookup(Node, frozen=True, tag="lookup"):
    """A value from a public table: ``values[i]`` for the key ``keys[i]``, missing for any other key."""

    name: str
    inner: tuple[Expression, ...]
    keys: tuple[tuple[Key, ...], ...]
    values: tuple[Key | None, ...]
    low: float | None = None
    high: float | None = None


class WithinUnit(Node, frozen=True, tag="within"):
    """A function of the rows of one privacy unit in which a condition is true and which have the same keys.

    Missing in its other rows.  Rows are in ascending order, or descending where `descending` is true, then in that of
    their hashes; for a function that needs an order, a row without one has no value and is in no other row's.
    """

    function: WithinFunction
    inner: Expression
    max_rows: int | None  # of a unit, from which the bounds of sums and counts follow; None if unknown
    where: Expression = Literal(True)
    keys: tuple[Expression, ...] = ()
    order: tuple[Expression, ...] = ()
    descending: tuple[bool, ...] = ()
    offset: int = 0  # of "shift", "nth" and the rolling functions, in rows
    least: int = 0  # values that a rolling function needs


Expression = (
    Column
    | Literal
    | Arithmetic
    | Compare
    | And
    | Or
    | Not
    | IsIn
    | IsNull
    | FillNull
    | Clip
    | Apply
    | Round
    | Where
    | OnlyWhere
    | Cut
    | ExtractDatePart
    | Period
    | AsNumber
    | Seconds
    | MatchText
    | ChangeCase
    | TextLength
    | Lookup
    | WithinUnit
)


MAX_DEPTH = 60
MAX_NODES = 1000
"""Largest depth and number of nodes of an expression: evaluation needs a Python frame for each level."""


def small_enough(node: Expression) -> bool:
    """Whether an expression is within these limits; works at any depth."""
    waiting: list[tuple[object, int]] = [(node, 1)]
    seen = 0
    while waiting:
        part, depth = waiting.pop()
        if isinstance(part, tuple):
            waiting += [(inner, depth) for inner in part if isinstance(inner, Node | tuple)]
        elif isinstance(part, Node):
            seen += 1
            if depth > MAX_DEPTH or seen > MAX_NODES:
                return False
            waiting += [(getattr(part, field), depth + 1) for field in part.__struct_fields__]
    return True


_ARGUMENTS = {
    kind: tuple(name for name in kind.__struct_fields__ if "Expression" in kind.__annotations__[name])
    for kind in Node.__subclasses__()
}


def arguments(node: Node) -> list[Expression]:
    """The expressions from which a node is computed."""
    inner: list[Expression] = []
    for name in _ARGUMENTS[type(node)]:
        part = getattr(node, name)
        if isinstance(part, tuple):
            inner += part
        else:
            inner.append(part)
    return inner


def nodes_of(part: object, *, once: bool = False) -> list[Node]:
    """The nodes of a node, of a part of a plan or of a compiled query, at any depth, in the order in which they occur.

    With `once`, an object that occurs several times is visited once.  The values that a node lists are not visited.
    """
    found: list[Node] = []
    waiting, seen = [part], set[int]()
    while waiting:
        part = waiting.pop()
        if once:
            if id(part) in seen:
                continue
            seen.add(id(part))
        if isinstance(part, (tuple, list)):
            waiting += reversed(part)
            continue
        if isinstance(part, Node):
            found.append(part)
        kind: type = type(part)
        waiting += [getattr(part, name) for name in _parts_from_last(kind)]
    return found


@lru_cache(maxsize=256)  # there are fewer kinds of nodes and parts
def _parts_from_last(kind: type) -> tuple[str, ...]:
    """The fields of a kind of part in which nodes may occur, the last one first."""
    if issubclass(kind, Node):
        return _ARGUMENTS[kind][::-1]
    names = kind.__struct_fields__ if issubclass(kind, msgspec.Struct) else getattr(kind, "__dataclass_fields__", ())
    return tuple(names)[::-1]


def conjuncts(condition: Expression | None) -> list[Expression]:
    """The operands of a chain of ``&``; none for no condition."""
    if condition is None:
        return []
    return [*conjuncts(condition.left), *conjuncts(condition.right)] if isinstance(condition, And) else [condition]


CONDITIONS = (And, Or, Not, Compare, IsIn, MatchText, IsNull)


def fixed_values(condition: Expression | None) -> list[tuple[Expression, Key]]:
    """Expressions that have one value in all rows for which a condition is true, with this value."""
    found: list[tuple[Expression, Key]] = []
    for part in conjuncts(condition):
        match part:
            case Compare("==", inner, Literal(value)) | IsIn(inner, (value,)):
                found.append((inner, value))
            case Not(inner):
                found.append((inner, False))
            case _:
                found.append((part, True))
    return found


def columns_of(node: Expression) -> set[str]:
    """Names of the columns of an expression."""
    return {inner.name for inner in nodes_of(node, once=True) if isinstance(inner, Column)}


def negative(inner: Expression) -> Expression:
    """``-inner``."""
    return Arithmetic("-", Literal(0), inner)


def with_arguments(node: Expression, change: Callable[[Expression], Expression]) -> Expression:
    """The same node, computed from changed expressions."""
    changes: dict[str, object] = {}
    for field in _ARGUMENTS[type(node)]:
        part = getattr(node, field)
        changes[field] = tuple(map(change, part)) if isinstance(part, tuple) else change(part)
    return msgspec.structs.replace(node, **changes) if changes else node


def renamed(node: Expression, names: Mapping[str, str]) -> Expression:
    """The same expression with columns renamed."""
    if isinstance(node, Column):
        return Column(names.get(node.name, node.name))
    return with_arguments(node, lambda inner: renamed(inner, names))
