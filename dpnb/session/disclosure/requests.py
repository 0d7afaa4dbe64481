"""The parts of a statement about charges: requests, division among analysts, versions of the table."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import cast

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.cap import Limit
from dpnb._core.accountant.grant import HAND_OVER, REMOVE, TAKE_OVER, Grant
from dpnb._core.accountant.tree import SUB_SESSION, BudgetTree
from dpnb._core.core import SessionCore
from dpnb._core.history.log import charged_mu, gdp_of
from dpnb._core.history.words import charged_amount, row_in_words
from dpnb._core.ledger_metadata import LedgerMetadata, differences
from dpnb.accounting.exact import decimal_up
from dpnb.accounting.losses import PureGDP
from dpnb.errors import printable
from dpnb.ledger import ROOT, Charge, ChargeSummary, Ledger, node_of, parent_launch
from dpnb.ledger.charge import ABOUT_BUDGET, ACT, COMPARISON, REQUESTS, Words
from dpnb.ledger.declared import STATED, Declared, extends
from dpnb.render.numbers import format_percent_up
from dpnb.results.disclosure.parts import (
    Division,
    DivisionMode,
    ReleaseStatus,
    ReportedAct,
    ReportedMechanism,
    ReportedPart,
    ReportedRelease,
    ReportedTable,
    ReportedVersion,
)
from dpnb.session.disclosure.figures import tables_of
from dpnb.session.gauges import finite

HANDED_OVER = (
    "A ceiling was handed over to another analyst; the acts of the curator say when. That is possible only while "
    "nothing has been charged to it, so the new holder has all of it, and the ceilings add up to what they did. It "
    "tells the new holder that the analyst before had not been answered anything. The guarantee of the new holder "
    "assumes that this did not depend on answers of other analysts. That of all answers together does not assume it."
)

NO_CEILING = "nothing, since it was handed over"
"""The ceiling of a part whose place another one has taken."""


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

FREE = "nothing"


def _handed_over(account: Accountant) -> tuple[str, ...]:
    """The assumption, if the rows, of the whole ledger or of one analyst, have such an act."""
    acts = [(one.launch or {})["act"] for one in account.ledger.summaries() if one.kind == ACT]
    return (HANDED_OVER,) if HAND_OVER in acts or TAKE_OVER in acts else ()


def is_revoked(account: Accountant) -> bool:
    """Whether the part can no longer be charged, by the acts among the rows of its analyst alone."""
    acts = [(one.launch or {})["act"] for one in account.ledger.summaries() if one.kind == ACT]
    about = [act for act in acts if act in ("revoke", "restore", REMOVE, HAND_OVER)]
    return bool(about) and (about[-1] != "restore" or HAND_OVER in about)


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
        return Division("reserved", RESERVED + _handed_over(account), (_own(account, scope.analyst),))
    modes = {grant.mode for grant in grants}
    mode: DivisionMode = "not divided" if not modes else "reserved" if "reserved" in modes else "pooled"
    assumptions = {"not divided": UNDIVIDED, "pooled": POOLED, "reserved": RESERVED + _handed_over(account)}[mode]
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


def versions_of(ledger: Ledger, charges: Sequence[Charge]) -> tuple[ReportedVersion, ...]:
    """The versions that charged requests were about, in the order of their first requests."""
    by_version: dict[str, list[Charge]] = {}
    for charge in charges:
        by_version.setdefault(charge.table_version, []).append(charge)
    return tuple(
        ReportedVersion(printable(version), len(rows), rows[0].time, rows[-1].time, _other_tables(ledger, rows[-1]))
        for version, rows in by_version.items()
    )


def changes(before: Declared, after: Declared) -> list[str]:
    """What is declared otherwise than before, in words."""
    return [
        one.words.replace("the ledger has", "it was", 1)
        .replace("the session has", "it is now", 1)
        .replace("the session lacks it; it is", "is removed; it was")
        .replace("the session lacks", "no longer")
        .replace("the ledger lacks that column", "is new")
        .replace("the ledger lacks", "new:")
        for one in differences(before.metadata, after.metadata, with_new=True)
    ]


def _other_tables(ledger: Ledger, last: Charge) -> tuple[ReportedTable, ...] | None:
    """The tables that were declared for a row, if they are others than those that are declared now."""
    then = ledger.declared_before(last.id)
    if extends(ledger.declared, then):
        return None
    words = {name: text for name, text in ledger.metadata.items() if name == STATED}  # the label of a unit
    return tables_of(LedgerMetadata.from_dict({**then.metadata, **words}, ledger.path).tables)


def charged_of(charges: list[Charge]) -> list[Charge]:
    """Every request that was charged, in every part of the budget and every mechanism, oldest first."""
    return [charge for charge in charges if charge.kind in REQUESTS or charge.loss]


def releases_of(core: SessionCore, charged: list[Charge], *, answers: bool) -> tuple[ReportedRelease, ...]:
    """The charged requests with their costs, and with their answers if that is wanted."""
    words = core.log.words(charge.id for charge in charged)
    return tuple(
        _release(core.account, charge, _described(charge, one), answers=answers)
        for charge, one in zip(charged, words, strict=True)
    )


def _release(
    account: Accountant, charge: Charge, described: tuple[str, str | None, str | None], *, answers: bool
) -> ReportedRelease:
    words, error, answer = described
    if not answers:  # the error of a mean or a median, and of whatever is limited to possible values, tells the answer
        error = answer = None
    is_counted = account.tree.path(charge.node, ROOT) is not None
    share = account.cost_fraction(charge.id) if is_counted else math.nan
    return ReportedRelease(
        row=charge.id,
        time=charge.time,
        kind=charge.kind,
        query=words,
        analyst=None if charge.origin is None else printable(charge.origin.actor),
        inside=_inside(account.tree, charge.node),
        paid_by=None if is_counted else _payer(account.tree, charge.node),
        loss=printable(charge.loss.words) if charge.loss else FREE,
        mu=None if gdp_of(charge.loss) is None else finite(charged_mu(account.guarantee, charge.loss, charge.charged)),
        delta=decimal_up(charge.loss.delta),
        charged=None if charge.charged is None else charged_amount(account.guarantee, charge.charged),
        share=_share(share, account.reserve_fraction(charge)),
        table_version=printable(charge.table_version),
        status=cast("ReleaseStatus", charge.status),  # reading a row refuses any other
        error=error,
        answer=answer,
    )


def _described(charge: Charge, words: Words) -> tuple[str, str | None, str | None]:
    """The request in words, the error of its answer, and the answer."""
    query, answer, _, _, _, error = words
    if charge.kind == COMPARISON:  # whose words end with its answer
        query, _, answer = query.rpartition(": ")
    return query, error, answer


def _share(share: float, of_reserve: Fraction) -> str | None:
    """The share of the budget and that of the reserve; None if nothing of the budget itself was charged."""
    if math.isnan(share):
        return None
    if not of_reserve:
        return format_percent_up(share)
    reserve = f"{format_percent_up(decimal_up(of_reserve))} of the reserve"
    return f"{format_percent_up(share)} and {reserve}" if share else reserve


def _inside(tree: BudgetTree, node: str) -> str | None:
    """The innermost mechanism that contains a node, in words; None for the session and for a part of its budget."""
    parent = parent_launch(node)
    launch = None if parent is None else tree.sync().get(parent[0])
    if parent is None or launch is None:
        return None
    part = f", part {parent[1]}" if parent[1] else ""
    return printable(f"{launch.kind} {launch.name}{part}")


def _payer(tree: BudgetTree, node: str) -> int | None:
    """The outermost sub-session that contains a node: its launch paid for everything inside it."""
    found, launches = None, tree.sync()
    while (parent := parent_launch(node)) is not None:
        launch = launches.get(parent[0])
        if launch is not None and launch.kind == SUB_SESSION:
            found = launch.id
        grant = tree.grants().get(parent[0])
        node = launch.node if launch is not None else grant.node if grant is not None else ROOT
    return found


def mechanisms_of(account: Accountant) -> tuple[ReportedMechanism, ...]:
    """The interactive mechanisms, in the order of their launches."""
    tree = account.tree
    return tuple(
        ReportedMechanism(
            row=launch.id,
            kind=launch.kind,
            name=printable(launch.name),
            analyst=None if launch.actor is None else printable(launch.actor),
            inside=_inside(tree, launch.node),
            closed_by=launch.closed_by,
        )
        for launch in tree.sync().values()
    )


def acts_of(charges: list[Charge]) -> tuple[ReportedAct, ...]:
    """The curator's decisions about the budget, and the requests for a larger cap among them."""
    return tuple(
        ReportedAct(
            row=charge.id,
            time=charge.time,
            actor=None if charge.origin is None else printable(charge.origin.actor),
            words=printable(row_in_words(charge)),
        )
        for charge in charges
        if charge.kind in ABOUT_BUDGET
    )
