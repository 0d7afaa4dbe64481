"""A query that can be previewed and released."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager, suppress
from fractions import Fraction
from typing import Any, ClassVar

from msgspec.structs import replace as replace_fields

from dpnb._core.core import SessionCore
from dpnb._core.execution.selections import counts_groups
from dpnb._core.pricing.influence import with_products
from dpnb._core.pricing.previews import count_to_release, explain, preview_each, previews
from dpnb._plan.measurements import AnyView, Count, CumulativeCount, PlainView, StandardErrorView
from dpnb._plan.plan import Plan, in_words, title_of
from dpnb._request import ALWAYS, Conditions, Release
from dpnb._target import Target, Within, named_arguments, target_from
from dpnb.accounting.exact import Number
from dpnb.errors import DpnbError, PlanError, RequestError
from dpnb.query.arranged import ArrangedQuery, Arrangements, step
from dpnb.query.largest_groups import LargestGroups, SelectionMethods
from dpnb.results.answer import Answer
from dpnb.results.display import Explanation
from dpnb.results.estimates.outputs import outputs_of
from dpnb.results.preview import Amounts, Preview, Previewable, Previews
from dpnb.results.tables.index import replaced


def checked_query(runner: SessionCore, plan: Plan, view: AnyView) -> Query:
    """A query of a session's tables; its sensitivity must be bounded, and its rows must be those of this part."""
    runner.check(plan, view)
    return Query(plan, view, runner)


