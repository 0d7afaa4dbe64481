"""Granting parts of a budget to projects and analysts, and the curator's acts: each is a row of the ledger."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.cap import NOTHING, Limit, left_of
from dpnb._core.accountant.grant import LEDGER_RESTORED, Grant, Mode, budget_of
from dpnb._core.accountant.later_sessions import computed_parameters
from dpnb.accounting.guarantee import make_guarantee
from dpnb.accounting.losses import GDP, PureGDP
from dpnb.accounting.losses.gaussian import as_amount
from dpnb.errors import InvalidValueError
from dpnb.ledger import ROOT, node_of
from dpnb.ledger.charge import ACT, GRANT, digest, unique_key
from dpnb.wire.limits import MAX_WHY
from dpnb.wire.messages import Level


def whole_of(account: Accountant) -> PureGDP:
    """The budget of a session, as parts of it are taken from it; its filter must add mu squared."""
    guarantee, whole = account.guarantee, account.guarantee.initial_filter.budget
    if guarantee.filter_name != "gdp" or whole is None:
        raise InvalidValueError(
            f"budget: can be divided among analysts only with the filter 'gdp'; got {guarantee.filter_name!r}; leave "
            "filter out of the declaration, or give the analysts no parts"
        )
    return as_amount(whole)  # of the filter, as the ledger stores it: another version may compute another mu


def grant(
    account: Accountant,
    level: Level,
    name: str,
    mode: Mode,
    amount: PureGDP | None,
    *,
    version: str,
    project: Grant | None = None,
) -> Grant:
    """Grant a part of a budget, or find the same grant in the ledger.

    No other part of that level has the name, and all parts of a ledger have the same mode.  `amount` is the ceiling in
    reserved mode; in pooled mode the cap, or None for none but that of the budget.  Without a project, the part is
    taken from the whole budget.  The ceilings never add up to more than what they are taken from.
    """
    with account.ledger.transaction():
        node = ROOT if project is None else node_of(project.id)
        known = account.tree.named_by_settings(level, name)
        ceiling = amount if mode == "reserved" else None
        if known is not None:
            if (known.mode, known.node, known.ceiling) != (mode, node, ceiling):
                raise InvalidValueError(
                    f"{level} {name}: its mode, project and ceiling are fixed when it is made; the ledger has "
                    f"{_words(known, account)}; write that, and lower the cap instead of the ceiling"
                )
            return known
        others = [one for one in account.tree.grants().values() if one.mode != mode]
        if others:
            raise InvalidValueError(
                f"{level} {name}: all parts of a budget have one mode, which cannot change; the ledger has the mode "
                f"{others[0].mode!r}; got {mode!r}"
            )
        row = write_part(account, level, name, mode, amount, project, version=version)
    return account.tree.grants()[row]


def write_part(
    account: Accountant,
    level: Level,
    name: str,
    mode: Mode,
    amount: PureGDP | None,
    project: Grant | None,
    *,
    version: str,
    taken_from: Grant | None = None,
) -> int:
    """Write the row of a new part, and return its id; call inside the ledger's transaction.

    If it takes the place of a part that was handed over in the same transaction, the ceilings add up to what they did.
    """
    whole, ceiling = whole_of(account), amount if mode == "reserved" else None
    parameters: dict[str, str] = {}
    if amount is not None:
        _refuse_too_large(level, name, amount, whole if project is None else project.ceiling or whole)
    if ceiling is not None:
        if taken_from is None or taken_from.ceiling != ceiling:
            _refuse_excess(account, level, name, ceiling, project)
        guarantee = make_guarantee("gdp", budget_of(ceiling), individual=account.individual)
        parameters = computed_parameters(guarantee, account.public_size, account.delta, account.sampled)
    node = ROOT if project is None else node_of(project.id)
    cap, before = None if mode == "reserved" else amount, None if taken_from is None else taken_from.id
    new = Grant(0, level, name, mode, node, ceiling, cap, parameters, taken_from=before)
    # A name may have further parts, each after an earlier one was handed over.
    earlier = [one for one in account.tree.grants().values() if (one.level, one.name) == (level, name)]
    row = account.ledger.reserve(
        kind=GRANT,
        request_key=digest(["grant", level, name, *([len(earlier)] if earlier else [])]),
        node=node,
        table_version=version,
        query_key=name,
        loss=GDP(0),
        launch=new.to_details(),
    )
    return int(row.id)


def move_cap(account: Accountant, part: Grant, cap: PureGDP | None, *, version: str) -> None:
    """Move the cap of a part, unless it is there.  That ends earlier approvals of requests.

    `cap` None is none but that of the ceiling, or of the budget.  In reserved mode a project has no cap, since within
    it what one analyst could be charged would depend on what the others were charged.
    """
    known = account.tree.cap_with_raises(node_of(part.id))
    if known.base == cap and not known.raises:
        return
    _move_cap(account, part, cap, version)


def _move_cap(account: Accountant, part: Grant, cap: PureGDP | None, version: str) -> None:
    if cap is not None:
        _refuse_too_large(part.level, part.name, cap, part.ceiling or whole_of(account))
        if part.mode == "reserved" and part.level == "project":
            raise InvalidValueError(
                f"project {part.name}: has no cap in reserved mode, since what one analyst could be charged would "
                "depend on what the others were charged; lower the caps of its analysts"
            )
    _act(account, node_of(part.id), version, {"act": "cap", "cap": None if cap is None else cap.to_json()})


def revoke(account: Accountant, part: Grant, *, version: str) -> None:
    """Refuse all further charges of a part, unless it is revoked."""
    if not account.tree.grants()[part.id].is_revoked:
        _act(account, node_of(part.id), version, {"act": "revoke"})


def restore(account: Accountant, part: Grant, *, version: str) -> None:
    """Accept charges of a part again, if it is revoked."""
    if account.tree.grants()[part.id].is_revoked:
        _act(account, node_of(part.id), version, {"act": "restore"})


def follow_settings(account: Accountant, part: Grant, cap: PureGDP | None, *, version: str) -> None:
    """Do what the settings say about a part that they have, as far as it differs from what they said before.

    What a curator changed meanwhile, such as a cap or a revocation, is kept while the settings stay the same.
    """
    said = account.tree.from_settings(part)
    if not said.is_present:
        _act(account, node_of(part.id), version, {"act": "restore"})
    if said.cap != cap:
        _move_cap(account, part, cap, version)


def leave_settings(account: Accountant, part: Grant, *, version: str) -> None:
    """Revoke a part that the settings no longer have, unless that was done."""
    if account.tree.from_settings(part).is_present:
        _act(account, node_of(part.id), version, {"act": "revoke"})


def freeze(account: Accountant, why: str, *, version: str) -> None:
    """Refuse all further charges of the whole budget, for a reason that analysts see."""
    if not why or len(why) > MAX_WHY or not why.isprintable():
        raise InvalidValueError(
            f"why: must be 1 to {MAX_WHY} printable characters, which analysts see; got another text"
        )
    if account.tree.frozen != why:
        _act(account, ROOT, version, {"act": "freeze", "why": why})


def unfreeze(account: Accountant, *, version: str) -> None:
    """Accept charges again, if the budget is frozen."""
    if account.tree.frozen is not None:
        _act(account, ROOT, version, {"act": "unfreeze"})


def note_restored(account: Accountant, known: int | None, *, version: str) -> None:
    """Record that the ledger may lack charges, as after it was restored from an older copy.

    `known` is the number of a row that the ledger had and lacks, if one is known.  In a part that is reserved for an
    analyst there is such a row too, without a number, since that analyst sees no other rows.
    """
    with account.ledger.transaction():
        write_act(account, ROOT, version, {"act": LEDGER_RESTORED, "known": known})
        for part in account.tree.grants().values():
            if (part.mode, part.level) == ("reserved", "analyst"):
                write_act(account, node_of(part.id), version, {"act": LEDGER_RESTORED})


def _act(account: Accountant, node: str, version: str, details: dict[str, Any]) -> None:
    with account.ledger.transaction():
        write_act(account, node, version, details)


def write_act(account: Accountant, node: str, version: str, details: dict[str, Any]) -> None:
    """Write the row of an act; call inside the ledger's transaction."""
    account.ledger.reserve(
        kind=ACT,
        request_key=unique_key(),
        node=node,
        table_version=version,
        query_key=str(details["act"]),
        loss=GDP(0),
        launch=details,
    )


