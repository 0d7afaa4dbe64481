"""How the budget of a statement is divided among analysts, and what that assumes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.grant import Grant
from dpnb._core.accountant.limit import Limit
from dpnb._core.accountant.tree import BudgetTree
from dpnb.accounting.losses import PureGDP
from dpnb.errors import printable
from dpnb.ledger import ROOT, ChargeSummary, node_of
from dpnb.results.disclosure.parts import Division, DivisionMode, ReportedPart
from dpnb.session.disclosure.people import NO_CEILING, handed_over, is_revoked

RESERVED = (
    "The ceilings of all parts add up to at most the budget, so that all analysts together are within the budget, also "
    "if they share what they have learned.",
    "Everything that an analyst receives, apart from the time at which it arrives, is computed from that analyst's own "
    "requests, so each analyst's answers have a guarantee of their own, at the analyst's ceiling.",
    "This assumes that the curator, when deciding about an analyst's ceiling, cap, freeze, revocation or running "
    "request, uses nothing but that analyst's own requests.",
)
POOLED = (
    "All analysts share the budget and see each other's requests. The guarantee is about all answers together; no "
    "smaller one is given for a single analyst.",
    "Caps limit what an analyst or a project can be charged. They may add up to more than the budget, and are no "
    "guarantees.",
)
UNDIVIDED = ("All requests are charged to one budget.",)


@dataclass(frozen=True)
class StatementScope:
    """Whose rows a statement is about."""

    is_copy: bool = False  # the rows that an analyst of a service may see, not the whole ledger
    analyst: str | None = None  # if a part of the budget is reserved for them


WHOLE = StatementScope()
"""The whole ledger."""


def division_of(account: Accountant, scope: StatementScope) -> Division:
    """How the budget is divided."""
    grants = account.tree.grants().values()
    if scope.analyst is not None:
        return Division("reserved", RESERVED + handed_over(account), (_own(account, scope.analyst),))
    modes = {grant.mode for grant in grants}
    mode: DivisionMode = "not divided" if not modes else "reserved" if "reserved" in modes else "pooled"
    assumptions = {"not divided": UNDIVIDED, "pooled": POOLED, "reserved": RESERVED + handed_over(account)}[mode]
    return Division(mode, assumptions, tuple(_part(account, grant) for grant in grants))


def _own(account: Accountant, analyst: str) -> ReportedPart:
    """The part of an analyst whose rows alone are known: their budget is the ceiling."""
    budget = account.guarantee.budget
    ceiling = PureGDP.of(budget.loss.mu_squared, budget.loss.delta, budget.pure_epsilon)  # type: ignore[union-attr]  # a part has one
    spent = Limit(account.ledger, account.tree, account.guarantee, ROOT, ROOT).spent
    cap = _cap(account, ROOT)
    return ReportedPart(
        row=0,
        level="analyst",
        name=printable(analyst),
        project=None,
        ceiling=_words(ceiling),
        cap=None if cap is None else _words(cap),
        spent=_spent(account, spent),
        revoked=is_revoked(account),
    )


def _part(account: Accountant, grant: Grant) -> ReportedPart:
    tree, cap = account.tree, _cap(account, node_of(grant.id))
    project = tree.grant_of(grant.node)
    counts = partial(_belongs, tree, grant)
    spent = Limit(account.ledger, tree, account.guarantee, ROOT, ROOT, counts).spent
    return ReportedPart(
        row=grant.id,
        level=grant.level,
        name=printable(grant.name),
        project=None if project is None else printable(project.name),
        ceiling=NO_CEILING if grant.is_handed_over else None if grant.ceiling is None else _words(grant.ceiling),
        cap=None if cap is None else _words(cap),
        spent=_spent(account, spent),
        revoked=grant.is_revoked,
    )


def _cap(account: Accountant, node: str) -> PureGDP | None:
    """The cap at the time of the latest row: an approval that lapses later leaves the statement as it was."""
    return account.tree.cap_with_raises(node).at(max(account.ledger.times().values(), default=""))


def _belongs(tree: BudgetTree, grant: Grant, charge: ChargeSummary) -> bool:
    """Whether a charge was made in a part, or in one inside it: by its node if it is reserved, by its actor if not."""
    own = tree.grant_of(charge.node)
    if own is None and charge.origin is not None:
        own = tree.grant_named("analyst", charge.origin.actor)
    while own is not None:
        if own.id == grant.id:
            return True
        own = tree.grant_of(own.node)
    return False


def _spent(account: Accountant, spent: PureGDP) -> str:
    """What was charged; under individual accounting each unit is charged at most its budget."""
    if not account.individual:
        return _words(spent)
    return f"{_words(spent)} as the sum of the worst cases; no unit is charged more than its budget"


def _words(amount: PureGDP) -> str:
    """An amount, rounded up: a ceiling is a guarantee, and what was charged is a loss."""
    return amount.words if amount else "nothing"
