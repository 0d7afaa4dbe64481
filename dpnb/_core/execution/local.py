"""Charges requests and answers them from rows of this process."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fractions import Fraction

from dpnb._core.execution.batches import LocalBatches
from dpnb._core.execution.releases import LocalReleases
from dpnb._core.execution.selections import LocalSelections
from dpnb._core.history.words import AnswerReader
from dpnb._core.planned_batch import PlannedBatch
from dpnb._core.pricing.pricer import QueryPricer
from dpnb._core.pricing.target import Target
from dpnb._core.selection.terms import SelectionTerms
from dpnb._core.unit_budgets import IndividualAccounting
from dpnb.ledger import Charge
from dpnb.mechanisms.randomness import NoiseSource


class LocalExecution(LocalReleases):
    """Charges requests of every kind; for the parameters see `LocalReleases`."""

    def __init__(
        self,
        pricer: QueryPricer,
        reader: AnswerReader,
        source: NoiseSource,
        changed: Callable[[], None],
        individuals: IndividualAccounting | None = None,
    ) -> None:
        super().__init__(pricer, reader, source, changed, individuals)
        self._batches, self._selections = LocalBatches(self), LocalSelections(pricer, reader, source, changed)

    def release_batch(
        self, planned: PlannedBatch, targets: Sequence[Target], *, at_most: Fraction | None = None
    ) -> list[Charge]:
        """Charge all tables of a batch in one transaction, and answer them one after the other."""
        return self._batches.release(planned, targets, at_most)

    def select(self, terms: SelectionTerms, epsilon: Fraction) -> Charge:
        """Charge a selection of the largest groups and answer it."""
        return self._selections.select(terms, epsilon)
