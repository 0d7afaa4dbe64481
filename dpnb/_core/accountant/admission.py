"""Whether the filter admits a charge; if not, a refusal that names what would fit."""

from __future__ import annotations

from dpnb._core.accountant.accountant import Accountant
from dpnb.accounting.exact import decimal_down, decimal_up
from dpnb.accounting.losses import GDP, Loss
from dpnb.errors import BudgetExceeded, ConversionError, RequestError


def admit(account: Accountant, question: str, loss: GDP, known: GDP) -> None:
    """Let the filter decide; call inside the ledger's transaction, before the charge is written.

    Parameters
    ----------
    account : Accountant
        The accountant that would be charged.
    question : str
        The query in words, for the error.
    loss : GDP
        The additional loss of the answer.
    known : GDP
        The loss already paid for this query.

    Raises
    ------
    BudgetExceeded
        If it exceeds the remaining budget; the message names the largest target that fits.
    """
    filter_ = account.filter
    if filter_.admits(account.promise.to_filter_loss(loss)):
        return
    largest = account.max_mu(known)
    asked = GDP.from_mu_squared(known.mu_squared + loss.mu_squared)
    paid = f", of which mu={known.mu!r} is paid already" if known.mu_squared else ""
    remedy = f"the largest that fits is mu={largest!r}, or share=1" if largest else "nothing is left"
    if loss.delta and filter_.admits(account.promise.to_filter_loss(GDP.from_mu_squared(loss.mu_squared))):
        remedy = "its mu fits, its delta does not"
    if loss.delta:
        left = decimal_down(filter_.budget.delta - filter_.spent.delta)
        remedy += f"; of discovery_delta {left!r} is left, and this takes {decimal_up(loss.delta)!r}"
    raise BudgetExceeded(
        f"{question}: {filter_.rule}; asked for mu={asked.mu!r}{paid}; {remedy}; "
        "nothing was charged and the session goes on"
    )


def admit_launch(account: Accountant, what: str, loss: Loss) -> None:
    """Let the filter decide on a mechanism that is charged when it is launched; call inside the transaction.

    Raises
    ------
    BudgetExceeded
        It does not fit.
    RequestError
        No theorem makes what is launched of the filter's kind of loss.
    """
    filter_ = account.filter
    try:
        fits = filter_.admits(account.promise.to_filter_loss(loss))
    except ConversionError as error:
        raise RequestError(
            f"{what}: costs {loss.format(up=True)}, which the filter {account.promise.filter_name!r} cannot count "
            f"({error}); "
            "nothing was charged"
        ) from None
    if not fits:
        largest = account.max_mu(GDP(0))
        remedy = f"mu={largest!r} is the largest that fits" if largest else "nothing is left"
        raise BudgetExceeded(
            f"{what}: {filter_.rule}; asked for {loss.format(up=True)}; {remedy}; nothing was charged and the "
            "session goes on"
        )
