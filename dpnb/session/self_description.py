"""What a session says about itself: how it is displayed, filter and odometers, disclosure statement, explanation."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from dpnb._core import session_explanation
from dpnb._core.core import SessionCore
from dpnb._core.unit_budgets import Accounting
from dpnb._plan.unreleased import did_you_mean
from dpnb.accounting.exact import Number, few_digits_down
from dpnb.accounting.filters import Filter
from dpnb.accounting.losses import Loss
from dpnb.accounting.odometers import Odometer, TruncatedView
from dpnb.copying import safe_repr
from dpnb.errors import RequestError, SessionAttributeError, printable
from dpnb.render import sessions
from dpnb.render.numbers import format_percent_down
from dpnb.render.page import text_or_error
from dpnb.render.sessions import connection_lines
from dpnb.results.disclosure.report import Report
from dpnb.results.display import Explanation
from dpnb.session import snapshot
from dpnb.session.disclosure.building import report_of_ledger
from dpnb.session.disclosure.requests import WHOLE, StatementScope
from dpnb.session.gauges import describe_spent

LEFT, RELEASED = ".headroom is the fraction of the budget that is left", ".log is the table of what was released"
IN_FRAME = "the columns are those of session.frame, as in df = session.frame"

MEANT = {
    **dict.fromkeys(("remaining", "left", "balance", "budget_left", "remaining_budget", "budget_remaining"), LEFT),
    **dict.fromkeys(("history", "releases", "queries", "answers"), RELEASED),
    **dict.fromkeys(("df", "data", "columns", "dtypes", "groupby", "query", "head", "count", "mean"), IN_FRAME),
    "methods": ".report().methods_paragraph is a paragraph with the numbers of the session",
    "summary": ".explain() says what is guaranteed and what is left",
}
"""Names that analysts try, and what has what they look for."""


class DisplayedSession:
    """The representations of a session: one that reads no file, and the state as the ledger has it now."""

    _core: SessionCore
    _mechanisms: Any

    if not TYPE_CHECKING:  # a type checker refuses what is not offered, and names it

        def __getattr__(self, name: str) -> Any:
            own = [public for public in dir(type(self)) if not public.startswith("_")]
            if name.startswith("_") or name in own:
                raise AttributeError(name)
            hint = f"; {MEANT[name]}" if name in MEANT else did_you_mean(name, own)
            raise SessionAttributeError(f".{name} of a session: is not offered{hint}")

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


class BudgetReadings:
    """The readings of filter and odometers; every session inherits them."""

    _core: SessionCore

    @property
    def spent(self) -> Loss:
        """The loss charged so far by all kernels that use the ledger, in the filter's kind of loss.

        Under individual accounting, the worst case: the loss of a unit that every query affects in full, at most the
        budget.  Without a budget, in GDP.
        """
        spent: Loss = self._core.account.filter.spent
        return spent

    @property
    def headroom(self) -> float:
        """Fraction of the budget that remains, rounded down to six digits.

        Under individual accounting it is that of a unit that every query affects in full.  NaN without a budget.
        """
        return few_digits_down(self._core.account.filter.headroom)

    @property
    def accounting(self) -> Accounting:
        """``"worst-case"`` or ``"individual"``."""
        return "individual" if self._core.account.individual else "worst-case"

    @property
    def filter(self) -> Filter:
        """The filter in its current state; without a budget, an :class:`~dpnb.accounting.UnboundedFilter`."""
        return self._core.account.filter

    @property
    def odometer(self) -> Odometer:
        """The mixture odometer, whose parameters were fixed when the ledger was created.

        It can be read while interactive mechanisms are open.  Once there is a sub-session whose budget it cannot count,
        a Renyi loss of one order, it is an accumulator.
        """
        return self._core.account.odometer

    @property
    def odometers(self) -> Mapping[str, Odometer]:
        """All odometers that can count what was released so far, by name, with parameters that the ledger fixes.

        ======================  =====================================================================================
        spent                   accumulator: the sum that the filter has counted
        gdp-accumulator         accumulator: mu
        zcdp-accumulator        accumulator: rho
        rdp-accumulator         accumulator: the Renyi loss of one order
        approx-dp-accumulator   accumulator: epsilon
        mixture                 time-uniform: what `odometer` shows
        filter                  time-uniform: the line that is lowest when the budget is spent
        reflection              time-uniform, about the noisy values: only while everything is Gaussian, without a
                                delta, and no scan or sub-session was charged
        stitched, renyi         time-uniform
        rogers, basic           time-uniform: they add epsilons; only if a filter of that name can enforce the budget
        ======================  =====================================================================================

        Choose a time-uniform one before the first answer: each may be wrong with probability delta, and the smallest of
        several is wrong more often.  An accumulator may be chosen at any time, since each makes its own statement about
        budgets that were fixed beforehand.

        Examples
        --------
        >>> answer = df.count().release(mu=0.1)
        >>> session.odometers["zcdp-accumulator"].bound
        0.005
        """
        account = self._core.account
        return MappingProxyType({"spent": account.accumulator, **account.compared().odometers})

    def truncated_view(self, threshold: Number, *, odometer: str | None = None) -> TruncatedView:
        """The requests up to the launch with which an odometer would exceed a threshold; free.

        Those are as private as the threshold says, whatever came afterwards, if the threshold and the odometer were
        fixed before the first answer (Haney et al. 2023, Definition 1.13).  What comes later is not in the view,
        however cheap; of the mechanisms launched before, the answers up to that moment are.

        Parameters
        ----------
        threshold : Number
            At least 0, in the odometer's measure; fixed beforehand.
        odometer : str, optional
            A name in `odometers`, except ``"spent"``; by default the accumulator of the filter's kind of loss, or
            ``"mixture"``.

        Returns
        -------
        TruncatedView
            Its `messages` are ids of requests, as in the index of `log`; its `guarantee` is the loss.

        Raises
        ------
        ConversionError
            The odometer cannot count a loss in the view.
        InvalidValueError
            There is no such odometer, or the threshold is negative.

        Examples
        --------
        >>> answers = [df.count().release(mu=0.1), df["age"].mean().release(mu=0.1)]
        >>> view = session.truncated_view(0.12)
        >>> session.log.loc[list(view.messages), "query"].tolist(), view.guarantee
        (['count of rows'], GDP(mu=0.12))
        """
        return self._core.account.truncated_view(threshold, odometer)


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
        return session_explanation.of_session(self._core, spent, self._mechanisms.entries())


def refuse_report_of_a_part(kind: str, name: str) -> NoReturn:
    """Refuse a statement about a session inside another one."""
    raise RequestError(
        f"report: a disclosure statement is about everything that a ledger has released; {name!r} is a {kind}, whose "
        "requests are among those of the session that it belongs to; call report() of that session"
    )
