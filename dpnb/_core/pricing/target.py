"""What a release is asked for: known at least this well."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np

from dpnb._core.options import checked_amount
from dpnb._plan.constants import constant
from dpnb._plan.measurements import AnyView, view_from_json, view_to_json
from dpnb._plan.schema import Key
from dpnb.accounting.budget import Budget
from dpnb.accounting.conversions import mu_from_epsilon
from dpnb.accounting.exact import (
    Number,
    decimal_down,
    decimal_sqrt_up,
    exact,
    from_text,
    shown,
    to_text,
)
from dpnb.accounting.losses import GDP
from dpnb.errors import BudgetExceeded, RequestError
from dpnb.results.estimates.noisy import Cells

WITHIN_MARGIN = 1 - 1e-9
"""The interval that comes out must not be wider than asked for by the last digits of a double."""

MIN_ALPHA = Fraction(1, 10**100)
"""The least probability of a miss: shared by very many intervals it is still a usual double."""

MOST_MISSED = 1.2
"""A half-width may come out at most this many times as wide as asked; if it could be wider, it is refused."""

MOST_PAID = 1.5
"""A target may cost at most this many times what it needs; the cost is inverse to the half-width's square."""

KINDS = ("mu", "rho", "epsilon", "share", "within")
"""Ways of saying how well an answer is to be known."""

Label = Key | tuple[Key, ...]
"""A group's key (a tuple for several levels), or the name of a statistic."""


@dataclass(frozen=True)
class Target:
    """One way of saying how well an answer is to be known.

    Parameters
    ----------
    kind : str
        ``mu``, ``rho``, ``epsilon``, ``share`` or ``within``.
    amount : Fraction or None
        As written; None for a ``within=`` that names labels.
    confidence : Fraction
        Of the intervals.
    amounts : tuple of (label, Fraction)
        ``within=`` of single groups or statistics.
    simultaneous : bool
        All intervals hold at once with that confidence.
    final : bool
        The first look is the last.
    groups : tuple of tuple
        Keys of the groups that are to be known so well; all if empty.
    """

    kind: str
    amount: Fraction | None
    confidence: Fraction
    amounts: tuple[tuple[Label, Fraction], ...] = ()
    simultaneous: bool = False
    final: bool = False
    groups: tuple[tuple[Key, ...], ...] = ()

    @property
    def alpha(self) -> Fraction:
        """How often an interval may miss."""
        return 1 - self.confidence

    @property
    def words(self) -> str:
        """The target as it was written, for example ``mu=0.3``."""
        if self.amount is None:
            return f"{self.kind}={{{', '.join(f'{label!r}: {float(amount):.6g}' for label, amount in self.amounts)}}}"
        return f"{self.kind}={float(self.amount):.6g}"

    def to_json(self, view: AnyView) -> str:
        """The arguments as written, and what is read off; part of a request's identity."""
        amount = (
            [[label, to_text(part)] for label, part in self.amounts] if self.amount is None else to_text(self.amount)
        )
        content: dict[str, Any] = {self.kind: amount, "confidence": to_text(self.confidence)}
        content["view"] = json.loads(view_to_json(view))
        for name in ("simultaneous", "final", "groups"):
            if getattr(self, name):
                content[name] = getattr(self, name)
        return json.dumps(content)


@dataclass(frozen=True)
class StoredRequest:
    """What a stored request says of how its answer is shown, and for what it asked.

    Parameters
    ----------
    confidence, view, simultaneous, groups, final
        As in `Target`.
    kind, amount : str, str or None
        The target as it was written; None for a ``within=`` that names labels.
    """

    confidence: Fraction
    view: AnyView
    simultaneous: bool
    groups: tuple[tuple[Key, ...], ...]
    final: bool = False
    kind: str = ""
    amount: str | None = None

    @staticmethod
    def from_json(text: str) -> StoredRequest:
        """What `Target.to_json` wrote."""
        return _request_of(text)


@lru_cache(maxsize=256)  # one text is asked again and again, of other questions
def _request_of(text: str) -> StoredRequest:
    content = json.loads(text)
    kind = next((kind for kind in KINDS if kind in content), "")
    amount = content.get(kind)
    return StoredRequest(
        from_text(content["confidence"]),
        view_from_json(json.dumps(content["view"])),
        content.get("simultaneous", False),
        tuple(tuple(key) for key in content.get("groups", ())),
        content.get("final", False),
        kind,
        amount if isinstance(amount, str) else None,
    )


