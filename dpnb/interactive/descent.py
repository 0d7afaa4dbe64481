"""Gradient descent: its parameters with their cost, and its steps on released gradients.

A step takes the released sum over all units' clipped gradients at the current coefficients, with noise added once to
that sum, divides it by a public number of units and moves in the opposite direction (Feldman and Zrnic 2021, Algorithms
6 and 7, whose printed forms add noise inside the sum and divide by the number of rows: the former is n times as much
noise, the latter is private).  So everything here is post-processing of released values.

Several chains run in parallel from one start, each with independent noise.  The end of a chain is its tail average, the
mean of the second half of its steps (Polyak and Juditsky 1992), around which it fluctuates.

A descent has not converged where a step without noise would still move it further than the noise does.  The gradient
without noise is private, but the released ones average it: over the tail of m steps, the mean over the chains moves by
m noise-free steps and by noise of variance m v in each component, where v follows from the charge.  If the gradients
without noise were 0, the squared length of the movement over m v would be chi-squared with one degree of freedom for
each coefficient; around an optimum it is smaller, since the gradients bring each chain back.  So a tail that moves
further than the quantile `STILL` of this distribution has not converged, wrongly with probability at most 1 - `STILL`;
and one whose noise-free steps are as long as the noise of a step is found out almost certainly from a tail of ten.  A
descent whose steps are drowned by the noise, or too short to be noticed, is not: the rule never shows that a descent
has converged.

Coefficients are rounded to 8 decimals, and all sums are added in a fixed order: the same released values lead to the
same coefficients on any machine, and so to the same query, whose recorded answer costs nothing.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import msgspec
import numpy as np
from numpy.typing import NDArray

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.core import SessionCore
from dpnb._core.history.words import cost_text
from dpnb._plan.checks import check_plan
from dpnb._plan.measurements import Gradient, RegressionModel
from dpnb._plan.plan import Plan
from dpnb._plan.privacy_unit import ContributionBounds, effective_bounds
from dpnb._plan.regression import RegressionDesign, describe_model, design
from dpnb._request import DescendGradient
from dpnb._target import MAX_STORED_BITS, checked_loss, refuse_long
from dpnb.accounting.exact import Number, decimal_up, display_up, positive, shown
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded, InvalidValueError, RequestError
from dpnb.interactive.mechanism import LaunchRequest, title_of
from dpnb.results.regression import NO_INTERVALS, start_from
from dpnb.schema import Schema, whole_number

Floats = NDArray[np.float64]

DECIMALS = 8

STILL = 0.99
"""Probability with which a descent that only the noise moves is not said to move."""

MAX_STEPS = 1_000_000
MAX_CHAINS = 1000
MIN_RATE, MAX_RATE = Fraction(1, 10**100), Fraction(10**100)
CURVATURE = {"linear": 1.0, "logistic": 0.25, "multinomial": 0.5}
"""Maximum curvature of a row's loss, for terms of length 1; for Poisson regression it is the largest prediction."""


def stepped(coefficients: Floats, released: Floats, *, rate: float, size: float, limit: float) -> Floats:
    """The coefficients after one step; shape (chains, width), as `released`, the noisy sums of gradients.

    `rate` is the learning rate, `size` a public number of units (both > 0), `limit` the maximum absolute value of a
    coefficient.
    """
    return rounded(np.clip(coefficients - rate * (released / size), -limit, limit))


def rounded(coefficients: Floats) -> Floats:
    """Coefficients rounded as they occur in queries."""
    return np.round(coefficients, DECIMALS) + 0.0  # no negative zero


