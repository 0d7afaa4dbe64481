"""A released answer, and its history: the answer after each observation of its query."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, overload

import numpy as np

from dpnb._plan.expressions.nodes import Cut, ExtractDatePart, Period
from dpnb._plan.measurements import (
    AnyView,
    Count,
    CountUnits,
    Discovery,
    Sum,
)
from dpnb._plan.plan import Plan, axis_name
from dpnb._target import Keys, Target, Within, named_arguments, target_from
from dpnb.accounting.exact import Number
from dpnb.accounting.losses import GDP
from dpnb.errors import DpnbError, PlanError, RequestError
from dpnb.results.display import Displayed
from dpnb.results.estimates.population import population_remedy
from dpnb.results.preview import Amounts, Preview, Previewable, Previews
from dpnb.results.tables.index import Deferred, replaced
from dpnb.results.tables.intervals import OTHER_KINDS
from dpnb.results.tables.table import Estimates
from dpnb.schema import Key

if TYPE_CHECKING:
    import pandas as pd

NOT_COMBINABLE = "each observation of a discovery has its own groups, so the observations cannot be combined"


class SessionReference(Protocol):
    """The part of its session that an answer uses; the answer has no other reference to the session."""

    def refining(self, answer: Answer, groups: object) -> AbstractContextManager[Keys]:
        """The checked keys of groups; what is refused in the block is recorded in the log."""

    def refine(self, answer: Answer, target: Target) -> Answer:
        """The same query with a smaller error."""

    def preview(self, answer: Answer, amounts: Amounts, options: dict[str, Any]) -> Preview | Previews:
        """The preview of refining an answer."""

    def population(self, answer: Answer, target: Target) -> Answer:
        """The same answer with population intervals."""

    def shares(self, answer: Answer) -> Answer:
        """Each group as a proportion of the sum over the groups."""

    def past(self, answer: Answer) -> tuple[Answer, ...]:
        """The answers after each of its observations, up to this answer."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answer(Estimates, Previewable):
    """Estimates with noise intervals, and what they cost.

    It can be copied and pickled.  A copy holds the released values and displays the same, including the history; it
    has no session, so `refine` and `proportions` raise.

    Parameters
    ----------
    plan : Plan
        What was measured.
    view : View
        Which statistics are computed from the measured sums.
    cost : GDP
        The charge of this request when it was first made; 0 if earlier observations sufficed.
    cost_fraction : float
        The cost as a fraction of the whole budget, rounded up; NaN without a budget.
    total_loss : GDP
        The loss of the query with all observations in this answer.
    n_observations : int
        Number of observations that this answer combines.
    time : str
        When the request was first made and charged; UTC.
    remarks : tuple of (str, str), or callable
        What the released numbers suggest about the declaration: the id of an explanation, and the text.  A callable is
        called when they are first needed.
    requested_in_rank : str or None
        What was requested by ``within=``, in words, where that is in rows of rank.
    worst_case : bool
        Whether the cost is the charge of a unit that the query affects in full; other units were charged less or
        nothing.
    origin : SessionReference
        Reference to the session; that of a copy refuses.
    was_known : bool
        Whether it is a refinement that measured nothing, since the answer before it was at least as precise.

    Examples
    --------
    >>> answer = df.count().release(mu=0.1)
    >>> answer.cost, answer.refine(mu=0.2).n_observations
    (GDP(mu=0.1), 2)
    """

    plan: Plan
    view: AnyView
    cost: GDP
    cost_fraction: float
    total_loss: GDP
    n_observations: int
    time: str
    origin: SessionReference
    remarks: Deferred[tuple[tuple[str, str], ...]] = Deferred()  # noqa: RUF009  (a descriptor)
    worst_case: bool = False
    requested_in_rank: str | None = None
    was_known: bool = False

    @named_arguments
    def refine(
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
        """Answer the same query at a better target; only the difference in cost is charged.

        If no interval is expected to become narrower, a `RefinementWarning` says so before the charge; `preview` shows
        it with the same arguments, for free.  Further errors are those of `dpnb.Query.release`.

        Parameters
        ----------
        mu, rho, epsilon, share, within : Number or mapping, optional
            The target, as for `dpnb.Query.release`: exactly one of them.  A loss includes earlier releases.
        confidence, simultaneous, final, groups : optional
            As for `dpnb.Query.release`.

        Raises
        ------
        RequestError
            The answer is a copy, which has no session, or a discovery, whose observations cannot be combined.

        Examples
        --------
        >>> answer = df["age"].mean().release(mu=0.1)
        >>> finer = answer.refine(mu=0.25)
        >>> finer.total_loss
        GDP(mu=0.25)
        >>> finer.n_observations
        2
        """
        self._refuse_discovery("refine")
        with self.origin.refining(self, groups) as keys:
            target = target_from(mu, rho, epsilon, share, within, confidence, simultaneous, final, keys, verb="refine")
            found = self.origin.refine(self, target)
        known = found.measurement_ids == self.measurement_ids
        return replaced(found, is_two_way=self.is_two_way, was_known=known)

    def _preview_of(self, amounts: Amounts, options: dict[str, Any]) -> Preview | Previews:
        self._refuse_discovery("preview")
        return self.origin.preview(self, amounts, options)

    def _refuse_discovery(self, verb: str) -> None:
        if isinstance(self.plan.aggregation, Discovery):
            raise RequestError(f"{verb}: {NOT_COMBINABLE}; release a new discovery, or query the discovered groups")

    @named_arguments
    def population(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
    ) -> Answer:
        """The same answer with population intervals: the sampling error is measured now, and charged.

        What is measured is the sum of the squared influences of the privacy units on each number, at the released
        values.  A tenth of the loss of the answer is usually enough.  Repeating it costs nothing, and a refinement of
        the result keeps it.  Where the sampling error follows from the answer, as of shares and quantiles where each
        row is a unit, `population_interval` has it at no cost.

        Parameters
        ----------
        mu, rho, epsilon, share : Number, optional
            The loss of this measurement, as for `dpnb.Query.release`: exactly one of them.

        Raises
        ------
        PlanError
            The answer has its population interval already, or it is not offered for the statistic.
        RequestError
            The answer is a copy, which has no session.

        Examples
        --------
        >>> answer = df["age"].mean().release(mu=0.3)
        >>> answer.has_population_intervals
        False
        >>> answer = answer.population(mu=0.1)
        >>> low, high = answer.population_interval
        >>> low < answer.interval[0] and answer.interval[1] < high
        True
        """
        return self.origin.population(self, target_from(mu, rho, epsilon, share, verb="population"))

    @property
    def _population_remedy(self) -> str:
        return population_remedy(self.view)

    def proportions(self) -> Answer:
        """Each group as a proportion of the sum over the groups: free, with intervals for the joint noise.

        Raises
        ------
        PlanError
            The answer is not of counts or sums by group.
        RequestError
            The answer is a copy, which has no session.

        Examples
        --------
        >>> answer = df.groupby("plan").size().release(mu=0.1)
        >>> round(float(answer.proportions().estimate.sum()), 6)
        1.0
        """
        if not (self.plan.group_by and isinstance(self.plan.aggregation, Count | Sum | CountUnits)):
            raise PlanError(
                f"proportions: needs counts or sums by group; got the {self.plan.words}; group the query first, "
                "for example with .groupby(...).size()"
            )
        return replaced(self.origin.shares(self), is_two_way=self.is_two_way)

    @property
    def history(self) -> History:
        """The answer after each observation: free, from the ledger, without reading a row.

        Raises
        ------
        RequestError
            The answer is a discovery, whose observations cannot be combined.
        """
        if isinstance(self.plan.aggregation, Discovery):
            raise RequestError(f"history: {NOT_COMBINABLE}; each discovery is a separate query")
        return History(self.origin.past(self))

    def _has_ordered_keys(self, level: int) -> bool:
        """Whether the keys of a level are ranges of numbers or parts of dates: a released answer has them in order."""
        groups = self.plan.group_by  # empty for a discovery
        return level < len(groups) and isinstance(groups[level].expression, Cut | ExtractDatePart | Period)

    @property
    def _axis_names(self) -> tuple[str, ...]:
        groups = self.plan.group_by  # empty for a discovery, whose groups are columns
        if len(groups) != len(self.names):
            return self.names
        names = tuple(map(axis_name, groups))
        return names if len(set(names)) == len(names) else self.names

    def _ranks(self, level: int) -> dict[Key, int]:
        if self._has_ordered_keys(level):
            return {key: rank for rank, key in enumerate(dict.fromkeys(key[level] for key in self.keys))}
        return super()._ranks(level)

    @property
    def warnings(self) -> list[tuple[str, str]]:
        """Warnings about the estimates: the id of the explanation, and the text."""
        return [*super().warnings, *(self.remarks or ())]

    def _content(self) -> tuple[object, ...]:
        return *super()._content(), self.plan, self.cost, self.total_loss, self.time

    def __getstate__(self) -> dict[str, object]:
        """The state of a copy: only released values, including those of earlier observations."""
        past: tuple[Answer, ...] = ()
        with suppress(DpnbError):  # a discovery has no history, and the ledger may be gone
            past = tuple(replace(answer, origin=_Copied()) for answer in self.history)
        kinds = {name: getattr(self, name) for name in (*OTHER_KINDS, "sampled", "remarks")}
        return {**vars(self), **kinds, "origin": _Copied(past)}


@dataclass(frozen=True, repr=False)
class _Copied:
    """The origin of a copied answer: its history, without a session."""

    answers: tuple[Answer, ...] = ()  # after each observation, without a history themselves

    def refining(self, answer: Answer, groups: object) -> NoReturn:
        self._refuse("refine", answer)

    def refine(self, answer: Answer, target: Target) -> NoReturn:
        self._refuse("refine", answer)

    def preview(self, answer: Answer, amounts: Amounts, options: dict[str, Any]) -> NoReturn:
        self._refuse("preview", answer)

    def population(self, answer: Answer, target: Target) -> NoReturn:
        self._refuse("population", answer)

    def shares(self, answer: Answer) -> NoReturn:
        self._refuse("proportions", answer)

    def past(self, answer: Answer) -> tuple[Answer, ...]:
        if not self.answers:
            self._refuse("history", answer)
        counts = range(1, len(self.answers) + 1)
        return tuple(replace(self.answers[n - 1], origin=_Copied(self.answers[:n])) for n in counts)

    def _refuse(self, verb: str, answer: Answer) -> NoReturn:
        raise RequestError(
            f"{verb}: a copied answer has no session; release it again in the session ({answer.description})"
        )


@dataclass(frozen=True, repr=False)
class History(Displayed):
    """The answers to a query after each of its observations.

    Each entry is the answer at that time, with the confidence of the answer whose history this is: `cost` is the charge
    of that observation, `total_loss` the loss of the observed groups with all observations up to it.

    Parameters
    ----------
    answers : tuple of Answer
        In the order of the observations.

    Examples
    --------
    >>> answer = df["age"].mean().release(mu=0.1)
    >>> len(answer.refine(mu=0.2).history.to_pandas())
    2
    """

    answers: tuple[Answer, ...]

    def __len__(self) -> int:
        return len(self.answers)

    @overload
    def __getitem__(self, index: int) -> Answer: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Answer, ...]: ...

    def __getitem__(self, index: int | slice) -> Answer | tuple[Answer, ...]:
        return self.answers[index]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    @property
    def observed_groups(self) -> list[tuple[bool, ...]]:
        """For each observation, whether it included each group."""
        ids = [answer.measurement_ids for answer in self.answers]
        before = [(frozenset[tuple[int, int]](),) * len(ids[0]), *ids]
        return [tuple(x != y for x, y in zip(*pair, strict=True)) for pair in zip(before, ids, strict=False)]

    def to_pandas(self) -> pd.DataFrame:
        """One row for each number after each observation, with the cost of the observation and the total loss.

        Columns ``time``, ``cost_mu``, ``cost_fraction``, ``total_loss_mu``, ``is_observed`` (whether the observation
        included the group) and those of an answer.

        Examples
        --------
        >>> answer = df["age"].mean().release(mu=0.1)
        >>> len(answer.refine(mu=0.2).history.to_pandas())
        2
        """
        import pandas as pd  # imported when first used

        tables = []
        for answer, observed in zip(self.answers, self.observed_groups, strict=True):
            columns = {
                "time": answer.time,
                "cost_mu": answer.cost.mu,
                "cost_fraction": answer.cost_fraction,
                "total_loss_mu": answer.total_loss.mu,
                "is_observed": np.repeat(observed, answer.arrays.value.shape[1]),
            }
            table = answer.to_pandas()
            tables.append(pd.concat([pd.DataFrame(columns, index=table.index), table], axis=1))
        whole = pd.concat(tables, keys=range(1, len(tables) + 1), names=["observation"])
        return whole.droplevel(1) if self.answers[0].is_scalar else whole


for _unreleased in (Preview, Previews):  # whose module this one imports
    _unreleased._released_type = Answer
