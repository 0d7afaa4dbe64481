"""Selections of the largest groups of a count: how reliable they are, what they cost, and their answers."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

from dpnb._compile import LinearQuery
from dpnb._core.accountant.admission import admit_launch
from dpnb._core.execution.executor import Kind, Price
from dpnb._core.history.launch_text import selection_words
from dpnb._core.pricing.pricer import QueryPricer
from dpnb._plan.identity import query_key
from dpnb._plan.measurements import AnyView, Count, CountActiveUnits, CountUnits, PlainView, Proportions
from dpnb._plan.plan import Plan, describe_plan
from dpnb._protocol.glossary import IN_THIS_TABLE
from dpnb._request import Conditions, SelectGroups
from dpnb.accounting.exact import Number, decimal_up, display_up, exact, shown
from dpnb.accounting.grid import capped_up
from dpnb.accounting.intervals import fixed_radius
from dpnb.accounting.losses import GDP, Loss
from dpnb.errors import BudgetExceeded, InvalidValueError, PlanError, RequestError
from dpnb.ledger import Charge
from dpnb.ledger.charge import SELECTION
from dpnb.mechanisms.calibration import sigma_for
from dpnb.mechanisms.permute_and_flip import PermuteAndFlip, epsilon_for_shortfall, wrong_choices
from dpnb.mechanisms.randomness import NoiseSource
from dpnb.progress import Stage, at
from dpnb.schema import whole_number

ALPHA = Fraction(1, 20)
"""The probability with which a winner may fall short by more than is stated."""

MAX_COINS = 2_000_000
"""Largest number of groups times winners: half a minute."""


@dataclass(frozen=True)
class SelectionTerms:
    """The selection of the largest groups of a count."""

    query: LinearQuery  # a count of rows or of units in groups with public keys
    winners: int  # number of groups that are selected
    sensitivity: int  # the most that one unit adds to one count, in integer steps
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

    def choice(self, epsilon: Fraction) -> PermuteAndFlip:
        """The mechanism at a loss."""
        return PermuteAndFlip(self.query.cells, self.winners, epsilon, self.sensitivity)

    def shortfall(self, epsilon: Fraction) -> Fraction:
        """By how many rows or units a winner may fall short, at 95%; see `PermuteAndFlip.shortfall`."""
        return self.choice(epsilon).shortfall(ALPHA) * self._step

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
        return epsilon_for_shortfall(self.query.cells, self.winners, self.sensitivity, steps, ALPHA)

    def request(self, epsilon: Fraction) -> SelectGroups:
        """The selection at a loss."""
        return SelectGroups(self.plan, self.winners, epsilon)

    def reliability(self, epsilon: Fraction) -> str:
        """What is known about the order, in words."""
        number = display_up(decimal_up(self.shortfall(epsilon)))
        words = f"{number} {self.unit.removesuffix('s') if number == '1' else self.unit}"
        if self.winners == 1:
            return f"{IN_THIS_TABLE}, with 95% confidence, its count is at most {words} below the largest"
        largest = "the largest of the groups not listed before it"
        return f"{IN_THIS_TABLE}, with 95% confidence, no count is more than {words} below {largest}"


def counts_groups(plan: Plan, view: AnyView) -> bool:
    """Whether a query is a count in groups, or the shares of all groups together, which have the same order."""
    counts = isinstance(plan.aggregation, Count | CountUnits) and not isinstance(plan.aggregation, CountActiveUnits)
    return counts and bool(plan.group_by) and view in (PlainView(), Proportions())


def selection_terms(query: LinearQuery, view: AnyView, winners: object, verb: str) -> SelectionTerms:
    """The selection of the largest groups of a query, which must count groups (`counts_groups`).

    `winners` is as written by the analyst; `verb` is ``top`` or ``idxmax``, for errors.
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
    return SelectionTerms(query, number, sensitivity, verb == "idxmax")


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
        return selection_terms(self.pricer.tables.compile(request.plan), PlainView(), request.winners, "top")

    def price(self, request: SelectGroups, conditions: Conditions) -> list[Price]:
        """The requested loss, in full."""
        loss, counted = self.admitted(request)
        columns = {
            "query_key": query_key(request.plan),
            "loss": loss,
            "charged": self.account.guarantee.initial_filter.recorded_charge(loss, counted),
            "answered": False,
        }
        return [Price(request, request.key, columns)]

    def admitted(self, request: SelectGroups) -> tuple[Loss, Loss]:
        """The loss of a selection, of which each round is one mechanism, and what the filter counts for it."""
        account, description = self.account, selection_words(request.plan, request.winners)
        if account.individual:
            raise RequestError(
                f"{description}: would charge every unit, including those without rows in it; under "
                "accounting='individual' release the counts, which charge only the units they use"
            )
        loss = capped_up(self.terms(request).choice(request.epsilon).loss, account.filter)
        try:
            return loss, admit_launch(account, description, loss)
        except BudgetExceeded as error:
            refusal = f"{error}; .preview() of the selection shows which epsilons fit"
        raise BudgetExceeded(refusal)

    def answer(self, request: SelectGroups, row: Charge) -> Charge:
        """The keys of the groups, the largest first."""
        terms = self.terms(request)
        with at(Stage.ADDING):
            counts = [int(total) for total in self.pricer.tables.opened.sums(terms.query)]
        with at(Stage.NOISE):
            winners = terms.choice(request.epsilon).draw(counts, self._source)
        return replace(row, status="released", result={"largest": [terms.query.keys[index] for index in winners]})
