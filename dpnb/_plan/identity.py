"""When two plans measure the same linear query, however they were written.

Only differences that certainly do not matter are removed: the names of groups, the order and repetition of the
operands of ``&`` and ``|``, the order of the sides of ``+``, ``*``, ``==`` and ``!=``, the order of a list in ``isin``,
double negation, and whether a whole number was written with a decimal point.

The text is stored in ledgers, so it consists of the keys and tags of the plan's JSON, not of names in the code.  A
field with its default value is left out, so a new field with a default does not change any stored text.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from dpnb._plan.expressions.nodes import And, Arithmetic, Compare, Expression, IsIn, Lookup, Not, Or
from dpnb._plan.plan import MAX_KEPT, GroupLevel, Plan


def query_key(plan: Plan) -> str:
    """A text that is equal for plans whose sums are equal on every table, cell by cell."""
    return _key(plan.text)


@lru_cache(maxsize=MAX_KEPT)
def _key(plan: str) -> str:
    return _text(_plain(Plan.from_json(plan)))


def _plain(value: Any) -> Any:
    match value:
        case str() | int():  # first what a lookup has many of
            return value
        case float():
            return int(value) if value.is_integer() else value
        case tuple():
            return [_plain(part) for part in value]
        case GroupLevel():  # its name appears only in the answer
            return _plain(value.expression)
        case Not(Not(inner)):
            return _plain(inner)
        case And() | Or():
            distinct = {_text(part): part for part in _joined(value, type(value))}
            return {**_layout(type(value))[0], "all": _in_order(distinct.values())}
        case Arithmetic("+" | "*", left, right) | Compare("==" | "!=", left, right):
            first, second = _in_order((_plain(left), _plain(right)))
            return {**_fields(value, "left", "right"), "left": first, "right": second}
        case IsIn(_, values):
            return {**_fields(value, "values"), "values": _in_order(map(_plain, values))}
        case Lookup():
            return _fields(value, "name")
        case msgspec.Struct():
            return _fields(value)
    return value


def _fields(value: msgspec.Struct, *without: str) -> dict[str, Any]:
    """Tag and fields by their names in JSON, except fields with their default and the attributes in `without`."""
    tag, fields = _layout(type(value))
    content = dict(tag)
    for attribute, name, default in fields:
        if attribute not in without:
            part = getattr(value, attribute)
            if not (type(part) is type(default) and part == default):
                content[name] = part if part is None or type(part) in (str, int, bool) else _plain(part)
    return content


@lru_cache(maxsize=256)  # there are fewer kinds of nodes
def _layout(kind: type[msgspec.Struct]) -> tuple[dict[str, Any], list[tuple[str, str, Any]]]:
    """Of a kind of nodes in JSON, the tag, and attribute, name and default (or `msgspec.NODEFAULT`) of each field."""
    attributes, stored, defaults = kind.__struct_fields__, kind.__struct_encode_fields__, kind.__struct_defaults__
    missing = (msgspec.NODEFAULT,) * (len(attributes) - len(defaults))
    config = kind.__struct_config__
    tag = {} if config.tag is None else {str(config.tag_field): config.tag}
    return tag, list(zip(attributes, stored, (*missing, *defaults), strict=True))


def _joined(node: Expression, kind: type[And | Or]) -> list[Any]:
    """The operands of a chain of one kind of operator."""
    if isinstance(node, kind):
        return [*_joined(node.left, kind), *_joined(node.right, kind)]
    return [_plain(node)]


def _in_order(parts: Iterable[Any]) -> list[Any]:
    return sorted(parts, key=_text)


def _text(part: Any) -> str:
    return msgspec.json.encode(part, order="deterministic").decode()
