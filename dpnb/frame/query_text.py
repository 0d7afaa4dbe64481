"""Conditions and expressions written as text, for ``df.query(...)`` and ``df.eval(...)``.

The text is parsed to a syntax tree and translated node by node.  Only the kinds of nodes in this file are known: names
of columns, constants, lists of constants, comparisons, arithmetic, ``and``, ``or``, ``not``, and a few methods.
Nothing is evaluated: no name of Python is looked up, and no function is called but those of the columns' expressions.
"""

from __future__ import annotations

import ast
import operator
import re
import warnings
from collections.abc import Callable
from functools import reduce
from typing import Any, NoReturn, Self

from dpnb.errors import PlanError
from dpnb.frame.columns.column_expr import ColumnExpr, filtered
from dpnb.frame.columns.series import Series
from dpnb.frame.compatibility.examples import examples
from dpnb.frame.compatibility.options import check_options, describe_options
from dpnb.frame.layout import ColumnLayout
from dpnb.frame.view import TableView
from dpnb.schema import Key

MAX_LENGTH = 10_000
"""Largest number of characters of a text."""

MAX_DEPTH = 60
"""Largest depth of its syntax tree, as of an expression."""

_BINARY: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
}
_CONSTANT = (ast.Add, ast.Sub, ast.Mult, ast.Div)
"""Operators of constants: each result is about as long as its operands."""

_COMPARISONS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_NOT_PYTHON = re.compile(r"""'(?:[^'\\]|\\.)*'?|"(?:[^"\\]|\\.)*"?|`[^`]*`?|@\w*|[&|]""", re.DOTALL)
"""What Python spells differently, and quoted texts, which stay; one that is not closed is refused by the parser."""

_METHODS = ("isin", "isna", "isnull", "notna", "notnull", "between", "abs", "round", "clip")
_ACCESSORS: dict[str, tuple[str, ...]] = {
    "dt": ("year", "quarter", "month", "day", "dayofyear", "dayofweek", "weekday", "hour", "minute", "days"),
    "str": ("startswith", "endswith", "contains", "lower", "upper", "len"),
}


@describe_options
class TextQueries(ColumnLayout):
    """The methods of a frame that take a condition or an expression as text."""

    __slots__ = ()

    def query(self, expr: str, **options: object) -> Self:
        """The rows for which a condition is true, written as text; the same view as ``df[condition]``.

        The text is parsed and translated, never evaluated: names are columns (in backticks if they are not
        identifiers), joined with constants by comparisons, arithmetic, ``and``, ``or``, ``not`` and ``in [...]``.

        Parameters
        ----------
        expr : str
            The condition.

        Raises
        ------
        PlanError
            The text is not such a condition, or names a variable by ``@``.

        Examples
        --------
        >>> df.query("age > 65 and plan == 'free'")
        <private table: age, cost, plan, admitted, note where (age > 65) & (plan == 'free')>
        """
        check_options("query", options, self._examples(), "inplace", "engine")
        return type(self)(filtered(self._view, _Translator(self._view, "query").translate(expr)))

    def eval(self, expr: str, **options: object) -> Series:
        """An expression of columns, written as text as for `query`.

        Parameters
        ----------
        expr : str
            The expression.

        Examples
        --------
        >>> df.eval("cost / 12")
        <private column: cost / 12>
        """
        check_options("eval", options, self._examples(), "inplace", "engine")
        column = _Translator(self._view, "eval").translate(expr)
        return Series(column._view, column._node)


