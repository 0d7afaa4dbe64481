"""A linear regression that can be previewed and released, and targets divided among several charges.

The whole cost of divided charges is known before the first.  The parts of a target follow from its arguments alone, so
the same call makes the same requests, whose recorded answers are free.

The coefficients of a linear regression are one charge.  Robust standard errors are a second one, since what is measured
for them depends on the released coefficients (`dpnb._core.pricing.influence.scores_query`); one target is divided among
both.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Unpack

import msgspec
import numpy as np

from dpnb._core.accountant.admission import refuse_above
from dpnb._core.core import SessionCore
from dpnb._core.history.words import cost_text
from dpnb._core.pricing.influence import scores_query
from dpnb._core.pricing.resolve import resolve_loss
from dpnb._plan.measurements import AnyView, is_regression
from dpnb._plan.plan import Plan
from dpnb._request import Release
from dpnb._target import Target, target_of
from dpnb.accounting.exact import decimal_down, exact, few_digits_down
from dpnb.accounting.filters import Filter
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded, PlanError, RequestError
from dpnb.query.query import Query, checked_query
from dpnb.render.numbers import format_cost
from dpnb.results.answer import Answer
from dpnb.results.display import Explanation
from dpnb.results.estimates.linear import terms_of
from dpnb.results.preview import Preview, PreviewTarget
from dpnb.results.regression import RegressionAnswer
from dpnb.results.tables.index import replaced

SHARES = (Fraction(4, 5), Fraction(1, 5))
"""The parts of the charge of coefficients and of their sampling error, of mu squared: the noise of the coefficients is
12% wider than at the whole charge, and that of the sampling error seldom matters beside it."""

MEASURED = (
    "a second charge, of sums of products of residuals and predictors at the released coefficients; the population "
    "intervals cover sampling and noise"
)

STOPPED = "stopped before the sampling error was measured, which was not charged"


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


class RegressionQuery(Query):
    """A linear regression of a session.  Free until it is released.

    Parameters
    ----------
    plan, view, runner
        As for `dpnb.Query`.
    population : bool, default False
        Whether the sampling error is measured too, at the released coefficients: robust standard errors where each row
        is a unit, and clustered by the unit otherwise.

    Examples
    --------
    >>> query = df.regress("cost ~ age", population=True)
    >>> query.preview(mu=0.2).parts[1][0]
    'sampling error'
    >>> query.release(mu=0.2).bse.index.tolist()
    ['Intercept', 'age']
    """

    __slots__ = ("population",)

    _released_type = RegressionAnswer

    def __init__(self, plan: Plan, view: AnyView, runner: SessionCore, *, population: bool = False) -> None:
        super().__init__(plan, view, runner)
        self.population = population
        if population:
            self._check_population()

    def _check_population(self) -> None:
        """Refuse before any charge what would be refused after that of the coefficients."""
        tables, source = self.runner.tables, self.plan.source
        if self.runner.account.sampled == 1:
            raise PlanError("population: a census has no sampling error; its noise intervals are those you need")
        query, known = tables.compile(self.plan), (tables.unit(source), tables.schema(source))
        plan, view = scores_query(query, self.view, *known, [1.0] * len(terms_of(query, self.view, known[1])[0]))
        self.runner.check(plan, view)

    if TYPE_CHECKING:

        def release(self, **target: Unpack[PreviewTarget]) -> RegressionAnswer:
            """As `Query.release`."""

    def _released(self, target: Target, at_most: Fraction | None = None) -> RegressionAnswer:
        if not self.population:
            return _regression(super()._released(target, at_most))
        parts = self._targets(target)
        if not self.runner.executor.find(Release(self.plan, self.view, parts[0])):  # what was begun is continued
            losses, fits = self._losses(parts)
            whole = total_of(losses)
            if not fits:
                fraction, _ = forecast_of(self.runner, losses, fits=False)
                raise BudgetExceeded(
                    f"{self.description}: costs {format_cost(whole, fraction)} with its sampling error, more "
                    "than what is left; release it with less, or without population=True; nothing was charged"
                )
            refuse_above(at_most, whole, self.description)
        answer = _regression(super()._released(parts[0]))
        try:
            found = answer.origin.population(answer, parts[1])
        except (BudgetExceeded, PlanError) as error:  # what was released is kept
            return answer._noting(f"{STOPPED}: {error}")
        cost, share = total_of([answer.cost, found.cost]), answer.cost_fraction + found.cost_fraction
        return _regression(replaced(found, cost=cost, cost_fraction=share))

    def explain(self) -> Explanation:
        """As `Query.explain`, and what the sampling error is measured from.

        Examples
        --------
        >>> df.regress("cost ~ age", population=True).explain().facts[-1][0]
        'sampling error'
        """
        found = super().explain()
        if self.population:
            found.facts.append(("sampling error", MEASURED))
        return found

    # --- the parts of its cost ------------------------------------------------------------------------------------

    def _targets(self, target: Target) -> list[Target]:
        first, second = divided(self.runner, target, SHARES, self.description)
        options = {name: getattr(target, name) for name in ("confidence", "simultaneous", "final", "groups")}
        return [msgspec.structs.replace(first, **options), second]

    def _previewed(self, targets: Iterable[Target]) -> list[Preview]:
        if not self.population:
            return super()._previewed(targets)
        wanted = list(targets)
        parts = [self._targets(target) for target in wanted]
        previews = super()._previewed([first for first, _ in parts])
        return [self._whole(*each) for each in zip(wanted, parts, previews, strict=True)]

    def _losses(self, parts: list[Target], preview: Preview | None = None) -> tuple[list[GDP], bool]:
        """What the two parts would be charged now, 0 for one that was charged before; and whether both fit.

        A sampling error is not measured where units may be excluded.
        """
        first, second = parts
        rows = self.runner.executor.find(Release(self.plan, self.view, first))
        if not rows:
            preview = super()._previewed([first])[0] if preview is None else preview
            return losses_of(self.runner, [second], self.description, [preview.cost], all_units=True)
        if rows[0].status == "released" and self._is_measured(self.runner.releases.answer_of(rows[0]), second):
            return [GDP(0), GDP(0)], True
        return losses_of(self.runner, [second], self.description, [GDP(0)], all_units=True)

    def _whole(self, target: Target, parts: list[Target], preview: Preview) -> Preview:
        """The preview of both parts, from that of the first."""
        account = self.runner.account
        losses, fits = self._losses(parts, preview)
        cost = total_of(losses)
        counted = account.guarantee.to_filter_loss(cost)
        fraction, after = forecast_of(self.runner, losses, fits=fits)
        prices = [cost_text(account, loss) if loss.mu_squared else "free: was released before" for loss in losses]
        known = preview.total_loss.mu_squared - preview.cost.mu_squared
        return replace(
            preview,
            request=target.words,
            cost=cost,
            cost_fraction=fraction,
            total_loss=GDP.from_mu_squared(known + cost.mu_squared),
            headroom_after=few_digits_down(after) if fits or np.isnan(after) else 0.0,
            fits=fits,
            max_mu=None if fits else account.max_mu(GDP(0)),
            max_repetitions=account.filter.max_repetitions(counted),
            parts=(("coefficients", prices[0]), ("sampling error", prices[1])),
        )

    def _is_measured(self, answer: Answer, target: Target) -> bool:
        """Whether there is nothing left to charge after the coefficients."""
        is_unknown = _regression(answer).numbers.unknown is not None
        return is_unknown or bool(self.runner.releases.sampling_charges(answer, target))


def regression_or_query(runner: SessionCore, plan: Plan, view: AnyView) -> Query:
    """As `checked_query`, with the methods of a regression if it is one."""
    query = checked_query(runner, plan, view)
    return RegressionQuery(plan, view, runner) if is_regression(view) and not plan.group_by else query


def with_population(query: Query) -> RegressionQuery:
    """A regression that also measures its sampling error."""
    return RegressionQuery(query.plan, query.view, query.runner, population=True)


def _regression(answer: Answer) -> RegressionAnswer:
    if not isinstance(answer, RegressionAnswer):  # never: for the type checker
        raise TypeError(type(answer).__name__)
    return answer
