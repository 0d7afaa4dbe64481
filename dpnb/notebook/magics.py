"""``%dpnb`` and ``%%dpnb``: parse, ask the session, show."""

from __future__ import annotations

import ast
import re
from typing import Any

from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import display

from dpnb.errors import RequestError
from dpnb.session import Session, live
from dpnb.session.query import Query

NO_SESSION = "dpnb: no session in this kernel yet; make one with session = dpnb.Session(table, name=..., budget=...)"
COMMANDS = {
    "log": "every request with its cost, error and time",
    "explain": "the promise in plain words, with the numbers of now",
    "what-if": "what a release would cost and give, as in: %dpnb what-if visits within=0.3",
}
TARGETS = ("mu", "rho", "epsilon", "share", "within")
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
            return _question(self._run(cell), "%%dpnb: the cell's last line").release(**self._arguments(line))
        command, _, rest = line.strip().partition(" ")
        if command == "what-if":
            return self._what_if(rest.strip())
        if command not in ("", *COMMANDS) or rest:
            known = "; ".join(f"%dpnb {name}: {words}" for name, words in COMMANDS.items())
            print(f"dpnb: there is no %dpnb {line.strip()}; %dpnb alone shows the gauges; {known}")  # noqa: T201
            return None
        if not live.sessions():
            print(NO_SESSION)  # noqa: T201  (a magic talks to its user)
        for session in live.sessions():
            display(_shown(session, command))  # type: ignore[no-untyped-call]
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
        first, _, others = rest.partition(" ")
        if first and "=" not in first:
            name, target = first, others
            found = self._names.get(name) if name.isidentifier() else eval(name, self._names)  # noqa: S307
        else:
            name, target = "_", rest
            found = self._names.get("_")
        return _question(found, f"%dpnb what-if: {name}").preview(**self._arguments(target))

    def _arguments(self, line: str) -> dict[str, Any]:
        """``within=0.2 confidence=0.9`` as arguments; values are Python, and may use the notebook's names."""
        with_commas = re.sub(r",?\s+(?=[A-Za-z_]+\s*=)", ", ", line.strip())
        try:
            call = ast.parse(f"f({with_commas})", mode="eval").body
        except SyntaxError:
            raise RequestError(f"{WRITTEN}; got {line!r}") from None
        if not isinstance(call, ast.Call) or call.args or any(word.arg is None for word in call.keywords):
            raise RequestError(f"{WRITTEN}; got {line!r}")
        known = (*TARGETS, *OPTIONS)
        for word in call.keywords:
            if word.arg not in known:
                raise RequestError(f"%dpnb: there is no argument {word.arg!r}; give one of {', '.join(known)}")
        return {str(word.arg): self._value(word.value) for word in call.keywords}

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
        end = tree.body[-1] if tree.body else None
        target = end.targets[0] if isinstance(end, ast.Assign) else getattr(end, "target", None)
        return names.get(target.id) if isinstance(target, ast.Name) else None


def _shown(session: Session, command: str) -> object:
    if command == "log":
        return session.log()
    return session.explain() if command == "explain" else session


def _question(value: object, what: str) -> Query:
    if isinstance(value, Query):
        return value
    kind = "nothing" if value is None else f"a {type(value).__name__}"
    raise RequestError(f"{what} must be a question, such as hie['mdvis'].mean(); it is {kind}")
