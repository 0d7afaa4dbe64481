"""Forecasts of the errors of an answer, and how inaccurate they may be; computed without the table.

There are three kinds of forecasts.  The error of a sum, a count or a quantile (in rank) depends on the noise alone.
The error of a mean, given the number of rows, lies between two bounds that differ by a factor of 1.41, for any value of
the mean; the forecast is between them.  All other errors are forecast from the sums that earlier observations of the
query measured; the inaccuracy of such a forecast is estimated by adding noise to these sums.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpnb._core.pricing.estimation import alpha_of_each_interval
from dpnb._core.pricing.public_knowledge import RowCounts
from dpnb._core.pricing.query_state import QueryState
from dpnb._core.pricing.resolve import ErrorModel, is_reliable_forecast
from dpnb._core.pricing.typical import typical_sums
from dpnb._plan.measurements import ColumnsView, is_regression
from dpnb._target import Label, Target
from dpnb.accounting.exact import binary_down
from dpnb.mechanisms.selection import threshold_for
from dpnb.results.estimates.estimate import widest
from dpnb.results.estimates.expected import half_widths, in_rank, output_units
from dpnb.results.estimates.linear import least_squares, named_outputs
from dpnb.results.estimates.noisy import Cells
from dpnb.results.estimates.outputs import outputs_of
from dpnb.results.observations import CombinedObservations
from dpnb.schema import Key, Schema

MAX_SHIFTS = 8
"""Directions in which the known sums are shifted, both forwards and backwards."""

SHIFT = 2.0
"""Noise scales by which each known sum is shifted.  A function of many sums then shifts by about as many of its own
noise scales in a typical direction, and by about twice as many in the farthest of sixteen directions: the probability
of a larger error is a few in 10,000."""

MIDDLE = 0.53
"""Position of the forecast for a mean between the smallest and the largest half-width, on a log scale.  There the
largest half-width exceeds a target by a factor of 1.2 exactly when the smallest costs 1.5 times what is needed; if the
largest is sqrt(2) times the smallest, a margin of 1.9% remains on either side."""

MANY_ROWS = 1e6
"""A number of rows of which every statistic of typical values is known."""

ALL_UNITS = "every unit takes part, although some may be excluded"


@dataclass(frozen=True)
class ExpectedErrors:
    """The forecasts for one query and target; `rows` are the known numbers of rows."""

    state: QueryState
    target: Target
    rows: RowCounts | None
    schema: Schema

    def error_model(self) -> ErrorModel:
        """The current errors, and the expected errors as a function of the noise scale."""
        state, keys = self.state, self.state.query.keys
        labels = [
            [self._labels(keys[cell] if keys else (), index) for index in range(self._n_outputs)]
            for cell in state.cells
        ]
        return ErrorModel(
            state.description,
            labels,
            isinstance(state.view, ColumnsView),
            state.measured.l2_sensitivity_squared,
            self._current(),
            self.expected,
            self._possible,
        )

    def assumption(self, sigma: float) -> str | None:
        """What an expected error assumes; None if it uses only released or public values."""
        if self._linear:
            return None
        if self.state.is_standalone:
            return ALL_UNITS
        if self.rows is None:
            return None
        if self.rows.assumption is not None or self._from_observations:
            return self.rows.assumption
        smallest, middle, largest = (self.expected(sigma, place=place) for place in (0.0, MIDDLE, 1.0))
        if smallest is None or middle is None or largest is None:
            return None
        if is_reliable_forecast([smallest, largest], middle, per_cell=True):
            return None
        with np.errstate(all="ignore"):  # groups without a forecast
            factors = np.maximum(middle / smallest, largest / middle)
        by = f" by up to {factors[np.isfinite(factors)].max():.1f} times" if np.isfinite(factors).any() else ""
        return f"the values are not extreme, which could change it{by}"

    def least(self, sigma: float) -> Cells | None:
        """The errors if there are as many rows as there may be; None if their number is not a range."""
        most = None if self.rows is None else self.rows.if_most
        return None if most is None else replace(self, rows=most).expected(sigma)

    def typical(self, sigma: float) -> Cells | None:
        """The errors for typical values, with these numbers of rows; None for other queries than second moments."""
        sums = None if self.rows is None else typical_sums(self.state.query, self.rows.by_cell, self.schema)
        return None if sums is None or self._known_sums is not None else self.expected(sigma, sums=sums)

    def clearness(self, sigma: float) -> float | None:
        """`Preview.clearness` of a linear regression; None of other queries.

        If the number of rows is a range, it is that of a number in the middle.
        """
        state, most = self.state, None if self.rows is None else self.rows.if_most
        if most is not None:
            ends = [replace(self, rows=replace(rows, most=None)).clearness(sigma) for rows in (self.rows, most) if rows]
            return None if None in ends else float(np.sqrt(np.prod(ends)))  # type: ignore[arg-type]  # checked
        sums = None if self.rows is None else typical_sums(state.query, self.rows.by_cell, self.schema)
        if sums is None or not is_regression(state.view) or not np.isfinite(sums).all():
            return None
        with np.errstate(all="ignore"):
            model = least_squares(state.query, state.view, sums, np.array([sigma]), self.schema)
            return model.clearness(state.combined.radius_at(sigma, self._alpha, final=self.target.final) / sigma)

    def least_typical(self, sigma: float) -> Cells | None:
        """`typical` if there are as many rows as there may be; None if their number is not a range."""
        most = None if self.rows is None else self.rows.if_most
        return None if most is None else replace(self, rows=most).typical(sigma)

    def in_one_release(self, sigma: float) -> Cells | None:
        """The errors that a single release at this noise scale would have had; None without earlier observations."""
        if self._known_sums is None or self.state.is_standalone:
            return None
        cells = self.state.query.cells
        radius = CombinedObservations().radius_at(sigma, self._alpha)
        return self._widths(np.full(cells, sigma), np.full(cells, radius))

    def _labels(self, key: tuple[Key, ...], index: int) -> tuple[Label, ...]:
        """The labels of a number in ``within=``: its group, also as a tuple, and its statistic by each name."""
        labels: list[Label] = [key, key[0]] if len(key) == 1 else [key] if key else []
        return (*labels, *[outputs[1][index] for outputs in self._names if outputs])

    # --- at one noise scale -----------------------------------------------------------------------------------------

    @cached_property
    def _outputs(self) -> tuple[str, tuple[Key, ...]] | None:
        return outputs_of(self.state.view)

    @cached_property
    def _names(self) -> list[tuple[str, tuple[Key, ...]] | None]:
        """The outputs by each of their names."""
        if self._outputs is None or self._outputs[0] != "term":
            return [self._outputs]
        return [self._outputs, named_outputs(self.state.query, self.state.view, self.schema)]

    @cached_property
    def _n_outputs(self) -> int:
        return len(self._outputs[1]) if self._outputs else 1

    @cached_property
    def _alpha(self) -> Fraction:
        count = self.state.query.cells * self._n_outputs
        return alpha_of_each_interval(self.target.alpha, self.state.view, count, self.target.simultaneous)

    @property
    def _from_observations(self) -> bool:
        """Whether the forecast uses the sums of earlier observations of the query."""
        return self._known_sums is not None and (self.rows is None or self.rows.from_query)

    @cached_property
    def _known_sums(self) -> tuple[Cells, Cells] | None:
        refinement = self.state.refinement
        return refinement.combined if refinement.observations else None

    @cached_property
    def _linear(self) -> bool:
        """Whether the error depends on the noise alone."""
        if self.state.discovery_delta:
            return True
        ones = np.ones(self.state.query.cells)
        widths = half_widths(self.state.query, self.state.view, ones, ones, self.schema)
        return widths is not None and bool(np.isfinite(widths).all())

    def rows_are_enough(self) -> bool:
        """Whether knowing the number of rows would be enough."""
        ones = np.ones(self.state.query.cells)
        ends = [
            half_widths(self.state.query, self.state.view, ones, ones * 1e-9, self.schema, rows=ones, place=place)
            for place in (0.0, MIDDLE, 1.0)
        ]
        smallest, middle, largest = ends
        if smallest is None or largest is None or not np.isfinite(largest).all():
            return False
        return is_reliable_forecast([smallest, largest], middle, per_cell=True)

    @property
    def has_rows(self) -> bool:
        """Whether the numbers of rows are known, and are no range."""
        return self.rows is not None and self.rows.most is None

    def with_rows(self) -> Cells | None:
        """Half-widths that are finite where no more than the numbers of rows is missing; the same for all targets."""
        ones = np.ones(self.state.query.cells)
        sums = None if self.has_rows else typical_sums(self.state.query, ones * MANY_ROWS, self.schema)
        scales = ones if sums is None else ones * 1e-9
        return half_widths(self.state.query, self.state.view, scales, ones * 1e-9, self.schema, known=sums, rows=ones)

    def rows_would_help(self, expected: Cells | None, with_rows: Cells | None) -> bool:
        """Whether some of these expected errors are unknown, and known `with_rows`."""
        if with_rows is None or self.state.is_standalone:
            return False
        possible = with_rows[self.state.cells]
        known = np.zeros_like(possible, dtype=bool) if expected is None else np.isfinite(expected)
        return bool((np.isfinite(possible) & ~known).any())

    def _widths(
        self, sigma: Cells, radius: Cells, *, sums: Cells | None = None, place: float = MIDDLE, current: bool = False
    ) -> Cells | None:
        known = self._known_sums
        widths = half_widths(
            self.state.query,
            self.state.view,
            sigma,
            radius,
            self.schema,
            known=sums if sums is not None else None if known is None else known[0],
            rows=None if self.rows is None or self._from_observations or current else self.rows.by_cell,
            place=place,
        )
        return None if widths is None else widths[self.state.cells]

    def _current(self) -> Cells | None:
        refinement, known = self.state.refinement, self._known_sums
        if known is None or self.state.is_standalone:
            return None
        current = self._widths(known[1], refinement.radius(self._alpha), current=True)
        if current is None or len(refinement.observations) == 1:
            return current
        # An interval is intersected with that of the first observation.
        _, sigma = refinement.first.combined
        first = self._widths(sigma, refinement.first.radius(self._alpha), current=True)
        return current if first is None else np.minimum(current, first)

    def expected(self, sigma: float, *, sums: Cells | None = None, place: float = MIDDLE) -> Cells | None:
        """The errors at a noise scale; `place` as for `half_widths`, `sums` in place of the known ones."""
        state, known = self.state, self._known_sums
        if state.discovery_delta:
            return None if self.target.simultaneous else self._widest_named(sigma)
        radius = state.combined.radius_at(sigma, self._alpha, final=self.target.final)
        if known is None or state.measured.cell_subset is None:
            cells = state.query.cells
            return self._widths(np.full(cells, sigma), np.full(cells, radius), sums=sums, place=place)
        sigmas, radii = known[1].copy(), state.refinement.radius(self._alpha)
        sigmas[state.cells], radii[state.cells] = np.minimum(sigmas[state.cells], sigma), radius
        return self._widths(sigmas, radii, sums=sums, place=place)

    def _widest_named(self, sigma: float) -> Cells:
        """The largest half-width of a discovered group, shape (1, 1), since the number of groups is unknown."""
        threshold = threshold_for(sigma, self.state.query.l2_sensitivity_squared, self.state.discovery_delta)
        return np.array([[widest(sigma, threshold, binary_down(self.target.alpha))]])

    def _possible(self, sigma: float) -> Iterator[Cells | None]:
        """Half-widths that may result."""
        if self._linear:
            yield self.expected(sigma)
            return
        assumed = self.rows is not None and self.rows.assumption is not None and not self._from_observations
        if self.state.is_standalone or assumed:  # fewer units may take part; how many is private
            yield None
            return
        for sums in self._shifted():
            for place in (0.0, 1.0) if self.rows is not None and not self._from_observations else (MIDDLE,):
                yield self.expected(sigma, sums=sums, place=place)

    def _shifted(self) -> Iterator[Cells | None]:
        """The known sums with additional noise, from a fixed seed: this noise does not protect privacy."""
        if self._known_sums is None:
            yield None
            return
        sums, scale = self._known_sums
        rng = np.random.default_rng(0)
        for _ in range(MAX_SHIFTS):
            shift = SHIFT * scale[:, None] * rng.standard_normal(sums.shape)
            yield sums + shift
            yield sums - shift


def known_ranks(errors: Cells | None, state: QueryState, rows: RowCounts | None) -> Cells | None:
    """The errors without those in rank that are larger than the number of rows: infinite, as nothing is known then."""
    if errors is None or rows is None:
        return errors
    most = (rows.for_display.by_cell if rows.most is None else rows.most)[list(state.cells), None]
    ranked = np.array([in_rank(state.view) or unit is not None for unit in output_units(state.view) or (None,)])
    return np.where(ranked & (errors > most), np.inf, errors)  # a number of rows that is not known is NaN
