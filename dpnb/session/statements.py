"""What a session says about itself: how it is displayed, the disclosure statement, and an explanation in words."""

from __future__ import annotations

import math
from typing import Any, NoReturn

from dpnb._core import explain
from dpnb._core.core import SessionCore
from dpnb.copying import safe_repr
from dpnb.errors import RequestError, printable
from dpnb.render import sessions
from dpnb.render.numbers import format_percent_down
from dpnb.render.page import text_or_error
from dpnb.render.sessions import connection_lines
from dpnb.results.disclosure.report import Report
from dpnb.results.display import Explanation
from dpnb.session import snapshot
from dpnb.session.disclosure.building import report_of_ledger
from dpnb.session.disclosure.division import WHOLE, StatementScope
from dpnb.session.gauges import describe_spent

# --- how sessions are displayed ---------------------------------------------------------------------------------------


class DisplayedSession:
    """The representations of a session: one that reads no file, and the state as the ledger has it now."""

    _core: SessionCore
    _mechanisms: Any

    @safe_repr
    def __repr__(self) -> str:
        if not self._is_initialized:
            return f"<{type(self).__name__}, not opened>"
        core, left = self._core, self._core.account.last_headroom
        lines = [core.notice] if core.notice else []
        lines.append(f"<{type(self).__name__} {printable(core.name)!r}: {printable(core.guarantee)}")
        if left is not None and not math.isnan(left):
            lines.append(f"  {format_percent_down(left)} left when the ledger was last read")
        lines.append(f"  table in {core.tables.engine}")
        lines += [f"  {printable(line)}" for line in connection_lines(snapshot.connection_of(core.connection))]
        return "\n".join(lines) + ">"

    def __str__(self) -> str:
        """The state as the ledger has it now: gauges, filters, odometers, mechanisms."""
        return sessions.render_text(snapshot.snapshot(self, compared=True)) if self._is_initialized else repr(self)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else text_or_error(self))

    def _repr_html_(self) -> str | None:
        return sessions.render_html(snapshot.snapshot(self, compared=True)) if self._is_initialized else None

    @property
    def _is_initialized(self) -> bool:
        """Whether `__init__` finished: a debugger may also show a session whose arguments were refused."""
        return "_core" in vars(self)


# --- statements of a session ------------------------------------------------------------------------------------------


class Statements:
    """The methods `report` and `explain` of a session."""

    _core: SessionCore
    _mechanisms: Any

    _rows_of: StatementScope = WHOLE
    """Whose rows the ledger of the session has."""

    def report(self, *, answers: bool = False) -> Report:
        """The disclosure statement: who is protected, what is guaranteed, and everything that was released; free.

        It is computed from the ledger alone, so that ``python -m dpnb verify`` can check it.  A session on a service
        states what its own rows of the ledger say: in reserved mode, the analyst's part of the budget.

        Parameters
        ----------
        answers : bool, default False
            Whether to include the released answers, and their errors, which may depend on them.  Without them the
            statement is about privacy only.

        Returns
        -------
        Report
            Its `save` writes a page to read and print, or JSON.

        Raises
        ------
        RequestError
            If this is a sub-session or a part: a statement is about a whole ledger.
        LedgerError
            If the ledger cannot be read, or was altered.

        Examples
        --------
        >>> answer = df["age"].mean().release(mu=0.1)
        >>> session.report().sections[0].title
        'Who is protected'
        """
        return report_of_ledger(self._core.account.ledger, self._rows_of, answers=bool(answers))

    def explain(self) -> Explanation:
        """Explain the guarantee, the filter and both odometer readings in words, with this session's numbers.

        Examples
        --------
        >>> print(str(session.explain()).splitlines()[1])
        clinic: guarantee and budget
        """
        spent = describe_spent(self._core.account.filter, self._core.account.budget)
        return explain.of_session(self._core, spent, self._mechanisms.entries())


def refuse_report_of_a_part(kind: str, name: str) -> NoReturn:
    """Refuse a statement about a session inside another one."""
    raise RequestError(
        f"report: a disclosure statement is about everything that a ledger has released; {name!r} is a {kind}, whose "
        "requests are among those of the session that it belongs to; call report() of that session"
    )
