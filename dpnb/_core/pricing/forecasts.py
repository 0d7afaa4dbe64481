"""Forecasts of the errors that an answer would have, and how far off they may be; made without the table.

There are three kinds of forecasts.  The error of a sum, a count or a quantile (in rank) depends on the noise alone.
That of a mean, given the number of rows, lies between two bounds that are a factor of 1.41 apart, wherever the mean is;
the forecast is between them.  All others are forecast at the sums that earlier looks at the question gave; how far off
that may be is found by moving these sums by some noise.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

import numpy as np

from dpnb._core.pricing.public_knowledge import RowCounts
from dpnb._core.pricing.question import QueryState
from dpnb._core.pricing.target import ErrorModel, Label, Target, is_reliable_forecast
from dpnb._plan.measurements import ColumnsView
from dpnb._plan.schema import Key, Schema
from dpnb.accounting.exact import binary_down
from dpnb.mechanisms.threshold import threshold_for
from dpnb.results.estimates.expected import half_widths
from dpnb.results.estimates.noisy import Cells
from dpnb.results.estimates.outputs import outputs_of
from dpnb.results.estimates.partitions import widest

MAX_SHIFTS = 8
"""Directions in which the known sums are moved, both forwards and backwards."""

MOVED = 2.0
"""Noise scales by which they are moved.  What depends on many sums moves by as many of its own noise scales in a usual
direction, and by about twice as many in the farthest of sixteen: a larger error has a chance of a few in 10,000."""

MIDDLE = 0.53
"""Where the forecast for a mean lies between the least and the largest half-width, on a log scale.  There the largest
half-width misses a target by 1.2 times just when the least costs 1.5 times what it needs; with the largest sqrt(2)
times the least, 1.9% is left on either side."""

NOT_ALL = "every unit takes part, although some may be excluded"


@dataclass(frozen=True)
class ExpectedErrors:
    """The forecasts for one question and target.

    Parameters
    ----------
    question : Question
    target : Target
    rows : Rows or None
    schema : dict
    """

    question: QueryState
    target: Target
    rows: RowCounts | None
    schema: Schema

    def errors(self) -> ErrorModel:
        """The errors as they are, and as they would be."""
        question, view = self.question, self.question.view
        outputs = outputs_of(view)
        keys = question.query.keys
        labels = [
            [_names(keys[cell] if keys else (), outputs, place) for place in range(self._outputs)]
            for cell in question.cells
        ]
        return ErrorModel(
            question.words,
            labels,
            isinstance(view, ColumnsView),
            question.aggregation.l2_sensitivity_squared,
            self._now(),
            self._at,
            self._spread,
        )

    def assumed(self, sigma: float) -> str | None:
        """What an expected error assumes; None if it uses only what is released or public."""
        if self._linear:
            return None
        if self.question.is_standalone:
            return NOT_ALL
        if self.rows is None:
            return None
        if self.rows.assumed is not None or self._own:
            return self.rows.assumed
        least, here, most = (self._at(sigma, place=place) for place in (0.0, MIDDLE, 1.0))
        if least is None or here is None or most is None or is_reliable_forecast([least, most], here, per_cell=True):
            return None
        with np.errstate(all="ignore"):  # of a group about which nothing can be foretold
            times = np.maximum(here / least, most / here)
        by = f" by up to {times[np.isfinite(times)].max():.1f} times" if np.isfinite(times).any() else ""
        return f"the values are not extreme, which could change it{by}"

    # --- at one noise scale -----------------------------------------------------------------------------------------

    @property
    def _outputs(self) -> int:
        outputs = outputs_of(self.question.view)
        return len(outputs[1]) if outputs else 1

    @cached_property
    def _alpha(self) -> Fraction:
        count = self.question.query.cells * self._outputs
        return alpha_of(self.target.alpha, count if self.target.simultaneous else 1)

    @property
    def _own(self) -> bool:
        """Whether the forecast is made at the sums of earlier looks at the question itself."""
        return self._known is not None and (self.rows is None or self.rows.own)

    @cached_property
    def _known(self) -> tuple[Cells, Cells] | None:
        refinement = self.question.refinement
        return refinement.combined() if refinement.observations else None

    @cached_property
    def _linear(self) -> bool:
        """Whether the error depends on the noise alone."""
        if self.question.discovery_delta:
            return True
        ones = np.ones(self.question.query.cells)
        return half_widths(self.question.query, self.question.view, ones, ones, self.schema) is not None

    def rows_are_enough(self) -> bool:
        """Whether it would be enough to know the number of rows."""
        ones = np.ones(self.question.query.cells)
        ends = [
            half_widths(self.question.query, self.question.view, ones, ones * 1e-9, self.schema, rows=ones, place=place)
            for place in (0.0, MIDDLE, 1.0)
        ]
        least, middle, most = ends
        return least is not None and most is not None and is_reliable_forecast([least, most], middle, per_cell=True)

    def _widths(
        self, sigma: Cells, radius: Cells, *, sums: Cells | None = None, place: float = MIDDLE, now: bool = False
    ) -> Cells | None:
        known = self._known
        found = half_widths(
            self.question.query,
            self.question.view,
            sigma,
            radius,
            self.schema,
            known=sums if sums is not None else None if known is None else known[0],
            rows=None if self.rows is None or self._own or now else self.rows.each,
            place=place,
        )
        return None if found is None else found[self.question.cells]

    def _now(self) -> Cells | None:
        question, known = self.question, self._known
        if known is None or question.is_standalone:
            return None
        now = self._widths(known[1], question.refinement.radius(self._alpha), now=True)
        if now is None or len(question.refinement.observations) == 1:
            return now
        # An interval lies within the first look's.
        _, sigma = question.refinement.first.combined()
        first = self._widths(sigma, question.refinement.first.radius(self._alpha), now=True)
        return now if first is None else np.minimum(now, first)

    def _at(self, sigma: float, *, sums: Cells | None = None, place: float = MIDDLE) -> Cells | None:
        question, known = self.question, self._known
        if question.discovery_delta:
            return None if self.target.simultaneous else self._widest_named(sigma)
        radius = question.combined.radius_at(sigma, self._alpha, final=self.target.final)
        if known is None or question.aggregation.cell_subset is None:
            cells = question.query.cells
            return self._widths(np.full(cells, sigma), np.full(cells, radius), sums=sums, place=place)
        sigmas, radii = known[1].copy(), question.refinement.radius(self._alpha)
        sigmas[question.cells], radii[question.cells] = np.minimum(sigmas[question.cells], sigma), radius
        return self._widths(sigmas, radii, sums=sums, place=place)

    def _widest_named(self, sigma: float) -> Cells:
        """The largest half-width of a discovered group, shape (1, 1); nobody knows how many groups there are."""
        question = self.question
        threshold = threshold_for(sigma, question.query.l2_sensitivity_squared, question.discovery_delta)
        return np.array([[widest(sigma, threshold, binary_down(self.target.alpha))]])

    def _spread(self, sigma: float) -> Iterator[Cells | None]:
        """What the half-widths may turn out to be."""
        if self._linear:
            yield self._at(sigma)
            return
        assumed = self.rows is not None and self.rows.assumed is not None and not self._own
        if self.question.is_standalone or assumed:  # fewer units take part, and nobody may know how many
            yield None
            return
        for sums in self._moved():
            for place in (0.0, 1.0) if self.rows is not None and not self._own else (MIDDLE,):
                yield self._at(sigma, sums=sums, place=place)

    def _moved(self) -> Iterator[Cells | None]:
        """The known sums with some more noise, from a fixed seed: nothing is drawn for privacy here."""
        if self._known is None:
            yield None
            return
        sums, scale = self._known
        chance = np.random.default_rng(0)
        for _ in range(MAX_SHIFTS):
            move = MOVED * scale[:, None] * chance.standard_normal(sums.shape)
            yield sums + move
            yield sums - move


def alpha_of(alpha: Fraction, intervals: int) -> Fraction:
    """What each of several intervals may miss, so that all hold at once (the union bound)."""
    return alpha / max(intervals, 1)


def _names(key: tuple[Key, ...], outputs: tuple[str, tuple[Key, ...]] | None, place: int) -> tuple[Label, ...]:
    """What a mapping of errors may call a number: its statistic, or its group, as a tuple too."""
    names: list[Label] = [key, key[0]] if len(key) == 1 else [key] if key else []
    return (*names, *([outputs[1][place]] if outputs else []))
