"""When two plans measure the same linear query, however they were written.

Only what certainly changes nothing is taken out: the names of groups, the order and repetition of what ``&`` and ``|``
join, which side of ``+``, ``*``, ``==`` and ``!=`` comes first, the order of a list in ``isin``, double negation, and
whether a whole number was written with a decimal point.
"""

from __future__ import annotations

from typing import Any

import msgspec

from dpnb.query.expressions.nodes import And, Arithmetic, Compare, Expression, IsIn, Literal, Lookup, Node, Not, Or
from dpnb.query.plan import Plan
from dpnb.query.schema import Key


def question_of(plan: Plan) -> str:
    """A text that is equal for plans whose sums are equal on every table, cell by cell."""
    return msgspec.json.encode(_plain(plan), order="deterministic").decode()


def _plain(value: Any) -> Any:
    if isinstance(value, Node):
        return _node(value)  # type: ignore[arg-type]  # every Node is one of Expression
    if isinstance(value, msgspec.Struct):
        fields = {name: _plain(getattr(value, name)) for name in value.__struct_fields__}
        # A group is its expression; what it is called shows in the answer alone.
        return [fields["of"]] if set(fields) == {"name", "of"} else [type(value).__name__, fields]
    if isinstance(value, tuple):
        return [_plain(part) for part in value]
    return _number(value)


def _node(node: Expression) -> Any:
    match node:
        case Not(Not(inner)):
            return _node(inner)
        case And() | Or():
            parts = {_text(part): part for part in _joined(node, type(node))}
            return [type(node).__name__, *(parts[text] for text in sorted(parts))]
        case Arithmetic("+" | "*", left, right) | Compare("==" | "!=", left, right):
            return [type(node).__name__, node.operator, *sorted((_node(left), _node(right)), key=_text)]
        case IsIn(inner, values):
            return ["IsIn", _node(inner), sorted((_number(value) for value in values), key=_text)]
        case Literal(value):
            return ["Literal", _number(value)]
        case Lookup():
            content = [node.keys, node.values, node.low, node.high]
            return ["Lookup", [_node(inner) for inner in node.inner], _plain(tuple(content))]
    return [type(node).__name__, {name: _plain(getattr(node, name)) for name in node.__struct_fields__}]


def _joined(node: Expression, kind: type[Node]) -> list[Any]:
    """All that a chain of one kind joins."""
    if isinstance(node, And | Or) and isinstance(node, kind):
        return [*_joined(node.left, kind), *_joined(node.right, kind)]
    return [_node(node)]


def _number(value: Key | None) -> Key | None:
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _text(part: Any) -> str:
    return msgspec.json.encode(part, order="deterministic").decode()
