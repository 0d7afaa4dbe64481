"""Tab completion of columns, tables, groups and categories, from the public declaration.

``df["``, ``df.``, ``session.frame["``, ``df.groupby("``, ``df[df["town"] == "`` and ``answer["``.  IPython completes
the keys of a plain name (`_ipython_key_completions_`) and evaluates little else; this matcher also knows expressions of
dpnb's own objects, where the code is an expression once its string and brackets are closed.  It evaluates only what has
no effect and reads no row: names, attributes, subscripts and a few methods of these objects, with constants.  It never
raises.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dpnb._plan.expressions.dtypes import Categorical
from dpnb._plan.expressions.rules import dtype_of
from dpnb._target import KINDS
from dpnb.frame import Frame
from dpnb.frame.columns.column_expr import ColumnExpr
from dpnb.frame.groupby import GroupBy
from dpnb.notebook.magics import COMMANDS, OPTIONS
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
ATTRIBUTES = ("frame", "schema")
"""Of a session."""

METHODS: dict[type, tuple[str, ...]] = {
    BaseSession: ("table",),
    Frame: ("assign", "bound_contributions", "groupby", "merge"),
}
VALUES_OF = ("==", "isin", "eq", "ne", "fillna")
"""Comparisons and methods of a column that take its values."""

MAX_CELL, MAX_STATEMENT = 10_000, 2_000
"""Characters before the cursor that are examined, and those of a statement."""


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
            return _result(at_cursor("\n".join(lines)[-MAX_CELL:]), shell.user_ns)
        except Exception:  # noqa: BLE001  (incomplete code can be anything; a completion must not fail)
            return {"completions": []}

    return complete  # type: ignore[no-any-return]


def _result(typed: Typed | None, names: Mapping[str, Any]) -> dict[str, Any]:
    from IPython.core.completer import SimpleCompletion

    if typed is None:
        return {"completions": []}
    owner = _value(typed.owner, names)
    if not isinstance(owner, OURS):
        raise TypeError(type(owner).__name__)
    if typed.place == ".":
        found = sorted(name for name in dir(owner) if name.isidentifier() and not name.startswith("_"))
        columns: Iterable[str] = owner.columns if isinstance(owner, Frame) else ()
    else:
        strings = map(str, _strings(owner, typed.place))
        columns = found = [key for key in strings if key.isprintable() and typed.mark not in key]
    kinds = dict.fromkeys(columns, "column")
    choices = [SimpleCompletion(name, type=kinds.get(name)) for name in found if name.startswith(typed.text)]
    return {"completions": choices, "matched_fragment": typed.text, "suppress": bool(choices)}


def _strings(owner: Any, place: str) -> Iterable[Any]:
    """The strings that can stand in the brackets of an object, in those of its method, or beside it in a comparison."""
    if isinstance(owner, ColumnExpr):
        kind = dtype_of(owner._node, owner._view.schema)
        values = kind.values if place in VALUES_OF and isinstance(kind, Categorical) else ()
        return [value for value in values if isinstance(value, str)]
    if place == "[":
        keys = getattr(type(owner), "_ipython_key_completions_", None)
        return () if keys is None else keys(owner)
    if isinstance(owner, BaseSession):
        return filter(None, owner._core.tables.schemas) if place == "table" else ()
    return owner.columns if isinstance(owner, Frame) and place != "==" else ()


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """The value of an expression of dpnb's objects; raises an exception of any kind for another expression."""
    match node:
        case ast.Constant(value) if type(value) in CONSTANTS:
            return value
        case ast.Name(name) if isinstance(names[name], OURS) or type(names[name]) in CONSTANTS:
            return names[name]
        case ast.List(parts) | ast.Tuple(parts):
            return [_value(part, names) for part in parts]
        case ast.Attribute(inner, name):
            owner = _value(inner, names)
            if isinstance(owner, Frame) and name in owner.columns:
                return owner[name]
            if isinstance(owner, BaseSession) and name in ATTRIBUTES:
                return getattr(owner, name)
        case ast.Subscript(inner, key):
            owner = _value(inner, names)
            if isinstance(owner, Frame) and isinstance(key, ast.Compare | ast.BinOp | ast.UnaryOp | ast.Call):
                return owner  # some of its rows, and the same columns
            if isinstance(owner, OURS):
                return owner[_value(key, names)]  # type: ignore[index]
        case ast.Call(ast.Attribute(inner, method), arguments, keywords):
            owner = _value(inner, names)
            if any(isinstance(owner, kind) and method in methods for kind, methods in METHODS.items()):
                named = {keyword.arg or "": _value(keyword.value, names) for keyword in keywords}
                return getattr(owner, method)(*(_value(argument, names) for argument in arguments), **named)
    raise TypeError(type(node).__name__)