def tail_means(iterates: Sequence[Floats]) -> Floats:
    """The mean of the second half of the steps, for each chain; shape (chains, width).

    `iterates` are the start, and the coefficients after each step, each of this shape.
    """
    return in_order(iterates[(len(iterates) + 1) // 2 :] if len(iterates) > 1 else iterates)


def tail_length(steps: int) -> int:
    """The number of the last steps whose movement is compared with the noise."""
    return (steps + 1) // 2


def is_moving(iterates: Sequence[Floats], variances: Sequence[float], *, rate: float, size: float) -> bool:
    """Whether the tail of a descent moved further than the noise explains.

    `iterates` are those of `tail_means`, `rate` and `size` as in `stepped`.  `variances` has for each step the variance
    of the noise in each component of a chain's released sum of gradients.
    """
    from scipy.special import chdtri  # imported when first used

    length = tail_length(len(variances))
    if not length:
        return False
    start, end = iterates[-1 - length], iterates[-1]
    chains, width = end.shape
    noise = sum(variances[-length:]) * (rate / size) ** 2 / chains
    moved = float(((end - start).mean(axis=0) ** 2).sum())
    return bool(moved > noise * float(chdtri(width, 1 - STILL)))


def mean_iterate(iterates: Sequence[Floats]) -> Floats:
    """The mean over the chains' tail averages, rounded; shape (width,)."""
    return rounded(in_order(list(tail_means(iterates))))


def in_order(arrays: Sequence[Floats]) -> Floats:
    """The mean of arrays, added in order."""
    total = np.zeros_like(arrays[0])
    for array in arrays:
        total += array
    return total / len(arrays)


def is_plateau(checks: Sequence[tuple[float, float]], patience: int) -> bool:
    """Whether `patience` consecutive checks did not improve on the best before by more than their noise.

    `checks` are released prediction errors with their noise scales, in order; NaN counts as no improvement.
    """
    best, stale = np.inf, 0
    for value, scale in checks:
        if value + scale < best:
            best, stale = value, 0
        else:
            stale += 1
    return stale >= patience


@dataclass(frozen=True)
class FitArguments:
    """The arguments of `Frame.fit` other than the regression, as written."""

    mu: Number
    steps: int
    clip_norm: Number
    learning_rate: Number | None
    chains: int
    public_size: int | None
    check_every: int | None
    check_mu: Number | None
    patience: int
    start: Any


@dataclass(frozen=True)
class GradientDescentParameters:
    """Validated arguments."""

    mechanism: DescendGradient
    resolved: dict[str, Any]  # fixed at launch: learning rate, public number of units, and start
    first_step: Plan

    @classmethod
    def checked(
        cls,
        rows: Plan,
        model: RegressionModel,
        terms: tuple[str, ...],
        schema: Schema,
        limits: ContributionBounds,
        public_size: int | None,
        given: FitArguments | DescendGradient,
    ) -> GradientDescentParameters:
        """Validate an analyst's arguments, or what a client sends."""
        layout = design(model, schema)
        chains = _whole(given.chains, "chains", MAX_CHAINS)
        clip = decimal_up(positive(given.clip_norm, name="clip_norm"))
        if isinstance(given, DescendGradient):
            start = given.start
        else:
            start = start_from(given.start, model.family, layout, terms)
        gradient = Gradient(model, (start or (0.0,) * layout.width,) * chains, clip)
        first = msgspec.structs.replace(rows, aggregation=gradient)
        check_plan(first, schema)
        if len(terms) != layout.terms:  # as a remote session may send them
            raise RequestError(f"fit: this regression has {layout.terms} terms; got {len(terms)}; give each a name")
        rate = None if given.learning_rate is None else positive(given.learning_rate, name="learning_rate")
        if rate is not None and not MIN_RATE <= rate <= MAX_RATE:
            raise InvalidValueError(
                f"learning_rate: must lie between 1e-100 and 1e100; got {shown(given.learning_rate)}; None is safe"
            )
        if rate is not None:
            refuse_long(rate, "learning_rate", given.learning_rate, MAX_STORED_BITS)
        size = None if given.public_size is None else _whole(given.public_size, "public_size", 2**53)
        if size is None and public_size is None:
            raise RequestError(
                "fit: public_size= is required, a public number of units to divide the sum over units by, since their "
                "true number is private; give public_size= here or to the session"
            )
        mu = checked_loss(given.mu, "mu")
        every, check_mu = given.check_every, given.check_mu
        if every is None and check_mu is not None:
            raise RequestError(
                f"check_mu: needs check_every=, the steps between two checks; got check_mu={check_mu!r} without it"
            )
        mechanism = DescendGradient(
            rows=rows,
            model=model,
            terms=tuple(terms),
            mu=mu,
            steps=_whole(given.steps, "steps", MAX_STEPS),
            clip_norm=clip,
            learning_rate=rate,
            chains=chains,
            public_size=size,
            check_every=None if every is None else _whole(every, "check_every", MAX_STEPS),
            check_mu=None if every is None else mu if check_mu is None else checked_loss(check_mu, "check_mu"),
            patience=_whole(given.patience, "patience", MAX_STEPS),
            start=start,
        )
        resolved = {
            "learning_rate": decimal_up(rate) if rate is not None else _safe_rate(model, layout, limits),
            "public_size": size or public_size,
            "start": list(start or (0.0,) * layout.width),
        }
        return cls(mechanism, resolved, first)

    def facts(self, account: Accountant) -> list[tuple[str, str]]:
        """The cost and the expected noise, computed without the table."""
        one, resolved = self.mechanism, self.resolved
        size, rate = resolved["public_size"], resolved["learning_rate"]
        mu, steps, chains, every, check_mu = one.mu, one.steps, one.chains, one.check_every, one.check_mu
        together, times = (
            total_cost(mu, check_mu, every, steps),
            steps_that_fit(account, mu, check_mu, every, MAX_STEPS),
        )
        covers = f"the remaining budget covers {times:,} steps"
        if not account.guarantee.has_budget:
            covers = "no budget limits their number"
        elif account.individual:
            covers = f"every unit can now pay for at least {times:,} of them; later steps may exclude units"
        elif times < steps:
            covers += ", so run() would be refused"
        with_checks = "" if every is None else " with their checks"
        facts = [
            (
                "cost",
                f"{cost_text(account, GDP(mu))} for each step, charged before it is taken; nothing is reserved, and "
                "nothing was charged",
            ),
            ("all steps", f"{steps:,} steps{with_checks} together {cost_text(account, together)}; {covers}"),
        ]
        if every is not None:
            check = cost_text(account, GDP(check_mu or 0))
            facts.append(("checks", f"{steps // every:,} more, one after every {every:,} steps, at {check} each"))
        noise = one.clip_norm / float(mu) / size
        facts += [
            (
                "noise",
                f"standard deviation {display_up(noise)} in each component of a step's mean gradient, which is the sum "
                f"over units, each of norm at most {one.clip_norm:g}, divided by {size:,}"
                + (f"; each of {chains} chains has {chains**0.5:.3g} times this noise" if chains > 1 else ""),
            ),
            (
                "learning rate",
                f"{rate:.4g}, for columns scaled to [-1, 1]: the noise of a step moves each by {noise * rate:.3g}",
            ),
            ("intervals", NO_INTERVALS),
        ]
        return facts


def total_cost(mu: Fraction, check_mu: Fraction | None, every: int | None, steps: int, *, taken: int = 0) -> GDP:
    """The loss of some steps after those that were taken, with their checks."""
    checks = 0 if every is None else (taken + steps) // every - taken // every
    return GDP.from_mu_squared(mu**2 * steps + (check_mu or 0) ** 2 * checks)


def steps_that_fit(
    account: Accountant, mu: Fraction, check_mu: Fraction | None, every: int | None, most: int, *, taken: int = 0
) -> int:
    """How many steps the budget allows after those that were taken, with their checks; at most `most`.

    A check counts as the steps that have its squared mu: exactly its share under filters that add these; under others
    if it costs as much as a step, as by default.
    """
    times = account.filter.max_repetitions(account.guarantee.to_filter_loss(GDP(mu)))
    if times is None:
        return most
    steps = range(1, min(times, most) + 1)
    return bisect_right(steps, times * mu**2, key=lambda n: total_cost(mu, check_mu, every, n, taken=taken).mu_squared)


def refuse_too_many(
    name: str,
    account: Accountant,
    mu: Fraction,
    check_mu: Fraction | None,
    every: int | None,
    steps: int,
    *,
    taken: int,
) -> None:
    """Refuse some steps of a descent after those that were taken, if the budget is too small for all of them."""
    fit = steps_that_fit(account, mu, check_mu, every, steps, taken=taken)
    if fit < steps:
        total = total_cost(mu, check_mu, every, steps, taken=taken)
        more, shorter = "further " if taken else "", f"steps={fit + taken:,} or " if fit else ""
        raise BudgetExceeded(
            f"{name}: its {steps:,} {more}steps together cost {cost_text(account, total)}, more than what is left, "
            f"which allows {fit:,}; launch it with {shorter}a smaller mu= under another name, or take single steps "
            "with .step(); nothing was charged"
        )


def descent_request(
    core: SessionCore,
    rows: Plan,
    model: RegressionModel,
    terms: tuple[str, ...],
    name: str | None,
    given: FitArguments | DescendGradient,
) -> LaunchRequest:
    """The launch of a gradient descent; for the arguments see `GradientDescentParameters.checked`."""
    tables = core.tables
    schema, limits = tables.schema(rows.source), effective_bounds(tables.unit(rows.source), rows.contribution_bounds)
    checked = GradientDescentParameters.checked(rows, model, terms, schema, limits, core.pricer.public.units, given)
    tables.compile(checked.first_step)  # refuses what the backend cannot compute
    title = title_of(f"{describe_model(model)}{rows.scope_description}") if name is None else name
    return LaunchRequest(title, checked.mechanism, resolved=checked.resolved, facts=checked.facts(core.account))


def _safe_rate(model: RegressionModel, layout: RegressionDesign, limits: ContributionBounds) -> float:
    """A learning rate at which no descent overshoots, for any rows.

    The inverse of the largest curvature that a unit's loss can have; clipping only shortens steps.
    """
    curvature = CURVATURE.get(model.family, layout.outcome[0] + layout.outcome[1])
    rows = min((bound for bound in (limits.max_rows, limits.max_rows_per_group) if bound is not None), default=1)
    return 1 / (curvature * layout.max_norm_squared * rows)


def _whole(value: object, name: str, maximum: int) -> int:
    number = whole_number(value)
    if number is None or not 1 <= number <= maximum:
        raise InvalidValueError(f"{name}: must be a whole number from 1 to {maximum:,}; got {value!r}")
    return number
