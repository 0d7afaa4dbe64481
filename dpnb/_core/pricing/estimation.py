"""What the looks at a question say: made of what is released and what is declared, without a row."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dpnb._compile import LinearQuery
from dpnb._core.pricing.forecasts import alpha_of
from dpnb._core.pricing.question import Keys
from dpnb._core.pricing.target import StoredRequest
from dpnb._plan.measurements import Discovery
from dpnb._plan.schema import Key, Schema
from dpnb.accounting.exact import binary_down, decimal_down
from dpnb.accounting.truncated import alpha_of_each
from dpnb.mechanisms.threshold import least_named
from dpnb.render.numbers import describe_error
from dpnb.results.estimates import IntervalArrays, estimate
from dpnb.results.estimates.outputs import outputs_of
from dpnb.results.estimates.partitions import GIVEN, named_groups
from dpnb.results.observations import CombinedObservations, Floats


@dataclass(frozen=True)
class EstimateReader:
    """Some looks at a question, read as one request wants it.

    Parameters
    ----------
    query : LinearQuery
    request : Request
    refinement : Refinement
    keys : tuple of tuple
        Of the cells.
    schema : dict
    """

    query: LinearQuery
    request: StoredRequest
    refinement: CombinedObservations
    keys: Keys
    schema: Schema

    @property
    def outputs(self) -> tuple[str, tuple[Key, ...]] | None:
        """What the numbers of each cell are called."""
        return outputs_of(self.request.view)

    @property
    def given(self) -> str | None:
        """The condition under which the intervals hold, if any."""
        return GIVEN if isinstance(self.query.plan.aggregation, Discovery) else None

    @cached_property
    def cells(self) -> IntervalArrays:
        """Estimates and intervals."""
        if isinstance(self.query.plan.aggregation, Discovery):
            return self._named
        cells = self._shown(self.refinement, self.refinement.radius(self._alpha))
        if len(self.refinement.observations) > 1 and not self.refinement.is_final:
            first = self.refinement.first
            cells = cells.within(self._shown(first, first.radius(self._alpha)))
        return cells

    @property
    def anytime(self) -> IntervalArrays:
        """The same with intervals that hold for all looks at once; a discovery is looked at once."""
        if isinstance(self.query.plan.aggregation, Discovery):
            return self._named
        return self._shown(self.refinement, self.refinement.anytime_radius(self._alpha))

    @property
    def error(self) -> str:
        """Half-widths of the intervals, in words."""
        return describe_error(self.cells.half_width, self.outputs, decimal_down(self.request.confidence))

    @cached_property
    def _alpha(self) -> Fraction:
        count = len(self.keys) * (len(self.outputs[1]) if self.outputs else 1)
        return alpha_of(1 - self.request.confidence, count if self.request.simultaneous else 1)

    @cached_property
    def _named(self) -> IntervalArrays:
        """The groups that a discovery named."""
        (look,) = self.refinement.observations
        measured, alpha = look.measurement, binary_down(1 - self.request.confidence)
        least = least_named(measured.sigma, self.query.l2_sensitivity_squared, look.loss.delta, measured.exponent)
        return named_groups(measured, least, alpha_of_each(alpha, len(self.keys) if self.request.simultaneous else 1))

    def _shown(self, refinement: CombinedObservations, radius: Floats) -> IntervalArrays:
        return estimate(self.query, self.request.view, *refinement.combined(), radius, self.schema)
