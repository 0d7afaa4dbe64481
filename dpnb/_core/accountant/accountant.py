"""The guarantee, the filter and the odometers of a session, rebuilt from the ledger and kept in sync with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import cached_property, partial

from dpnb._core.accountant.cap import Limit, binding_limit, limit_of, within_limits
from dpnb._core.accountant.filters_and_odometers import AccountantState, ChargeBatch, FilterComparison, partition_cost
from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.later_sessions import (
    computed_parameters,
    parameters_of,
    sampled_of,
    stored_parameters,
    with_sampled,
)
from dpnb._core.accountant.timeline import Timeline, truncated_view
from dpnb._core.accountant.tree import BudgetTree, Launch
from dpnb.accounting.budget import Budget, NoBudget
from dpnb.accounting.exact import Number, decimal_sqrt_down
from dpnb.accounting.filters import Filter
from dpnb.accounting.guarantee import PrivacyGuarantee, make_guarantee
from dpnb.accounting.losses import GDP, Loss
from dpnb.accounting.odometers import MixtureOdometer, Odometer, TruncatedView
from dpnb.accounting.partition_cost import PartRef
from dpnb.errors import BudgetExceeded
from dpnb.ledger import ROOT, Charge, ChargeSummary, Ledger, node_of, refuse_unreadable
from dpnb.schema import Key


class Accountant:
    """Filter and odometers of a session, a sub-session or a part, over the charges of all kernels.

    Losses on `root_node` are counted, including those that reach it through partitions.  `odometer` is in its initial
    state, and `public_size` is for the odometer that needs a bound.  For a part of a partition, `parent` is the
    accountant of the session that pays, and `part` the position in it; for an analyst's part of the budget of a table,
    `whole` is the accountant of the table.  `limits` are caps within the budget, such as those of an analyst at a
    service.
    """

    def __init__(
        self,
        ledger: Ledger,
        tree: BudgetTree,
        root_node: str,
        guarantee: PrivacyGuarantee,
        odometer: MixtureOdometer,
        public_size: int | None = None,
        parent: Accountant | None = None,
        part: PartRef | None = None,
        limits: tuple[Limit, ...] = (),
        whole: Accountant | None = None,
    ) -> None:
        self.ledger, self.tree, self.root_node, self.guarantee = ledger, tree, root_node, guarantee
        self._parent, self._part, self._limits, self._whole = parent, part, limits, whole
        self.initial_odometer, self.public_size = odometer, public_size
        self.budget = guarantee.budget  # the total privacy budget, or that there is none
        self.individual = guarantee.initial_filter.is_individual  # whether each unit has its own budget
        self._cost_fractions: dict[int, float] = {}
        self._worst_cases: dict[int, Fraction] = {}  # under individual accounting, as mu squared
        self._state = AccountantState(self._start(everything=False))
        self._timelines: dict[bool, Timeline] = {}
        self.sync()

    @classmethod
    def open(
        cls,
        path: str,
        budget: Budget | NoBudget,
        metadata: Mapping[str, str],
        filter_: str = "gdp",
        public_size: int | None = None,
        *,
        individual: bool = False,
        sampled: Fraction | None = None,
        version: str = "",
    ) -> Accountant:
        """The accountant of a session, on a new ledger or on one that allows these metadata (see `declared_next`).

        `metadata` is table, privacy unit and schema.  `public_size` and `sampled` are stored in a new ledger; another
        `sampled` is refused after the first request.  Without a budget, `filter_` is `NO_FILTER`.
        """
        guarantee = make_guarantee(filter_, budget, individual=individual)
        metadata = {**metadata, "budget": json.dumps(budget.to_json()), "filter": filter_}
        parameters = computed_parameters(guarantee, public_size, sampled=sampled or Fraction(0))
        ledger = Ledger(path, metadata, parameters, version, partial(with_sampled, sampled=sampled, version=version))
        try:
            return cls(ledger, BudgetTree(ledger), ROOT, *stored_parameters(ledger.parameters, guarantee))
        except BaseException:
            ledger.close()
            raise

    @classmethod
    def from_ledger(cls, ledger: Ledger) -> Accountant:
        """The accountant of the session that a ledger was created for, from the ledger alone, which is trusted."""
        tree = BudgetTree(ledger)
        guarantee, odometer, size = parameters_of(ledger)
        return cls(ledger, tree, ROOT, guarantee, odometer, size, limits=(Limit(ledger, tree, guarantee, ROOT, ROOT),))

    def for_analyst(self, grant: Grant) -> Accountant:
        """The accountant of an analyst who has a part of this budget."""
        if grant.mode == "reserved":
            node = node_of(grant.id)
            with refuse_unreadable(f"row {grant.id}"):
                guarantee = make_guarantee("gdp", grant.budget, individual=self.individual)
            guarantee, odometer, size = stored_parameters(grant.parameters, guarantee)
            limits = (Limit(self.ledger, self.tree, guarantee, node, node, words="your cap"),)
            return Accountant(self.ledger, self.tree, node, guarantee, odometer, size, limits=limits, whole=self)
        caps, size = self._limits_of(grant), self.public_size
        return Accountant(self.ledger, self.tree, ROOT, self.guarantee, self.initial_odometer, size, limits=caps)

    def _limits_of(self, grant: Grant) -> tuple[Limit, ...]:
        """The caps of an analyst in pooled mode: their own, and that of their project."""
        own, project = self.limit_of(grant, "your cap"), self.tree.grant_of(grant.node)
        return (own,) if project is None else (own, self.limit_of(project, f"the cap of {project.name}"))

    def limit_of(self, grant: Grant, words: str = "the cap") -> Limit:
        """The cap of a part of this budget, with what was charged to the part."""
        return limit_of(self.ledger, self.tree, self.guarantee, grant, words)

    def for_sub_session(self, launch: Launch) -> Accountant:
        """The accountant of a sub-session that was launched in this ledger."""
        with refuse_unreadable(f"row {launch.id}"):
            resolved = launch.resolved
            guarantee = make_guarantee(str(resolved["filter"]), Budget.from_json(resolved["budget"]))
            parameters = resolved["parameters"]
        return Accountant(self.ledger, self.tree, node_of(launch.id), *stored_parameters(parameters, guarantee))

    def for_part(self, launch: Launch, key: tuple[Key, ...]) -> Accountant:
        """The accountant of a part of a partition that was launched here."""
        node = node_of(launch.id, key)
        (part, *_) = self.tree.path(node, self.root_node) or ()
        own, odometer, size = self.guarantee, self.initial_odometer, self.public_size
        return Accountant(self.ledger, self.tree, node, own, odometer, size, self, part)

    @cached_property
    def sampled(self) -> Fraction:
        """The declared fraction of the population that the units are: 0 of a large one, 1 in a census."""
        return sampled_of(self.ledger.parameters)

    @property
    def filter(self) -> Filter:
        """The filter in its current state.

        The filter of a part includes what the part was charged, what it can still be charged at no cost to its session,
        and what remains in the session: see :mod:`dpnb.accounting.partition_cost`.
        """
        with self.ledger.lock.checked():
            own = self.sync().filter
            if self._parent is None:
                return within_limits(own, self._limits) if self._limits else own
            if self._part is None or own.partition_obstacle is not None or not self.guarantee.has_budget:
                return own
            outer = self._parent.filter
            budget = own.spent + (outer.budget - outer.spent)
            if self.first_exclusion is None:  # otherwise even a query that costs the session nothing may exclude units
                free = self._parent.sync().parts.free_loss(self._part, len(own.spent.parts))
                budget = own.spent.with_parts(free) + budget
            return own.with_budget(budget).step(own.spent)

    @property
    def limits(self) -> tuple[Limit, ...]:
        """The caps within the budget that are set now."""
        if self._parent is not None:
            return self._parent.limits
        return tuple([limit for limit in self._limits if limit.cap is not None])

    @property
    def binding_limit(self) -> Limit | None:
        """The cap that leaves less mu squared than the budget and the other caps; None if the budget leaves least."""
        limits = self.limits
        return binding_limit(self.root.sync().filter, limits) if limits else None

    @property
    def whole(self) -> Accountant | None:
        """For an analyst's part of the budget of a table, the accountant of the table."""
        return self._whole if self._parent is None else self._parent.whole

    @property
    def odometer(self) -> Odometer:
        """The odometer that can be read: the mixture odometer, or an accumulator once that cannot count a loss."""
        with self.ledger.lock.checked():
            uniform = self.sync().odometer
            return self.accumulator if uniform is None else uniform

    @property
    def accumulator(self) -> Odometer:
        """The accumulator of what the filter has counted."""
        return self.compared(everything=False).accumulator

    @property
    def last_loss(self) -> Loss | None:
        """The last loss that is not zero."""
        return self.sync().counted.last_loss

    @property
    def paused(self) -> str | None:
        """Why the time-uniform odometers cannot be read any more, in words; None if they can.

        Open mechanisms are no reason: see :mod:`dpnb.accounting.odometers`.  The reading of a sub-session or a part is
        about its own answers only, given any other history.
        """
        if self.sync().odometer is not None:
            return None
        return (
            "The time-uniform odometers stopped at the first sub-session whose budget is in a kind of loss that they "
            "cannot count."
        )

    def compared(self, *, everything: bool = True) -> FilterComparison:
        """The state of every filter and odometer after the current history; or of the session's own alone."""
        with self.ledger.lock.checked():
            counted = self.timeline(compared=True).state if everything else self.sync().counted
            if self._parent is None:
                return counted
            # For a part, only its own filter is compared: the remaining budget depends on the parent's filter.
            return replace(counted, states={counted.enforced: replace(counted.own, filter=self.filter)})

    def timeline(self, *, compared: bool = False) -> Timeline:
        """The filter and the odometer after each row of the ledger; if `compared`, all filters and odometers.

        The rows are counted when it is called.
        """
        with self.ledger.lock.checked():
            if compared not in self._timelines:
                start = self._start(everything=compared)
                self._timelines[compared] = Timeline(start, self.tree, self.root_node)
            timeline = self._timelines[compared]
            new = self.ledger.summaries(after=timeline.state.last_id)
            if new:
                self.tree.sync()
                with refuse_unreadable(f"rows {new[0].id} to {new[-1].id}"):
                    timeline.read(new)
            return timeline

    def _start(self, *, everything: bool) -> FilterComparison:
        """The state before the first row."""
        size = self.public_size if everything else None
        return FilterComparison.initial(self.guarantee, self.initial_odometer, size, everything=everything)

    def truncated_view(self, threshold: Number, odometer: str | None) -> TruncatedView:
        """The requests up to the launch with which the odometer of this name would exceed a threshold."""
        with self.ledger.lock.checked():
            self.tree.sync()
            rows, start = self.ledger.summaries(), self._start(everything=True)
            return truncated_view(start, rows, self.tree, self.root_node, threshold, odometer)

    @property
    def last_headroom(self) -> float | None:
        """The headroom when the ledger was last read; None for a part or under caps: other limits bind there."""
        return None if self._parent is not None or self.limits else self._state.filter.headroom

    def sync(self, until: int | None = None) -> AccountantState:
        """The state after all charges of all kernels; if `until` is given, after that row or a later one."""
        if not self.ledger.summaries(after=self._state.counted.last_id, until=until):
            return self._state
        with self.ledger.lock.checked():
            batch: list[ChargeSummary] = []
            for charge in self.ledger.summaries(after=self._state.counted.last_id, until=until):
                if charge.node == self.root_node and charge.is_plain:
                    batch.append(charge)
                else:
                    self._add_batch(batch)
                    batch = []
                    with refuse_unreadable(f"row {charge.id}"):
                        self._add(charge)
            self._add_batch(batch)
            return self._state

    def _add_batch(self, batch: Sequence[ChargeSummary]) -> None:
        """Add plain rows of the root, at once if the filter adds up the losses: the state is the same."""
        before = self._state
        if len(batch) > 1 and before.filter.adds_up:
            after = before.counted.after_batch(ChargeBatch(batch))
            if after.own.refused_at is None:
                fractions: dict[int, float] = {}  # by the identities of losses, of which many rows have the same
                for charge in batch:
                    loss = charge.loss
                    if id(loss) not in fractions:
                        cost = self.guarantee.recorded_loss(loss, None)
                        fractions[id(loss)] = before.filter.budget_fraction(cost)
                    self._cost_fractions[charge.id] = fractions[id(loss)]
                self._state = replace(before, counted=after)
                return
        for charge in batch:  # of which one may be refused
            with refuse_unreadable(f"row {charge.id}"):
                self._add(charge)

    def _add(self, charge: ChargeSummary) -> None:
        before, path = self._state, self.tree.path(charge.node, self.root_node)
        if path is None:
            self._state = replace(before, counted=replace(before.counted, last_id=charge.id))
            return
        counted, cost = before.counted.after(charge, path)
        self._cost_fractions[charge.id] = before.filter.budget_fraction(cost)
        first_exclusion, by_version = before.first_exclusion, before.by_version
        if before.filter.is_individual:
            worst = self._worst_cases[charge.id] = before.filter.mu_squared(cost)
            by_version = {**by_version, charge.table_version: by_version.get(charge.table_version, Fraction(0)) + worst}
            if first_exclusion is None and not before.filter.admits_all_units(cost):
                first_exclusion = charge.id
        self._state = AccountantState(counted, first_exclusion, by_version)

    # --- individual accounting ----------------------------------------------------------------------------------

    @property
    def first_exclusion(self) -> int | None:
        """The first row of the ledger that may have excluded a unit; None while every unit certainly took part."""
        return self.root.sync().first_exclusion if self.individual else None

    def worst_case(self, charge_id: int) -> tuple[Fraction, bool]:
        """The worst-case cost of a row, as mu squared, and whether every unit certainly took part in it."""
        first = self.root.sync().first_exclusion
        return self.root._worst_cases[charge_id], first is None or charge_id < first

    def admits_all_units(self, loss: Loss) -> bool:
        """Whether, by the ledger alone, every unit takes part in a query with this loss; True in the worst case."""
        if not self.individual:
            return True
        state = self.root.sync()
        path = self.tree.path(self.root_node, self.root.root_node) or ()
        _, cost = partition_cost(state.filter, state.parts, path, self.guarantee.to_filter_loss(loss))
        return state.first_exclusion is None and state.filter.admits_all_units(cost)

    def refuse_if_no_unit_left(self, description: str, version: str) -> None:
        """Refuse a query in which no unit can take part, because other versions of the table used the whole budget.

        What a unit paid for another version of the table is unknown, since its rows may be different there, so every
        unit is charged the worst case.  A function of the ledger alone; call inside its transaction.
        """
        if self.individual and self.root.sync().share_of_others(version) >= 1:
            raise BudgetExceeded(
                f"{description}: {self.root.filter.rule}, and other versions of the table used all of it in the worst "
                f"case; no unit of version {version!r} can pay; nothing was charged"
            )

    # --- losses and their costs ---------------------------------------------------------------------------------

    @property
    def delta(self) -> Fraction:
        """The delta at which the guarantee is compared with others: of the budget, or of that which it is a part of."""
        return self.initial_odometer.delta + self.guarantee.budget.discovery_delta

    @property
    def root(self) -> Accountant:
        """For a part, the accountant of the session that pays; otherwise this one."""
        return self if self._parent is None else self._parent.root

    def max_mu(self, known: GDP) -> float:
        """The largest affordable total mu of a query whose loss so far is `known`, rounded down; 0 if none is left."""
        remaining = self.guarantee.remaining(self.filter)
        return decimal_sqrt_down(known.mu_squared + remaining.mu_squared) if remaining.mu_squared else 0.0

    def cost_fraction(self, charge_id: int) -> float:
        """The cost of a row as a fraction of the whole budget, rounded up; for a part, what its session paid.

        NaN without a budget.
        """
        if self._parent is not None:
            return self._parent.cost_fraction(charge_id)
        if charge_id not in self._cost_fractions:
            self.sync(until=charge_id)
        return self._cost_fractions[charge_id]

    def reserve_fraction(self, charge: Charge | ChargeSummary) -> Fraction:
        """The share of the reserve for pure losses that a row was charged; 0 in a session without one."""
        reserve = self.guarantee.initial_filter.reserve
        return charge.charged.epsilon / reserve if charge.charged is not None and reserve else Fraction(0)

    def forecast(self, loss: Loss) -> tuple[float, float]:
        """The cost of a loss and the headroom after it, as fractions of the whole budget, rounded up and down.

        Both are NaN without a budget.  The loss is in the filter's kind.  For a part, both are those of its session,
        for which the cost may be 0.
        """
        filter_ = self.filter
        if self._parent is None or self._part is None or filter_.partition_obstacle or not self.guarantee.has_budget:
            after = filter_.step(loss).headroom if filter_.admits(loss) else 0.0
            return filter_.budget_fraction(loss), after
        counted = filter_.to_filter_loss(loss)
        _, growth = self._parent.sync().parts.after((self._part,), counted.parts)
        return self._parent.forecast(counted.with_parts(growth))

    def growth(self, node: str, counted: Loss) -> Loss:
        """What a loss in a node inside would add here: in a part of a partition less than it, and perhaps nothing."""
        with self.ledger.lock.checked():
            state = self.sync()
            return partition_cost(state.filter, state.parts, self.tree.path(node, self.root_node) or (), counted)[1]

    def includes(self, node: str) -> bool:
        """Whether the charges of a node are counted here."""
        return self.tree.path(node, self.root_node) is not None
