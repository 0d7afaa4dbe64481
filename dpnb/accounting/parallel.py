"""What a partition costs: the growth of its largest part, or of the sum of its p largest.

Claim.  Let every privacy unit have rows in at most p parts of a partition, and let the parts and the table itself be
asked in any order, each loss chosen from all earlier answers.  Charge the table's filter, for every answer in a part,
with the growth of

    M = the sum of the p largest of the parts' own sums,    component by component,

and for every answer outside with its own loss.  Then the filter's promise holds.

Proof.  Fix two neighbours, which differ in one unit u, and let J be the set of parts in which u has rows; |J| <= p.
The answers of the other parts have the same distribution on both tables, given the past, so their loss for this pair is
0 and only the answers outside and those in J count for it.  Their sum is at most the sum outside plus the sum over J of
the parts' sums, hence at most the sum outside plus M, which is what the filter has counted: M never falls, so its
growths add up to it.  The pair's own losses are chosen from the past, and their sum stays within the budget at all
times; the filter's theorem, which is a statement about each pair, gives the promise for this one (Smith and Thakurta
2022, Theorem 1, for mu squared; Feldman and Zrnic 2021, Theorem 4.3, for the Renyi loss of one order; Rogers et al.
2016, Theorem 3.3, for epsilon and delta).  []

The idea is not ours alone: Henzinger, Safavi and Vadhan 2024, *Concurrent Composition for Differentially Private
Continual Mechanisms* (arXiv:2411.03299v4), prove parallel composition for interactive mechanisms that are asked in any
order, where the table does not change meanwhile, as here; with adaptive updates of the table they show that it fails
for approximate differential privacy.  The claim above is stated for filters, with losses chosen as one goes, and for
units in up to p parts.

It holds for a filter that bounds sums, with each component of the sum bounded by itself.  That of Rogers et al. bounds
a function of its losses for which we state no such rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

__all__ = ["NO_PARTS", "PartRef", "PartSums"]

Parts = tuple[Fraction, ...]
"""The components of a loss: see :attr:`dpnb.accounting.losses.Loss.parts`."""

_ZERO = Fraction(0)


@dataclass(frozen=True)
class PartRef:
    """A part of a partition.

    Parameters
    ----------
    partition : int
        Number of the partition.
    part : str
        Key of the part.
    max_parts_per_unit : int
        In how many parts one unit can have rows: p.
    """

    partition: int
    part: str
    max_parts_per_unit: int


@dataclass(frozen=True)
class PartSums:
    """The parts' own sums, for partitions that may lie in parts of other partitions; frozen.

    Parameters
    ----------
    sums : mapping of int to (mapping of str to tuple of Fraction)
        By partition and part.
    """

    sums: Mapping[int, Mapping[str, Parts]] = field(default_factory=dict)

    def after(self, path: Sequence[PartRef], loss: Parts) -> tuple[PartSums, Parts]:
        """The sums after an answer in a part, and what it costs outside.

        Parameters
        ----------
        path : sequence of Place
            The part, the part that its partition lies in, and so on outwards; empty for an answer outside.
        loss : tuple of Fraction
        """
        sums = dict(self.sums)
        for place in path:
            parts = sums.get(place.partition, {})
            own = parts.get(place.part, (_ZERO,) * len(loss))
            new = tuple(a + b for a, b in zip(own, loss, strict=True))
            rivals = self._rivals(place, len(loss))
            # The p - 1 largest of the others count either way; the last place is the larger's of this one and the next.
            grown = (max(n, r) - max(o, r) for o, n, r in zip(own, new, rivals, strict=True))
            sums[place.partition] = {**parts, place.part: new}
            loss = tuple(grown)
        return PartSums(sums), loss

    def free_loss(self, place: PartRef, size: int) -> Parts:
        """What a part can still be charged at no cost outside, component by component; `size` of them."""
        own = self.sums.get(place.partition, {}).get(place.part, (_ZERO,) * size)
        return tuple(max(r - o, _ZERO) for o, r in zip(own, self._rivals(place, size), strict=True))

    def cost(self, partition: int, most: int, size: int) -> Parts:
        """What a partition has cost outside by now, component by component; `size` of them."""
        columns = list(zip(*self.of(partition).values(), strict=True)) or [()] * size
        return tuple(sum(sorted(column, reverse=True)[:most], _ZERO) for column in columns)

    def of(self, partition: int) -> Mapping[str, Parts]:
        """The sums of a partition's parts that were ever charged, by their keys."""
        return self.sums.get(partition, {})

    def _rivals(self, place: PartRef, size: int) -> Parts:
        """The p-th largest sum among the other parts, component by component; 0 where there are fewer."""
        others = [sums for part, sums in self.sums.get(place.partition, {}).items() if part != place.part]
        if len(others) < place.max_parts_per_unit:
            return (_ZERO,) * size
        return tuple(
            sorted(component, reverse=True)[place.max_parts_per_unit - 1] for component in zip(*others, strict=True)
        )


NO_PARTS = PartSums()
"""Before anything was asked in a part."""