def target_from(
    *,
    mu: Number | None = None,
    rho: Number | None = None,
    epsilon: Number | None = None,
    share: Number | None = None,
    within: Number | Mapping[Any, Number] | None = None,
    confidence: Number = 0.95,
    simultaneous: bool = False,
    final: bool = False,
    groups: tuple[tuple[Key, ...], ...] = (),
) -> Target:
    """Check the arguments of a preview or release.

    Raises
    ------
    RequestError
        Not exactly one target, or a share above 1 or a confidence outside (0, 1).
    InvalidValueError
        A number is not finite and positive, or is outside 1e-100 to 1e100.
    """
    targets: dict[str, Any] = {"mu": mu, "rho": rho, "epsilon": epsilon, "share": share, "within": within}
    chosen = {kind: target for kind, target in targets.items() if target is not None}
    if len(chosen) != 1:
        got = ", ".join(f"{kind}={shown(target)}" for kind, target in chosen.items()) or "none"
        raise RequestError(f"target: give exactly one of mu=, rho=, epsilon=, share=, within=; got {got}")
    ((kind, given),) = chosen.items()
    level = exact(confidence, name="confidence")
    if not 0 < level < 1:
        raise RequestError(f"confidence: must lie between 0 and 1, both excluded; got {shown(confidence)}; take 0.95")
    if 1 - level < MIN_ALPHA:
        raise RequestError(f"confidence: must be at most 1 - 1e-100; got {shown(confidence)}; take 0.95")
    for name, flag in (("simultaneous", simultaneous), ("final", final)):
        if not isinstance(flag, bool | np.bool_):
            raise RequestError(f"{name}: must be True or False; got {flag!r}")
    each: tuple[tuple[Label, Fraction], ...] = ()
    number = None
    if hasattr(given, "to_dict"):  # a pandas Series by group
        given = given.to_dict()
    if isinstance(given, Mapping):
        if kind != "within" or not given:
            raise RequestError(f"{kind}: only within= may be a mapping, with at least one entry; got {given!r}")
        each = tuple((_label(label), checked_amount(part, f"within[{label!r}]")) for label, part in given.items())
    else:
        number = checked_amount(given, kind)
        if kind == "share" and number > 1:
            raise RequestError(f"share: must be at most 1, all that is left; got {shown(given)}")
    return Target(kind, number, level, each, bool(simultaneous), bool(final), groups)


def _label(label: object) -> Label:
    if isinstance(label, tuple):
        return tuple(constant(part, "within") for part in label)
    return constant(label, "within")


@dataclass(frozen=True)
class ErrorModel:
    """The errors of a question as they would be.

    Parameters
    ----------
    words : str
        The question.
    labels : list of list of Label
        For each group and output what a ``within=`` may call it; shape (groups, outputs).
    mixed : bool
        Whether the outputs have different units.
    sensitivity_squared : int
        C squared of what is to be measured.
    now : float64 array or None
        Half-widths as they are known by now, shape (groups, outputs).
    at : callable
        Half-widths once the sums are known with a noise scale; None where nobody can know.
    spread : callable
        For a noise scale, what the half-widths may turn out to be instead.
    """

    words: str
    labels: list[list[tuple[Label, ...]]]
    mixed: bool
    sensitivity_squared: int
    now: Cells | None
    at: Callable[[float], Cells | None]
    spread: Callable[[float], Iterable[Cells | None]]


def resolve(
    target: Target,
    *,
    words: str,
    known: GDP,
    budget: Budget,
    share_left: Callable[[Fraction], GDP],
    errors: ErrorModel,
    unknown: Callable[[], None],
) -> GDP:
    """The loss at which the question is known as well as asked, earlier looks included.

    Parameters
    ----------
    target : Target
    words : str
        The question.
    known : GDP
        What was paid for it already.
    budget : Budget
    share_left : callable
        The largest release that takes at most a share of what the filter has left.
    errors : Errors
        Used for ``within=`` only.
    unknown : callable
        Refuses ``within=`` for an error that nobody can know.

    Raises
    ------
    BudgetExceeded
        ``share=`` of nothing.
    RequestError
        ``epsilon=`` under a budget without a delta, or a target that no noise can be calibrated to.
    """
    if target.kind == "within":
        return _within(target, known, errors, unknown)
    amount = target.amount or Fraction(0)
    if target.kind == "mu":
        return GDP(amount)
    if target.kind == "rho":
        return GDP.from_mu_squared(2 * amount)
    if target.kind == "share":
        extra = share_left(amount)
        if not extra.mu_squared:
            raise BudgetExceeded(f"{words}: share of what is left, but nothing is left; nothing was charged")
        return GDP.from_mu_squared(known.mu_squared + extra.mu_squared)
    return _from_epsilon(amount, budget)


