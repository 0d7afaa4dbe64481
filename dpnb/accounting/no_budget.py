"""What a curator declares instead of a budget, for a session in which odometers report and nothing is refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

from dpnb.accounting.budget import Budget
from dpnb.accounting.doubles import failure_probability
from dpnb.accounting.exact import Number, decimal_up, from_text, to_text
from dpnb.accounting.frozen import Frozen
from dpnb.copying import safe_repr

_DISCOVERY_SHARE = Fraction(1, 10)
"""The part of `odometer_delta` that is set aside for the deltas of discoveries."""


@dataclass(frozen=True, init=False, repr=False)
class NoBudget(Frozen):
    """No limit of the privacy loss: odometers report it (Rogers et al. 2016, Section 6, "pay as you go").

    An odometer, and what it fails with, must be chosen before the first answer.  So the odometers have the parameters
    of a session with the budget (1, `odometer_delta`), of which a tenth of delta is for discovering groups.  This
    `reference` is a scale only: it limits nothing, and the odometers remain valid far beyond it, where they are a few
    percent larger than if they had been tuned to the larger loss.

    Parameters
    ----------
    odometer_delta : Number, default 1e-6
        In [1e-300, 1): the probability that the statement of an odometer is ever wrong.  It is also the delta at which
        ``release(epsilon=)`` is converted.

    Attributes
    ----------
    delta, discovery_delta : Fraction
        `odometer_delta`, and the part of it for the deltas of discoveries.
    epsilon : None
    reference : Budget
        The budget (1, `odometer_delta`).

    Raises
    ------
    InvalidValueError
        `odometer_delta` is out of range.

    Examples
    --------
    >>> from dpnb.accounting import NoBudget
    >>> NoBudget().reference
    Budget(epsilon=1.0, delta=1e-06, discovery_delta=1e-07)
    """

    is_limited: ClassVar[bool] = False
    delta: Fraction
    reference: Budget

    def __init__(self, odometer_delta: Number = 1e-6) -> None:
        delta = failure_probability(odometer_delta, name="odometer_delta")
        self._set(delta=delta, reference=Budget(1, delta, delta * _DISCOVERY_SHARE))

    @property
    def limit(self) -> None:
        """None: nothing limits the privacy loss."""
        return

    @property
    def epsilon(self) -> None:
        """None: there is no epsilon."""
        return

    @property
    def pure_epsilon(self) -> Fraction:
        """0: there is no reserve."""
        return Fraction(0)

    is_pure: ClassVar[bool] = False
    """Queries with Gaussian noise are answered."""

    @property
    def discovery_delta(self) -> Fraction:
        """The part of `odometer_delta` that is set aside for the deltas of discoveries."""
        return self.reference.discovery_delta

    def to_json(self) -> dict[str, str]:
        """The declaration as texts, which are equal for equal declarations, and equal to those of no budget.

        Examples
        --------
        >>> from dpnb.accounting import NoBudget
        >>> NoBudget().to_json()
        {'limit': 'none', 'odometer_delta': '1/1000000'}
        """
        return {"limit": "none", "odometer_delta": to_text(self.delta)}

    @safe_repr
    def __repr__(self) -> str:
        return f"NoBudget(odometer_delta={decimal_up(self.delta)!r})"


def budget_from_json(stored: Mapping[str, str]) -> Budget | NoBudget:
    """The budget, or its absence, that ``to_json`` wrote.

    Raises `KeyError`, `ValueError` or `InvalidValueError` if it cannot be read.
    """
    if "limit" not in stored:
        return Budget.from_json(stored)
    if stored["limit"] != "none":
        raise ValueError(stored["limit"])
    return NoBudget(from_text(stored["odometer_delta"]))
