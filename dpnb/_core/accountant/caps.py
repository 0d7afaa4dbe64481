"""The cap of a part of a budget: what was set, and what approved requests add to it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpnb.accounting.losses import PureGDP


@dataclass(frozen=True)
class Raise:
    """What an approved request adds to a cap, in each component.

    From the time `until` on, written as in rows of the ledger, it no longer counts; None if it does not lapse.
    """

    amount: PureGDP
    until: str | None = None


@dataclass(frozen=True)
class Cap:
    """A cap with the raises that were approved since it was set; setting it ends them.

    `base` is None for no cap.  `ceiling` is that of the part, in reserved mode, which no raise exceeds.
    """

    base: PureGDP | None
    ceiling: PureGDP | None = None
    raises: tuple[Raise, ...] = ()

    def at(self, time: str) -> PureGDP | None:
        """The cap that holds at the time of a charge.

        That is the time in the charge's row of the ledger, so that everybody who reads the ledger finds the same cap.
        """
        if self.base is None:
            return None
        total = self.base
        for one in self.raises:
            if one.until is None or time < one.until:
                total = total + one.amount
        if self.ceiling is None or not self.raises:
            return total
        return PureGDP.of(*(min(pair) for pair in zip(total.parts, self.ceiling.parts, strict=True)))

    def lapsed(self, time: str) -> int:
        """The number of raises that no longer count at a time."""
        return sum(one.until is not None and one.until <= time for one in self.raises)

    def set_to(self, base: PureGDP | None) -> Cap:
        """Another cap with the same ceiling."""
        return Cap(base, self.ceiling)

    def raised(self, amount: PureGDP, until: str | None) -> Cap:
        """The cap after a request was approved."""
        return replace(self, raises=(*self.raises, Raise(amount, until)))
