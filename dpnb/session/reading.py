"""What the looks at a question say: made of what is released and what is declared, without a row."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property

from dpnb.answer.estimates import Estimate, estimate
from dpnb.answer.estimates.outputs import outputs_of
from dpnb.answer.faces import error_words
from dpnb.interactive.refinement import Floats, Refinement
from dpnb.query.linear import LinearQuery
from dpnb.query.schema import Key, Schema
from dpnb.session.expectations import alpha_of
from dpnb.session.questions import Keys
from dpnb.session.target import Request


@dataclass(frozen=True)
class Reading:
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
    request: Request
    refinement: Refinement
    keys: Keys
    schema: Schema

    @property
    def outputs(self) -> tuple[str, tuple[Key, ...]] | None:
        """What the numbers of each cell are called."""
        return outputs_of(self.request.view)

    @property
    def cells(self) -> Estimate:
        """Estimates and intervals."""
        cells = self._shown(self.refinement, self.refinement.radius(self._alpha))
        if len(self.refinement.looks) > 1 and not self.refinement.final:
            first = self.refinement.first
            cells = cells.within(self._shown(first, first.radius(self._alpha)))
        return cells

    @property
    def anytime(self) -> Estimate:
        """The same with intervals that hold for all looks at once."""
        return self._shown(self.refinement, self.refinement.anytime_radius(self._alpha))

    @property
    def error(self) -> str:
        """Half-widths of the intervals, in words."""
        return error_words(self.cells.half_width, self.outputs, float(self.request.confidence))

    @cached_property
    def _alpha(self) -> Fraction:
        count = len(self.keys) * (len(self.outputs[1]) if self.outputs else 1)
        return alpha_of(1 - self.request.confidence, count if self.request.simultaneous else 1)

    def _shown(self, refinement: Refinement, radius: Floats) -> Estimate:
        return estimate(self.query, self.request.view, *refinement.combined(), radius, self.schema)
