"""A batch of queries, or a table with its margins, that can be previewed and released together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

from msgspec.structs import replace as replace_struct

from dpnb._core.batches import BatchPipeline
from dpnb._core.pricing.target import KINDS, proposed_targets
from dpnb._core.query import Query
from dpnb._plan.plan import group_keys
from dpnb._plan.unreleased import Unreleased
from dpnb.accounting.exact import Number
from dpnb.copying import NotCopyable, safe_repr
from dpnb.errors import DpnbError, PlanError, RequestError
from dpnb.results.batch import BatchAnswer, BatchPreview, TableWithMargins, table_with_margins
from dpnb.results.display import to_html
from dpnb.schema import Schema

Within = Number | Mapping[Any, Number] | Sequence[Number | Mapping[Any, Number]]
"""A half-width for all queries, or a list with one for each."""


class PlannedQueries(Unreleased, NotCopyable):
    """Several queries about the same rows, to be answered together: the common part of a batch and of margins.

    Parameters
    ----------
    queries : sequence of Query
        The queries, of one session.
    target : mapping, optional
        The arguments that `preview` and `release` use if they get none.
    """

    __slots__ = ("_pipeline", "_planned", "_target", "queries")

    _kind = "a batch of queries"
    _released_type: ClassVar[type] = BatchAnswer

    def __init__(self, queries: Sequence[Query], target: Mapping[str, Any] | None = None) -> None:
        first = queries[0]
        for query in queries:
            if query.runner is not first.runner:
                raise RequestError(
                    f"plan: all queries must be of one session; {query.description} is of another one; plan the "
                    "queries of each session separately"
                )
        self._pipeline: BatchPipeline = first.runner.batches
        self._planned = self._pipeline.plan([(query.plan, query.view) for query in queries])
        self._target = dict(target or {})
        self.queries = tuple(
            Query(plan, query.view, query.runner, is_two_way=query.is_two_way)
            for plan, query in zip(self._planned.workload.queries, queries, strict=True)
        )

    @property
    def description(self) -> str:
        """The batch in words."""
        return self._planned.description

    def _query_words(self) -> str:
        return self.description

    def preview(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
        within: Within | None = None,
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
        given = {"mu": mu, "rho": rho, "epsilon": epsilon, "share": share, "within": within}
        if all(value is None for value in given.values()) and not any(name in self._target for name in KINDS):
            kind, amounts = proposed_targets(has_budget=self.queries[0].runner.account.guarantee.has_budget)
            given = {kind: amounts[1]}
        return self._pipeline.preview(
            self._planned, **self._arguments(given, confidence=confidence, simultaneous=simultaneous, final=final)
        )

    def _release(self, target: Mapping[str, Any], **options: Any) -> BatchAnswer:
        answer = self._pipeline.release(self._planned, **self._arguments(target, **options))
        shown = zip(self.queries, answer.answers, strict=True)
        return replace(
            answer, answers=tuple(replace(one, is_two_way=True) if query.is_two_way else one for query, one in shown)
        )

    def _arguments(self, target: Mapping[str, Any], **options: Any) -> dict[str, Any]:
        """The arguments of a request: those that were given, otherwise those of the batch."""
        given = {name: value for name, value in target.items() if value is not None}
        planned = {name: value for name, value in self._target.items() if not (given and name in KINDS)}
        return {**planned, **given, **{name: value for name, value in options.items() if value is not None}}

    def _static(self) -> BatchPreview | DpnbError:
        """The preview without arguments."""
        try:
            return self.preview()
        except DpnbError as error:  # displaying a batch never raises
            return error

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self) if cycle else str(self._static()))

    def _repr_html_(self) -> str:
        """The preview, for front ends without widgets."""
        return to_html(self._static())

    @safe_repr
    def __repr__(self) -> str:
        return f"<{self.description}; .preview() is free, .release(share=...) is charged>"


class Batch(PlannedQueries):
    """Several queries about the same rows, to be answered together.  Free until it is released.

    Made by :meth:`dpnb.Session.plan`.

    Parameters
    ----------
    queries : sequence of Query
        The queries, of one session.
    target : mapping, optional
        The arguments that `preview` and `release` use if they get none.

    Examples
    --------
    >>> batch = session.plan([df.groupby("plan").size(), df["age"].mean()], share=0.1)
    >>> batch.preview().fits
    True
    """

    __slots__ = ()

    def release(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
        within: Within | None = None,
        confidence: Number | None = None,
        simultaneous: bool | None = None,
        final: bool | None = None,
    ) -> BatchAnswer:
        """Answer all queries from one charge; their tables add up.

        Which tables are measured with which noise is computed before, from the public declaration alone.  The identical
        batch with the identical arguments returns the recorded answers at no cost, in any kernel.  Afterwards each
        answer can be refined like any other; `dpnb.Session.reconcile` then restores the sums.

        Parameters
        ----------
        mu, rho, epsilon : Number, optional
            Loss of the whole batch: in GDP, in zCDP, or the mu that gives epsilon at the budget's delta.  Exactly one
            of `mu`, `rho`, `epsilon`, `share` and `within` is required, here or in `dpnb.Session.plan`.
        share : Number, optional
            Share of the remaining budget, in (0, 1]; 1 spends all of it.
        within : Number, mapping or list of them, optional
            Half-width of the intervals, as for `Query.release`: one for all queries, or a list with one for each.
        confidence : Number, default 0.95
            Confidence of each single interval.
        simultaneous : bool, default False
            Whether all intervals of one answer hold at once with that confidence.
        final : bool, default False
            Whether the intervals use the whole confidence; no query of the batch can be refined afterwards.

        Raises
        ------
        BudgetExceeded
            If the filter refuses; nothing was charged.
        RequestError
            If there is not exactly one target, or a query was released with ``final=True``.
        InvalidValueError
            If a number is not finite and positive.
        ErrorEstimateUnavailable
            If ``within=`` is given for an error that depends on something that was not released.
        ExecutionError
            If the batch failed after the charge; the charge stands, and the same batch resumes it.

        Examples
        --------
        >>> batch = session.plan([df.groupby("plan").size(), df.count()])
        >>> by_plan, total = batch.release(mu=0.1)
        >>> bool(abs(by_plan.estimate.sum() - float(total)) < 1e-6)
        True
        """
        given = {"mu": mu, "rho": rho, "epsilon": epsilon, "share": share, "within": within}
        return self._release(given, confidence=confidence, simultaneous=simultaneous, final=final)


# --- a table of groups with its margins -------------------------------------------------------------------------------


class MarginsQuery(PlannedQueries):
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

    def release(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
        within: Within | None = None,
        confidence: Number | None = None,
        simultaneous: bool | None = None,
        final: bool | None = None,
    ) -> TableWithMargins:
        """Answer the table and its margins from one charge; totals of counts and sums add up.

        Parameters
        ----------
        mu, rho, epsilon, share, within, confidence, simultaneous, final : optional
            As for :meth:`dpnb.Batch.release`.

        Raises
        ------
        BudgetExceeded, RequestError, InvalidValueError, ErrorEstimateUnavailable, ExecutionError
            As for :meth:`dpnb.Batch.release`.

        Examples
        --------
        >>> answer = dpnb.crosstab(df["plan"], df["age"] > 65, margins=True).release(share=0.1)
        >>> table = answer.estimate
        >>> bool(abs(table.loc["All", "All"] - table.loc["All"].iloc[:2].sum()) < 1e-6)
        True
        """
        given = {"mu": mu, "rho": rho, "epsilon": epsilon, "share": share, "within": within}
        batch = self._release(given, confidence=confidence, simultaneous=simultaneous, final=final)
        return table_with_margins(batch, self._name)
