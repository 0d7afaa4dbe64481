"""A released answer, and what was known after each look at its question."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, overload

import numpy as np

from dpnb._plan.measurements import AnyView, Count, CountUnits, Discovery, Sum
from dpnb._plan.plan import Plan
from dpnb.accounting.exact import Number
from dpnb.accounting.losses import GDP
from dpnb.errors import DpnbError, PlanError, RequestError
from dpnb.results.display import Displayed
from dpnb.results.table import Estimates

if TYPE_CHECKING:
    import pandas as pd

APART = "which groups are found differs from look to look, so looks at them cannot be combined"


class Origin(Protocol):
    """What an answer asks of the session that released it; the only way from an answer to a session."""

    def refine(self, answer: Answer, **target: Any) -> Answer:
        """The same question, known better."""

    def shares(self, answer: Answer) -> Answer:
        """Each group as a share of all of them."""

    def past(self, answer: Answer) -> tuple[Answer, ...]:
        """The answers after each of its looks, this one's own included."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answer(Estimates):
    """Estimates with intervals, and what they cost.

    It can be copied and pickled.  A copy holds what was released and shows the same, its history included; it has no
    session, so `refine` and `proportions` refuse.

    Parameters
    ----------
    plan : Plan
        What was measured.
    view : View
        What was read off.
    cost : GDP
        What this request was charged when it was first made; 0 if it was known already.
    cost_fraction : float
        The same as a share of the whole budget, rounded up.
    total_loss : GDP
        How well the question is known with this answer, earlier looks included.
    n_observations : int
        Measurements that are combined in it.
    time : str
        When it was first asked and paid; UTC.
    worst_case : bool
        Whether the cost is that of a unit which the question touches in full, and others paid less or nothing.
    origin : Origin
        The way back to its session; a copy has none.
    """

    plan: Plan
    view: AnyView
    cost: GDP
    cost_fraction: float
    total_loss: GDP
    n_observations: int
    time: str
    origin: Origin
    worst_case: bool = False

    def refine(
        self,
        *,
        mu: Number | None = None,
        rho: Number | None = None,
        epsilon: Number | None = None,
        share: Number | None = None,
        within: Number | Mapping[Any, Number] | None = None,
        confidence: Number = 0.95,
        simultaneous: bool = False,
        final: bool = False,
        groups: object = None,
    ) -> Answer:
        """The same question, known at least this well, for the difference in cost.

        Parameters and further errors are those of the question's `release`.

        Raises
        ------
        RequestError
            The answer is a copy, which has no session, or a discovery, whose looks cannot be combined.
        """
        if isinstance(self.plan.aggregation, Discovery):
            raise RequestError(
                f"refine: {APART}; discover again, which is a new question, or ask about the groups that were found"
            )
        return self.origin.refine(
            self,
            mu=mu,
            rho=rho,
            epsilon=epsilon,
            share=share,
            within=within,
            confidence=confidence,
            simultaneous=simultaneous,
            final=final,
            groups=groups,
        )

    def proportions(self) -> Answer:
        """Each group as a share of all of them: free, with the interval of the joint noise.

        Raises
        ------
        PlanError
            The answer is not of counts or sums by group.
        RequestError
            The answer is a copy, which has no session.
        """
        if not (self.plan.group_by and isinstance(self.plan.aggregation, Count | Sum | CountUnits)):
            raise PlanError(f"share: needs counts or sums by group; this is the {self.plan.words}")
        return self.origin.shares(self)

    @property
    def history(self) -> History:
        """What was known after each of its looks: free, from the ledger, without reading a row.

        Raises
        ------
        RequestError
            The answer is a discovery, whose looks cannot be combined.
        """
        if isinstance(self.plan.aggregation, Discovery):
            raise RequestError(f"history: {APART}, and each discovery stands alone")
        return History(self.origin.past(self))

    def _content(self) -> tuple[object, ...]:
        return *super()._content(), self.plan, self.cost, self.total_loss, self.time

    def __getstate__(self) -> dict[str, object]:
        """What a copy holds: released values alone, those of earlier looks among them."""
        past: tuple[Answer, ...] = ()
        with suppress(DpnbError):  # a discovery has none, and an answer outlives its ledger
            past = tuple(replace(answer, origin=_Copied()) for answer in self.history)
        return {**vars(self), "origin": _Copied(past)}


@dataclass(frozen=True, repr=False)
class _Copied:
    """The origin of a copied answer: its past, and no session.

    Parameters
    ----------
    answers : tuple of Answer
        After each look, without a past of their own.
    """

    answers: tuple[Answer, ...] = ()

    def refine(self, answer: Answer, **target: Any) -> NoReturn:
        self._refuse("refine", answer)

    def shares(self, answer: Answer) -> NoReturn:
        self._refuse("share", answer)

    def past(self, answer: Answer) -> tuple[Answer, ...]:
        if not self.answers:
            self._refuse("history", answer)
        count = range(1, len(self.answers) + 1)
        return tuple(replace(self.answers[look - 1], origin=_Copied(self.answers[:look])) for look in count)

    def _refuse(self, what: str, answer: Answer) -> NoReturn:
        raise RequestError(
            f"{what}: a copied answer has no session; release it again in the session ({answer.description})"
        )


@dataclass(frozen=True, repr=False)
class History(Displayed):
    """What was known of a question after each look at it.

    Each entry is the answer as it was then, at the confidence of the answer whose history this is: `cost` is what that
    look was charged, `known` how well the groups that were looked at were known with it.

    Parameters
    ----------
    answers : tuple of Answer
        In the order of the looks.
    """

    answers: tuple[Answer, ...]

    def __len__(self) -> int:
        return len(self.answers)

    @overload
    def __getitem__(self, place: int) -> Answer: ...

    @overload
    def __getitem__(self, place: slice) -> tuple[Answer, ...]: ...

    def __getitem__(self, place: int | slice) -> Answer | tuple[Answer, ...]:
        return self.answers[place]

    def __iter__(self) -> Iterator[Answer]:
        return iter(self.answers)

    @property
    def observed_groups(self) -> list[tuple[bool, ...]]:
        """For each look, whether each group was in it."""
        sources = [answer.measurement_ids for answer in self.answers]
        before = [(frozenset[tuple[int, int]](),) * len(sources[0]), *sources]
        return [tuple(x != y for x, y in zip(*pair, strict=True)) for pair in zip(before, sources, strict=False)]

    def to_pandas(self) -> pd.DataFrame:
        """One row for each number after each look: what the look cost, what was known with it, and the number.

        Columns ``time``, ``cost_mu``, ``cost_fraction``, ``known_mu``, ``looked_at`` (was the group in that look)
        and those of an answer.
        """
        import pandas as pd  # imported when first used

        tables = []
        for answer, inside in zip(self.answers, self.observed_groups, strict=True):
            about = {
                "time": answer.time,
                "cost_mu": answer.cost.mu,
                "cost_fraction": answer.cost_fraction,
                "known_mu": answer.total_loss.mu,
                "looked_at": np.repeat(inside, answer.arrays.value.shape[1]),
            }
            table = answer.to_pandas()
            tables.append(pd.concat([pd.DataFrame(about, index=table.index), table], axis=1))
        whole = pd.concat(tables, keys=range(1, len(tables) + 1), names=["look"])
        return whole.droplevel(1) if self.answers[0].is_scalar else whole