class _Translator:
    """Translates the text of a method to an expression; a name that is not an identifier is in backticks."""

    def __init__(self, view: TableView, verb: str) -> None:
        self._view, self._verb = view, verb
        self._quoted: dict[str, str] = {}

    def translate(self, text: object) -> ColumnExpr:
        if not isinstance(text, str) or not text.strip():
            raise PlanError(f"{self._verb}: takes a text, such as {self._example()}; got {text!r}")
        if len(text) > MAX_LENGTH:
            raise PlanError(f"{self._verb}: the text has {len(text):,} characters; at most {MAX_LENGTH:,} are allowed")
        source = self._plain(text.strip())
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # the parser's advice on escapes in texts
                tree = ast.parse(source, mode="eval")
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            raise PlanError(
                f"{self._verb}: cannot be read: {text!r}; write comparisons joined by and, or, not, "
                f"such as {self._example()}"
            ) from None
        value = self._value(tree.body, 0)
        if not isinstance(value, ColumnExpr):
            raise PlanError(f"{self._verb}: {text!r} has no column; write for example {self._example()}")
        return value

    def _example(self) -> str:
        number = _quoted(examples(self._view)["number_name"][1:-1])
        return repr(f"{number} * 2" if self._verb == "eval" else f"{number} > 1 and {number} < 5")

    def _plain(self, text: str) -> str:
        """Python's spelling of a text: names in backticks become identifiers, ``&`` and ``|`` become words."""

        def spelled(found: re.Match[str]) -> str:
            symbol = found[0]
            if symbol[0] == "`":
                if len(symbol) == 1 or symbol[-1] != "`":
                    raise PlanError(f"{self._verb}: a backtick is not closed in {text!r}")
                return f" {self._identifier(symbol[1:-1], text)} "
            if symbol[0] == "@":
                name = symbol[1:] or "name"
                raise PlanError(
                    f"{self._verb}: @{name}: variables are not read; write the value into the text, or use a condition "
                    f"of Python, as in df[{examples(self._view)['number']} > {name}]"
                )
            return {"&": " and ", "|": " or "}.get(symbol, symbol)

        return _NOT_PYTHON.sub(spelled, text).strip()

    def _identifier(self, name: str, text: str) -> str:
        self._view.column(name)
        new = f"column_{len(self._quoted)}"
        while new in text or new in self._view.columns:
            new += "_"
        self._quoted[new] = name
        return new

    def _value(self, node: ast.AST, depth: int) -> Any:
        """A column, a constant, or a list of constants."""
        if depth > MAX_DEPTH:
            raise PlanError(f"{self._verb}: the text must have at most {MAX_DEPTH} levels; this one has more")
        match node:
            case ast.Name(name):
                name = self._quoted.get(name, name)
                return Series(self._view, self._view.column(name))
            case ast.Constant(value) if isinstance(value, bool | int | float | str):
                return value
            case ast.List(elements) | ast.Tuple(elements) | ast.Set(elements):
                return [self._constant(element, depth + 1) for element in elements]
            case ast.BoolOp(joined, values):
                return self._joined(joined, values, depth)
            case ast.UnaryOp(unary, inner):
                return self._unary(unary, self._value(inner, depth + 1), node)
            case ast.BinOp(left, binary, right):
                return self._binary(binary, self._value(left, depth + 1), self._value(right, depth + 1), node)
            case ast.Compare(left, operators, others):
                return self._compared(left, operators, others, depth)
            case ast.Call() | ast.Attribute():
                return self._method(node, depth)
        self._refuse(node)

    def _constant(self, node: ast.AST, depth: int) -> Key:
        value = self._value(node, depth)
        if isinstance(value, ColumnExpr | list):
            self._refuse(node)
        return value  # type: ignore[no-any-return]

    def _condition(self, node: ast.AST, depth: int) -> ColumnExpr:
        value = self._value(node, depth + 1)
        if not isinstance(value, ColumnExpr):
            raise PlanError(
                f"{self._verb}: {_source(node)} is not a condition; put each comparison in parentheses, and join them "
                f"by and, or, not, as in {self._example()}"
            )
        return value

    def _joined(self, joined: ast.AST, values: list[ast.expr], depth: int) -> ColumnExpr:
        conditions = [self._condition(value, depth) for value in values]
        return reduce(operator.and_ if isinstance(joined, ast.And) else operator.or_, conditions)

    def _unary(self, unary: ast.AST, inner: Any, node: ast.AST) -> Any:
        if isinstance(unary, ast.Not | ast.Invert) and isinstance(inner, ColumnExpr):
            return ~inner
        number = isinstance(inner, ColumnExpr) or _is_number(inner)
        if isinstance(unary, ast.USub) and number:
            return -inner
        if isinstance(unary, ast.UAdd) and number:
            return inner
        self._refuse(node)

    def _binary(self, binary: ast.AST, left: Any, right: Any, node: ast.AST) -> Any:
        columns = isinstance(left, ColumnExpr) or isinstance(right, ColumnExpr)
        if type(binary) not in _BINARY or isinstance(left, list) or isinstance(right, list):
            self._refuse(node)
        if columns:
            return _BINARY[type(binary)](left, right)
        if not isinstance(binary, _CONSTANT) or not (_is_number(left) and _is_number(right)):
            self._refuse(node)
        try:
            return _BINARY[type(binary)](left, right)
        except ArithmeticError:
            self._refuse(node)

    def _compared(self, left: ast.expr, operators: list[ast.cmpop], others: list[ast.expr], depth: int) -> ColumnExpr:
        sides = [self._value(side, depth + 1) for side in (left, *others)]
        return reduce(operator.and_, map(self._comparison, operators, sides, sides[1:], others))

    def _comparison(self, compare: ast.cmpop, left: Any, right: Any, node: ast.AST) -> ColumnExpr:
        if isinstance(right, list) and isinstance(left, ColumnExpr):
            if isinstance(compare, ast.In | ast.Eq):
                return left.isin(right)
            if isinstance(compare, ast.NotIn | ast.NotEq):
                return ~left.isin(right)
        if type(compare) not in _COMPARISONS or isinstance(left, list) or isinstance(right, list):
            self._refuse(node)
        if not isinstance(left, ColumnExpr) and not isinstance(right, ColumnExpr):
            raise PlanError(f"{self._verb}: compares {left!r} with {right!r}; one side must be a column")
        return _COMPARISONS[type(compare)](left, right)  # type: ignore[no-any-return]

    def _method(self, node: ast.Call | ast.Attribute, depth: int) -> Any:
        """A method of a column, or of its ``.dt`` and ``.str``, by the lists above."""
        function = node.func if isinstance(node, ast.Call) else node
        if not isinstance(function, ast.Attribute):
            self._refuse(node)
        inner, name = function.value, function.attr
        accessor = inner.attr if isinstance(inner, ast.Attribute) and inner.attr in _ACCESSORS else None
        allowed = _METHODS if accessor is None else _ACCESSORS[accessor]
        if name not in allowed:
            self._refuse(node)
        column = self._value(inner.value if accessor is not None else inner, depth + 1)  # type: ignore[attr-defined]
        if not isinstance(column, ColumnExpr):
            self._refuse(node)
        bound = getattr(column if accessor is None else getattr(column, accessor), name)
        if isinstance(node, ast.Attribute):
            return bound if isinstance(bound, ColumnExpr) else self._refuse(node)
        if isinstance(bound, ColumnExpr) or any(word.arg is None for word in node.keywords):
            self._refuse(node)
        positional = [self._value(argument, depth + 1) for argument in node.args]
        named = {str(word.arg): self._value(word.value, depth + 1) for word in node.keywords}
        try:
            return bound(*positional, **named)
        except TypeError:
            self._refuse(node)

    def _refuse(self, node: ast.AST) -> NoReturn:
        raise PlanError(
            f"{self._verb}: {_source(node)} is not offered; the text can use columns, constants, comparisons, "
            f"arithmetic, and, or, not, in [...] and .isna(), such as {self._example()}; anything else is written with "
            f"columns, as in df[{examples(self._view)['number']} > 1]"
        )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _source(node: ast.AST) -> str:
    """The text of a node, for messages."""
    try:
        return repr(ast.unparse(node)[:80])
    except RecursionError:
        return "this text"


def _quoted(name: str) -> str:
    return name if name.isidentifier() else f"`{name}`"
