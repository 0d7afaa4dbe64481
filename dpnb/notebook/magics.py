"""The ``%dpnb`` and ``%%dpnb`` magics: parse the line, call the session, display the result."""

from __future__ import annotations

import ast
import io
import tokenize
from contextlib import suppress
from itertools import pairwise
from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display
from traitlets import Float

from dpnb._target import KINDS, target_from
from dpnb.errors import ConfirmationRequired, DpnbError, RequestError, printable
from dpnb.notebook import panel
from dpnb.notebook.picker_steps import CONFIRM_ABOVE, large_release
from dpnb.query.query import Query
from dpnb.render.numbers import percent
from dpnb.results.preview import Preview, Previews

NO_SESSION = (
    "dpnb: this kernel has no session yet; create one with "
    "session = dpnb.Session(table, name=..., budget=..., schema=...)"
)
COMMANDS = {
    "log": "every request with its cost, error and time",
    "explain": "the guarantee in plain words, with the current numbers",
    "what-if": "cost and expected error of a release, as in: %dpnb what-if visits within=0.3",
}
CONFIRM = "--yes"
"""Confirms a release that takes much of what is left."""

TARGET_SYNTAX = "%dpnb: write the target as in within=0.2 or mu=0.1"
OPTIONS = ("confidence", "simultaneous", "final", "groups")


@magics_class
class DpnbMagics(Magics):
    """The ``%dpnb`` and ``%%dpnb`` magics."""

    confirm_above = Float(
        CONFIRM_ABOVE,
        min=0,
        max=1,
        help="Releases by mouse or magic that take more than this share of what is left are confirmed once; "
        "1 confirms none.  Without a budget, more than this share of a budget with epsilon 1.",
    ).tag(config=True)

    @line_cell_magic
    def dpnb(self, line: str, cell: str | None = None) -> Any:
        """The state of every session of this kernel, and shortcuts for frequent requests.

        ``%dpnb``
            The gauges of every session, most recently used first.
        ``%dpnb log``
            Every request with its cost, error and time, oldest first.
        ``%dpnb explain``
            The guarantee, the filter and both kinds of odometers in plain words.
        ``%dpnb what-if within=0.3``
            Cost and expected error of a release of the last query; free.  The last query is the value of the last cell,
            or the query that is named: ``%dpnb what-if visits within=0.3 confidence=0.9``.  Without a target, several
            shares of the remaining budget side by side.
        ``%%dpnb within=0.2``
            At the top of a cell: runs the cell and releases its last query with these arguments, those of
            ``Query.release``: one of mu, rho, epsilon, share, within; confidence, simultaneous, final, groups.  The
            last query is the value of the last line, or the value that the last line assigns.  A release that takes
            more than 20% of what is left (``%config DpnbMagics.confirm_above = 0.2``) is refused once, without a
            charge; ``%%dpnb within=0.2 --yes`` confirms it.
        """
        if cell is not None:
            is_confirmed, line = _without_flag(line)
            arguments = _parsed(line)  # before the cell runs, since it may charge
            query = _checked_query(self._run(cell), "%%dpnb: the cell's last line")
            self._last_query = query
            values = self._evaluated(arguments)
            if not is_confirmed:
                self._refuse_large(query, values, line)
            return query.release(**values)
        command, *others = line.split(maxsplit=1) or [""]
        rest = others[0] if others else ""
        if command == "what-if":
            return self._what_if(rest)
        if command not in ("", *COMMANDS) or rest:
            known = "; ".join(f"%dpnb {name}: {words}" for name, words in COMMANDS.items())
            print(f"dpnb: there is no command %dpnb {line.strip()}; %dpnb without a command shows the gauges; {known}")  # noqa: T201
            return None
        if not panel.live():
            print(NO_SESSION)  # noqa: T201  (output for the user)
        for session in panel.live():
            try:
                shown = session.log if command == "log" else session.explain() if command == "explain" else session
                display(shown)  # type: ignore[no-untyped-call]
            except DpnbError as error:  # a session that cannot be read must not hide the others
                print(f"dpnb session {printable(session.name)}: {error}")  # noqa: T201
        return None

    def _refuse_large(self, query: Query, values: dict[str, Any], line: str) -> None:
        """Refuse a release that takes much of what is left and is not confirmed."""
        large = None
        with suppress(DpnbError):  # the release refuses these arguments
            keys = query.runner.tables.group_keys(query.plan, values.get("groups"))
            large = large_release(query, target_from(**{**values, "groups": keys}), self.confirm_above)
        if large is not None:
            above = percent(self.confirm_above)
            above += "" if query.runner.account.guarantee.has_budget else " of a budget with epsilon 1"
            raise ConfirmationRequired(
                f"{query.description}: this release takes {large}, and a release of more than {above} must be "
                f"confirmed; nothing was charged; to confirm, write %%dpnb {line.strip()} {CONFIRM}"
            )

    @property
    def _shell(self) -> Any:
        return self.shell

    @property
    def _names(self) -> dict[str, Any]:
        """The variables of the notebook."""
        return self._shell.user_ns  # type: ignore[no-any-return]

    def _what_if(self, rest: str) -> Any:
        """A preview of the named query, or of the last one."""
        start = next(iter(_targets(rest)), len(rest))
        name = rest[:start].strip().rstrip(",")
        arguments = _parsed(rest[start:])
        if name:
            self._last_query = _checked_query(self._named(name), f"%dpnb what-if: {name}")
        elif not isinstance(last := self._last_value, Preview | Previews) or self._last_query is None:
            self._last_query = _checked_query(last, "%dpnb what-if: the value of the last cell")
        return self._last_query.preview(**self._evaluated(arguments))

    _last_query: Query | None = None
    """The query of the last request: its preview has become the value of the last cell."""

    @property
    def _last_value(self) -> object:
        """The value of the last cell that had one: not ``_``, which IPython leaves alone if another library defines it.

        `doctest` and `gettext` do.
        """
        return next(reversed(self._names.get("_oh", {}).values()), None)

    def _named(self, name: str) -> object:
        """The value of an expression; None for a name that is not defined."""
        if name.isidentifier():
            return self._names.get(name)
        try:
            return self._value(ast.parse(name, mode="eval").body)
        except SyntaxError:
            raise RequestError(f"{TARGET_SYNTAX}, after the name of a query; got {name!r}") from None

    def _evaluated(self, arguments: dict[str, ast.expr]) -> dict[str, Any]:
        """The values of arguments, which may use the variables of the notebook."""
        return {name: self._value(node) for name, node in arguments.items()}

    def _value(self, node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "<%dpnb>", "eval"), self._names)  # noqa: S307  (the user's own)

    def _run(self, cell: str) -> Any:
        """Run a cell in the notebook and return the value of its last line, or the value that the last line assigns."""
        tree = ast.parse(self._shell.transform_cell(cell), filename="<%%dpnb>")
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        names = self._names
        exec(compile(tree, "<%%dpnb>", "exec"), names)  # noqa: S102  (the user's own cell)
        if isinstance(last, ast.Expr):
            return self._value(last.value)
        match tree.body[-1:]:
            case [ast.Assign(targets=[ast.Name(id=name)])]:
                return names.get(name)
            case [ast.AnnAssign(target=ast.Name(id=name), value=ast.expr())]:
                return names.get(name)
        return None


