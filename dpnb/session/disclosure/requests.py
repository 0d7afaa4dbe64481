"""The charged requests of a statement, the interactive mechanisms, and the curator's acts about the budget."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import cast

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.tree import SUB_SESSION, BudgetTree
from dpnb._core.core import SessionCore
from dpnb._core.history.launch_text import row_in_words
from dpnb._core.history.cost_text import charged_amount
from dpnb._core.history.log import charged_mu, gdp_of
from dpnb.accounting.exact import decimal_up
from dpnb.errors import printable
from dpnb.ledger import ROOT, Charge, parent_launch
from dpnb.ledger.charge import ABOUT_BUDGET, COMPARISON, LAUNCH, RELEASE, SELECTION, Words
from dpnb.render.numbers import format_percent_up
from dpnb.results.disclosure.parts import ReleaseStatus, ReportedAct, ReportedMechanism, ReportedRelease
from dpnb.session.gauges import finite

REQUESTS = (RELEASE, COMPARISON, SELECTION, LAUNCH)
FREE = "nothing"


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
