"""What a session says about its guarantee and what it has released: the disclosure statement, and an explanation."""

from __future__ import annotations

from typing import Any, NoReturn

from dpnb._core import explain
from dpnb._core.core import SessionCore
from dpnb.errors import RequestError
from dpnb.results.explanation import Explanation
from dpnb.results.report import Report
from dpnb.session.disclosure.building import report_of_ledger
from dpnb.session.disclosure.division import WHOLE, StatementScope
from dpnb.session.spending import describe_spent


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
        return explain.of_session(self._core, spent, self._mechanisms.told())


def refuse_report_of_a_part(kind: str, name: str) -> NoReturn:
    """Refuse a statement about a session inside another one."""
    raise RequestError(
        f"report: a disclosure statement is about everything that a ledger has released; {name!r} is a {kind}, whose "
        "requests are among those of the session that it belongs to; call report() of that session"
    )
