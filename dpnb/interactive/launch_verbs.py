"""What a session has for launching interactive mechanisms."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Generic, Literal, Required, TypedDict, Unpack, overload

from dpnb._core.core import SessionCore
from dpnb._core.query import Query
from dpnb._plan.measurements import RegressionModel
from dpnb._plan.plan import Plan
from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import Number
from dpnb.accounting.guarantee import FilterName
from dpnb.copying import NotCopyable
from dpnb.interactive.descent_options import descent_request
from dpnb.interactive.gradient_descent import GradientDescent
from dpnb.interactive.launcher import MechanismRegistry, P, S
from dpnb.interactive.noise_reduction import NoiseReduction, noise_reduction_request
from dpnb.interactive.partition import Partition, partition_request
from dpnb.interactive.protocol import InteractiveMechanism
from dpnb.interactive.sub_session import sub_session_request
from dpnb.interactive.threshold_options import terms_from
from dpnb.interactive.threshold_scan import ThresholdScan, discard_hidden_noise, draw_hidden_noise
from dpnb.results.explanation import Explanation


class SubSessionOptions(TypedDict, total=False):
    """The named arguments of `Launches.delegate`, for its overloads."""

    name: Required[str]
    mu: Number | None
    rho: Number | None
    share: Number | None
    filter: FilterName | None


class ThresholdOptions(TypedDict, total=False):
    """The named arguments of `Launches.above_threshold`, for its overloads."""

    name: Required[str]
    epsilon: Number | None
    max_positives: int
    monotonic: bool
    return_values: bool
    mu: Number | None
    max_queries: int | None


class Launches(NotCopyable, Generic[S, P]):
    """The verbs; every session inherits them.

    Parameters
    ----------
    core : SessionCore
    mechanisms : Mechanisms
        What was launched in it.
    """

    def __init__(self, core: SessionCore, mechanisms: MechanismRegistry[S, P]) -> None:
        self._core, self._mechanisms = core, mechanisms

    @property
    def mechanisms(self) -> Mapping[str, InteractiveMechanism]:
        """What was launched in this session, by name, whichever kernel did it; closed ones too."""
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
        """Hand a part of the budget to a session of its own, for a colleague or a sub-question.

        All of it is charged at once, and what is left of it in the end does not flow back: the charge is what makes it
        safe to use it in any order beside everything else (Haney et al. 2023).  The same name and budget give the same
        sub-session again, free, in any kernel.

        Parameters
        ----------
        budget : Budget
            Or one of the next three.
        name : str
        mu, rho, share : Number, optional
            The budget as a mu, as a rho, or as a share of what is left.
        filter : str, optional
            Which filter keeps it; this session's if it can.  Under ``"gdp"`` only ``"gdp"``; zCDP implies no GDP.
        dry_run : bool
            Say what it would cost and what not to expect, and charge nothing.

        Raises
        ------
        BudgetExceeded
            It does not fit; nothing was charged.
        RequestError
            No theorem lets this filter count the other; the name was given to something else; interactive mechanisms
            may not be interleaved under this filter; or each unit has a budget of its own, of which a part cannot be
            set aside for everybody.
        InvalidValueError
            The budget is none.
        """
        known = self._mechanisms.named(name)
        request = sub_session_request(self._core, known, name, filter, budget=budget, mu=mu, rho=rho, share=share)
        if dry_run:
            return self._mechanisms.preview(request)
        made: S = self._mechanisms.launch(request)
        return made

    def partition(
        self, by: Any, *, name: str | None = None, table: str = "", max_parts_per_unit: int | None = None
    ) -> Partition[P]:
        """Split the table into parts by a column's public values, each asked like a session of its own.

        Whatever is asked in a part, this session pays by how much the largest part's own sum grows: asking every part
        the same costs what asking one costs.  Each part chooses its budgets as it goes; nothing is reserved, and
        nothing is charged now.

        Parameters
        ----------
        by : str or column of the session's frame
            A column of categories, or an expression with public values.
        name : str, optional
            ``"by <column>"`` if left out.
        table : str
            Which table, where the session has several.
        max_parts_per_unit : int, optional
            Where a unit has several rows it may be in several parts, and the session pays for as many of the largest:
            the least of the number of parts and of `max_rows_per_unit`.  With a smaller number here it pays for that
            many, and a unit's rows in other parts do not count.

        Raises
        ------
        PlanError
            The values are not public, or the limit is no whole number of at least 1.
        RequestError
            The name was given to something else, or the filter has no rule for parts.
        """
        request = partition_request(self._core, by, name, self._core.rows(table), max_parts_per_unit)
        made: Partition[P] = self._mechanisms.launch(request)
        return made

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
        """Ask a stream of counts and sums whether they are above a threshold (the sparse vector technique).

        With `epsilon`: charged once, as pure DP, for any number of questions up to so many positive answers, with
        exactly sampled Laplace noise.  With `mu` and `max_queries`: Gaussian noise for a declared number of questions,
        charged as releasing them all; no bound that is free of their number is known to us.

        Parameters
        ----------
        threshold : Number
            In the answers' units; a question may bring its own.
        name : str
        epsilon : Number, optional
        max_positives : int
            How many positive answers.
        monotonic : bool
            Only counts may be asked, which a unit can only make larger; the noise on them is smaller, by up to a half.
        return_values : bool
            A positive answer comes with a noisy value; half of epsilon is for these.
        mu : Number, optional
        max_queries : int, optional
            How many questions, for Gaussian noise.
        dry_run : bool
            Say what it would cost and how reliable it would be, and charge nothing.

        Returns
        -------
        Scan, or Explanation
            With ``.ask(query)``.

        Raises
        ------
        BudgetExceeded
            It does not fit; nothing was charged.
        RequestError
            Neither or both kinds of noise were asked for, the name was given to something else, or each unit has a
            budget of its own, and all would pay at the launch.
        InvalidValueError
            A number is out of its range.
        """
        terms = terms_from(
            threshold,
            epsilon=epsilon,
            max_positives=max_positives,
            monotonic=monotonic,
            return_values=return_values,
            mu=mu,
            max_queries=max_queries,
        )
        if dry_run:
            return self._mechanisms.preview(terms.request(name))
        token, launch = draw_hidden_noise(terms, self._core.source), None
        try:
            launch = self._mechanisms.launched(terms.request(name, noise_token=token))
        finally:
            if launch is None or launch.details["resolved"]["noise_token"] != token:  # refused, or launched before
                discard_hidden_noise(token)
        made: ThresholdScan = self._mechanisms.attached(launch)
        return made

    def noise_reduction(
        self, query: Query, *, name: str | None = None, initial_mu: Number | None = None, max_mu: Number | None = None
    ) -> NoiseReduction:
        """Refine one answer until it is good enough, paying step by step.

        Parameters
        ----------
        query : Query
        name : str, optional
            The question in words if left out.
        initial_mu : Number, optional
            mu of the first look; a hundredth of what is left if left out.
        max_mu : Number, optional
            mu at which to stop in any case; the filter alone if left out.

        Raises
        ------
        RequestError
            The question is another session's, or the name was given to something else.
        InvalidValueError
            A number is not positive.
        """
        request = noise_reduction_request(self._core, self._mechanisms.named, query, name, initial_mu, max_mu)
        made: NoiseReduction = self._mechanisms.launch(request)
        made.begin()
        return made

    def _fit(
        self,
        rows: Plan,
        model: RegressionModel,
        terms: tuple[str, ...],
        *,
        name: str | None,
        dry_run: bool,
        **given: Any,
    ) -> GradientDescent | Explanation:
        """A regression fitted by noisy gradients; see :meth:`Frame.fit`."""
        request = descent_request(self._core, rows, model, terms, name, given)
        if dry_run:
            return self._mechanisms.preview(request)
        made: GradientDescent = self._mechanisms.launch(request)
        made.begin()
        return made