# --- the code before the cursor ---------------------------------------------------------------------------------------


CURSOR = "_dpnb_cursor_"
"""What stands at the cursor while the code before it is parsed."""

CLOSING = {"(": ")", "[": "]", "{": "}"}
PREFIXES = ("", "r", "R", "u", "U")
"""Prefixes of a string whose text is what is typed; in others, such as f-strings, nothing is completed."""

PIECES = re.compile(
    r"""#[^\n]*|(?P<prefix>\w*)(?:(?P<long>'{3}|"{3})|(?P<short>['"]))"""
    r"(?P<text>(?:\\.|(?!(?P=long))(?!(?P=short))(?(long).|[^\n]))*)(?P<end>(?P=long)|(?P=short))?|[()\[\]{}\n]",
    re.DOTALL,
)
"""Comments, strings, brackets and ends of lines; of a string that is not closed, `end` is None."""


@dataclass(frozen=True)
class Typed:
    """A string or an attribute that is typed at the cursor."""

    text: str  # what was typed of it
    place: str  # "." for an attribute, "[", "==", or the method in whose brackets the string is
    owner: ast.expr  # whose attribute, brackets or method; the other side of the comparison
    mark: str = ""  # the quotation mark of the string


def at_cursor(code: str) -> Typed | None:
    """What is typed at the end of the code, which is the cell up to the cursor; None for anything else."""
    start, closing, last = 0, "", None
    for last in PIECES.finditer(code):
        if last[0] in CLOSING:
            closing = CLOSING[last[0]] + closing
        elif last[0] in CLOSING.values():
            closing = closing[1:]
        elif last[0] == "\n" and not closing:
            start = last.end()
    mark = ""
    if last is not None and last.end() == len(code) and last["text"] is not None and last["end"] is None:
        if last["prefix"] not in PREFIXES:
            return None
        text, mark = last["text"], last["long"] or last["short"]
        before = f"{code[start : last.start()]}{CURSOR!r}"
    else:
        attribute = re.search(r"\.\s*(\w*)\Z", code)
        if attribute is None or (last is not None and last[0].startswith("#") and last.end() == len(code)):
            return None
        text, before = attribute[1], f"{code[start : attribute.start(1)]}{CURSOR}"
    path = _path_to_cursor(before, closing)
    match path:
        case [ast.Attribute(owner), *_]:
            return Typed(text, ".", owner)
        case [_, ast.Compare(owner, [ast.Eq() | ast.NotEq()]), *_]:
            return Typed(text, "==", owner, mark)
    for node in path[1:]:
        match node:
            case ast.Subscript(owner):
                return Typed(text, "[", owner, mark)
            case ast.Call(ast.Attribute(owner, method)):
                return Typed(text, method, owner, mark)
            case ast.List() | ast.Tuple() | ast.Dict() | ast.Set() | ast.keyword():
                continue
        break
    return None


def _path_to_cursor(before: str, closing: str) -> list[ast.AST]:
    """The node at the cursor and those around it, of the longest expression before it; empty if there is none."""
    if len(before) > MAX_STATEMENT:
        return []
    for begin in re.finditer(r"(?<![\w.])[^\W\d]|[(\[{]", before):
        with suppress(SyntaxError, ValueError), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the analyst's code, when it is executed
            return _path(ast.parse(f"{before[begin.start() :]}{closing}", mode="eval").body)
    return []


def _path(node: ast.AST) -> list[ast.AST]:
    """The node at the cursor and those around it, up to this node; empty if the cursor is not in it."""
    if CURSOR in (getattr(node, "attr", None), getattr(node, "value", None)):
        return [node]
    paths = (path for child in ast.iter_child_nodes(node) if (path := _path(child)))
    return next(([*path, node] for path in paths), [])
