"""Selections of the largest groups of a count: how reliable they are, what they cost, and their answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context
from fractions import Fraction

from dpnb._browser.glossary import IN_THIS_TABLE
from dpnb._compile import LinearQuery
from dpnb._core.accountant.admission import admit_launch
from dpnb._core.execution.executor import Kind, PricedRow
from dpnb._core.history.words import selection_words
from dpnb._core.pricing.pricer import QueryPricer
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import AnyView, Count, CountActiveUnits, CountUnits, PlainView, Proportions
from dpnb._plan.plan import Plan, describe_plan
from dpnb._request import Conditions, SelectGroups
from dpnb.accounting.exact import Number, decimal_up, display_up, exact, shown
from dpnb.accounting.filters import Filter
from dpnb.accounting.grid import capped_up
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP, BoundedRange, Loss, Repeated
from dpnb.errors import BudgetExceeded, InvalidValueError, PlanError, RequestError
from dpnb.ledger import Charge
from dpnb.ledger.charge import SELECTION
from dpnb.mechanisms.gaussian import sigma_for
from dpnb.mechanisms.randomness import NoiseSource
from dpnb.mechanisms.selection import (
    ExponentialMechanism,
    LargestCounts,
    PermuteAndFlip,
    choice_of,
    epsilon_for_shortfall,
    wrong_choices,
)
from dpnb.progress import Stage, at
from dpnb.schema import whole_number

ALPHA = Fraction(1, 20)
"""The probability with which a winner may fall short by more than is stated."""

HALVINGS = 16  # of the search for an epsilon of four digits

MAX_COINS = 2_000_000
"""Largest number of groups times winners: half a minute."""


@dataclass(frozen=True)
class SelectionTerms:
    """The selection of the largest groups of a count."""

    query: LinearQuery  # a count of rows or of units in groups with public keys
    winners: int  # number of groups that are selected
    sensitivity: int  # the most that one unit adds to one count, in integer steps
    filter_: Filter  # that pays, before the first release: so the same request always has the same mechanism
    is_single: bool  # one key was requested, by ``idxmax``, rather than a list

    @property
    def plan(self) -> Plan:
        """The plan of the counts."""
        return self.query.plan

    @property
    def description(self) -> str:
        """The selection in words."""
        return selection_words(self.plan, self.winners)

    @property
    def unit(self) -> str:
        """What is counted."""
        return "privacy units" if isinstance(self.plan.aggregation, CountUnits) else "rows"

    @property
    def _step(self) -> Fraction:
        """The count of one integer step."""
        (feature,) = self.query.features
        return feature.unit

    def choice(self, epsilon: Fraction) -> LargestCounts:
        """The mechanism for a requested epsilon, which costs at most what k rounds in pure DP with epsilon/k do.

        It is permute-and-flip with that loss, or the exponential mechanism with the largest range that costs no more,
        if that falls short by less.
        """
        pure = PermuteAndFlip(self.query.cells, self.winners, epsilon, self.sensitivity)
        total = range_within(self.filter_, pure.loss) if self.filter_.counts_range else Fraction(0)
        if total <= epsilon:
            return pure
        other = ExponentialMechanism(self.query.cells, self.winners, total, self.sensitivity)
        return other if other.shortfall(ALPHA) < pure.shortfall(ALPHA) else pure

    def charged(self, loss: Loss) -> LargestCounts:
        """The mechanism of a row of the ledger, which its loss names."""
        return choice_of(loss, self.query.cells, self.winners, self.sensitivity)

    def shortfall(self, choice: LargestCounts) -> Fraction:
        """By how many rows or units a winner may fall short, at 95%; see `LargestCounts.shortfall`."""
        return choice.shortfall(ALPHA) * self._step

    def mechanism(self, choice: LargestCounts) -> str:
        """Which mechanism it is, and why, in words."""
        epsilon = f"epsilon {display_up(decimal_up(choice.epsilon))} in pure DP"
        if isinstance(choice, ExponentialMechanism):
            return f"exponential mechanism, {epsilon}: charged by its range, it falls short by less at this cost"
        if self.filter_.counts_range:
            return f"permute-and-flip, {epsilon}: it falls short by less at this cost"
        return f"permute-and-flip, {epsilon}, which is what this budget counts"

    def shortfall_of_counts(self, loss: GDP) -> float:
        """The shortfall of a ranking by the noisy counts of all groups, released for `loss`; at 95%.

        The difference of two counts has normal noise of sqrt(2) sigma, so that one group is ranked before another with
        a count larger by t with probability at most P(Z >= t/(sqrt(2) sigma)).  The largest group that is left for rank
        i is one of the i truly largest, so the pairs that matter are as many as the wrong choices of a selection.
        """
        sigma = math.sqrt(2) * sigma_for(self.query.l2_sensitivity_squared, loss)
        radius = fixed_radius([sigma], alpha=2 * ALPHA / wrong_choices(self.query.cells, self.winners))
        return radius * float(self._step)

    def epsilon_within(self, within: Number) -> Fraction:
        """The epsilon with which no winner falls short by more than `within`, at 95%."""
        width = exact(within, name="within")
        if not 0 <= width <= 10**30:
            raise InvalidValueError(f"within: must lie between 0 and 1e30 {self.unit}; got {shown(within)}")
        steps = int(width / self._step)  # rounded down
        enough = epsilon_for_shortfall(self.query.cells, self.winners, self.sensitivity, steps, ALPHA)
        if not self.filter_.counts_range:
            return enough
        too_small = enough / 4  # the exponential mechanism has at most twice the rate
        for _ in range(HALVINGS):
            middle = Fraction(f"{float((too_small + enough) / 2):.4g}")
            if not too_small < middle < enough:
                break
            is_enough = self.choice(middle).shortfall(ALPHA) <= steps
            too_small, enough = (too_small, middle) if is_enough else (middle, enough)
        return enough

    def request(self, epsilon: Fraction) -> SelectGroups:
        """The selection at a loss."""
        return SelectGroups(self.plan, self.winners, epsilon)

    def reliability(self, choice: LargestCounts) -> str:
        """What is known about the order, in words."""
        number = display_up(decimal_up(self.shortfall(choice)))
        words = f"{number} {self.unit.removesuffix('s') if number == '1' else self.unit}"
        if self.winners == 1:
            return f"{IN_THIS_TABLE}, with 95% confidence, its count is at most {words} below the largest"
        largest = "the largest of the groups not listed before it"
        return f"{IN_THIS_TABLE}, with 95% confidence, no count is more than {words} below {largest}"


def counts_groups(plan: Plan, view: AnyView) -> bool:
    """Whether a query is a count in groups, or the shares of all groups together, which have the same order."""
    counts = isinstance(plan.aggregation, Count | CountUnits) and not isinstance(plan.aggregation, CountActiveUnits)
    return counts and bool(plan.group_by) and view in (PlainView(), Proportions())


def range_within(filter_: Filter, loss: Loss) -> Fraction:
    """The sum of the largest ranges, to six digits, that a filter in its state charges at most what it charges `loss`.

    `loss` is of as many rounds in pure DP.  Under GDP, whatever is left, each round is charged as one in pure DP with
    half of its range; under other filters the charge does not depend on what is left.
    """
    allowed = filter_.to_filter_loss(loss).parts
    total = 2 * loss.parts[0]
    while total > loss.parts[0]:
        once = BoundedRange.of(total / loss.count)
        charge = filter_.to_filter_loss(Repeated(once, loss.count) if loss.count > 1 else once).parts
        if all(part <= most for part, most in zip(charge, allowed, strict=True)):
            return total
        share = min(most / part for part, most in zip(charge, allowed, strict=True) if part)
        total = Fraction(_DIGITS.create_decimal(repr(float(total) * min(math.sqrt(share), 1 - 1e-6))))
    return total


_DIGITS = Context(prec=6, rounding=ROUND_FLOOR)


def selection_terms(query: LinearQuery, view: AnyView, winners: object, verb: str, filter_: Filter) -> SelectionTerms:
    """The selection of the largest groups of a query, which must count groups (`counts_groups`).

    `winners` is as written by the analyst; `verb` is ``top`` or ``idxmax``, for errors; `filter_` pays, and is in its
    first state.
    """
    plan, sensitivity = query.plan, query.max_count_change
    if not counts_groups(plan, view) or sensitivity is None:
        raise PlanError(
            f"{verb}: {describe_plan(plan, view)}: selects among groups by a count of rows or of units, as in "
            "df.groupby(...).size().top(3); for other statistics release all groups, and call .nlargest(3) or "
            ".estimate.idxmax() of the answer"
        )
    number, groups = whole_number(winners), query.cells
    if number is None or not 1 <= number <= groups:
        raise PlanError(f"{verb}: must be a whole number of groups from 1 to {groups:,}; got {shown(winners)}")
    if groups == 1:
        raise PlanError(f"{verb}: {plan.words}: has only one group, whose key is public; group by more values")
    if groups * number > MAX_COINS:
        raise PlanError(
            f"{verb}: {plan.words}: would choose {number:,} times among {groups:,} groups; their product must be at "
            f"most {MAX_COINS:,}; request fewer groups by keys=[...]"
        )
    return SelectionTerms(query, number, sensitivity, filter_, verb == "idxmax")


# --- price and answer -------------------------------------------------------------------------------------------------


class SelectionKind(Kind[SelectGroups]):
    """Selections of one session.

    A selection is charged in full by the same rule as a launch (`admit_launch`), all rounds before the first, so that
    what it chooses does not decide whether it goes on.  It is not interactive: its
    one answer is a function of the rows and of coins, so nothing about it can be interleaved.  If the process ends
    between charge and answer, the same request answers the same charge later; that is as if the answer had been
    computed at the charge and displayed later.
    """

    code = SELECTION

    def __init__(self, pricer: QueryPricer, source: NoiseSource) -> None:
        super().__init__(pricer)
        self._source = source

    def terms(self, request: SelectGroups) -> SelectionTerms:
        """What is selected."""
        filter_ = self.account.guarantee.initial_filter
        return selection_terms(self.pricer.tables.compile(request.plan), PlainView(), request.winners, "top", filter_)

    def price(self, request: SelectGroups, conditions: Conditions) -> list[PricedRow]:
        """The requested loss, in full."""
        loss, counted = self.admitted(request)
        columns = {
            "query_key": query_key(request.plan),
            "loss": loss,
            "charged": self.account.guarantee.initial_filter.recorded_charge(loss, counted),
            "answered": False,
        }
        return [PricedRow(request, request.key, columns)]

    def admitted(self, request: SelectGroups) -> tuple[Loss, Loss]:
        """The loss of a selection, of which each round is one mechanism, and what the filter counts for it."""
        account, description = self.account, selection_words(request.plan, request.winners)
        if account.individual:
            raise RequestError(
                f"{description}: would charge every unit, including those without rows in it; under "
                "accounting='individual' release the counts, which charge only the units they use"
            )
        terms = self.terms(request)
        loss = capped_up(terms.choice(request.epsilon).loss, account.filter)
        asked = PermuteAndFlip(terms.query.cells, request.winners, request.epsilon).loss
        try:
            return loss, admit_launch(account, description, loss, asked)
        except BudgetExceeded as error:
            refusal = f"{error}; .preview() of the selection shows which epsilons fit"
        raise BudgetExceeded(refusal)

    def answer(self, request: SelectGroups, row: Charge) -> Charge:
        """The keys of the groups, the largest first."""
        terms = self.terms(request)
        with at(Stage.ADDING):
            counts = [int(total) for total in self.pricer.tables.opened.sums(terms.query)]
        with at(Stage.NOISE):
            winners = terms.charged(row.loss).draw(counts, self._source)
        return replace(row, status="released", result={"largest": [terms.query.keys[index] for index in winners]})
