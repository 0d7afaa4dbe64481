"""The same history through every filter and odometer, side by side.

For the faces alone: nothing here decides.  Each filter keeps the session's own promise by its own theorem and is given
the session's own releases; one that would have refused a release stays at that refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction

from dpnb.accounting.filters import RDPFilter
from dpnb.accounting.losses import GDP, Loss
from dpnb.accounting.odometers import (
    ApproxDPAccumulator,
    BasicOdometer,
    FilterOdometer,
    GDPAccumulator,
    MixtureOdometer,
    Odometer,
    RDPAccumulator,
    RenyiOdometer,
    RogersOdometer,
    StitchedOdometer,
    ZCDPAccumulator,
)
from dpnb.accounting.promise import FILTERS, AnyFilter, Promise, promise
from dpnb.errors import BudgetExceeded, ConversionError, InvalidValueError

__all__ = ["Comparison", "Standing"]


@dataclass(frozen=True)
class Standing:
    """One filter after the same history.

    Parameters
    ----------
    promise : Promise
    filter : filter
        After everything that it admitted, up to its first refusal.
    refused : int or None
        Row of the ledger that it would have refused.
    """

    promise: Promise
    filter: AnyFilter
    refused: int | None = None

    def after(self, number: int, loss: GDP) -> Standing:
        """The filter after the next row, or still at the refusal."""
        if self.refused is not None:
            return self
        try:
            return replace(self, filter=self.filter.step(self.promise.enters(loss)))
        except BudgetExceeded:
            return replace(self, refused=number)

    def times(self, loss: GDP) -> int | None:
        """How many more releases like `loss` it would admit; None for one that costs nothing."""
        return 0 if self.refused is not None else self.filter.times(self.promise.enters(loss))


@dataclass(frozen=True)
class Comparison:
    """Every filter and odometer after the rows of the ledger up to number `seen`.

    Parameters
    ----------
    enforced : str
        Name of the session's own filter.
    standings : dict of str to Standing
        By the names of `FILTERS`, the enforced one first.  A filter that cannot keep this budget is left out.
    odometers : dict of str to Odometer
        By name.  Their parameters follow from the promise, so they were fixed before the first answer.
    last : GDP or None
        The last release that cost anything.
    seen : int
    """

    enforced: str
    standings: Mapping[str, Standing]
    odometers: Mapping[str, Odometer]
    last: GDP | None = None
    seen: int = 0

    @classmethod
    def before_anything(cls, own: Promise, mixture: MixtureOdometer, public_size: int | None) -> Comparison:
        """The state before the first row.

        Parameters
        ----------
        own : Promise
            What the session promised.
        mixture : MixtureOdometer
            The session's own odometer; the others share its delta.
        public_size : int or None
            Known when the ledger was made; Rogers' odometer needs it.
        """
        standings = {own.name: Standing(own, own.start)}
        for name in FILTERS:
            try:
                made = own if name == own.name else promise(name, own.budget)
            except InvalidValueError:
                continue
            standings[name] = Standing(made, made.start)
        return cls(own.name, standings, _odometers(own, mixture, standings, public_size))

    def after(self, number: int, loss: GDP) -> Comparison:
        """The state after the next row of the ledger."""
        return Comparison(
            self.enforced,
            {name: standing.after(number, loss) for name, standing in self.standings.items()},
            dict(self._stepped(loss)),
            loss if loss.mu_squared else self.last,
            number,
        )

    def _stepped(self, loss: GDP) -> Iterator[tuple[str, Odometer]]:
        for name, odometer in self.odometers.items():
            # Left out from the first loss on that its theorem does not reach: one with a delta.
            with suppress(ConversionError):
                yield name, odometer.step(self._counted(name, loss))

    def _counted(self, odometer: str, loss: GDP) -> Loss:
        """An odometer of epsilons is given what the filter of the same name is given."""
        return self.standings[odometer].promise.enters(loss) if odometer in ("rogers", "basic") else loss


def _odometers(
    own: Promise, mixture: MixtureOdometer, standings: Mapping[str, Standing], public_size: int | None
) -> dict[str, Odometer]:
    """All but the Renyi tracker: it needs an increment, and is never below the RDP accumulator.

    What they are tuned to follows from the budget, whose mu0 squared the ledger keeps.  These rules must stay as they
    are: with another one, a ledger that has answers would be read by an odometer that was not chosen before them.
    """
    delta, slack, v = mixture.delta, mixture.slack_delta, own.mu0_squared
    order = _order(standings)
    makers: dict[str, Callable[[], Odometer]] = {
        "filter": lambda: FilterOdometer.tuned(v, delta, slack_delta=slack),
        "stitched": lambda: StitchedOdometer(v / 100, delta, slack_delta=slack),
        "rogers": lambda: RogersOdometer(public_size or 0, delta),
        "basic": lambda: BasicOdometer(delta),
        "renyi": lambda: RenyiOdometer(order, delta),
        "gdp-accumulator": GDPAccumulator,
        "zcdp-accumulator": ZCDPAccumulator,
        "rdp-accumulator": lambda: RDPAccumulator(order),
        "approx-dp-accumulator": lambda: ApproxDPAccumulator(delta, delta + slack),
    }
    odometers: dict[str, Odometer] = {"mixture": mixture}
    for name, make in makers.items():
        if name in ("rogers", "basic") and name not in standings:
            continue  # no filter of that name tells which epsilon a release has
        with suppress(InvalidValueError):  # left out where its theorem does not reach: a budget, size or order of 0
            odometers[name] = make()
    return odometers


def _order(standings: Mapping[str, Standing]) -> Fraction:
    """The Renyi order at which this budget reaches furthest; 0 for a budget that has none."""
    start = standings["rdp"].promise.start if "rdp" in standings else None
    return start.budget.orders[0] if isinstance(start, RDPFilter) else Fraction(0)
