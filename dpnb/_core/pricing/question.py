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
    aggregation : LinearQuery
        Of the cells that are to be looked at.
    view : View
    refinement : Refinement
        The looks at it that can be combined.
    is_standalone : bool
        A new look is combined with none of them: see `Questions.looks`.
    """

    query: LinearQuery
    aggregation: LinearQuery
    view: AnyView
    refinement: CombinedObservations
    is_standalone: bool = False

    @property
    def combined(self) -> CombinedObservations:
        """The looks that a new one is combined with."""
        return CombinedObservations((), None, self.query.cells) if self.is_standalone else self.refinement

    @property
    def words(self) -> str:
        """The question in words."""
        return describe_plan(self.query.plan, self.view)

    @property
    def cells(self) -> list[int]:
        """Places of the cells to be looked at."""
        return (
            list(range(self.query.cells))
            if self.aggregation.cell_subset is None
            else list(self.aggregation.cell_subset)
        )

    @property
    def known(self) -> GDP:
        """How well the cells to be looked at are known, as far as that saves anything."""
        return self.combined.known_loss(self.aggregation.l2_sensitivity_squared, self.aggregation.cell_subset)

    @property
    def discovery_delta(self) -> Fraction:
        """What a discovery takes of the budget's discovery_delta."""
        aggregation = self.query.plan.aggregation
        return from_text(aggregation.delta) if isinstance(aggregation, Discovery) else Fraction(0)

    def missing(self, total: GDP) -> GDP:
        """What a release must cost so that the cells are known as well as by `total`."""
        squared = max(total.mu_squared - self.known.mu_squared, Fraction(0))
        return GDP.from_mu_squared(squared, self.discovery_delta)
