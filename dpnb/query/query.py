"""A query that can be previewed and released."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from typing import Any, ClassVar, TypedDict, Unpack, overload

from msgspec.structs import replace as replace_fields

from dpnb._core.core import SessionCore
from dpnb._core.pricing.previews import count_to_release, explain, previews
from dpnb._plan.measurements import AnyView, Count, CumulativeCount, PlainView
from dpnb._plan.plan import Plan, title_of
from dpnb._request import ALWAYS, Conditions, Release
from dpnb._target import KINDS, Target, TargetKind, Within, named_arguments, refuse_kinds, target_from, target_of
from dpnb.accounting.exact import Number
from dpnb.copying import safe_repr
from dpnb.errors import PlanError, RequestError
from dpnb.query.largest_groups import SelectionMethods
from dpnb.query.recorded import RecordedAnswers
from dpnb.results.answer import Answer
from dpnb.results.display import Explanation
from dpnb.results.estimates.outputs import outputs_of
from dpnb.results.preview import Preview, Previews

PICKER_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Shares of the remaining budget that are proposed."""

PICKER_MUS = (0.02, 0.05, 0.1, 0.2, 0.5)
"""What is proposed without a budget, of which there are no shares."""


def checked_query(runner: SessionCore, plan: Plan, view: AnyView) -> Query:
    """A query of a session's tables; its sensitivity must be bounded, and its rows must be those of this part."""
    runner.check(plan, view)
    return Query(plan, view, runner)


def proposed_targets(*, has_budget: bool) -> dict[TargetKind, tuple[float, ...]]:
    """The amounts of the targets that a preview without arguments shows, by their kind."""
    return {"share": PICKER_STEPS} if has_budget else {"mu": PICKER_MUS}


class PreviewOptions(TypedDict, total=False):
    """The arguments of a preview other than its target, for the overloads of `Query.preview`."""

    confidence: Number
    simultaneous: bool
    final: bool
    groups: object


class PreviewTarget(PreviewOptions, total=False):
    """One target."""

    mu: Number | None
    rho: Number | None
    epsilon: Number | None
    share: Number | None
    within: Within | None


class PreviewTargets(PreviewOptions, total=False):
    """Several amounts of one target."""

    mu: Sequence[Number]
    rho: Sequence[Number]
    epsilon: Sequence[Number]
    share: Sequence[Number]
    within: Sequence[Within]


class Query(RecordedAnswers, SelectionMethods):
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

    @overload
    def preview(self, **options: Unpack[PreviewOptions]) -> Previews: ...
    @overload
    def preview(self, **target: Unpack[PreviewTarget]) -> Preview: ...
    @overload
    def preview(self, **targets: Unpack[PreviewTargets]) -> Previews: ...
    @named_arguments
    def preview(
        self,
        *,
        mu: Any = None,
        rho: Any = None,
        epsilon: Any = None,
        share: Any = None,
        within: Any = None,
        confidence: Number = 0.95,
        simultaneous: bool = False,
        final: bool = False,
        groups: object = None,
    ) -> Preview | Previews:
        """Cost, expected error and remaining budget of a release with the same arguments; free, and without the table.

        A list of amounts, as in ``preview(mu=[0.1, 0.2, 0.5])``, gives a table; without a target, the table shows
        several shares of the remaining budget, or several values of mu without a budget.

        Parameters
        ----------
        mu, rho, epsilon, share, within : Number, mapping or list of them, optional
            The target, as for `release`: at most one of them.
        confidence, simultaneous, final, groups : optional
            As for `release`.

        Raises
        ------
        RequestError, InvalidValueError, ErrorEstimateUnavailable
            As for `release`.

        Examples
        --------
        >>> query = df["age"].mean()
        >>> query.preview(mu=0.1).cost
        GDP(mu=0.1)
        >>> len(query.preview(mu=[0.05, 0.1]).to_pandas())
        2
        """
        account, tables = self.runner.account, self.runner.tables
        values = zip(KINDS, (mu, rho, epsilon, share, within), strict=True)
        given: dict[TargetKind, Any] = {kind: value for kind, value in values if value is not None}
        if not given:
            given |= proposed_targets(has_budget=account.guarantee.has_budget)
        lists = [kind for kind, value in given.items() if isinstance(value, list | tuple)]
        if len(lists) > 1:
            raise RequestError(f"preview: one target may be a list; got {' and '.join(lists)}")
        if lists and not given[lists[0]]:
            raise RequestError(f"preview: {lists[0]} must name at least one amount; got an empty list")
        options = confidence, simultaneous, final, tables.group_keys(self.plan, groups)
        if not lists:
            return self._previewed([target_from(mu, rho, epsilon, share, within, *options, verb="preview")])[0]
        if len(given) > 1:
            refuse_kinds({**given, lists[0]: given[lists[0]][0]}, "preview")
        targets = (target_of(lists[0], amount, *options) for amount in given[lists[0]])
        return Previews(tuple(self._previewed(targets)))

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
        return self.runner.executor.refusals_of(lambda: self.description)

    def _released(self, target: Target, at_most: Fraction | None = None) -> Answer:
        """As `release`, but refused if it costs more than `at_most`, as mu squared."""
        answer = self.runner.releases.release(
            Release(self.plan, self.view, target), ALWAYS if at_most is None else Conditions(at_most=at_most)
        )
        return replace(answer, is_two_way=True) if self.is_two_way else answer

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
        >>> import dpnb
        >>> session = dpnb.Session.rehearse(
        ...     name="people",
        ...     budget=dpnb.Budget(epsilon=1, delta=1e-6),
        ...     schema={"plan": dpnb.Categories(["free", "paid"]), "side": dpnb.Categories(["north", "south"])},
        ... )
        >>> query = session.frame.groupby(["plan", "side"]).size().unstack()
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
        >>> import dpnb
        >>> session = dpnb.Session.rehearse(
        ...     name="people", budget=dpnb.Budget(epsilon=1, delta=1e-6), schema={"age": dpnb.Bounded(0, 100)}
        ... )
        >>> query = session.frame["age"].mean()
        >>> query.count_needed.description
        'count of age'
        >>> answer = query.count_needed.release(share=0.01)
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

    @safe_repr
    def __repr__(self) -> str:
        return f"<query: {self.description}; .preview() is free, .release(mu=...) is charged>"