class Query(Previewable, Arrangements, SelectionMethods):
    """A query of a session.  Free until it is released.

    A query is not a number: arithmetic, comparisons, ``float``, formatting and the methods of an answer raise
    `NotReleasedError`, which shows the release.

    Parameters
    ----------
    plan : Plan
        What is measured; serialisable, without data.
    view : AnyView
        The statistics that are computed from the measurement.
    runner : SessionCore
        The core of the session.
    is_two_way : bool, default False
        Whether answers are displayed with the last level of the groups as columns.

    Examples
    --------
    >>> import dpnb
    >>> session = dpnb.Session.rehearse(
    ...     name="people", budget=dpnb.Budget(epsilon=1, delta=1e-6), schema={"age": dpnb.Bounded(0, 100)}
    ... )
    >>> query = session.frame["age"].mean()
    >>> query.description
    'mean of age'
    >>> query.preview(mu=0.1).fits
    True
    """

    __slots__ = ("is_two_way", "plan", "runner", "view")

    runner: SessionCore
    _released_type: ClassVar[type] = Answer

    def __init__(self, plan: Plan, view: AnyView, runner: SessionCore, *, is_two_way: bool = False) -> None:
        self.is_two_way = is_two_way
        self.plan = plan
        self.view = view
        self.runner = runner

    @property
    def description(self) -> str:
        """The query in words."""
        return title_of(self.plan, self.view, self.runner.tables.unit(self.plan.source).contribution_bounds)

    def _head_words(self) -> str:
        if not self.plan.group_by or outputs_of(self.view) is not None:
            return super()._head_words()
        return ".nlargest(3); the groups are in their declared order, of which .head() has the first"

    def _preview_of(self, amounts: Amounts, options: dict[str, Any]) -> Preview | Previews:
        return preview_each(self.runner.pricer, self.plan, amounts, options, self._previewed)

    def _previewed(self, targets: Iterable[Target]) -> list[Preview]:
        return previews(self.runner.pricer, self.plan, self.view, targets, self.runner.notice)

    @named_arguments
    def release(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
        within: Within | None = None,
        confidence: Number = 0.95,
        simultaneous: bool = False,
        final: bool = False,
        groups: object = None,
    ) -> Answer:
        """Answer the query at least as precisely as the target requires, and charge the additional loss.

        The identical arguments return the recorded answer at no cost, in any kernel.  A tighter target costs the
        difference; a looser one is free.

        Parameters
        ----------
        mu, rho, epsilon : Number, optional
            Total loss of this query, including earlier releases: in GDP, in zCDP (mu = sqrt(2 rho)), or the mu that
            gives epsilon at the budget's delta.  Exactly one of `mu`, `rho`, `epsilon`, `share` and `within` is
            required.
        share : Number, optional
            Share of the remaining budget, in (0, 1]; 1 spends all of it.
        within : Number or mapping, optional
            Half-width of the noise interval, in the answer's units (for quantiles, in rows of rank), for every group.
            A mapping such as ``within={"free": 0.1, "95": 0.3}`` sets it for single groups or statistics only.  For
            sums, counts and quantiles it is met exactly.  If the error depends on the data (means, ratios,
            regressions), a public or released number of rows or an earlier observation is needed: the request is
            refused if the interval might be more than 1.2 times as wide as requested, or the cost more than 1.5 times
            what is needed.
        confidence : Number, default 0.95
            Confidence of each single interval.
        simultaneous : bool, default False
            Whether all intervals of the answer hold at once with that confidence (by the union bound; for discovered
            groups exactly, given which are named).
        final : bool, default False
            Whether the interval uses the whole confidence for this observation; the query cannot be refined afterwards.
            Otherwise the interval of the first observation is about 5% wider, to allow for refinements.
        groups : list, optional
            Keys of the groups to which the target applies; the others stay unchanged.  Not for a first observation.

        Raises
        ------
        BudgetExceeded
            If the filter refuses; nothing was charged.  The message names the largest budget that fits.
        RequestError
            If there is not exactly one target, the target is impossible, or the query was released with ``final=True``.
        InvalidValueError
            If a number is not finite and positive.
        ErrorEstimateUnavailable
            If ``within=`` is given for an error that depends on something that was not released.
        ExecutionError
            If the query failed after the charge; the charge stands, and the same request resumes it.

        Examples
        --------
        >>> answer = df["age"].mean().release(mu=0.1)
        >>> answer.cost
        GDP(mu=0.1)
        >>> session.headroom < 1
        True
        """
        with self._recorded_refusals():
            keys = self.runner.tables.group_keys(self.plan, groups)
            target = target_from(mu, rho, epsilon, share, within, confidence, simultaneous, final, keys)
            return self._released(target)

    def _recorded_refusals(self) -> AbstractContextManager[None]:
        """Record in the log what is refused in the block."""
        return self.runner.executor.refusals_of(
            lambda: self.description, lambda words: in_words(words, self.plan, self.view)
        )

    def _released(self, target: Target, at_most: Fraction | None = None) -> Answer:
        """As `release`, but refused if it costs more than `at_most`, as mu squared."""
        answer = self.runner.releases.release(
            Release(self.plan, self.view, target), ALWAYS if at_most is None else Conditions(at_most=at_most)
        )
        return replaced(answer, is_two_way=True) if self.is_two_way else answer

    def _arranged(self, name: str, **options: tuple[object, object]) -> ArrangedQuery:
        return ArrangedQuery(self, (step(name, options),))

    def idxmax(self) -> LargestGroups | ArrangedQuery:
        """The key of the largest group: of a count, selected as by ``top(1)``; free until it is released.

        Of another query it is that of the answer, as `dpnb.Answer.idxmax`, when the query is released.

        Raises
        ------
        PlanError
            There is only one group.

        Examples
        --------
        >>> df["plan"].value_counts().idxmax().release(epsilon=0.1).key in ("free", "paid")
        True
        """
        is_count = counts_groups(self.plan, self.view)
        return self._largest_groups(1, "idxmax") if is_count else self._arranged("idxmax")

    def unstack(self, level: object = -1, fill_value: object = None) -> Query:
        """The same query, whose answers are two-way tables: the last level of the groups as columns.  Free.

        Parameters
        ----------
        level : int or str, default -1
            The last level; an answer's `unstack` takes any.
        fill_value : object, optional
            Has no effect: every pair of declared values has an estimate.

        Raises
        ------
        PlanError
            The query does not have groups of several levels with one number each, or `level` is not the last one.

        Examples
        --------
        >>> query = df.groupby(["plan", df["age"] > 65]).size().unstack()
        >>> query.release(mu=0.1).estimate.shape
        (2, 2)
        """
        if len(self.plan.group_by) < 2 or outputs_of(self.view) is not None:
            raise PlanError(
                f"unstack: needs groups of several levels, with one number each; got {self.description}; group by two "
                "columns, as in df.groupby(['a', 'b']).size().unstack()"
            )
        names = [group.name for group in self.plan.group_by]
        if level not in (-1, len(names) - 1, names[-1]):
            raise PlanError(
                f"unstack: level={level!r} is not offered before a release; answers have it, as in "
                f".release(share=0.01).unstack({level!r})"
            )
        return Query(self.plan, self.view, self.runner, is_two_way=True)

    def cumsum(self) -> Query:
        """The number of rows in each group and in all groups before it, such as a total by month; free until released.

        The groups add up in their declared order, in one release whose totals share their noise.  It is much smaller
        than that of noisy counts which are added up (Fichtenberger, Henzinger and Upadhyay 2023).

        Raises
        ------
        PlanError
            The query is not a count of rows in groups of one level, of which there are at most 4,096.

        Examples
        --------
        >>> totals = df.groupby("plan").size().cumsum()
        >>> totals.description
        'cumulative count of rows by plan'
        >>> len(totals.release(mu=0.1).estimate)
        2
        """
        if not isinstance(self.plan.aggregation, Count) or not isinstance(self.view, PlainView):
            raise PlanError(
                f"cumsum: adds up counts of rows in groups; got the {self.description}; write it as in "
                "df.groupby('month').size().cumsum()"
            )
        aggregation = CumulativeCount(self.plan.aggregation.column)
        return checked_query(self.runner, replace_fields(self.plan, aggregation=aggregation), PlainView())

    @property
    def count_needed(self) -> Query | None:
        """The count of rows to release first, after which the expected error is known; None if none is needed.  Free.

        The error of a mean or a share depends on the number of rows, which is private.  Without a public number of
        rows, it is known once the count of the same rows in the same groups was released.  That count is returned
        after its release too, so that a cell that releases it can be run again, at no cost.

        Examples
        --------
        >>> query = df[df["age"] > 65]["cost"].mean()
        >>> query.count_needed.description
        'count of cost where age > 65'
        >>> answer = query.count_needed.release(share=0.1)
        >>> query.preview(mu=0.1).count_needed is None  # the error is known now
        True
        """
        plan = count_to_release(self.runner.pricer, self.plan, self.view)
        return None if plan is None else Query(plan, PlainView(), self.runner)

    def explain(self) -> Explanation:
        """What one privacy unit contributes, what is clipped, and why the noise is this large.  Free.

        Examples
        --------
        >>> df["age"].mean().explain()
        mean of age
          contribution: one person adds 1 to the count for each row; at most 50 to the sum of age minus 50 for
                        each row (at most 2 rows)
          clipped:      age to 0 ... 100; the contribution of one person: at most 2 rows
          not counted:  rows beyond the 2nd of one person are not counted
          worst case:   its rows at their bounds, 2 in one group: 2 times one row
          noise:        at mu=1, standard deviation of 2.828 in the number of rows; 141.4 in the sum of age
          intervals:    cover the noise, in this table: not sampling, clipping, or rows that do not count
          less noise:   half the noise costs four times the budget; mu=0.5 gives twice the noise
        """
        return Explanation(*explain(self.runner.pricer, self.plan, self.view))

    def _has_answer(self) -> bool:
        with suppress(DpnbError):  # the ledger cannot be read
            return self.best is not None
        return False

    @property
    def answer(self) -> Answer:
        """The answer of this query, however it was released: all observations combined, at 95% confidence.  Free.

        After a release by the button of the picker it is what the picker shows.  ``query.plot()`` draws it.

        Raises
        ------
        RequestError
            Nothing was released yet.

        Examples
        --------
        >>> query = df.count()
        >>> query.release(mu=0.1).item() == query.answer.item()
        True
        """
        best = self.best
        if best is None:
            raise RequestError(
                f".answer of {self.description}: nothing was released yet; .preview() shows costs and expected errors, "
                "and .release(share=0.05) releases it for 5% of what is left"
            )
        return best

    @property
    def best(self) -> Answer | None:
        """All observations of this query, combined, at 95% confidence; None before the first release.  Free.

        Unlike a repeated `release`, this changes with each new observation.
        """
        answer = self.runner.releases.best(self.plan, self.view)
        return answer if answer is None or not self.is_two_way else replaced(answer, is_two_way=True)

    @property
    def unanswered(self) -> list[dict[str, Any]]:
        """Targets that were charged but never answered, after a crash or an interrupt.  Releasing them again is free.

        Each target is a dict of arguments of `release`, for example ``{"mu": Fraction(1, 5)}``.
        """
        return [target.to_arguments() for target in self.runner.releases.unanswered(self.plan, self.view)]


# --- queries that also measure the sampling error of a sum, mean or ratio ---------------------------------------------


def with_population(query: Query, wanted: object) -> Query:
    """The query with the measurement of its sampling error, if that is wanted and does not follow from the answer."""
    if not isinstance(wanted, bool):
        raise PlanError(f"population: must be True or False; got {wanted!r}")
    return _measured(query) if wanted else query


def standard_error(query: Query) -> Query:
    """The standard error of a mean."""
    plan = _measured(query, always=True).plan
    return checked_query(query.runner, plan, StandardErrorView())


def _measured(query: Query, *, always: bool = False) -> Query:
    tables = query.runner.tables
    compiled, source = tables.compile(query.plan), query.plan.source
    aggregation = with_products(compiled, tables.unit(source), tables.schema(source), always=always)
    if aggregation is None:
        return query
    return checked_query(query.runner, replace_fields(query.plan, aggregation=aggregation), query.view)
