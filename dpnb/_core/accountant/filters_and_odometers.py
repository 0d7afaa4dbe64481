"""Filters and odometers after the same history; the odometers of sessions are made here (filters: `FILTERS`).

A session counts each loss by its own filter and by one odometer.  All others are for display only: they are computed
from the rows of the ledger when they are shown, and no decision depends on them.  Each of these filters enforces the
session's budget by its own theorem and is given the session's releases; a filter that would have refused a release
stays at that refusal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property

from dpnb.accounting.conversions import optimal_order
from dpnb.accounting.convert import convert
from dpnb.accounting.delta_split import proportional_loss
from dpnb.accounting.exact import exact
from dpnb.accounting.filters import FILTERS, Filter
from dpnb.accounting.guarantee import PrivacyGuarantee, make_guarantee
from dpnb.accounting.losses import GDP, ZCDP, Loss
from dpnb.accounting.losses.gaussian import is_gaussian
from dpnb.accounting.odometers import (
    ApproxDPAccumulator,
    BasicOdometer,
    FilterOdometer,
    GDPAccumulator,
    MixtureOdometer,
    Odometer,
    RDPAccumulator,
    ReflectionOdometer,
    RenyiOdometer,
    RogersOdometer,
    SpentAccumulator,
    StitchedOdometer,
    ZCDPAccumulator,
)
from dpnb.accounting.odometers.base import IntrinsicTimeOdometer, for_intrinsic_time
from dpnb.accounting.partition_cost import NO_PARTS, PartRef, PartSums
from dpnb.errors import ConversionError, InvalidValueError
from dpnb.ledger import ChargeSummary

EPSILON_ODOMETERS = ("rogers", "basic")
"""Odometers that convert each loss to an epsilon first."""


@dataclass(frozen=True)
class ChargeBatch:
    """Rows of the ledger with Gaussian noise, without a delta and outside every partition; at least one.

    In every filter and odometer such losses add up exactly, so that many of them can be counted at once.
    """

    rows: Sequence[ChargeSummary]

    @cached_property
    def counts(self) -> Counter[GDP]:
        """The number of occurrences of each loss."""
        losses: list[GDP] = [row.loss for row in self.rows]  # type: ignore[misc]  # they are GDP
        objects = {id(loss): loss for loss in losses}  # most rows share one: comparing Fractions takes longer
        counts: Counter[GDP] = Counter()
        for key, count in Counter(map(id, losses)).items():
            counts[objects[key]] += count
        return counts

    @cached_property
    def total(self) -> GDP:
        """The sum of the losses."""
        return GDP.of(sum((count * loss.mu_squared for loss, count in self.counts.items()), Fraction(0)), Fraction(0))

    @property
    def last_loss(self) -> Loss | None:
        """The last loss that is not zero."""
        return next((row.loss for row in reversed(self.rows) if row.loss), None)


@dataclass(frozen=True)
class FilterState:
    """One filter after the same history.

    `filter` has counted everything that it admitted up to its first refusal, and `parts` what the parts of partitions
    were charged.  `refused_at` is the id of the row that it would have refused, or could not have counted.
    """

    guarantee: PrivacyGuarantee
    filter: Filter
    parts: PartSums = NO_PARTS
    refused_at: int | None = None

    def after(self, charge_id: int, loss: Loss, path: Sequence[PartRef]) -> FilterState:
        """The state after the next row; unchanged after a refusal."""
        if self.refused_at is not None:
            return self
        try:
            return self.stepped(self.guarantee.to_filter_loss(loss), path)[0]
        except Exception:  # noqa: BLE001  (a refusal; a filter that is only compared may be anybody's)
            return replace(self, refused_at=charge_id)

    def stepped(self, loss: Loss, path: Sequence[PartRef]) -> tuple[FilterState, Loss]:
        """The state after a loss, and the cost that the filter counted.

        A `BudgetExceeded` is the filter's refusal, a `ConversionError` that it cannot count the loss, or not in parts.
        """
        parts, cost = partition_cost(self.filter, self.parts, path, loss)
        return replace(self, filter=self.filter.step(cost), parts=parts), cost

    def after_batch(self, batch: ChargeBatch) -> FilterState:
        """The state after all rows of a batch.

        This is the same as after each of them in turn: a filter that admits their sum admits every partial sum.
        """
        if self.refused_at is not None:
            return self
        try:
            if self.guarantee.shared_delta is None:
                return replace(self, filter=self.filter.step(batch.total))
            filter_ = self.filter
            for loss, count in batch.counts.items():
                filter_ = filter_.after_repeated(self.guarantee.to_filter_loss(loss), count)
            return replace(self, filter=filter_)
        except Exception:  # noqa: BLE001  (in one of the rows)
            state = self
            for row in batch.rows:
                state = state.after(row.id, row.loss, ())
            return state

    def max_repetitions(self, loss: Loss) -> int | None:
        """How many more releases with this loss it would admit; None if the loss is zero."""
        return 0 if self.refused_at is not None else self.filter.max_repetitions(self.guarantee.to_filter_loss(loss))


@dataclass(frozen=True)
class FilterComparison:
    """The enforced filter and one odometer, or all of them, after the rows of the ledger up to number `last_id`.

    They are one value, so that an interrupt never leaves one of them a charge ahead of another.

    `states` has the filters by their names in `FILTERS`, the enforced one first; a filter that cannot enforce this
    budget is absent.  The parameters of the odometers follow from the guarantee, so they were fixed before the first
    answer; an odometer is absent after the first loss that its theorem does not cover.  `last_loss` is the last one
    that is not zero.  `gdp_parts` and `zcdp_parts` are what the parts of partitions were charged, for the odometers.
    `converted` is the sum of the losses, each converted to GDP, of those for which a theorem allows it.
    """

    enforced: str
    states: Mapping[str, FilterState]
    odometers: Mapping[str, Odometer]
    last_loss: Loss | None = None
    last_id: int = 0
    gdp_parts: PartSums = NO_PARTS
    zcdp_parts: PartSums = NO_PARTS
    converted: GDP = GDP(0)  # noqa: RUF009  (frozen)

    @classmethod
    def initial(
        cls,
        own: PrivacyGuarantee,
        mixture: MixtureOdometer,
        public_size: int | None = None,
        *,
        everything: bool = True,
    ) -> FilterComparison:
        """All filters and odometers, or the session's own alone, before the first row.

        `public_size` is that of the ledger's creation; Rogers' odometer needs it.
        """
        states = {own.filter_name: FilterState(own, own.initial_filter)}
        if not everything:
            return cls(own.filter_name, states, {"mixture": mixture})
        # Without a budget no filter enforces anything.  Under individual accounting only the worst case is public.
        is_alone = not own.has_budget or own.initial_filter.is_individual
        for name in () if is_alone else FILTERS:
            try:
                guarantee = own if name == own.filter_name else make_guarantee(name, own.budget)
            except InvalidValueError:
                continue
            states[name] = FilterState(guarantee, guarantee.initial_filter)
        return cls(own.filter_name, states, _odometers(own, mixture, states, public_size))

    @cached_property
    def own(self) -> FilterState:
        """The enforced filter."""
        return self.states[self.enforced]

    @cached_property
    def repetitions(self) -> int | None:
        """How many more releases with the last loss the enforced filter would admit; None if there is no loss."""
        return None if self.last_loss is None else self.own.max_repetitions(self.last_loss)

    @property
    def accumulator(self) -> SpentAccumulator:
        """The accumulator of what the enforced filter has counted.

        Under the GDP filter a pure-DP launch is charged what it takes from the budget that is left.  That is too little
        for other budgets, so here such a launch is converted to GDP, whatever is left.
        """
        own = self.own.filter
        if own.records_charge:
            return SpentAccumulator.from_loss(self.converted)
        return SpentAccumulator(own)

    def after(self, charge: ChargeSummary, path: Sequence[PartRef] = ()) -> tuple[FilterComparison, Loss]:
        """The state after the next row, and its cost for the enforced filter.

        A `BudgetExceeded` or `ConversionError` means that the enforced filter refuses the row, or cannot count it:
        nothing that dpnb has charged.
        """
        before, charge_id, loss, charged = self.own.filter, charge.id, charge.loss, charge.charged
        own, cost = self.own.stepped(self.own.guarantee.recorded_loss(loss, charged), path)
        states = {
            name: own if name == self.enforced else state.after(charge_id, loss, path)
            for name, state in self.states.items()
        }
        counting = self.odometers
        if loss and charge.launch is not None:  # what it releases may not be noisy values
            counting = {name: one for name, one in counting.items() if name != "reflection"}
        updated = replace(self, states=states, odometers=counting, last_loss=loss or self.last_loss, last_id=charge_id)
        converted = self.converted if path else self.converted + _converted(loss)
        if before.is_individual:
            # No unit has spent more than the worst case up to the budget, and every odometer increases with the loss.
            # So the reading at that sum is valid for each unit, although some units pay later.
            loss, path = own.filter.spent - before.spent, ()
        if path:
            return updated._with_part(loss, path), cost
        odometers: dict[str, Odometer] = {}
        for name, odometer in counting.items():
            # An odometer is omitted after the first loss that its theorem does not cover, one with a delta.
            with suppress(ConversionError):
                odometers[name] = odometer.step(self._counted(name, loss))
        return replace(updated, odometers=odometers, converted=converted), cost

    def after_batch(self, batch: ChargeBatch) -> FilterComparison:
        """The state after all rows of a batch; equal to that of `after` for each row in turn."""
        own = self.own.filter
        if own.is_individual and not (is_gaussian(own.budget) and own.admits_all_units(batch.total)):
            comparison = self
            for row in batch.rows:
                comparison, _ = comparison.after(row)
            return comparison
        states = {name: state.after_batch(batch) for name, state in self.states.items()}
        odometers: dict[str, Odometer] = {}
        for name, odometer in self.odometers.items():
            with suppress(ConversionError):
                odometers[name] = self._odometer_after(name, odometer, batch)
        last_loss, last_id = batch.last_loss or self.last_loss, batch.rows[-1].id
        converted = self.converted + batch.total
        return replace(
            self, states=states, odometers=odometers, converted=converted, last_loss=last_loss, last_id=last_id
        )

    def _odometer_after(self, name: str, odometer: Odometer, batch: ChargeBatch) -> Odometer:
        if name not in EPSILON_ODOMETERS:
            return odometer.step(batch.total)
        for loss, count in batch.counts.items():
            odometer = odometer.after_repeated(self._counted(name, loss), count)
        return odometer

    def _with_part(self, loss: Loss, path: Sequence[PartRef]) -> FilterComparison:
        """Add the growth of the largest part to the odometers, to each in the kind of loss that it counts."""
        gdp_parts, zcdp_parts, converted = self.gdp_parts, self.zcdp_parts, self.converted
        costs: dict[str, Loss] = {}
        with suppress(ConversionError):
            gdp = convert(loss, GDP)
            gdp_parts, growth = gdp_parts.after(path, gdp.parts)
            costs["gdp-accumulator"] = gdp.with_parts(growth)
            converted += gdp.with_parts(growth)
            if is_gaussian(loss) and not loss.delta:
                costs["reflection"] = gdp.with_parts(growth)
        with suppress(ConversionError):
            zcdp = convert(loss, ZCDP)
            zcdp_parts, growth = zcdp_parts.after(path, zcdp.parts)
            others = self.odometers.keys() - {"gdp-accumulator", "reflection", *EPSILON_ODOMETERS}
            costs |= dict.fromkeys(others, zcdp.with_parts(growth))
        odometers = {}
        for name, odometer in self.odometers.items():
            if name in costs:
                with suppress(ConversionError):
                    odometers[name] = odometer.step(costs[name])
        return replace(self, odometers=odometers, gdp_parts=gdp_parts, zcdp_parts=zcdp_parts, converted=converted)

    def _counted(self, odometer: str, loss: Loss) -> Loss:
        """The loss as an odometer counts it: an epsilon is combined with a delta in proportion to mu squared.

        The deltas then stay within what is set aside for them until the session's budget is spent.  A mechanism in pure
        DP adds 2 epsilon tanh(epsilon/2) to V, which is less than epsilon squared.
        """
        if odometer not in EPSILON_ODOMETERS or not is_gaussian(loss):
            uniform = isinstance(self.odometers[odometer], IntrinsicTimeOdometer)
            return for_intrinsic_time(loss) if uniform else loss
        guarantee = self.states[odometer].guarantee
        return proportional_loss(loss.mu_squared, guarantee.shared_delta or Fraction(0), guarantee.mu0_squared)


def _converted(loss: Loss) -> GDP:
    try:
        return loss if is_gaussian(loss) else convert(loss, GDP)
    except ConversionError:  # no session whose filter is GDP has such a loss
        return GDP(0)


def partition_cost(filter_: Filter, parts: PartSums, path: Sequence[PartRef], loss: Loss) -> tuple[PartSums, Loss]:
    """The sums of parts after a loss, and its cost for the filter, whether the filter admits it or not.

    A `ConversionError` means that the filter cannot count the loss, or not in parts.
    """
    if not path:
        return parts, loss
    if filter_.partition_obstacle is not None:
        raise ConversionError(f"partition: {filter_.partition_obstacle}")
    counted = filter_.to_filter_loss(loss)
    parts, growth = parts.after(path, counted.parts)
    return parts, counted.with_parts(growth)


def _odometers(
    own: PrivacyGuarantee, mixture: MixtureOdometer, states: Mapping[str, FilterState], public_size: int | None
) -> dict[str, Odometer]:
    """All odometers except the Renyi tracker, which needs an increment and is never below the RDP accumulator.

    Their parameters follow from the budget, whose mu0 squared is stored in the ledger.  These rules must never change:
    otherwise the answers of an existing ledger would be older than the choice of the odometer.
    """
    delta, slack, v = mixture.delta, mixture.slack_delta, own.mu0_squared
    order, horizon = _order(own, states), own.horizon if own.has_budget else Fraction(0)
    makers: dict[str, Callable[[], Odometer]] = {
        "filter": lambda: FilterOdometer.tuned(own.horizon, delta, slack_delta=slack),
        "reflection": lambda: ReflectionOdometer(horizon, delta),
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
        if name in EPSILON_ODOMETERS and name not in states:
            continue  # the epsilon of a release is defined by the filter of that name
        with suppress(InvalidValueError):  # its theorem does not cover a budget, size or order of 0
            odometers[name] = make()
    return odometers


def _order(own: PrivacyGuarantee, states: Mapping[str, FilterState]) -> Fraction:
    """The optimal Renyi order for this budget, or for the reference where there is none; 0 if there is no order."""
    if not own.budget.is_limited:
        return exact(optimal_order(1, delta=own.budget.reference.delta or 0))
    return states["rdp"].guarantee.initial_filter.budget.orders[0] if "rdp" in states else Fraction(0)


# --- the state of an accountant after some rows of the ledger ---------------------------------------------------------


@dataclass(frozen=True)
class AccountantState:
    """Filter and odometer after some rows, with what individual accounting records of these rows.

    They are one value, so that an interrupt never leaves one of them a charge ahead of the other.

    Under individual accounting, `first_exclusion` is the first row that may have excluded a unit (None while every unit
    certainly took part in all rows), and `by_version` the worst-case cost of each version of the table, as mu squared.
    """

    counted: FilterComparison
    first_exclusion: int | None = None
    by_version: Mapping[str, Fraction] = field(default_factory=dict)

    @cached_property
    def filter(self) -> Filter:
        """The filter."""
        return self.counted.own.filter

    @property
    def parts(self) -> PartSums:
        """What the parts of partitions were charged, in the filter's kind of loss."""
        return self.counted.own.parts

    @property
    def odometer(self) -> Odometer | None:
        """The odometer; None once a mechanism was launched whose loss no time-uniform odometer can count."""
        return self.counted.odometers.get("mixture")

    def share_of_others(self, version: str) -> Fraction:
        """What other versions of the table used of the budget of each unit, in the worst case."""
        others = sum((worst for other, worst in self.by_version.items() if other != version), Fraction(0))
        return others / self.filter.unit_budget

    @property
    def last_id(self) -> int:
        """Id of the last row."""
        return self.counted.last_id
