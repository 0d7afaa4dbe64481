"""A question with what is known of it by now."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from dpnb._compile import LinearQuery
from dpnb._plan.measurements import AnyView, Discovery
from dpnb._plan.plan import describe_plan
from dpnb._plan.schema import Key
from dpnb.accounting.exact import from_text
from dpnb.accounting.losses import GDP
from dpnb.results.observations import CombinedObservations

Keys = tuple[tuple[Key, ...], ...]


@dataclass(frozen=True)
class QueryState:
    """A plan and a view with what is known of them by now.

    Parameters
    ----------
    query : LinearQuery
        Of all cells.
    measured : LinearQuery
        Of the cells that are to be looked at.
    view : View
    refinement : Refinement
        The looks at it that can be combined.
    alone : bool
        A new look is combined with none of them: see `Questions.looks`.
    """

    query: LinearQuery
    measured: LinearQuery
    view: AnyView
    refinement: CombinedObservations
    alone: bool = False

    @property
    def combined(self) -> CombinedObservations:
        """The looks that a new one is combined with."""
        return CombinedObservations((), None, self.query.cells) if self.alone else self.refinement

    @property
    def words(self) -> str:
        """The question in words."""
        return describe_plan(self.query.plan, self.view)

    @property
    def cells(self) -> list[int]:
        """Places of the cells to be looked at."""
        return list(range(self.query.cells)) if self.measured.only is None else list(self.measured.only)

    @property
    def known(self) -> GDP:
        """How well the cells to be looked at are known, as far as that saves anything."""
        return self.combined.known(self.measured.l2_sensitivity_squared, self.measured.only)

    @property
    def discovery_delta(self) -> Fraction:
        """What a discovery takes of the budget's discovery_delta."""
        aggregation = self.query.plan.aggregation
        return from_text(aggregation.delta) if isinstance(aggregation, Discovery) else Fraction(0)

    def missing(self, total: GDP) -> GDP:
        """What a release must cost so that the cells are known as well as by `total`."""
        squared = max(total.mu_squared - self.known.mu_squared, Fraction(0))
        return GDP.from_squared(squared, self.discovery_delta)
