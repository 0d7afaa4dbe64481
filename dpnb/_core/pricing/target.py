"""The target of a release: the precision or the loss at which the answer is to be known."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, TypedDict

import numpy as np

from dpnb._core.options import checked_amount, checked_loss
from dpnb._plan.constants import constant
from dpnb._plan.measurements import AnyView, view_from_json, view_to_json
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
from dpnb.accounting.no_budget import NoBudget
from dpnb.errors import BudgetExceeded, RequestError
from dpnb.results.estimates.noisy import Cells
from dpnb.schema import Key

# --- the refusal of Gaussian noise under a budget in pure DP ----------------------------------------------------------


def refuse_in_pure_dp(budget: Budget | NoBudget, description: str) -> None:
    """Refuse Gaussian noise under a budget in pure DP, whatever is left of it."""
    if budget.is_pure:
        raise BudgetExceeded(
            f"{description}: has Gaussian noise, and the budget is in pure DP; use session.above_threshold(...), or "
            ".top(k) or .idxmax() of a count, or a session with dpnb.Budget(epsilon, delta, pure_epsilon); nothing was "
            "charged"
        )


# --- the target of a release ------------------------------------------------------------------------------------------


WITHIN_MARGIN = 1 - 1e-9
"""Tolerance for rounding in doubles, so that the interval is not wider than requested in the last digits."""

MIN_ALPHA = Fraction(1, 10**100)
"""The smallest error probability: divided among very many intervals, it remains a normal double."""

MAX_WIDTH_RATIO = 1.2
"""A target is refused if a half-width might be more than this multiple of the requested one."""

MAX_COST_RATIO = 1.5
"""A target is refused if it might cost more than this multiple of what is needed, which is inverse to width squared."""

DEFAULT_CONFIDENCE = exact(0.95)

KINDS = ("mu", "rho", "epsilon", "share", "within")
"""Kinds of targets."""

PICKER_STEPS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5)
"""Shares of the remaining budget that are proposed."""

PICKER_MUS = (0.02, 0.05, 0.1, 0.2, 0.5)
"""What is proposed without a budget, of which there are no shares."""

Label = Key | tuple[Key, ...]
"""A group's key (a tuple for several levels), or the name of a statistic."""


class PreviewOptions(TypedDict, total=False):
    """The arguments of a preview other than its target, for the overloads of `Query.preview`."""

    confidence: Number
    simultaneous: bool
    final: bool
    groups: object


class PreviewTarget(PreviewOptions, total=False):
    """One target."""

    mu: Number | None
    rho: Number | None
    epsilon: Number | None
    share: Number | None
    within: Number | Mapping[Any, Number] | None


class PreviewTargets(PreviewOptions, total=False):
    """Several amounts of one target."""

    mu: Sequence[Number]
    rho: Sequence[Number]
    epsilon: Sequence[Number]
    share: Sequence[Number]
    within: Sequence[Number | Mapping[Any, Number]]


@dataclass(frozen=True)
class Target:
    """The target of a release, with the options of its intervals."""

    kind: str  # ``mu``, ``rho``, ``epsilon``, ``share`` or ``within``
    amount: Fraction | None  # as written; None for a ``within=`` with labels
    confidence: Fraction  # of the intervals
    amounts: tuple[tuple[Label, Fraction], ...] = ()  # half-widths of single groups or statistics in ``within=``
    simultaneous: bool = False  # all intervals hold at once with that confidence
    final: bool = False  # the first observation is the only one
    groups: tuple[tuple[Key, ...], ...] = ()  # keys of the groups to which the target applies; all groups if empty

    @property
    def alpha(self) -> Fraction:
        """Probability that an interval does not contain the exact answer."""
        return 1 - self.confidence

    @property
    def words(self) -> str:
        """The target as it was written, for example ``mu=0.3``."""
        if self.amount is None:
            return f"{self.kind}={{{', '.join(f'{label!r}: {float(amount):.6g}' for label, amount in self.amounts)}}}"
        return f"{self.kind}={float(self.amount):.6g}"

    def to_json(self, view: AnyView) -> str:
        """The arguments as written, with the view; part of the identity of a request."""
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
    """The arguments of a request, as stored in the ledger."""

    confidence: Fraction
    view: AnyView
    simultaneous: bool
    groups: tuple[tuple[Key, ...], ...]
    final: bool = False
    kind: str = ""  # of the target
    amount: str | None = None  # as written; None for a ``within=`` with labels

    @staticmethod
    def from_json(text: str) -> StoredRequest:
        """Read what `Target.to_json` wrote."""
        return _request_of(text)

    def to_arguments(self) -> dict[str, Any]:
        """The arguments of `dpnb.Query.release` that make this request, without those that are the defaults."""
        return {
            self.kind: from_text(self.amount or "0"),
            **({} if self.confidence == DEFAULT_CONFIDENCE else {"confidence": self.confidence}),
            **({"simultaneous": True} if self.simultaneous else {}),
            **({"final": True} if self.final else {}),
            **({"groups": list(self.groups)} if self.groups else {}),
        }


