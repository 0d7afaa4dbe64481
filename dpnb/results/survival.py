"""A released survival analysis: curves by group with their bands, and what is computed from them.

Everything is total: whatever the released numbers are, a curve has an estimate, or is unknown where the number at risk
is not clear of its noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec.structs import replace

from dpnb._browser.glossary import IN_THE_POPULATION
from dpnb._plan.plan import Plan
from dpnb.accounting.exact import Number, exact
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP
from dpnb.errors import InvalidValueError, RequestError
from dpnb.results.answer import Answer
from dpnb.results.estimates.noisy import Cells, IntervalArrays
from dpnb.results.survival_curves import CurveErrors, SampledRows, SurvivalCurves, log_rank, medians, restricted_means
from dpnb.results.tables.hypothesis_methods import level_of_test
from dpnb.results.tables.index import pandas_index
from dpnb.results.tables.table import Estimates
from dpnb.results.testing import HypothesisTest
from dpnb.schema import Key

if TYPE_CHECKING:
    import pandas as pd

SEVERAL_ROWS = "units with up to {} rows: any dependence of their rows is allowed for"


@dataclass(frozen=True)
class SurvivalLayout:
    """Periods and groups of survival curves: public, from the query alone."""

    time: str  # in words
    event: str  # in words
    names: tuple[str, ...]  # of the levels of groups
    keys: tuple[tuple[Key, ...], ...]  # of the groups; one empty key without levels
    ends: tuple[float, ...]  # the start, and the end of each period
    whole: bool = False  # whether each period has one time only, its end, since times are whole numbers

    @property
    def periods(self) -> int:
        """Number of periods."""
        return len(self.ends) - 1

    @property
    def outcome(self) -> str:
        """What is counted, in words."""
        return f"{self.time} until {self.event}{self._by}"

    @property
    def description(self) -> str:
        """The curves in words."""
        return f"survival in {self.time} until {self.event}{self._by}"

    def described(self, counts: Plan) -> str:
        """The curves in words, with the rows that are counted."""
        return f"{self.description}{replace(counts, group_by=()).scope_description}"

    @property
    def _by(self) -> str:
        return f", by {', '.join(self.names)}" if self.names else ""

    @cached_property
    def texts(self) -> tuple[str, ...]:
        """The start and the ends as distinct texts."""
        texts = tuple(f"{end:g}" for end in self.ends)
        return texts if len(set(texts)) == len(texts) else tuple(map(repr, self.ends))

    @property
    def events(self) -> tuple[str, ...]:
        """The cells of rows with an event, by time."""
        return (*(f"event up to {text}" for text in self.texts[1:]), self._after)

    @property
    def censored(self) -> tuple[str, ...]:
        """The cells of rows without an event, from the last time to the first."""
        until = "up to" if self.whole else "before"
        return (self._after, *(f"censored {until} {text}" for text in self.texts[:0:-1]))

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of a group in the order of their cumulative counts."""
        return (*self.events, *self.censored[1:])

    @property
    def _after(self) -> str:
        return f"at risk after {self.texts[-1]}"

    def label(self, key: tuple[Key, ...], cell: str) -> str:
        """A cell of a group."""
        return "; ".join((*(f"{name} {part!r}" for name, part in zip(self.names, key, strict=True)), cell))


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SurvivalAnswer(Estimates):
    """Survival curves by group, at the end of each period.

    Its intervals are bands: those of all periods and groups hold at once.  Noise intervals are about the curve of the
    rows in this table, population intervals also cover the sampling of the privacy units.  A curve is unknown from the
    first period on at whose start the number of rows at risk is not clear of its noise.

    Parameters
    ----------
    layout : SurvivalLayout
        The periods and groups.
    curves : SurvivalCurves
        The released numbers from which everything else is computed.
    cost : GDP
        The charge when it was first released.
    cost_fraction : float
        The cost as a fraction of the whole budget, rounded up; NaN without a budget.
    time : str
        When it was first requested; UTC.

    Examples
    --------
    >>> answer = df.survival("cost", df["age"] > 40, by="plan", periods=4).release(mu=0.2)
    >>> answer["free"].estimate.index.tolist()
    [500.0, 1000.0, 1500.0, 2000.0]
    """

    layout: SurvivalLayout
    curves: SurvivalCurves
    cost: GDP
    cost_fraction: float
    time: str

    @classmethod
    def of(cls, layout: SurvivalLayout, counts: Answer, rows: SampledRows, confidence: Number) -> SurvivalAnswer:
        """The curves from the released cumulative counts.

        Parameters
        ----------
        layout : SurvivalLayout
        counts : Answer
            The cumulative counts, in the order of the layout.
        rows : SampledRows
        confidence : Number
            Confidence of the bands.

        Examples
        --------
        >>> answer = df.survival("cost", df["age"] > 40, periods=4).release(mu=0.2, confidence=0.9)
        >>> answer.confidence
        0.9
        """
        level = exact(confidence, name="survival: confidence")
        totals, scales = counts.arrays.unclipped[0][:, 0], counts.arrays.noise_scale[:, 0]
        curves = SurvivalCurves(totals, float(scales[0]), len(layout.keys), rows, float(1 - level), layout.whole)
        population = curves.population
        shared = frozenset().union(*counts.measurement_ids)
        return cls(
            description=layout.described(counts.plan),
            names=layout.names,
            keys=layout.keys,
            outputs=("time", layout.ends[1:]),
            arrays=curves.band(curves.noise),
            population_arrays=None if population is None else curves.band(population),
            confidence=float(level),
            simultaneous=True,
            notice=counts.notice,
            excluded=counts.excluded,
            uncounted=counts.uncounted,
            measurement_ids=(shared,) * len(layout.keys),  # all groups share their noise
            layout=layout,
            curves=curves,
            cost=counts.cost,
            cost_fraction=counts.cost_fraction,
            time=counts.time,
        )

    @property
    def _population_remedy(self) -> str:
        return (
            "in a census there is none, and where units may be excluded it is not known; noise intervals hold in both"
        )

    # --- what is computed from the curves --------------------------------------------------------------------------

    @property
    def at_risk(self) -> pd.Series | pd.DataFrame:
        """Noisy number of rows at risk at the start of each period."""
        return self._by_period(self.curves.counts.at_risk[..., :-1], "at risk")  # type: ignore[no-any-return]

    @property
    def events(self) -> pd.Series | pd.DataFrame:
        """Noisy number of events in each period."""
        return self._by_period(self.curves.counts.events, "events")  # type: ignore[no-any-return]

    def median(self) -> Estimates:
        """The time at which half of the rows had the event, with intervals that hold each separately.

        Between the ends of two periods the curve is taken as a straight line.  A curve that is not known to reach one
        half has no median, and an interval without an end.

        Examples
        --------
        >>> answer = df.survival("cost", df["age"] > 40, by="plan", periods=4).release(mu=0.2)
        >>> answer.median().estimate.index.tolist()
        ['free', 'paid']
        """
        return self._summary("median", lambda errors: medians(self.curves, self._ends, errors, self._z))

    def restricted_mean(self, until: float | None = None) -> Estimates:
        """The mean time without the event up to some time, with intervals that hold each separately.

        It is the area under the curve, which is taken as a straight line between the ends of two periods.

        Parameters
        ----------
        until : float, optional
            The time, after the start and at most the end of the last period; by default the end of the last period in
            which all curves are known.

        Raises
        ------
        InvalidValueError
            `until` is not in a period.

        Examples
        --------
        >>> answer = df.survival("cost", df["age"] > 40, by="plan", periods=4).release(mu=0.2)
        >>> answer.restricted_mean(until=500).estimate.index.tolist()
        ['free', 'paid']
        """
        start, *_, last = self.layout.ends
        if until is None:
            end = self.layout.ends[max(int(self.curves.known.all(axis=0).sum()), 1)]
        else:
            given = exact(until, name="restricted_mean: until")
            if not start < given <= last or float(given) == start:
                raise InvalidValueError(
                    f"restricted_mean: until must be after {start:g} and at most {last:g}; got {until!r}"
                )
            end = float(given)
        return self._summary(
            f"restricted mean up to {end:g}",
            lambda errors: restricted_means(self.curves, self._ends, errors, self._z, end),
        )

    def test(  # type: ignore[override]  # of curves there is one test
        self, *, alpha: Number = 0.05
    ) -> HypothesisTest:
        """The log-rank test that all groups have the same curve in the population, with the noise; free.

        Parameters
        ----------
        alpha : Number, default 0.05
            The level of the test.

        Raises
        ------
        RequestError
            There are no groups, or the table is a census.

        Examples
        --------
        >>> answer = df.survival("cost", df["age"] > 40, by="plan", periods=4).release(mu=0.2)
        >>> answer.test().df
        1
        """
        level = level_of_test(alpha)
        if len(self.keys) < 2:
            raise RequestError("test: compares the curves of several groups; name them, as in df.survival(..., by=...)")
        if self.population_arrays is None:
            raise RequestError(
                f"test: is about a population, and there is no sampling error; {self._population_remedy}"
            )
        found, periods = log_rank(self.curves, self._ends)
        remarks = [f"over the first {periods} of {self.layout.periods} periods, which are known in all groups"]
        if self.curves.rows.max_rows > 1:
            remarks.append(SEVERAL_ROWS.format(self.curves.rows.max_rows))
        return HypothesisTest(
            null=f"{IN_THE_POPULATION}, {self.description} is the same",
            method="log-rank",
            statistic=found.value,
            df=len(self.keys) - 1,
            pvalue=found.pvalue,
            alpha=level,
            remarks=tuple(remarks),
            notice=self.notice,
        )

    def to_frame(self) -> pd.DataFrame:
        """One row for each group and period, as a pandas DataFrame.

        The columns are those of `to_pandas`, with ``survival`` for the estimate, and ``at_risk`` and ``events``.

        Examples
        --------
        >>> answer = df.survival("cost", df["age"] > 40, periods=4).release(mu=0.2)
        >>> answer.to_frame().columns.tolist()[:5]
        ['at_risk', 'events', 'survival', 'low', 'high']
        """
        table = self.to_pandas().rename(columns={"estimate": "survival"})
        table.insert(0, "at_risk", self.curves.counts.at_risk[..., :-1].ravel())
        table.insert(1, "events", self.curves.counts.events.ravel())
        return table

    # --- helpers -----------------------------------------------------------------------------------------------------

    @property
    def _ends(self) -> Cells:
        return np.array(self.layout.ends)

    @property
    def _z(self) -> float:
        return fixed_radius([1.0], alpha=1 - exact(self.confidence))

    def _by_period(self, numbers: Cells, name: str) -> Any:
        import pandas as pd  # imported when first used

        series = pd.Series(numbers.ravel(), pandas_index(self.names, self.keys, self.outputs), name=name)
        return series.unstack(sort=False) if self.names else series

    def _summary(self, words: str, arrays: Callable[[CurveErrors], IntervalArrays]) -> Estimates:
        population = self.curves.population
        return Estimates(
            description=f"{words} of {self.description}",
            names=self.names,
            keys=self.keys,
            outputs=None,
            arrays=arrays(self.curves.noise),
            population_arrays=None if population is None else arrays(population),
            confidence=self.confidence,
            notice=self.notice,
            excluded=self.excluded,
            uncounted=self.uncounted,
            measurement_ids=self.measurement_ids,
        )
