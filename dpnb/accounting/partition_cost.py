"""The cost of a partition: the growth of its largest part, or of the sum of its p largest.

Claim.  Let every privacy unit have rows in at most p parts of a partition, and let the parts and the table itself be
queried in any order, each loss chosen from all earlier answers.  Charge the table's filter, for every answer in a part,
with the growth of::

    M = the sum of the p largest of the parts' own sums,    component by component,

and for every answer outside with its own loss.  Then the filter's guarantee holds.

Proof.  Fix two neighbours, which differ in one unit u, and let J be the set of parts in which u has rows, at most p.
The answers of the other parts have the same distribution on both tables, given the past, so their loss for this pair is
0 and only the answers outside and those in J count for it.  Their sum is at most the sum outside plus the sum over J of
the parts' sums, hence at most the sum outside plus M, which is what the filter has counted: M never falls, so its
growths add up to it.  The pair's own losses are chosen from the past, and their sum stays within the budget at all
times; the filter's theorem, which is a statement about each pair, gives the guarantee for this one (Smith and Thakurta
2022, Theorem 1, for mu squared; Feldman and Zrnic 2021, Theorem 4.3, for the Renyi loss of one order; Rogers et al.
2016, Theorem 3.3, for epsilon and delta).  ∎

Related work: Henzinger, Safavi and Vadhan 2024, *Concurrent Composition for Differentially Private Continual
Mechanisms* (arXiv:2411.03299v4), prove parallel composition for interactive mechanisms with requests in any order,
where the table does not change in the meantime, as here; with adaptive updates of the table they show that it fails
for approximate differential privacy.  The claim above is stated for filters, with adaptively chosen losses, and for
units in up to p parts.

It holds for a filter that bounds sums, each component separately.  The filter of Rogers et al. bounds a function of
its losses for which we state no such rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

Parts = tuple[Fraction, ...]
"""The components of a loss: see :attr:`dpnb.accounting.losses.Loss.parts`."""

_ZERO = Fraction(0)


@dataclass(frozen=True)
class PartRef:
    """A part of a partition; `max_parts_per_unit` is the largest number p of parts in which one unit can have rows."""

    partition: int
    part: str
    max_parts_per_unit: int


@dataclass(frozen=True)
class PartSums:
    """The sum of the losses of each part, for partitions that may be nested in other partitions' parts; frozen."""

    sums: Mapping[int, Mapping[str, Parts]] = field(default_factory=dict)

    def after(self, path: Sequence[PartRef], loss: Parts) -> tuple[PartSums, Parts]:
        """The sums after an answer in a part, and the loss charged outside the outermost partition.

        `path` is the part, the part that contains its partition, and so on outwards; empty for an answer outside.
        """
        sums = dict(self.sums)
        for ref in path:
            parts = sums.get(ref.partition, {})
            own = parts.get(ref.part, (_ZERO,) * len(loss))
            new = tuple(a + b for a, b in zip(own, loss, strict=True))
            rivals = self._rivals(ref, len(loss))
            # The p - 1 largest of the others count either way; the p-th term is the larger of this sum and its rival.
            growth = (max(n, r) - max(o, r) for o, n, r in zip(own, new, rivals, strict=True))
            sums[ref.partition] = {**parts, ref.part: new}
            loss = tuple(growth)
        return PartSums(sums), loss

    def free_loss(self, part: PartRef, size: int) -> Parts:
        """The loss that a part can still be charged at no cost outside, as `size` components."""
        own = self.sums.get(part.partition, {}).get(part.part, (_ZERO,) * size)
        return tuple(max(r - o, _ZERO) for o, r in zip(own, self._rivals(part, size), strict=True))

    def cost(self, partition: int, max_parts_per_unit: int, size: int) -> Parts:
        """What a partition has cost outside so far, as `size` components."""
        columns = list(zip(*self.of(partition).values(), strict=True)) or [()] * size
        return tuple(sum(sorted(column, reverse=True)[:max_parts_per_unit], _ZERO) for column in columns)

    def of(self, partition: int) -> Mapping[str, Parts]:
        """The sums of all parts of a partition that have been charged, by key."""
        return self.sums.get(partition, {})

    def _rivals(self, part: PartRef, size: int) -> Parts:
        """The p-th largest sum among the other parts, component by component; 0 where there are fewer."""
        others = [sums for key, sums in self.sums.get(part.partition, {}).items() if key != part.part]
        if len(others) < part.max_parts_per_unit:
            return (_ZERO,) * size
        rank = part.max_parts_per_unit - 1
        return tuple(sorted(component, reverse=True)[rank] for component in zip(*others, strict=True))


NO_PARTS = PartSums()
"""The sums before the first query of any part."""