@lru_cache(maxsize=256)  # many queries have the same arguments
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
    """Check the arguments of a preview or release: exactly one target, numbers as `dpnb._core.options` allows them."""
    arguments: dict[str, Any] = {"mu": mu, "rho": rho, "epsilon": epsilon, "share": share, "within": within}
    targets = {kind: value for kind, value in arguments.items() if value is not None}
    if len(targets) != 1:
        got = ", ".join(f"{kind}={shown(value)}" for kind, value in targets.items()) or "none"
        raise RequestError(f"target: give exactly one of mu=, rho=, epsilon=, share=, within=; got {got}")
    ((kind, value),) = targets.items()
    level = exact(confidence, name="confidence")
    if not 0 < level < 1:
        raise RequestError(
            f"confidence: must lie between 0 and 1, both excluded; got {shown(confidence)}; 0.95 is usual"
        )
    if 1 - level < MIN_ALPHA:
        raise RequestError(f"confidence: must be at most 1 - 1e-100; got {shown(confidence)}; 0.95 is usual")
    for name, flag in (("simultaneous", simultaneous), ("final", final)):
        if not isinstance(flag, bool | np.bool_):
            raise RequestError(f"{name}: must be True or False; got {flag!r}")
    amounts: tuple[tuple[Label, Fraction], ...] = ()
    amount = None
    if hasattr(value, "to_dict"):  # a pandas Series by group
        value = value.to_dict()
    if isinstance(value, Mapping):
        if kind != "within" or not value:
            raise RequestError(f"{kind}: only within= may be a mapping, with at least one entry; got {value!r}")
        amounts = tuple((_label(label), checked_amount(width, f"within[{label!r}]")) for label, width in value.items())
    else:
        amount = checked_amount(value, kind) if kind == "within" else checked_loss(value, kind)
        if kind == "share" and amount > 1:
            raise RequestError(f"share: must be at most 1, the whole remaining budget; got {shown(value)}")
    return Target(kind, amount, level, amounts, bool(simultaneous), bool(final), groups)


def proposed_targets(*, has_budget: bool) -> tuple[str, tuple[float, ...]]:
    """The kind and the amounts of the targets that a preview without arguments shows."""
    return ("share", PICKER_STEPS) if has_budget else ("mu", PICKER_MUS)


def _label(label: object) -> Label:
    if isinstance(label, tuple):
        return tuple(constant(part, "within") for part in label)
    return constant(label, "within")


@dataclass(frozen=True)
class ErrorModel:
    """The errors of a query as a function of the noise scale."""

    description: str  # of the query, in words
    labels: list[list[tuple[Label, ...]]]  # those in ``within=`` of each group and output; shape (groups, outputs)
    mixed_units: bool  # whether the outputs have different units
    sensitivity_squared: int  # of the measured cells
    current: Cells | None  # half-widths, shape (groups, outputs)
    # half-widths at a noise scale of the sums; None if they cannot be predicted
    expected: Callable[[float], Cells | None]
    possible: Callable[[float], Iterable[Cells | None]]  # half-widths that may result at a noise scale


def resolve(
    target: Target,
    *,
    description: str,
    known: GDP,
    budget: Budget | NoBudget,
    remaining: Callable[[Fraction], GDP],
    errors: Callable[[], ErrorModel],
    refuse_unknown: Callable[[], None],
) -> GDP:
    """The total loss at which a query meets the target, including earlier observations.

    `known` is the loss already paid for the query; `remaining` returns the largest loss that is at most a given share
    of the remaining budget; `errors` is called for ``within=`` only; `refuse_unknown` raises an error about ``within=``
    for an error that cannot be predicted.
    """
    refuse_in_pure_dp(budget, description)
    if target.kind == "within":
        return _within(target, known, errors(), refuse_unknown)
    return resolve_loss(target, description=description, known=known, budget=budget, remaining=remaining)


