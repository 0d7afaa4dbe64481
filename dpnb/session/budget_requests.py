"""Asking the curator of a service for a larger cap, and looking at the answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpnb._core.accountant.budget_request import BudgetRequest, RequestStatus
from dpnb._core.core import SessionCore
from dpnb._core.requesting import ask_service
from dpnb._request import Release
from dpnb._target import TargetKind, Within, target_of
from dpnb.accounting.exact import Number
from dpnb.copying import NotCopyable, safe_repr
from dpnb.errors import RequestError, printable
from dpnb.query.batch import Widths
from dpnb.query.query import Query
from dpnb.render.page import box_html, title_html
from dpnb.render.tables import facts_html, facts_text

if TYPE_CHECKING:
    import pandas as pd


class RequestedBudget(NotCopyable):
    """A request for budget, with what the curator has decided so far; `session.request_budget` makes it.

    Parameters
    ----------
    core : SessionCore
        The session.
    number : int
        Number of the request's row in the session's ledger.

    Examples
    --------
    >>> session.budget_requests.columns.tolist()[:4]  # all of them, as a table
    ['queries', 'cost', 'why', 'status']
    """

    _not_copied = "it follows the ledger of a service; call session.budget_requests"

    def __init__(self, core: SessionCore, number: int) -> None:
        self._core, self.number = core, number

    @property
    def _request(self) -> BudgetRequest:
        return self._core.account.tree.budget_requests()[self.number]

    @property
    def status(self) -> RequestStatus:
        """``pending``, ``approved``, ``approved in part``, ``declined``, or ``lapsed`` after the end of an approval."""
        return self._request.status(self._core.account.ledger.time_in())

    @property
    def reason(self) -> str | None:
        """The curator's reason; None before the decision."""
        decision = self._request.decision
        return None if decision is None else printable(decision.why)

    @property
    def until(self) -> str | None:
        """When an approval lapses, UTC in ISO 8601; None if it does not, or there is none."""
        decision = self._request.decision
        return None if decision is None else decision.until

    @safe_repr
    def __repr__(self) -> str:
        return "\n".join(
            [f"request {self.number} for budget: {self.status}", *facts_text(self._facts(), 10, indent="  ")]
        )

    def _repr_html_(self) -> str:
        return box_html(
            self._core.notice, title_html(f"Request {self.number} for budget", self.status), facts_html(self._facts())
        )

    def _facts(self) -> list[tuple[str, str]]:
        one = self._request
        facts = [("query", f"{query.words} at {query.target}: {query.error}") for query in one.queries]
        facts += [("cost", one.total.format(up=True)), ("why", printable(one.why))]
        if one.decision is not None and one.decision.amount is not None:
            facts.append(("granted", one.decision.amount.format(up=False)))
        return facts + [(name, text) for name, text in (("until", self.until), ("reason", self.reason)) if text]


