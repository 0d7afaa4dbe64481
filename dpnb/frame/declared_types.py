"""The declared types of columns in words: public."""

from __future__ import annotations

from dpnb._plan.expressions.dtypes import Boolean, Categorical, Dtype, Numeric, String, Timestamp, described
from dpnb._plan.expressions.text import MAX_LISTED
from dpnb.errors import PlanError

_SELECTED: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(["number", "float", "float64", "int", "int64", "integer"], (Numeric,)),
    **dict.fromkeys(["category", "object", "str", "string"], (Categorical, String)),
    **dict.fromkeys(["bool", "boolean"], (Boolean,)),
    **dict.fromkeys(["datetime", "datetime64", "datetime64[ns]", "date"], (Timestamp,)),
}


def type_words(kind: Dtype) -> str:
    """A type with its bounds or values, for example ``number from 0 to 50``."""
    match kind:
        case Numeric(low, high, whole):
            return f"{'whole number' if whole else 'number'} from {low:g} to {high:g}"
        case Categorical(values):
            shown = ", ".join(map(repr, values[:MAX_LISTED])) + (", ..." if len(values) > MAX_LISTED else "")
            return f"category: {shown}"
    return described(kind).removeprefix("a ")


def types_selected(names: object, where: str) -> tuple[type, ...]:
    """The types that pandas' names of types select."""
    listed = [] if names is None else names if isinstance(names, list | tuple) else [names]
    selected: list[type] = []
    for name in listed:
        text = name if isinstance(name, str) else getattr(name, "__name__", "")
        if text not in _SELECTED:
            raise PlanError(f"{where}: takes 'number', 'category', 'bool' or 'datetime'; got {name!r}")
        selected += _SELECTED[text]
    return tuple(selected)