def resolve_loss(
    target: Target, *, description: str, known: GDP, budget: Budget | NoBudget, remaining: Callable[[Fraction], GDP]
) -> GDP:
    """The total loss of a target that is a loss or a share; see `resolve`."""
    refuse_in_pure_dp(budget, description)
    amount = target.amount or Fraction(0)
    if target.kind == "mu":
        return GDP(amount)
    if target.kind == "rho":
        return GDP.from_mu_squared(2 * amount)
    if target.kind == "share":
        additional = remaining(amount)
        if not additional.mu_squared:
            raise BudgetExceeded(
                f"{description}: share= requires remaining budget, but nothing is left; nothing was charged"
            )
        return GDP.from_mu_squared(known.mu_squared + additional.mu_squared)
    return _from_epsilon(amount, budget)


def _from_epsilon(epsilon: Fraction, budget: Budget | NoBudget) -> GDP:
    if budget.delta is None:
        raise RequestError(
            "epsilon: requires a budget with a delta; this one is in GDP and has none; give mu= or rho= instead"
        )
    mu = mu_from_epsilon(epsilon, delta=budget.delta - budget.discovery_delta)
    if mu == 0:
        raise RequestError(
            f"epsilon: is too small to measure anything; got {decimal_down(epsilon)!r}; give a larger value"
        )
    return GDP(mu)


def _within(target: Target, known: GDP, errors: ErrorModel, refuse_unknown: Callable[[], None]) -> GDP:
    """Solve for the noise scale by bisection: every half-width increases with it."""
    requested = _requested(target, errors)

    def enough(widths: Cells | None) -> bool:
        return widths is not None and bool((np.isinf(requested) | (widths <= requested * WITHIN_MARGIN)).all())

    if enough(errors.current):
        return known
    # The scale at which the loss is mu = 1.
    low = high = math.sqrt(errors.sensitivity_squared)
    best = errors.expected(low * 1e-9)  # with almost no noise, only what cannot be predicted remains unknown
    if best is None or not np.isfinite(best[np.isfinite(requested)]).all():
        refuse_unknown()
    if enough(errors.expected(high)):
        while enough(errors.expected(high)) and math.isfinite(high):
            low, high = high, high * 4
    else:
        while not enough(errors.expected(low)):
            high, low = low, low / 4
            if low < 1e-280:
                break
    if low < 1e-280 or not math.isfinite(high):
        raise RequestError(
            f"within: no noise can be calibrated to an error of {target.words.partition('=')[2]} in the "
            f"{errors.description}; give another error"
        )
    while high / low > 1 + 1e-9:
        middle = math.sqrt(low * high)
        low, high = (middle, high) if enough(errors.expected(middle)) else (low, middle)
    if not is_reliable_forecast(errors.possible(low), requested):
        refuse_unknown()
    return GDP(decimal_sqrt_up(errors.sensitivity_squared / Fraction(low) ** 2))


def is_reliable_forecast(possible: Iterable[Cells | None], requested: Cells | None, *, per_cell: bool = False) -> bool:
    """Whether all possible half-widths are within `MAX_WIDTH_RATIO` and `MAX_COST_RATIO` of the requested ones.

    The widest one relative to the requested one is compared; with `per_cell`, each of them.
    """
    if requested is None:
        return False
    for widths in possible:
        if widths is None:
            return False
        with np.errstate(all="ignore"):
            ratios = np.where(np.isinf(requested), 1.0 if per_cell else 0.0, widths / requested)
        ratios = ratios if per_cell else np.max(ratios)
        if not np.all((ratios <= MAX_WIDTH_RATIO) & (ratios >= MAX_COST_RATIO**-0.5)):  # False for NaN too
            return False
    return True


def _requested(target: Target, errors: ErrorModel) -> Cells:
    """The requested half-width of each group and output; infinite if there is none."""
    if target.amount is not None:
        if errors.mixed_units:
            raise RequestError(
                f"within: the statistics of {errors.description} have different units; name one, as in "
                "within={'mean': 0.3}"
            )
        return np.full((len(errors.labels), len(errors.labels[0])), decimal_down(target.amount))
    amounts = dict(target.amounts)
    requested = np.full((len(errors.labels), len(errors.labels[0])), np.inf)
    used: set[Label] = set()
    for row, outputs in enumerate(errors.labels):
        for column, labels in enumerate(outputs):
            for label in labels:
                if label in amounts:
                    used.add(label)
                    requested[row, column] = min(requested[row, column], decimal_down(amounts[label]))
    for label in amounts:
        if label not in used:
            raise RequestError(
                f"within: {label!r} is not a group or statistic of {errors.description}; got {target.words}"
            )
    return requested
