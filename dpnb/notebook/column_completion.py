"""Tab completion of columns, tables, groups and categories, from the public declaration.

``df["``, ``df.``, ``session.frame["``, ``df.groupby("``, ``df[df["town"] == "`` and ``answer["``.  IPython completes
the keys of a plain name (`_ipython_key_completions_`) and evaluates little else; this matcher also knows expressions of
dpnb's own objects.  It evaluates only what has no effect and reads no row: names, attributes, subscripts and a few
methods of these objects, with constants.  It never raises.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from dpnb._plan.expressions.dtypes import Categorical
from dpnb._plan.expressions.rules import dtype_of
from dpnb._target import KINDS
from dpnb.frame import Frame
from dpnb.frame.columns.column_expr import ColumnExpr
from dpnb.frame.groupby import GroupBy
from dpnb.notebook.magics import COMMANDS, OPTIONS
from dpnb.notebook.partial_code import OpenAttribute, OpenString, at_cursor
from dpnb.query.query import Query
from dpnb.results.schema import TableSchema, TablesSchema
from dpnb.results.tables.table import Estimates
from dpnb.session import BaseSession

# --- tab completion for ``%dpnb`` -------------------------------------------------------------------------------------


def complete(shell: Any, event: Any) -> list[str]:
    """The possible completions at the cursor; for IPython's ``complete_command`` hook.

    The event has the `line` up to the cursor and the `symbol` to complete.
    """
    first, *before = event.line[: len(event.line) - len(event.symbol)].split() or [""]
    arguments = [f"{name}=" for name in (*KINDS, *OPTIONS)]
    if first == "%%dpnb":
        choices = arguments
    elif not before:
        choices = list(COMMANDS)
    elif before[0] == "what-if":
        queries = [] if before[1:] else [name for name, value in shell.user_ns.items() if _is_query(name, value)]
        choices = [*queries, *arguments]
    else:
        choices = []
    used = {word.partition("=")[0] + "=" for word in before}
    return [choice for choice in choices if choice.startswith(event.symbol) and choice not in used]


def _is_query(name: str, value: object) -> bool:
    return isinstance(value, Query) and not name.startswith("_")


# --- tab completion of columns ----------------------------------------------------------------------------------------


IDENTIFIER = "dpnb"
"""The name of the matcher among those of a completer."""

OURS = (BaseSession, Frame, GroupBy, ColumnExpr, Estimates, TableSchema, TablesSchema)
CONSTANTS = (str, int, float, bool)
ATTRIBUTES = {BaseSession: ("frame", "schema")}
METHODS: dict[type, tuple[str, ...]] = {
    BaseSession: ("table",),
    Frame: ("assign", "bound_contributions", "groupby", "merge"),
}
OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt,
    ast.GtE: operator.ge, ast.BitAnd: operator.and_, ast.BitOr: operator.or_,
}  # fmt: skip
VALUES_OF = ("isin", "eq", "ne", "fillna")
"""Methods of a column that take its values."""

MAX_SOURCE = 10_000
"""Longer code before the cursor is not examined."""


def install(shell: Any) -> None:
    """Add the matcher to a shell's completer; IPython before 8.6 has no matchers, and a shell may have no completer."""
    remove(shell)
    completer: Any = getattr(shell, "Completer", None)
    if hasattr(completer, "custom_matchers"):
        completer.custom_matchers.append(matcher(shell))


def remove(shell: Any) -> None:
    """Remove the matcher from a shell's completer."""
    completer: Any = getattr(shell, "Completer", None)
    if hasattr(completer, "custom_matchers"):
        others = [one for one in completer.custom_matchers if getattr(one, "matcher_identifier", None) != IDENTIFIER]
        completer.custom_matchers[:] = others


def matcher(shell: Any) -> Callable[[Any], dict[str, Any]]:
    """The matcher of a shell, whose names are those of the analyst: a function of IPython's completion context."""
    from IPython.core.completer import context_matcher  # not in every version

    # Before the matchers that read attributes of the objects.
    @context_matcher(identifier=IDENTIFIER, priority=1000)  # type: ignore[untyped-decorator]
    def complete(context: Any) -> dict[str, Any]:
        try:
            lines = context.full_text.split("\n")[: context.cursor_line + 1]
            lines[-1] = lines[-1][: context.cursor_position]
            return _result(at_cursor("\n".join(lines)[-MAX_SOURCE:]), shell.user_ns)
        except Exception:  # noqa: BLE001  (incomplete code can be anything; a completion must not fail)
            return {"completions": []}

    return complete  # type: ignore[no-any-return]