def _from_epsilon(epsilon: Fraction, budget: Budget) -> GDP:
    if budget.delta is None:
        raise RequestError(
            "epsilon: the budget is in GDP, without a delta to go with epsilon; give mu= or rho= instead"
        )
    mu = mu_from_epsilon(epsilon, delta=budget.delta - budget.discovery_delta)
    if mu == 0:
        raise RequestError(f"epsilon: too small to measure anything; got {decimal_down(epsilon)!r}; ask for more")
    return GDP(mu)


def _within(target: Target, known: GDP, errors: ErrorModel, unknown: Callable[[], None]) -> GDP:
    """By bisection: every half-width grows with the noise scale."""
    wanted = _wanted(target, errors)

    def enough(widths: Cells | None) -> bool:
        return widths is not None and bool((np.isinf(wanted) | (widths <= wanted * WITHIN_MARGIN)).all())

    if enough(errors.now):
        return known
    # A scale at which one unit is told apart about as well as by mu = 1.
    low = high = math.sqrt(errors.sensitivity_squared)
    best = errors.at(low * 1e-9)  # with hardly any noise: what is unknown then is not determined by what is known
    if best is None or not np.isfinite(best[np.isfinite(wanted)]).all():
        unknown()
    if enough(errors.at(high)):
        while enough(errors.at(high)) and math.isfinite(high):
            low, high = high, high * 4
    else:
        while not enough(errors.at(low)):
            high, low = low, low / 4
            if low < 1e-280:
                break
    if low < 1e-280 or not math.isfinite(high):
        raise RequestError(
            f"within: no noise can be calibrated to an error of {target.words.partition('=')[2]} in the "
            f"{errors.words}; ask for another"
        )
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if enough(errors.at(middle)) else (low, middle)
    if not is_reliable_forecast(errors.spread(low), wanted):
        unknown()
    return GDP(decimal_sqrt_up(errors.sensitivity_squared / Fraction(low) ** 2))


def is_reliable_forecast(spread: Iterable[Cells | None], wanted: Cells | None, *, per_cell: bool = False) -> bool:
    """Whether no half-width that may come out misses what is wanted, or costs more than it needs, by too much.

    What counts is the widest one, relative to what is wanted; with `per_cell` each of them.
    """
    if wanted is None:
        return False
    for widths in spread:
        if widths is None:
            return False
        with np.errstate(all="ignore"):
            ratios = np.where(np.isinf(wanted), 1.0 if per_cell else 0.0, widths / wanted)
        ratios = ratios if per_cell else np.max(ratios)
        if not np.all((ratios <= MOST_MISSED) & (ratios >= MOST_PAID**-0.5)):  # also what is unknown
            return False
    return True


def _wanted(target: Target, errors: ErrorModel) -> Cells:
    """The largest half-width allowed for each group and output; infinite where nothing is asked."""
    if target.amount is not None:
        if errors.mixed:
            raise RequestError(
                f"within: the statistics of {errors.words} have different units; name one, as in within={{'mean': 0.3}}"
            )
        return np.full((len(errors.labels), len(errors.labels[0])), decimal_down(target.amount))
    asked = dict(target.amounts)
    wanted = np.full((len(errors.labels), len(errors.labels[0])), np.inf)
    used: set[Label] = set()
    for row, labels in enumerate(errors.labels):
        for column, names in enumerate(labels):
            for name in names:
                if name in asked:
                    used.add(name)
                    wanted[row, column] = min(wanted[row, column], decimal_down(asked[name]))
    for label in asked:
        if label not in used:
            raise RequestError(f"within: {label!r} is no group or statistic of {errors.words}; got {target.words}")
    return wanted
