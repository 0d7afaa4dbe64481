"""The guarantee, the filter and the odometers of a session, rebuilt from the ledger and kept in sync with it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction

from dpnb._core.accountant.comparison import ChargeBatch, FilterComparison, partition_cost, step_filter
from dpnb._core.accountant.state import AccountantState, timed
from dpnb._core.accountant.timeline import Timeline
from dpnb._core.accountant.tree import BudgetTree, Launch
from dpnb._plan.schema import Key
from dpnb.accounting.budget import Budget
from dpnb.accounting.exact import decimal_sqrt_down, from_text, to_text
from dpnb.accounting.filters import RogersFilter
from dpnb.accounting.guarantee import AnyFilter, PrivacyGuarantee, make_guarantee
from dpnb.accounting.individual import WorstCaseFilter
from dpnb.accounting.losses import GDP, Loss
from dpnb.accounting.odometers import MixtureOdometer, Odometer
from dpnb.accounting.parallel import PartRef
from dpnb.errors import BudgetExceeded
from dpnb.ledger import ROOT, ChargeSummary, Ledger, node_of, refuse_unreadable

NAMED = 3
"""Mechanisms that are named before "and more"."""

ODOMETER_DELTA = Fraction(1, 10**6)
"""Chance that an odometer's statement is wrong, for a budget that names no delta."""


