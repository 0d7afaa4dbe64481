"""What a gradient descent is launched with: the analyst's arguments checked, and what they will cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from dpnb._core.accountant.accountant import Accountant
from dpnb._core.accountant.tree import GRADIENT_DESCENT
from dpnb._core.core import SessionCore
from dpnb._core.options import checked_amount
from dpnb._plan.measurements import Gradient, RegressionModel
from dpnb._plan.plan import Plan, check_plan
from dpnb._plan.privacy_unit import ContributionBounds, effective_bounds
from dpnb._plan.regression import RegressionDesign, describe_model, design
from dpnb._plan.schema import Schema, whole_number
from dpnb.accounting.exact import decimal_up, display_up, from_text, positive, to_text
from dpnb.accounting.losses import GDP
from dpnb.errors import InvalidValueError, RequestError
from dpnb.interactive.launch_request import LONGEST_NAME, LaunchRequest
from dpnb.render.numbers import format_cost_up
from dpnb.results.fit import COVERS, NO_INTERVAL, start_from

MOST_STEPS = 1_000_000
MOST_CHAINS = 1000
CURVATURE = {"linear": 1.0, "logistic": 0.25, "multinomial": 0.5}
"""The most that a row's loss can bend, for terms of length 1; of Poisson regressions it is the largest prediction."""


@dataclass(frozen=True)
class GradientDescentParameters:
    """Checked arguments.

    Parameters
    ----------
    asked : dict
        As they were given: the same again is the same launch.
    about : dict
        What follows from them, decided at the launch: learning rate, public number of units, and start.
    first : Plan
        Of the first step.
    """

    asked: dict[str, Any]
    about: dict[str, Any]
    first: Plan

    @classmethod
    def checked(
        cls,
        rows: Plan,
        model: RegressionModel,
        terms: tuple[str, ...],
        schema: Schema,
        limits: ContributionBounds,
        public_size: int | None,
        given: Mapping[str, Any],
    ) -> GradientDescentParameters:
        """Check what an analyst gave.

        Parameters
        ----------
        rows : Plan
            Which rows.
        model : Model
        terms : tuple of str
            What its terms are called.
        schema : dict
        limits : Limits
            In force for a unit.
        public_size : int, optional
            Of the session.
        given : mapping
            The other arguments of `Frame.fit`.

        Raises
        ------
        PlanError, RequestError, InvalidValueError
        """
        made = design(model, schema)
        chains = _whole(given["chains"], "chains", MOST_CHAINS)
        clip = decimal_up(positive(given["clip_norm"], name="clip_norm"))
        start = start_from(given["start"], model.family, made, terms)
        gradient = Gradient(model, (start or (0.0,) * made.width,) * chains, clip)
        first = msgspec.structs.replace(rows, aggregation=gradient)
        check_plan(first, schema)
        rate = None if given["learning_rate"] is None else positive(given["learning_rate"], name="learning_rate")
        size = None if given["public_size"] is None else _whole(given["public_size"], "public_size", 2**53)
        if size is None and public_size is None:
            raise RequestError(
                "fit: the sum over units is divided by a public number of them, never by how many there are, which is "
                "private; give public_size=, or the session public_size="
            )
        mu = checked_amount(given["mu"], "mu")
        every, check_mu = given["check_every"], given["check_mu"]
        if every is None and check_mu is not None:
            raise RequestError(f"check_mu: is of the checks after every check_every= steps; got {check_mu!r} alone")
        asked = {
            "rows": rows.to_json(),
            "model": msgspec.to_builtins(model),
            "terms": list(terms),
            "mu": to_text(mu),
            "steps": _whole(given["steps"], "steps", MOST_STEPS),
            "clip_norm": clip,
            "learning_rate": None if rate is None else to_text(rate),
            "chains": chains,
            "public_size": size,
            "check_every": None if every is None else _whole(every, "check_every", MOST_STEPS),
            "check_mu": None
            if every is None
            else to_text(mu if check_mu is None else checked_amount(check_mu, "check_mu")),
            "patience": _whole(given["patience"], "patience", MOST_STEPS),
            "start": None if start is None else list(start),
        }
        about = {
            "learning_rate": decimal_up(rate) if rate is not None else _safe_rate(model, made, limits),
            "public_size": size or public_size,
            "start": list(start or (0.0,) * made.width),
        }
        return cls(asked, about, first)

    def facts(self, account: Accountant) -> list[tuple[str, str]]:
        """What it will cost and what to expect: made without the table."""
        asked, size, rate = self.asked, self.about["public_size"], self.about["learning_rate"]
        mu, steps, chains = from_text(asked["mu"]), asked["steps"], asked["chains"]
        together = GDP.from_mu_squared(mu**2 * steps)
        times = account.filter.max_repetitions(account.promise.to_filter_loss(GDP(mu)))
        covers = f"the budget covers {times:,} steps as it stands"
        if account.individual:
            covers = f"everybody surely takes part in {times:,} of them as it stands, and then steps go on"
        facts = [
            (
                "cost",
                f"{format_cost_up(GDP(mu))} a step, charged before it is taken; nothing is reserved, nothing was "
                "charged",
            ),
            ("all steps", f"{steps:,} steps together {format_cost_up(together)}; {covers}"),
        ]
        if asked["check_every"] is not None:
            check = format_cost_up(GDP(from_text(asked["check_mu"])))
            many = steps // asked["check_every"]
            facts.append(("checks", f"{many:,} more, one after every {asked['check_every']:,} steps, at {check} each"))
        noise = asked["clip_norm"] / float(mu) / size
        facts += [
            (
                "noise",
                f"standard deviation {display_up(noise)} in each number of a step's mean gradient, which is the sum "
                f"over units, each at most {asked['clip_norm']:g} long, divided by {size:,}; with {chains} chains, "
                f"each has {chains**0.5:.3g} times that and their mean just that",
            ),
            (
                "learning rate",
                f"{rate:.4g}, of columns brought to -1 to 1: a step's noise moves them by {noise * rate:.3g}",
            ),
            ("intervals", COVERS if chains > 1 else NO_INTERVAL),
        ]
        return facts


