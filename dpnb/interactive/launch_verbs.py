"""The methods of a session that launch interactive mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, Required, TypedDict, Unpack, overload

from dpnb._core.core import SessionCore
from dpnb._plan.measurements import RegressionModel
from dpnb._plan.plan import Plan
from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import Number
from dpnb.accounting.guarantee import FilterName
from dpnb.copying import NotCopyable
from dpnb.interactive.descent import FitArguments, descent_request
from dpnb.interactive.gradient_descent import GradientDescent
from dpnb.interactive.launcher import MechanismRegistry, P, S
from dpnb.interactive.mechanism import InteractiveMechanism, own_query
from dpnb.interactive.noise_reduction import NoiseReduction, noise_reduction_request
from dpnb.interactive.scan import ThresholdScan
from dpnb.interactive.scan_options import scan_from, scan_request
from dpnb.interactive.sub_session import Partition, partition_request, partition_request_by, sub_session_request
from dpnb.query.query import Query
from dpnb.results.display import Explanation


class SubSessionOptions(TypedDict, total=False):
    """The keyword arguments of `Launches.delegate`, for its overloads."""

    name: Required[str]
    mu: Number | None
    rho: Number | None
    share: Number | None
    filter: FilterName | None


class ThresholdOptions(TypedDict, total=False):
    """The keyword arguments of `Launches.above_threshold`, for its overloads."""

    name: Required[str]
    epsilon: Number | None
    max_positives: int
    monotonic: bool
    return_values: bool
    mu: Number | None
    max_queries: int | None


class Launches(NotCopyable, Generic[S, P]):
    """The launch methods; every session inherits them."""

    def __init__(self, core: SessionCore, mechanisms: MechanismRegistry[S, P]) -> None:
        self._core, self._mechanisms = core, mechanisms

    @property
    def mechanisms(self) -> Mapping[str, InteractiveMechanism]:
        """The mechanisms launched in this session, by name, from any kernel; including closed ones."""
        return self._mechanisms.all()

    @overload
    def delegate(
        self, budget: Budget | None = None, *, dry_run: Literal[False] = False, **options: Unpack[SubSessionOptions]
    ) -> S: ...
    @overload
    def delegate(
        self, budget: Budget | None = None, *, dry_run: Literal[True], **options: Unpack[SubSessionOptions]
    ) -> Explanation: ...
    def delegate(
        self,
        budget: Budget | None = None,
        *,
        name: str,
        mu: Number | None = None,
        rho: Number | None = None,
        share: Number | None = None,
        filter: FilterName | None = None,
        dry_run: bool = False,
    ) -> S | Explanation:
        """Give a part of the budget to a sub-session, for example for a colleague.

        The part is charged in full at launch and unused budget is not refunded: this is what makes it safe to use the
        sub-session concurrently with everything else (Haney et al. 2023).  The same name and budget return the same
        sub-session in any kernel, at no cost.

        Parameters
        ----------
        budget : Budget
            The budget of the sub-session; alternatively one of the next three.
        name : str
        mu, rho, share : Number, optional
            The budget as a mu, as a rho, or as a share of the remaining budget.
        filter : str, optional
            The sub-session's filter; by default this session's if possible.  Under ``"gdp"`` only ``"gdp"``.
        dry_run : bool, default False
            Return the cost and the limitations, and charge nothing.

        Raises
        ------
        BudgetExceeded
            The budget does not fit; nothing was charged.
        RequestError
            No theorem lets this filter count the other; the name is already used for something else; interactive
            mechanisms may not be interleaved under this filter; or accounting is individual, where a part of the budget
            cannot be set aside for every unit.
        InvalidValueError
            The budget is invalid.

        Examples
        --------
        >>> colleague = session.delegate(share=0.1, name="colleague")
        >>> colleague.headroom
        1.0
        >>> session.headroom < 1
        True
        """
        known = self._mechanisms.named(name)
        request = sub_session_request(self._core, known, name, filter, budget, mu, rho, share)
        if dry_run:
            return self._mechanisms.preview(request)
        session: S = self._mechanisms.launch(request)
        return session

    def partition(
        self, by: Any, *, name: str | None = None, table: str = "", max_parts_per_unit: int | None = None
    ) -> Partition[P]:
        """Split the table into parts by a column's public values, each queried like a session.

        Parallel composition: this session is charged by the growth of the largest part's spending, so the same query in
        every part costs as much as in one.  The budgets of each part are chosen adaptively; nothing is reserved, and
        nothing is charged now.

        Parameters
        ----------
        by : str or column of the session's frame
            A column of categories, or an expression with public values; of a table with rows per unit, the parts are
            those of that table.
        name : str, optional
            ``"by <column>"`` if left out.
        table : str, default ""
            Name of the table, if the session has several.
        max_parts_per_unit : int, optional
            A unit with several rows may be in several parts, and the session is charged for that many of the largest:
            by default the smaller of the number of parts and `max_rows_per_unit`.  With a smaller number here it is
            charged for that many, and a unit's rows in other parts do not count.

        Raises
        ------
        PlanError
            The values are not public, or the limit is not an integer of at least 1.
        RequestError
            The name is already used for something else, or the filter has no rule for parts.

        Examples
        --------
        >>> plans = session.partition("plan", max_parts_per_unit=1)
        >>> answers = {plan: plans[plan].frame["cost"].mean().release(mu=0.05) for plan in plans}
        >>> list(answers)
        ['free', 'paid']
        """
        view = getattr(by, "_view", None)  # a column of a frame, which is a higher layer
        if view is not None and view.per_unit is not None:
            rows, level = view.level_of_table(by._node)
            request = partition_request_by(self._core, level, name, rows, max_parts_per_unit)
        else:
            request = partition_request(self._core, by, name, self._core.rows(table), max_parts_per_unit)
        partition: Partition[P] = self._mechanisms.launch(request)
        return partition

    @overload
    def above_threshold(
        self, threshold: Number, *, dry_run: Literal[False] = False, **options: Unpack[ThresholdOptions]
    ) -> ThresholdScan: ...
    @overload
    def above_threshold(
        self, threshold: Number, *, dry_run: Literal[True], **options: Unpack[ThresholdOptions]
    ) -> Explanation: ...
    def above_threshold(
        self,
        threshold: Number,
        *,
        name: str,
        epsilon: Number | None = None,
        max_positives: int = 1,
        monotonic: bool = False,
        return_values: bool = False,
        mu: Number | None = None,
        max_queries: int | None = None,
        dry_run: bool = False,
    ) -> ThresholdScan | Explanation:
        """Test a stream of counts and sums against a threshold (the sparse vector technique).

        With `epsilon`: charged once, as pure DP, for any number of queries up to `max_positives` positive answers, with
        exactly sampled Laplace noise.  With `mu` and `max_queries`: Gaussian noise for a declared number of queries,
        charged as if all were released; published bounds for Gaussian noise (Zhu and Wang 2020; Lebensold, Precup and
        Balle 2024) are not used.

        Parameters
        ----------
        threshold : Number
            In the answers' units; a query may have its own.
        name : str
        epsilon : Number, optional
        max_positives : int, default 1
            Maximum number of positive answers.  Several are counted like as many scans with one positive answer, of
            epsilon/max_positives each, with a new noisy threshold for each; or as one mechanism, with less noise, where
            the filter adds epsilons, as in a reserve.
        monotonic : bool, default False
            Only counts may be queried, which a unit can only increase; their noise is smaller by up to a half.
        return_values : bool, default False
            A positive answer includes a noisy value; half of epsilon is used for the values.
        mu : Number, optional
        max_queries : int, optional
            Declared number of queries, for Gaussian noise.
        dry_run : bool, default False
            Return the cost and the reliability, and charge nothing.

        Returns
        -------
        ThresholdScan, or Explanation
            With ``.ask(query)``.

        Raises
        ------
        BudgetExceeded
            The budget is too small; nothing was charged.
        RequestError
            Neither or both kinds of noise were requested, the name is already used for something else, or accounting is
            individual, where every unit would be charged at launch.
        InvalidValueError
            A number is out of range.

        Examples
        --------
        >>> scan = session.above_threshold(100, name="many", epsilon=0.2, monotonic=True)
        >>> scan.ask(df[df["age"] > 65].count_units()).notice
        'REHEARSAL: mock data, not real'
        >>> scan.state
        'exhausted'
        """
        stored = scan_from(threshold, epsilon, max_positives, monotonic, return_values, mu, max_queries)
        request = scan_request(self._core.account.filter, name, stored)
        if dry_run:
            return self._mechanisms.preview(request)
        scan: ThresholdScan = self._mechanisms.launch(request)
        return scan

    def noise_reduction(
        self, query: Query, *, name: str | None = None, initial_mu: Number | None = None, max_mu: Number | None = None
    ) -> NoiseReduction:
        """Refine one answer until it is accurate enough, charged step by step.

        Parameters
        ----------
        query : Query
        name : str, optional
            Name of the launch; by default a description of the query.
        initial_mu : Number, optional
            mu of the first observation; by default a hundredth of the remaining budget.  Required without a budget.
        max_mu : Number, optional
            mu at which to stop in any case; by default only the filter limits it.

        Raises
        ------
        RequestError
            The query belongs to another session, or the name is already used for something else.
        InvalidValueError
            A number is not positive.

        Examples
        --------
        >>> from dpnb.interactive import RelativeError
        >>> total = session.noise_reduction(df["cost"].sum(), max_mu=0.3)
        >>> total.until(RelativeError(0.05)).description
        'sum of cost'
        """
        plan, view = own_query(query, self._core.account.root_node, self._core.account.ledger)
        request = noise_reduction_request(self._core, self._mechanisms.named, plan, view, name, initial_mu, max_mu)
        reduction: NoiseReduction = self._mechanisms.launch(request)
        reduction.begin()
        return reduction

    def _fit(
        self,
        rows: Plan,
        model: RegressionModel,
        terms: tuple[str, ...],
        given: FitArguments,
        *,
        name: str | None,
        dry_run: bool,
    ) -> GradientDescent | Explanation:
        """Launch a regression fitted by noisy gradients; see :meth:`Frame.fit`."""
        request = descent_request(self._core, rows, model, terms, name, given)
        if dry_run:
            return self._mechanisms.preview(request)
        descent: GradientDescent = self._mechanisms.launch(request)
        descent.begin()
        return descent
