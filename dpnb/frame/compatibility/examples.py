"""Types of columns in words and by their names in pandas, and error messages' examples with the analyst's columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Protocol

from dpnb._plan.expressions.dtypes import Boolean, Categorical, Dtype, Numeric, String, Timestamp, described
from dpnb._plan.expressions.nodes import Column, Expression
from dpnb._plan.expressions.rules import dtype_of
from dpnb._plan.expressions.text import MAX_LISTED, as_code
from dpnb.errors import PlanError
from dpnb.schema import Schema

# --- the declared types of columns in words ---------------------------------------------------------------------------


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


# --- examples in error messages ---------------------------------------------------------------------------------------


_KINDS: dict[type[Dtype], str] = {
    Numeric: "number",
    Categorical: "category",
    Boolean: "condition",
    Timestamp: "date",
    String: "text",
}


class _PublicColumns(Protocol):
    """The part of a `TableView` that examples are made of."""

    @property
    def columns(self) -> Mapping[str, Expression]: ...
    @property
    def schema(self) -> Schema: ...


class _Examples(Mapping[str, str]):
    """`examples`, made when a message needs one: few calls are refused, and a view may have many columns."""

    def __init__(self, view: _PublicColumns | None, node: Expression | None) -> None:
        self._view, self._node = view, node

    @cached_property
    def _texts(self) -> dict[str, str]:
        return _made(self._view, self._node)

    def __getitem__(self, name: str) -> str:
        return self._texts[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._texts)

    def __len__(self) -> int:
        return len(self._texts)


def examples(view: _PublicColumns | None, node: Expression | None = None) -> Mapping[str, str]:
    """Columns of a view as an analyst writes them, by kind, from the schema alone; without a view, placeholders.

    `node` is the column that an error is about: it is the example of its kind.  The keys are ``number``, ``category``,
    ``date`` and ``text``, each for example ``df['wage']``; ``number2`` and ``category2``, other columns of these kinds;
    ``number_name``, ``category_name``, ..., for example ``'wage'``; ``condition``, for example ``(df['union'] ==
    'yes')``, and ``mask``, the same without its parentheses; ``self``, the column that the error is about;
    ``self_name``, its name;
    ``common_texts`` and ``periods``, remedies for texts and dates, which are empty if there are none; ``within``,
    ``within_unit`` and ``one_row``, which a method completes to the same for the rows of one privacy unit.
    """
    return _Examples(view, node)


def _made(view: _PublicColumns | None, node: Expression | None) -> dict[str, str]:
    found = {} if view is None else _found(view, node)
    number = found.setdefault("number", "df['x']")
    # A view without categories has groups by bins.
    category = found.setdefault("category", f"dpnb.cut({number}, 5)" if view is not None else "df['g']")
    comparison = f"({category} == {found['value']})" if "value" in found else f"({number} > 1)"
    is_about_category = view is not None and node is not None and isinstance(_dtype(node, view), Categorical)
    condition = comparison if is_about_category else found.get("condition", comparison)
    found["condition"] = condition
    found["mask"] = condition[1:-1] if condition.startswith("(") else condition
    for kind in ("number", "category"):
        found.setdefault(f"{kind}2", found[kind] if kind == "number" else f"dpnb.cut({number}, 5)")
    found["common_texts"] = f", df.discover({_name(found['text'])}) for common texts" if "text" in found else ""
    found["periods"] = (
        f", or into periods, as in df.resample('M', on={_name(found['date'])})" if "date" in found else ""
    )
    for kind in ("date", "text"):
        found.setdefault(kind, f"df[{kind[0]!r}]")
    names = {f"{kind}_name": _name(found[kind]) for kind in ("number", "number2", "category", "date", "text")}
    own = number if view is None or node is None else own_words(node, view)
    return {**found, **names, **_of_units(view, names), "self": own, "self_name": _name(own)}


def _of_units(view: _PublicColumns | None, names: Mapping[str, str]) -> dict[str, str]:
    unit: str | None = getattr(view, "unit", None)
    if unit is None:
        rows = "each row is a unit here; in a session with privacy_unit= the rows of one unit have .groupby(unit)[...]"
        return {"within": rows, "within_unit": "", "one_row": ""}
    grouped = f"df.sort_values({order_name(view)}).groupby({unit!r})[{names['number_name']}]"
    one_row = f"df.drop_duplicates({unit!r}) has one row of each {unit}; "
    return {"within": f"write {grouped}", "within_unit": f" for the rows of one {unit}", "one_row": one_row}


TIMES = ("year", "month", "week", "day", "date", "time", "wave", "period", "quarter", "round", "visit", "t")
"""Names of columns that order the rows of one unit; an example with any other column would sort by an outcome."""


def order_name(view: _PublicColumns | None) -> str:
    """The quoted column that orders the rows of one unit, as far as the schema says; otherwise a gap to fill in."""
    columns = {} if view is None else view.columns
    dates = (name for name, own in columns.items() if view and isinstance(_dtype(own, view), Timestamp))
    name = next(dates, None) or next((name for name in columns if name.lower() in TIMES), None)
    return "..." if name is None else repr(name)


def own_words(node: Expression, view: _PublicColumns) -> str:
    """A column as ``df['wage']``; any other expression as code, in parentheses."""
    for name, own in view.columns.items():
        if own == node:
            return f"df[{name!r}]"
    return f"df[{node.name!r}]" if isinstance(node, Column) else f"({as_code(node)})"


def _found(view: _PublicColumns, node: Expression | None) -> dict[str, str]:
    """The first two columns of each kind, and a value of the first category."""
    found: dict[str, str] = {}
    columns = sorted(view.columns.values(), key=lambda own: _is_whole(own, view))
    for own in columns if node is None else [node, *columns]:
        dtype = _dtype(own, view)
        kind = _KINDS.get(type(dtype)) if dtype is not None else None
        if kind is None:
            continue
        written = own_words(own, view)
        if isinstance(dtype, Categorical) and kind not in found:
            found["value"] = repr(dtype.values[0])
        if found.setdefault(kind, written) != written:
            found.setdefault(f"{kind}2", written)
    if "number" in found:  # a view of one column is often the argument of a regression on another
        others = (
            own_words(Column(name), view) for name in view.schema if isinstance(_dtype(Column(name), view), Numeric)
        )
        found.setdefault("number2", next((other for other in others if other != found["number"]), found["number"]))
    return found


def _name(written: str) -> str:
    """The name in ``df['wage']``; groups that are an expression stand for themselves."""
    return written[3:-1] if written.startswith("df[") and written.endswith("]") else written


def _dtype(node: Expression, view: _PublicColumns) -> Dtype | None:
    try:
        return dtype_of(node, view.schema)
    except PlanError:  # an error message must not fail
        return None


def _is_whole(node: Expression, view: _PublicColumns) -> bool:
    """Whether a column holds whole numbers, which are often codes: numbers with fractions are better examples."""
    kind = _dtype(node, view)
    return isinstance(kind, Numeric) and kind.whole