def _refuse_too_large(level: Level, name: str, amount: PureGDP, outer: PureGDP) -> None:
    if not amount.within(outer):
        raise InvalidValueError(
            f"{level} {name}: must have at most {outer.format(up=False, with_delta=True)} in each component; got "
            f"{amount.format(up=True, with_delta=True)}; lower it"
        )
    if not (amount.mu_squared or amount.epsilon):
        raise InvalidValueError(f"{level} {name}: must get an amount larger than 0; got 0; revoke the part instead")


def unreserved(account: Accountant, project: Grant | None = None, outside: Limit | None = None) -> PureGDP:
    """What is left of a budget, or of the part of a project, for further ceilings.

    `outside` is an earlier `charged_outside`, which reads new rows only.
    """
    node = ROOT if project is None else node_of(project.id)
    taken = [one.ceiling for one in account.tree.grants().values() if one.node == node and not one.is_handed_over]
    left = _outer(account, project)
    if project is None:
        left = left_of(left, (outside or charged_outside(account)).spent)
    for one in taken:
        left = left_of(left, one or NOTHING)
    return left


def refuse_excess(level: Level, name: str, ceiling: PureGDP, outer: PureGDP, left: PureGDP) -> None:
    """Refuse a ceiling that is more than what is left of what it is taken from."""
    if not ceiling.within(left):
        raise InvalidValueError(
            f"{level} {name}: the ceilings must add up to at most {outer.format(up=False, with_delta=True)}; "
            f"{left.format(up=False, with_delta=True)} is left, and it has {ceiling.format(up=True, with_delta=True)}; "
            "lower it"
        )


def _refuse_excess(account: Accountant, level: Level, name: str, ceiling: PureGDP, project: Grant | None) -> None:
    """Refuse ceilings that add up to more than what they are taken from."""
    if project is None and account.individual and charged_outside(account).spent.mu_squared:
        raise InvalidValueError(
            f"{level} {name}: a budget cannot be divided after a charge under individual accounting, since each "
            "unit may have paid all of it; start a new ledger"
        )
    refuse_excess(level, name, ceiling, _outer(account, project), unreserved(account, project))


def _outer(account: Accountant, project: Grant | None) -> PureGDP:
    return (None if project is None else project.ceiling) or whole_of(account)


def charged_outside(account: Accountant) -> Limit:
    """What was charged before, outside all parts."""
    tree = account.tree
    return Limit(
        account.ledger, tree, account.guarantee, ROOT, ROOT, counts=lambda charge: tree.grant_of(charge.node) is None
    )


def _words(part: Grant, account: Accountant) -> str:
    outer = account.tree.grant_of(part.node)
    of = "" if outer is None else f" of the project {outer.name!r}"
    ceiling = "" if part.ceiling is None else f" with the ceiling {part.ceiling.format(up=False, with_delta=True)}"
    return f"a {part.mode} part{of}{ceiling}"


def share_of(outer: PureGDP, share: Fraction) -> PureGDP:
    """A share of each component of an amount."""
    return PureGDP.of(*(part * share for part in outer.parts))