class BudgetRequests:
    """The methods about requests for budget; every session inherits them."""

    _core: SessionCore

    def request_budget(
        self,
        *queries: Query,
        why: str,
        within: Widths | None = None,
        mu: Number | Sequence[Number] | None = None,
        rho: Number | Sequence[Number] | None = None,
        epsilon: Number | Sequence[Number] | None = None,
        confidence: Number = 0.95,
        simultaneous: bool = False,
    ) -> RequestedBudget:
        """Ask the curator of a service to raise your cap by what some queries cost.  Free.

        The curator sees the queries in words, their costs and expected errors, which the service computes, and your
        reason; then approves the request, approves a part of it, perhaps until some date, or declines it.  The answer
        arrives in this session without a further call.  An approval raises the cap; the queries are then released as
        usual, and others may be released instead.

        Parameters
        ----------
        *queries : Query
            Up to 20 queries of this session.
        why : str
            The reason, which the curator reads: at most 500 printable characters.
        within, mu, rho, epsilon : Number, mapping or list, optional
            The target of the queries, as for :meth:`Query.release`; exactly one is required.  A list has the target of
            each query.  There is no ``share=``, since a share of what is left needs no request.
        confidence : Number, default 0.95
            Confidence of the intervals.
        simultaneous : bool, default False
            Whether all intervals of an answer hold at once with that confidence.

        Returns
        -------
        RequestedBudget
            With `status`, `reason` and `until`, which follow the curator's decision.  The same request that is pending
            already is returned again.

        Raises
        ------
        RequestError
            The session is not one of a service; an argument is invalid; nothing can be granted, since no cap limits you
            or it is as high as it can be; a query costs nothing; or ten requests are pending.

        Examples
        --------
        >>> import textwrap
        >>> try:
        ...     session.request_budget(df["age"].mean(), within=0.5, why="the report on waiting times")
        ... except dpnb.errors.RequestError as error:
        ...     print(textwrap.shorten(str(error), 84, placeholder=" ..."))
        request_budget: needs a curator who can answer, and this session has a ledger of ...
        """
        given: tuple[object, ...] = queries
        wrong = next((one for one in given if not isinstance(one, Query) or one.runner is not self._core), None)
        if wrong is not None:
            shown = wrong.description if isinstance(wrong, Query) else type(wrong).__name__
            raise RequestError(
                f"request_budget: needs queries of this session, such as df['age'].mean(); got {shown}; make the query "
                "from this session's frame"
            )
        kind, amounts = _amounts({"within": within, "mu": mu, "rho": rho, "epsilon": epsilon}, len(queries))
        requested = [
            Release(query.plan, query.view, target_of(kind, amount, confidence, simultaneous))
            for query, amount in zip(queries, amounts, strict=True)
        ]
        return RequestedBudget(self._core, ask_service(self._core, requested, why))

    @property
    def budget_requests(self) -> pd.DataFrame:
        """The requests for budget in this session's ledger, oldest first, with what was decided.  Free.

        Returns
        -------
        DataFrame
            One row for each request, by its number, with the columns ``queries`` and ``cost``, in words; ``why``;
            ``status``, which is ``pending``, ``approved``, ``approved in part``, ``declined`` or ``lapsed``; the
            curator's ``reason``; ``granted``, what was added to the cap, in words; ``until``, when that lapses;
            ``time``; and ``analyst``, where analysts share a budget.

        Examples
        --------
        >>> session.budget_requests.empty
        True
        """
        import pandas as pd  # imported when first used

        account = self._core.account
        made = list(account.tree.budget_requests().values()) if account.root_node == "" else []
        now, decisions = account.ledger.time_in(), [one.decision for one in made]
        columns = {
            "queries": ["; ".join(f"{query.words} at {query.target}" for query in one.queries) for one in made],
            "cost": [one.total.format(up=True) for one in made],
            "why": [printable(one.why) for one in made],
            "status": [one.status(now) for one in made],
            "reason": [None if one is None else printable(one.why) for one in decisions],
            "granted": [
                None if one is None or one.amount is None else one.amount.format(up=False) for one in decisions
            ],
            "until": [None if one is None else one.until for one in decisions],
            "time": pd.to_datetime([one.time for one in made], utc=True),
            "analyst": [one.analyst or None for one in made],
        }
        return pd.DataFrame(columns, index=pd.Index([one.id for one in made], name="number"))


def _amounts(given: Mapping[TargetKind, Widths | None], count: int) -> tuple[TargetKind, Sequence[Within]]:
    """The kind of the targets, and the amount of each query: one for all, or a list."""
    kinds = [kind for kind, amount in given.items() if amount is not None]
    if len(kinds) != 1:
        raise RequestError(
            f"request_budget: give exactly one of within=, mu=, rho= and epsilon=; got {', '.join(kinds) or 'none'}; "
            "make several requests for several kinds"
        )
    amount: Any = given[kinds[0]]
    if not isinstance(amount, list | tuple):
        return kinds[0], [amount] * count
    if len(amount) != count:
        raise RequestError(
            f"{kinds[0]}: a list must have the target of each query; got {len(amount)} for {count} queries; correct it"
        )
    return kinds[0], amount
