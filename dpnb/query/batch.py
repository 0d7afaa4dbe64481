"""A batch of queries, or a table with its margins, that can be previewed and released together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

from msgspec.structs import replace as replace_struct

from dpnb._core.batches import BatchPipeline
from dpnb._core.pricing.batch_design import Queries
from dpnb._core.pricing.previews import proposed_targets
from dpnb._plan.plan import describe_plan, group_keys
from dpnb._target import KINDS, Target, Within, named_arguments, target_from
from dpnb.accounting.exact import Number
from dpnb.copying import safe_repr
from dpnb.errors import PlanError, RequestError
from dpnb.query.largest_groups import PreviewedOnDisplay
from dpnb.query.query import Query
from dpnb.query.regression import RegressionQuery
from dpnb.query.studies import TableOneQuery
from dpnb.results.batch import BatchAnswer, BatchPreview, TableWithMargins, table_with_margins
from dpnb.results.display import to_html
from dpnb.results.tables.index import replaced
from dpnb.schema import Schema

A = TypeVar("A")
"""What a release returns."""

Widths = Within | Sequence[Within]
"""A half-width for all queries, or a list with one for each."""


@dataclass(frozen=True)
class BatchTarget:
    """The arguments of a batch as written; None for those that were not given."""

    mu: Number | None = None
    rho: Number | None = None
    epsilon: Number | None = None
    share: Number | None = None
    within: Widths | None = None
    confidence: Number | None = None
    simultaneous: bool | None = None
    final: bool | None = None

    @property
    def has_amount(self) -> bool:
        """Whether there is a target, not only options of the intervals."""
        return any(getattr(self, kind) is not None for kind in KINDS)

    def over(self, planned: BatchTarget) -> BatchTarget:
        """These arguments, and those of the plan where there are none; a target replaces that of the plan."""
        return replace(
            self if self.has_amount else planned,
            confidence=planned.confidence if self.confidence is None else self.confidence,
            simultaneous=planned.simultaneous if self.simultaneous is None else self.simultaneous,
            final=planned.final if self.final is None else self.final,
        )

    def of(self, queries: Queries) -> tuple[Target, ...]:
        """The target of each query; for a loss, that of the whole batch."""
        target = partial(
            target_from,
            confidence=0.95 if self.confidence is None else self.confidence,
            simultaneous=False if self.simultaneous is None else self.simultaneous,
            final=False if self.final is None else self.final,
        )
        within: Any = self.within
        if isinstance(within, list | tuple):
            if len(within) != len(queries):
                raise RequestError(
                    f"within: a list must have one half-width for each of the {len(queries)} queries; got {len(within)}"
                )
            return tuple(target(self.mu, self.rho, self.epsilon, self.share, width) for width in within)
        whole = target(self.mu, self.rho, self.epsilon, self.share, within)
        if whole.kind == "within":
            first, *rest = queries
            for plan, view in rest:
                if (plan.aggregation, view) != (first[0].aggregation, first[1]):
                    raise RequestError(
                        f"within: the {describe_plan(*first)} and the {describe_plan(plan, view)} may have different "
                        "units; give a list with one half-width for each query, as in within=[10, 0.5]"
                    )
        return (whole,) * len(queries)


NO_TARGET = BatchTarget()


class PlannedQueries(PreviewedOnDisplay, Generic[A]):
    """Several queries about the same rows, to be answered together: the common part of a batch and of margins.

    Parameters
    ----------
    queries : sequence of Query
        The queries, of one session.
    target : BatchTarget, optional
        The arguments that `preview` and `release` use if they get none.
    """

    __slots__ = ("_pipeline", "_planned", "_target", "queries")

    _kind = "a batch of queries"
    _released_type: ClassVar[type] = BatchAnswer

    if TYPE_CHECKING:  # of each subclass

        def _answer(self, answer: BatchAnswer) -> A:
            """What a release returns."""

    def __init__(self, queries: Sequence[Query], target: BatchTarget = NO_TARGET) -> None:
        first = queries[0]
        for query in queries:
            if query.runner is not first.runner:
                raise RequestError(
                    f"plan: all queries must be of one session; {query.description} is of another one; plan the "
                    "queries of each session separately"
                )
            if isinstance(query, RegressionQuery) and query.population:
                raise PlanError(
                    "plan: population=True of a regression is a second charge, after that of the coefficients; leave "
                    "it out, and measure the sampling error of the answer by .population(...)"
                )
            if isinstance(query, TableOneQuery):
                raise PlanError(
                    "plan: a table one cannot be part of a batch, in which groups share their noise: the intervals of "
                    "its differences need independent noise; release it alone"
                )
        self._pipeline: BatchPipeline = first.runner.batches
        self._planned = self._pipeline.plan([(query.plan, query.view) for query in queries])
        self._target = target
        self.queries = tuple(
            Query(plan, query.view, query.runner, is_two_way=query.is_two_way)
            for plan, query in zip(self._planned.workload.queries, queries, strict=True)
        )

    @property
    def description(self) -> str:
        """The batch in words."""
        return self._planned.description

    @named_arguments
    def preview(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
        within: Widths | None = None,
        confidence: Number | None = None,
        simultaneous: bool | None = None,
        final: bool | None = None,
    ) -> BatchPreview:
        """Cost and expected errors, beside the cost of separate releases with the same errors; free.

        Parameters
        ----------
        mu, rho, epsilon, share, within, confidence, simultaneous, final : optional
            As for `release`.  Without a target, here and in `dpnb.Session.plan`, the preview is that of 2% of what
            remains, or without a budget of mu 0.05.

        Raises
        ------
        RequestError, InvalidValueError, ErrorEstimateUnavailable
            As for `release`.

        Examples
        --------
        >>> batch = session.plan([df.groupby("plan").size(), df.count()])
        >>> batch.preview(within=100).saving > 1
        True
        """
        target = BatchTarget(mu, rho, epsilon, share, within, confidence, simultaneous, final).over(self._target)
        if not target.has_amount:
            proposed = proposed_targets(has_budget=self.queries[0].runner.account.guarantee.has_budget)
            second: dict[str, Any] = {kind: amounts[1] for kind, amounts in proposed.items()}
            target = replace(target, **second)
        return self._pipeline.preview(self._planned, target.of(self._planned.queries))

    @named_arguments
    def release(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
        within: Widths | None = None,
        confidence: Number | None = None,
        simultaneous: bool | None = None,
        final: bool | None = None,
    ) -> A:
        """Answer all queries from one charge; their tables add up.

        Which tables are measured with which noise is computed before, from the public declaration alone.  The identical
        batch with the identical arguments returns the recorded answers at no cost, in any kernel.  Afterwards each
        answer can be refined like any other; `dpnb.Session.reconcile` then restores the sums.

        Parameters
        ----------
        mu, rho, epsilon, share : Number, optional
            Loss of the whole batch, as for `Query.release`.  Exactly one of these and `within` is required, here or in
            `dpnb.Session.plan`.
        within : Number, mapping or list of them, optional
            Half-width of the intervals, as for `Query.release`: one for all queries, or a list with one for each.
        confidence, simultaneous, final : optional
            As for `Query.release`.

        Raises
        ------
        BudgetExceeded, RequestError, InvalidValueError, ErrorEstimateUnavailable, ExecutionError
            As for `Query.release`.

        Examples
        --------
        >>> batch = session.plan([df.groupby("plan").size(), df.count()])
        >>> by_plan, total = batch.release(mu=0.1)
        >>> bool(abs(by_plan.estimate.sum() - float(total)) < 1e-6)
        True
        """
        target = BatchTarget(mu, rho, epsilon, share, within, confidence, simultaneous, final).over(self._target)
        with self._pipeline.releases.executor.refusals_of(lambda: self.description):
            answer = self._pipeline.release(self._planned, target.of(self._planned.queries))
        shown = zip(self.queries, answer.answers, strict=True)
        answers = tuple(replaced(one, is_two_way=True) if query.is_two_way else one for query, one in shown)
        return self._answer(replace(answer, answers=answers))

    def _repr_html_(self) -> str:
        return to_html(self._static())  # without the time

    @safe_repr
    def __repr__(self) -> str:
        return f"<{self.description}; .preview() is free, .release(share=...) is charged>"


class Batch(PlannedQueries[BatchAnswer]):
    """Several queries about the same rows, to be answered together.  Free until it is released.

    Made by :meth:`dpnb.Session.plan`.

    Parameters
    ----------
    queries : sequence of Query
        The queries, of one session.
    target : BatchTarget, optional
        The arguments that `preview` and `release` use if they get none.

    Examples
    --------
    >>> batch = session.plan([df.groupby("plan").size(), df["age"].mean()], share=0.1)
    >>> batch.preview().fits
    True
    """

    __slots__ = ()

    def _answer(self, answer: BatchAnswer) -> BatchAnswer:
        return answer


# --- a table of groups with its margins -------------------------------------------------------------------------------


class MarginsQuery(PlannedQueries[TableWithMargins]):
    """A table of groups with its margins.  Free until it is released.

    Made by :func:`dpnb.crosstab` and :meth:`dpnb.Frame.pivot_table` with ``margins=True``.

    Parameters
    ----------
    cells : Query
        The table.
    n_rows : int
        Number of its levels that are rows; the others, at most one, are columns.
    name : str
        Name of the margins.
    schema : dict
        The columns of the table.

    Raises
    ------
    PlanError
        There are several levels of columns, or one of the keys has the name of the margins.

    Examples
    --------
    >>> query = dpnb.crosstab(df["plan"], df["age"] > 65, margins=True)
    >>> query.preview(share=0.1).fits
    True
    >>> query.release(share=0.1).estimate.shape
    (3, 3)
    """

    __slots__ = ("_name",)

    _released_type = TableWithMargins

    def __init__(self, cells: Query, n_rows: int, name: str, schema: Schema) -> None:
        levels = cells.plan.group_by
        rows, columns = levels[:n_rows], levels[n_rows:]
        if len(columns) > 1:
            raise PlanError(
                f"margins: needs at most one level of columns; got {', '.join(level.name for level in columns)}; move "
                "the others to the rows"
            )
        if any(name in key for key in group_keys(cells.plan, schema)):
            raise PlanError(f"margins_name: {name!r} is also the key of a group; give another name")
        groups = (levels, rows, columns, ()) if rows and columns else (levels, ())
        super().__init__(
            [Query(replace_struct(cells.plan, group_by=part), cells.view, cells.runner) for part in groups]
        )
        self._name = name

    def _answer(self, answer: BatchAnswer) -> TableWithMargins:
        return table_with_margins(answer, self._name)
