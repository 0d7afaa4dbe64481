"""``%dpnb`` and ``%%dpnb``: parse, ask the session, show."""

from __future__ import annotations

import ast
import io
import tokenize
from contextlib import suppress
from itertools import pairwise
from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

from dpnb._core.pricing.target import KINDS
from dpnb._core.query import Query
from dpnb.errors import DpnbError, RequestError, printable
from dpnb.notebook import snapshots
from dpnb.results.preview import Preview, Previews
from dpnb.session import BaseSession

NO_SESSION = "dpnb: no session in this kernel yet; make one with session = dpnb.Session(table, name=..., budget=...)"
COMMANDS = {
    "log": "every request with its cost, error and time",
    "explain": "the promise in plain words, with the numbers of now",
    "what-if": "what a release would cost and give, as in: %dpnb what-if visits within=0.3",
}
WRITTEN = "%dpnb: write the target as in within=0.2 or mu=0.1"
OPTIONS = ("confidence", "simultaneous", "final", "groups")


@magics_class
class DpnbMagics(Magics):
    """The ``%dpnb`` and ``%%dpnb`` magics."""

    @line_cell_magic
    def dpnb(self, line: str, cell: str | None = None) -> Any:
        """How every session of this kernel stands, and shortcuts for what is asked most.

        ``%dpnb``
            The gauges of every session, the one used last first.
        ``%dpnb log``
            Every request with its cost, error and time, oldest first.
        ``%dpnb explain``
            The promise, the filter and both odometer readings in plain words.
        ``%dpnb what-if within=0.3``
            What a release of the last question would cost and give; free.  The last question is the value of the last
            cell (``_``), or the one that is named: ``%dpnb what-if visits within=0.3 confidence=0.9``.  Without a
            target, some shares of what is left side by side.
        ``%%dpnb within=0.2``
            On top of a cell: runs the cell and releases its last question with these arguments, those of
            ``Query.release``: one of mu, rho, epsilon, share, within; confidence, simultaneous, final, groups.  The
            last question is the last line, or what the last line assigns.
        """
        if cell is not None:
            written = _parsed(line)  # before the cell runs: it may charge
            question = _question(self._run(cell), "%%dpnb: the cell's last line")
            self._asked = question
            return question.release(**self._evaluated(written))
        command, *others = line.split(maxsplit=1) or [""]
        rest = others[0] if others else ""
        if command == "what-if":
            return self._what_if(rest)
        if command not in ("", *COMMANDS) or rest:
            known = "; ".join(f"%dpnb {name}: {words}" for name, words in COMMANDS.items())
            print(f"dpnb: there is no %dpnb {line.strip()}; %dpnb alone shows the gauges; {known}")  # noqa: T201
            return None
        if not snapshots.live():
            print(NO_SESSION)  # noqa: T201  (a magic talks to its user)
        for session in snapshots.live():
            try:
                display(_shown(session, command))  # type: ignore[no-untyped-call]
            except DpnbError as error:  # a session that cannot be read hides no other
                print(f"dpnb session {printable(session.name)}: {error}")  # noqa: T201
        return None

    @property
    def _shell(self) -> Any:
        return self.shell

    @property
    def _names(self) -> dict[str, Any]:
        """What the notebook has defined."""
        return self._shell.user_ns  # type: ignore[no-any-return]

    def _what_if(self, rest: str) -> Any:
        """A preview of a question that is named, or of the last one."""
        start = next(iter(_targets(rest)), len(rest))
        name = rest[:start].strip().rstrip(",")
        written = _parsed(rest[start:])
        if name:
            self._asked = _question(self._named(name), f"%dpnb what-if: {name}")
        elif not isinstance(self._names.get("_"), Preview | Previews) or self._asked is None:
            self._asked = _question(self._names.get("_"), "%dpnb what-if: the value of the last cell")
        return self._asked.preview(**self._evaluated(written))

    _asked: Query | None = None
    """The question that was asked about last: a preview of it has become the value of the last cell."""

    def _named(self, name: str) -> object:
        """The value of an expression; None for a name that nobody has defined."""
        if name.isidentifier():
            return self._names.get(name)
        try:
            return self._value(ast.parse(name, mode="eval").body)
        except SyntaxError:
            raise RequestError(f"{WRITTEN}, after the name of a question; got {name!r}") from None

    def _evaluated(self, written: dict[str, ast.expr]) -> dict[str, Any]:
        """Arguments with their values, which may use the notebook's names."""
        return {name: self._value(node) for name, node in written.items()}

    def _value(self, node: ast.expr) -> Any:
        return eval(compile(ast.Expression(node), "<%dpnb>", "eval"), self._names)  # noqa: S307  (the user's own)

    def _run(self, cell: str) -> Any:
        """Run a cell in the notebook; the value of its last line, also of one that assigns it to a name."""
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


def _shown(session: BaseSession, command: str) -> object:
    if command == "log":
        return session.log()
    return session.explain() if command == "explain" else session


def _targets(line: str) -> list[int]:
    """Where ``name=`` begins, outside brackets, texts and comparisons."""
    found: list[int] = []
    depth, before = 0, None
    with suppress(tokenize.TokenError, IndentationError):  # an unclosed bracket is told by whoever parses it
        for token in tokenize.generate_tokens(io.StringIO(line).readline):
            depth += (token.string in "([{") - (token.string in ")]}") if token.type == tokenize.OP else 0
            if token.type == tokenize.OP and token.string == "=" and not depth and before is not None:
                found.append(before.start[1])
            before = token if token.type == tokenize.NAME else None
    return found


def _parsed(line: str) -> dict[str, ast.expr]:
    """``within=0.2 confidence=0.9``, with or without commas, as the expressions of named arguments.

    Raises
    ------
    RequestError
        It is none, or names an argument that `release` has not.
    """
    starts = [*_targets(line), len(line)]
    parts = [line[: starts[0]], *(line[a:b] for a, b in pairwise(starts))]
    text = ", ".join(part.strip().rstrip(",") for part in parts if part.strip())
    try:
        call = ast.parse(f"f({text}\n)", mode="eval").body
    except SyntaxError:
        call = None
    if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
        raise RequestError(f"{WRITTEN}; got {line!r}")
    for word in call.keywords:
        if word.arg not in (*KINDS, *OPTIONS):
            known = ", ".join((*KINDS, *OPTIONS))
            raise RequestError(f"%dpnb: there is no argument {word.arg!r}; give one of {known}")
    return {str(word.arg): word.value for word in call.keywords}


def _question(value: object, what: str) -> Query:
    if isinstance(value, Query):
        return value
    kind = "nothing" if value is None else f"a {type(value).__name__}"
    raise RequestError(f"{what} must be a question, such as hie['mdvis'].mean(); it is {kind}")