class Accountant:
    """Filter and odometers of a session, a sub-session or a part, over the charges of all kernels.

    Parameters
    ----------
    ledger : Ledger
        The list of charges.
    tree : BudgetTree
        The launches of the ledger.
    trunk : str
        The node whose losses are counted here, with those that reach it through partitions.
    promise : PrivacyGuarantee
        The guarantee.
    odometer : MixtureOdometer
        The odometer in its initial state.
    public_size : int, optional
        Public number of units, for the odometer that needs a bound.
    around : Accountant, optional
        For a part, the accountant of the session that pays.
    place : PartRef, optional
        For a part, its position in that session.
    """

    def __init__(
        self,
        ledger: Ledger,
        tree: BudgetTree,
        trunk: str,
        promise: PrivacyGuarantee,
        odometer: MixtureOdometer,
        public_size: int | None = None,
        around: Accountant | None = None,
        place: PartRef | None = None,
    ) -> None:
        self.ledger, self.tree, self.root_node, self.promise = ledger, tree, trunk, promise
        self._around, self._place = around, place
        self._start, self._public_size = odometer, public_size
        self._paid: dict[int, float] = {}
        self._worst: dict[int, Fraction] = {}  # under individual accounting, as mu squared
        self._state = AccountantState(promise.initial_filter, odometer)
        self._comparison = FilterComparison.before_anything(promise, odometer, public_size)
        self._timeline = Timeline()
        self._timeline.note(self._comparison)
        self.sync()

    @classmethod
    def open(
        cls,
        path: str,
        budget: Budget,
        about: Mapping[str, str],
        filter_: str = "gdp",
        public_size: int | None = None,
        *,
        individual: bool = False,
    ) -> Accountant:
        """The accountant of a session, on a new or an existing ledger.

        Parameters
        ----------
        path : str
            Path of the ledger.
        budget : Budget
            The total privacy budget.
        about : mapping of str to str
            The rest of the metadata: table, privacy unit and schema.
        filter_ : str
            Name of the filter that enforces the budget.
        public_size : int, optional
            Public number of units, stored in a new ledger for the odometer that needs a bound.
        individual : bool
            Whether each unit has its own budget.

        Raises
        ------
        InvalidValueError
            If the filter cannot enforce such a budget.
        LedgerError
            If the file was created with other metadata, is not a ledger, or cannot be used.
        """
        made = make_guarantee(filter_, budget, individual=individual)
        pledge = {**about, "budget": json.dumps(budget.to_json()), "filter": filter_}
        ledger = Ledger(path, pledge, parameters_of(made, public_size))
        try:
            return cls(ledger, BudgetTree(ledger), ROOT, *_restored(ledger.parameters, made))
        except BaseException:
            ledger.close()
            raise

    @classmethod
    def from_ledger(cls, ledger: Ledger) -> Accountant:
        """The accountant of the session that a ledger was created for, from the ledger alone, which is trusted.

        Raises
        ------
        LedgerError
            If the metadata or the parameters cannot be read.
        """
        pledge = ledger.metadata
        with refuse_unreadable("the promise"):
            budget = Budget.from_json(json.loads(pledge["budget"]))
            made = make_guarantee(pledge["filter"], budget, individual="on_exhausted" in pledge)
        return cls(ledger, BudgetTree(ledger), ROOT, *_restored(ledger.parameters, made))

    def for_sub_session(self, launch: Launch) -> Accountant:
        """The account of a sub-session that was launched in this ledger."""
        with refuse_unreadable(f"row {launch.id}"):
            resolved = launch.details["resolved"]
            made = make_guarantee(str(resolved["filter"]), Budget.from_json(resolved["budget"]))
            parameters = resolved["parameters"]
        restored = _restored(parameters, made)
        return Accountant(self.ledger, self.tree, node_of(launch.id), *restored)

    def for_part(self, launch: Launch, key: tuple[Key, ...]) -> Accountant:
        """The account of a part of a partition that was launched here."""
        branch = node_of(launch.id, key)
        path = self.tree.path(branch, self.root_node) or ()
        return Accountant(
            self.ledger, self.tree, branch, self.promise, self._start, self._public_size, around=self, place=path[0]
        )

    @property
    def budget(self) -> Budget:
        """The total privacy budget."""
        return self.promise.budget

    @property
    def filter(self) -> AnyFilter:
        """The filter in its current state.

        The filter of a part includes what the part was charged, what it can still be charged at no cost to its session,
        and what remains in the session: see :mod:`dpnb.accounting.parallel`.
        """
        with self.ledger.lock.checked():
            own = self.sync().filter
            if self._around is None or self._place is None or isinstance(own, RogersFilter):
                return own
            outside = self._around.filter
            budget = own.spent + (outside.budget - outside.spent)
            if self.first_exclusion is None:  # else also what the largest part would pay for may leave somebody out
                free = self._around.sync().parts.free_loss(self._place, len(own.spent.parts))
                budget = own.spent.with_parts(free) + budget
            return own.with_budget(budget).step(own.spent)

    @property
    def odometer(self) -> Odometer:
        """The odometer that can be read now: the mixture odometer, or an accumulator while that one pauses."""
        with self.ledger.lock.checked():
            state = self.sync()
            if state.odometer is not None and not self.tree.open_launches(self.root_node):
                return state.odometer
            return self.comparison.accumulator

    @property
    def paused(self) -> str | None:
        """Why the time-uniform odometers cannot be read now, in words; None if they can.

        They are proved for mechanisms that are run one after another (Whitehouse et al. 2023, Theorem 3).  What holds
        for interleaved ones is the accumulator (Haney et al. 2023, Theorems 4.9 and 4.11).  Once all are closed the
        history is one of finished mechanisms again: what was interleaved were Gaussian releases, each with a loss that
        was fixed before it, which are non-interactive; sub-sessions, whose releases are of that kind too and lose no
        more than was counted for them at launch; and above-threshold scans, each of which is a post-processing of one
        non-interactive release of randomised response at its launch (Vadhan and Wang 2021), and post-processing keeps
        the bound.

        What a sub-session or a part shows is about its own answers alone, each of which is given a past that may hold
        anything; so it pauses for what was launched in it, and not for what goes on around it.
        """
        alive = self.tree.open_launches(self.root_node)
        if alive:
            first = ", ".join(repr(launch.name) for launch in alive[:NAMED])
            more = f" and {len(alive) - NAMED} more" if len(alive) > NAMED else ""
            verb, it = ("is", "it") if len(alive) == 1 else ("are", "them")
            return (
                f"The time-uniform odometers pause while {first}{more} {verb} open: they are proved for mechanisms "
                f"that run one after another, and interactive ones may be interleaved. Close {it} to read them again."
            )
        if self.sync().odometer is None:
            return (
                "The time-uniform odometers stopped at the first sub-session whose budget is in a kind of loss that "
                "they cannot count."
            )
        return None

    @property
    def comparison(self) -> FilterComparison:
        """What every filter and odometer makes of the same history, as it stands now; to be read at once."""
        with self.ledger.lock.checked():
            fresh = self.ledger.summaries(after=self._comparison.seen)
            if fresh:
                self.tree.sync()
                with refuse_unreadable(f"rows {fresh[0].id} to {fresh[-1].id}"):
                    self._follow(fresh)
            if self._around is None:
                return self._comparison
            # Of a part: other filters' parts are not followed, and its own can be charged what it can be now.
            own = self.promise.filter_name
            standing = replace(self._comparison.standings[own], filter=self.filter)
            return replace(self._comparison, standings={own: standing})

    def _follow(self, fresh: Sequence[ChargeSummary]) -> None:
        """Bring the comparison up to date, and the timeline: the rows between two of its points at once."""
        own = [(entry, path) for entry in fresh if (path := self.tree.path(entry.node, self.root_node)) is not None]
        kept = self._timeline.kept(len(own))
        run: list[tuple[int, GDP]] = []
        rows = 0
        for place, (entry, path) in enumerate(own):
            plain = entry.launch is None and isinstance(entry.loss, GDP) and not entry.loss.delta
            if plain and not path:
                run.append((entry.id, entry.loss))  # type: ignore[arg-type]  # it is GDP
            told, rows = place in kept or not plain, rows + 1  # from such a row on odometers may pause
            if run and (told or path):
                self._comparison, run = self._comparison.after_run(ChargeBatch(run)), []
            if path or not plain:
                self._comparison = self._comparison.after(entry.id, entry.loss, path)
            if told:
                self._timeline.note(
                    self._comparison, rows, paused=bool(self.tree.open_launches_at(entry.id, self.root_node))
                )
                rows = 0
        self._comparison = replace(self._comparison, seen=fresh[-1].id)

    @property
    def timeline(self) -> Timeline:
        """How filter and odometers stood after each row of the ledger."""
        with self.ledger.lock.checked():
            _ = self.comparison  # brings both up to date
            return self._timeline

    @property
    def last_headroom(self) -> float | None:
        """Headroom when the ledger was last read, without reading it; None for a part, whose depends on other parts."""
        return None if self._around is not None else self._state.filter.headroom

    def sync(self) -> AccountantState:
        """Take in what any kernel has charged since we last looked."""
        with self.ledger.lock.checked():
            for charge in self.ledger.summaries(after=self._state.last_id):
                with refuse_unreadable(f"row {charge.id}"):
                    self._take_in(charge)
            return self._state

    def _take_in(self, charge: ChargeSummary) -> None:
        before, path = self._state, self.tree.path(charge.node, self.root_node)
        if path is None:
            self._state = replace(before, last_id=charge.id)
            return
        (filter_, parts), cost = step_filter(
            before.filter, before.parts, path, self.promise.to_filter_loss(charge.loss)
        )
        self._paid[charge.id] = before.filter.budget_fraction(cost)
        odometer, times = before.odometer, before.odometer_parts
        left_out, by_version = before.left_out, before.by_version
        if isinstance(before.filter, WorstCaseFilter) and isinstance(filter_, WorstCaseFilter):
            worst = self._worst[charge.id] = before.filter.mu_squared(cost)
            by_version = {**by_version, charge.table_version: by_version.get(charge.table_version, Fraction(0)) + worst}
            if odometer is not None:  # of the worst case up to the budget: see `FilterComparison.after`
                odometer, times = timed(odometer, times, (), filter_.spent - before.filter.spent)
            if left_out is None and not before.filter.admits_all_units(cost):
                left_out = charge.id
        elif odometer is not None:
            odometer, times = timed(odometer, times, path, charge.loss)
        self._state = AccountantState(filter_, odometer, parts, times, left_out, by_version, charge.id)

    # --- where each unit has its own budget ---------------------------------------------------------------------

    @property
    def individual(self) -> bool:
        """Whether each unit has its own budget."""
        return isinstance(self.promise.initial_filter, WorstCaseFilter)

    @property
    def first_exclusion(self) -> int | None:
        """The first row of the ledger from which somebody may have been left out; None while nobody was, surely."""
        return self.root.sync().left_out if self.individual else None

    def worst_case(self, charge_id: int) -> tuple[Fraction, bool]:
        """What a row of the ledger cost at worst, as mu squared, and whether everybody surely took part in it."""
        state = self.root.sync()
        return self.root._worst[charge_id], state.left_out is None or charge_id < state.left_out

    def admits_all_units(self, loss: Loss) -> bool:
        """Whether everybody surely takes part in a question that would be charged this; always without such units.

        A function of the ledger alone.
        """
        if not self.individual:
            return True
        whole = self.root
        state = whole.sync()
        if not isinstance(state.filter, WorstCaseFilter):  # it is one; the type checker does not know
            raise TypeError(type(state.filter).__name__)
        path = self.tree.path(self.root_node, whole.root_node) or ()
        _, cost = partition_cost(state.filter, state.parts, path, self.promise.to_filter_loss(loss))
        return state.left_out is None and state.filter.admits_all_units(cost)

    def refuse_if_no_unit_left(self, question: str, version: str) -> None:
        """Refuse a query in which no unit can take part, because other versions of the table used the whole budget.

        What a unit paid for another version of the table is unknown, since its rows may differ there; so every unit is
        charged the worst case.  A function of the ledger alone; call inside its transaction.

        Raises
        ------
        BudgetExceeded
        """
        whole = self.root
        state = whole.sync()
        if isinstance(state.filter, WorstCaseFilter):
            elsewhere = sum((worst for of, worst in state.by_version.items() if of != version), Fraction(0))
            if elsewhere >= state.filter.unit_budget:
                raise BudgetExceeded(
                    f"{question}: {state.filter.rule}, and other versions of the table used all of it in the worst "
                    f"case; no unit of version {version!r} can pay; nothing was charged"
                )

    @property
    def root(self) -> Accountant:
        """The account that pays for this one, if it is a part's."""
        return self if self._around is None else self._around.root

    def max_mu(self, known: GDP) -> float:
        """The largest mu that a question of which `known` is paid can still be known at, rounded down; 0 if none."""
        left = self.promise.remaining(self.filter)
        return decimal_sqrt_down(known.mu_squared + left.mu_squared) if left.mu_squared else 0.0

    def budget_fraction(self, charge_id: int) -> float:
        """The share of the whole budget that a row of the ledger took, rounded up; of a part what its session paid."""
        if self._around is not None:
            return self._around.budget_fraction(charge_id)
        if charge_id not in self._paid:
            self.sync()
        return self._paid[charge_id]

    def forecast(self, loss: Loss) -> tuple[float, float]:
        """What a loss would take of the whole budget, rounded up, and what would be left, rounded down.

        For a part both are of the session that pays, which may be nothing.  The loss is in the filter's kind.
        """
        filter_ = self.filter
        if self._around is None or self._place is None or isinstance(filter_, RogersFilter):
            after = filter_.step(loss).headroom if filter_.admits(loss) else 0.0
            return filter_.budget_fraction(loss), after
        counted = filter_.to_filter_loss(loss)
        _, grown = self._around.sync().parts.after((self._place,), counted.parts)
        return self._around.forecast(counted.with_parts(grown))

    def includes(self, branch: str) -> bool:
        """Whether what is asked on a branch is counted here."""
        return self.tree.path(branch, self.root_node) is not None


def parameters_of(made: PrivacyGuarantee, public_size: int | None) -> dict[str, str]:
    """Computed figures, kept as first written: another version of a library may differ in the last digit."""
    slack = made.budget.discovery_delta
    delta = ODOMETER_DELTA if made.budget.delta is None else made.budget.delta - slack
    odometer = MixtureOdometer.tuned(made.mu0_squared, delta, slack_delta=slack)
    return {
        **made.to_json(),
        "odometer_gamma": odometer.gamma.hex(),
        "odometer_delta": to_text(odometer.delta),
        **({} if public_size is None else {"public_size": str(public_size)}),
    }


def _restored(
    settings: Mapping[str, str], made: PrivacyGuarantee
) -> tuple[PrivacyGuarantee, MixtureOdometer, int | None]:
    """Everything before the first row, with the parameters that were fixed then."""
    with refuse_unreadable("the settings"):
        kept = made.with_parameters(settings)
        gamma = Fraction(float.fromhex(settings["odometer_gamma"]))
        slack = made.budget.discovery_delta
        odometer = MixtureOdometer(gamma, from_text(settings["odometer_delta"]), slack_delta=slack)
        size = int(settings["public_size"]) if "public_size" in settings else None
    return kept, odometer, size
