"""One target divided among several charges, whose whole cost is known before the first.

The parts of a target follow from its arguments alone, so the same call makes the same requests, whose recorded answers
are free.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from dpnb._core.core import SessionCore
from dpnb._core.pricing.resolve import resolve_loss
from dpnb._target import Target, target_of
from dpnb.accounting.exact import decimal_down, exact
from dpnb.accounting.filters import Filter
from dpnb.accounting.losses import GDP
from dpnb.errors import RequestError


def divided(core: SessionCore, target: Target, shares: Sequence[Fraction], description: str) -> list[Target]:
    """The targets of charges that are these shares of that of a target, of mu squared; the shares add up to 1.

    Each is rounded down.  A share of the remaining budget is a share of what the charges before leave.
    """
    if target.kind == "within":
        raise RequestError(
            f"{description}: within= is the width of one noise interval, but the charge is divided among several "
            "measurements; give mu=, rho=, epsilon= or share="
        )
    amount = target.amount or Fraction(0)
    if target.kind == "share":
        before = [sum(shares[:index], Fraction(0)) for index in range(len(shares))]
        parts = [amount * share / (1 - amount * earlier) for share, earlier in zip(shares, before, strict=True)]
        return [target_of("share", exact(decimal_down(part))) for part in parts]
    total = _loss(core, core.account.filter, target, description)
    return [target_of("rho", exact(decimal_down(total.mu_squared * share / 2))) for share in shares]


def losses_of(
    core: SessionCore,
    targets: Sequence[Target],
    description: str,
    before: Sequence[GDP] = (),
    *,
    all_units: bool = False,
) -> tuple[list[GDP], bool]:
    """What some charges cost, one after another and `before` them others, and whether all of them fit.

    The losses include those before.

    Under individual accounting a charge never ends the budget of all units, so any charges fit; unless they must be
    about `all_units`.
    """
    account, losses = core.account, list(before)
    fits = not all_units or account.first_exclusion is None
    state = account.filter
    for at in range(len(before) + len(targets)):
        if at >= len(before):
            losses.append(_loss(core, state, targets[at - len(before)], description))
        counted = account.guarantee.to_filter_loss(losses[at])
        fits = fits and state.admits(counted) and (not all_units or state.admits_all_units(counted))
        state = state.step(counted) if fits else state
    return losses, fits or (account.individual and not all_units)


def forecast_of(core: SessionCore, losses: Sequence[GDP], *, fits: bool) -> tuple[float, float]:
    """The cost of several charges and the headroom after them, as `Accountant.forecast` of one.

    By some filters several charges cost more than one of the same loss together.
    """
    account, fraction = core.account, 0.0
    each = [account.guarantee.to_filter_loss(loss) for loss in losses] or [account.guarantee.to_filter_loss(GDP(0))]
    if core.part is not None:  # a filter that charges the largest part alone adds up what it counts
        added = [sum(parts, Fraction(0)) for parts in zip(*(counted.parts for counted in each), strict=True)]
        return account.forecast(each[0].with_parts(tuple(added)))
    state = account.filter
    for counted in each:
        fraction += state.budget_fraction(counted)
        state = state.step(counted) if fits else state
    return fraction, state.headroom if fits else 0.0


def _loss(core: SessionCore, state: Filter, target: Target, description: str) -> GDP:
    """The loss of a charge at a state of the filter."""
    guarantee = core.account.guarantee
    return resolve_loss(
        target,
        description=description,
        known=GDP(0),
        budget=core.account.budget,
        remaining=lambda share: guarantee.remaining(state, share),
    )


def total_of(losses: Sequence[GDP]) -> GDP:
    """The loss of several charges together."""
    return GDP.from_mu_squared(sum((loss.mu_squared for loss in losses), Fraction(0)))
