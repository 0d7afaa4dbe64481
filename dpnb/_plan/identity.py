"""When two plans measure the same linear query, however they were written.

Only what certainly changes nothing is taken out: the names of groups, the order and repetition of what ``&`` and ``|``
join, which side of ``+``, ``*``, ``==`` and ``!=`` comes first, the order of a list in ``isin``, double negation, and
whether a whole number was written with a decimal point.

The text is stored in ledgers, so it is made of the keys and tags of the plan's JSON and never of Python's names.  A
field that has its default is left out: a new field with a default changes no text that was stored before.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from dpnb._plan.expressions.nodes import And, Arithmetic, Compare, Expression, IsIn, Lookup, Not, Or
from dpnb._plan.plan import GroupLevel, Plan


def query_key(plan: Plan) -> str:
    """A text that is equal for plans whose sums are equal on every table, cell by cell."""
    return _text(_plain(plan))


def _plain(value: Any) -> Any:
    match value:
        case GroupLevel():  # what it is called shows in the answer alone
            return _plain(value.expression)
        case Not(Not(inner)):
            return _plain(inner)
        case And() | Or():
            distinct = {_text(part): part for part in _joined(value, type(value))}
            return {**_tag(value), "all": _in_order(distinct.values())}
        case Arithmetic("+" | "*", left, right) | Compare("==" | "!=", left, right):
            first, second = _in_order((_plain(left), _plain(right)))
            return {**_fields(value, "left", "right"), "left": first, "right": second}
        case IsIn(_, values):
            return {**_fields(value, "values"), "values": _in_order(map(_plain, values))}
        case Lookup():
            return _fields(value, "name")
        case msgspec.Struct():
            return _fields(value)
        case tuple():
            return [_plain(part) for part in value]
        case float() if value.is_integer():
            return int(value)
    return value


def _fields(value: msgspec.Struct, *without: str) -> dict[str, Any]:
    """Tag and fields by their names in JSON, but for what has its default, and for some attributes."""
    attributes, stored, defaults = value.__struct_fields__, value.__struct_encode_fields__, value.__struct_defaults__
    usual = dict(zip(attributes[len(attributes) - len(defaults) :], defaults, strict=True))
    parts = ((attribute, name, getattr(value, attribute)) for attribute, name in zip(attributes, stored, strict=True))
    return _tag(value) | {
        name: _plain(part)
        for attribute, name, part in parts
        if attribute not in without
        and not (attribute in usual and part == usual[attribute] and type(part) is type(usual[attribute]))
    }


def _tag(value: msgspec.Struct) -> dict[str, Any]:
    config = value.__struct_config__
    return {} if config.tag is None else {str(config.tag_field): config.tag}


def _joined(node: Expression, kind: type[And | Or]) -> list[Any]:
    """All that a chain of one kind joins."""
    if isinstance(node, kind):
        return [*_joined(node.left, kind), *_joined(node.right, kind)]
    return [_plain(node)]


def _in_order(parts: Iterable[Any]) -> list[Any]:
    return sorted(parts, key=_text)


def _text(part: Any) -> str:
    return msgspec.json.encode(part, order="deterministic").decode()