def _result(typed: OpenString | OpenAttribute | None, names: Mapping[str, Any]) -> dict[str, Any]:
    from IPython.core.completer import SimpleCompletion

    if typed is None:
        return {"completions": []}
    if isinstance(typed, OpenAttribute):
        owner = _evaluated(typed.owner, names)
        found = sorted(name for name in dir(owner) if name.isidentifier() and not name.startswith("_"))
        columns: Iterable[str] = owner.columns if isinstance(owner, Frame) else ()
    else:
        found = [key for key in map(str, _strings(typed, names)) if typed.mark not in key and key.isprintable()]
        columns = found
    kinds = dict.fromkeys(columns, "column")
    choices = [SimpleCompletion(name, type=kinds.get(name)) for name in found if name.startswith(typed.text)]
    return {"completions": choices, "matched_fragment": typed.text, "suppress": bool(choices)}


def _strings(typed: OpenString, names: Mapping[str, Any]) -> Iterable[Any]:
    """The strings that can stand where the open string is."""
    if typed.compared:
        return _categories(_evaluated(typed.compared, names))
    if typed.bracket == "[":
        return keys_of(_evaluated(typed.owner, names))
    owner, dot, method = typed.owner.rpartition(".")
    if not dot:
        return ()
    value = _evaluated(owner, names)
    if isinstance(value, BaseSession):
        return filter(None, value._core.tables.schemas) if method == "table" else ()
    if isinstance(value, ColumnExpr):
        return _categories(value) if method in VALUES_OF else ()
    return value.columns if isinstance(value, Frame) else ()


def keys_of(value: object) -> Iterable[Any]:
    """What can stand in the brackets behind a value, as a string."""
    keys = getattr(type(value), "_ipython_key_completions_", None)
    return keys(value) if isinstance(value, OURS) and keys is not None else ()


def _categories(column: object) -> Iterable[str]:
    """The declared categories of a column that are strings."""
    if not isinstance(column, ColumnExpr):
        return ()
    kind = dtype_of(column._node, column._view.schema)
    return [key for key in kind.values if isinstance(key, str)] if isinstance(kind, Categorical) else ()


def _evaluated(code: str, names: Mapping[str, Any]) -> Any:
    """The value of an expression of dpnb's objects; raises an exception of any kind for another expression."""
    value = _value(ast.parse(f"({code})", mode="eval").body, names)
    if not isinstance(value, OURS):
        raise TypeError(type(value).__name__)
    return value


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value) if type(value) in CONSTANTS:
            return value
        case ast.Name(name) if isinstance(names[name], OURS) or type(names[name]) in CONSTANTS:
            return names[name]
        case ast.List(parts) | ast.Tuple(parts):
            return [_value(part, names) for part in parts]
        case ast.Attribute(inner, name):
            return _attribute(_value(inner, names), name)
        case ast.Subscript(inner, key):
            owner = _value(inner, names)
            if isinstance(owner, OURS):
                return owner[_value(key, names)]  # type: ignore[index]
        case ast.Call(ast.Attribute(inner, method), arguments, keywords):
            owner = _value(inner, names)
            if any(isinstance(owner, kind) and method in methods for kind, methods in METHODS.items()):
                named = {keyword.arg or "": _value(keyword.value, names) for keyword in keywords}
                return getattr(owner, method)(*(_value(argument, names) for argument in arguments), **named)
        case ast.Compare(left, [compare], [right]):
            return _operated(compare, left, right, names)
        case ast.BinOp(left, operation, right):
            return _operated(operation, left, right, names)
        case ast.UnaryOp(ast.Invert(), inner):
            column = _value(inner, names)
            if isinstance(column, ColumnExpr):
                return ~column
    raise TypeError(type(node).__name__)


def _attribute(owner: Any, name: str) -> Any:
    if isinstance(owner, Frame) and name in owner.columns:
        return owner[name]
    if any(isinstance(owner, kind) and name in allowed for kind, allowed in ATTRIBUTES.items()):
        return getattr(owner, name)
    raise TypeError(name)


def _operated(operation: ast.AST, left: ast.expr, right: ast.expr, names: Mapping[str, Any]) -> Any:
    one, other = _value(left, names), _value(right, names)
    if not isinstance(one, ColumnExpr):
        raise TypeError(type(one).__name__)
    return OPERATORS[type(operation)](one, other)
