"""The same history through every filter and odometer, side by side.

For the faces alone: nothing here decides.  Each filter keeps the session's own promise by its own theorem and is given
the session's own releases; one that would have refused a release stays at that refusal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import TypeVar

from dpnb.accounting.convert import convert
from dpnb.accounting.delta_split import proportional_loss
from dpnb.accounting.filters import RDPFilter, RogersFilter
from dpnb.accounting.guarantee import FILTERS, AnyFilter, PrivacyGuarantee, make_guarantee
from dpnb.accounting.individual import WorstCaseFilter
from dpnb.accounting.interleaving import partition_obstacle
from dpnb.accounting.losses import GDP, ZCDP, Loss
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
    SpentAccumulator,
    StitchedOdometer,
    ZCDPAccumulator,
)
from dpnb.accounting.parallel import NO_PARTS, PartRef, PartSums
from dpnb.errors import BudgetExceeded, ConversionError, InvalidValueError

__all__ = ["OF_EPSILONS", "ChargeBatch", "FilterComparison", "FilterState", "partition_cost", "step_filter"]

Steps = TypeVar("Steps", AnyFilter, Odometer)

OF_EPSILONS = ("rogers", "basic")
"""Odometers that turn each answer into an epsilon first."""


@dataclass(frozen=True)
class ChargeBatch:
    """Rows of the ledger, each of Gaussian noise without a delta and outside every partition.

    Of such losses what any filter or odometer counts adds up exactly, so that many can be counted at once.

    Parameters
    ----------
    rows : sequence of (int, GDP)
        At least one; number and loss of each.
    """

    rows: Sequence[tuple[int, GDP]]

    @cached_property
    def repeats(self) -> Counter[GDP]:
        """How often each loss is there."""
        return Counter(loss for _, loss in self.rows)

    @cached_property
    def together(self) -> GDP:
        """All of them as one loss."""
        return GDP.of(sum((times * loss.mu_squared for loss, times in self.repeats.items()), Fraction(0)), Fraction(0))

    @property
    def last(self) -> GDP | None:
        """The last one that cost anything."""
        return next((loss for _, loss in reversed(self.rows) if loss), None)


@dataclass(frozen=True)
class FilterState:
    """One filter after the same history.

    Parameters
    ----------
    promise : Promise
    filter : filter
        After everything that it admitted, up to its first refusal.
    parts : PartSums
        What the parts of partitions were charged.
    refused_at : int or None
        Row of the ledger that it would have refused, or could not have counted.
    """

    promise: PrivacyGuarantee
    filter: AnyFilter
    parts: PartSums = NO_PARTS
    refused_at: int | None = None

    def after(self, number: int, loss: Loss, path: Sequence[PartRef]) -> FilterState:
        """The filter after the next row, or still at the refusal."""
        if self.refused_at is not None:
            return self
        try:
            (filter_, parts), _ = step_filter(self.filter, self.parts, path, self.promise.to_filter_loss(loss))
            return replace(self, filter=filter_, parts=parts)
        except (BudgetExceeded, ConversionError):
            return replace(self, refused_at=number)

    def after_run(self, run: ChargeBatch) -> FilterState:
        """The filter after all rows of a run: as one by one, since the more is asked the less a filter admits."""
        if self.refused_at is not None:
            return self
        try:
            if self.promise.shared_delta is None:
                return replace(self, filter=self.filter.step(run.together))
            filter_ = self.filter
            for loss, times in run.repeats.items():
                filter_ = _repeated(filter_, self.promise.to_filter_loss(loss), times)
            return replace(self, filter=filter_)
        except (BudgetExceeded, ConversionError):  # in one of the rows
            standing = self
            for number, loss in run.rows:
                standing = standing.after(number, loss, ())
            return standing

    def times(self, loss: Loss) -> int | None:
        """How many more releases like `loss` it would admit; None for one that costs nothing."""
        return 0 if self.refused_at is not None else self.filter.max_repetitions(self.promise.to_filter_loss(loss))


@dataclass(frozen=True)
class FilterComparison:
    """Every filter and odometer after the rows of the ledger up to number `seen`.

    Parameters
    ----------
    enforced : str
        Name of the session's own filter.
    standings : dict of str to Standing
        By the names of `FILTERS`, the enforced one first.  A filter that cannot keep this budget is left out.
    odometers : dict of str to Odometer
        By name.  Their parameters follow from the promise, so they were fixed before the first answer.
    last : Loss or None
        The last release that cost anything.
    seen : int
    gaussian, concentrated : PartSums
        What the parts of partitions were charged, for the odometers: in GDP, and in zCDP.
    """

    enforced: str
    standings: Mapping[str, FilterState]
    odometers: Mapping[str, Odometer]
    last: Loss | None = None
    seen: int = 0
    gaussian: PartSums = NO_PARTS
    concentrated: PartSums = NO_PARTS

    @classmethod
    def before_anything(
        cls, own: PrivacyGuarantee, mixture: MixtureOdometer, public_size: int | None
    ) -> FilterComparison:
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
        standings = {own.filter_name: FilterState(own, own.initial_filter)}
        # Where each unit has its own budget, what is public is the worst case, and no other filter is asked.
        for name in () if isinstance(own.initial_filter, WorstCaseFilter) else FILTERS:
            try:
                made = own if name == own.filter_name else make_guarantee(name, own.budget)
            except InvalidValueError:
                continue
            standings[name] = FilterState(made, made.initial_filter)
        return cls(own.filter_name, standings, _odometers(own, mixture, standings, public_size))

    @property
    def accumulator(self) -> SpentAccumulator:
        """What the enforced filter has counted."""
        return SpentAccumulator(self.standings[self.enforced].filter)

    def after(self, number: int, loss: Loss, path: Sequence[PartRef] | None = ()) -> FilterComparison:
        """The state after the next row of the ledger; a row without a path is paid for elsewhere."""
        if path is None:
            return replace(self, seen=number)
        standings = {name: standing.after(number, loss, path) for name, standing in self.standings.items()}
        last = loss if loss else self.last
        before, now = self.standings[self.enforced].filter, standings[self.enforced].filter
        if isinstance(before, WorstCaseFilter) and isinstance(now, WorstCaseFilter):
            # No unit has spent more than the worst case up to the budget, and every odometer grows with what is spent:
            # so the reading at that sum holds for each unit, although some pay later than it does.
            grown = now.spent - before.spent
            return replace(self, standings=standings, odometers=dict(self._stepped(grown)), last=last, seen=number)
        if not path:
            return replace(self, standings=standings, odometers=dict(self._stepped(loss)), last=last, seen=number)
        return self._after_part(number, loss, path, standings, last)

    def after_run(self, run: ChargeBatch) -> FilterComparison:
        """The state after all rows of a run: the same as `after` makes of one after the other."""
        own = self.standings[self.enforced].filter
        if isinstance(own, WorstCaseFilter) and not (
            isinstance(own.budget, GDP) and own.admits_all_units(run.together)
        ):
            comparison = self
            for number, loss in run.rows:
                comparison = comparison.after(number, loss)
            return comparison
        standings = {name: standing.after_run(run) for name, standing in self.standings.items()}
        odometers: dict[str, Odometer] = {}
        for name, odometer in self.odometers.items():
            with suppress(ConversionError):
                odometers[name] = self._odometer_after(name, odometer, run)
        last, seen = run.last or self.last, run.rows[-1][0]
        return replace(self, standings=standings, odometers=odometers, last=last, seen=seen)

    def _odometer_after(self, name: str, odometer: Odometer, run: ChargeBatch) -> Odometer:
        if name not in OF_EPSILONS:
            return odometer.step(run.together)
        for loss, times in run.repeats.items():
            odometer = _repeated(odometer, self._counted(name, loss), times)
        return odometer

    def _after_part(
        self, number: int, loss: Loss, path: Sequence[PartRef], standings: Mapping[str, FilterState], last: Loss | None
    ) -> FilterComparison:
        """The odometers are given the growth of the largest part, each in the kind in which it counts."""
        gaussian, concentrated = self.gaussian, self.concentrated
        costs: dict[str, Loss] = {}
        with suppress(ConversionError):
            counted = convert(loss, GDP)
            gaussian, grown = gaussian.after(path, counted.parts)
            costs["gdp-accumulator"] = counted.with_parts(grown)
        with suppress(ConversionError):
            rho = convert(loss, ZCDP)
            concentrated, grown = concentrated.after(path, rho.parts)
            others = self.odometers.keys() - {"gdp-accumulator", *OF_EPSILONS}
            costs |= dict.fromkeys(others, rho.with_parts(grown))
        odometers = {}
        for name, odometer in self.odometers.items():
            if name in costs:
                with suppress(ConversionError):
                    odometers[name] = odometer.step(costs[name])
        return FilterComparison(self.enforced, standings, odometers, last, number, gaussian, concentrated)

    def _stepped(self, loss: Loss) -> Iterator[tuple[str, Odometer]]:
        for name, odometer in self.odometers.items():
            # Left out from the first loss on that its theorem does not reach: one with a delta.
            with suppress(ConversionError):
                yield name, odometer.step(self._counted(name, loss))

    def _counted(self, odometer: str, loss: Loss) -> Loss:
        """An odometer of epsilons is given a delta in proportion to mu squared, since it never stops.

        Then the deltas stay within what was set aside for them as long as the session's own budget lasts.
        """
        if odometer not in OF_EPSILONS or not isinstance(loss, GDP):
            return loss
        promise = self.standings[odometer].promise
        return proportional_loss(loss.mu_squared, promise.shared_delta or Fraction(0), promise.mu0_squared)


def _repeated(of: Steps, loss: Loss, times: int) -> Steps:
    """What counts epsilons after an (epsilon, delta), repeated `times` times."""
    if isinstance(of, RogersFilter | RogersOdometer):
        return of.step(loss, times)
    return of.step(loss.with_parts(tuple(times * part for part in loss.parts)))


def step_filter(
    filter_: AnyFilter, parts: PartSums, path: Sequence[PartRef], loss: Loss
) -> tuple[tuple[AnyFilter, PartSums], Loss]:
    """A filter and the sums of parts after a loss, and what it cost the filter.

    Raises
    ------
    BudgetExceeded
        The filter refuses it.
    ConversionError
        The filter cannot count it, in parts or at all.
    """
    parts, cost = partition_cost(filter_, parts, path, loss)
    return (filter_.step(cost), parts), cost


def partition_cost(filter_: AnyFilter, parts: PartSums, path: Sequence[PartRef], loss: Loss) -> tuple[PartSums, Loss]:
    """The sums of parts after a loss, and what it costs the filter, whether that admits it or not.

    Raises
    ------
    ConversionError
        The filter cannot count it, in parts or at all.
    """
    if not path:
        return parts, loss
    if isinstance(filter_, RogersFilter):
        raise ConversionError(f"partition: {partition_obstacle(filter_)}")
    counted = filter_.to_filter_loss(loss)
    parts, grown = parts.after(path, counted.parts)
    return parts, counted.with_parts(grown)


def _odometers(
    own: PrivacyGuarantee, mixture: MixtureOdometer, standings: Mapping[str, FilterState], public_size: int | None
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
        if name in OF_EPSILONS and name not in standings:
            continue  # no filter of that name tells which epsilon a release has
        with suppress(InvalidValueError):  # left out where its theorem does not reach: a budget, size or order of 0
            odometers[name] = make()
    return odometers


def _order(standings: Mapping[str, FilterState]) -> Fraction:
    """The Renyi order at which this budget reaches furthest; 0 for a budget that has none."""
    start = standings["rdp"].promise.initial_filter if "rdp" in standings else None
    return start.budget.orders[0] if isinstance(start, RDPFilter) else Fraction(0)
