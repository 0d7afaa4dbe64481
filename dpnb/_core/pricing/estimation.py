"""Estimates and intervals from the observations of a query, computed from released values and the schema alone."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpnb._compile import LinearQuery
from dpnb._compile.features import TreeFeature
from dpnb._core.pricing.query_state import Released
from dpnb._plan.expressions.nodes import AsNumber, Column, Seconds, nodes_of
from dpnb._plan.expressions.text import iso_text
from dpnb._plan.measurements import (
    AnyView,
    BoundsView,
    ColumnsView,
    Count,
    CountActiveUnits,
    CountUnits,
    CumulativeCount,
    Discovery,
    NamedColumn,
    QuantilesView,
    StandardErrorView,
    Sum,
    is_regression,
    products_of,
)
from dpnb._plan.plan import describe_plan
from dpnb._target import Keys
from dpnb.accounting.exact import binary_down, decimal_down
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.truncated_normal import alpha_of_each
from dpnb.mechanisms.measurement import Measurement
from dpnb.mechanisms.selection import least_named
from dpnb.render.numbers import date_with_interval, describe_error, number_with_interval
from dpnb.results.bounds import EVENTS_PER_BIN
from dpnb.results.estimates import IntervalArrays, estimate
from dpnb.results.estimates.estimate import GIVEN, named_groups
from dpnb.results.estimates.least_squares import LeastSquares
from dpnb.results.estimates.linear import RegressionNumbers, least_squares, named_outputs, numbers_of
from dpnb.results.estimates.noisy import SampledAs
from dpnb.results.estimates.outputs import TableLayout, dates_of, outputs_of, table_of
from dpnb.results.estimates.population import SamplingError, population, sampled_as
from dpnb.results.estimates.quantiles import RANK_MARGIN, rank_scale
from dpnb.results.observations import FIRST_OBSERVATION_ALPHA, CombinedObservations, Floats, radius_of
from dpnb.schema import Categories, Key, Schema
from dpnb.times import UTC_TIME


class AnswerSummary(NamedTuple):
    """An answer in a few words.

    `text` is a single number with its interval, otherwise how many groups and values the answer has; the numbers are
    None unless it is a single number.
    """

    text: str
    value: float | None = None
    low: float | None = None
    high: float | None = None


def alpha_of_each_interval(alpha: Fraction, view: AnyView, count: int, simultaneous: bool) -> Fraction:
    """The error probability of each of the intervals of an answer with `count` numbers, by the union bound.

    One interval holds at a time, or all together; see `dpnb.results.selection` for those of a bounds finder.
    """
    at_once = EVENTS_PER_BIN * count if isinstance(view, BoundsView) else count if simultaneous else 1
    return alpha / max(at_once, 1)


Squares = tuple[Floats, Floats]
"""Sums of squared influences on each number, with their noise scales; shape (cells, outputs)."""


@dataclass(frozen=True)
class EstimateReader:
    """The estimates that a request reads from the observations of its query."""

    query: LinearQuery
    request: Released
    refinement: CombinedObservations
    keys: Keys
    schema: Schema

    @cached_property
    def outputs(self) -> tuple[str, tuple[Key, ...]] | None:
        """The names of the numbers of each cell; None if there is one number."""
        view = self.request.view
        return named_outputs(self.query, view, self.schema) if is_regression(view) else outputs_of(view)

    @cached_property
    def description(self) -> str:
        """The query in words."""
        return describe_plan(self.query.plan, self.request.view)

    @property
    def table(self) -> TableLayout | None:
        """The table that the numbers form; None for an answer with groups, or whose numbers form none."""
        return table_of(self.request.view) if not self.query.plan.group_by else None

    @property
    def condition(self) -> str | None:
        """The condition under which the intervals hold, if any."""
        return GIVEN if isinstance(self.query.plan.aggregation, Discovery) else None

    @cached_property
    def arrays(self) -> IntervalArrays:
        """Estimates and intervals."""
        if isinstance(self.query.plan.aggregation, Discovery):
            return self._discovered
        arrays = self._estimate(self.refinement, self.refinement.radius(self._alpha))
        if self.refinement.is_refined and not self.refinement.is_final:
            first = self.refinement.first
            arrays = arrays.within(self._estimate(first, first.radius(self._alpha)))
        return arrays

    @property
    def anytime_arrays(self) -> IntervalArrays:
        """The same with intervals that hold for all observations at once; a discovery has one observation."""
        if isinstance(self.query.plan.aggregation, Discovery):
            return self._discovered
        return self._estimate(self.refinement, self.refinement.anytime_radius(self._alpha))

    def population_arrays(
        self, sampled: Fraction, squares: Squares | None = None, *, anytime: bool = False
    ) -> IntervalArrays | None:
        """The estimates with population intervals, NaN where the sampling error is not known; None if it is nowhere.

        `sampled` is the declared fraction of the population, and `squares` are those of `SamplingError`.  Alpha is
        divided as for noise intervals.  The later observations were made because of earlier ones, so the noise, with a
        quarter of their part, and the sampling error, with the rest of it, are added in full.  With `anytime` the noise
        is that of `anytime_arrays`, for arithmetic, and not added in full.
        """
        refinement, remaining = self.refinement, float(1 - sampled)
        if not self._is_sampled:
            return None
        if not remaining:  # a census has no sampling error
            return self.anytime_arrays if anytime else self.arrays
        error = SamplingError(self._z, remaining, squares)
        refined = refinement.is_refined and not refinement.is_final
        if anytime:
            found = self._population(refinement, refinement.anytime_radius(self._alpha), error)
        else:
            first = refinement.first if refined else refinement
            found = self._population(first, first.radius(self._alpha), error)
        if refined and not anytime:
            z = fixed_radius([1.0], alpha=(1 - FIRST_OBSERVATION_ALPHA) * self._alpha * 3 / 4)
            error = SamplingError(z, remaining, squares, additive=True)
            found = self._population(refinement, refinement.anytime_radius(self._alpha / 4), error).within(found)
        return None if np.isnan(found.low).all() else found

    def tested_arrays(self, sampled: Fraction, squares: Squares | None = None) -> IntervalArrays | None:
        """As `population_arrays` of a first observation, for tests; None where these do for them."""
        measured = squares is not None or products_of(self.query.plan.aggregation) is not None
        if not (measured and self._is_sampled and sampled < 1) or is_regression(self.request.view):
            return None
        refinement = self.refinement
        error = SamplingError(self._z, float(1 - sampled), squares, for_test=True)
        return self._population(refinement, refinement.radius(self._alpha), error)

    def sampled_as(self, sampled: Fraction, squares: Squares | None = None, *, unit: str | None = None) -> SampledAs:
        """What tests need to know of the population intervals; the arguments are those of `population_arrays`."""
        error = SamplingError(self._z, float(1 - sampled), squares)
        return replace(sampled_as(self.query, self.request.view, self.schema, error), unit=unit)

    @property
    def _is_sampled(self) -> bool:
        """Whether there are population intervals of such a statistic."""
        without = Discovery | CountActiveUnits | CumulativeCount
        is_sampled = not isinstance(self.request.view, StandardErrorView | BoundsView)
        return is_sampled and not isinstance(self.query.plan.aggregation, without)

    @property
    def _z(self) -> float:
        """Half-width of an interval of a first observation, in standard deviations."""
        return radius_of((1.0,), self._alpha, None, final=self.refinement.is_final)

    def _population(self, refinement: CombinedObservations, radius: Floats, error: SamplingError) -> IntervalArrays:
        return population(self.query, self.request.view, *refinement.combined, radius, self.schema, error)

    def part(self, index: int, view: AnyView) -> IntervalArrays:
        """One statistic of a part of the query, which may be another than the requested one."""
        columns = ColumnsView((NamedColumn("", index, view),))  # type: ignore[arg-type]  # of a part
        sums, sigma = self.refinement.combined
        return estimate(self.query, columns, sums, sigma, sigma, self.schema)

    def placed(self, squares: Squares, places: list[int]) -> Squares:
        """The sums of squared influences on some numbers as those of all, NaN where they were not measured."""
        value, scale = np.full((2, *self.arrays.value.shape), np.nan)
        value[:, places], scale[:, places] = squares
        return value, scale

    @cached_property
    def least_squares(self) -> LeastSquares:
        """The moments of a regression."""
        return least_squares(self.query, self.request.view, *self.refinement.combined, self.schema)

    def regression_numbers(self, sampled: Fraction, unit: str | None, squares: Squares | None) -> RegressionNumbers:
        """The released numbers of a regression; `sampled` and `squares` are those of `population_arrays`."""
        _, sigma = self.refinement.combined
        return numbers_of(
            self.query,
            self.request.view,
            self.arrays,
            self.least_squares,
            float(self.refinement.radius(self._alpha)[0] / sigma[0]),
            self.schema,
            unit=unit,
            remaining=float(1 - sampled),
            squares=squares,
        )

    def remarks(self) -> tuple[tuple[str, str], ...]:
        """What the released numbers suggest about the declaration: the id of an explanation, and the text."""
        plan, found = self.query.plan, []
        if isinstance(self.request.view, QuantilesView | ColumnsView):
            found.append(("at-bound", self._at_bounds))
            found.append(("clear-of-noise", self._beyond))
        is_sum = isinstance(plan.aggregation, Sum) and isinstance(plan.aggregation.column, AsNumber)
        is_count = is_sum or isinstance(plan.aggregation, Count | CountUnits)
        empty = self.arrays.low <= 0 if is_count else self.arrays.is_unknown
        if empty.all() and not self._has_counted_rows and not isinstance(plan.aggregation, Discovery):
            found.append(("maybe-empty", self._misspelled))
        return tuple([(explanation, text) for explanation, text in found if text is not None])

    @property
    def _has_counted_rows(self) -> bool:
        """Whether a regression, whose coefficients may be unknown for other reasons, is one of rows for certain."""
        if not is_regression(self.request.view) or not self.least_squares.intercept:
            return False
        count, changes = self.least_squares.count
        return count > self._z * float(np.abs(changes).max())

    @property
    def _misspelled(self) -> str | None:
        """That the values of a column may be spelled in another way than declared, as every group may be empty."""
        read = nodes_of((self.query.plan.aggregation, self.query.plan.where, self.query.plan.group_by))
        names = [node.name for node in read if isinstance(node, Column)]
        categories = [name for name in dict.fromkeys(names) if isinstance(self.schema.get(name), Categories)]
        if not categories:
            return None
        columns = " and ".join(map(repr, categories))
        every = f"every one of the {len(self.keys):,} groups" if len(self.keys) > 1 else "what is counted"
        return (
            f"{every} may be empty: whether the values of {columns} are spelled as declared cannot be noticed without "
            "the rows; python -m dpnb check can"
        )

    @property
    def _at_bounds(self) -> str | None:
        """Which quantiles are at a declared bound, beyond which values may be, in words; None for none."""
        shown, found = self.arrays.displayed, []
        for index, (label, feature, q) in enumerate(self._quantiles):
            if feature is None or q == 0.5:
                continue
            column = shown[:, index]
            at_end = column >= feature.last_edge if q > 0.5 else column < feature.first_edge
            if at_end.any():
                found.append(label + _at_bound(feature, q, at_end.sum(), len(column)))
        return "; ".join(dict.fromkeys(found)) or None

    @property
    def _beyond(self) -> str | None:
        """In how many rows values beyond a maximum or minimum may be, at most, in words; None without one.

        A maximum is taken `RANK_MARGIN` standard deviations of rank below the number of rows.  Besides, no noise of the
        ranks at the edges of the leaves exceeds the radius at alpha divided by their number, by the union bound; the
        rising ranks that the estimate is read from are then off by no more.  So the number of rows beyond the leaf of
        the estimate exceeds the sum of both with probability at most alpha.
        """
        (_, sigma), found = self.refinement.combined, []
        for index, (label, feature, q) in enumerate(self._quantiles):
            if feature is None or 0 < q < 1:
                continue
            radius = self.refinement.radius(self._alpha / (feature.leaves + 1))
            rows = float(feature.unit) * rank_scale(feature, q) * (RANK_MARGIN * sigma + radius)
            shown, unknown = self.arrays.displayed[:, index], self.arrays.is_unknown[:, index]
            clear = ~unknown & (shown < feature.last_edge if q else shown >= feature.first_edge)
            if clear.any():
                most = f"{math.ceil(rows[clear].max()):,} rows{' of a group' if len(rows) > 1 else ''}"
                leaf = "" if feature.resolution is None else " beyond its bin"
                found.append(f"{label}{'larger' if q else 'smaller'} values{leaf} may exist in at most {most}")
        return "; ".join(found) or None

    @property
    def _quantiles(self) -> list[tuple[str, TreeFeature | None, float]]:
        """For each number of a group what it is called, the tree that it is a quantile of, and its level; 0.5 else."""
        view, labels = self.request.view, self.outputs[1] if self.outputs else ()
        match view:
            case QuantilesView(at):
                views: list[tuple[str, int, float]] = [("", 0, q) for q in at]
            case ColumnsView(columns):
                views = [
                    (f"{label}: ", named.part, named.view.at[0] if isinstance(named.view, QuantilesView) else 0.5)
                    for label, named in zip(labels, columns, strict=True)
                ]
            case _:
                views = []
        return [(label, self._tree(part), q) for label, part, q in views]

    def _tree(self, part: int) -> TreeFeature | None:
        feature = self.query.features[self.query.parts[part][1]]
        return feature if isinstance(feature, TreeFeature) else None

    @property
    def error(self) -> str:
        """Half-widths of the intervals, in words."""
        return describe_error(self.arrays.half_width, self.outputs, decimal_down(self.request.target.confidence))

    @property
    def summary(self) -> AnswerSummary:
        """The answer in a few words, for the log."""
        cells = self.arrays
        if not self.query.plan.group_by and cells.value.size == 1:
            number = cells.value.item(), cells.low.item(), cells.high.item()
            dates = dates_of(self.query.plan.aggregation, self.request.view, self.schema)
            if dates:
                text, interval = date_with_interval(cells.displayed.item(), *number[1:], dates[0] or UTC_TIME)
            else:
                text, interval = number_with_interval(cells.displayed.item(), *number[1:])
            return AnswerSummary(f"{text} ({interval})", *number)
        n_groups, n_outputs = cells.value.shape
        words = values = f"{n_outputs} values"
        if self.query.plan.group_by:
            groups = f"{n_groups:,} group{'' if n_groups == 1 else 's'}"
            words = groups if self.outputs is None else f"{groups}, {values} each"
        return AnswerSummary(words)

    @cached_property
    def _alpha(self) -> Fraction:
        count = len(self.keys) * (len(self.outputs[1]) if self.outputs else 1)
        target = self.request.target
        return alpha_of_each_interval(1 - target.confidence, self.request.view, count, target.simultaneous)

    @cached_property
    def _discovered(self) -> IntervalArrays:
        """The counts of the groups that a discovery named."""
        (observation,) = self.refinement.observations
        measurement, alpha = observation.measurement, binary_down(1 - self.request.target.confidence)
        if not isinstance(measurement, Measurement):  # never: a discovery is not part of a batch
            raise TypeError(type(measurement).__name__)
        least = least_named(
            measurement.sigma, self.query.l2_sensitivity_squared, observation.loss.delta, measurement.exponent
        )
        return named_groups(
            measurement, least, alpha_of_each(alpha, len(self.keys) if self.request.target.simultaneous else 1)
        )

    def _estimate(self, refinement: CombinedObservations, radius: Floats) -> IntervalArrays:
        return estimate(self.query, self.request.view, *refinement.combined, radius, self.schema)


def _at_bound(feature: TreeFeature, q: float, groups: int, of: int) -> str:
    """That a quantile is at the bound of its column, and in how many groups."""
    node, end = feature.expression, feature.high if q > 0.5 else feature.low
    bound = f"{end:.15g}"
    if isinstance(node, Seconds):
        node, bound = node.inner, iso_text(end)[:10]
    kind = "declared bound" if isinstance(node, Column) else "bound"
    some = f" in {groups:,} of {of:,} groups" if of > 1 else ""
    return f"at the {kind} {bound}{some}, as which {'larger' if q > 0.5 else 'smaller'} values count"