def _without_flag(line: str) -> tuple[bool, str]:
    """Whether the line ends or begins with the flag that confirms a large cost, and the line without it."""
    text = line.strip()
    for rest in (text.removesuffix(CONFIRM), text.removeprefix(CONFIRM)):
        if rest != text and (not rest or rest[-1].isspace() or rest[0].isspace()):
            return True, rest.strip()
    return False, line


def _targets(line: str) -> list[int]:
    """Positions at which ``name=`` begins, outside brackets, strings and comparisons."""
    positions: list[int] = []
    depth, before = 0, None
    with suppress(tokenize.TokenError, IndentationError):  # an unclosed bracket is reported by the parser
        for token in tokenize.generate_tokens(io.StringIO(line).readline):
            depth += (token.string in "([{") - (token.string in ")]}") if token.type == tokenize.OP else 0
            if token.type == tokenize.OP and token.string == "=" and not depth and before is not None:
                positions.append(before.start[1])
            before = token if token.type == tokenize.NAME else None
    return positions


def _parsed(line: str) -> dict[str, ast.expr]:
    """``within=0.2 confidence=0.9``, with or without commas, parsed into keyword arguments of `release`."""
    starts = [*_targets(line), len(line)]
    parts = [line[: starts[0]], *(line[a:b] for a, b in pairwise(starts))]
    text = ", ".join(part.strip().rstrip(",") for part in parts if part.strip())
    try:
        call = ast.parse(f"f({text}\n)", mode="eval").body
    except SyntaxError:
        call = None
    if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
        raise RequestError(f"{TARGET_SYNTAX}; got {line!r}")
    for word in call.keywords:
        if word.arg not in (*KINDS, *OPTIONS):
            known = ", ".join((*KINDS, *OPTIONS))
            raise RequestError(f"%dpnb: {word.arg!r} is not an argument of release; use one of {known}")
    return {str(word.arg): word.value for word in call.keywords}


def _checked_query(value: object, what: str) -> Query:
    if isinstance(value, Query):
        return value
    kind = "None" if value is None else f"a {type(value).__name__}"
    raise RequestError(f"{what} must be a query, such as session.frame['age'].mean(); got {kind}")
