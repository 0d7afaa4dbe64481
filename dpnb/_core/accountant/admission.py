"""Whether the filter admits a charge; if the budget is spent, a refusal that names what would fit."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.cap import left_of
from dpnb.accounting.exact import decimal_down, decimal_sqrt_down, decimal_up, display_down, display_up
from dpnb.accounting.losses import GDP, Loss
from dpnb.errors import BudgetExceeded, ConversionError, CostIncreased, LedgerError, RequestError
from dpnb.render.numbers import format_percent_down, format_percent_up


def admit(
    account: Accountant,
    description: str,
    loss: GDP,
    known: GDP,
    *,
    buys: Callable[[GDP], str | None] = lambda _: None,
    note: str | None = None,
) -> None:
    """Let the filter decide; call inside the ledger's transaction, before the charge is written.

    `loss` is that of the answer beyond `known`, which was paid for this query already.  A refusal names the largest
    target that fits, rounded down so that it fits when it is typed, and the error that it `buys`, if that is known;
    and a `note` on the target.
    """
    filter_ = account.filter
    refuse_divided(account, description)
    if filter_.admits(account.guarantee.to_filter_loss(loss)):
        refuse_beyond_limits(account, description, loss)
        return
    largest = account.max_mu(known)
    total = GDP.from_mu_squared(known.mu_squared + loss.mu_squared)
    paid = f", of which mu={display_up(known.mu)} is already paid" if known.mu_squared else ""
    requested = _requested(account, account.guarantee.to_filter_loss(loss), f"mu={display_up(total.mu)}{paid}")
    remedy = "nothing is left"
    if largest:
        # In few digits it may be what is paid already, which buys nothing.
        typed = f"mu={display_down(largest)}, or " if float(display_down(largest)) > known.mu else ""
        error = buys(GDP.from_mu_squared(known.mu_squared + account.guarantee.remaining(filter_).mu_squared))
        remedy = f"the largest that fits is {typed}share=1{'' if error is None else f', for {error}'}"
    if loss.delta and filter_.admits(account.guarantee.to_filter_loss(GDP.from_mu_squared(loss.mu_squared))):
        remedy = "its mu fits, its delta does not"
    if loss.delta:
        remaining = display_down(decimal_down(filter_.budget.delta - filter_.spent.delta))
        needed = display_up(decimal_up(loss.delta))
        remedy += f"; {remaining} of discovery_delta is left, and this query needs {needed}"
    noted = "" if note is None else f"; {note}"
    raise BudgetExceeded(
        f"{description}: {requested}{noted}; {remedy}; {filter_.rule}; nothing was charged and the session continues"
    )


def refuse_above(at_most: Fraction | None, loss: GDP, description: str) -> None:
    """Refuse a release that would cost more than the analyst was shown; call where `admit` is called.

    `at_most` is the cost that was shown, as mu squared; None if none was.
    """
    if at_most is None or loss.mu_squared <= at_most:
        return
    raise CostIncreased(
        f"{description}: costs more than in the preview (mu={display_up(loss.mu)} instead of "
        f"{display_up(GDP.from_mu_squared(at_most).mu)}), since another kernel or analyst released or spent something "
        "meanwhile; preview again; nothing was charged"
    )


def admit_launch(account: Accountant, description: str, loss: Loss, asked: Loss | None = None) -> Loss:
    """Let the filter decide on a mechanism that is charged at launch, and return the loss that the filter counts.

    Call inside the ledger's transaction.  A refusal is in the words of `asked`, if the request named another loss.
    """
    filter_ = account.filter
    refuse_divided(account, description)
    try:
        # At the smallest budget that it enters.
        counted = filter_.launch_charge(account.guarantee.to_filter_loss(loss))
        fits = filter_.admits(counted)
    except ConversionError as error:
        raise RequestError(
            f"{description}: costs {loss.format(up=True, digits=4)}, which the filter "
            f"{account.guarantee.filter_name!r} cannot count ({error}); nothing was charged"
        ) from None
    if not fits:
        named = loss if asked is None else asked
        largest = _largest(account, named)
        remedy = f"{largest} is the largest that fits" if largest else "nothing is left"
        requested = _requested(account, counted, named.format(up=True, digits=4))
        raise BudgetExceeded(
            f"{description}: {requested}; {remedy}; {filter_.rule}; nothing was charged and the session continues"
        )
    refuse_beyond_limits(account, description, counted)
    return counted


def refuse_divided(account: Accountant, description: str) -> None:
    """Refuse to charge a budget that is divided among analysts, each of whom has a guarantee at a fixed ceiling."""
    node = account.root.root_node
    if [grant for grant in account.tree.grants().values() if grant.mode == "reserved" and grant.node == node]:
        raise BudgetExceeded(
            f"{description}: the budget is divided among analysts, and only their sessions at the service can be "
            "charged; nothing was charged; connect to the service as an analyst"
        )


def refuse_beyond_limits(account: Accountant, description: str, counted: Loss) -> None:
    """Refuse what a cap does not admit, or, for a part of a table's budget, the table's filter.

    The account's own filter has admitted the loss, which is here as the filter counts it.  A cap refuses
    (`BudgetExceeded`) only under individual accounting, since otherwise the filter includes the caps.  Beyond the
    budget of the table, which the ceilings exclude, it is a `LedgerError`.
    """
    for limit in account.limits:
        capped = limit.filter
        if capped is not None and not capped.admits(limit.growth(account.root_node, counted)):
            left = display_down(decimal_sqrt_down(left_of(capped.budget, capped.spent).mu_squared))
            raise BudgetExceeded(
                f"{description}: requested {counted.format(up=True, digits=4)}, and mu={left} is left of "
                f"{limit.words}; nothing was charged and the session continues"
            )
    whole = account.whole
    if whole is not None and not whole.filter.admits(whole.growth(account.root_node, counted)):
        raise LedgerError(f"{description}: the parts of the budget exceed it; nothing was charged; tell the curator")


def _largest(account: Accountant, loss: Loss) -> str:
    """The largest loss of the same kind that fits, in words; empty if nothing is left."""
    words = account.filter.largest_launch(loss)
    if words is not None:
        return words
    mu = account.max_mu(GDP(0))
    return f"mu={display_down(mu)}" if mu else ""


def _requested(account: Accountant, counted: Loss, words: str) -> str:
    """The requested loss, first as a percentage of the budget, and what is left."""
    share = format_percent_up(account.forecast(counted)[0])
    return f"requested {share} of the budget ({words}), and {format_percent_down(account.filter.headroom)} is left"
