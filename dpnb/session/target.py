"""What a release is asked for: known at least this well."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from dpnb.accounting.budget import Budget
from dpnb.accounting.conversions import mu_from_epsilon
from dpnb.accounting.exact import (
    Number,
    decimal_down,
    decimal_sqrt_up,
    exact,
    from_text,
    positive,
    to_text,
)
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded, RequestError
from dpnb.interactive.refinement import Refinement
from dpnb.query.linear import LinearQuery

WITHIN_MARGIN = 1 - 1e-9
"""The interval that comes out must not be wider than asked for by the last digits of a double."""


@dataclass(frozen=True)
class Target:
    """One way of saying how well an answer is to be known.

    Parameters
    ----------
    kind : str
        ``mu``, ``rho``, ``epsilon``, ``share`` or ``within``.
    amount : Fraction
        As written.
    confidence : Fraction
        Of the intervals.
    """

    kind: str
    amount: Fraction
    confidence: Fraction

    @property
    def alpha(self) -> Fraction:
        """How often an interval may miss."""
        return 1 - self.confidence

    def to_json(self) -> str:
        """The arguments as written; part of a request's identity."""
        return json.dumps({self.kind: to_text(self.amount), "confidence": to_text(self.confidence)})


def target_from(
    *,
    mu: Number | None = None,
    rho: Number | None = None,
    epsilon: Number | None = None,
    share: Number | None = None,
    within: Number | None = None,
    confidence: Number = 0.95,
) -> Target:
    """Check the arguments of a preview or release.

    Raises
    ------
    RequestError
        Not exactly one target, or a share above 1 or a confidence outside (0, 1).
    InvalidValueError
        A number is not finite and positive.
    """
    given = {"mu": mu, "rho": rho, "epsilon": epsilon, "share": share, "within": within}
    chosen = {kind: amount for kind, amount in given.items() if amount is not None}
    if len(chosen) != 1:
        got = ", ".join(f"{kind}={amount!r}" for kind, amount in chosen.items()) or "none"
        raise RequestError(f"target: give exactly one of mu=, rho=, epsilon=, share=, within=; got {got}")
    ((kind, amount),) = chosen.items()
    number = positive(amount, name=kind)
    if kind == "share" and number > 1:
        raise RequestError(f"share: must be at most 1, all that is left; got {amount!r}")
    level = exact(confidence, name="confidence")
    if not 0 < level < 1:
        raise RequestError(f"confidence: must lie between 0 and 1, both excluded; got {confidence!r}; take 0.95")
    return Target(kind, number, level)


def confidence_of(request: str) -> Fraction:
    """The confidence in a stored request."""
    return from_text(json.loads(request)["confidence"])


def resolve(
    target: Target,
    *,
    query: LinearQuery,
    refinement: Refinement,
    budget: Budget,
    share_left: Callable[[Fraction], GDP],
    error_factor: float,
) -> GDP:
    """The loss at which the question is known as well as asked, earlier looks included.

    Parameters
    ----------
    share_left : callable
        The largest release that takes at most a share of what the filter has left.
    error_factor : float
        Half-width of an interval for each unit of half-width of a noisy sum; used for ``within=`` only.

    Raises
    ------
    BudgetExceeded
        ``share=`` of nothing.
    RequestError
        ``epsilon=`` under a budget without a delta, or a target that no noise can be calibrated to.
    """
    if target.kind == "mu":
        return GDP(target.amount)
    if target.kind == "rho":
        return GDP.from_squared(2 * target.amount)
    if target.kind == "share":
        extra = share_left(target.amount)
        if not extra.mu_squared:
            raise BudgetExceeded(f"{query.plan.words}: share of what is left, but nothing is left; nothing was charged")
        return GDP.from_squared(refinement.known.mu_squared + extra.mu_squared)
    if target.kind == "epsilon":
        return _from_epsilon(target, budget)
    return _within(target, query, refinement, error_factor)


def _from_epsilon(target: Target, budget: Budget) -> GDP:
    if budget.delta is None:
        raise RequestError(
            "epsilon: the budget is in GDP, without a delta to go with epsilon; give mu= or rho= instead"
        )
    mu = mu_from_epsilon(target.amount, delta=budget.delta)
    if mu == 0:
        raise RequestError(f"epsilon: too small to measure anything; got {decimal_down(target.amount)!r}; ask for more")
    return GDP(mu)


def _within(target: Target, query: LinearQuery, refinement: Refinement, error_factor: float) -> GDP:
    within = decimal_down(target.amount)
    radius = within * WITHIN_MARGIN / error_factor
    if not math.isfinite(radius) or radius <= 0:
        raise RequestError(
            f"within: no noise can be calibrated to an error of {within!r} in the {query.plan.words}; ask for another"
        )
    if refinement.looks and refinement.radius(target.alpha) <= radius:
        return refinement.known
    sigma = refinement.sigma_within(radius, target.alpha)
    return GDP(decimal_sqrt_up(query.l2_sensitivity_squared / Fraction(sigma) ** 2))