def descent_request(
    core: SessionCore,
    rows: Plan,
    model: RegressionModel,
    terms: tuple[str, ...],
    name: str | None,
    given: Mapping[str, Any],
) -> LaunchRequest:
    """The launch of a gradient descent; for the arguments see `GradientDescentParameters.checked`.

    Raises
    ------
    PlanError, RequestError, InvalidValueError
    """
    tables = core.tables
    schema, limits = tables.schema(rows.source), effective_bounds(tables.unit(rows.source), rows.contribution_bounds)
    made = GradientDescentParameters.checked(rows, model, terms, schema, limits, core.questions.public.units, given)
    tables.compile(made.first)  # refuses what cannot be asked where the rows are
    title = f"{describe_model(model)}{rows.scope_description}"[:LONGEST_NAME] if name is None else name
    return LaunchRequest(GRADIENT_DESCENT, title, made.asked, about=made.about, facts=made.facts(core.account))


def _safe_rate(model: RegressionModel, made: RegressionDesign, limits: ContributionBounds) -> float:
    """A learning rate at which no descent overshoots, whatever the rows are.

    One over the largest curvature that a unit's loss can have; clipping only makes steps shorter.
    """
    curvature = CURVATURE.get(model.family, made.outcome[0] + made.outcome[1])
    rows = min((bound for bound in (limits.max_rows, limits.max_rows_per_group) if bound is not None), default=1)
    return 1 / (curvature * made.longest_squared * rows)


def _whole(value: object, name: str, most: int) -> int:
    number = whole_number(value)
    if number is None or not 1 <= number <= most:
        raise InvalidValueError(f"{name}: must be a whole number from 1 to {most:,}; got {value!r}")
    return number
