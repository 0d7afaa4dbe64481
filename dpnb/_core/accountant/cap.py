"""A cap on some of the charges of a ledger, within the budget of their session."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from fractions import Fraction

from dpnb._core.accountant.filters_and_odometers import partition_cost
from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.tree import BudgetTree
from dpnb.accounting.filters import Filter, GDPFilter
from dpnb.accounting.guarantee import PrivacyGuarantee
from dpnb.accounting.losses import Loss, PureGDP
from dpnb.accounting.losses.gaussian import as_amount
from dpnb.accounting.partition_cost import NO_PARTS
from dpnb.copying import NotCopyable
from dpnb.ledger import ROOT, ChargeSummary, Ledger, node_of, refuse_unreadable

NOTHING = PureGDP.of(Fraction(0), Fraction(0), Fraction(0))


class Limit(NotCopyable):
    """A cap, and what was charged of it.

    The charges of `node` are counted, including those that reach it through partitions, if `counts` says so of their
    rows; the cap is that of `cap_node`, which `words` names.  `guarantee` says how a GDP filter counted a row.
    """

    def __init__(
        self,
        ledger: Ledger,
        tree: BudgetTree,
        guarantee: PrivacyGuarantee,
        node: str,
        cap_node: str,
        counts: Callable[[ChargeSummary], bool] = lambda charge: True,
        words: str = "the cap of this session",
    ) -> None:
        self._ledger, self._tree, self._guarantee = ledger, tree, guarantee
        self._node, self._cap_node, self._counts, self.words = node, cap_node, counts, words
        self._spent, self._parts, self._last_id = NOTHING, NO_PARTS, 0

    @property
    def cap(self) -> PureGDP | None:
        """The cap; None if there is none now."""
        return self._tree.cap(self._cap_node)

    @property
    def spent(self) -> PureGDP:
        """What was charged, whether or not it is within the current cap."""
        with self._ledger.lock.checked():
            for charge in self._ledger.summaries(after=self._last_id):
                with refuse_unreadable(f"row {charge.id}"):
                    self._add(charge)
                self._last_id = charge.id
            return self._spent

    def _add(self, charge: ChargeSummary) -> None:
        self._tree.sync()
        path = self._tree.path(charge.node, self._node)
        if path is None or not self._counts(charge):
            return
        loss = as_amount(self._guarantee.recorded_loss(charge.loss, charge.charged))
        self._parts, cost = partition_cost(_UNLIMITED, self._parts, path, loss)
        self._spent = self._spent + as_amount(cost)

    def growth(self, node: str, counted: Loss) -> PureGDP:
        """What a loss in a node inside would add: in a part of a partition less than the loss, and perhaps nothing."""
        with self._ledger.lock.checked():
            _ = self.spent  # which reads the ledger
            path = self._tree.path(node, self._node) or ()
            return as_amount(partition_cost(_UNLIMITED, self._parts, path, as_amount(counted))[1])

    @property
    def filter(self) -> GDPFilter | None:
        """A filter with the cap as its budget, in its current state; None if there is no cap.

        A cap that was moved below what had been charged leaves nothing.
        """
        cap = self.cap
        if cap is None:
            return None
        spent = self.spent
        budget = PureGDP.of(*(max(pair) for pair in zip(cap.parts, spent.parts, strict=True)))
        return GDPFilter.from_loss(budget).step(spent)


def left_of(budget: Loss, spent: Loss) -> PureGDP:
    """What is left of each component."""
    pairs = zip(as_amount(budget).parts, as_amount(spent).parts, strict=True)
    return PureGDP.of(*(max(whole - part, Fraction(0)) for whole, part in pairs))


_UNLIMITED = GDPFilter.from_loss(PureGDP.of(Fraction(1), Fraction(1), Fraction(1)))
"""How a cap counts losses in parts of partitions; its budget is not used."""


def limit_of(ledger: Ledger, tree: BudgetTree, guarantee: PrivacyGuarantee, grant: Grant, words: str) -> Limit:
    """The cap of a part of a budget, with what was charged to the part."""
    node = node_of(grant.id)
    if grant.mode == "reserved":
        return Limit(ledger, tree, guarantee, node, node, words=words)

    def is_of_part(charge: ChargeSummary) -> bool:
        if charge.origin is None or grant.level == "analyst":
            return charge.origin is not None and charge.origin.actor == grant.name
        member = tree.grant_named("analyst", charge.origin.actor)
        return member is not None and member.node == node

    return Limit(ledger, tree, guarantee, ROOT, node, is_of_part, words)


def within_limits(own: Filter, limits: Iterable[Limit]) -> Filter:
    """The filter or cap that leaves the least mu squared, with the least that is left of every component."""
    if not own.records_charge:
        return own
    for limit in limits:
        capped = limit.filter
        if capped is not None:
            binding, spent = own, as_amount(own.spent)
            left = [left_of(own.budget, spent), left_of(capped.budget, capped.spent)]
            least = [min(pair) for pair in zip(left[0].parts, left[1].parts, strict=True)]
            if left[1].mu_squared < left[0].mu_squared:
                spent = as_amount(capped.spent)
            n = len(binding.budget.parts)  # a filter without a reserve has no epsilon
            total = [part + rest for part, rest in zip(spent.parts, least, strict=True)]
            budget = binding.budget.with_parts(tuple(total[:n]))
            own = binding.with_budget(budget).step(binding.spent.with_parts(spent.parts[:n]))
    return own


def binding_limit(own: Filter, limits: Iterable[Limit]) -> Limit | None:
    """The cap that leaves less mu squared than the filter and the other caps; None if the filter leaves least."""
    if not own.records_charge:
        return None
    least, binding = left_of(own.budget, own.spent).mu_squared, None
    for limit in limits:
        capped = limit.filter
        if capped is not None and (left := left_of(capped.budget, capped.spent).mu_squared) < least:
            least, binding = left, limit
    return binding
