"""The methods of a session about several queries at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpnb._core.core import SessionCore
from dpnb._core.reconcile_answers import reconcile
from dpnb._target import named_arguments
from dpnb.accounting.exact import Number
from dpnb.errors import RequestError
from dpnb.query.batch import Batch, BatchTarget, Widths
from dpnb.query.query import Query
from dpnb.results.answer import Answer
from dpnb.results.batch import BatchAnswer, TableWithMargins
from dpnb.results.reconciled import Reconciliation


class Batches:
    """The batch methods; every session inherits them."""

    _core: SessionCore

    @named_arguments
    def plan(
        self,
        queries: Sequence[Query],
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
        within: Widths | None = None,
        confidence: Number = 0.95,
        simultaneous: bool = False,
        final: bool = False,
    ) -> Batch:
        """Plan several queries about the same rows as one batch, which costs less than separate releases.  Free.

        Tables by different groups share information: a table by two columns also estimates the totals of each of them.
        A batch measures totals, margins and cells with the noise that makes all requested errors cheapest, and
        estimates every query from all of them by weighted least squares, so that margins add up.  The six one- and
        two-way tables of three columns with 5, 4 and 10 values cost a third less than separately.

        The queries must be of one table with the same filter; they may have different groups and different
        aggregations.  They count the *complete rows* only, which have a declared value in every group column of the
        batch: otherwise a row without a town would count in the table by sex, but in no table by town.  The queries
        with this condition are `Batch.queries`; they are ordinary queries, which can be refined and repeated.

        Parameters
        ----------
        queries : list of Query
            Counts, sums, means, variances, quantiles and other aggregations of columns, also by groups.
        mu, rho, epsilon, share, within, confidence, simultaneous, final : optional
            The target of the batch, as for `Batch.release`; it may also be given there.

        Returns
        -------
        Batch
            With `preview` and `release`.

        Raises
        ------
        RequestError
            The list is empty or contains something else than queries of this session; the session uses individual
            accounting, or a filter that does not add mu squared; a query is one of shares.
        PlanError
            The queries are about different rows, their groups are not public combinations, a query cannot be part of a
            batch (discoveries and counts of units), or a limit on groups or the norm of a unit makes the rows that
            count differ between the tables.

        References
        ----------
        .. [1] Li, Miklau, Hay, McGregor, Rastogi 2015, *The matrix mechanism: optimizing linear counting queries under
           differential privacy*.
        .. [2] McKenna, Miklau, Hay, Machanavajjhala 2018, *Optimizing error of high-dimensional statistical queries
           under differential privacy* (HDMM).
        .. [3] Xiao, He, Zhang, Kifer 2023, *An optimal and scalable matrix mechanism for noisy marginals under convex
           loss functions* (ResidualPlanner).

        Examples
        --------
        >>> batch = session.plan([df.groupby("plan").size(), df.groupby("plan")["cost"].mean(), df.count()])
        >>> sizes, means, total = batch.release(share=0.1)
        >>> bool(abs(sizes.estimate.sum() - float(total)) < 1e-6)
        True
        >>> finer = sizes.refine(mu=0.2)
        """
        listed: Any = queries
        if not isinstance(listed, list | tuple) or not listed or not all(isinstance(one, Query) for one in listed):
            raise RequestError(
                f"plan: needs a list of queries, such as [df.count(), df.groupby('x').size()]; got {_shown(listed)}"
            )
        foreign = [query for query in listed if query.runner is not self._core]
        if foreign:
            raise RequestError(
                f"plan: all queries must be of this session; {foreign[0].description} is of another one; plan it there"
            )
        return Batch(listed, BatchTarget(mu, rho, epsilon, share, within, confidence, simultaneous, final))

    def reconcile(self, answers: Sequence[Answer] | BatchAnswer | TableWithMargins | None = None) -> Reconciliation:
        """Reconcile the estimates of earlier answers, so that tables of the same rows add up.  Free.

        The estimates are recomputed by weighted least squares from all measurements of the answers' queries, also after
        an answer of a batch was refined.  Their intervals are those of the answers and do not shrink: weighted least
        squares has shorter intervals only if queries and budgets were fixed before any answer was seen, as in a batch
        (`plan`); here they may have been chosen because of earlier answers.

        Parameters
        ----------
        answers : list of Answer, BatchAnswer or TableWithMargins, optional
            Answers of one statistic of the same rows.  By default all answers of this session to queries that add up
            with another one.

        Returns
        -------
        Reconciliation
            The estimates in the order of the answers, each with the interval of its answer.

        Raises
        ------
        RequestError
            Something in the list is not an answer of this session; some groups of it were refined separately; or there
            are no two queries whose tables add up.
        PlanError
            The answers are about different rows: rows without a value of a group column do not count in its groups.

        Examples
        --------
        >>> is_old = df["age"].fillna(0) > 65
        >>> answers = [df.count().release(mu=0.1), df.groupby(is_old).size().release(mu=0.1)]
        >>> total, by_age = session.reconcile(answers)
        >>> bool(abs(by_age.estimate.sum() - float(total)) < 1e-6)
        True
        """
        listed: Any = answers
        if isinstance(listed, TableWithMargins):
            listed = listed.batch
        if listed is not None and not isinstance(listed, list | tuple | BatchAnswer):
            raise RequestError(
                f"reconcile: needs a list of answers; got {_shown(listed)}; leave it out for all answers"
            )
        return reconcile(self._core.releases, None if listed is None else list(listed))


def _shown(value: object) -> str:
    if isinstance(value, list | tuple):
        other = next((one for one in value if not isinstance(one, Query)), None)
        return "an empty list" if other is None else f"a list with {_with_article(other)}"
    return _with_article(value)


def _with_article(value: object) -> str:
    name = type(value).__name__
    return f"{'an' if name[:1].lower() in 'aeiou' else 'a'} {name}"
